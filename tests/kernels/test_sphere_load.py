"""What the one pass over raw unit vectors packs and certifies, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

pytest.importorskip("numba")

from skdpfrechet._kernels import _threads
from skdpfrechet._kernels._sphere import pack
from skdpfrechet._kernels._sphere_load import enter

SIZES = (2, 3, 5, 8, 9, 16, 17, 24, 40)
COUNTS = (1, 7, 8, 9, 33)


@pytest.fixture
def rng():
    return np.random.default_rng(20260715)


def directions(rng, count, size):
    x = rng.standard_normal((count, size)) + np.eye(size)[-1]
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("count", COUNTS)
def test_points_are_packed_and_judged(rng, size, count):
    points, center = directions(rng, count, size), np.eye(size)[-1]
    packed, unsure = enter(points, center, 1.1, 1)
    expected = pack(points[None])
    assert packed.blocked == expected.blocked
    assert_array_equal(packed.values, expected.values)
    assert_array_equal(unsure, points @ center < np.cos(1.1) + 1e-9)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("where", [0, 13, 20])
def test_other_vectors_are_never_certified(rng, size, where):
    """And nobody else is suspected for them: the ball is the whole sphere here."""
    valid = directions(rng, 21, size)
    center = valid[0]
    assert not enter(valid, center, 3.1, 1)[1].any()
    for change in (0.0, 1 + 1e-14, 1 - 1e-14, -1e200, np.nan, np.inf):
        points = valid.copy()
        points[where] *= change
        assert_array_equal(np.flatnonzero(enter(points, center, 3.1, 1)[1]), [where])
    for position in (0, size - 1):
        points = valid.copy()
        points[where, position] = np.nan
        assert_array_equal(np.flatnonzero(enter(points, center, 3.1, 1)[1]), [where])


@pytest.mark.parametrize("size", [3, 40])
def test_threads_do_not_change_a_bit(rng, size, monkeypatch):
    monkeypatch.setattr(_threads, "_THREAD_SECONDS", 1e-9)
    monkeypatch.setattr(_threads, "_SEGMENT", 64)
    points = directions(rng, 403, size)
    alone, spread = (enter(points, points[0], 1.0, jobs) for jobs in (1, 3))
    assert_array_equal(alone[0].values, spread[0].values)
    assert_array_equal(alone[1], spread[1])
