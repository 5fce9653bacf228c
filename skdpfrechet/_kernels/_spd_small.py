"""Unrolled kernel for SPD(2) to SPD(8): every matrix entry is a vector of eight matrices.

Per block of eight: whiten, reduce to tridiagonal form by Householder reflections, add up the
resolvents of the tridiagonal matrix, transform back. Triangles are tuples of vectors, the lower
triangle row by row; in the straight-line part they are `Triangle` objects, ``a[r, c]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from skdpfrechet._kernels._compile import kernel
from skdpfrechet._kernels._lane_nodes import (
    CONSTANTS,
    WEIGHTS,
    choose_nodes,
    lanes_beyond,
)
from skdpfrechet._kernels._straight_line import Value, straight_line, total, vectors, where_greater
from skdpfrechet._kernels._vector import (
    LANES,
    any_greater,
    broadcast,
    horizontal_sum,
    load,
    require_float64_array,
    select_greater,
    splat,
    store,
    sum_lanes,
    vector,
    vector_pointer,
)

LARGEST_SIZE = 8

_NEGLIGIBLE = 1e-290  # squared norm of a column that needs no reflection


@kernel
def small_pass(
    shape,  # tuple of p integers; machine code is made for each length
    packed,  # (R, blocks, q, 8), see ``Packed``
    tail,  # (8,) 1 for the lanes of the last block that hold records, else 0
    whiteners,  # (R, q) lower triangles
    limits,  # (k,) and the next two: see ``LogNodes.tables``
    counts,
    nodes,
    first,  # segments first, ..., last - 1 are done by this call
    last,
    segment_blocks,  # blocks per segment
    sums,  # out (segments, q + 2): Σ log Y, Σ ‖log Y‖², Σ (p ‖log Y‖² - (tr log Y)²)
    distances,  # out (8 R blocks,) ‖log Y‖², unless empty
    logs,  # out (q, columns + 8) log Y, unless empty; segments fill the columns, over and over
    flags,  # out (R, blocks) a bit for each lane that was left out
):
    """Reduce the logarithms of some segments; a matrix that is left out counts as 0."""
    blocks, entries = packed.shape[1], packed.shape[2]
    per_sample = (blocks + segment_blocks - 1) // segment_blocks
    zero, one = splat(0.0), splat(1.0)
    lanes, between = np.full((1 + nodes.shape[1]) * 8, -1.0), 4 * nodes.shape[1]
    for segment in range(first, last):
        sample = segment // per_sample
        low = (segment - sample * per_sample) * segment_blocks
        high = min(low + segment_blocks, blocks)
        start = low * 8 % (logs.shape[1] - 8) if logs.size > 0 else 0
        w = _load_numbers(shape, whiteners, sample * entries)
        log_sum = _diagonal(shape, zero)
        squares, spread = splat(0.0), splat(0.0)
        for k in range(low, high):
            x = _load_triangle(shape, packed, (sample * blocks + k) * entries * 8)
            reduced = _tridiagonal(_whitened(w, x))
            bound = _bound(shape, reduced)
            rows, reached = zero, 0
            while reached < limits.size and any_greater(bound, splat(limits[reached])):
                rows = rows + select_greater(bound, splat(limits[reached]), one, zero)
                reached += 1
            count = choose_nodes(rows, reached, counts, nodes, lanes)
            log = _diagonal(shape, load(lanes, CONSTANTS))
            for at in range(WEIGHTS, WEIGHTS + 8 * count, 8):
                log = _plus_resolvent(log, reduced, load(lanes, at), load(lanes, between + at))
            log = _transformed_back(log, reduced)
            if reached == limits.size:  # for some lane, whose logarithm is left to others
                log = _kept(log, splat(float(reached)), rows)
                flags[sample, k] = lanes_beyond(lanes, reached)
            if k == blocks - 1:
                log = _scaled(log, load(tail, 0))
            norm, trace = _square_norm(log), _trace(log)
            log_sum = _plus(log_sum, log)
            squares = squares + norm
            spread = spread + (len(shape) * norm - trace * trace)
            if distances.size > 0:
                store(distances, (sample * blocks + k) * 8, norm)
            if logs.size > 0:
                _store_triangle(log, logs, start + (k - low) * 8, logs.shape[1])
        _store_sums(log_sum, sums, segment * (entries + 2))
        sums[segment, entries] = horizontal_sum(squares)
        sums[segment, entries + 1] = horizontal_sum(spread)


# --- the operations of the kernel --------------------------------------------------------------


@intrinsic
def _whitened(typing_context, w, x):
    """``w x wᵀ`` of a lower triangular w and a symmetric x."""

    def emit(w: list[Value], x: list[Value]) -> list[Value]:
        w, x = Triangle(w), Triangle(x)
        p = range(x.size)
        product = [[total([w[r, t] * x[t, c] for t in range(r + 1)]) for c in p] for r in p]
        return [
            total([product[r][t] * w[c, t] for t in range(c + 1)]) for r, c in positions(x.size)
        ]

    return straight_line(emit, x, w, x)


@intrinsic
def _tridiagonal(typing_context, y):
    """Diagonal, subdiagonal and the reflections that led there: see `Reduced`."""

    def emit(y: list[Value]) -> list[Value]:
        return reduce_to_tridiagonal(Triangle(y)).flat()

    size = triangle_size(y.count)
    return straight_line(emit, vectors(Reduced.length(size)), y)


@intrinsic
def _bound(typing_context, shape, reduced):
    """At least every eigenvalue and its inverse; infinite unless all are positive."""
    size = shape.count

    def emit(shape: Any, reduced: list[Value]) -> Value:
        return bound_eigenvalues(Reduced.from_flat(reduced, size))

    return straight_line(emit, vector, shape, reduced)


@intrinsic
def _plus_resolvent(typing_context, log, reduced, weight, shift):
    """``log + weight (T + shift)⁻¹``, both without their `couplings`."""
    size = triangle_size(log.count)

    def emit(log: list[Value], reduced: list[Value], weight: Value, shift: Value) -> list[Value]:
        t = Reduced.from_flat(reduced, size)
        leading, trailing = minors(t, [d + shift for d in t.diagonal])
        f = weight / leading[size]
        scaled = [f * minor for minor in leading[:size]]
        return [
            entry + scaled[c] * trailing[r + 1]
            for entry, (r, c) in zip(log, positions(size), strict=True)
        ]

    return straight_line(emit, log, log, reduced, vector, vector)


@intrinsic
def _transformed_back(typing_context, log, reduced):
    """``Q log Qᵀ``, with log completed by its `couplings`."""
    size = triangle_size(log.count)

    def emit(log: list[Value], reduced: list[Value]) -> list[Value]:
        t = Reduced.from_flat(reduced, size)
        a, steps = Triangle(log), couplings(t)
        for r, c in positions(size):
            if c < r:
                a[r, c] = a[r, c] * steps[r, c]
        for k in reversed(range(size - 2)):
            reflect(a, k + 1, t.reflectors[k], t.taus[k])
        return a.entries

    return straight_line(emit, log, log, reduced)


@intrinsic
def _plus(typing_context, a, b):
    def emit(a: list[Value], b: list[Value]) -> list[Value]:
        return [x + y for x, y in zip(a, b, strict=True)]

    return straight_line(emit, a, a, b)


@intrinsic
def _scaled(typing_context, a, factor):
    def emit(a: list[Value], factor: Value) -> list[Value]:
        return [x * factor for x in a]

    return straight_line(emit, a, a, factor)


@intrinsic
def _trace(typing_context, a):
    def emit(a: list[Value]) -> Value:
        return total(Triangle(a).diagonal())

    return straight_line(emit, vector, a)


@intrinsic
def _square_norm(typing_context, a):
    def emit(a: list[Value]) -> Value:
        triangle = Triangle(a)
        return square_norm(triangle.diagonal(), triangle.below())

    return straight_line(emit, vector, a)


@intrinsic
def _diagonal(typing_context, shape, x):
    """``x I``, of the size that is the length of `shape`."""
    size = shape.count

    def emit(shape: Any, x: Value) -> list[Value]:
        return [x if r == c else x.wrap(0.0) for r, c in positions(size)]

    return straight_line(emit, vectors(size * (size + 1) // 2), shape, vector)


@intrinsic
def _kept(typing_context, a, x, y):
    """`a` in the lanes with x > y, 0 in the others, whatever is there."""

    def emit(a: list[Value], x: Value, y: Value) -> list[Value]:
        return [where_greater(x, y, entry, 0.0) for entry in a]

    return straight_line(emit, a, a, vector, vector)


# --- mathematics -------------------------------------------------------------------------------


class Triangle:
    """A symmetric (or lower triangular) matrix, ``a[r, c]`` in any order of r and c."""

    def __init__(self, entries: Sequence[Value]) -> None:
        self.entries = list(entries)
        self.size = triangle_size(len(self.entries))

    def __getitem__(self, position: tuple[int, int]) -> Value:
        return self.entries[self._index(position)]

    def __setitem__(self, position: tuple[int, int], value: Value) -> None:
        self.entries[self._index(position)] = value

    @staticmethod
    def _index(position: tuple[int, int]) -> int:
        c, r = sorted(position)
        return r * (r + 1) // 2 + c

    def diagonal(self) -> list[Value]:
        """Return the diagonal entries."""
        return [self[k, k] for k in range(self.size)]

    def below(self) -> list[Value]:
        """Return the entries below the diagonal."""
        return [self[r, c] for r, c in positions(self.size) if c < r]


class Reduced:
    """A tridiagonal matrix T and the reflections I - tau v vᵀ with Y = H₀ H₁ ... T ... H₁ H₀.

    Reflector k holds the entries k + 1, ..., p - 1 of its v; the ones before are zero.
    """

    def __init__(
        self,
        diagonal: list[Value],
        below: list[Value],
        taus: list[Value],
        reflectors: list[list[Value]],
    ) -> None:
        self.diagonal, self.below, self.taus, self.reflectors = diagonal, below, taus, reflectors

    def flat(self) -> list[Value]:
        """Return all values one after another."""
        return [*self.diagonal, *self.below, *self.taus, *(x for v in self.reflectors for x in v)]

    @staticmethod
    def length(size: int) -> int:
        """Return the length of `flat`."""
        return 2 * size - 1 + sum(1 + size - 1 - k for k in range(size - 2))

    @classmethod
    def from_flat(cls, values: list[Value], size: int) -> Reduced:
        """Invert `flat`."""
        rest = iter(values)
        lengths = (size, size - 1, size - 2)
        diagonal, below, taus = ([next(rest) for _ in range(length)] for length in lengths)
        reflectors = [[next(rest) for _ in range(k + 1, size)] for k in range(size - 2)]
        return cls(diagonal, below, taus, reflectors)


def reduce_to_tridiagonal(a: Triangle) -> Reduced:
    """Householder's reduction; `a` is used up."""
    below, taus, reflectors = [], [], []
    for k in range(a.size - 2):
        v = [a[r, k] for r in range(k + 1, a.size)]
        square = total([x * x for x in v])
        norm = square.sqrt()
        target = where_greater(v[0], 0.0, -norm, norm)
        half = square - target * v[0]  # ‖v‖² / 2 of the reflector
        tau = where_greater(square, _NEGLIGIBLE, 1.0 / half, 0.0)
        v[0] = v[0] - target
        below.append(target)
        taus.append(tau)
        reflectors.append(v)
        reflect(a, k + 1, v, tau, first_column=k + 1)
    below.append(a[a.size - 1, a.size - 2])
    return Reduced(a.diagonal(), below, taus, reflectors)


