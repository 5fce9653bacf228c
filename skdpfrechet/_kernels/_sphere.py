"""Sums over the logarithms of points of a sphere, one fused pass over the points.

With z = |x - p|²/4 = sin²(θ/2), θ the angle between the base p and a point x, everything a pass
needs is an analytic function of z on [0, 1/2]: no arccos, no singularity at θ = 0. Beyond the
equator the point is compared with -p instead, so nothing cancels near the cut locus either. The
tangent vector is ``log x = (θ / sin θ) w`` up to a multiple of p, where w = x - p or x + p is
short where the ratio is large.

Points with few coordinates are packed into blocks of eight, one machine vector per coordinate; the
smallest sizes have a kernel of straight-line code each. Longer rows are read as they lie.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import pi
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from skdpfrechet._kernels._compile import inlined, inner, kernel
from skdpfrechet._kernels._threads import run_segments, segment_count
from skdpfrechet._kernels._vector import (
    LANES,
    any_greater,
    broadcast,
    empty_vectors,
    horizontal_sum,
    load,
    select_greater,
    select_greater_lanes,
    splat,
    store,
    vector,
    vmax,
    vmin,
    vsqrt,
)
from skdpfrechet._numerics import Array

_UNROLLED = 5  # coordinates up to which all sums of a pass stay in registers
_BLOCKED = 16  # coordinates up to which packing repays its copy
# Polynomials in 4z - 1 for 0 ≤ z ≤ 1/2, interpolated in 60 digits at the Chebyshev nodes.
# θ / sin θ, relative error 4e-16:
_RATIO = (
    1.209199576156145,
    0.26360014128128484,
    0.06973319205209126,
    0.01983714692249483,
    0.005861628973487859,
    0.0017729284605962836,
    0.0005447740070102313,
    0.00016930995388714085,
    5.307358013634001e-05,
    1.6749101259775154e-05,
    5.314747943610747e-06,
    1.69379540735378e-06,
    5.408086436970904e-07,
    1.7353086816881773e-07,
    5.723663161320023e-08,
    1.846316471434757e-08,
    4.773585140083581e-09,
    1.5432258396115456e-09,
    1.0617732929508853e-09,
    3.45259271173096e-10,
)
_HESSIAN, _MOMENT, _LOGS, _DISTANCES = range(4)  # what a pass computes
_ROWS = 32  # multiplied at a time: they stay in the first cache
_BLOCKS = 4  # the same for blocks
_SHORTEST = 1e-34  # sin² θ / 4 nearer to ±p than one rounding: keeps every quotient finite


@dataclass(frozen=True)
class Packed:
    """Unit vectors as the kernels read them.

    Parameters
    ----------
    values : ndarray, one axis
        Blocks (replication, block, coordinate, lane) if `blocked`, else rows (replication, point,
        coordinate).
    replications, count, size : int
        R, n and D of the packed (R, n, D) array.
    blocked : bool
        Whether eight points share a block; the last block repeats the last point.
    """

    values: Array
    replications: int
    count: int
    size: int
    blocked: bool


@dataclass(frozen=True)
class LogSums:
    """What one pass over n points knows about half their mean squared distance to the base.

    Parameters
    ----------
    log : ndarray, shape (R, D)
        Σ log x, tangent at the base, in ambient coordinates.
    squared_distance : ndarray, shape (R,)
        Σ θ².
    cotangent : ndarray, shape (R,)
        Σ θ cot θ: the trace of the Hessian is ``1 + (d - 1) cotangent / n``.
    hessian : ndarray, shape (R, D, D), or None
        Mean Hessian of θ²/2, symmetric, zero along the base: add ``base baseᵀ`` to invert it.
    """

    log: Array
    squared_distance: Array
    cotangent: Array
    hessian: Array | None


# --- public functions --------------------------------------------------------------------------


def pack(points: Array, n_jobs: int = 1) -> Packed:
    """Return unit vectors, shape (R, n, D), in the layout of the kernels.

    Few coordinates are copied into blocks, many are used as they are if C-contiguous.
    """
    points = np.ascontiguousarray(points, dtype=np.float64)
    replications, count, size = points.shape
    flat = points.reshape(-1)
    if size > _BLOCKED:
        return Packed(flat, replications, count, size, blocked=False)
    blocks = -(-count // LANES)
    values = empty_vectors(replications * blocks * size * LANES)
    segments, items = _pieces(replications, count, size)

    def copy(first: int, last: int) -> None:
        _pack(flat, values, count, size, segments, first, last)

    run_segments(copy, items, flat.size, n_jobs)
    return Packed(values, replications, count, size, blocked=True)


def log_sums(packed: Packed, base: Array, hessian: bool, n_jobs: int = 1) -> LogSums:
    """Return the sums of the logarithms at `base`, shape (R, D), of the points of each row.

    Points opposite to the base have no logarithm: they add any finite vector.
    """
    sums, squares = _sums(packed, base, _HESSIAN if hessian else _LOGS, np.inf, n_jobs)
    size = packed.size
    along = (sums[:, :size] * base).sum(axis=-1, keepdims=True)
    log = sums[:, :size] - along * base
    matrix = None
    if squares is not None:
        isotropic = sums[:, size + 1, None, None] * np.eye(size)
        matrix = _tangential(squares + isotropic, base) / packed.count
    return LogSums(log, sums[:, size], sums[:, size + 1], matrix)


def squared_distances(packed: Packed, base: Array, n_jobs: int = 1) -> Array:
    """Return θ² of every point to the `base`, shape (R, D), of its row: shape (R, n)."""
    out = np.empty((packed.replications, packed.count))
    _pass(packed, base, _DISTANCES, 0.0, out, n_jobs)
    return out


def clipped_moment(
    packed: Packed, base: Array, frame: Array, radius: float, n_jobs: int = 1
) -> Array:
    """Return the uncentred second moment of normal coordinates clipped to norm `radius`.

    Parameters
    ----------
    packed : Packed
    base : ndarray, shape (R, D)
    frame : ndarray, shape (R, D, d)
        Orthonormal bases of the tangent spaces, in columns.
    radius : float
        Longer coordinate vectors are shortened to it; those that are not finite count as 0.
    n_jobs : int

    Returns
    -------
    ndarray, shape (R, d, d)
        ``(1/n) Σ c cᵀ`` with c the clipped ``frameᵀ log x``.
    """
    _, squares = _sums(packed, base, _MOMENT, radius, n_jobs)
    # The frame is orthogonal to the base: the multiples of the base in w fall out here.
    return np.asarray(np.swapaxes(frame, -1, -2) @ np.asarray(squares) @ frame / packed.count)


# --- passes ------------------------------------------------------------------------------------


def _pass(packed: Packed, base: Array, mode: int, radius: float, out: Array, n_jobs: int) -> None:
    """Fill a row of `out` for every segment or, with the distances, for every replication."""
    size = packed.size
    base = np.array(base, dtype=np.float64)  # for read-only arrays numba would compile once more
    segments, items = _pieces(packed.replications, packed.count, size)
    kernel = block_kernel(size, mode) if packed.blocked else _row_sums
    head = (packed.values, base, packed.count, segments)

    def add(first: int, last: int) -> None:
        kernel(*head, first, last, float(radius * radius), mode, out)

    matrix = mode in (_HESSIAN, _MOMENT)
    run_segments(add, items, packed.values.size * (1 + size // LANES * matrix), n_jobs)


def _pieces(replications: int, count: int, size: int) -> tuple[int, int]:
    """Return into how many segments each replication is cut, and the number of all segments."""
    segments = segment_count(count * size)
    return segments, replications * segments


def _sums(
    packed: Packed, base: Array, mode: int, radius: float, n_jobs: int
) -> tuple[Array, Array | None]:
    """Return Σ f w, Σ θ², Σ θ cot θ, shape (R, D + 2), and Σ weight w wᵀ, shape (R, D, D).

    The weight is that of the Hessian or the squared factor of the clipped logarithm.
    """
    size, blocked = packed.size, packed.blocked
    segments, items = _pieces(packed.replications, packed.count, size)
    width = 0 if mode == _LOGS else size * (size + 1) // 2 if blocked else size * _padded(size)
    out = np.empty((items, size + 2 + width))
    _pass(packed, base, mode, radius, out, n_jobs)
    sums = out.reshape(packed.replications, segments, -1).sum(axis=1)
    matrix = None if mode == _LOGS else _symmetric(sums[:, size + 2 :], size, blocked)
    return sums[:, : size + 2], matrix


def _symmetric(lower: Array, size: int, blocked: bool) -> Array:
    """Return full matrices from packed lower triangles (blocks) or padded ones (rows)."""
    rows, columns = np.indices((size, size))
    rows, columns = np.maximum(rows, columns), np.minimum(rows, columns)
    at = rows * (rows + 1) // 2 + columns if blocked else rows * _padded(size) + columns
    return np.asarray(lower[:, at])


def _tangential(a: Array, base: Array) -> Array:
    """Return ``P a P`` with P the projection along `base`, for symmetric `a`."""
    image = (a @ base[..., None])[..., 0]
    half = image - (image * base).sum(axis=-1, keepdims=True) * base / 2
    outer = half[..., :, None] * base[..., None, :]
    return np.asarray(a - outer - np.swapaxes(outer, -1, -2))


def _padded(size: int) -> int:
    return -(-size // LANES) * LANES


# --- kernels: functions of z -------------------------------------------------------------------


def _compile(source: str, name: str) -> Any:
    # Compiled under the name of this file: numba keys its cache by file, function and time stamp.
    namespace = dict(globals())
    exec(compile(source, __file__, "exec"), namespace)
    return namespace[name]


def _repeat(source: str, times: int) -> str:
    """Repeat each line with a # for # = 0, 1, ..., and with a $ too for $ = 0, ..., #."""
    lines = []
    for line in source.splitlines():
        for i in range(times if "#" in line else 1):
            numbered = line.replace("#", str(i))
            lines += [numbered.replace("$", str(j)) for j in range(i + 1 if "$" in line else 1)]
    return "\n".join(lines)


