"""The Fréchet mean on spheres: Newton's method, compiled, and L-BFGS in many dimensions."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from skdpfrechet._kernels._compile import kernel, short_loops
from skdpfrechet._kernels._small import cholesky, copy_vector, specialize
from skdpfrechet._kernels._sphere import _HESSIAN, Packed, _pieces, block_kernel, log_sums
from skdpfrechet._kernels._threads import run_segments
from skdpfrechet._kernels._vector import LANES, horizontal_sum, load, store
from skdpfrechet._numerics import Array, angle_between

PATIENCE = 3  # passes without a smaller residual after which rounding is taken to have stopped us
_MEMORY = 6
_SLACK = 1e-9  # relative: the mean may lie on the boundary of the ball, up to rounding


def block_sums(*_: Any) -> None:
    """Stand for the pass: `specialize` puts the kernel of the sphere's size here."""
    raise NotImplementedError


@kernel
def read_sums(sums, base, count, gradient, hessian):
    """Write mean logarithm and mean Hessian of θ²/2, ``base baseᵀ`` added; return Σ θ².

    `sums` are those of a pass: Σ f w, Σ θ², Σ θ cot θ, and the lower triangle of Σ b w wᵀ.
    """
    short_loops()
    size = len(base)
    along = 0.0
    for i in range(size):
        along += sums[i] * base[i]
    at = size + 2
    for i in range(size):
        gradient[i] = (sums[i] - along * base[i]) / count
        for j in range(i + 1):
            hessian[i, j] = sums[at] / count
            hessian[j, i] = hessian[i, j]
            at += 1
    isotropic = sums[size + 1] / count
    quadratic = 0.0
    image = np.zeros(size)
    for i in range(size):
        for j in range(size):
            image[i] += hessian[i, j] * base[j]
        quadratic += image[i] * base[i]
    for i in range(size):  # P (M + c I) P + p pᵀ with P the projection along the base p
        for j in range(size):
            cross = image[i] * base[j] + base[i] * image[j]
            rest = quadratic + 1.0 - isotropic
            hessian[i, j] += base[i] * base[j] * rest - cross
        hessian[i, i] += isotropic
    return sums[size]


@kernel
def solve(factor, b):
    """Solve ``C Cᵀ x = b`` in place for a lower Cholesky factor C."""
    short_loops()
    size = len(b)
    for i in range(size):
        for j in range(i):
            b[i] -= factor[i, j] * b[j]
        b[i] /= factor[i, i]
    for i in range(size - 1, -1, -1):
        for j in range(i + 1, size):
            b[i] -= factor[j, i] * b[j]
        b[i] /= factor[i, i]


@kernel
def walk(base, step, out):
    """Write the point that the geodesic from `base` with velocity `step` reaches."""
    short_loops()
    along = 0.0
    for i in range(len(base)):
        along += step[i] * base[i]
    length = 0.0
    for i in range(len(base)):
        step[i] -= along * base[i]
        length += step[i] * step[i]
    length = np.sqrt(length)
    ratio = np.sin(length) / length if length > 0.0 else 1.0
    norm = 0.0
    for i in range(len(base)):
        out[i] = np.cos(length) * base[i] + ratio * step[i]
        norm += out[i] * out[i]
    norm = np.sqrt(norm)
    for i in range(len(base)):
        out[i] /= norm


@kernel
def norm(v):
    """Return the Euclidean norm."""
    short_loops()
    total = 0.0
    for x in v:
        total += x * x
    return np.sqrt(total)


@kernel
def extrinsic_mean(values, count, replication, out):
    """Write the normalised arithmetic mean of packed points; False where it vanishes."""
    short_loops()
    size = len(out)
    blocks = (count + LANES - 1) // LANES
    totals = np.zeros(size * LANES)
    first = replication * blocks * size * LANES
    last = first + (blocks - 1) * size * LANES
    for at in range(first, last, size * LANES):
        for j in range(0, size * LANES, LANES):
            store(totals, j, load(totals, j) + load(values, at + j))
    for j in range(size):
        total = horizontal_sum(load(totals, j * LANES))
        for lane in range(count - (blocks - 1) * LANES):  # the last block is filled up
            total += values[last + j * LANES + lane]
        out[j] = total
    length = norm(out)
    if not length > 1e-6 * count:
        return False
    for j in range(size):
        out[j] /= length
    return True


