"""Reading unit vectors once: packing them, with a look at their lengths and at a public ball."""

from __future__ import annotations

from math import cos

import numpy as np

from skdpfrechet._kernels._compile import kernel, short_loops
from skdpfrechet._kernels._sphere import _BLOCKED, Packed, _any_greater, _pieces
from skdpfrechet._kernels._threads import run_segments
from skdpfrechet._kernels._transpose import transpose_eight
from skdpfrechet._kernels._vector import (
    LANES,
    empty_vectors,
    horizontal_sum,
    load,
    select_greater,
    splat,
    store,
    vmax,
    vsqrt,
)
from skdpfrechet._numerics import Array

ROUNDING = 4 * 2.0**-52  # of the length of a vector that needs no division by it
MARGIN = 1e-9  # of the cosine of a point that is certainly inside


def enter(points: Array, center: Array, radius: float, n_jobs: int) -> tuple[Packed, Array, bool]:
    """Pack points, and say which may lie outside a ball and whether all are unit vectors.

    Parameters
    ----------
    points : ndarray, shape (n, D)
    center : ndarray, shape (D,)
    radius : float
    n_jobs : int

    Returns
    -------
    packed : Packed
    outside : ndarray of bool, shape (n,)
        Meaningless unless all are unit vectors.
    certified : bool
        Whether all lengths are 1 up to their rounding.
    """
    points = np.ascontiguousarray(points, dtype=np.float64)
    center = np.ascontiguousarray(center, dtype=np.float64)
    count, size = points.shape
    flat = points.reshape(-1)
    blocked = size <= _BLOCKED
    blocks = -(-count // LANES)
    values = empty_vectors(blocks * size * LANES) if blocked else flat
    outside = np.zeros(blocks * LANES, dtype=np.bool_)
    segments, _ = _pieces(1, count, size)
    certified = np.empty(segments, dtype=np.bool_)
    least = cos(radius) + MARGIN
    kernel = _enter_blocks if blocked else _enter_rows

    def work(first: int, last: int) -> None:
        kernel(flat, center, least, count, segments, first, last, values, outside, certified)

    run_segments(work, segments, 2 * flat.size, n_jobs)
    packed = Packed(values, 1, count, size, blocked)
    return packed, outside[:count], bool(certified.all())


@kernel
def _enter_blocks(points, center, least, count, segments, first, last, values, outside, certified):
    short_loops()
    size = len(center)
    blocks = (count + 7) // 8
    spare, tile = np.zeros(8 * size + 8), np.empty(64)
    lanes = np.empty(8)
    zero, one = splat(0.0), splat(1.0)
    for segment in range(first, last):
        other = zero
        for k in range(segment * blocks // segments, (segment + 1) * blocks // segments):
            source, start = points, 8 * k * size
            if k >= blocks - 2:  # the vectors that are read would go beyond the last point
                for lane in range(8):
                    at = min(8 * k + lane, count - 1) * size
                    for j in range(size):
                        spare[lane * size + j] = points[at + j]
                source, start = spare, 0
            square, cosine = zero, zero
            for low in range(0, size, 8):
                transpose_eight(source, start + low, size, tile, 0)
                for j in range(low, min(low + 8, size)):
                    x = load(tile, (j - low) * 8)
                    store(values, (k * size + j) * 8, x)
                    square += x * x
                    cosine += x * center[j]
            error = vsqrt(square) - 1.0
            error = vmax(error, -error)
            other = select_greater(splat(ROUNDING), error, other, one)  # also where it is NaN
            far = select_greater(cosine, splat(least), zero, one)
            if _any_greater(far, zero):
                store(lanes, 0, far)
                for lane in range(8):
                    outside[8 * k + lane] = lanes[lane] > 0.5
        certified[segment] = horizontal_sum(other) == 0.0


@kernel
def _enter_rows(points, center, least, count, segments, first, last, values, outside, certified):
    size = len(center)
    whole = size // 8 * 8
    for segment in range(first, last):
        within = True
        for i in range(segment * count // segments, (segment + 1) * count // segments):
            square, cosine = splat(0.0), splat(0.0)
            for j in range(0, whole, 8):
                x = load(points, i * size + j)
                square += x * x
                cosine += x * load(center, j)
            length, along = horizontal_sum(square), horizontal_sum(cosine)
            for j in range(whole, size):
                length += points[i * size + j] * points[i * size + j]
                along += points[i * size + j] * center[j]
            within = within and abs(np.sqrt(length) - 1.0) < ROUNDING
            outside[i] = not along > least
        certified[segment] = within
