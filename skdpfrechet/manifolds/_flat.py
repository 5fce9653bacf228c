"""Euclidean space, and spaces that a global chart makes Euclidean."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from skdpfrechet._numerics import Array
from skdpfrechet._validation import check_positive_integer
from skdpfrechet.manifolds._base import Localization, Manifold


class FlatManifold(Manifold):
    """A space that `chart` maps isometrically onto R^dim; geodesics are straight lines there.

    The frame at p is the constant basis of R^dim pulled back, hence parallel everywhere.
    """

    @abstractmethod
    def chart(self, points: Array) -> Array:
        """Return the global coordinates ``(..., dim)`` of points."""

    @abstractmethod
    def chart_inverse(self, x: Array) -> Array:
        """Return the points with global coordinates `x`."""

    def chart_many(self, points: Array) -> Array:
        """Return `chart` of many records, up to 1e-12, by the fastest means at hand."""
        return self.chart(points)

    @property
    def sectional_curvature_bounds(self) -> tuple[float, float]:
        return (0.0, 0.0)

    def exp(self, p: Array, v: Array) -> Array:
        return self.exp_coords(p, self.coords(p, v))

    def exp_coords(self, p: Array, c: Array) -> Array:
        return self.chart_inverse(self.chart(p) + c)

    def log(self, p: Array, q: Array) -> Array:
        return self.from_coords(p, self.log_coords(p, q))

    def log_coords(self, p: Array, q: Array) -> Array:
        return np.asarray(self.chart(q) - self.chart(p))

    def inner(self, p: Array, u: Array, v: Array) -> Array:
        return np.asarray((self.coords(p, u) * self.coords(p, v)).sum(axis=-1))

    def transport(self, p: Array, q: Array, v: Array) -> Array:
        return self.from_coords(q, self.coords(p, v))

    def curvature_frame(self, p: Array, v: Array) -> tuple[Array, Array]:
        c = self.coords(p, v)
        return np.zeros_like(c), np.broadcast_to(np.eye(self.dim), (*c.shape, self.dim))

    def mean_squared_distance_hessian(self, p: Array, c: Array) -> Array:
        return np.broadcast_to(2 * np.eye(self.dim), (*c.shape[:-2], self.dim, self.dim))

    def localize(self, center: Array) -> Localization:
        shift = self.chart(center)

        def to_model(points: Array) -> Array:
            return self.chart_many(points) - shift

        def from_model(x: Array) -> Array:
            return self.chart_inverse(x + shift)

        return Localization(Euclidean(self.dim), np.zeros(self.dim), to_model, from_model)


@dataclass(frozen=True)
class Euclidean(FlatManifold):
    """R^d with its usual metric.

    Parameters
    ----------
    dim : int
        Dimension d ≥ 1.

    Examples
    --------
    >>> from skdpfrechet.manifolds import Euclidean
    >>> Euclidean(3).origin
    array([0., 0., 0.])
    """

    dim: int

    def __post_init__(self) -> None:
        check_positive_integer("dim", self.dim)

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self.dim,)

    @property
    def origin(self) -> Array:
        return np.zeros(self.dim)

    def chart(self, points: Array) -> Array:
        return points

    def chart_inverse(self, x: Array) -> Array:
        return x

    def coords(self, p: Array, v: Array) -> Array:
        return v

    def from_coords(self, p: Array, c: Array) -> Array:
        return np.broadcast_to(c, np.broadcast_shapes(np.shape(p), np.shape(c)))

    def violations(self, points: Array, epsilon: float = 2.0**-52) -> Iterator[tuple[Array, str]]:
        yield np.asarray(~np.isfinite(points).all(axis=-1)), "finite numbers"
