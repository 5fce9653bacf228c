"""Compiled Cholesky factors against the numpy functions of the SPD manifolds."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("numba")

from skdpfrechet import _kernels
from skdpfrechet._kernels import _threads
from skdpfrechet._kernels._cholesky import log_cholesky_chart, positive_definite
from skdpfrechet.manifolds import SPDLogCholesky
from skdpfrechet.manifolds._spd import is_positive_definite

SIZES = (1, 2, 3, 5, 9, 20)


@pytest.fixture
def rng():
    return np.random.default_rng(20260612)


def sample(rng, count, size):
    factor = rng.standard_normal((count, size, 2 * size)) * np.exp(rng.uniform(-3, 3, (size, 1)))
    return factor @ np.swapaxes(factor, -1, -2)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("count", [0, 1, 8, 77])
def test_chart_matches_numpy(rng, size, count):
    points = sample(rng, count, size)
    expected = SPDLogCholesky(size).chart(points)
    assert_allclose(log_cholesky_chart(points), expected, rtol=1e-12, atol=1e-13)
    assert positive_definite(points).all()


@pytest.mark.parametrize("size", SIZES)
def test_matrices_without_a_factor(rng, size):
    points = sample(rng, 40, size)
    points[3] = -points[3]
    points[4] = 0.0
    points[5, -1, -1] = -1.0
    expected = SPDLogCholesky(size).chart(points)
    assert np.isnan(expected[3:6]).all()
    assert_allclose(log_cholesky_chart(points), expected, rtol=1e-12, atol=1e-13)
    points[6, 0, 0] = np.nan
    points[7, -1, 0] = np.nan
    assert np.isnan(log_cholesky_chart(points)[3:8]).all()
    points[8, -1, -1] = np.inf
    with _kernels.kernels("numpy"):
        expected = is_positive_definite(points)
    assert_array_equal(positive_definite(points), expected)
    assert not expected[3:9].any()
    assert expected[10:].all()


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1.0, 1e150, 1e300])
@pytest.mark.parametrize("margin", [0.5, 2.0])
def test_pivots_are_relative_to_the_diagonal(scale, margin):
    # The last pivot of a correlation matrix [[1, r], [r, 1]] is 1 - r².
    pivot = margin * 8 * np.finfo(float).eps
    r = np.sqrt(1 - pivot)
    points = np.array([[[1.0, r], [r, 1.0]]]) * scale
    with _kernels.kernels("numpy"):
        expected = is_positive_definite(points)
    assert_array_equal(positive_definite(points), expected)
    assert positive_definite(points)[0] == (margin > 1)


def test_bits_do_not_depend_on_threads(rng, monkeypatch):
    points = sample(rng, 1001, 4)
    monkeypatch.setattr(_threads, "_SEGMENT", 256)
    monkeypatch.setattr(_threads, "_THREAD_SECONDS", 1e-12)
    assert_array_equal(log_cholesky_chart(points, 1), log_cholesky_chart(points, 2))
    assert_array_equal(positive_definite(points, 1), positive_definite(points, 2))
