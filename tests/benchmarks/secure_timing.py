"""What float-safe noise costs: fits with secure noise over fits with float noise.

``python -m tests.benchmarks.secure_timing`` prints the table that `run` writes to
docs/benchmarks.md. Processor time, which other jobs on the machine do not add to.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import process_time

import numpy as np
from threadpoolctl import threadpool_limits

from skdpfrechet import DPFrechetMean, DPFrechetVariance
from skdpfrechet.manifolds import Euclidean, Hyperbolic, Manifold, SPDAffineInvariant, Sphere
from tests.benchmarks.turns import clock, medians

RADIUS = 1.2
ESTIMATORS = (DPFrechetMean, DPFrechetVariance)
ROWS: tuple[tuple[str, Manifold, int], ...] = (
    ("SPD(2)", SPDAffineInvariant(2), 200),
    ("SPD(10)", SPDAffineInvariant(10), 200),
    ("SPD(10)", SPDAffineInvariant(10), 2_000),
    ("SPD(5)", SPDAffineInvariant(5), 100_000),
    ("S^2", Sphere(2), 600),
    ("S^2", Sphere(2), 100_000),
    ("S^30", Sphere(30), 10_000),
    ("hyperbolic plane", Hyperbolic(2), 600),
    ("Euclidean(55)", Euclidean(55), 1_000),
)


def fits(manifold: Manifold, n: int) -> dict[str, Callable[[], float]]:
    """Return fits of each estimator with each noise to Gaussian records, few outside the ball."""
    center, mechanism = manifold.origin, "auto"
    if isinstance(manifold, Sphere):
        # Its default mechanism has no float-safe form.
        center, mechanism = np.eye(manifold.dim + 1)[-1], "projected-gaussian"
    c = np.random.default_rng(0).standard_normal((n, manifold.dim))
    X = manifold.exp_coords(center, 0.4 / np.sqrt(manifold.dim) * c)

    def fit(estimator: type, noise: str) -> Callable[[], float]:
        model = estimator(
            manifold, radius=RADIUS, center=center, mechanism=mechanism, noise=noise, n_jobs=1
        )
        return clock(lambda: model.fit(X), process_time)

    return {
        f"{estimator.__name__} {noise}": fit(estimator, noise)
        for estimator in ESTIMATORS
        for noise in ("float", "secure")
    }


def secure_table(budget: float) -> list[str]:
    """Milliseconds with float noise, and how many times that secure noise takes."""
    lines = [
        "| records | mean, float ms | secure / float | variance, float ms | secure / float |",
        "|---|---|---|---|---|",
    ]
    for name, manifold, n in ROWS:
        with threadpool_limits(1):
            s = medians(fits(manifold, n), budget)
        cells = [f"{name}, n = {n:,}"]
        for estimator in ESTIMATORS:
            plain, secure = (s[f"{estimator.__name__} {noise}"] for noise in ("float", "secure"))
            cells += [f"{1e3 * plain:,.3g}", f"× {secure / plain:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=float, default=5.0, help="seconds per line")
    secure_table(parser.parse_args().budget)
