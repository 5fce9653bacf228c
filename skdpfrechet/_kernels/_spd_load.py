"""Reading SPD matrices: eight at a time from rows into vectors, inspected while they are at hand.

One pass over the records packs them, carries them to a model around a public centre, and certifies
for nearly all what would take several passes: that they are finite, symmetric bit for bit, and
positive definite, and that they lie well inside a ball. With Y the carried record and x its
log-eigenvalues,

    tr Y + tr Y⁻¹ = Σ 2 cosh x,

of which ‖x‖² is a concave function per eigenvalue: ‖x‖ ≤ r wherever the sum is at most
2 p cosh(r / √p), and every |x| ≤ c wherever it is at most 2 (p - 1) + 2 cosh c.
"""

from __future__ import annotations

from math import cosh, inf, sqrt
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from skdpfrechet._kernels._compile import kernel, short_loops
from skdpfrechet._kernels._spd_load_large import SMALLEST_PIVOT, gather_last, load_large
from skdpfrechet._kernels._spd_small import (
    LARGEST_SIZE,
    Triangle,
    _load_numbers,
    _store_triangle,
    positions,
)
from skdpfrechet._kernels._straight_line import (
    Value,
    straight_line,
    total,
    vectors,
    where_greater,
)
from skdpfrechet._kernels._threads import run, split
from skdpfrechet._kernels._transpose import transpose
from skdpfrechet._kernels._vector import (
    LANES,
    empty_vectors,
    require_float64_array,
    select_greater,
    splat,
    store,
    vector,
    vector_pointer,
)
from skdpfrechet._numerics import Array

LARGEST_SUM = 1e4  # of a certified record: rounding of tr Y⁻¹ is below SLACK up to there
SLACK = 1e-4
COPIED, SCALED, CARRIED = range(3)  # what happens to a record on its way


def pack_triangles(points: Array, blocks: Array, n_jobs: int = 1) -> None:
    """Write the lower triangles of `points` (R, n, p, p) to `blocks` (R, ·, q, 8)."""
    _load(points, COPIED, np.zeros(1), blocks, np.empty(0), n_jobs)


