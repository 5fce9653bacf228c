"""Euclidean norms of many rows, without a temporary copy of them."""

from __future__ import annotations

import numpy as np

from skdpfrechet._kernels._compile import kernel
from skdpfrechet._kernels._threads import run_segments, segment_count
from skdpfrechet._numerics import Array


def row_norms(points: Array, n_jobs: int = 1) -> Array:
    """Return the norms of the rows of `points`, shape (n, D); infinite where squares overflow."""
    points = np.ascontiguousarray(points, dtype=np.float64)
    out = np.empty(len(points))
    segments = segment_count(points.size)

    def work(first: int, last: int) -> None:
        _row_norms(points, segments, first, last, out)

    run_segments(work, segments, 2 * points.size, n_jobs)
    return out


@kernel
def _row_norms(points, segments, first, last, out):
    count, size = points.shape
    for i in range(first * count // segments, last * count // segments):
        total = 0.0
        for j in range(size):
            total += points[i, j] * points[i, j]
        out[i] = np.sqrt(total)
