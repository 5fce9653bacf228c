"""Reading unit vectors once: packing them, with a look at their lengths and at a public ball."""

from __future__ import annotations

from math import cos

import numpy as np

from skdpfrechet._kernels._compile import kernel, short_loops
from skdpfrechet._kernels._sphere import _BLOCKED, Packed, _pieces
from skdpfrechet._kernels._threads import run_segments
from skdpfrechet._kernels._transpose import transpose_eight
from skdpfrechet._kernels._vector import (
    LANES,
    any_greater,
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


def enter(points: Array, center: Array, radius: float, n_jobs: int) -> tuple[Packed, Array]:
    """Pack points, and say which are not certainly unit vectors inside a ball.

    Parameters
    ----------
    points : ndarray, shape (n, D)
    center : ndarray, shape (D,)
    radius : float
    n_jobs : int

    Returns
    -------
    packed : Packed
    unsure : ndarray of bool, shape (n,)
        False for points whose length is 1 up to its rounding and which are well inside.
    """
    points = np.ascontiguousarray(points, dtype=np.float64)
    center = np.ascontiguousarray(center, dtype=np.float64)
    count, size = points.shape
    flat = points.reshape(-1)
    blocked = size <= _BLOCKED
    blocks = -(-count // LANES)
    values = empty_vectors(blocks * size * LANES) if blocked else flat
    unsure = np.zeros(blocks * LANES, dtype=np.bool_)
    segments, _ = _pieces(1, count, size)
    least = cos(radius) + MARGIN
    kernel = _enter_blocks if blocked else _enter_rows

    def work(first: int, last: int) -> None:
        kernel(flat, center, least, count, segments, first, last, values, unsure)

    run_segments(work, segments, 2 * flat.size, n_jobs)
    return Packed(values, 1, count, size, blocked), unsure[:count]


@kernel
def _enter_blocks(points, center, least, count, segments, first, last, values, unsure):
    short_loops()
    size = len(center)
    blocks = (count + 7) // 8
    spare, tile = np.zeros(8 * size + 8), np.empty(64)
    lanes = np.empty(8)
    zero, one = splat(0.0), splat(1.0)
    for segment in range(first, last):
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
            other = select_greater(cosine, splat(least), zero, one)
            other = select_greater(splat(ROUNDING), error, other, one)  # also where it is NaN
            if any_greater(other, zero):
                store(lanes, 0, other)
                for lane in range(8):
                    unsure[8 * k + lane] = lanes[lane] > 0.5


@kernel
def _enter_rows(points, center, least, count, segments, first, last, values, unsure):
    size = len(center)
    whole = size // 8 * 8
    for segment in range(first, last):
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
            unsure[i] = not (abs(np.sqrt(length) - 1.0) < ROUNDING and along > least)
