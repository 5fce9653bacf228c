"""What a private fit costs next to the bare mean of the same records, whole and by its parts.

``python -m tests.benchmarks.fit_timing`` prints the tables that `run` writes to
docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from skdpfrechet import DPFrechetMean, DPFrechetVariance, _kernels
from skdpfrechet._solvers import enter_ball, frechet_mean
from skdpfrechet.manifolds import Manifold, SPDAffineInvariant, Sphere
from tests.benchmarks.turns import clock, medians
from tests.benchmarks.workloads import covariances, directions

TOLERANCE = 1e-8
FEW = 16  # records, whose passes cost nothing
LARGE = (
    ("spd", 100_000, 3),
    ("spd", 10_000, 5),
    ("spd", 100_000, 5),
    ("spd", 10_000, 16),
    ("sphere", 100_000, 2),
    ("sphere", 1_000_000, 2),
    ("sphere", 10_000, 30),
)


@dataclass(frozen=True)
class Design:
    """Records and the public numbers of a fit to them."""

    space: str
    n: int
    size: int

    @property
    def name(self) -> str:
        space = f"S^{self.size}" if self.space == "sphere" else f"SPD({self.size})"
        return f"{space}, n = {self.n:,}"

    @property
    def manifold(self) -> Manifold:
        return Sphere(self.size) if self.space == "sphere" else SPDAffineInvariant(self.size)

    @property
    def ball(self) -> tuple[np.ndarray, float]:
        if self.space == "sphere":
            return np.eye(self.size + 1)[-1], 1.45
        return 5 * np.eye(self.size), 2.5 * self.size**0.5

    @property
    def records(self) -> np.ndarray:
        make = directions if self.space == "sphere" else covariances
        return make(1, self.n, self.size)[0]


def fits(design: Design, threads: int) -> dict[str, Callable[[], float]]:
    """Return the bare mean, one as exact as that of a fit, fits, and the region of one."""
    X, (center, radius), manifold = design.records, design.ball, design.manifold
    shared = {"manifold": design.space, "radius": radius, "center": center, "n_jobs": threads}
    inference = DPFrechetMean(**shared).fit(X)._inference

    def bare(tolerance: float) -> object:
        with _kernels.threads(threads):
            return frechet_mean(manifold, X, center, radius=radius, tolerance=tolerance)

    return {
        "bare": clock(partial(bare, TOLERANCE)),
        "coarse": clock(partial(bare, _fit_tolerance(design))),
        "mean": clock(lambda: DPFrechetMean(**shared).fit(X)),
        "variance": clock(lambda: DPFrechetVariance(**shared).fit(X)),
        "region": clock(lambda: type(inference).region.func(inference)),
    }


def fit_table(budget: float) -> list[str]:
    """Time whole fits, with one thread and with two."""
    lines = [
        "| records | threads | bare mean ms | as exact as the fit's ms | fit of the mean ms "
        "| fit of the variance ms | region ms |",
        "|---|---|---|---|---|---|---|",
    ]
    for space, n, size in (("spd", 600, 2), ("sphere", 600, 2), *LARGE):
        design = Design(space, n, size)
        for threads in (1, 2):
            with threadpool_limits(1):
                s = medians(fits(design, threads), budget)
            lines.append(
                f"| {design.name} | {threads} | {_ms(s['bare'])} | {_ms(s['coarse'])} "
                f"| {_ms(s['mean'])} (× {s['mean'] / s['bare']:.2f}) "
                f"| {_ms(s['variance'])} (× {s['variance'] / s['bare']:.2f}) | {_ms(s['region'])} |"
            )
            print(lines[-1], flush=True)
    return lines


def parts(design: Design) -> dict[str, Callable[[], float]]:
    """Return the steps of a fit that pass over the records, and a fit without any to speak of."""
    X, (center, radius), manifold = design.records, design.ball, design.manifold
    local, few = manifold.localize(center), Design(design.space, FEW, design.size).records
    sample = enter_ball(local, X, radius, np.inf)
    options = {"radius": radius, "tolerance": _fit_tolerance(design)}
    point = frechet_mean(local.model, sample, local.origin, **options)
    middle = np.zeros(manifold.dim)
    # As much noise as on all the records: how it is drawn depends on that.
    model = DPFrechetMean(design.space, radius=radius, center=center, mu=design.n / FEW)
    return {
        "bare": clock(
            lambda: frechet_mean(manifold, X, center, radius=radius, tolerance=TOLERANCE)
        ),
        "read": clock(lambda: enter_ball(local, X, radius, np.inf)),
        "mean": clock(lambda: frechet_mean(local.model, sample, local.origin, **options)),
        "moment": clock(lambda: sample.second_moment(point, middle, radius)),
        "few": clock(lambda: model.fit(few)),
    }


def parts_table(budget: float) -> list[str]:
    """Time the parts of fits with one thread, as shares of the bare mean."""
    lines = [
        "| records | reading, with a look at each | mean | second moment | sum | rest |",
        "|---|---|---|---|---|---|",
    ]
    for row in LARGE:
        design = Design(*row)
        with threadpool_limits(1):
            s = medians(parts(design), budget)
        passes = [s[name] for name in ("read", "mean", "moment")]
        shares = [t / s["bare"] for t in (*passes, sum(passes), s["few"])]
        lines.append(f"| {design.name} | {' | '.join(f'{share:.2f}' for share in shares)} |")
        print(lines[-1], flush=True)
    return lines


def _fit_tolerance(design: Design) -> float:
    _, radius = design.ball
    return max(1e-4 * 2 * radius / design.n, 1e-9 * radius)


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:,.3g}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=float, default=5.0, help="seconds per line")
    options = parser.parse_args()
    fit_table(options.budget)
    parts_table(options.budget)
