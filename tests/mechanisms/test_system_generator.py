"""`SystemGenerator`: nothing to rewind, share or repeat, and the right distributions."""

from __future__ import annotations

import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from multiprocessing import get_all_start_methods

import joblib
import numpy as np
import pytest
from scipy.stats import chi2, gamma, kstest, laplace, norm

from skdpfrechet.mechanisms import SystemGenerator

# The draws cannot be seeded: a test below fails by chance once in FALSE_ALARM^-1 runs.
FALSE_ALARM = 1e-9
COUNT = 20_000


def draw(_=None):
    return SystemGenerator().bytes(16)


def assert_all_different(draws):
    # 128 bits: two of a hundred agree by chance with probability 1e-35.
    assert len(set(draws)) == len(draws)


@pytest.mark.skipif("fork" not in get_all_start_methods(), reason="the system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_parent_and_children_of_a_fork_draw_different_numbers():
    source = SystemGenerator()
    draws = [source.bytes(16)]
    for _ in range(3):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write, source.bytes(16))
            os._exit(0)
        os.waitpid(child, 0)
        draws += [os.read(read, 16), source.bytes(16)]
        os.close(read)
        os.close(write)
    assert_all_different(draws)


def test_threads_draw_different_numbers():
    source = SystemGenerator()
    with ThreadPoolExecutor(8) as pool:
        assert_all_different(list(pool.map(lambda _: source.bytes(16), range(100))))


def test_workers_draw_different_numbers():
    with joblib.parallel_config("loky", n_jobs=2):
        assert_all_different(joblib.Parallel()(joblib.delayed(draw)() for _ in range(20)))


def test_a_copy_repeats_nothing():
    source = SystemGenerator()
    copies = [source, deepcopy(source), pickle.loads(pickle.dumps(source))]
    assert_all_different([copy.bytes(16) for copy in copies for _ in range(3)])


def test_there_is_no_state():
    assert vars(SystemGenerator()) == {}


def test_numpy_seed_has_no_effect():
    draws = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        draws.append(SystemGenerator().standard_normal(3).tobytes())
    assert_all_different(draws)


@pytest.mark.parametrize(
    ("sample", "law"),
    [
        (lambda source: source.random(COUNT), "uniform"),
        (lambda source: source.standard_normal(COUNT), norm.cdf),
        (lambda source: source.gamma(0.3, size=COUNT), gamma(0.3).cdf),
        (lambda source: source.gamma(1.0, size=COUNT), gamma(1.0).cdf),
        (lambda source: source.gamma(40.0, size=COUNT), gamma(40.0).cdf),
        (lambda source: source.chisquare(5, COUNT), chi2(5).cdf),
        (lambda source: source.laplace(scale=2.0, size=COUNT), laplace(scale=2.0).cdf),
    ],
    ids=["random", "normal", "gamma-0.3", "gamma-1", "gamma-40", "chisquare", "laplace"],
)
def test_distribution(sample, law):
    assert kstest(sample(SystemGenerator()), law).pvalue > FALSE_ALARM


def test_neighbouring_draws_are_uncorrelated():
    z = SystemGenerator().standard_normal(COUNT)
    statistic = np.sqrt(COUNT) * np.mean(z[:-1] * z[1:])  # about standard normal
    assert abs(statistic) < norm.isf(FALSE_ALARM / 2)


@pytest.mark.parametrize("size", [(), 5, (2, 3), (0,), (4, 0, 2)])
@pytest.mark.parametrize("method", ["random", "standard_normal", "laplace"])
def test_shapes(method, size):
    shape = (size,) if isinstance(size, int) else size
    drawn = getattr(SystemGenerator(), method)(size=size)
    assert drawn.shape == shape
    assert np.isfinite(drawn).all()
    assert SystemGenerator().gamma(2.0, size=size).shape == shape


def test_random_is_below_one_at_the_largest_word(monkeypatch):
    monkeypatch.setattr(os, "urandom", lambda length: b"\xff" * length)
    assert SystemGenerator().random() == 1 - 2.0**-53
    assert np.isfinite(SystemGenerator().standard_normal())
    assert np.isfinite(SystemGenerator().laplace())


def test_tails_are_finite_at_the_smallest_word(monkeypatch):
    monkeypatch.setattr(os, "urandom", lambda length: b"\0" * length)
    assert SystemGenerator().random() == 0
    assert SystemGenerator().standard_normal() == pytest.approx(norm.isf(2.0**-65))
    assert np.isfinite(SystemGenerator().laplace())
