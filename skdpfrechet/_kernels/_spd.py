"""Sums over matrix logarithms on SPD(p) under the affine-invariant metric, compiled.

Records are packed once (`pack`); every pass then whitens them, Y = W X Wᵀ, and reduces log Y. A
pass is cut into segments of fixed length whose partial sums are added in order: the results do
not depend on the number of threads, bit for bit. A record with |log λ(Y)| beyond `LARGEST_REACH`,
or one that is not finite or not positive definite, is done by ``eigh`` instead. Which way a record
goes, and every bit of its logarithm, depends on the record and the whitener alone.

Shapes: R replications (independent problems) of n records; q = p (p + 1) / 2.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from skdpfrechet._kernels._log_nodes import log_nodes
from skdpfrechet._kernels._spd_blocks import clip_columns, small_moments
from skdpfrechet._kernels._spd_large import large_pass
from skdpfrechet._kernels._spd_load import pack_triangles
from skdpfrechet._kernels._spd_small import LARGEST_SIZE, small_pass
from skdpfrechet._kernels._threads import run, split
from skdpfrechet._kernels._vector import LANES, empty_vectors
from skdpfrechet._numerics import Array, eigh, from_eigen, symmetrize, unvecd, vecd

Accuracy = Literal["fast", "full"]

_CHUNK_ENTRIES = 2**19  # of logarithms held at a time by the passes that need them all
_LARGEST_COMPILED_SIZE = 64  # products of as many pivots must not overflow
_MOMENT_BLOCKS = 128  # of eight records per partial second moment: a second cache holds them
_CLIP_COLUMNS = 2048  # records that a thread clips at a time
_FLAGGED_AT_ONCE = 4096  # records done by ``eigh`` in one call
_TAILS = np.tri(LANES + 1, LANES, -1)  # row m: m ones
_TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class Packed:
    """Records in blocks of eight matrices, lower triangles entry by entry.

    ``blocks[r, k, i, lane]`` is entry i (rows of the lower triangle) of record 8 k + lane. The
    last block is filled up with copies of record 0, which no result counts.
    """

    blocks: Array  # (R, blocks, q, 8)
    count: int  # n
    size: int  # p


class LogSums(NamedTuple):
    """Sums over the n records of each replication."""

    logs: Array  # (R, p, p) Σ log Y
    squares: Array  # (R,) Σ ‖log Y‖²
    spreads: Array  # (R,) Σ (p ‖log Y‖² - (tr log Y)²)


# --- public passes -----------------------------------------------------------------------------


def pack(points: Array, n_jobs: int = 1) -> Packed:
    """Pack symmetric matrices (R, n, p, p), n ≥ 1; of each only the lower triangle is read."""
    samples, count, size, _ = points.shape
    blocks = empty_vectors(samples, -(-count // LANES), size * (size + 1) // 2, LANES)
    pack_triangles(np.ascontiguousarray(points, dtype=float), blocks, n_jobs)
    return Packed(blocks, count, size)


def take(packed: Packed, which: Array) -> Packed:
    """Return the records numbered `which` of the only replication."""
    numbers = np.zeros(-(-len(which) // LANES) * LANES, dtype=np.intp)
    numbers[: len(which)], numbers[len(which) :] = which, which[0]
    blocks = empty_vectors(1, len(numbers) // LANES, packed.blocks.shape[2], LANES)
    block, lane = np.divmod(numbers.reshape(-1, 1, LANES), LANES)
    entry = np.arange(blocks.shape[2])[:, None]
    blocks[0] = packed.blocks[0][block, entry, lane]
    return Packed(blocks, len(which), packed.size)


def log_sums(packed: Packed, whitener: Array, accuracy: Accuracy, n_jobs: int) -> LogSums:
    """Sum log Y, its squared norm and its spread; `whitener` (R, p, p) is lower triangular."""
    return _sum_pass(packed, whitener, accuracy, n_jobs, np.empty(0))


def log_sums_and_distances(packed: Packed, whitener: Array, n_jobs: int) -> tuple[LogSums, Array]:
    """Return the full-accuracy sums and ‖log Y‖² of every record, (R, n), from one pass."""
    samples, blocks, _, _ = packed.blocks.shape
    distances = np.empty((samples, blocks * LANES))
    sums = _sum_pass(packed, whitener, "full", n_jobs, distances)
    return sums, distances[:, : packed.count]


def squared_distances(packed: Packed, whitener: Array, n_jobs: int) -> Array:
    """Return ‖log Y‖² of every record, (R, n)."""
    return log_sums_and_distances(packed, whitener, n_jobs)[1]


def logs(packed: Packed, whitener: Array, n_jobs: int) -> Array:
    """Return vecd(log Y) of every record, (R, n, q)."""
    samples, _, dim, _ = packed.blocks.shape
    result = np.empty((samples, packed.count, dim))
    _, _, order, scales = layout(packed.size)
    for sample, start, triangles in _log_chunks(packed, whitener, n_jobs):
        chunk = triangles.T[: packed.count - start] * scales
        result[sample, start : start + len(chunk)] = chunk[:, order]
    return result


def clipped_moment(
    packed: Packed, whitener: Array, rotation: Array, middle: Array, radius: float, n_jobs: int
) -> Array:
    """Return Σ c cᵀ / n, (R, q, q), of clipped coordinates.

    ``c = vecd(rotationᵀ log(Y) rotation)`` is moved towards `middle` (R, q) until it is no further
    than `radius`; a record whose logarithm is not finite counts as `middle`. `rotation` (R, p, p)
    is orthogonal, so clipping comes first and the moment is rotated afterwards.
    """
    sums = unrotated_moment_sums(packed, whitener, rotation, middle, radius, 0.0, n_jobs)
    return rotated_moment(sums / packed.count, rotation)


def unrotated_moment_sums(
    packed: Packed,
    whitener: Array,
    rotation: Array,
    middle: Array,
    radius: float,
    step: float,
    n_jobs: int,
) -> Array:
    """Return Σ c cᵀ, (R, q, q), of the clipped ``c = vecd(log Y)``: still to be rotated.

    With a `step`, a power of two so large that sums stay below 2^53, c is rounded to integers of
    it and the sums are exact, in units of ``step²``.
    """
    samples, _, dim, _ = packed.blocks.shape
    turn = rotation.swapaxes(-1, -2)
    _, _, order, scales = layout(packed.size)
    centers = np.empty((samples, dim))
    centers[:, order] = vecd(rotation @ unvecd(middle) @ turn)
    radius, step = float(radius), float(step)
    if 2 <= packed.size <= LARGEST_SIZE:
        sums = _small_moments(packed, whitener, scales, centers, radius, step, n_jobs)
    else:
        sums = np.zeros((samples, dim, dim))
        for sample, start, triangles in _log_chunks(packed, whitener, n_jobs):
            clip = functools.partial(clip_columns, triangles, scales, centers[sample], radius, step)
            sums[sample] += _clipped_gram(triangles, clip, packed.count - start, n_jobs)
    return np.asarray(sums[:, order[:, None], order])


def rotated_moment(moment: Array, rotation: Array) -> Array:
    """Return the moment (R, q, q) of ``vecd(rotationᵀ A rotation)`` from that of vecd(A)."""
    turn = rotation.swapaxes(-1, -2)
    for _ in range(2):  # the rows, then the columns
        moment = vecd(turn[:, None] @ unvecd(moment) @ rotation[:, None]).swapaxes(-1, -2)
    return symmetrize(moment)


# --- one pass ----------------------------------------------------------------------------------


def _sum_pass(
    packed: Packed, whitener: Array, accuracy: Accuracy, n_jobs: int, distances: Array
) -> LogSums:
    """Run all segments; `distances` (R, 8 blocks) is filled unless it is empty."""
    samples, blocks, dim, _ = packed.blocks.shape
    length = _segment_blocks(packed.size)
    segments = samples * -(-blocks // length)
    sums = np.zeros((segments, dim + 2))
    flags = np.zeros((samples, blocks), dtype=np.uint8)
    kernel = _kernel(packed, whitener, accuracy)

    def task(first: int, last: int) -> None:
        kernel(first, last, length, sums, distances.reshape(-1), np.empty((0, 0)), flags)

    run(split(task, segments, n_jobs), _seconds(packed), n_jobs)
    totals = sums.reshape(samples, -1, dim + 2).sum(axis=1)
    result = LogSums(
        unpack_triangles(totals[:, :dim], packed.size), totals[:, dim], totals[:, dim + 1]
    )
    for r, i, matrices in _flagged_logs(packed, whitener, flags):
        squares = (matrices**2).sum(axis=(-1, -2))
        traces = np.trace(matrices, axis1=-2, axis2=-1)
        np.add.at(result.logs, r, matrices)
        np.add.at(result.squares, r, squares)
        np.add.at(result.spreads, r, packed.size * squares - traces**2)
        if distances.size:
            distances[r, i] = squares
    return result


def _log_chunks(packed: Packed, whitener: Array, n_jobs: int) -> Iterator[tuple[int, int, Array]]:
    """Yield replication, first record and log Y of consecutive records, as (q, columns).

    Lower triangles as they are in `Packed`; columns beyond the last record are meaningless.
    """
    samples, blocks, dim, _ = packed.blocks.shape
    length = max(1, _CHUNK_ENTRIES // (dim * LANES))
    for sample in range(samples):
        for low in range(0, blocks, length):
            high = min(low + length, blocks)
            part = Packed(
                packed.blocks[sample : sample + 1, low:high],
                min(packed.count, high * LANES) - low * LANES,
                packed.size,
            )
            yield sample, low * LANES, _chunk_logs(part, whitener[sample : sample + 1], n_jobs)


def _chunk_logs(packed: Packed, whitener: Array, n_jobs: int) -> Array:
    _, blocks, dim, _ = packed.blocks.shape
    # Rows a power of two apart would share the same few cache lines.
    triangles = np.empty((dim, blocks * LANES + LANES))
    length = _segment_blocks(packed.size)
    segments = -(-blocks // length)
    sums = np.empty((segments, dim + 2))
    flags = np.zeros((1, blocks), dtype=np.uint8)
    kernel = _kernel(packed, whitener, "full")

    def task(first: int, last: int) -> None:
        kernel(first, last, length, sums, np.empty(0), triangles, flags)

    run(split(task, segments, n_jobs), _seconds(packed), n_jobs)
    for _, i, matrices in _flagged_logs(packed, whitener, flags):
        triangles[:, i] = _columns(matrices)
    return triangles


def _small_moments(
    packed: Packed,
    whitener: Array,
    scales: Array,
    centers: Array,
    radius: float,
    step: float,
    n_jobs: int,
) -> Array:
    """Return Σ c cᵀ, (R, q, q), of clipped triangles: coordinates in another order, unrotated."""
    samples, blocks, dim, _ = packed.blocks.shape
    length = _MOMENT_BLOCKS
    pieces = -(-blocks // length)
    moments = np.empty((samples * pieces, dim, dim))
    flags = np.zeros((samples, blocks), dtype=np.uint8)
    kernel = functools.partial(small_moments, *_arguments(packed, whitener, "full"))
    rest = (
        packed.count,
        scales,
        centers,
        radius,
        step,
        np.empty((len(moments), dim + 2)),
        flags,
        moments,
    )

    def task(first: int, last: int) -> None:
        kernel(first, last, length, *rest)

    run(split(task, len(moments), n_jobs), 1.5 * _seconds(packed), n_jobs)
    totals = np.asarray(moments.reshape(samples, pieces, dim, dim).sum(axis=1))
    for r, _, matrices in _flagged_logs(packed, whitener, flags):
        triangles = _columns(matrices)
        for sample in np.unique(r):
            mine = triangles[:, r == sample]
            columns = np.zeros((dim, -(-mine.shape[1] // LANES) * LANES))
            columns[:, : mine.shape[1]] = mine
            clip_columns(columns, scales, centers[sample], radius, step, 0, columns.shape[1])
            columns[:, mine.shape[1] :] = 0.0
            totals[sample] += columns @ columns.T
    return totals


def _columns(matrices: Array) -> Array:
    """Return the lower triangles of (..., p, p) as (q, ...)."""
    size = matrices.shape[-1]
    flat = matrices.reshape(*matrices.shape[:-2], -1)
    return np.moveaxis(flat[..., layout(size).lower], -1, 0)


def _clipped_gram(
    triangles: Array, clip: Callable[[int, int], None], count: int, n_jobs: int
) -> Array:
    """Clip the columns and return Σ c cᵀ of the first `count`."""
    dim, columns = triangles.shape
    count = min(count, columns - LANES)
    pieces = -(-count // _CLIP_COLUMNS)

    def task(first: int, last: int) -> None:
        clip(first * _CLIP_COLUMNS, min(last * _CLIP_COLUMNS, columns - LANES))

    run(split(task, pieces, n_jobs), count * dim * 5e-10, n_jobs)
    records = triangles[:, :count]
    return np.asarray(records @ records.T)


def _kernel(packed: Packed, whitener: Array, accuracy: Accuracy) -> Callable[..., None]:
    """Return the compiled pass with records, whiteners and nodes filled in."""
    size = packed.size
    if not 2 <= size <= _LARGEST_COMPILED_SIZE:
        return _flag_everything
    arguments = _arguments(packed, whitener, accuracy)
    if size <= LARGEST_SIZE:
        return functools.partial(small_pass, *arguments)
    return functools.partial(large_pass, *arguments[1:])


def _arguments(packed: Packed, whitener: Array, accuracy: Accuracy) -> tuple[Any, ...]:
    """Return what all passes over small matrices take first."""
    samples, blocks, _, _ = packed.blocks.shape
    tail = _TAILS[packed.count - (blocks - 1) * LANES]
    triangles = whitener.reshape(samples, -1).take(layout(packed.size).lower, axis=1)
    shape = (0,) * packed.size
    return (shape, packed.blocks, tail, triangles, *log_nodes(accuracy).tables)


def _flag_everything(
    first: int, last: int, length: int, sums: Array, distances: Array, logs: Array, flags: Array
) -> None:
    flags[...] = 255


# --- records the kernels refuse ----------------------------------------------------------------


def _flagged_logs(
    packed: Packed, whitener: Array, flags: Array
) -> Iterator[tuple[Array, Array, Array]]:
    """Yield replications r (m,), records i (m,) and their log Y (m, p, p), by ``eigh``."""
    if not flags.any():
        return
    bits = np.unpackbits(flags, axis=-1, bitorder="little").reshape(len(flags), -1)
    flagged = np.argwhere(bits[:, : packed.count])
    for start in range(0, len(flagged), _FLAGGED_AT_ONCE):
        r, i = flagged[start : start + _FLAGGED_AT_ONCE].T
        records = unpack_triangles(packed.blocks[r, i // LANES, :, i % LANES], packed.size)
        w = whitener[r]
        with np.errstate(all="ignore"):
            white = symmetrize(w @ records @ w.swapaxes(-1, -2))
            values, vectors = eigh(white)
            matrices = from_eigen(np.log(np.maximum(values, _TINY)), vectors)
        yield r, i, matrices


# --- layout ------------------------------------------------------------------------------------


class _Layout(NamedTuple):
    """Index arrays of the lower triangle of p x p matrices, row by row."""

    lower: Array  # (q,) positions in the flat matrix
    entry: Array  # (p, p) where the triangle holds each matrix entry
    vecd: Array  # (q,) where the triangle holds each coordinate of vecd
    scales: Array  # (q,) 1 for diagonal entries, √2 for the others


@functools.cache
def layout(size: int) -> _Layout:
    """Return the index arrays of one size."""
    rows, columns = np.tril_indices(size)
    entry = np.empty((size, size), dtype=np.intp)
    entry[rows, columns] = entry[columns, rows] = np.arange(rows.size)
    scales = np.where(rows == columns, 1.0, np.sqrt(2))
    return _Layout(rows * size + columns, entry, entry[np.triu_indices(size)], scales)


def unpack_triangles(triangles: Array, size: int) -> Array:
    """Return the symmetric matrices of lower triangles along the last axis."""
    return triangles.take(layout(size).entry, axis=-1)


def _segment_blocks(size: int) -> int:
    """Return the number of blocks per partial sum: never a function of the number of threads."""
    return max(4, min(64, 4096 // size**2))


def _seconds(packed: Packed) -> float:
    """Return a rough guess of the time of one pass."""
    samples, blocks, _, _ = packed.blocks.shape
    return float(samples * blocks * LANES * (5e-9 + 2.5e-10 * packed.size**3))
