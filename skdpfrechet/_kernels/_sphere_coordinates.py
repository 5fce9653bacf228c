"""Normal coordinates of many points of a sphere, clipped, for sums that must be exact."""

from __future__ import annotations

import numpy as np

from skdpfrechet._kernels._compile import kernel
from skdpfrechet._kernels._sphere import either
from skdpfrechet._kernels._threads import run_segments, segment_count
from skdpfrechet._kernels._transpose import transpose_eight
from skdpfrechet._kernels._vector import (
    LANES,
    load,
    select_greater,
    splat,
    store,
    vmin,
    vsqrt,
)
from skdpfrechet._numerics import Array


def clipped_coordinates(
    points: Array, base: Array, frame: Array, radius: float, n_jobs: int = 1
) -> Array:
    """Return normal coordinates at `base`, shortened to norm `radius`; 0 where not finite.

    Parameters
    ----------
    points : ndarray, shape (n, D)
    base : ndarray, shape (D,)
    frame : ndarray, shape (d, D)
        Orthonormal basis of the tangent space, in rows.
    radius : float
    n_jobs : int

    Returns
    -------
    ndarray, shape (n, d)
    """
    points = np.ascontiguousarray(points, dtype=np.float64)
    base, frame = np.ascontiguousarray(base), np.ascontiguousarray(frame)
    count, flat, radius = len(points), points.reshape(-1), float(radius)
    out = np.empty((count, len(frame)))
    segments = segment_count(points.size)

    def work(first: int, last: int) -> None:
        _clipped_coordinates(flat, base, frame, radius, count, segments, first, last, out)

    run_segments(work, segments, 20 * len(points) + points.size * (len(frame) + 2), n_jobs)
    return out


@kernel
def _clipped_coordinates(points, base, frame, radius, count, segments, first, last, out):
    dim, size = frame.shape
    blocks = (count + LANES - 1) // LANES
    padded = (size + LANES - 1) // LANES * LANES
    spare, x, c = np.zeros(LANES * (size + 1)), np.empty(padded * LANES), np.empty(dim * LANES)
    zero, one, longest = splat(0.0), splat(1.0), splat(radius)
    for k in range(first * blocks // segments, last * blocks // segments):
        source, start = points, LANES * k * size
        if k >= blocks - 2:  # the vectors that are read would go beyond the last point
            for lane in range(LANES):
                at = min(LANES * k + lane, count - 1) * size
                for j in range(size):
                    spare[lane * size + j] = points[at + j]
            source, start = spare, 0
        for low in range(0, size, LANES):
            transpose_eight(source, start + low, size, x, low * LANES)
        near, far = zero, zero
        for j in range(size):
            v = load(x, j * LANES)
            near += (v - base[j]) * (v - base[j])
            far += (v + base[j]) * (v + base[j])
        # Close to p the direction comes from q - p, close to -p from q + p: neither cancels.
        side = select_greater(near, far, -one, one)
        _, square, _, _ = either(0.25 * vmin(near, far), side)
        length = zero
        for j in range(size):
            at = j * LANES
            store(x, at, load(x, at) - side * base[j])
        for i in range(dim):
            along = zero
            for j in range(size):
                along += frame[i, j] * load(x, j * LANES)
            store(c, i * LANES, along)
            length += along * along
        length = vsqrt(length)
        factor = vmin(vsqrt(square), longest) / length  # infinite or NaN at ±p
        infinite = splat(np.inf)  # what is NaN is not less either
        usable = select_greater(infinite, length, select_greater(infinite, factor, one, zero), zero)
        for i in range(dim):
            v = select_greater(usable, zero, load(c, i * LANES) * factor, zero)
            store(c, i * LANES, v)
        for lane in range(min(LANES, count - k * LANES)):
            for i in range(dim):
                out[k * LANES + lane, i] = c[i * LANES + lane]
