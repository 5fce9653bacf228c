"""Records ready for passes: what the solver and the estimators ask of them at a base point."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from skdpfrechet import _kernels
from skdpfrechet._numerics import Array, sqrt_pair
from skdpfrechet._solvers._moments import (
    exact_second_moment_sum,
    local_coordinates,
    second_moment,
)
from skdpfrechet._solvers._newton import NewtonProblem
from skdpfrechet._solvers._spd import descend, log_means
from skdpfrechet.manifolds import (
    FlatManifold,
    Hyperbolic,
    Localization,
    Manifold,
    SPDAffineInvariant,
    Sphere,
)

if TYPE_CHECKING:
    from skdpfrechet._solvers._compiled import CompiledSPD, CompiledSphere

Statistic = Callable[["Sample"], tuple[Array, ...]]


def load(manifold: Manifold, points: Array) -> Sample:
    """Return the sample of the fastest kind at hand."""
    if _kernels.compiled() and points.size > 0:
        if isinstance(manifold, Sphere):
            from skdpfrechet._solvers._compiled import CompiledSphere

            return CompiledSphere(manifold, points)
        if isinstance(manifold, Hyperbolic):
            from skdpfrechet._solvers._compiled import CompiledHyperbolic

            return CompiledHyperbolic(manifold, points)
        if _packs(manifold):
            from skdpfrechet._solvers._compiled import CompiledSPD

            return CompiledSPD(manifold, points)
    return Sample(manifold, points)


def enter_ball(
    local: Localization,
    X: Array,
    radius: float,
    log_cap: float,
    admit: Callable[[Array], Array] | None = None,
) -> Sample:
    """Return records as a sample of the model, moved into the ball around its origin.

    What a record becomes, and on which way, depends on that record and on public numbers alone.

    Parameters
    ----------
    local : Localization
    X : ndarray, shape (n, *point_shape)
    radius, log_cap : float
        As for `Manifold.project_to_ball`.
    admit : callable, optional
        Returns records as points of the original space in canonical form, or raises; called with
        those not seen to be such by a compiled pass over all. None: the records are canonical.
    """
    model, origin = local.model, local.origin
    started = _started(local, X, radius, log_cap)
    if started is None:
        points = local.to_model(X if admit is None else admit(X))
        return load(model, model.project_to_ball(points, origin, radius, log_cap))
    sample, unsure = started
    step = _chunk(model)
    for first in range(0, len(unsure), step):
        which = unsure[first : first + step]
        points = X[which] if admit is None else admit(X[which])
        moved = model.project_to_ball(local.to_model(points), origin, radius, log_cap)
        sample.put(which, moved)
    return sample


def _started(
    local: Localization, X: Array, radius: float, log_cap: float
) -> tuple[CompiledSphere | CompiledSPD, Array] | None:
    """Return a compiled sample, and the numbers of the records that still need a look."""
    model = local.model
    if _kernels.compiled() and len(X) > 0:
        if isinstance(model, Sphere):
            from skdpfrechet._solvers._compiled import CompiledSphere

            return CompiledSphere.enter(model, X, local.origin, radius)
        if _packs(model):
            from skdpfrechet._solvers._compiled import CompiledSPD

            return CompiledSPD.enter(local, X, radius, log_cap)
    return None


def _packs(manifold: Manifold) -> TypeGuard[SPDAffineInvariant]:
    return isinstance(manifold, SPDAffineInvariant) and 2 <= manifold.size <= 64


def _chunk(manifold: Manifold) -> int:
    """Return how many records make eight megabytes."""
    return max(1, 2**20 // prod(manifold.point_shape))


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

    def mean(
        self, start: Array, radius: float, tolerance: float, max_iter: int
    ) -> tuple[Array, Array]:
        """Return a point and its residual by the fastest way; the residual may be too large.

        An infinite residual says that there is no point. `start` and `radius` are those of
        `frechet_mean`; what comes out may be outside the ball by rounding.
        """
        if isinstance(self.manifold, FlatManifold):
            axis = self.points.ndim - len(self.manifold.point_shape) - 1
            mean = self.manifold.chart(self.points).mean(axis=axis)
            return self.manifold.chart_inverse(mean), np.zeros(mean.shape[:-1])
        return self.improve(start, start, radius, tolerance, max_iter)

    def improve(
        self, begin: Array, start: Array, radius: float, tolerance: float, max_iter: int
    ) -> tuple[Array, Array]:
        """Do what `mean` does, in numpy and from another point of the ball."""
        if isinstance(self.manifold, SPDAffineInvariant):
            batch = self.points.shape[:-3]
            root, inverse_root = sqrt_pair(np.broadcast_to(begin, (*batch, *begin.shape)))
            return descend(self.log_means, root, inverse_root, tolerance, max_iter)
        return self.newton_problem(start, radius).solve(begin, tolerance, max_iter)

    def mean_log(self, base: Array) -> Array:
        """Return the mean logarithm at `base` of the records of one sample, shape (dim,)."""
        return np.asarray(self.manifold.log_coords(base, self.points).mean(axis=0))

    def reference(self) -> Sample:
        """Return the same records in numpy, where compiled logarithms have errors of their own."""
        return self

    def one(self, index: tuple[int, ...]) -> Sample:
        """Return one of several samples, from the leading axes."""
        return load(self.manifold, self.points[index]) if index else self

    def newton_problem(self, start: Array, radius: float) -> NewtonProblem:
        """Return what Newton's method needs of the records."""
        return NewtonProblem(self.manifold, self.points, start, radius)

    def log_means(self, factor: Array, inverse: Array) -> tuple[Array, ...]:
        """Return what `descend` evaluates, of SPD matrices."""
        return log_means(inverse, self.points)

    def squared_distances(self, base: Array) -> Array:
        """Return ρ²(base, X_i), shape (n,); NaN where rounding leaves no distance."""
        return np.asarray(self.manifold.dist(base, self.points) ** 2)

    def coordinates(self, base: Array, middle: Array, radius: float) -> Array:
        """Return the logarithms at `base`, shape (n, dim), each within `radius` of `middle`."""
        return local_coordinates(self.manifold, base, self.points, middle, radius)

    def second_moment(self, base: Array, middle: Array, radius: float) -> Array:
        """Return the uncentred second moment of `coordinates`, shape (dim, dim)."""
        return second_moment(self.coordinates(base, middle, radius))

    def exact_second_moment(
        self, base: Array, middle: Array, radius: float, step: float
    ) -> tuple[Array, Callable[[Array], Array]]:
        """Return Σ c cᵀ of one sample's coordinates rounded to multiples of `step`, without error.

        The frame may be another than that of `coordinates`, as long as it follows from `base`: what
        is released there is carried to the latter by the function that is returned too.
        """
        return exact_second_moment_sum(self.coordinates(base, middle, radius), step), np.asarray

    def average(self, statistic: Statistic) -> tuple[Array, ...]:
        """Return the means over the records of one sample that `statistic` computes."""
        return statistic(self)

    def total(self, statistic: Statistic) -> tuple[Array, ...]:
        """Return the sums over the records of one sample that `statistic` computes."""
        return statistic(self)
