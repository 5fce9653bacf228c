"""Coverage and size of the regions and intervals, over simulated data sets.

``python -m tests.statistical.coverage_study --replications 1000 --output docs/coverage.md``
prints one line per design with the Monte Carlo error of every coverage, and writes the tables.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from math import pi, sqrt
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy.integrate import cumulative_simpson, quad

from skdpfrechet import DPFrechetMean, DPFrechetVariance
from skdpfrechet.manifolds import Manifold, SPDAffineInvariant, Sphere


@dataclass(frozen=True, eq=False)
class Design:
    """Records uniform in volume in a tangent ball (SPD) or a geodesic ball (sphere).

    With `axes`, uniform in a tangent ellipsoid instead: half-axes `spread` times these numbers in
    (0, 1]. The law is symmetric about `mean` either way, which makes it the Fréchet mean.
    """

    name: str
    manifold: Manifold
    center: np.ndarray
    radius: float
    mean: np.ndarray
    spread: float
    axes: np.ndarray | None = None

    @property
    def variance(self) -> float:
        """Fréchet variance: E s² for the radial density ∝ s^{d-1}, on the sphere ∝ sin^{d-1} s."""
        dim = self.manifold.dim
        if self.axes is not None:
            return self.spread**2 * float((self.axes**2).sum()) / (dim + 2)
        if isinstance(self.manifold, Sphere):
            total = quad(lambda s: s * s * np.sin(s) ** (dim - 1), 0, self.spread)[0]
            return total / quad(lambda s: np.sin(s) ** (dim - 1), 0, self.spread)[0]
        return self.spread**2 * dim / (dim + 2)

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        direction = rng.standard_normal((n, self.manifold.dim))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        u = rng.random((n, 1))
        if isinstance(self.manifold, Sphere) and self.axes is None:
            length = self._cap_quantile(u)
        else:
            length = self.spread * u ** (1 / self.manifold.dim)
        axes = 1.0 if self.axes is None else self.axes
        return self.manifold.exp_coords(self.mean, length * direction * axes)

    def _cap_quantile(self, u: np.ndarray) -> np.ndarray:
        """Return the radius that holds the share u of the cap's volume."""
        if self.manifold.dim == 2:
            return np.arccos(1 - u * (1 - np.cos(self.spread)))
        grid = np.linspace(0, self.spread, 4001)
        volume = cumulative_simpson(np.sin(grid) ** (self.manifold.dim - 1), x=grid, initial=0)
        return np.interp(u, volume / volume[-1], grid)


def centred(manifold: Manifold, center: np.ndarray, radius: float) -> Design:
    return Design("centred", manifold, center, radius, center, radius)


def off_centre(manifold: Manifold, center: np.ndarray, radius: float) -> Design:
    """Records within .4 r of a point at distance .6 r from the public centre."""
    direction = np.arange(1.0, manifold.dim + 1) * (-1.0) ** np.arange(manifold.dim)
    direction *= 0.6 * radius / np.linalg.norm(direction)
    mean = manifold.exp_coords(center, direction)
    return Design("off-centre", manifold, center, radius, mean, 0.4 * radius)


NORTH, I2 = np.array([0.0, 0.0, 1.0]), np.eye(2)
CENTRED = {
    "S²": centred(Sphere(2), NORTH, pi / 8),
    "SPD(2)": centred(SPDAffineInvariant(2), I2, 1.5),
}
OFF_CENTRE = {
    "S², r = π/8": off_centre(Sphere(2), NORTH, pi / 8),
    "S², r = 1.3": off_centre(Sphere(2), NORTH, 1.3),
    "SPD(2), r = 1.5": off_centre(SPDAffineInvariant(2), I2, 1.5),
    "SPD(2), r = 6": off_centre(SPDAffineInvariant(2), I2, 6.0),
}


@dataclass(frozen=True)
class Summary:
    """Shares of data sets whose region and interval cover, and their average sizes."""

    replications: int
    mean_coverage: float
    variance_coverage: float
    volume: float
    length: float

    def error(self, coverage: float) -> float:
        """Monte Carlo standard error of a coverage."""
        return sqrt(coverage * (1 - coverage) / self.replications)


