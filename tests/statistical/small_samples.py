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
from joblib import Parallel, delayed

from skdpfrechet.manifolds import Manifold, SPDAffineInvariant, Sphere
from tests.statistical.batched_fits import Samples, fit_means, fit_variances
from tests.statistical.coverage_study import Design, centred, off_centre

ACCEPTED = 0.92
SIZES = (20, 60, 200, 600)
BUDGETS = (0.2, 1.0, 5.0)
BATCH = 50  # data sets at a time: 6 MB of 600 SPD(5) matrices each
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


def covered(design: Design, n: int, seed: int) -> np.ndarray:
    """Of `BATCH` data sets, how many regions and intervals cover: shape (budgets, 2)."""
    rng = np.random.default_rng([n, seed])
    shape = (BATCH, n, *design.manifold.point_shape)
    X = design.draw(BATCH * n, rng).reshape(shape)
    samples = Samples.make(design.manifold, design.center, design.radius, X)
    counts = []
    for mu in BUDGETS:
        regions = fit_means(samples, mu, "sharp", rng)
        intervals = fit_variances(samples, mu, "sharp", rng)
        inside = (intervals.low <= design.variance) & (design.variance <= intervals.high)
        counts.append((regions.covers(design.mean).sum(), inside.sum()))
    return np.array(counts)


def table(spaces: dict, replications: int, n_jobs: int) -> list[str]:
    """One line per design and budget: coverage of the mean and of the variance for each size."""
    sizes = " | ".join(f"n = {n}" for n in SIZES)
    lines = [f"| records | μ | of | {sizes} |", "|---|---|---|" + "---|" * len(SIZES)]
    batches = -(-replications // BATCH)
    for name, design in designs(spaces).items():
        counts = Parallel(n_jobs=n_jobs)(
            delayed(covered)(design, n, seed) for n in SIZES for seed in range(batches)
        )
        shares = np.reshape(counts, (len(SIZES), batches, len(BUDGETS), 2)).mean(axis=1) / BATCH
        for k, mu in enumerate(BUDGETS):
            for j, what in enumerate(("mean", "variance")):
                cells = " | ".join(cell(share) for share in shares[:, k, j])
                lines.append(f"| {name} | {mu:g} | {what} | {cells} |")
                print(lines[-1], flush=True)
    return lines


def cell(value: float) -> str:
    return f"**{value:.3f}**" if value < ACCEPTED else f"{value:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=1000, help=f"multiples of {BATCH}")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, default=None)
    options = parser.parse_args()
    error = (0.95 * 0.05 / options.replications) ** 0.5
    page = [
        "# Coverage of small samples",
        "",
        f"Nominal level .95; {options.replications} simulated data sets per number, whose Monte "
        f"Carlo standard error is {error:.3f} at .95. Numbers below {ACCEPTED:g} are in bold. "
        "The fits are made in batches, which a test holds to the estimators digit by digit. "
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
