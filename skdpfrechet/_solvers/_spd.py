"""Affine-invariant Fréchet mean of SPD matrices: preconditioned L-BFGS in a moving frame.

The iterate is kept as a factor, P = G Gᵀ. A tangent vector is G V Gᵀ with V symmetric, the step is
G <- G exp(V/2), and V does not change under parallel transport along it: the L-BFGS memory needs
no transport at all.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skdpfrechet._numerics import Array, eigh, from_eigen, hessian_ratio, symmetrize

_MEMORY = 6
_PATIENCE = 5  # passes without progress after which rounding is taken to have stopped us
_TINY = np.finfo(float).tiny


Evaluate = Callable[[Array, Array], tuple[Array, ...]]


def descend(
    evaluate: Evaluate, factor: Array, inverse: Array, tolerance: float, max_iter: int
) -> tuple[Array, Array]:
    """Return mean and residual of each problem, from factors G and G⁻¹ of the starting points.

    ``evaluate(G, G⁻¹)`` returns the mean logarithm in the frame of G, half the mean squared
    distance, and the stiffness, the average of the Hessian of the latter over traceless directions.
    """
    batch = factor.shape[:-2]
    gradient, objective, stiffness = evaluate(factor, inverse)
    residual = _norm(gradient)
    best, best_residual = factor, residual
    scale = np.ones(batch)
    patience = np.zeros(batch, dtype=int)
    memory: list[tuple[Array, Array, Array]] = []
    for _ in range(max_iter):
        active = (best_residual > tolerance) & (patience < _PATIENCE)
        if not active.any():
            break
        step = _direction(gradient, stiffness, memory) * scale[..., None, None]
        half, half_inverse = _half_exponentials(step)
        new_factor, new_inverse = factor @ half, half_inverse @ inverse
        g, f, s = evaluate(new_factor, new_inverse)
        length = _norm(g)
        accepted = active & ((f < objective) | (length < residual))
        mask = accepted[..., None, None]
        # A refused step is halved; the memory that proposed it stays with the other problems.
        scale = np.where(accepted, np.minimum(1.0, 2 * scale), np.where(active, scale / 2, scale))
        change = np.where(mask, gradient - g, 0.0)
        moved = np.where(mask, step, 0.0)
        product = (moved * change).sum(axis=(-1, -2))
        useful = product > 0
        memory = [
            *memory[-_MEMORY + 1 :],
            (moved, change, np.where(useful, 1 / np.where(useful, product, 1.0), 0.0)),
        ]
        factor, inverse = np.where(mask, new_factor, factor), np.where(mask, new_inverse, inverse)
        gradient, stiffness = np.where(mask, g, gradient), np.where(accepted, s, stiffness)
        objective, residual = np.where(accepted, f, objective), np.where(accepted, length, residual)
        improved = accepted & (residual < best_residual)
        best = np.where(improved[..., None, None], factor, best)
        best_residual = np.where(improved, residual, best_residual)
        patience = np.where(improved, 0, patience + 1)
    return symmetrize(best @ np.swapaxes(best, -1, -2)), best_residual


def log_means(inverse: Array, points: Array) -> tuple[Array, Array, Array]:
    """Return the mean log, half the mean squared distance and the mean stiffness.

    The stiffness is the trace of a record's Hessian of ½ρ² on traceless directions, per direction:
    on the trace direction every Hessian is exactly 1.
    """
    carrier = inverse[..., None, :, :]
    white = symmetrize(carrier @ points @ np.swapaxes(carrier, -1, -2))
    w, q = eigh(white)
    logs = np.log(np.maximum(w, _TINY))
    gradient = symmetrize(((q * logs[..., None, :]) @ np.swapaxes(q, -1, -2)).mean(axis=-3))
    size = logs.shape[-1]
    rows, columns = np.triu_indices(size, 1)
    ratios = hessian_ratio(-((logs[..., rows] - logs[..., columns]) ** 2) / 4)
    count = max(size * (size + 1) // 2 - 1, 1)
    stiffness = (ratios.sum(axis=-1).mean(axis=-1) + size - 1) / count if size > 1 else 1.0
    objective = (logs * logs).sum(axis=-1).mean(axis=-1) / 2
    return gradient, objective, np.broadcast_to(stiffness, objective.shape)


def _precondition(v: Array, stiffness: Array) -> Array:
    size = v.shape[-1]
    trace = np.trace(v, axis1=-2, axis2=-1)[..., None, None] / size * np.eye(size)
    return np.asarray(trace + (v - trace) / stiffness[..., None, None])


def _direction(
    gradient: Array, stiffness: Array, memory: list[tuple[Array, Array, Array]]
) -> Array:
    """Two-loop recursion; the mean log is minus the gradient, so the result points downhill."""
    v = gradient
    weights = []
    for moved, change, rho in reversed(memory):
        alpha = rho * (moved * v).sum(axis=(-1, -2))
        v = v - alpha[..., None, None] * change
        weights.append(alpha)
    v = _precondition(v, stiffness)
    for (moved, change, rho), alpha in zip(memory, reversed(weights), strict=True):
        beta = rho * (change * v).sum(axis=(-1, -2))
        v = v + (alpha - beta)[..., None, None] * moved
    return np.asarray(v)


def _half_exponentials(v: Array) -> tuple[Array, Array]:
    w, q = eigh(v)
    w = np.clip(w, -60, 60)
    return from_eigen(np.exp(w / 2), q), from_eigen(np.exp(-w / 2), q)


def _norm(v: Array) -> Array:
    return np.asarray(np.sqrt((v * v).sum(axis=(-1, -2))))
