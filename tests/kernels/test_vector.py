"""The vector type does in every lane what numpy does elementwise."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

numba = pytest.importorskip("numba")

from skdpfrechet._kernels._vector import (  # noqa: E402
    LANES,
    empty_vectors,
    horizontal_sum,
    load,
    select_greater,
    splat,
    store,
    vmax,
    vmin,
    vsqrt,
)

OPTIONS = {"error_model": "numpy", "nogil": True}


@numba.njit(**OPTIONS)
def arithmetic(u, v, x, out):
    a, b = load(u, 0), load(v, 0)
    store(out, 0, a + b)
    store(out, 8, a - b)
    store(out, 16, a * b)
    store(out, 24, a / b)
    store(out, 32, -a)
    store(out, 40, a + x)
    store(out, 48, x - a)
    store(out, 56, 2 * a)
    store(out, 64, x / a)
    c = a
    c += b
    c *= x
    c -= a
    c /= 2.0
    store(out, 72, c)


@numba.njit(**OPTIONS)
def functions(u, v, x, out):
    a, b = load(u, 0), load(v, 0)
    store(out, 0, splat(x))
    store(out, 8, vsqrt(a))
    store(out, 16, vmax(a, b))
    store(out, 24, vmin(a, b))
    store(out, 32, select_greater(a, b, splat(1.0), splat(2.0)))


@numba.njit(**OPTIONS)
def unaligned(u, i):
    return horizontal_sum(load(u, i))


@pytest.fixture
def operands():
    rng = np.random.default_rng(0)
    return rng.uniform(0.5, 2, LANES), rng.uniform(0.5, 2, LANES)


def test_arithmetic(operands):
    u, v = operands
    x = 3.0
    out = np.empty((10, LANES))
    arithmetic(u, v, x, out)
    expected = [u + v, u - v, u * v, u / v, -u, u + x, x - u, 2 * u, x / u]
    np.testing.assert_allclose(out[:9], expected, rtol=2e-16)
    np.testing.assert_allclose(out[9], ((u + v) * x - u) / 2, rtol=1e-15)


def test_functions(operands):
    u, v = operands
    out = np.empty((5, LANES))
    functions(u, v, 3.0, out)
    expected = [
        np.full(LANES, 3.0),
        np.sqrt(u),
        np.maximum(u, v),
        np.minimum(u, v),
        np.where(u > v, 1.0, 2.0),
    ]
    assert_array_equal(out, expected)


def test_nan_falls_through_to_the_last_operand():
    u, v = np.full(LANES, 1.0), np.full(LANES, 5.0)
    u[1], v[2] = np.nan, np.nan
    u[3] = -1.0
    out = np.empty((5, LANES))
    functions(u, v, 0.0, out)
    assert np.isnan(out[1, [1, 3]]).all()
    assert out[2, 1] == 5
    assert np.isnan(out[2, 2])
    assert out[3, 1] == 5
    assert np.isnan(out[3, 2])
    assert_array_equal(out[4], np.where(u > v, 1.0, 2.0))
    assert_array_equal(out[4, 1:3], 2.0)


def test_load_at_any_offset_and_sum_in_order():
    u = np.random.default_rng(1).normal(size=20) * 10.0 ** np.arange(20)
    for i in range(12):
        total = u[i]
        for x in u[i + 1 : i + LANES]:
            total += x
        assert unaligned(u, i) == total


def test_only_contiguous_float64_arrays():
    with pytest.raises(numba.core.errors.TypingError, match="C-contiguous float64"):
        unaligned(np.zeros(16, dtype=np.float32), 0)
    with pytest.raises(numba.core.errors.TypingError, match="C-contiguous float64"):
        unaligned(np.zeros(32)[::2], 0)


@pytest.mark.parametrize("shape", [(1,), (3, 5), (2, 70, 8), (0, 4)])
def test_arrays_of_vectors_begin_on_a_cache_line(shape):
    kept = [empty_vectors(*shape) for _ in range(20)]
    assert all(a.shape == shape and a.flags.c_contiguous for a in kept)
    assert all(a.ctypes.data % 64 == 0 for a in kept if a.size)