def reflect(a: Triangle, start: int, v: list[Value], tau: Value, first_column: int = 0) -> None:
    """``a = H a H`` with H = I - tau v vᵀ acting on rows and columns `start`, ... only.

    Columns before `first_column` are not needed any more.
    """
    inside = range(start, a.size)
    at = dict(zip(inside, v, strict=True))
    w = {c: tau * total([a[r, c] * at[r] for r in inside]) for c in range(first_column, a.size)}
    factor = tau * total([at[r] * w[r] for r in inside]) * 0.5
    for r in inside:
        w[r] = w[r] - factor * at[r]
    for r in inside:
        for c in range(first_column, r + 1):
            a[r, c] = a[r, c] - at[r] * w[c]
            if c >= start:
                a[r, c] = a[r, c] - w[r] * at[c]


def minors(t: Reduced, diagonal: list[Value]) -> tuple[list[Value], list[Value]]:
    """Return the leading and trailing principal minors of T with another diagonal.

    Entry k of the first is the determinant of rows 0 to k - 1, of the second that of rows k to
    p - 1. They are positive products of pivots, computed without a division.
    """
    squares = [x * x for x in t.below]
    return _leading(diagonal, squares), _leading(diagonal[::-1], squares[::-1])[::-1]


def _leading(diagonal: list[Value], squares: list[Value]) -> list[Value]:
    result = [diagonal[0].wrap(1.0), diagonal[0]]
    for d, square in zip(diagonal[1:], squares, strict=True):
        result.append(d * result[-1] - square * result[-2])
    return result


