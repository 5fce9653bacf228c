"""Second moments of logarithms: clipping, and products in the first caches."""

from __future__ import annotations

import numpy as np

from skdpfrechet._kernels._compile import kernel, short_loops
from skdpfrechet._kernels._gram import gram, rounded
from skdpfrechet._kernels._spd_small import small_pass
from skdpfrechet._kernels._vector import load, select_greater, splat, store, vsqrt


@kernel
def clip_columns(triangles, scales, center, radius, step, low, high):
    """Turn the lower triangles in columns `low` to `high` into clipped coordinates, in place.

    With a `step`, a power of two, coordinates become the integers nearest to their multiples of it.
    """
    short_loops()
    dim, columns = triangles.shape
    zero, one = splat(0.0), splat(1.0)
    for column in range(low, high, 8):
        square = zero
        for i in range(dim):
            v = load(triangles, i * columns + column) * scales[i] - center[i]
            square = square + v * v
        finite = select_greater(splat(np.inf), square, one, zero)
        factor = select_greater(square, splat(radius * radius), radius / vsqrt(square), one)
        for i in range(dim):
            v = load(triangles, i * columns + column) * scales[i] - center[i]
            v = center[i] + select_greater(finite, zero, v * factor, zero)
            if step > 0:
                v = rounded(v, step)
            store(triangles, i * columns + column, v)


@kernel
def small_moments(
    shape,  # this and the next six: see `small_pass`
    packed,
    tail,
    whiteners,
    limits,
    counts,
    nodes,
    first,  # pieces first, ..., last - 1 are done by this call
    last,
    length,  # blocks per piece
    count,
    scales,  # (q,) of the coordinates
    centers,  # (R, q) towards which coordinates are clipped
    radius,
    step,  # 0 or that of `clip_columns`
    sums,  # (pieces, q + 2) for `small_pass`
    flags,  # out (R, blocks) a bit for each lane that was left out
    moments,  # out (pieces, q, q) Σ c cᵀ
):
    """Sum the products of clipped logarithms, which are never written to memory."""
    short_loops()
    blocks, entries = packed.shape[1], packed.shape[2]
    per_sample = (blocks + length - 1) // length
    columns = length * 8 + 8
    logs, nothing = np.empty((entries, columns)), np.empty(0)
    for piece in range(first, last):
        small_pass(
            shape,
            packed,
            tail,
            whiteners,
            limits,
            counts,
            nodes,
            piece,
            piece + 1,
            length,
            sums,
            nothing,
            logs,
            flags,
        )
        sample = piece // per_sample
        low = (piece - sample * per_sample) * length
        high = min(low + length, blocks)
        clip_columns(logs, scales, centers[sample], radius, step, 0, (high - low) * 8)
        for k in range(low, high):
            if flags[sample, k]:
                for lane in range(8):
                    if flags[sample, k] >> lane & 1:
                        for i in range(entries):
                            logs[i, (k - low) * 8 + lane] = 0.0
        for column in range(count - low * 8, (high - low) * 8):
            for i in range(entries):
                logs[i, column] = 0.0
        gram(logs, 0, (high - low) * 8, moments[piece])
