"""What the one pass over raw SPD matrices packs and certifies, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("numba")

from skdpfrechet._kernels import _threads
from skdpfrechet._kernels._spd_load import SLACK, enter, largest_sum, pack_triangles

SIZES = (1, 2, 3, 5, 8, 9, 13, 20)
COUNTS = (1, 7, 8, 9, 33)


@pytest.fixture
def rng():
    return np.random.default_rng(20260714)


def matrices(rng, count, size, spread=1.0):
    noise = rng.standard_normal((count, size, size))
    w, q = np.linalg.eigh((noise + noise.swapaxes(1, 2)) * spread / np.sqrt(2 * size + 2))
    x = (q * np.exp(w)[:, None, :]) @ q.swapaxes(1, 2)
    return (x + x.swapaxes(1, 2)) / 2


def triangles(points):
    """Lower triangles of the packed records, one by one."""
    rows, columns = np.tril_indices(points.shape[-1])
    return points[:, rows, columns]


def unpacked(blocks, count):
    return np.swapaxes(blocks, -1, -2).reshape(len(blocks), -1, blocks.shape[2])[:, :count]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("count", COUNTS)
def test_packing_copies_bit_by_bit(rng, size, count):
    points = rng.standard_normal((2, count, size, size))  # of each only the lower triangle counts
    blocks = np.empty((2, -(-count // 8), size * (size + 1) // 2, 8))
    pack_triangles(points, blocks)
    found = unpacked(blocks, None)
    for sample, packed in zip(points, found, strict=True):
        assert_array_equal(packed[:count], triangles(sample))
        assert_array_equal(packed[count:], np.repeat(triangles(sample[:1]), -count % 8, axis=0))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("kind", ["identity", "scale", "matrix"])
def test_records_are_carried_and_judged(rng, size, count, kind):
    points = matrices(rng, count, size)
    root = matrices(rng, 1, size, 0.5)[0]
    carrier = {"identity": 1.0, "scale": 0.3, "matrix": root}[kind]
    carried = root @ points @ root if kind == "matrix" else carrier * points
    w = np.linalg.eigvalsh(carried)
    sums, lengths = (w + 1 / w).sum(axis=1), np.linalg.norm(np.log(w), axis=1)
    radius = np.sqrt(size) * np.arccosh(np.median(sums) / (2 * size)) + 0.01
    blocks, outside, certified = enter(points, carrier, radius, 50.0, 1)
    assert certified.all()
    assert_allclose(unpacked(blocks, count)[0], triangles(carried), rtol=1e-12, atol=1e-12)
    assert (outside | (lengths <= radius)).all()
    limit = largest_sum(size, radius, 50.0) * (1 - SLACK)
    near = np.abs(sums / limit - 1) < 1e-9
    assert_array_equal(outside[~near], (sums > limit)[~near])


@pytest.mark.parametrize("size", [1, 2, 5, 16])
def test_largest_sum_is_a_bound(rng, size):
    """On the boundary of either set the sum is at least the bound, wherever the point lies."""
    logs = rng.standard_normal((10_000, size)) * np.exp(rng.uniform(-5, 2, (10_000, size)))
    radius, cap = np.linalg.norm(logs, axis=1), np.abs(logs).max(axis=1)
    sums = 2 * np.cosh(logs).sum(axis=1)
    for s, r, c in zip(sums, radius, cap, strict=True):
        assert s * (1 + 1e-12) >= largest_sum(size, r, np.inf)
        assert s * (1 + 1e-12) >= largest_sum(size, np.inf, c)
    equal = largest_sum(size, 2 * np.sqrt(size), np.inf)
    assert equal == pytest.approx(2 * size * np.cosh(2.0))  # and it is attained


@pytest.mark.parametrize("size", [2, 5, 8, 9, 20])
@pytest.mark.parametrize("where", [0, 6, 19])
@pytest.mark.parametrize("kind", [1.0, 0.3, "matrix"])
def test_invalid_records_are_never_certified(rng, size, where, kind):
    """And no other record is suspected for them."""
    carrier = matrices(rng, 1, size, 0.3)[0] if kind == "matrix" else kind
    alone = np.arange(20) != where
    valid = matrices(rng, 20, size)
    assert enter(valid, carrier, 3.0, 9.0, 1)[2].all()
    for entry in (np.nan, np.inf, -np.inf):
        for at in ((size - 1, 0), (0, 0), (size - 1, size - 1)):
            points = valid.copy()
            points[where][at] = points[where][at[::-1]] = entry
            assert_array_equal(enter(points, carrier, 3.0, 9.0, 1)[2], alone)
    for row, column in ((1, 0), (size - 1, size - 2), (0, 1), (0, size - 1), (size - 2, size - 1)):
        points = valid.copy()
        points[where, row, column] = np.nextafter(points[where, row, column], 9.0)
        assert_array_equal(enter(points, carrier, 3.0, 9.0, 1)[2], alone)
        for entry in (np.nan, np.inf, -np.inf):
            points[where, row, column] = entry
            assert_array_equal(enter(points, carrier, 3.0, 9.0, 1)[2], alone)
    w, q = np.linalg.eigh(valid[where])
    for smallest in (0.0, -1e-3, 1e-13):
        w[0] = smallest
        points = valid.copy()
        points[where] = (q * w) @ q.T
        points[where] = (points[where] + points[where].T) / 2
        assert_array_equal(enter(points, carrier, 3.0, 9.0, 1)[2], alone)
    for matrix in (np.zeros((size, size)), -np.eye(size), np.ones((size, size))):
        points = valid.copy()
        points[where] = matrix
        assert_array_equal(enter(points, carrier, 3.0, 9.0, 1)[2], alone)


@pytest.mark.parametrize("size", [3, 12])
def test_nearly_singular_records_count_as_outside(rng, size):
    """Where rounding could hide that a record is outside, nothing is certified about the ball."""
    points = matrices(rng, 16, size)
    points[3] = np.diag(np.r_[1e-7, np.ones(size - 1)])
    _, outside, certified = enter(points, 1.0, 1e3, 1e3, 1)
    assert certified.all()
    assert_array_equal(np.flatnonzero(outside), [3])


@pytest.mark.parametrize("size", [4, 12])
def test_threads_do_not_change_a_bit(rng, size, monkeypatch):
    monkeypatch.setattr(_threads, "_THREAD_SECONDS", 1e-9)
    points = matrices(rng, 203, size)
    alone, spread = (enter(points, 0.7, 1.0, 5.0, jobs) for jobs in (1, 3))
    for a, b in zip(alone, spread, strict=True):
        assert_array_equal(a, b)
