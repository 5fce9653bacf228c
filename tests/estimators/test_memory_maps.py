"""Large memory maps: fits that read them in blocks are those of records in memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skdpfrechet import DPFrechetMean, DPFrechetVariance
from skdpfrechet.estimators import _blocks, _records
from skdpfrechet.manifolds import (
    Euclidean,
    Hyperbolic,
    SPDAffineInvariant,
    SPDLogCholesky,
    SPDLogEuclidean,
    Sphere,
)
from tests.estimators.conftest import Case

SPACES = [
    Case("euclidean", Euclidean(3)),
    Case("spd", SPDAffineInvariant(1)),
    Case("spd", SPDAffineInvariant(3)),
    Case("spd", SPDAffineInvariant(10)),
    Case("logeuclid", SPDLogEuclidean(2)),
    Case("logchol", SPDLogCholesky(2)),
    Case("sphere", Sphere(2)),
    Case("sphere", Sphere(30)),
    Case("hyperbolic", Hyperbolic(2)),
]
ESTIMATORS = [DPFrechetMean, DPFrechetVariance]
PLANE = np.random.default_rng(0).normal(size=(40, 2))


def numbers(estimator):
    """Return all that a fit has released."""
    if isinstance(estimator, DPFrechetMean):
        return estimator.mean_, estimator.covariance_
    return estimator.mean_, estimator.variance_, np.array([*estimator.interval_])


@pytest.fixture
def mapped(tmp_path):
    def write(X):
        array = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", X.dtype, X.shape)
        array[:] = X
        array.flush()
        return np.load(tmp_path / "X.npy", mmap_mode="r")

    return write


@pytest.mark.parametrize("case", SPACES, ids=str)
def test_large_memory_maps_are_read_in_blocks(case, mapped, monkeypatch):
    X = case.records(n=100)
    estimators = [case.build(estimator_class, mu=np.inf) for estimator_class in ESTIMATORS]
    wanted = [numbers(estimator.fit(X)) for estimator in estimators]
    monkeypatch.setattr(_records, "LARGE", 1)
    monkeypatch.setattr(_blocks, "BLOCK", 30 * X[0].size)
    for estimator, values in zip(estimators, wanted, strict=True):
        for a, b in zip(values, numbers(estimator.fit(mapped(X))), strict=True):
            assert_allclose(b, a, rtol=0, atol=1e-10)


def test_memory_maps_that_need_all_records_are_loaded(mapped, monkeypatch):
    monkeypatch.setattr(_records, "LARGE", 1)
    X = mapped(PLANE)
    for more in ({"calibration": "paper"}, {"center": "private", "outer_radius": 9.0}):
        estimator = DPFrechetMean(**{"radius": 2.0, "random_state": 0, **more})
        assert_array_equal(estimator.fit(X).mean_, estimator.fit(PLANE).mean_)


def test_a_memory_map_is_never_in_memory_as_a_whole(mapped, monkeypatch):
    monkeypatch.setattr(_records, "LARGE", 2**21)
    monkeypatch.setattr(_blocks, "BLOCK", 2**18)
    rng = np.random.default_rng(0)
    X = mapped(np.eye(5) + 0.02 * rng.normal(size=(200_000, 1, 1)))  # 40 MB, blocks of 2 MB
    estimator = DPFrechetMean("spd", radius=1.0, noise="float")
    estimator.fit(X[:100_000])  # compiles
    tracemalloc.start()
    estimator.fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10e6 < X.nbytes