def enter(
    points: Array, carrier: Array | float, radius: float, cap: float, n_jobs: int
) -> tuple[Array, Array, Array]:
    """Pack records, carried to a model, and say which may lie outside a ball around its origin.

    Parameters
    ----------
    points : ndarray, shape (n, p, p)
    carrier : float or ndarray, shape (p, p)
        The model holds ``carrier * X``, or ``carrier X carrier`` with a symmetric matrix.
    radius, cap : float
        Of the ball, and for the absolute log-eigenvalues.
    n_jobs : int

    Returns
    -------
    blocks : ndarray, shape (1, ceil(n / 8), q, 8)
    outside : ndarray of bool, shape (n,)
        False for records that certainly are inside.
    certified : ndarray of bool, shape (n,)
        True for records that certainly are finite, symmetric and positive definite.
    """
    points = np.ascontiguousarray(points, dtype=np.float64)
    count, size = points.shape[:2]
    blocks = empty_vectors(1, -(-count // LANES), size * (size + 1) // 2, LANES)
    bounds = np.empty(blocks.shape[1] * LANES)
    if isinstance(carrier, float):
        how, numbers = (COPIED if carrier == 1.0 else SCALED), np.array([carrier])
    else:
        how, numbers = CARRIED, carrier[np.tril_indices(size)]
    _load(points[None], how, numbers, blocks, bounds, n_jobs)
    limit = largest_sum(size, radius, cap) * (1 - SLACK)
    bounds = bounds[:count]
    return blocks, ~(bounds <= limit), bounds < inf


def largest_sum(size: int, radius: float, cap: float) -> float:
    """Return up to which tr Y + tr Y⁻¹ a record certainly lies in the ball."""
    ball = 2 * size * cosh(min(radius / sqrt(size), 30.0))
    return min(ball, 2 * (size - 1) + 2 * cosh(min(cap, 30.0)), LARGEST_SUM)


def _load(
    points: Array, how: int, carrier: Array, blocks: Array, bounds: Array, n_jobs: int
) -> None:
    samples, count, size, _ = points.shape
    flat = points.reshape(-1)
    shape = (0,) * size
    items = samples * blocks.shape[1]

    def task(first: int, last: int) -> None:
        if size <= LARGEST_SIZE:
            load_small(shape, flat, count, how, carrier, blocks, bounds, first, last)
        else:
            load_large(size, flat, count, how, carrier, blocks, bounds, first, last)

    seconds = points.size * (5e-10 + 2e-11 * size * (bounds.size > 0))
    run(split(task, items, n_jobs), seconds, n_jobs)


@kernel
def load_small(
    shape,  # tuple of p integers; machine code is made for each length
    points,  # (R n p p,)
    count,  # n
    how,  # COPIED, SCALED or CARRIED
    carrier,  # (1,) factor, or (q,) lower triangle
    blocks,  # out (R, blocks, q, 8)
    bounds,  # out (8 R blocks,) tr Y + tr Y⁻¹, infinite for a record not certified; unless empty
    first,  # blocks first, ..., last - 1, counted through all replications
    last,
):
    """Pack records, and inspect them on the way."""
    short_loops()
    per_sample, entries = blocks.shape[1], blocks.shape[2]
    square = len(shape) * len(shape)
    flat = blocks.reshape(-1)
    spare = np.zeros(8 * square + 8)
    one, infinite = splat(1.0), splat(np.inf)
    for item in range(first, last):
        r, k = item // per_sample, item % per_sample
        if k < per_sample - 2:  # the vectors that are read of a matrix may go beyond it
            matrix = _load_matrices(shape, points, (r * count + 8 * k) * square)
        else:
            gather_last(points, r * count, count, 8 * k, square, spare)
            matrix = _load_matrices(shape, spare, 0)
        x = _lower(shape, matrix)
        if bounds.size > 0:
            certified, trace, inverse = _inspect(x)
            certified = certified - _asymmetric(shape, matrix)
            if how == 1:
                trace, inverse = trace * carrier[0], inverse / carrier[0]
        if how == 1:
            x = _multiplied(x, carrier[0])
        elif how == 2:
            x = _carried(_load_numbers(shape, carrier, 0), x)
            if bounds.size > 0:
                also, trace, inverse = _inspect(x)
                certified = certified + also - one
        if bounds.size > 0:
            bound = select_greater(certified, splat(0.5), trace + inverse, infinite)
            store(bounds, item * 8, select_greater(infinite, bound, bound, infinite))
        _store_triangle(x, flat, item * entries * 8, 8)


@intrinsic
def _load_matrices(typing_context, shape, a, offset):
    """Return the entries of eight consecutive matrices, row by row, one matrix per lane.

    Reads up to seven numbers beyond the last one.
    """
    require_float64_array(a)
    square = shape.count**2

    def codegen(context, builder, signature, args):
        result: list[Any] = []
        for start in range(0, square, LANES):
            rows = []
            for lane in range(LANES):
                shift = ir.Constant(args[2].type, lane * square + start)
                position = builder.add(args[2], shift)
                row = builder.load(vector_pointer(context, builder, a, args[1], position))
                row.align = 8
                rows.append(row)
            result += transpose(builder, rows)
        return context.make_tuple(builder, signature.return_type, result[:square])

    return vectors(square)(shape, a, types.intp), codegen


@intrinsic
def _lower(typing_context, shape, matrix):
    size = shape.count

    def emit(shape: Any, matrix: list[Value]) -> list[Value]:
        return [matrix[r * size + c] for r, c in positions(size)]

    return straight_line(emit, vectors(size * (size + 1) // 2), shape, matrix)


@intrinsic
def _asymmetric(typing_context, shape, matrix):
    """Return 1 where a matrix differs from its transpose, or is NaN above the diagonal."""
    size = shape.count

    def emit(shape: Any, matrix: list[Value]) -> Value:
        result = matrix[0].wrap(0.0)
        for r, c in positions(size):
            if c < r:
                x, y = matrix[r * size + c], matrix[c * size + r]
                number = where_greater(y, -np.inf, result, 1.0)
                result = where_greater(x, y, 1.0, where_greater(y, x, 1.0, number))
        return result

    return straight_line(emit, vector, shape, matrix)


@intrinsic
def _inspect(typing_context, x):
    """Return 1 where x is certainly finite and positive definite (else 0), tr x and tr x⁻¹."""
    return straight_line(lambda x: inspect(Triangle(x)), vectors(3), x)


def inspect(a: Triangle) -> list[Value]:
    """Factorize a = L D Lᵀ, with ones on the diagonal of L, and invert L."""
    scaled: dict[tuple[int, int], Value] = {}  # L D
    lower: dict[tuple[int, int], Value] = {}
    inverse: dict[tuple[int, int], Value] = {}
    certified, inverse_trace = a[0, 0].wrap(1.0), a[0, 0].wrap(0.0)
    for j in range(a.size):
        for i in range(j, a.size):
            entry = a[i, j]
            for k in range(j):
                entry = entry - lower[j, k] * scaled[i, k]
            scaled[i, j] = entry
        pivot = scaled[j, j]
        certified = where_greater(pivot, a[j, j] * SMALLEST_PIVOT, certified, 0.0)
        certified = where_greater(pivot, 0.0, certified, 0.0)
        reciprocal = 1.0 / pivot
        for i in range(j + 1, a.size):
            lower[i, j] = scaled[i, j] * reciprocal
        square = reciprocal.wrap(1.0)
        for i in range(j):
            terms = [lower[j, k] * inverse[k, i] for k in range(i + 1, j)]
            inverse[j, i] = -total([lower[j, i], *terms])
            square = square + inverse[j, i] * inverse[j, i]
        inverse_trace = inverse_trace + square * reciprocal
    return [certified, total(a.diagonal()), inverse_trace]


@intrinsic
def _multiplied(typing_context, x, factor):
    def emit(x: list[Value], factor: Value) -> list[Value]:
        return [entry * factor for entry in x]

    return straight_line(emit, x, x, types.float64)


@intrinsic
def _carried(typing_context, carrier, x):
    """``c x c`` of symmetric matrices."""

    def emit(carrier: list[Value], x: list[Value]) -> list[Value]:
        c, x = Triangle(carrier), Triangle(x)
        p = range(x.size)
        product = [[total([c[i, t] * x[t, j] for t in p]) for j in p] for i in p]
        return [total([product[i][t] * c[t, j] for t in p]) for i, j in positions(x.size)]

    return straight_line(emit, x, carrier, x)
