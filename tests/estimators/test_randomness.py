"""Fits that were copied, forked or sent to workers never share noise."""

from __future__ import annotations

import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_all_start_methods

import joblib
import numpy as np
import pytest
from sklearn.base import clone

from skdpfrechet import DPFrechetMean, DPFrechetVariance
from skdpfrechet.mechanisms import Gaussian

X = np.random.default_rng(0).normal(size=(20, 2))
MEAN = DPFrechetMean("euclidean", radius=3.0, confidence_level=None)


def released(estimator):
    return clone(estimator).fit(X).mean_.tobytes()


def assert_all_different(draws):
    # Two of a hundred equal pairs of float64 by chance: probability below 1e-20.
    assert len(set(draws)) == len(draws)


@pytest.mark.skipif("fork" not in get_all_start_methods(), reason="the system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_children_of_a_fork():
    released(MEAN)
    draws = []
    for _ in range(3):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(write, released(MEAN))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        draws += [os.read(read, 100), released(MEAN)]
        os.close(read)
        os.close(write)
    assert all(len(draw) == 16 for draw in draws)
    assert_all_different(draws)


def test_threads():
    with ThreadPoolExecutor(4) as pool:
        assert_all_different(list(pool.map(lambda _: released(MEAN), range(40))))


def test_workers():
    with joblib.parallel_config("loky", n_jobs=2):
        assert_all_different(joblib.Parallel()(joblib.delayed(released)(MEAN) for _ in range(8)))


def test_pickled_copies():
    fitted = clone(MEAN).fit(X)
    assert_all_different([pickle.loads(pickle.dumps(fitted)).fit(X).mean_.tobytes() for _ in "abc"])


def test_every_release_of_a_fit_draws_anew(monkeypatch):
    drawn = []
    real = os.urandom
    monkeypatch.setattr(os, "urandom", lambda n: drawn.append(real(n)) or drawn[-1])
    DPFrechetVariance("euclidean", radius=3.0).fit(X)
    assert len(drawn) >= 2
    assert_all_different(drawn)


def test_fit_takes_the_systems_generator(monkeypatch):
    """With the operating system's bits held constant two fits agree: nothing else is drawn."""
    monkeypatch.setattr(os, "urandom", lambda n: b"\x35" * n)
    assert released(MEAN) == released(MEAN)
    assert Gaussian(1.0).release(np.zeros(1), np.random.default_rng(0)) != 0  # numpy still draws
