"""Confidence regions for points of a manifold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from math import inf, isinf, lgamma, log, pi
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skdpfrechet import manifolds
from skdpfrechet._numerics import Array, eigh, symmetrize
from skdpfrechet._validation import check_positive_integer
from skdpfrechet.manifolds import Manifold


@dataclass(frozen=True, eq=False)
class ConfidenceRegion:
    """An ellipsoid of points, in normal coordinates at its centre or in the chart of a foot.

    Without a foot the region is ``{v : wᵀ Γ⁻¹ w ≤ c}`` with ``w = log_center(v)`` in the frame at
    the centre. With a foot m0 the ellipsoid lives in the chart ``log_m0``:
    ``w = log_m0(v) - log_m0(center)`` in the frame at m0, the chart in which the wrapped Gaussian
    adds its noise; normal coordinates at the centre would under-cover far from m0.

    Parameters
    ----------
    manifold : Manifold
    center : ndarray, shape point_shape
        The released mean.
    covariance : ndarray, shape (dim, dim)
        Γ, in the frame at the foot if there is one, else in the frame at the centre.
    critical_value : float
        The bound c of the statistic.
    confidence_level : float
    foot : ndarray or None
        Public point m0.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpfrechet.inference import ConfidenceRegion
    >>> from skdpfrechet.manifolds import Euclidean
    >>> region = ConfidenceRegion(Euclidean(2), np.zeros(2), np.eye(2), 5.99, 0.95)
    >>> region.contains([[1.0, 1.0], [2.0, 2.0]])
    array([ True, False])
    """

    manifold: Manifold
    center: Array
    covariance: Array
    critical_value: float
    confidence_level: float
    foot: Array | None = None

    def statistic(self, points: ArrayLike) -> Array:
        """Return ``wᵀ Γ⁻¹ w`` for each point.

        Parameters
        ----------
        points : array-like, shape ``(..., *point_shape)``

        Returns
        -------
        ndarray, shape (...)
            Infinite in directions in which Γ is singular.

        Raises
        ------
        ValueError
            If points have the wrong shape or do not lie on the manifold.
        """
        points = np.asarray(points, dtype=float)
        if not self.manifold.contains(points).all():
            raise ValueError(f"points must lie on {self.manifold!r}.")
        points = self.manifold.canonical(points)
        if self.foot is None:
            w = self.manifold.log_coords(self.center, points)
        else:
            w = self.manifold.log_coords(self.foot, points)
            w = w - self.manifold.log_coords(self.foot, self.center)
        # Its own centre is in every region, also where rounding exceeds a covariance near 0.
        axes = tuple(range(-len(self.manifold.point_shape), 0))
        at_center = np.asarray((points == self.manifold.canonical(self.center)).all(axis=axes))
        return mahalanobis(np.where(at_center[..., None], 0.0, w), self.covariance)

    def contains(self, points: ArrayLike) -> Array:
        """Return whether each point lies in the region."""
        return np.asarray(self.statistic(points) <= self.critical_value)

    @cached_property
    def covariance_at_center(self) -> Array:
        """Γ in the frame at the centre, shape (dim, dim): to first order the law of the error."""
        if self.foot is None:
            return self.covariance
        jacobian = self.manifold.exp_jacobian(self.foot, self.manifold.log(self.foot, self.center))
        return symmetrize(jacobian @ self.covariance @ jacobian.T)

    @property
    def eigenvalues(self) -> Array:
        """Eigenvalues of `covariance_at_center`, in descending order, shape (dim,)."""
        return np.asarray(eigh(self.covariance_at_center)[0][::-1])

    @property
    def effective_radius(self) -> float:
        """Square root of the trace of `covariance_at_center`, in the units of the distance."""
        return float(np.sqrt(np.trace(self.covariance_at_center)))

    @property
    def volume(self) -> float:
        """Volume of the ellipsoid in the tangent space at the centre (units: distance^dim).

        The Riemannian volume of the region to leading order in its size.
        """
        dim = self.manifold.dim
        if isinf(self.critical_value):
            return inf
        values = np.maximum(self.eigenvalues, 0.0)
        if self.critical_value == 0 or (values == 0).any():
            return 0.0
        unit_ball = dim / 2 * log(pi) - lgamma(dim / 2 + 1)
        log_volume = unit_ball + dim / 2 * log(self.critical_value) + np.log(values).sum() / 2
        with np.errstate(over="ignore"):
            return float(np.exp(log_volume))

    def boundary(self, n: int = 100) -> Array:
        """Return `n` points on the boundary.

        Evenly spaced directions in dimension 2, in order, ready to be drawn as a closed curve; on a
        Fibonacci lattice in dimension 3; fixed pseudo-random directions beyond.

        Parameters
        ----------
        n : int

        Returns
        -------
        ndarray, shape ``(n, *point_shape)``
        """
        if isinf(self.critical_value):
            raise ValueError("boundary requires a bounded region; this one is the whole space.")
        variances, axes = eigh(self.covariance)
        scale = np.sqrt(np.maximum(variances, 0.0) * self.critical_value)
        w = _directions(check_positive_integer("n", n), self.manifold.dim) * scale @ axes.T
        base = self.center if self.foot is None else self.foot
        if self.foot is not None:
            w = self.manifold.log_coords(base, self.center) + w
        return self.manifold.saturated_exp(base, w)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe description."""
        return {
            "manifold": describe_manifold(self.manifold),
            "center": self.center.tolist(),
            "covariance": self.covariance.tolist(),
            "critical_value": "inf" if isinf(self.critical_value) else float(self.critical_value),
            "confidence_level": float(self.confidence_level),
            "foot": None if self.foot is None else self.foot.tolist(),
        }

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> ConfidenceRegion:
        """Rebuild a region from `to_dict`."""
        foot = description["foot"]
        return cls(
            manifold=read_manifold(description["manifold"]),
            center=np.asarray(description["center"], dtype=float),
            covariance=np.asarray(description["covariance"], dtype=float),
            critical_value=float(description["critical_value"]),
            confidence_level=float(description["confidence_level"]),
            foot=None if foot is None else np.asarray(foot, dtype=float),
        )

    def __repr__(self) -> str:
        return (
            f"ConfidenceRegion({self.manifold!r}, confidence_level={self.confidence_level:g}, "
            f"effective_radius={self.effective_radius:.4g})"
        )


