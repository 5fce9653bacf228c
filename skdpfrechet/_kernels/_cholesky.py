"""Cholesky factors of many symmetric matrices, eight at a time, one in each lane of a vector."""

from __future__ import annotations

from collections.abc import Callable
from math import log, nan

import numpy as np

from skdpfrechet._kernels._compile import inner, kernel
from skdpfrechet._kernels._threads import run_segments, segment_count
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


def log_cholesky_chart(points: Array, n_jobs: int = 1) -> Array:
    """Return the chart of `skdpfrechet.manifolds.SPDLogCholesky`.

    Parameters
    ----------
    points : ndarray, shape (n, p, p)
        Symmetric matrices, of which the lower triangles are read.
    n_jobs : int

    Returns
    -------
    ndarray, shape (n, p(p+1)/2)
        Columns of the Cholesky factors from the diagonal down, the diagonal on the log scale;
        NaN for a matrix that is not positive definite.
    """
    points = np.ascontiguousarray(points, dtype=np.float64)
    count, size = points.shape[:2]
    out = np.empty((count, size * (size + 1) // 2))
    _run(_chart, points, out, 0.0, n_jobs)
    return out


def positive_definite(points: Array, n_jobs: int = 1) -> Array:
    """Return whether symmetric matrices, shape (n, p, p), are positive definite beyond rounding.

    Of each only the lower triangle is read. The rule is that of the SPD manifolds: all entries
    finite, the diagonal positive, and every Cholesky pivot of the correlation matrix above 4 p
    times the machine epsilon.
    """
    points = np.ascontiguousarray(points, dtype=np.float64)
    count, size = points.shape[:2]
    out = np.empty(count, dtype=np.bool_)
    _run(_positive, points, out, 4 * size * np.finfo(float).eps, n_jobs)
    return out


def _run(
    kernel: Callable[..., None], points: Array, out: Array, threshold: float, n_jobs: int
) -> None:
    count, size = points.shape[:2]
    segments = segment_count(points.size)
    flat = points.reshape(-1)

    def work(first: int, last: int) -> None:
        kernel(flat, count, size, segments, first, last, threshold, out)

    run_segments(work, segments, points.size * (1 + size // LANES), n_jobs)


@inner
def _gather(flat, start, last, size, a):
    """Copy the lower triangles, by rows, of eight matrices into the lanes of `a`.

    The matrix numbered `last` stands in for those after it.
    """
    for lane in range(LANES):
        offset = min(start + lane, last) * size * size
        at = lane
        for i in range(size):
            for j in range(i + 1):
                a[at] = flat[offset + i * size + j]
                at += LANES


@inner
def _factorize(a, size):
    """Overwrite packed lower triangles by their Cholesky factors; return the smallest pivots.

    A pivot that is not positive, or NaN, makes the smallest one 0.
    """
    zero = splat(0.0)
    smallest = splat(1e300)
    for j in range(size):
        row = j * (j + 1) // 2 * LANES
        pivot = load(a, row + j * LANES)
        for k in range(j):
            entry = load(a, row + k * LANES)
            pivot -= entry * entry
        pivot = select_greater(pivot, zero, pivot, zero)
        smallest = vmin(smallest, pivot)
        root = vsqrt(pivot)
        store(a, row + j * LANES, root)
        inverse = 1.0 / root
        for i in range(j + 1, size):
            below = i * (i + 1) // 2 * LANES
            entry = load(a, below + j * LANES)
            for k in range(j):
                entry -= load(a, below + k * LANES) * load(a, row + k * LANES)
            store(a, below + j * LANES, entry * inverse)
    return smallest


@kernel
def _chart(flat, count, size, segments, first, last, threshold, out):
    a = np.empty(size * (size + 1) // 2 * LANES)
    pivots = np.empty(LANES)
    for segment in range(first, last):
        stop = (segment + 1) * count // segments
        for start in range(segment * count // segments, stop, LANES):
            _gather(flat, start, stop - 1, size, a)
            store(pivots, 0, _factorize(a, size))
            for lane in range(min(LANES, stop - start)):
                definite = pivots[lane] > threshold
                at = 0
                for j in range(size):
                    for i in range(j, size):
                        entry = a[(i * (i + 1) // 2 + j) * LANES + lane]
                        if not definite:
                            entry = nan
                        elif i == j:
                            entry = log(entry)
                        out[start + lane, at] = entry
                        at += 1


@kernel
def _positive(flat, count, size, segments, first, last, threshold, out):
    a = np.empty(size * (size + 1) // 2 * LANES)
    pivots, scales = np.empty(LANES), np.empty(size * LANES)
    for segment in range(first, last):
        stop = (segment + 1) * count // segments
        for start in range(segment * count // segments, stop, LANES):
            _gather(flat, start, stop - 1, size, a)
            # Entries times 0 sum to 0; one that is infinite or NaN makes the sum NaN.
            nothing = splat(0.0)
            for i in range(size):
                at = i * (i + 1) // 2 * LANES
                reciprocal = 1.0 / vsqrt(load(a, at + i * LANES))
                store(scales, i * LANES, reciprocal)
                for j in range(i + 1):
                    entry = load(a, at + j * LANES)
                    nothing += 0.0 * entry
                    store(a, at + j * LANES, entry * reciprocal * load(scales, j * LANES))
            smallest = _factorize(a, size)
            store(pivots, 0, select_greater(splat(1.0), nothing, smallest, splat(0.0)))
            for lane in range(min(LANES, stop - start)):
                out[start + lane] = pivots[lane] > threshold


def exactly_symmetric(points: Array, n_jobs: int = 1) -> bool:
    """Return whether all matrices, shape (n, p, p), equal their transposes bit for bit."""
    points = np.ascontiguousarray(points, dtype=np.float64)
    out = np.ones(segment_count(points.size), dtype=np.bool_)
    _run(_symmetric, points, out, 0.0, n_jobs)
    return bool(out.all())


@kernel
def _symmetric(flat, count, size, segments, first, last, threshold, out):
    for segment in range(first, last):
        differences = 0
        for k in range(segment * count // segments, (segment + 1) * count // segments):
            offset = k * size * size
            for i in range(1, size):
                for j in range(i):
                    # No branch: NaN differs from NaN, too.
                    differences += flat[offset + i * size + j] != flat[offset + j * size + i]
        out[segment] = differences == 0