def _polynomial(name: str, coefficients: tuple[float, ...]) -> Any:
    """Return a kernel function for the polynomial in 4z - 1, even and odd part side by side."""
    parts = []
    for part in (coefficients[0::2], coefficients[1::2]):
        expression = repr(part[-1])
        for coefficient in part[-2::-1]:
            expression = f"({expression}) * square + {coefficient!r}"
        parts.append(expression)
    even, odd = parts
    source = f"def {name}(z):\n    t = 4.0 * z - 1.0\n    square = t * t\n"
    source += f"    return t * ({odd}) + ({even})\n"
    return inlined(_compile(source, name))


_ratio = _polynomial("_ratio", _RATIO)


@intrinsic
def _ones(typing_context, first, last):
    """Return the vector with ones in some lanes and zeros in the others."""

    def codegen(context, builder, signature, args):
        bounds = [broadcast(builder, builder.sitofp(x, ir.DoubleType())) for x in args]
        numbers, zeros, ones = (
            ir.Constant(bounds[0].type, lanes)
            for lanes in ([float(i) for i in range(LANES)], [0.0] * LANES, [1.0] * LANES)
        )
        below_last = select_greater_lanes(builder, bounds[1], numbers, ones, zeros)
        return select_greater_lanes(builder, bounds[0], numbers, zeros, below_last)

    return vector(types.intp, types.intp), codegen


