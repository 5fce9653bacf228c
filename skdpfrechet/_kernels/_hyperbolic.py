"""Sums over the logarithms of points of hyperbolic space, one fused pass over the points.

The boost that takes the base to the origin turns a point into its space part y, as long as
sinh θ; the normal coordinates are ``(θ / sinh θ) y``, in the frame of
`skdpfrechet.manifolds.Hyperbolic`. The boost is linear and is applied to the difference from the
base: the coordinates of points close to it keep all their digits.
"""

from __future__ import annotations

from math import asinh, inf, sqrt

import numpy as np

from skdpfrechet._kernels._compile import kernel
from skdpfrechet._kernels._sphere import LogSums, Packed
from skdpfrechet._kernels._threads import run_segments, segment_count
from skdpfrechet._numerics import Array

_HESSIAN, _MOMENT, _LOGS, _DISTANCES = range(4)  # what a pass computes
_POINT_COST = 16  # of asinh and square roots, in numbers read
_SHORTEST = 1e-300  # square below which a length is 0


def pack(points: Array, n_jobs: int = 1) -> Packed:
    """Return points of the hyperboloid, shape (R, n, d + 1), as the kernels read them."""
    points = np.ascontiguousarray(points, dtype=np.float64)
    replications, count, size = points.shape
    return Packed(points.reshape(-1), replications, count, size, blocked=False)


def log_sums(packed: Packed, base: Array, hessian: bool, n_jobs: int = 1) -> LogSums:
    """Return the sums of the logarithms at `base`, shape (R, d + 1), of the points of each row.

    Other than on spheres the `log`, shape (R, d), and the `hessian`, shape (R, d, d), are in
    normal coordinates; `cotangent` is Σ θ coth θ.
    """
    mode = _HESSIAN if hessian else _LOGS
    sums, squares = _sums(packed, base, mode, inf, n_jobs)
    dim = packed.size - 1
    matrix = None
    if squares is not None:
        matrix = (sums[:, dim + 1, None, None] * np.eye(dim) - squares) / packed.count
    return LogSums(sums[:, :dim], sums[:, dim], sums[:, dim + 1], matrix)


def squared_distances(packed: Packed, base: Array, n_jobs: int = 1) -> Array:
    """Return θ² of every point to the `base`, shape (R, d + 1), of its row: shape (R, n)."""
    out = np.empty((packed.replications, packed.count))
    _pass(packed, base, _DISTANCES, 0.0, out, n_jobs)
    return out


def clipped_moment(packed: Packed, base: Array, radius: float, n_jobs: int = 1) -> Array:
    """Return the uncentred second moment, shape (R, d, d), of clipped normal coordinates.

    Coordinate vectors longer than `radius` are shortened to it; those that are not finite count
    as 0.
    """
    _, squares = _sums(packed, base, _MOMENT, radius, n_jobs)
    return np.asarray(squares) / packed.count


def _pass(packed: Packed, base: Array, mode: int, radius: float, out: Array, n_jobs: int) -> None:
    """Fill a row of `out` for every segment or, with the distances, for every replication."""
    base = np.ascontiguousarray(base, dtype=np.float64)
    segments = segment_count(packed.count * packed.size)
    head = (packed.values, base, packed.count, segments)

    def add(first: int, last: int) -> None:
        _row_sums(*head, first, last, float(radius), mode, out)

    cost = _POINT_COST + packed.size * (packed.size if mode in (_HESSIAN, _MOMENT) else 1)
    points = packed.replications * packed.count
    run_segments(add, packed.replications * segments, points * cost, n_jobs)


def _sums(
    packed: Packed, base: Array, mode: int, radius: float, n_jobs: int
) -> tuple[Array, Array | None]:
    """Return Σ c, Σ θ², Σ θ coth θ, shape (R, d + 2), and Σ weight y yᵀ, shape (R, d, d).

    The weight is that of the Hessian or the squared factor of the clipped logarithm.
    """
    dim = packed.size - 1
    segments = segment_count(packed.count * packed.size)
    matrix = mode in (_HESSIAN, _MOMENT)
    out = np.empty((packed.replications * segments, dim + 2 + dim * dim * matrix))
    _pass(packed, base, mode, radius, out, n_jobs)
    sums = out.reshape(packed.replications, segments, -1).sum(axis=1)
    if not matrix:
        return sums, None
    lower = np.tril(sums[:, dim + 2 :].reshape(-1, dim, dim))
    return sums[:, : dim + 2], lower + np.swapaxes(np.tril(lower, -1), -1, -2)


@kernel
def _row_sums(values, base, count, segments, first, last, radius, mode, out):
    size = base.shape[1]
    dim = size - 1
    matrix = mode in (_HESSIAN, _MOMENT)
    y, p = np.empty(dim), np.empty(dim)
    total = np.empty(dim)
    gram = np.empty(dim * dim if matrix else 0)
    for item in range(first, last):
        r, s = item // segments, item % segments
        time = base[r, 0]
        for j in range(dim):
            p[j] = base[r, j + 1]
            total[j] = 0.0
        for j in range(gram.size):
            gram[j] = 0.0
        squared, cotangents = 0.0, 0.0
        for i in range(s * count // segments, (s + 1) * count // segments):
            row = (r * count + i) * size
            along = 0.0
            for j in range(dim):
                y[j] = values[row + 1 + j] - p[j]
                along += p[j] * y[j]
            along = along / (1.0 + time) - (values[row] - time)
            square = 0.0
            for j in range(dim):
                y[j] += p[j] * along
                square += y[j] * y[j]
            sine = sqrt(square)
            theta = asinh(sine)
            if mode == _DISTANCES:
                out[r, i] = theta * theta
                continue
            if mode == _MOMENT and not square < inf:
                continue
            f = theta / sine if square > _SHORTEST else 1.0
            cotangent = f * sqrt(1.0 + square)
            squared += theta * theta
            cotangents += cotangent
            for j in range(dim):
                total[j] += f * y[j]
            if not matrix:
                continue
            if mode == _MOMENT:
                factor = f * radius / theta if theta > radius else f
                weight = factor * factor
            else:
                # The quotient multiplies y yᵀ, as small as its divisor: cancellation is harmless.
                weight = (cotangent - 1.0) / square if square > _SHORTEST else 0.0
            for j in range(dim):
                left = weight * y[j]
                for k in range(j + 1):
                    gram[j * dim + k] += left * y[k]
        if mode == _DISTANCES:
            continue
        for j in range(dim):
            out[item, j] = total[j]
        out[item, dim] = squared
        out[item, dim + 1] = cotangents
        for j in range(gram.size):
            out[item, dim + 2 + j] = gram[j]
