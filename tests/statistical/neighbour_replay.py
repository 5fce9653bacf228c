"""Whole fits of neighbouring data sets on fixed releases: how much of its promise a fit uses.

``python -m tests.statistical.neighbour_replay --records 200000 1000000`` fits every estimator on a
data set and on the same with one record replaced. The second fit gets the answers of the first, as
the adaptive composition of sensitivities assumes, and everything that meets noise is compared: the
distance between the two values over the noise, summed in squares, is the μ at which the two can be
told apart. All other records are equal, near the rim of the ball, so whatever one record did to
the arithmetic of the others would count as often as there are records.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import inf, sqrt
from pathlib import Path
from unittest.mock import patch

import numpy as np
from numpy.linalg import norm

from skdpfrechet import DPMDM, DPFrechetMean, DPFrechetVariance, DPPrincipalGeodesics, _kernels
from skdpfrechet.estimators import _records, _variance
from skdpfrechet.manifolds import Euclidean, Hyperbolic, SPDAffineInvariant, Sphere
from skdpfrechet.mechanisms import (
    Gaussian,
    ProjectedGaussian,
    RiemannianGaussian,
    SymmetricGaussian,
    WrappedGaussian,
)

MECHANISMS = [Gaussian, SymmetricGaussian, WrappedGaussian, RiemannianGaussian, ProjectedGaussian]


@dataclass
class Script:
    """Stands in for `release`: keeps what it is asked about, answers afresh or as before."""

    before: list = field(default_factory=list)
    answers: list = field(default_factory=list)
    queries: list = field(default_factory=list)
    nested: bool = False  # a wrapped Gaussian draws from a Gaussian of its own

    def __call__(self, original, mechanism, value, rng):
        if self.nested:
            return original(mechanism, value, rng)
        self.queries.append((mechanism, np.array(value)))
        if self.before:
            return self.before[len(self.queries) - 1]
        self.nested = True
        self.answers.append(original(mechanism, value, rng))
        self.nested = False
        return self.answers[-1]

    @contextmanager
    def playing(self) -> Iterator[None]:
        with ExitStack() as stack:
            for mechanism in MECHANISMS:
                original = mechanism.release

                def release(noise, value, rng, original=original):
                    return self(original, noise, value, rng)

                stack.enter_context(patch.object(mechanism, "release", release))
            # It simulates the mechanism at a released point, which is not a query.
            stack.enter_context(patch.object(_variance, "noise_bias", lambda *a: (0.0, 0.0)))
            yield


def used_mu(mechanism, before, after) -> float:
    """Return the distance between two values over the noise that hides it."""
    if isinstance(mechanism, RiemannianGaussian | WrappedGaussian):
        return float(mechanism.manifold.dist(before, after) / mechanism.sigma)
    return float(norm(before - after) / mechanism.sigma)


def replay(fit: Callable[[np.ndarray], object], X, neighbour) -> float:
    """Return the μ at which everything released of X and of its neighbour can be told apart."""
    first, second = Script(), Script()
    with first.playing():
        fit(X)
    second.before = first.answers
    with second.playing():
        fit(neighbour)
    assert len(first.queries) == len(second.queries) > 0
    pairs = zip(first.queries, second.queries, strict=True)
    return sqrt(sum(used_mu(m, before, after) ** 2 for (m, before), (_, after) in pairs))


# --- designs --------------------------------------------------------------------------------------


def _spd_design(center: np.ndarray, radius: float):
    space = SPDAffineInvariant(len(center))
    c = np.random.default_rng(3).standard_normal(space.dim)
    crowd = space.exp_coords(center, 0.97 * radius * c / norm(c))
    root = np.linalg.cholesky(center)
    ones = np.ones((len(center), len(center)))
    extremes = {
        "nearly singular": root @ (ones + 1e-11 * np.eye(len(center))) @ root.T,
        "opposite": space.exp_coords(center, -5 * radius * c / norm(c)),
        "invalid": np.nan * ones,
    }
    parameters = {"manifold": "spd", "center": center, "radius": radius}
    return parameters, crowd, {name: (x + x.T) / 2 for name, x in extremes.items()}


def _sphere_design(d: int, radius: float):
    space, center = Sphere(d), np.eye(d + 1)[-1]
    c = np.random.default_rng(3).standard_normal(d)
    crowd = space.exp_coords(center, 0.97 * radius * c / norm(c))
    extremes = {"antipode": -center, "opposite of the others": -crowd, "invalid": 0 * center}
    return {"manifold": "sphere", "center": center, "radius": radius}, crowd, extremes


def _hyperbolic_design():
    space = Hyperbolic(2)
    crowd = space.exp_coords(space.origin, np.array([1.2, 1.5]))
    far = space.exp_coords(space.origin, np.array([-9.0, -9.0]))
    return {"manifold": space, "radius": 2.0}, crowd, {"far": far, "invalid": 0 * crowd}


def _euclidean_design():
    extremes = {"huge": np.array([-1e300, 0.0]), "invalid": np.array([np.nan, 0.0])}
    return {"manifold": Euclidean(2), "radius": 1.0}, np.array([0.6, 0.79]), extremes


DESIGNS = {
    "SPD(2), centre 3 I": lambda: _spd_design(3.0 * np.eye(2), 2.0),
    "SPD(2), centre of condition 10⁴": lambda: _spd_design(
        np.array([[1.0, 0.005], [0.005, 1e-4]]), 1.5
    ),
    "SPD(2), radius 6": lambda: _spd_design(np.eye(2), 6.0),
    "S², radius .7": lambda: _sphere_design(2, 0.7),
    "S², radius 1.3": lambda: _sphere_design(2, 1.3),
    "hyperbolic plane": _hyperbolic_design,
    "plane": _euclidean_design,
}


def estimators(parameters: dict) -> dict[str, Callable[[str], object]]:
    """Return the fits to replay, as functions of the noise."""
    common = {"mu": 1.0, "invalid": "replace", **parameters}
    reused = {k: v for k, v in common.items() if k != "mu"}

    def around(noise):
        space = parameters["manifold"]
        return DPFrechetVariance(**common, noise=noise, mean=_earlier(reused, space, noise))

    return {
        "mean": lambda noise: DPFrechetMean(**common, noise=noise),
        "variance": lambda noise: DPFrechetVariance(**common, noise=noise),
        "variance around an earlier mean": around,
        "principal geodesics": lambda noise: DPPrincipalGeodesics(**common, noise=noise),
        "class means": lambda noise: DPMDM(**common, noise=noise),
    }


def _earlier(parameters: dict, space, noise: str):
    """Return the release of a mean of other records."""
    rng = np.random.default_rng(11)
    center = parameters.get("center")
    if space == "spd":
        space = SPDAffineInvariant(len(center))
    elif space == "sphere":
        space = Sphere(len(center) - 1)
    center = space.origin if center is None else center
    old = space.exp_coords(center, 0.3 * rng.standard_normal((300, space.dim)))
    return DPFrechetMean(**parameters, mu=5.0, noise=noise, random_state=1).fit(old).release_


# --- where the records are ------------------------------------------------------------------------


@contextmanager
def _in_memory(X) -> Iterator:
    yield X


@contextmanager
def _in_dask(X) -> Iterator:
    from dask.array import from_array

    yield from_array(X, chunks=(max(1, len(X) // 7), *X.shape[1:]))


@contextmanager
def _on_disk(X) -> Iterator:
    with tempfile.TemporaryDirectory() as folder, patch.object(_records, "LARGE", 1):
        path = Path(folder) / "records.npy"
        np.save(path, X)
        yield np.load(path, mmap_mode="r")


BACKENDS = {
    "numba": ("numba", _in_memory),
    "numpy": ("numpy", _in_memory),
    "dask": ("numba", _in_dask),
    "memory map": ("numba", _on_disk),
}


def largest_use(design: str, estimator: str, noise: str, backend: str, n: int) -> float:
    """Return the largest μ used by a pair of neighbours of one design, over the promised 1."""
    parameters, crowd, extremes = DESIGNS[design]()
    X = np.repeat(crowd[None], n, axis=0)
    labels = np.arange(n) % 2
    kernels, hold = BACKENDS[backend]
    make, largest = estimators(parameters)[estimator], -inf

    def fit(Z):
        with hold(Z) as held:
            model = make(noise)
            return model.fit(held, labels) if estimator == "class means" else model.fit(held)

    with _kernels.kernels(kernels):
        for extreme in extremes.values():
            neighbour = X.copy()
            neighbour[n // 2] = extreme
            largest = max(largest, replay(fit, X, neighbour))
    return largest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--records", type=int, nargs="+", default=[64, 200_000, 1_000_000])
    parser.add_argument("--output", type=Path, help="a Markdown file for the table")
    arguments = parser.parse_args()
    header = ["records", "fit", *(f"{n:,}" for n in arguments.records)]
    lines = [_line(header), _line(["---"] * len(header))]
    for design in DESIGNS:
        for estimator in estimators(DESIGNS[design]()[0]):
            cells = [design, estimator]
            for n in arguments.records:
                uses = [
                    largest_use(design, estimator, noise, backend, n)
                    for noise in ("float", "secure")
                    for backend in BACKENDS
                    if not (estimator == "class means" and backend == "dask")
                ]
                cells.append(f"{max(uses):.4f}")
            lines.append(_line(cells))
            print(lines[-1], flush=True)
    if arguments.output:
        arguments.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