def couplings(t: Reduced) -> Triangle:
    """Return the products of -below from column to row.

    The inverse of a tridiagonal matrix is, for c ≤ r, ``leading[c] * trailing[r + 1]`` over the
    determinant times these, which no shift of the diagonal changes.
    """
    one = t.diagonal[0].wrap(1.0)
    size = len(t.diagonal)
    result = Triangle([one for _ in positions(size)])
    for r, c in positions(size):
        if c < r:
            result[r, c] = -t.below[c] if c == r - 1 else -(result[r - 1, c] * t.below[r - 1])
    return result


def bound_eigenvalues(t: Reduced) -> Value:
    """Return a number above every eigenvalue and its inverse, infinite unless all are positive.

    The positive definite matrices are those with positive leading minors.
    """
    size = len(t.diagonal)
    leading, trailing = minors(t, t.diagonal)
    f, steps = 1.0 / leading[size], couplings(t)
    inverse = {(r, c): f * leading[c] * trailing[r + 1] for r, c in positions(size)}
    largest = largest_eigenvalue(t.diagonal, t.below)
    largest_inverse = largest_eigenvalue(
        [inverse[k, k] for k in range(size)],
        [inverse[r, c] * steps[r, c] for r, c in positions(size) if c < r],
    )
    # A comparison with NaN is false: a NaN in either must not get lost.
    bound = where_greater(largest, largest_inverse, largest, largest_inverse)
    bound = where_greater(largest.wrap(np.inf), largest, bound, np.inf)
    for minor in leading[1:]:
        bound = where_greater(minor, 0.0, bound, np.inf)
    return where_greater(bound.wrap(np.inf), bound, bound, np.inf)


