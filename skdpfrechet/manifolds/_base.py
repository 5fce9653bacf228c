"""The `Manifold` interface: geometry of one space, batched over leading axes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skdpfrechet._numerics import Array, clip_norm, hessian_deficit, hessian_ratio, jacobi_ratio


class Manifold(ABC):
    """A complete Riemannian manifold with a closed-form exponential and logarithm.

    Points ``p, q`` have shape ``(..., *point_shape)`` and tangent vectors ``u, v`` the same shape;
    leading axes broadcast. Coordinates ``c`` of tangent vectors refer to `frame`, an orthonormal
    basis that is a fixed function of the base point, and have shape ``(..., dim)``.

    Instances are frozen values: equal parameters, equal manifolds.

    Attributes
    ----------
    dim : int
        Dimension of the manifold.
    point_shape : tuple of int
        Shape of the array that holds one point.
    sectional_curvature_bounds : tuple of float
        Smallest and largest sectional curvature.
    injectivity_radius, diameter : float
        In the units of `dist`; infinite on Hadamard spaces.
    origin : ndarray or None
        A canonical public point, None where the space has none.

    References
    ----------
    .. [1] Lee, "Introduction to Riemannian Manifolds", 2nd ed., Springer, 2018.
    """

    dim: int

    @property
    @abstractmethod
    def point_shape(self) -> tuple[int, ...]:
        """Shape of the array that holds one point."""

    @property
    @abstractmethod
    def sectional_curvature_bounds(self) -> tuple[float, float]:
        """Smallest and largest sectional curvature."""

    @property
    def injectivity_radius(self) -> float:
        """Distance below which every logarithm is unique."""
        return np.inf

    @property
    def diameter(self) -> float:
        """Largest distance between two points."""
        return np.inf

    @property
    def origin(self) -> Array | None:
        """A canonical public point, or None."""
        return None

    # --- the maps ------------------------------------------------------------------------------

    @abstractmethod
    def exp(self, p: Array, v: Array) -> Array:
        """Return the end point of the geodesic that leaves `p` with velocity `v`."""

    @abstractmethod
    def log(self, p: Array, q: Array) -> Array:
        """Return the velocity at `p` of the shortest geodesic to `q`."""

    @abstractmethod
    def inner(self, p: Array, u: Array, v: Array) -> Array:
        """Return the Riemannian inner product of tangent vectors at `p`."""

    def norm(self, p: Array, v: Array) -> Array:
        """Return the length of `v`."""
        return np.asarray(np.linalg.norm(self.coords(p, v), axis=-1))

    def dist(self, p: Array, q: Array) -> Array:
        """Return the geodesic distance."""
        c = self.log_coords(p, q)
        # Scaled by the largest entry: squares of 1e200 overflow although the distance does not.
        scale = np.abs(c).max(axis=-1, initial=0.0)
        scale = np.where((scale > 0) & np.isfinite(scale), scale, 1.0)
        return np.asarray(scale * np.linalg.norm(c / scale[..., None], axis=-1))

    def within(self, p: Array, q: Array, radius: float) -> bool:
        """Return whether two single points are at most `radius` apart; False where NaN."""
        return np.array_equal(p, q) or bool(self.dist(p, q) <= radius)

    @abstractmethod
    def transport(self, p: Array, q: Array, v: Array) -> Array:
        """Carry `v` from `p` to `q` by parallel transport along the shortest geodesic."""

    # --- orthonormal coordinates -----------------------------------------------------------------

    @abstractmethod
    def coords(self, p: Array, v: Array) -> Array:
        """Return the coordinates ``(..., dim)`` of `v` in ``frame(p)``."""

    @abstractmethod
    def from_coords(self, p: Array, c: Array) -> Array:
        """Return the tangent vector at `p` with coordinates `c`."""

    def frame(self, p: Array) -> Array:
        """Return the orthonormal basis at `p`, shape ``(..., dim, *point_shape)``."""
        p = np.asarray(p)
        spread = np.expand_dims(p, axis=p.ndim - len(self.point_shape))
        return self.from_coords(spread, np.eye(self.dim))

    def log_coords(self, p: Array, q: Array) -> Array:
        """Return ``coords(p, log(p, q))``, the normal coordinates of `q` at `p`."""
        return self.coords(p, self.log(p, q))

    def exp_coords(self, p: Array, c: Array) -> Array:
        """Return ``exp(p, from_coords(p, c))``, the inverse of `log_coords`."""
        return self.exp(p, self.from_coords(p, c))

    # --- curvature -------------------------------------------------------------------------------

    @abstractmethod
    def curvature_frame(self, p: Array, v: Array) -> tuple[Array, Array]:
        """Diagonalise the curvature operator ``u -> R(u, v)v`` at `p`.

        Returns
        -------
        kappa : ndarray, shape (..., dim)
            Eigenvalues: sectional curvatures times ``|v|²``.
        E : ndarray, shape (..., dim, dim)
            Orthonormal eigenvectors as columns of coordinates in ``frame(p)``.
        """

    def squared_distance_hessian(self, p: Array, v: Array) -> Array:
        """Return the Hessian at `p` of ρ²(., q) with ``v = log(p, q)``, in ``frame(p)``.

        Valid on locally symmetric spaces, where Jacobi fields have constant coefficients.
        """
        kappa, basis = self.curvature_frame(p, v)
        return _conjugate(2 * hessian_ratio(kappa), basis)

    def mean_squared_distance_hessian(self, p: Array, c: Array) -> Array:
        """Return the average over the axis -2 of the Hessians of ρ² whose logs are `c`."""
        spread = np.expand_dims(p, axis=np.ndim(p) - len(self.point_shape))
        return np.asarray(
            self.squared_distance_hessian(spread, self.from_coords(spread, c)).mean(axis=-3)
        )

    def exp_jacobian(self, p: Array, v: Array) -> Array:
        """Return ``D exp_p`` at `v` as a matrix from ``frame(p)`` to ``frame(exp(p, v))``."""
        kappa, basis = self.curvature_frame(p, v)
        parallel = _conjugate(jacobi_ratio(kappa), basis)
        q = self.exp(p, v)
        axis = -len(self.point_shape) - 1
        ps, qs = np.expand_dims(p, axis), np.expand_dims(q, axis)
        carried = self.coords(qs, self.transport(ps, qs, self.frame(p)))  # rows: transported frame
        return np.asarray(np.swapaxes(carried, -1, -2) @ parallel)

    def log_volume_density(self, p: Array, v: Array) -> Array:
        """Return the log of ``det D exp_p`` at `v`: volume at ``exp(p, v)`` per volume at `v`."""
        kappa, _ = self.curvature_frame(p, v)
        return np.asarray(np.log(jacobi_ratio(kappa)).sum(axis=-1))

    # --- sets of points --------------------------------------------------------------------------

    def project_to_ball(
        self, points: Array, center: Array, radius: float, log_cap: float = np.inf
    ) -> Array:
        """Move points outside the closed ball to its boundary, along the geodesic to `center`.

        No record raises or warns: one without a finite logarithm goes to a fixed point of the ball.

        Parameters
        ----------
        points : ndarray, shape ``(..., *point_shape)``
        center : ndarray, shape point_shape
        radius : float
        log_cap : float
            Public bound on the log-eigenvalues relative to `center`, applied before the radius;
            only matrix spaces, whose float64 logarithms need it, look at it.
        """
        with np.errstate(all="ignore"):
            c = self.log_coords(center, points)
        clipped = clip_norm(c, radius)
        changed = (clipped != c).any(axis=-1)
        mask = changed.reshape(*changed.shape, *(1,) * len(self.point_shape))
        return np.where(mask, self.exp_coords(center, clipped), points)

    @abstractmethod
    def violations(self, points: Array, epsilon: float = 2.0**-52) -> Iterator[tuple[Array, str]]:
        """Yield masks of points off the manifold, each with the requirement that they violate.

        Later masks may be meaningless where an earlier one is True. `epsilon` is the rounding unit
        of the type in which the points were stored.
        """

    def contains(self, points: ArrayLike) -> Array:
        """Return, point by point, whether `points` lie on the manifold to rounding."""
        points = np.asarray(points, dtype=float)
        if points.shape[points.ndim - len(self.point_shape) :] != self.point_shape:
            raise ValueError(
                f"points must have shape (..., {', '.join(map(str, self.point_shape))}), "
                f"got {points.shape}."
            )
        inside = np.ones(points.shape[: points.ndim - len(self.point_shape)], dtype=bool)
        with np.errstate(all="ignore"):
            for mask, _ in self.violations(points):
                inside &= ~mask
        return inside

    def canonical(self, points: Array) -> Array:
        """Return points of the manifold with the rounding of their coordinates removed."""
        return points

    def saturate(self, p: Array, v: Array) -> Array:
        """Shorten `v` where ``exp(p, v)`` would leave the range of float64; identity elsewhere."""
        return v

    def saturated_exp(self, p: Array, c: Array) -> Array:
        """Return the end point of the saturated vector with coordinates `c`, shape (..., dim)."""
        return self.exp(p, self.saturate(p, self.from_coords(p, c)))

    def localize(self, center: Array) -> Localization:
        """Return an isometry that moves `center` to the origin of a numerically kind model."""
        return Localization(self, center, _identity, _identity)

    # --- names -----------------------------------------------------------------------------------

    def shape_for(self, n: int | str) -> str:
        """Return the shape of an array of `n` points, for messages."""
        return f"({', '.join(map(str, (n, *self.point_shape)))})"


@dataclass(frozen=True, eq=False)
class Localization:
    """An isometry onto `model` that takes a public centre to `origin`.

    The frame of the original space at the centre goes to the frame of the model at `origin`, so
    coordinates at the centre need no translation. On Hadamard models the frame elsewhere is the
    frame at `origin` transported along the geodesic from there.

    Where the isometry of a matrix space is ``X -> carrier * X`` (a number) or the congruence
    ``carrier X carrier`` (a symmetric matrix), `carrier` says so.
    """

    model: Manifold
    origin: Array
    to_model: Callable[[Array], Array]
    from_model: Callable[[Array], Array]
    carrier: Array | float | None = None


def _identity(points: Array) -> Array:
    return points


def _conjugate(eigenvalues: Array, basis: Array) -> Array:
    """Return ``E diag(λ) Eᵀ``."""
    return np.asarray((basis * eigenvalues[..., None, :]) @ np.swapaxes(basis, -1, -2))


def radial_basis(c: Array) -> Array:
    """Return an orthonormal matrix whose first column is `c` / |c| (any basis where c = 0)."""
    length = np.linalg.norm(c, axis=-1, keepdims=True)
    axis = np.zeros_like(c)
    axis[..., 0] = 1.0
    unit = np.where(length > 0, c / np.where(length > 0, length, 1.0), axis)
    sign = np.where(unit[..., :1] < 0, -1.0, 1.0)
    h = unit + sign * axis
    beta = 1 / (1 + np.abs(unit[..., 0]))
    outer = h[..., :, None] * h[..., None, :]
    return np.asarray(-sign[..., None] * (np.eye(c.shape[-1]) - beta[..., None, None] * outer))


def constant_curvature_frame(curvature: float, c: Array) -> tuple[Array, Array]:
    """`curvature_frame` of a space of constant curvature, from coordinates `c` of v."""
    kappa: Any = curvature * (c * c).sum(axis=-1, keepdims=True) * np.ones(c.shape[-1])
    kappa[..., 0] = 0.0
    return kappa, radial_basis(c)


def constant_curvature_mean_hessian(curvature: float, c: Array) -> Array:
    """Average Hessian of ρ² on a space of constant curvature; `c` has shape (..., n, dim).

    Each Hessian is ``2 I - 2 K d(K|c|²) (|c|² I - c cᵀ)`` with d the deficit ratio: no frames.
    """
    square = (c * c).sum(axis=-1)
    weight = hessian_deficit(curvature * square)
    rank = np.swapaxes(c * weight[..., None], -1, -2) @ c / c.shape[-2]
    isotropic = (weight * square).mean(axis=-1)[..., None, None] * np.eye(c.shape[-1])
    return np.asarray(2 * np.eye(c.shape[-1]) - 2 * curvature * (isotropic - rank))