def replicate(design: Design, n: int, mu: float, calibration: str, seed: int) -> tuple[float, ...]:
    X = design.draw(n, np.random.default_rng([seed, 0]))
    shared = {
        "manifold": design.manifold,
        "radius": design.radius,
        "center": design.center,
        "mu": mu,
        "calibration": calibration,
    }
    mean = DPFrechetMean(random_state=2 * seed, **shared).fit(X)
    variance = DPFrechetVariance(random_state=2 * seed + 1, **shared).fit(X)
    region, (low, high) = mean.confidence_region_, variance.interval_
    covered = float(region.contains(design.mean))
    return covered, float(low <= design.variance <= high), region.volume, high - low


def study(
    design: Design, n: int, mu: float, calibration: str, replications: int, n_jobs: int = 1
) -> Summary:
    seeds = np.random.SeedSequence([n, int(1000 * mu)]).generate_state(replications)
    rows = Parallel(n_jobs=n_jobs)(
        delayed(replicate)(design, n, mu, calibration, int(seed)) for seed in seeds
    )
    return Summary(replications, *np.mean(rows, axis=0))


def centred_table(replications: int, n_jobs: int) -> list[str]:
    lines = [
        "| space | μ | mean, sharp | mean, paper | variance, sharp | variance, paper "
        "| volume ratio | length ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for space, design in CENTRED.items():
        for mu in (0.1, 0.3, 1.0, 2.5):
            sharp, paper = (
                study(design, 600, mu, kind, replications, n_jobs) for kind in ("sharp", "paper")
            )
            lines.append(
                f"| {space} | {mu:g} | {_coverage(sharp, 'mean')} | {_coverage(paper, 'mean')} "
                f"| {_coverage(sharp, 'variance')} | {_coverage(paper, 'variance')} "
                f"| {sharp.volume / paper.volume:.2f} | {sharp.length / paper.length:.2f} |"
            )
            print(lines[-1], flush=True)
    return lines


def off_centre_table(replications: int, n_jobs: int) -> list[str]:
    lines = ["| design | n | μ | mean | variance |", "|---|---|---|---|---|"]
    for space, design in OFF_CENTRE.items():
        for n in (100, 600):
            for mu in (0.2, 0.5, 1.0):
                result = study(design, n, mu, "sharp", replications, n_jobs)
                lines.append(
                    f"| {space} | {n} | {mu:g} | {_coverage(result, 'mean')} "
                    f"| {_coverage(result, 'variance')} |"
                )
                print(lines[-1], flush=True)
    return lines


def _coverage(summary: Summary, what: str) -> str:
    value = getattr(summary, f"{what}_coverage")
    return f"{value:.3f} ± {summary.error(value):.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, default=None)
    options = parser.parse_args()
    page = [
        "# Coverage of regions and intervals",
        "",
        f"Nominal level .95; {options.replications} simulated data sets per line; ± is one Monte "
        "Carlo standard error. Written by",
        "",
        "```",
        f"python -m tests.statistical.coverage_study --replications {options.replications} "
        "--output docs/coverage.md",
        "```",
        "",
        "## Records centred in the ball, n = 600",
        "",
        "S²: uniform in the ball of radius π/8. SPD(2): tangent vectors uniform in the Frobenius "
        "ball of radius 1.5. The ratios divide the average volume of the region and the average "
        'length of the interval of `calibration="sharp"` by those of `"paper"` at the same μ.',
        "",
        *centred_table(options.replications, options.jobs),
        "",
        "## Concentrated records off the centre",
        "",
        "Records within .4 r of a point at distance .6 r from the public centre.",
        "",
        *off_centre_table(options.replications, options.jobs),
        "",
    ]
    if options.output is not None:
        options.output.write_text("\n".join(page), encoding="utf-8")


if __name__ == "__main__":
    main()
