"""Records ready for passes: what the solver and the estimators ask of them at a base point."""

from __future__ import annotations

import numpy as np

from skdpfrechet._numerics import Array
from skdpfrechet._solvers._moments import local_coordinates, second_moment
from skdpfrechet.manifolds import Manifold


class Sample:
    """Records of one space, and the statistics of them that a fit needs.

    This is the reference in numpy. Compiled samples compute the same from their own layout.

    Parameters
    ----------
    manifold : Manifold
    points : ndarray, shape (..., n, *point_shape)
        The leading axes are independent samples.
    """

    def __init__(self, manifold: Manifold, points: Array) -> None:
        self.manifold = manifold
        self._points = points

    @property
    def points(self) -> Array:
        """The records as an array."""
        return self._points

    @property
    def n(self) -> int:
        """Number of records of one sample."""
        return int(self._points.shape[-len(self.manifold.point_shape) - 1])

    def squared_distances(self, base: Array) -> Array:
        """Return ρ²(base, X_i), shape (n,); NaN where rounding leaves no distance."""
        return np.asarray(self.manifold.dist(base, self.points) ** 2)

    def coordinates(self, base: Array, middle: Array, radius: float) -> Array:
        """Return the logarithms at `base`, shape (n, dim), each within `radius` of `middle`."""
        return local_coordinates(self.manifold, base, self.points, middle, radius)

    def second_moment(self, base: Array, middle: Array, radius: float) -> Array:
        """Return the uncentred second moment of `coordinates`, shape (dim, dim)."""
        return second_moment(self.coordinates(base, middle, radius))
