"""Dask arrays on two workers, processes of their own."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skdpfrechet import DPFrechetMean, DPFrechetVariance
from skdpfrechet.privacy import GDP, PrivacyLedger
from tests.benchmarks.out_of_core import peak
from tests.estimators.test_memory_maps import PLANE, numbers

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

LIMIT = "600MB"  # of a worker, of which libraries and kernels take some 300
GROWTH = 80  # MB that 200 MB of records may add to the peak of a worker


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            memory_limit=LIMIT,
            dashboard_address=None,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "study.ledger", budget=GDP(1.0))


@pytest.fixture
def on_workers(client):
    with dask.config.set(scheduler=client):
        yield client


def covariances(block_info=None):
    """A chunk of covariance matrices, made where it is needed, its place being the seed."""
    chunk = block_info[None]
    factors = np.random.default_rng(chunk["chunk-location"][0]).normal(
        size=(chunk["chunk-shape"][0], 5, 10)
    )
    return factors @ np.swapaxes(factors, -1, -2) / 10


def far_fit(estimator, X):
    """Fit in a worker, which imports the library for the purpose."""
    return estimator.fit(X).mean_.tobytes(), os.getpid()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read on Linux")
def test_a_million_matrices_on_two_workers(on_workers):
    n, chunk = 10**6, 20_000
    X = da.map_blocks(covariances, chunks=((chunk,) * (n // chunk), 5, 5), dtype=float)
    exact = DPFrechetMean("spd", radius=3.0, mu=np.inf)
    private = DPFrechetVariance("spd", radius=3.0, random_state=0, noise="float")
    exact.fit(X[::1000])  # imports and compiles
    before = on_workers.run(peak)
    assert len(before) == 2
    far = numbers(exact.fit(X)), numbers(private.fit(X))
    after = on_workers.run(peak)
    assert all(after[worker] - before[worker] < GROWTH for worker in before)
    near = np.concatenate([chunk.compute(scheduler="synchronous") for chunk in X.blocks])
    assert near.nbytes == 200_000_000
    for estimator, found in zip((exact, private), far, strict=True):
        # The tolerance of a private mean is 1e-9 r.
        tolerance = 1e-10 if estimator is exact else 2e-8
        for a, b in zip(numbers(estimator.fit(near)), found, strict=True):
            assert_allclose(b, a, rtol=0, atol=tolerance)


def test_fits_in_workers_pay_and_share_no_noise(on_workers, ledger):
    estimators = [DPFrechetMean(radius=2.0, mu=0.1, ledger=ledger.path) for _ in range(6)]
    futures = [on_workers.submit(far_fit, each, PLANE, pure=False) for each in estimators]
    draws, workers = zip(*on_workers.gather(futures), strict=True)
    assert len(set(draws)) == len(draws)
    assert os.getpid() not in workers
    X = da.from_array(PLANE, chunks=(10, 2))
    means = [DPFrechetMean(radius=2.0, mu=0.1, ledger=ledger).fit(X).mean_ for _ in range(2)]
    assert len({mean.tobytes() for mean in means} | set(draws)) == 8
    spends = ledger.report().spends
    assert [spend.mu for spend in spends] == [0.1] * 8


def test_workers_log_no_record(on_workers):
    X = np.full((40, 2), 0.123456789)
    X[33, 1] = np.nan
    with pytest.raises(ValueError, match="finite numbers only"):
        DPFrechetMean(radius=2.0).fit(da.from_array(X, chunks=(10, 2)))
    logs = str(on_workers.get_worker_logs())
    assert "0.1234" not in logs
    assert "nan" not in logs.lower().split()