@kernel
def row_means(values, count, out):
    """Write the arithmetic means of consecutive points that lie row by row, `count` each."""
    replications, size = out.shape
    whole = size // LANES * LANES
    totals = np.empty(size)
    for r in range(replications):
        for j in range(size):
            totals[j] = 0.0
        for i in range(r * count, (r + 1) * count):
            for j in range(0, whole, LANES):
                store(totals, j, load(totals, j) + load(values, i * size + j))
            for j in range(whole, size):
                totals[j] += values[i * size + j]
        for j in range(size):
            out[r, j] = totals[j] / count


def _descend(
    values, base, count, segments, first, last, start, radius, tolerance, max_iter, residuals, out
):
    """Move `base[r]` to the mean of replication r; its residual is infinite if that failed.

    Only steps that stay in the ball around `start` and lower the objective or the residual are
    taken: nothing else is certified beyond a quarter of a great circle.
    """
    short_loops()
    size = base.shape[1]
    gradient, hessian, factor = np.empty(size), np.empty((size, size)), np.empty((size, size))
    accepted, lost = np.empty(size), np.empty(size)
    for r in range(first, last):
        residuals[r] = np.inf
        if not extrinsic_mean(values, count, r, base[r]):
            continue
        square, residual, patience = np.inf, np.inf, 0
        for _ in range(max_iter):
            # np.int64: a constant would be compiled for in a version of its own.
            mode, low, high = np.int64(_HESSIAN), r * segments, (r + 1) * segments
            block_sums(values, base, count, segments, low, high, 0.0, mode, out)
            for s in range(1, segments):
                for i in range(out.shape[1]):
                    out[r * segments, i] += out[r * segments + s, i]
            new_square = read_sums(out[r * segments], base[r], count, gradient, hessian)
            length = norm(gradient)
            for i in range(size):
                lost[i] = base[r, i] - start[i]
            inside = 2 * np.arcsin(min(1.0, norm(lost) / 2)) <= radius * (1 + _SLACK) + 1e-15
            if not (inside and (new_square <= square or length < residual)):
                # Rounding stops every descent in the end; far from the mean this is a failure.
                if residual < np.inf:
                    copy_vector(accepted, base[r])
                break
            patience = 0 if length < residual else patience + 1
            copy_vector(base[r], accepted)
            square, residual = new_square, length
            if residual <= tolerance or patience >= PATIENCE or not cholesky(hessian, factor):
                break
            solve(factor, gradient)
            walk(accepted, gradient, base[r])
        else:
            copy_vector(accepted, base[r])
        residuals[r] = residual


@cache
def _compiled(size: int) -> Any:
    name = f"_descend_{size}"
    return kernel(specialize(_descend, name, block_sums=block_kernel(size, _HESSIAN)))


def _threaded(size: int, n_jobs: int) -> Any:
    """Return the same descent in Python, each pass of which is spread over threads."""
    kernel = block_kernel(size, _HESSIAN)

    def spread_sums(*arguments: Any) -> None:
        head, (first, last), rest = arguments[:4], arguments[4:6], arguments[6:]
        run_segments(
            lambda low, high: kernel(*head, first + low, first + high, *rest),
            last - first,
            arguments[2] * size * size,
            n_jobs,
        )

    return specialize(_descend, "descend", block_sums=spread_sums, short_loops=list)


