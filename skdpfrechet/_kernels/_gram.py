"""Products of the coordinates of many records, as they are or rounded to integers."""

from __future__ import annotations

from skdpfrechet._kernels._compile import inlined, inner, short_loops
from skdpfrechet._kernels._vector import horizontal_sum, load, splat

_INTEGERS = 1.5 * 2.0**52  # adding it rounds to an integer, subtracting it leaves that


@inlined
def rounded(v, step):
    """Return the integers nearest to ``v / step``, below 2^51, for a power of two `step`."""
    return v * (1 / step) + _INTEGERS - _INTEGERS


@inner
def gram(a, low, high, result):
    """``result = a[:, low:high] @ a[:, low:high].T``; `high` - `low` is a multiple of 8.

    Tiles of 3 x 3 entries, the last ones overlapping those before. BLAS is no faster on so few
    rows, and would start threads of its own. `a` has three rows at least.
    """
    short_loops()
    dim, columns = a.shape
    zero = splat(0.0)
    for tile_row in range(0, dim, 3):
        r = min(tile_row, dim - 3)
        for tile_column in range(0, tile_row + 1, 3):
            c = min(tile_column, dim - 3)
            s00, s01, s02 = zero, zero, zero
            s10, s11, s12 = zero, zero, zero
            s20, s21, s22 = zero, zero, zero
            for i in range(r * columns + low, r * columns + high, 8):
                j = i + (c - r) * columns
                x0, x1, x2 = load(a, i), load(a, i + columns), load(a, i + 2 * columns)
                y0, y1, y2 = load(a, j), load(a, j + columns), load(a, j + 2 * columns)
                s00, s01, s02 = s00 + x0 * y0, s01 + x0 * y1, s02 + x0 * y2
                s10, s11, s12 = s10 + x1 * y0, s11 + x1 * y1, s12 + x1 * y2
                s20, s21, s22 = s20 + x2 * y0, s21 + x2 * y1, s22 + x2 * y2
            result[r, c], result[r, c + 1] = horizontal_sum(s00), horizontal_sum(s01)
            result[r, c + 2] = horizontal_sum(s02)
            result[r + 1, c], result[r + 1, c + 1] = horizontal_sum(s10), horizontal_sum(s11)
            result[r + 1, c + 2] = horizontal_sum(s12)
            result[r + 2, c], result[r + 2, c + 1] = horizontal_sum(s20), horizontal_sum(s21)
            result[r + 2, c + 2] = horizontal_sum(s22)
    for r in range(dim):
        for c in range(r):
            result[c, r] = result[r, c]
