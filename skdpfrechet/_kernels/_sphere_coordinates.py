"""Normal coordinates of many points of a sphere, clipped, and exact sums of their products.

They refer to the frame of `Sphere`, the reflection that takes the base to an axis, so a point costs
no product with a matrix.
"""

from __future__ import annotations

import numpy as np

from skdpfrechet._kernels._compile import inlined, kernel
from skdpfrechet._kernels._gram import gram, rounded
from skdpfrechet._kernels._sphere import squared_angle
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
from skdpfrechet._numerics import Array, householder

_HELD = 2**16  # coordinates held at a time: a second cache has room for them
_LARGEST_CHUNK = 128  # blocks
_MOST_SUMS = 64  # of products, each with a matrix of its own


def clipped_coordinates(points: Array, base: Array, radius: float, n_jobs: int = 1) -> Array:
    """Return normal coordinates at `base`, shortened to norm `radius`; 0 where not finite.

    Parameters
    ----------
    points : ndarray, shape (n, D)
    base : ndarray, shape (D,)
    radius : float
    n_jobs : int

    Returns
    -------
    ndarray, shape (n, D - 1)
    """
    out = np.empty((1, len(points), len(base) - 1))
    _run(points, base, radius, 0.0, n_jobs, out)
    return out[0]


def rounded_moment_sum(
    points: Array, base: Array, radius: float, step: float, n_jobs: int = 1
) -> Array:
    """Return Σ c cᵀ of these coordinates rounded to integers of `step`, in units of ``step²``.

    With a `step`, a power of two so large that sums stay below 2^53, without error.
    """
    dim = len(base) - 1
    rows = max(dim, 3)
    sums = np.zeros((_segments(points), rows, rows))
    _run(points, base, radius, step, n_jobs, sums)
    return np.asarray(sums.sum(axis=0)[:dim, :dim])


def _segments(points: Array) -> int:
    return min(segment_count(points.size), _MOST_SUMS)


def _run(points: Array, base: Array, radius: float, step: float, n_jobs: int, out: Array) -> None:
    points = np.ascontiguousarray(points, dtype=np.float64)
    count, size = points.shape
    mirror, beta = householder(np.ascontiguousarray(base))
    head = (points.reshape(-1), base.copy(), mirror, float(beta), float(radius), float(step))
    segments = _segments(points)
    length = max(1, min(_HELD // (size * LANES), _LARGEST_CHUNK))

    def work(first: int, last: int) -> None:
        _pass(*head, count, length, segments, first, last, out)

    run_segments(work, segments, count * (20 + size + size * size // 16), n_jobs)


@inlined
def _block_coordinates(x, size, base, mirror, beta, radius, step, c, at, stride):
    """Turn a block of eight points, the vectors of `x`, into vectors `stride` apart in `c`."""
    zero, one, infinite = splat(0.0), splat(1.0), splat(np.inf)
    near, far = zero, zero
    for j in range(size):
        v = load(x, j * LANES)
        near += (v - base[j]) * (v - base[j])
        far += (v + base[j]) * (v + base[j])
    # Close to p the direction comes from q - p, close to -p from q + p: neither cancels.
    side = select_greater(near, far, -one, one)
    square = squared_angle(0.25 * vmin(near, far), side)
    along = zero
    for j in range(size):
        v = load(x, j * LANES) - side * base[j]
        store(x, j * LANES, v)
        along += mirror[j] * v
    along *= beta
    length = zero
    for j in range(1, size):
        v = load(x, j * LANES) - along * mirror[j]
        store(x, j * LANES, v)
        length += v * v
    length = vsqrt(length)
    factor = vmin(vsqrt(square), splat(radius)) / length  # infinite or NaN at ±p
    usable = select_greater(infinite, factor, one, zero)  # what is NaN is not less either
    usable = select_greater(infinite, length, usable, zero)
    for j in range(1, size):
        v = select_greater(usable, zero, load(x, j * LANES) * factor, zero)
        if step > 0:
            v = rounded(v, step)
        store(c, at, v)
        at += stride


@kernel
def _pass(
    points,
    base,
    mirror,  # this and the next: `householder` of the base
    beta,
    radius,
    step,
    count,
    length,  # blocks whose coordinates are held at a time
    segments,
    first,  # segments first, ..., last - 1 are done by this call
    last,
    out,  # without a step (1, n, d) coordinates, with one sums (segments, rows, rows)
):
    size, rows = base.size, max(base.size - 1, 3)  # `gram` wants three
    blocks = (count + LANES - 1) // LANES
    chunks = (blocks + length - 1) // length
    padded = (size + LANES - 1) // LANES * LANES
    spare, x = np.zeros(LANES * (size + 1)), np.empty(padded * LANES)
    # Rows a power of two apart would share the same few cache lines.
    coordinates, products = np.zeros((rows, (length + 1) * LANES)), np.empty((rows, rows))
    c, stride = coordinates.reshape(-1), (length + 1) * LANES
    for segment in range(first, last):
        for chunk in range(segment * chunks // segments, (segment + 1) * chunks // segments):
            low, high = chunk * length, min((chunk + 1) * length, blocks)
            for k in range(low, high):
                source, start = points, LANES * k * size
                if k >= blocks - 2:  # the vectors that are read would go beyond the last point
                    for lane in range(LANES):
                        at = min(LANES * k + lane, count - 1) * size
                        for j in range(size):
                            spare[lane * size + j] = points[at + j]
                    source, start = spare, 0
                for j in range(0, size, LANES):
                    transpose_eight(source, start + j, size, x, j * LANES)
                at = (k - low) * LANES
                _block_coordinates(x, size, base, mirror, beta, radius, step, c, at, stride)
            present, width = min(count - low * LANES, (high - low) * LANES), (high - low) * LANES
            if step > 0:
                coordinates[:, present:width] = 0.0
                gram(coordinates, 0, width, products)
                out[segment] += products
            else:
                for i in range(present):
                    for j in range(size - 1):
                        out[0, low * LANES + i, j] = coordinates[j, i]
