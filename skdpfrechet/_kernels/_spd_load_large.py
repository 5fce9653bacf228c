"""Reading and inspecting SPD(p), p > 8: loops over entries that are vectors of eight matrices."""

from __future__ import annotations

import numpy as np

from skdpfrechet._kernels._compile import inner, kernel, short_loops
from skdpfrechet._kernels._transpose import transpose_eight
from skdpfrechet._kernels._vector import load, select_greater, splat, store

SMALLEST_PIVOT = 1e-10  # of a certified matrix, relative to its diagonal entry


@inner
def gather_last(points, start, count, done, square, spare):
    """Copy the last records of a replication to `spare`, filled up with the first one."""
    short_loops()
    for lane in range(8):
        record = done + lane if done + lane < count else 0
        for i in range(square):
            spare[lane * square + i] = points[(start + record) * square + i]


@kernel
def load_large(size, points, count, how, carrier, blocks, bounds, first, last):
    """Do what `load_small` of the small matrices does, in loops."""
    per_sample, entries = blocks.shape[1], blocks.shape[2]
    square = size * size
    flat = blocks.reshape(-1)
    spare = np.zeros(8 * square + 8)
    matrix, product = np.empty(square * 8 + 64), np.empty(square * 8 if how == 2 else 0)
    work = np.empty(entries * 8 if bounds.size > 0 else 0)
    column = np.empty(size * 8)
    full = np.zeros((size, size))
    if how == 2:
        at = 0
        for i in range(size):
            for j in range(i + 1):
                full[i, j] = carrier[at]
                full[j, i] = carrier[at]
                at += 1
    one, infinite = splat(1.0), splat(np.inf)
    for item in range(first, last):
        r, k = item // per_sample, item % per_sample
        source, start = points, (r * count + 8 * k) * square
        if k == per_sample - 1:
            gather_last(points, r * count, count, 8 * k, square, spare)
            source, start = spare, 0
        for i in range(0, square, 8):
            transpose_eight(source, start + i, square, matrix, i * 8)
        certified, bound = one, one
        if bounds.size > 0:
            certified = one - _asymmetric_entries(matrix, size)
            _copy_lower(matrix, size, one, work, 0)
            pivots, trace, inverse = _inspect_triangle(work, size, column)
            certified = certified + pivots - one
            bound = trace * carrier[0] + inverse / carrier[0] if how == 1 else trace + inverse
        factor = splat(carrier[0]) if how == 1 else one
        if how == 2:
            _multiply(full, matrix, size, product)
            _multiply(full, product, size, matrix)
        _copy_lower(matrix, size, factor, flat, item * entries * 8)
        if bounds.size > 0:
            if how == 2:
                _copy_lower(matrix, size, one, work, 0)
                pivots, trace, inverse = _inspect_triangle(work, size, column)
                certified, bound = certified + pivots - one, trace + inverse
            bound = select_greater(certified, splat(0.5), bound, infinite)
            store(bounds, item * 8, select_greater(infinite, bound, bound, infinite))


@inner
def _asymmetric_entries(matrix, size):
    """Return 1 where a matrix differs from its transpose, or is NaN above the diagonal."""
    result, one, least = splat(0.0), splat(1.0), splat(-np.inf)
    for i in range(size):
        for j in range(i):
            x, y = load(matrix, (i * size + j) * 8), load(matrix, (j * size + i) * 8)
            number = select_greater(y, least, result, one)
            result = select_greater(x, y, one, select_greater(y, x, one, number))
    return result


@inner
def _copy_lower(matrix, size, factor, target, at):
    """Write the lower triangle, times `factor`, to consecutive vectors."""
    for i in range(size):
        for j in range(i + 1):
            store(target, at, factor * load(matrix, (i * size + j) * 8))
            at += 8


@inner
def _multiply(left, matrix, size, out):
    """Write (left matrix)ᵀ to `out`: twice in a row makes ``left x left`` of symmetric matrices."""
    zero = splat(0.0)
    for tile in range(0, size, 4):
        j = min(tile, size - 4)
        for i in range(size):
            s0, s1, s2, s3 = zero, zero, zero, zero
            for t in range(size):
                w, at = splat(left[i, t]), (t * size + j) * 8
                s0, s1 = s0 + w * load(matrix, at), s1 + w * load(matrix, at + 8)
                s2, s3 = s2 + w * load(matrix, at + 16), s3 + w * load(matrix, at + 24)
            at = (j * size + i) * 8
            store(out, at, s0)
            store(out, at + size * 8, s1)
            store(out, at + size * 16, s2)
            store(out, at + size * 24, s3)


@inner
def _inspect_triangle(a, size, column):
    """Return what `inspect` does, of a packed triangle that is overwritten by its factor.

    Below the diagonal a becomes L D, then L; the diagonal becomes the reciprocals of D.
    """
    zero, one = splat(0.0), splat(1.0)
    certified, trace, inverse_trace = one, zero, zero
    for j in range(size):
        row = j * (j + 1) * 4
        pivot = load(a, row + j * 8)
        trace += pivot
        least = pivot * SMALLEST_PIVOT
        for k in range(j):  # the row still holds L D; its last reader is this loop
            scaled = load(a, row + k * 8)
            entry = scaled * load(a, k * (k + 3) * 4)
            pivot -= scaled * entry
            store(a, row + k * 8, entry)
        certified = select_greater(pivot, least, certified, zero)
        certified = select_greater(pivot, zero, certified, zero)
        store(a, row + j * 8, one / pivot)
        for i in range(j + 1, size):
            below = i * (i + 1) * 4
            entry = load(a, below + j * 8)
            for k in range(j):
                entry -= load(a, below + k * 8) * load(a, row + k * 8)
            store(a, below + j * 8, entry)
    for j in range(size):  # the columns of L⁻¹
        inverse_trace += load(a, j * (j + 3) * 4)
        for i in range(j + 1, size):
            row = i * (i + 1) * 4
            entry = -load(a, row + j * 8)
            for k in range(j + 1, i):
                entry -= load(a, row + k * 8) * load(column, k * 8)
            store(column, i * 8, entry)
            inverse_trace += entry * entry * load(a, row + i * 8)
    return certified, trace, inverse_trace
