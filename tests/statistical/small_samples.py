"""Coverage from 20 to 600 records, in up to 15 dimensions, with data that are not round.

``python -m tests.statistical.small_samples --replications 1000 --output docs/small_samples.md``
prints one line per design and writes the page. Coverage below `ACCEPTED` is set in bold.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from math import pi
from pathlib import Path

import numpy as np

from skdpfrechet.manifolds import Manifold, SPDAffineInvariant, Sphere
from tests.statistical.coverage_study import Design, Summary, centred, off_centre, study

ACCEPTED = 0.92
SIZES = (20, 60, 200, 600)
BUDGETS = (0.2, 1.0)
SPACES: dict[str, tuple[Manifold, float]] = {
    "S²": (Sphere(2), pi / 8),
    "S⁵": (Sphere(5), pi / 8),
    "SPD(2)": (SPDAffineInvariant(2), 1.5),
    "SPD(3)": (SPDAffineInvariant(3), 1.5),
    "SPD(5)": (SPDAffineInvariant(5), 1.5),
}
WIDE_CAPS: dict[str, tuple[Manifold, float]] = {
    "S², r = 1.3": (Sphere(2), 1.3),
    "S², r = 1.5": (Sphere(2), 1.5),
    "S⁵, r = 1.3": (Sphere(5), 1.3),
}


def anisotropic(design: Design) -> Design:
    """Squeeze the records: the longest axis of their law is eight times the shortest."""
    return replace(design, axes=np.geomspace(1.0, 1 / 8, design.manifold.dim))


def designs(spaces: dict[str, tuple[Manifold, float]]) -> dict[str, Design]:
    """Round, squeezed, and squeezed far from the centre of the ball, in each space."""
    result = {}
    for name, (space, radius) in spaces.items():
        center = np.eye(space.dim + 1)[-1] if isinstance(space, Sphere) else space.origin
        result[f"{name}, round"] = centred(space, center, radius)
        result[f"{name}, squeezed"] = anisotropic(centred(space, center, radius))
        result[f"{name}, squeezed, off centre"] = anisotropic(off_centre(space, center, radius))
    return result


def table(spaces: dict, replications: int, n_jobs: int) -> list[str]:
    """One line per design and budget: coverage of the mean and of the variance for each size."""
    sizes = " | ".join(f"n = {n}" for n in SIZES)
    lines = [f"| records | μ | of | {sizes} |", "|---|---|---|" + "---|" * len(SIZES)]
    for name, design in designs(spaces).items():
        for mu in BUDGETS:
            results = [study(design, n, mu, "sharp", replications, n_jobs) for n in SIZES]
            for what in ("mean", "variance"):
                cells = " | ".join(cell(result, what) for result in results)
                lines.append(f"| {name} | {mu:g} | {what} | {cells} |")
                print(lines[-1], flush=True)
    return lines


def cell(result: Summary, what: str) -> str:
    """Coverage, in bold where the truth is likely below what is accepted."""
    value = getattr(result, f"{what}_coverage")
    return f"**{value:.3f}**" if value < ACCEPTED else f"{value:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, default=None)
    options = parser.parse_args()
    error = (0.95 * 0.05 / options.replications) ** 0.5
    page = [
        "# Coverage of small samples",
        "",
        f"Nominal level .95; {options.replications} simulated data sets per number, whose Monte "
        f"Carlo standard error is {error:.3f} at .95. Numbers below {ACCEPTED:g} are in bold. "
        "Written by",
        "",
        "```",
        f"python -m tests.statistical.small_samples --replications {options.replications} "
        "--output docs/small_samples.md",
        "```",
        "",
        "*Round*: uniform in the ball of radius r around its centre (r = π/8 on spheres, 1.5 on "
        "SPD matrices, in the tangent space there). *Squeezed*: uniform in an ellipsoid of the "
        "tangent space whose longest half-axis is r and whose shortest is r/8. *Off centre*: the "
        "same of .4 times the size, around a point at .6 r from the public centre.",
        "",
        *table(SPACES, options.replications, options.jobs),
        "",
        "## Wide caps",
        "",
        "On a sphere the mean Hessian of the squared distance flattens as the records approach the "
        "equator of their mean, and the mean converges slowly there.",
        "",
        *table(WIDE_CAPS, options.replications, options.jobs),
        "",
    ]
    if options.output is not None:
        options.output.write_text("\n".join(page), encoding="utf-8")


if __name__ == "__main__":
    main()
