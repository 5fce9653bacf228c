"""Second moments of logarithms: clipping, and products in the first caches."""

from __future__ import annotations

import numpy as np

from skdpfrechet._kernels._compile import inner, kernel
from skdpfrechet._kernels._spd_small import small_pass
from skdpfrechet._kernels._vector import (
    horizontal_sum,
    load,
    select_greater,
    splat,
    store,
    vsqrt,
)

_INTEGERS = 1.5 * 2.0**52  # adding it rounds to an integer, subtracting it leaves that


@kernel
def clip_columns(triangles, scales, center, radius, step, low, high):
    """Turn the lower triangles in columns `low` to `high` into clipped coordinates, in place.

    With a `step`, a power of two, coordinates become the integers nearest to their multiples of it.
    """
    dim, columns = triangles.shape
    zero, one, integers = splat(0.0), splat(1.0), splat(_INTEGERS)
    for column in range(low, high, 8):
        square = zero
        for i in range(dim):
            v = load(triangles, i * columns + column) * scales[i] - center[i]
            square = square + v * v
        finite = select_greater(splat(np.inf), square, one, zero)
        factor = select_greater(square, splat(radius * radius), radius / vsqrt(square), one)
        for i in range(dim):
            v = load(triangles, i * columns + column) * scales[i] - center[i]
            v = center[i] + select_greater(finite, zero, v * factor, zero)
            if step > 0:
                v = v * (1 / step) + integers - integers
            store(triangles, i * columns + column, v)


@inner
def gram(a, low, high, result):
    """``result = a[:, low:high] @ a[:, low:high].T``; `high` - `low` is a multiple of 8.

    Tiles of 3 x 3 entries, the last ones overlapping those before. BLAS is no faster on so few
    rows, and would start threads of its own.
    """
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


@kernel
def small_moments(
    shape,  # this and the next eight: see `small_pass`
    packed,
    tail,
    whiteners,
    limits,
    counts,
    constants,
    weights,
    shifts,
    first,  # pieces first, ..., last - 1 are done by this call
    last,
    length,  # blocks per piece
    count,
    scales,  # (q,) of the coordinates
    centers,  # (R, q) towards which coordinates are clipped
    radius,
    step,  # 0 or that of `clip_columns`
    sums,  # (pieces, q + 2) for `small_pass`
    flags,  # out (R, blocks) 1 where a block was left out
    moments,  # out (pieces, q, q) Σ c cᵀ
):
    """Sum the products of clipped logarithms, which are never written to memory."""
    blocks, entries = packed.shape[1], packed.shape[2]
    per_sample = (blocks + length - 1) // length
    columns = length * 8 + 8
    logs, nothing = np.empty((entries, columns)), np.empty(0)
    flat = logs.reshape(-1)
    zero = splat(0.0)
    for piece in range(first, last):
        small_pass(
            shape,
            packed,
            tail,
            whiteners,
            limits,
            counts,
            constants,
            weights,
            shifts,
            piece,
            piece + 1,
            length,
            sums,
            nothing,
            logs,
            flags,
        )
        sample = piece // per_sample
        low = (piece - sample * per_sample) * length
        high = min(low + length, blocks)
        clip_columns(logs, scales, centers[sample], radius, step, 0, (high - low) * 8)
        for k in range(low, high):
            if flags[sample, k]:
                for i in range(entries):
                    store(flat, i * columns + (k - low) * 8, zero)
        for column in range(count - low * 8, (high - low) * 8):
            for i in range(entries):
                logs[i, column] = 0.0
        gram(logs, 0, (high - low) * 8, moments[piece])
