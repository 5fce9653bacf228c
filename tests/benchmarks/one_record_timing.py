"""How much one legal record changes the time of a fit.

``python -m tests.benchmarks.one_record_timing`` prints the table of docs/security.md: for every
space, data set and size, the largest ratio between the time of a fit and the time of the fit with
one record replaced by a legal extreme, either way round, and which extreme it was. Medians of fits
in turns, in processor time, which other jobs on the machine do not add to.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import process_time

import numpy as np
from threadpoolctl import threadpool_limits

from skdpfrechet import DPMDM, DPFrechetMean, DPFrechetVariance, DPPrincipalGeodesics
from skdpfrechet._numerics import Array
from skdpfrechet.manifolds import (
    Euclidean,
    Hyperbolic,
    Manifold,
    SPDAffineInvariant,
    SPDLogCholesky,
    SPDLogEuclidean,
    Sphere,
)

GOAL = 1.5
ESTIMATORS = (DPFrechetMean, DPFrechetVariance, DPPrincipalGeodesics, DPMDM)
SPACES: tuple[tuple[Manifold, float], ...] = (
    (Sphere(2), 1.2),
    (Sphere(2), 1.5),
    (Sphere(2), 1.57),
    (Sphere(10), 1.2),
    (SPDAffineInvariant(2), 3.0),
    (SPDAffineInvariant(4), 3.0),
    (SPDAffineInvariant(4), 14.0),
    (SPDAffineInvariant(10), 5.0),
    (Hyperbolic(2), 3.0),
    (SPDLogEuclidean(4), 3.0),
    (SPDLogCholesky(4), 3.0),
    (Euclidean(5), 2.0),
)
SIZES = (64, 100_000)


@dataclass(frozen=True)
class Case:
    """Records around m0, and what one of them may become."""

    manifold: Manifold
    radius: float
    n: int
    kind: str

    @property
    def center(self) -> Array:
        """The public m0."""
        if isinstance(self.manifold, Sphere):
            return np.asarray(np.eye(self.manifold.dim + 1)[-1])
        return self.manifold.origin

    def records(self) -> Array:
        """Return Gaussian records, all of them inside, or two clusters that face each other."""
        rng, dim = np.random.default_rng(0), self.manifold.dim
        if self.kind == "spread":
            c = 0.3 * self.radius / np.sqrt(dim) * rng.standard_normal((self.n, dim))
        else:
            c = np.where(np.arange(self.n)[:, None] % 2 == 0, 1.0, -1.0) * np.eye(dim)[0]
            c = self.radius * c
        return self.manifold.exp_coords(self.center, c)

    def extremes(self) -> Iterator[tuple[str, Array]]:
        """Yield legal values of a record, or values that `invalid="replace"` replaces."""
        manifold, shape = self.manifold, self.manifold.point_shape
        one, other = np.eye(manifold.dim)[0], np.eye(manifold.dim)[-1]
        yield "centre", self.center
        yield "rim", manifold.exp_coords(self.center, self.radius * other)
        yield "beyond the rim", manifold.exp_coords(self.center, 1.01 * self.radius * one)
        yield "not a number", np.full(shape, np.nan)
        if isinstance(manifold, Sphere):
            yield "antipode", -self.center
        elif len(shape) == 2:
            yield "nearly singular", np.diag([1e-12] + [1.0] * (manifold.size - 1))
            turned = np.full(shape, 1 - 1e-12)
            np.fill_diagonal(turned, 1.0)
            yield "nearly singular, dense", turned + 1e-13 * np.eye(manifold.size)
            yield "1e300", 1e300 * np.eye(manifold.size)
            yield "1e-300", 1e-300 * np.eye(manifold.size)
        elif isinstance(manifold, Hyperbolic):
            yield "far", manifold.exp_coords(self.center, 15.0 * one)
        else:
            yield "1e300", 1e300 * one

    def fit(self, estimator: type, X: Array) -> Callable[[], float]:
        """Return a fit that times itself."""
        model = estimator(
            self.manifold, radius=self.radius, center=self.center, invalid="replace", n_jobs=1
        )
        labels = np.arange(self.n) * 2 // self.n

        def run() -> float:
            begin = process_time()
            model.fit(X, labels)
            return process_time() - begin

        return run


def ratios(case: Case, estimator: type, fits: int) -> tuple[float, float, str]:
    """Return the milliseconds of the plain fit, the largest ratio, and the record to blame."""
    X = case.records()
    variants = {"": X}
    for name, record in case.extremes():
        variants[name] = X.copy()
        variants[name][case.n // 3] = record
    runs = {name: case.fit(estimator, records) for name, records in variants.items()}
    times: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(fits + 1):
        for name, run in runs.items():
            seconds = run()
            if turn:  # the first may compile
                times[name].append(seconds)
    medians = {name: float(np.median(values)) for name, values in times.items()}
    plain = medians.pop("")
    change = {name: max(t / plain, plain / t) for name, t in medians.items()}
    worst = max(change, key=lambda name: change[name])
    return 1e3 * plain, change[worst], worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fits", type=int, default=20, help="of which the median is taken")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--spaces", default="", help="only those whose name contains this")
    arguments = parser.parse_args()
    print("| records | estimator | ms | largest ratio | record |\n|---|---|---|---|---|")
    for manifold, radius in SPACES:
        if arguments.spaces not in repr(manifold):
            continue
        for n in arguments.sizes:
            for kind in ("spread", "clusters"):
                case = Case(manifold, radius, n, kind)
                for estimator in ESTIMATORS:
                    with threadpool_limits(1):
                        plain, ratio, worst = ratios(case, estimator, arguments.fits)
                    mark = "**" if ratio > GOAL else ""
                    print(
                        f"| {manifold!r}, r = {radius}, {kind}, n = {n:,} | {estimator.__name__} | "
                        f"{plain:.3g} | {mark}{ratio:.2f}{mark} | {worst} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
