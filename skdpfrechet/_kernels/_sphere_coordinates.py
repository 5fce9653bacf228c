"""Normal coordinates of many points of a sphere, clipped, for sums that must be exact."""

from __future__ import annotations

from math import atan2, sqrt

import numpy as np

from skdpfrechet._kernels._compile import kernel
from skdpfrechet._kernels._threads import run_segments, segment_count
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
    out = np.empty((len(points), len(frame)))
    segments = segment_count(points.size)

    def work(first: int, last: int) -> None:
        _clipped_coordinates(points, base, frame, radius, segments, first, last, out)

    run_segments(work, segments, 20 * len(points) + points.size * (len(frame) + 2), n_jobs)
    return out


@kernel
def _clipped_coordinates(points, base, frame, radius, segments, first, last, out):
    count, size = points.shape
    dim = len(frame)
    for i in range(first * count // segments, last * count // segments):
        near = 0.0
        far = 0.0
        for j in range(size):
            near += (points[i, j] - base[j]) ** 2
            far += (points[i, j] + base[j]) ** 2
        # Close to p the direction comes from q - p, close to -p from q + p: neither cancels.
        side = 1.0 if near <= far else -1.0
        square = 0.0
        for k in range(dim):
            along = 0.0
            for j in range(size):
                along += frame[k, j] * (points[i, j] - side * base[j])
            out[i, k] = along
            square += along * along
        length = sqrt(square)
        angle = min(2 * atan2(sqrt(near), sqrt(far)), radius)
        # Written so that a NaN gives 0 too.
        factor = angle / length if 0 < length < np.inf else 0.0
        for k in range(dim):
            out[i, k] = out[i, k] * factor if factor > 0 else 0.0
