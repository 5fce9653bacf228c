"""The configurations over which the conformance suite runs: one line each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from skdpfrechet import DPFrechetMean, DPFrechetVariance
from skdpfrechet.manifolds import (
    Hyperbolic,
    Manifold,
    SPDAffineInvariant,
    SPDLogCholesky,
    SPDLogEuclidean,
    Sphere,
)


@dataclass(frozen=True)
class Case:
    """A space as the user names it, the space that is meant, and parameters."""

    manifold: str | Manifold
    space: Manifold
    parameters: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        extra = "-".join(str(value) for value in self.parameters.values())
        return f"{self.manifold}-{self.space.dim}{extra and '-' + extra}"

    @property
    def center(self):
        """None wherever the space has an origin, so that the default is what is tested."""
        return None if self.space.origin is not None else np.eye(self.space.dim + 1)[-1]

    @property
    def matrices(self) -> bool:
        return len(self.space.point_shape) == 2

    def records(self, n=15, seed=0):
        """Points of which most, not all, lie in the ball of the estimators."""
        rng = np.random.default_rng(seed)
        center = self.space.origin if self.center is None else self.center
        scale = 0.5 / np.sqrt(self.space.dim)
        return self.space.exp_coords(center, rng.normal(scale=scale, size=(n, self.space.dim)))

    def build(self, estimator_class, **parameters):
        """Return an unfitted estimator; a fixed seed unless told otherwise."""
        public = {"radius": 0.7, "center": self.center, "random_state": 0}
        return estimator_class(self.manifold, **{**public, **self.parameters, **parameters})


CASES = [
    Case("spd", SPDAffineInvariant(1)),
    Case("spd", SPDAffineInvariant(2)),
    Case("spd", SPDAffineInvariant(3)),
    Case("spd", SPDAffineInvariant(2), {"mu": np.inf}),
    Case("spd", SPDAffineInvariant(2), {"confidence_level": None}),
    Case("spd", SPDAffineInvariant(2), {"calibration": "paper"}),
    Case("riemann", SPDAffineInvariant(2)),
    Case(SPDAffineInvariant(2), SPDAffineInvariant(2)),
    Case("logeuclid", SPDLogEuclidean(1)),
    Case("logeuclid", SPDLogEuclidean(2)),
    Case("logeuclid", SPDLogEuclidean(3)),
    Case("logchol", SPDLogCholesky(1)),
    Case("logchol", SPDLogCholesky(2)),
    Case("logchol", SPDLogCholesky(3)),
    Case("sphere", Sphere(1)),
    Case("sphere", Sphere(2)),
    Case("sphere", Sphere(5)),
    Case("sphere", Sphere(2), {"mechanism": "projected-gaussian"}),
    Case("sphere", Sphere(2), {"calibration": "paper"}),
    Case(Sphere(2), Sphere(2), {"mu": np.inf}),
    Case("hyperbolic", Hyperbolic(1)),
    Case("hyperbolic", Hyperbolic(2)),
    Case("hyperbolic", Hyperbolic(4), {"calibration": "paper"}),
]


@pytest.fixture(params=CASES, ids=str)
def case(request):
    return request.param


@pytest.fixture(params=[case for case in CASES if case.matrices], ids=str)
def matrix_case(request):
    return request.param


@pytest.fixture(params=[case for case in CASES if not case.matrices], ids=str)
def vector_case(request):
    return request.param


@pytest.fixture(params=[DPFrechetMean, DPFrechetVariance])
def estimator_class(request):
    return request.param


@pytest.fixture
def estimator(case, estimator_class):
    """An unfitted estimator of every configuration."""
    return case.build(estimator_class)