def describe_manifold(manifold: Manifold) -> dict[str, Any]:
    """Return a JSON-safe description of a space."""
    names = [f.name for f in fields(manifold) if f.init]  # type: ignore[arg-type]
    return {
        "name": type(manifold).__name__,
        **{name: int(getattr(manifold, name)) for name in names},
    }


def read_manifold(description: Mapping[str, Any]) -> Manifold:
    """Return the space of `describe_manifold`."""
    parameters = dict(description)
    name = parameters.pop("name")
    space = getattr(manifolds, name, None) if name in manifolds.__all__ else None
    if not (isinstance(space, type) and issubclass(space, Manifold)):
        raise ValueError(f"description must name a manifold of skdpfrechet, got {name!r}.")
    return space(**parameters)


def mahalanobis(w: Array, covariance: Array) -> Array:
    """Return ``wᵀ Γ⁻¹ w`` along the last axis, infinite in directions in which Γ is singular."""
    variances, axes = eigh(covariance)
    along = w @ axes
    regular = variances > 1e-14 * max(float(variances[-1]), 0.0)
    terms = along**2 / np.where(regular, variances, 1.0)
    # Rounding leaves 1e-15 of the vector in the directions of a singular covariance.
    length = np.linalg.norm(w, axis=-1, keepdims=True)
    impossible = np.where(np.abs(along) > 1e-12 * (1 + length), inf, 0.0)
    return np.asarray(np.where(regular, terms, impossible).sum(axis=-1))


def _directions(n: int, dim: int) -> Array:
    """Return `n` unit vectors of R^dim, shape (n, dim)."""
    if dim == 1:
        return np.where(np.arange(n) % 2 == 0, 1.0, -1.0)[:, None]
    if dim == 2:
        angle = 2 * pi * np.arange(n) / n
        return np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    if dim == 3:
        height: Array = 1 - (2 * np.arange(n) + 1) / n
        turn: Array = pi * (1 + 5**0.5) * np.arange(n)
        ring = np.sqrt(1 - height**2)
        return np.stack([ring * np.cos(turn), ring * np.sin(turn), height], axis=-1)
    z = np.random.default_rng(0).standard_normal((n, dim))
    return np.asarray(z / np.linalg.norm(z, axis=-1, keepdims=True))