@inner
def _clear(a, size):
    for i in range(size):
        a[i] = 0.0


@inlined
def _near(z):
    """Return θ / sin θ, θ², θ cot θ and (1 - θ cot θ) / sin² θ for z ≤ 1/2."""
    f = _ratio(z)
    quarter = z * (1.0 - z)  # sin² θ / 4
    cotangent = f * (1.0 - 2.0 * z)
    return f, f * f * (4.0 * quarter), cotangent, _bend(cotangent, quarter)


@inlined
def _bend(cotangent, quarter):
    # The quotient multiplies w wᵀ, as small as its divisor: cancellation does no harm.
    return (1.0 - cotangent) / (4.0 * vmax(quarter, splat(_SHORTEST)))


@inlined
def _far(opposite, side, f, square, cotangent, bend):
    """Return the same with the lanes where `side` is -1 as seen from -p: `opposite` is z there.

    The other lanes stay as they are: what a point adds must not depend on its neighbours.
    """
    zero = splat(0.0)
    quarter = opposite * (1.0 - opposite)
    g = _ratio(opposite)
    theta = pi - 2.0 * g * vsqrt(quarter)
    g = (0.5 * pi) / vsqrt(vmax(quarter, splat(_SHORTEST))) - g
    cosine = g * (2.0 * opposite - 1.0)
    return (
        select_greater(side, zero, f, g),
        select_greater(side, zero, square, theta * theta),
        select_greater(side, zero, cotangent, cosine),
        select_greater(side, zero, bend, _bend(cosine, quarter)),
    )


