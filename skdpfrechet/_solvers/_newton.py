"""Damped Newton iteration in normal coordinates, for spheres, hyperbolic and general spaces."""

from __future__ import annotations

import numpy as np

from skdpfrechet._numerics import Array, eigh
from skdpfrechet.manifolds import Manifold

_PATIENCE = 4  # passes without progress after which rounding is taken to have stopped us
_SLACK = 1e-9  # relative: the mean may lie on the boundary of the ball, up to rounding


class NewtonProblem:
    """Samples on one space, and the ball to which their means are confined."""

    def __init__(self, manifold: Manifold, points: Array, start: Array, radius: float) -> None:
        self.manifold, self.points, self.start, self.radius = manifold, points, start, radius
        self.point_ndim = len(manifold.point_shape)
        self.batch = points.shape[: points.ndim - self.point_ndim - 1]

    def select(self, mask: Array, p: Array, q: Array) -> Array:
        return np.where(mask.reshape(*mask.shape, *(1,) * self.point_ndim), p, q)

    def evaluate(self, p: Array) -> tuple[Array, Array, Array]:
        """Return gradient, objective and Hessian of the half mean squared distance at p."""
        axis = p.ndim - self.point_ndim
        c = self.manifold.log_coords(np.expand_dims(p, axis), self.points)
        hessian = self.manifold.mean_squared_distance_hessian(p, c) / 2
        return c.mean(axis=-2), (c * c).sum(axis=-1).mean(axis=-1) / 2, hessian

    def inside(self, p: Array) -> Array:
        if not np.isfinite(self.radius):
            return np.ones(self.batch, dtype=bool)
        return np.asarray(self.manifold.dist(self.start, p) <= self.radius * (1 + _SLACK) + 1e-15)

    def solve(self, begin: Array, tolerance: float, max_iter: int) -> tuple[Array, Array]:
        """Return mean and residual of each sample; the leading axes are independent problems.

        A Newton step that leaves the ball, or lowers neither the objective nor the residual, is
        taken back and replaced by the gradient step, of unit length where the curvature is not
        negative. What is returned is the best point met: its residual may exceed the tolerance.
        """
        p = np.broadcast_to(begin, (*self.batch, *self.manifold.point_shape))
        gradient, objective, hessian = self.evaluate(p)
        residual = np.linalg.norm(gradient, axis=-1)
        best, best_residual = p, residual
        newton_next = np.full(self.batch, True)
        patience = np.zeros(self.batch, dtype=int)
        for _ in range(max_iter):
            active = (best_residual > tolerance) & (patience < _PATIENCE)
            if not active.any():
                break
            step = _steps(gradient, hessian, newton_next)
            candidate = self.manifold.exp_coords(p, step)
            g, f, h = self.evaluate(candidate)
            length = np.linalg.norm(g, axis=-1)
            progress = (f <= objective) | (length < residual)
            accepted = active & self.inside(candidate) & (progress | ~newton_next)
            p = self.select(accepted, candidate, p)
            gradient = np.where(accepted[..., None], g, gradient)
            hessian = np.where(accepted[..., None, None], h, hessian)
            objective = np.where(accepted, f, objective)
            residual = np.where(accepted, length, residual)
            # A refused Newton step is followed by one gradient step from the same point.
            newton_next = accepted | ~newton_next
            improved = accepted & (residual < best_residual)
            best = self.select(improved, p, best)
            best_residual = np.where(improved, residual, best_residual)
            patience = np.where(improved, 0, patience + 1)
        return best, best_residual


def _steps(gradient: Array, hessian: Array, newton: Array) -> Array:
    """Newton steps with the spectrum kept positive, or gradient steps of length 1/smoothness."""
    w, q = eigh(hessian)
    smooth = np.maximum(w[..., -1:], 1.0)
    curvature = np.where(newton[..., None], np.maximum(w, 0.05), smooth)
    rotated = (np.swapaxes(q, -1, -2) @ gradient[..., None])[..., 0] / curvature
    return np.asarray((q @ rotated[..., None])[..., 0])
