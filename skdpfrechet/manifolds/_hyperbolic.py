"""Hyperbolic space as the upper sheet of the hyperboloid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from skdpfrechet._numerics import Array, clip_norm
from skdpfrechet._validation import check_positive_integer
from skdpfrechet.manifolds._base import (
    Localization,
    Manifold,
    constant_curvature_frame,
    constant_curvature_mean_hessian,
)

MAX_DISTANCE = 17.0  # cosh²(17) = 1.5e14: beyond it x0² - |x|² = 1 is lost in rounding


@dataclass(frozen=True)
class Hyperbolic(Manifold):
    """Hyperbolic space H^d, curvature -1: points ``(x0, x)`` with ``x0 = sqrt(1 + |x|²)``.

    Parameters
    ----------
    dim : int
        Dimension d ≥ 1; points are vectors of length d + 1 with the time coordinate first.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpfrechet.manifolds import Hyperbolic
    >>> plane = Hyperbolic(2)
    >>> point = plane.exp_coords(plane.origin, np.array([3.0, 4.0]))
    >>> round(float(plane.dist(plane.origin, point)), 12)
    5.0
    """

    dim: int

    def __post_init__(self) -> None:
        check_positive_integer("dim", self.dim)

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self.dim + 1,)

    @property
    def sectional_curvature_bounds(self) -> tuple[float, float]:
        return (0.0, 0.0) if self.dim == 1 else (-1.0, -1.0)

    @property
    def origin(self) -> Array:
        return np.asarray(np.eye(self.dim + 1)[0])

    def exp(self, p: Array, v: Array) -> Array:
        return self.exp_coords(p, self.coords(p, v))

    def exp_coords(self, p: Array, c: Array) -> Array:
        s = np.linalg.norm(c, axis=-1, keepdims=True)
        ratio = np.where(s > 0, np.sinh(s) / np.where(s > 0, s, 1.0), 1.0)
        return self._boost(p, np.asarray(ratio * c))

    def log(self, p: Array, q: Array) -> Array:
        return self.from_coords(p, self.log_coords(p, q))

    def log_coords(self, p: Array, q: Array) -> Array:
        y = self._unboost(p, q)
        length = np.linalg.norm(y, axis=-1, keepdims=True)
        small = length > 0
        ratio = np.where(small, np.arcsinh(length) / np.where(small, length, 1.0), 1.0)
        return np.asarray(ratio * y)

    def inner(self, p: Array, u: Array, v: Array) -> Array:
        return np.asarray((u * v).sum(axis=-1) - 2 * u[..., 0] * v[..., 0])

    def transport(self, p: Array, q: Array, v: Array) -> Array:
        along = self.inner(p, q, v) / (1 - self.inner(p, p, q))
        return np.asarray(v + along[..., None] * (p + q))

    def coords(self, p: Array, v: Array) -> Array:
        return self._unboost(p, v)

    def from_coords(self, p: Array, c: Array) -> Array:
        along = (p[..., 1:] * c).sum(axis=-1, keepdims=True)
        space = c + p[..., 1:] * (along / (1 + p[..., :1]))
        return np.concatenate([np.broadcast_to(along, (*space.shape[:-1], 1)), space], axis=-1)

    def curvature_frame(self, p: Array, v: Array) -> tuple[Array, Array]:
        return constant_curvature_frame(-1.0, self.coords(p, v))

    def mean_squared_distance_hessian(self, p: Array, c: Array) -> Array:
        return constant_curvature_mean_hessian(-1.0, c)

    def violations(self, points: Array, epsilon: float = 2.0**-52) -> Iterator[tuple[Array, str]]:
        square = (points[..., 1:] ** 2).sum(axis=-1)
        yield (
            ~(
                np.abs(points[..., 0] - np.sqrt(1 + square))
                < max(1e-8, 4 * epsilon) * points[..., 0]
            ),
            "points (x0, x) of the hyperboloid, x0 = sqrt(1 + |x|²)",
        )

    def canonical(self, points: Array) -> Array:
        return self._lift(points[..., 1:])

    def saturate(self, p: Array, v: Array) -> Array:
        return self.from_coords(p, clip_norm(self.coords(p, v), MAX_DISTANCE))

    def localize(self, center: Array) -> Localization:
        def to_model(points: Array) -> Array:
            return self._lift(self._unboost(center, points))

        def from_model(points: Array) -> Array:
            return self._boost(center, points[..., 1:])

        return Localization(self, self.origin, to_model, from_model)

    # The boost that takes the origin to p is the isometry behind every map of this file.

    def _boost(self, p: Array, y: Array) -> Array:
        """Move the point with space part `y` by the boost that takes the origin to `p`."""
        lifted = np.sqrt(1 + (y * y).sum(axis=-1, keepdims=True))
        along = (p[..., 1:] * y).sum(axis=-1, keepdims=True)
        return self._lift(y + p[..., 1:] * (along / (1 + p[..., :1]) + lifted))

    @staticmethod
    def _unboost(p: Array, q: Array) -> Array:
        """Return the space part of `q` after the boost that takes `p` to the origin."""
        along = (p[..., 1:] * q[..., 1:]).sum(axis=-1, keepdims=True)
        return np.asarray(q[..., 1:] + p[..., 1:] * (along / (1 + p[..., :1]) - q[..., :1]))

    @staticmethod
    def _lift(x: Array) -> Array:
        return np.concatenate([np.sqrt(1 + (x * x).sum(axis=-1, keepdims=True)), x], axis=-1)