def mean(
    packed: Packed, start: Array, radius: float, tolerance: float, max_iter: int, n_jobs: int
) -> tuple[Array, Array]:
    """Return the means, shape (R, D), and their residuals, infinite where the descent failed.

    In few dimensions, where points are blocked, by Newton's method; replications are solved one by
    one, so no sample influences the result of another.
    """
    if not packed.blocked:
        return quasi_newton_mean(packed, start, radius, tolerance, max_iter, n_jobs)
    size, count, replications = packed.size, packed.count, packed.replications
    base, residuals = np.empty((replications, size)), np.empty(replications)
    segments, items = _pieces(replications, count, size)
    out = np.empty((items, size + 2 + size * (size + 1) // 2))
    # The choice rests on the size alone: the two round differently between passes.
    if segments > 4:
        for r in range(replications):
            _threaded(size, n_jobs)(
                packed.values,
                base,
                count,
                segments,
                r,
                r + 1,
                start,
                radius,
                tolerance,
                max_iter,
                residuals,
                out,
            )
        return base, residuals
    descend = _compiled(size)

    def run(first: int, last: int) -> None:
        descend(
            packed.values,
            base,
            count,
            segments,
            first,
            last,
            start,
            radius,
            tolerance,
            max_iter,
            residuals,
            out,
        )

    run_segments(run, replications, 4 * packed.values.size, n_jobs)
    return base, residuals


def quasi_newton_mean(
    packed: Packed, start: Array, radius: float, tolerance: float, max_iter: int, n_jobs: int
) -> tuple[Array, Array]:
    """Return what `mean` returns, for many dimensions: L-BFGS, one vectorised step for all samples.

    The Hessian's average over directions scales the first guess; vectors are carried along each
    step by parallel transport. Steps that do not help are halved, so samples do not wait on others.
    """
    base = np.empty((packed.replications, packed.size))
    row_means(packed.values, packed.count, base)
    base /= np.maximum(np.linalg.norm(base, axis=-1, keepdims=True), 1e-300)
    gradient, square, stiffness = _evaluate(packed, base, n_jobs)
    residual = np.linalg.norm(gradient, axis=-1)
    residual[~_inside(base, start, radius)] = np.inf
    shrink, patience = np.ones(len(base)), np.zeros(len(base), dtype=int)
    memory: list[tuple[Array, Array, Array]] = []
    for _ in range(max_iter):
        active = (residual > tolerance) & (patience < PATIENCE) & np.isfinite(residual)
        if not active.any():
            break
        step = _two_loops(gradient, stiffness, memory) * shrink[:, None]
        step -= (step * base).sum(axis=-1, keepdims=True) * base
        length = np.linalg.norm(step, axis=-1, keepdims=True)
        unit = step / np.maximum(length, 1e-300)
        candidate = np.cos(length) * base + np.sin(length) * unit
        candidate /= np.linalg.norm(candidate, axis=-1, keepdims=True)
        new_gradient, new_square, new_stiffness = _evaluate(packed, candidate, n_jobs)
        norm_ = np.linalg.norm(new_gradient, axis=-1)
        better = (new_square < square) | (norm_ < residual)
        accepted = active & better & _inside(candidate, start, radius)
        patience = np.where(accepted & (norm_ < residual), 0, patience + 1)
        shrink = np.where(accepted, np.minimum(1.0, 2 * shrink), shrink / 2)

        mask = accepted[:, None]
        turn = np.sin(length) * base + (1 - np.cos(length)) * unit

        def carry(v: Array, turn: Array = turn, unit: Array = unit, mask: Array = mask) -> Array:
            return np.where(mask, v - (v * unit).sum(axis=-1, keepdims=True) * turn, v)

        moved = np.where(mask, carry(step), 0.0)
        changed = np.where(mask, carry(gradient) - new_gradient, 0.0)
        product = (moved * changed).sum(axis=-1)
        rho = np.where(product > 0, 1 / np.where(product > 0, product, 1.0), 0.0)
        memory = [(carry(s), carry(y), w) for s, y, w in memory[-_MEMORY + 1 :]]
        memory.append((moved, changed, rho))
        base = np.where(mask, candidate, base)
        gradient = np.where(mask, new_gradient, gradient)
        square, residual = (
            np.where(accepted, new_square, square),
            np.where(accepted, norm_, residual),
        )
        stiffness = np.where(accepted, new_stiffness, stiffness)
    return base, residual


def _evaluate(packed: Packed, base: Array, n_jobs: int) -> tuple[Array, Array, Array]:
    sums = log_sums(packed, base, False, n_jobs)
    dim = packed.size - 1
    stiffness = (1 + (dim - 1) * sums.cotangent / packed.count) / dim
    return sums.log / packed.count, sums.squared_distance, np.maximum(stiffness, 0.1)


def _inside(p: Array, start: Array, radius: float) -> Array:
    return np.asarray(angle_between(start, p) <= radius * (1 + _SLACK) + 1e-15)


def _two_loops(
    gradient: Array, stiffness: Array, memory: list[tuple[Array, Array, Array]]
) -> Array:
    v, weights = gradient, []
    for moved, changed, rho in reversed(memory):
        weights.append(rho * (moved * v).sum(axis=-1))
        v = v - weights[-1][:, None] * changed
    v = v / stiffness[:, None]
    for (moved, changed, rho), weight in zip(memory, reversed(weights), strict=True):
        beta = rho * (changed * v).sum(axis=-1)
        v = v + (weight - beta)[:, None] * moved
    return np.asarray(v)