def largest_eigenvalue(diagonal: list[Value], below: list[Value]) -> Value:
    """Bound the eigenvalues by m + √((p - 1) v), from their mean m and variance v."""
    size = len(diagonal)
    mean = total(diagonal) * (1 / size)
    variance = square_norm(diagonal, below) * (1 / size) - mean * mean
    return mean + where_greater(variance.wrap(0.0), variance, 0.0, variance * (size - 1)).sqrt()


def square_norm(diagonal: list[Value], below: list[Value]) -> Value:
    """Return the squared Frobenius norm."""
    return total([x * x for x in diagonal]) + 2.0 * total([x * x for x in below])


def positions(size: int) -> list[tuple[int, int]]:
    """Return (row, column) of the lower triangle, row by row."""
    return [(r, c) for r in range(size) for c in range(r + 1)]


def triangle_size(entries: int) -> int:
    """Return the p with p (p + 1) / 2 = `entries`."""
    return round(((8 * entries + 1) ** 0.5 - 1) / 2)


# --- memory ------------------------------------------------------------------------------------


@intrinsic
def _load_triangle(typing_context, shape, a, offset):
    """Return consecutive vectors of a C array as the triangle of a matrix."""
    require_float64_array(a)
    entries = shape.count * (shape.count + 1) // 2

    def codegen(context, builder, signature, args):
        result = []
        for i in range(entries):
            position = builder.add(args[2], ir.Constant(args[2].type, i * LANES))
            lanes = builder.load(vector_pointer(context, builder, a, args[1], position))
            lanes.align = 8
            result.append(lanes)
        return context.make_tuple(builder, signature.return_type, result)

    return vectors(entries)(shape, a, types.intp), codegen


@intrinsic
def _load_numbers(typing_context, shape, a, offset):
    """Return consecutive numbers of a C array, each in all lanes, as the triangle of a matrix."""
    require_float64_array(a)
    entries = shape.count * (shape.count + 1) // 2

    def codegen(context, builder, signature, args):
        data = context.make_array(a)(context, builder, args[1]).data
        result = []
        for i in range(entries):
            position = builder.add(args[2], ir.Constant(args[2].type, i))
            result.append(broadcast(builder, builder.load(builder.gep(data, [position]))))
        return context.make_tuple(builder, signature.return_type, result)

    return vectors(entries)(shape, a, types.intp), codegen


@intrinsic
def _store_triangle(typing_context, triangle, a, offset, stride):
    """Write the vectors of a triangle to a C array, `stride` elements apart."""
    require_float64_array(a)

    def codegen(context, builder, signature, args):
        position = args[2]
        for lanes in cgutils.unpack_tuple(builder, args[0], triangle.count):
            builder.store(lanes, vector_pointer(context, builder, a, args[1], position)).align = 8
            position = builder.add(position, args[3])
        return context.get_dummy_value()

    return types.void(triangle, a, types.intp, types.intp), codegen


@intrinsic
def _store_sums(typing_context, triangle, a, offset):
    """Write the `horizontal_sum` of each vector of a triangle to consecutive entries."""
    require_float64_array(a)

    def codegen(context, builder, signature, args):
        data = context.make_array(a)(context, builder, args[1]).data
        for i, lanes in enumerate(cgutils.unpack_tuple(builder, args[0], triangle.count)):
            position = builder.add(args[2], ir.Constant(args[2].type, i))
            builder.store(sum_lanes(builder, lanes), builder.gep(data, [position]))
        return context.get_dummy_value()

    return types.void(triangle, a, types.intp), codegen
