"""The compiled descent to the affine-invariant Fréchet mean: small matrices between two passes.

The iterate is kept as the Cholesky factor L of P = L Lᵀ through its inverse W, so that a pass
whitens by a triangular matrix. A tangent vector is L V Lᵀ with V symmetric. The step goes to
P' = L E² Lᵀ with E close to exp(V/2); the frame transported along it is L E, the new factor
L' = L chol(E²) differs from it by a rotation O, and what the L-BFGS memory holds is rotated by O.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skdpfrechet._kernels._compile import inner, kernel, short_loops
from skdpfrechet._kernels._log_nodes import allowed_error, log_nodes
from skdpfrechet._kernels._small import (
    add,
    cholesky,
    copy,
    dot,
    invert_lower,
    multiply,
    scale,
    specialize,
)
from skdpfrechet._kernels._spd import Packed, _seconds, _segment_blocks, unpack_triangles
from skdpfrechet._kernels._spd_small import LARGEST_SIZE, small_pass
from skdpfrechet._kernels._threads import run, split
from skdpfrechet._kernels._vector import LANES, horizontal_sum, load, store
from skdpfrechet._numerics import Array

MEMORY = 6
FAST_FROM = 1e-8  # tolerances from which the faster constants, good to 1e-10, are good enough
SPREAD_SECONDS = 4e-4  # of a pass, from which threads repay the steps between passes in Python
PASSES = 5  # of a typical descent
LONGEST_STEP = 4.0  # in the Riemannian norm; the ball condition rarely allows a longer one
PATIENCE = 4  # passes without a smaller residual after which rounding is taken to have stopped us


@inner
def half_exponential(v, out, square, work, argument):
    """Write E close to exp(v / 2) to `out`, symmetric positive definite whatever `v`.

    The Taylor polynomial of degree 4 of exp(v / 2^s), squared s - 1 times: positive for every
    argument, and within 4e-4 of exp where the argument is at most 1/2. A step need not be the exact
    exponential: what counts is that E is the root of the E² that the new factor is made from.
    """
    short_loops()
    size = len(v)
    halvings = 1
    length = np.sqrt(dot(v, v)) / 2
    while length > 0.5:
        length /= 2
        halvings += 1
    shrink = 0.5**halvings
    for i in range(size):
        for j in range(size):
            work[i, j] = v[i, j] * shrink
            argument[i, j] = work[i, j]
    multiply(work, work, square)
    for i in range(size):  # I + A + A² (I/2 + A/6 + A²/24), by parts
        for j in range(size):
            out[i, j] = work[i, j] / 6 + square[i, j] / 24
        out[i, i] += 0.5
    multiply(square, out, work)
    for i in range(size):
        for j in range(i + 1):
            x = (work[i, j] + work[j, i]) / 2 + argument[i, j]
            out[i, j] = x
            out[j, i] = x
        out[i, i] += 1.0
    for _ in range(halvings - 1):
        multiply(out, out, work)
        copy(work, out)


@kernel
def rotate(v, rotation, work):
    """Replace `v` by ``Oᵀ v O``."""
    short_loops()
    size = len(v)
    multiply(v, rotation, work)
    for i in range(size):
        for j in range(size):
            s = 0.0
            for k in range(size):
                s += rotation[k, i] * work[k, j]
            v[i, j] = s


@kernel
def direction(gradient, stiffness, moved, changed, count, weights, out):
    """Write the L-BFGS step to `out`: `gradient` is the mean logarithm, which points downhill.

    The initial scaling is the inverse of the Hessian's trace part, exactly 1 on multiples of the
    identity, and of its average `stiffness` on traceless matrices. `weights` is scratch.
    """
    short_loops()
    size = len(gradient)
    copy(gradient, out)
    oldest = max(0, count - MEMORY)
    for k in range(count - 1, oldest - 1, -1):
        s, y = moved[k % MEMORY], changed[k % MEMORY]
        weights[k % MEMORY] = dot(s, out) / dot(s, y)
        add(out, -weights[k % MEMORY], y)
    trace = 0.0
    for i in range(size):
        trace += out[i, i] / size
    for i in range(size):
        for j in range(size):
            out[i, j] /= stiffness
        out[i, i] += trace - trace / stiffness
    for k in range(oldest, count):
        s, y = moved[k % MEMORY], changed[k % MEMORY]
        add(out, weights[k % MEMORY] - dot(y, out) / dot(s, y), s)
    length = np.sqrt(dot(out, out))
    if length > LONGEST_STEP:
        scale(out, LONGEST_STEP / length)


@kernel
def advance(whitener, step, new_whitener, rotation, scratch):
    """Write the whitener of the point that `step` leads to, and the rotation O of the frame.

    `scratch` has shape (4, p, p). False if rounding spoilt the new factor.
    """
    short_loops()
    root, square, factor, inverse = scratch[0], scratch[1], scratch[2], scratch[3]
    half_exponential(step, root, square, factor, inverse)
    multiply(root, root, square)
    if not cholesky(square, factor):
        return False
    invert_lower(factor, inverse)
    multiply(inverse, whitener, new_whitener)
    size = len(root)
    for i in range(size):  # O = E chol(E²)⁻ᵀ
        for j in range(size):
            s = 0.0
            for k in range(j + 1):
                s += root[i, k] * inverse[j, k]
            rotation[i, j] = s
    return True


@kernel
def lower_triangle(a, out):
    """Write the rows of the lower triangle of `a` to `out`."""
    short_loops()
    at = 0
    for i in range(len(a)):
        for j in range(i + 1):
            out[at] = a[i, j]
            at += 1


@kernel
def collect(sums, flags, count, out):
    """Add the partial sums of one replication in order and write the mean logarithm to `out`.

    Returns Σ‖log‖², Σ(p‖log‖² - (tr log)²) and whether all logarithms are to be trusted.
    """
    short_loops()
    for k in range(len(flags)):
        if flags[k]:
            return np.inf, np.inf, False
    for s in range(1, len(sums)):
        for i in range(sums.shape[1]):
            sums[0, i] += sums[s, i]
    at = 0
    for i in range(len(out)):
        for j in range(i + 1):
            out[i, j] = sums[0, at] / count
            out[j, i] = out[i, j]
            at += 1
    return sums[0, at], sums[0, at + 1], True


@kernel
def arithmetic_mean(blocks, count, out):
    """Write the arithmetic mean of packed matrices."""
    short_loops()
    flat = blocks.reshape(-1)
    width = blocks.shape[1] * 8
    totals = np.zeros(width)
    for k in range(len(blocks) - 1):
        for at in range(0, width, 8):
            store(totals, at, load(totals, at) + load(flat, k * width + at))
    lanes = count - (len(blocks) - 1) * 8
    at = 0
    for i in range(len(out)):
        for j in range(i + 1):
            total = horizontal_sum(load(totals, at * 8))
            for lane in range(lanes):
                total += blocks[len(blocks) - 1, at, lane]
            out[i, j] = total / count
            out[j, i] = total / count
            at += 1


def _run_pass(packed, count, r, whitener, gradient, work):
    """Pass over replication `r`: write the mean logarithm, return what `collect` returns."""
    shape, tail, whiteners, limits, counts, nodes = work[:6]
    length, sums, flags, no_distances, no_logs = work[6:]
    per_sample = len(sums) // len(packed)
    lower_triangle(whitener, whiteners[r])
    flags[r] = 0
    small_pass(
        shape,
        packed,
        tail,
        whiteners,
        limits,
        counts,
        nodes,
        r * per_sample,
        (r + 1) * per_sample,
        length,
        sums,
        no_distances,
        no_logs,
        flags,
    )
    return collect(sums[r * per_sample : (r + 1) * per_sample], flags[r], count, gradient)


run_pass = inner(_run_pass)


def _descend(packed, count, first, last, tolerance, max_iter, means, residuals, work, space):
    """Write the means of replications `first` to `last`; a residual is infinite where this failed.

    The descent starts at the arithmetic mean. Where a step lowers neither the objective nor the
    residual it is halved. The scratch `space` comes from outside: to compile the allocation of an
    array takes longer than most of the functions here.
    """
    short_loops()
    scratch, matrices, moved, changed, weights = space
    gradient, new_gradient, whitener = matrices[0], matrices[1], matrices[2]
    new_whitener, step, rotation = matrices[3], matrices[4], matrices[5]
    size = means.shape[1]
    freedom = max(size * (size + 1) // 2 - 1, 1)
    for r in range(first, last):
        residuals[r] = np.inf
        arithmetic_mean(packed[r], count, scratch[0])
        if not cholesky(scratch[0], scratch[1]):
            continue
        invert_lower(scratch[1], whitener)
        square, spread, trusted = run_pass(packed, count, r, whitener, gradient, work)
        if not trusted:
            continue
        residual = np.sqrt(dot(gradient, gradient))
        pairs, shrink, patience = 0, 1.0, 0
        for _ in range(max_iter):
            if residual <= tolerance or patience >= PATIENCE:
                break
            # x coth x - 1 = x²/3 + ... over pairs of eigenvalues, bent where it is large.
            excess = spread / count / 12 / freedom
            stiffness = 1 + excess / (1 + 0.15 * excess)
            # np.int64: a constant would be compiled for in a version of its own.
            direction(gradient, stiffness, moved, changed, np.int64(pairs), weights, step)
            scale(step, shrink)
            if not advance(whitener, step, new_whitener, rotation, scratch):
                break
            new_square, new_spread, trusted = run_pass(
                packed, count, r, new_whitener, new_gradient, work
            )
            length = np.sqrt(dot(new_gradient, new_gradient)) if trusted else np.inf
            if not trusted or not (new_square < square or length < residual):
                shrink /= 2
                patience += 1
                continue
            patience = 0 if length < residual else patience + 1
            shrink = min(1.0, 2 * shrink)
            for k in range(min(pairs, MEMORY)):
                rotate(moved[k], rotation, scratch[0])
                rotate(changed[k], rotation, scratch[0])
            rotate(step, rotation, scratch[0])
            rotate(gradient, rotation, scratch[0])
            add(gradient, -1.0, new_gradient)
            if dot(step, gradient) > 0.0:
                copy(step, moved[pairs % MEMORY])
                copy(gradient, changed[pairs % MEMORY])
                pairs += 1
            copy(new_whitener, whitener)
            copy(new_gradient, gradient)
            square, spread, residual = new_square, new_spread, length
        invert_lower(whitener, scratch[0])
        for i in range(size):
            for j in range(size):
                total = 0.0
                for k in range(min(i, j) + 1):
                    total += scratch[0, i, k] * scratch[0, j, k]
                means[r, i, j] = total
        residuals[r] = residual


_compiled = kernel(_descend)


def _space(size: int) -> tuple[Array, ...]:
    """Return the scratch arrays of one descent."""
    shape = (size, size)
    memory = [np.empty((MEMORY, *shape)) for _ in range(2)]
    return (np.empty((4, *shape)), np.zeros((6, *shape)), *memory, np.empty(MEMORY))


def _threaded(seconds: float, n_jobs: int) -> Any:
    """Return the same descent in Python, each pass of which is spread over threads."""

    def spread_pass(*arguments: Any) -> None:
        head, (first, last), rest = arguments[:7], arguments[7:9], arguments[9:]

        def part(low: int, high: int) -> None:
            small_pass(*head, first + low, first + high, *rest)

        run(split(part, last - first, n_jobs), seconds, n_jobs)

    run_ = specialize(_run_pass, "run", small_pass=spread_pass)
    return specialize(_descend, "descend", run_pass=run_, short_loops=list)


def mean(packed: Packed, tolerance: float, max_iter: int, n_jobs: int) -> tuple[Array, Array]:
    """Return the means, shape (R, p, p), and their residuals, infinite where the descent failed.

    For sizes with an unrolled kernel. Replications are solved one by one, so no sample influences
    the result of another. The residual counts the error of the rational logarithm: it is at most
    `tolerance` where the descent says so.
    """
    size, replications = packed.size, len(packed.blocks)
    if not 2 <= size <= LARGEST_SIZE:
        raise ValueError(f"size must be from 2 to {LARGEST_SIZE}, got {size}.")
    accuracy = "fast" if tolerance >= FAST_FROM else "full"
    error = size**0.5 * allowed_error(accuracy, 1.0)
    length = _segment_blocks(size)
    per_sample = -(-packed.blocks.shape[1] // length)
    dim = size * (size + 1) // 2
    tail = (np.arange(LANES) < packed.count - (packed.blocks.shape[1] - 1) * LANES).astype(float)
    work = (
        (0,) * size,
        tail,
        np.empty((replications, dim)),
        *log_nodes(accuracy).tables,
        length,
        np.empty((replications * per_sample, dim + 2)),
        np.zeros(packed.blocks.shape[:2], dtype=np.uint8),
        np.empty(0),
        np.empty((0, 0)),
    )
    means, residuals = np.empty((replications, size, size)), np.empty(replications)
    head = (packed.blocks, packed.count)
    rest = (max(tolerance - error, 0.0), max_iter, means, residuals, work)

    def part(first: int, last: int) -> None:
        _compiled(*head, first, last, *rest, _space(size))

    seconds = _seconds(packed)
    # The choice rests on the size alone: the two round differently between passes.
    if replications == 1 and seconds > SPREAD_SECONDS:
        _threaded(seconds, n_jobs)(*head, 0, 1, *rest, _space(size))
    else:
        run(split(part, replications, n_jobs), PASSES * seconds, n_jobs)
    return means, residuals + error


# --- layout ------------------------------------------------------------------------------------


def unpack(packed: Packed) -> Array:
    """Return the packed matrices, shape (R, n, p, p)."""
    replications, _, dim, _ = packed.blocks.shape
    triangles = np.swapaxes(packed.blocks, -1, -2).reshape(replications, -1, dim)
    return unpack_triangles(triangles[:, : packed.count], packed.size)


def arithmetic_means(packed: Packed) -> Array:
    """Return the arithmetic means, shape (R, p, p)."""
    means = np.empty((len(packed.blocks), packed.size, packed.size))
    for blocks, mean in zip(packed.blocks, means, strict=True):
        arithmetic_mean(blocks, packed.count, mean)
    return means