@inlined
def squared_angle(z, side):
    """Return θ² for z seen from `side` times the base."""
    theta = 2.0 * _ratio(z) * vsqrt(z * (1.0 - z))
    theta = select_greater(side, splat(0.0), theta, pi - theta)
    return theta * theta


@inlined
def _clipped_weight(f, square, squared_radius):
    """Return the square of min(1, radius / θ) θ / sin θ."""
    return f * f * vmin(splat(squared_radius) / vmax(square, splat(1e-300)), splat(1.0))


# --- kernels: blocks ---------------------------------------------------------------------------


@kernel
def _pack(points, values, count, size, segments, first, last):
    blocks = (count + LANES - 1) // LANES
    for item in range(first, last):
        r, s = item // segments, item % segments
        for k in range(s * blocks // segments, (s + 1) * blocks // segments):
            source = (r * count + k * LANES) * size
            target = (r * blocks + k) * size * LANES
            if (k + 1) * LANES <= count:
                for j in range(size):
                    for lane in range(LANES):
                        values[target + j * LANES + lane] = points[source + lane * size + j]
            else:
                final = ((r + 1) * count - 1) * size
                for j in range(size):
                    for lane in range(LANES):
                        at = min(source + lane * size, final) + j
                        values[target + j * LANES + lane] = points[at]


@inlined
def _block_z(values, offset, base, r, size, side):
    """Return |x - side p|² / 4 for the points of a block."""
    z = splat(0.0)
    for j in range(size):
        w = load(values, offset + j * LANES) - side * base[r, j]
        z += w * w
    return 0.25 * z


@inlined
def _add_blocks(total, gram, w, factors, weights, size, matrix):
    """Add Σ f w and Σ weight w wᵀ of four blocks: one load and store of a sum for all four."""
    stride = size * LANES
    f0, f1 = load(factors, 0), load(factors, LANES)
    f2, f3 = load(factors, 2 * LANES), load(factors, 3 * LANES)
    b0, b1 = load(weights, 0), load(weights, LANES)
    b2, b3 = load(weights, 2 * LANES), load(weights, 3 * LANES)
    at = 0
    for i in range(size):
        c = i * LANES
        y0, y1 = load(w, c), load(w, stride + c)
        y2, y3 = load(w, 2 * stride + c), load(w, 3 * stride + c)
        store(total, c, load(total, c) + f0 * y0 + f1 * y1 + f2 * y2 + f3 * y3)
        if matrix:
            y0, y1, y2, y3 = b0 * y0, b1 * y1, b2 * y2, b3 * y3
            for j in range(i + 1):
                c = j * LANES
                sums = load(gram, at) + y0 * load(w, c) + y1 * load(w, stride + c)
                sums += y2 * load(w, 2 * stride + c) + y3 * load(w, 3 * stride + c)
                store(gram, at, sums)
                at += LANES


@kernel
def _block_sums(values, base, count, segments, first, last, squared_radius, mode, out):
    size = base.shape[1]
    stride = size * LANES
    blocks = (count + LANES - 1) // LANES
    matrix = mode in (_HESSIAN, _MOMENT)
    zero, half, one, limit = splat(0.0), splat(0.5), splat(1.0), splat(1e300)
    lanes = np.empty(LANES)
    tail = _ones(0, count - (blocks - 1) * LANES)
    w = np.empty(_BLOCKS * stride)
    factors, weights = np.empty(_BLOCKS * LANES), np.empty(_BLOCKS * LANES)
    total = np.empty(stride)
    gram = np.empty(size * (size + 1) // 2 * LANES if matrix else 0)
    for item in range(first, last):
        r, s = item // segments, item % segments
        squared, cotangents = zero, zero
        _clear(total, total.size)
        _clear(gram, gram.size)
        start, stop = s * blocks // segments, (s + 1) * blocks // segments
        for k in range(start, stop, _BLOCKS):
            for g in range(_BLOCKS):
                if k + g >= stop:
                    store(factors, g * LANES, zero)
                    store(weights, g * LANES, zero)
                    for j in range(size):
                        store(w, g * stride + j * LANES, zero)
                    continue
                offset = (r * blocks + k + g) * stride
                z = _block_z(values, offset, base, r, size, one)
                side = one
                f, square, cotangent, weight = _near(z)
                if any_greater(z, half):
                    side = select_greater(z, half, -one, one)
                    opposite = _block_z(values, offset, base, r, size, -one)
                    f, square, cotangent, weight = _far(
                        opposite, side, f, square, cotangent, weight
                    )
                if mode == _DISTANCES:
                    at = (k + g) * LANES
                    store(lanes, 0, square)
                    for lane in range(min(LANES, count - at)):
                        out[r, at + lane] = lanes[lane]
                    continue
                present = tail if k + g == blocks - 1 else one
                if mode == _MOMENT:
                    weight = _clipped_weight(f, square, squared_radius)
                    present = select_greater(limit, z, present, zero)
                    weight = select_greater(limit, z, weight, zero)
                squared += square * present
                cotangents += cotangent * present
                store(factors, g * LANES, f * present)
                store(weights, g * LANES, weight * present)
                for j in range(size):
                    short = load(values, offset + j * LANES) - side * base[r, j]
                    if mode == _MOMENT:
                        short = select_greater(limit, z, short, zero)
                    store(w, g * stride + j * LANES, short)
            if mode != _DISTANCES:
                _add_blocks(total, gram, w, factors, weights, size, matrix)
        if mode != _DISTANCES:
            for j in range(size):
                out[item, j] = horizontal_sum(load(total, j * LANES))
            out[item, size] = horizontal_sum(squared)
            out[item, size + 1] = horizontal_sum(cotangents)
        for c in range(gram.size // LANES):
            out[item, size + 2 + c] = horizontal_sum(load(gram, c * LANES))


_UNROLLED_SOURCE = """
def _block_sums_{size}(values, base, count, segments, first, last, squared_radius, mode, out):
    blocks = (count + 7) // 8
    tail = _ones(0, count - (blocks - 1) * 8)
    zero, half, one, limit = splat(0.0), splat(0.5), splat(1.0), splat(1e300)
    for item in range(first, last):
        r, s = item // segments, item % segments
        p# = base[r, #]
        a# = zero
        m#_$ = zero
        squared, cotangents = zero, zero
        for k in range(s * blocks // segments, (s + 1) * blocks // segments):
            x# = load(values, (r * blocks + k) * 8 * {size} + 8 * #)
            w# = x# - p#
            z = zero
            z += w# * w#
            z = 0.25 * z
            f, square, cotangent, weight = _near(z)
            if any_greater(z, half):
                side = select_greater(z, half, -one, one)
                v# = x# + p#
                opposite = zero
                opposite += v# * v#
                f, square, cotangent, weight = _far(
                    0.25 * opposite, side, f, square, cotangent, weight
                )
                w# = select_greater(side, zero, w#, v#)
            if mode == _MOMENT:
                weight = _clipped_weight(f, square, squared_radius)
                weight = select_greater(limit, z, weight, zero)
                w# = select_greater(limit, z, w#, zero)
            present = tail if k == blocks - 1 else one
            squared += square * present
            cotangents += cotangent * present
            f = f * present
            a# += f * w#
            weight = weight * present
            y# = weight * w#
            m#_$ += y# * w$
        out[item, #] = horizontal_sum(a#)
        out[item, {size}] = horizontal_sum(squared)
        out[item, {size} + 1] = horizontal_sum(cotangents)
        if mode != _LOGS:
            out[item, {size} + 2 + # * (# + 1) // 2 + $] = horizontal_sum(m#_$)
"""


def block_kernel(size: int, mode: int = _HESSIAN) -> Any:
    """Return the kernel over packed points of `size` coordinates.

    The kernels take ``(values, base, count, segments, first, last, squared_radius, mode, out)``:
    segments `first` to `last` of all replications, cut into `segments` each. Row i of `out`
    becomes Σ f w, Σ θ², Σ θ cot θ and, unless only logarithms are wanted, the lower triangle of
    Σ weight w wᵀ over segment i. For distances it has a row for every replication instead.
    """
    return _block_sums if size > _UNROLLED or mode == _DISTANCES else _unrolled(size)


@cache
def _unrolled(size: int) -> Any:
    source = _repeat(_UNROLLED_SOURCE.replace("{size}", str(size)), size)
    return kernel(_compile(source, f"_block_sums_{size}"))


# --- kernels: rows -----------------------------------------------------------------------------


@intrinsic
def _row_totals(typing_context, a, b, c, d, e, f, g, h):
    """Return the eight lane sums of eight vectors."""

    def codegen(context, builder, signature, args):
        # Each round adds the halves of neighbouring groups of lanes and merges two vectors.
        for left, right in (
            ((0, 8, 2, 10, 4, 12, 6, 14), (1, 9, 3, 11, 5, 13, 7, 15)),
            ((0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15)),
            ((0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15)),
        ):
            masks = [ir.Constant(ir.VectorType(ir.IntType(32), LANES), m) for m in (left, right)]
            args = [
                builder.fadd(*(builder.shuffle_vector(u, v, mask) for mask in masks))
                for u, v in zip(args[0::2], args[1::2], strict=True)
            ]
        return args[0]

    return vector(*(vector,) * LANES), codegen


@inner
def _add_gram(gram, group, held, size, padded):
    """Add the products of the first `held` rows to the lower triangle, in tiles of 4 x 8."""
    for i in range(0, size, 4):
        for j in range(0, i + 4, LANES):
            at = i * padded + j
            g0, g1 = load(gram, at), load(gram, at + padded)
            g2, g3 = load(gram, at + 2 * padded), load(gram, at + 3 * padded)
            for k in range(held):
                row = load(group, k * padded + j)
                g0 += group[k * padded + i] * row
                g1 += group[k * padded + i + 1] * row
                g2 += group[k * padded + i + 2] * row
                g3 += group[k * padded + i + 3] * row
            store(gram, at, g0)
            store(gram, at + padded, g1)
            store(gram, at + 2 * padded, g2)
            store(gram, at + 3 * padded, g3)


# Here # runs over the eight rows of a vector of angles. The last vector of a row overlaps the one
# before it; `fresh` marks the coordinates that are new in it.
_ROW_SOURCE = """
def _row_sums(values, base, count, segments, first, last, squared_radius, mode, out):
    size = base.shape[1]
    whole = size // 8 * 8
    padded = (size + 7) // 8 * 8
    lanes = np.empty(8)
    fresh = _ones(whole + 8 - size, 8)
    zero, half, one = splat(0.0), splat(0.5), splat(1.0)
    limit = splat(1e300)
    total = np.empty(padded)
    matrix = mode in (_HESSIAN, _MOMENT)
    group = np.zeros(_ROWS * padded if matrix else 0)
    gram = np.empty(padded * padded if matrix else 0)
    for item in range(first, last):
        r, s = item // segments, item % segments
        stop = (s + 1) * count // segments
        squared, cotangents = zero, zero
        _clear(total, padded)
        _clear(gram, gram.size)
        held = 0
        for i in range(s * count // segments, stop, 8):
            o# = (r * count + min(i + #, stop - 1)) * size
            t# = zero
            for j in range(0, whole, 8):
                p = load(base, r * size + j)
                w# = load(values, o# + j) - p
                t# += w# * w#
            if whole < size:
                p = load(base, r * size + size - 8)
                w# = fresh * (load(values, o# + size - 8) - p)
                t# += w# * w#
            z = 0.25 * _row_totals(t0, t1, t2, t3, t4, t5, t6, t7)
            side = one
            f, square, cotangent, weight = _near(z)
            if any_greater(z, half):
                side = select_greater(z, half, -one, one)
                t# = zero
                for j in range(0, whole, 8):
                    p = load(base, r * size + j)
                    w# = load(values, o# + j) + p
                    t# += w# * w#
                if whole < size:
                    p = load(base, r * size + size - 8)
                    w# = fresh * (load(values, o# + size - 8) + p)
                    t# += w# * w#
                opposite = 0.25 * _row_totals(t0, t1, t2, t3, t4, t5, t6, t7)
                f, square, cotangent, weight = _far(
                    opposite, side, f, square, cotangent, weight
                )
            if mode == _DISTANCES:
                store(lanes, 0, square)
                for lane in range(min(8, stop - i)):
                    out[r, i + lane] = lanes[lane]
                continue
            present = one if stop - i >= 8 else _ones(0, stop - i)
            squared += square * present
            cotangents += cotangent * present
            store(lanes, 0, side)
            s# = splat(lanes[#])
            if mode != _MOMENT:
                store(lanes, 0, f * present)
                f# = splat(lanes[#])
                for j in range(0, whole, 8):
                    p = load(base, r * size + j)
                    sums = load(total, j)
                    sums += f# * (load(values, o# + j) - s# * p)
                    store(total, j, sums)
                if whole < size:
                    p = load(base, r * size + size - 8)
                    sums = load(total, whole)
                    sums += f# * (load(values, o# + size - 8) - s# * p)
                    store(total, whole, sums)
            else:
                weight = _clipped_weight(f, square, squared_radius)
                weight = select_greater(limit, z, weight, zero)
            if matrix:
                store(lanes, 0, z)
                z# = splat(lanes[#])
                store(lanes, 0, vsqrt(weight) * present)
                f# = splat(lanes[#])
                for j in range(0, whole, 8):
                    p = load(base, r * size + j)
                    w# = f# * (load(values, o# + j) - s# * p)
                    store(group, (held + #) * padded + j, select_greater(limit, z#, w#, zero))
                if whole < size:
                    p = load(base, r * size + size - 8)
                    w# = f# * (load(values, o# + size - 8) - s# * p)
                    at# = (held + #) * padded + size - 8
                    store(group, at#, select_greater(limit, z#, w#, zero))
                held += 8
                if held == _ROWS or i + 8 >= stop:
                    _add_gram(gram, group, held, size, padded)
                    held = 0
        if mode != _DISTANCES:
            for j in range(size):
                out[item, j] = total[j if j < whole else j + padded - size]
            out[item, size] = horizontal_sum(squared)
            out[item, size + 1] = horizontal_sum(cotangents)
        if matrix:
            for j in range(size * padded):
                out[item, size + 2 + j] = gram[j]
"""


_row_sums = kernel(_compile(_repeat(_ROW_SOURCE, LANES), "_row_sums"))
