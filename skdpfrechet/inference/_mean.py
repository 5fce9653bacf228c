"""From the releases of a private mean to its covariance and confidence region."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf, isinf
from typing import Any

import numpy as np

from skdpfrechet._numerics import Array, clip_eigenvalues, symmetrize
from skdpfrechet.inference._covariance import (
    BOOTSTRAP_MAX_DIM,
    chi_squared_value,
    critical_value,
    error_carrier,
    error_covariance,
    into_chart,
    repair_moment,
)
from skdpfrechet.inference._hessian import hessian_range, mean_hessian_bound
from skdpfrechet.inference._region import ConfidenceRegion, describe_manifold, read_manifold
from skdpfrechet.manifolds import Manifold
from skdpfrechet.privacy import GDP, Unit, as_unit
from skdpfrechet.privacy._units import RECORD

__all__ = ["BOOTSTRAP_MAX_DIM", "MeanInference", "MeanRelease"]


@dataclass(frozen=True, eq=False)
class MeanRelease:
    """A released mean and all that is public about how it was made.

    Frozen, so that another fit on the same records can reuse it and account for it.

    Parameters
    ----------
    manifold : Manifold
    point : ndarray, shape point_shape
        The released mean.
    foot : ndarray, shape point_shape
        The public centre m0.
    scale : float
        Noise scale σ of the mechanism.
    mechanism : str
    guarantee : GDP
        What the fit that released the point spent, its region included.
    void_reason : str or None
        Why the guarantee does not hold, such as a fixed seed.
    unit : Unit
        What a neighbour replaces, a record or a group of them.
    float_safe : bool
        Whether its noise is exact on a computer.
    receipt : str or None
        Random name of the entry of a `PrivacyLedger` that paid for it. A fit with that ledger can
        reuse the release.
    """

    manifold: Manifold
    point: Array
    foot: Array
    scale: float
    mechanism: str
    guarantee: GDP
    void_reason: str | None = None
    unit: Unit = RECORD
    float_safe: bool = False
    receipt: str | None = None

    def __post_init__(self) -> None:
        for name in ("point", "foot"):
            value = np.array(getattr(self, name), dtype=float)
            value.flags.writeable = False
            object.__setattr__(self, name, value)

    def to_dict(self) -> dict[str, Any]:
        """Return strings, None, lists and finite numbers, as JSON has them; infinity is "inf"."""
        return {
            "manifold": describe_manifold(self.manifold),
            "point": self.point.tolist(),
            "foot": self.foot.tolist(),
            "scale": float(self.scale),
            "mechanism": self.mechanism,
            "mu": "inf" if isinf(self.guarantee.mu) else self.guarantee.mu,
            "void_reason": self.void_reason,
            "unit": self.unit.to_dict(),
            "receipt": self.receipt,
        }

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> MeanRelease:
        """Rebuild a release from `to_dict`."""
        held = dict(description)
        manifold = read_manifold(held.pop("manifold"))
        return cls(
            manifold=manifold,
            guarantee=GDP(float(held.pop("mu"))),
            unit=as_unit(held.pop("unit")),
            **held,
        )


@dataclass(frozen=True, eq=False)
class MeanInference:
    """Everything released about a mean's spread; regions follow by post-processing.

    Parameters
    ----------
    manifold : Manifold
        The user's space, in which the region is stated.
    model : Manifold
        Its isometric copy with m0 at the model's origin, in which the arithmetic is done.
    origin, point : ndarray
        m0 and the released mean in the model.
    release : MeanRelease
    n : int
    moment : ndarray, shape (dim, dim)
        Released second moment of the logarithms, in the frame at `point`.
    moment_scale : float
        Noise scale of `moment` in isometric coordinates.
    moment_range : tuple of float
        Eigenvalue range that `moment` is clipped to.
    reach, radius : float
        Bounds of the logarithms at `point` and of the ball.
    confidence_level : float
    noise_scale : float
        Scale of normal noise that is as wide as that of the mean, at the confidence level.
    in_chart : bool
        Whether the noise was added in the chart at m0.
    bootstrap : bool
        Whether the repair of `moment` and the critical value account for its noise.
    hessian : ndarray or None
        Released (or, without privacy, exact) mean Hessian; None: bounded by the moment.
    hessian_clip : bool
        Whether `hessian` is noisy and must be clipped to its range.
    """

    manifold: Manifold
    model: Manifold
    origin: Array
    point: Array
    release: MeanRelease
    n: int
    moment: Array
    moment_scale: float
    moment_range: tuple[float, float]
    reach: float
    radius: float
    confidence_level: float
    noise_scale: float
    in_chart: bool
    bootstrap: bool
    hessian: Array | None = None
    hessian_clip: bool = False

    @cached_property
    def region(self) -> ConfidenceRegion:
        """The confidence region."""
        if self.bootstrap:
            moment = repair_moment(self.moment, self.moment_scale, self.moment_range)
        else:
            moment = clip_eigenvalues(self.moment, *self.moment_range)
        carrier = self._carrier(moment)
        covariance = error_covariance(moment, carrier, self.noise_scale)
        if not self.in_chart:
            rotation = self._frame_rotation()
            covariance = rotation.T @ covariance @ rotation
        return ConfidenceRegion(
            self.manifold,
            self.release.point,
            symmetrize(covariance),
            self._critical_value(moment, carrier),
            self.confidence_level,
            self.release.foot if self.in_chart else None,
        )

    def _frame_rotation(self) -> Array:
        """Return the user's frame at the mean in terms of the model's, as rows of coordinates.

        The model's frame there is the frame at m0 transported along the geodesic, the user's is
        not: on SPD matrices and hyperbolic space they differ by a rotation.
        """
        space, foot, point = self.manifold, self.release.foot, self.release.point
        if self.model == space and np.array_equal(self.origin, foot):
            return np.eye(space.dim)  # the model is the space itself
        axis = -len(space.point_shape) - 1
        start, end = np.expand_dims(foot, axis), np.expand_dims(point, axis)
        return space.coords(end, space.transport(start, end, space.frame(foot)))

    def _carrier(self, moment: Array) -> Array:
        """Return B with ``Γ = B S Bᵀ + σ² I``: ``2/√n Λ⁻¹``, in the chart ``2/√n L⁻¹ Λ⁻¹``."""
        if self.hessian is None:
            hessian = mean_hessian_bound(self.model, moment, self.reach, self.radius)
        elif self.hessian_clip:
            hessian = clip_eigenvalues(self.hessian, *hessian_range(self.model, self.radius))
        else:
            hessian = self.hessian
        carrier = error_carrier(hessian, self.n)
        if self.in_chart:
            carrier = into_chart(self.model, self.origin, self.point, carrier)
        return carrier

    def _critical_value(self, moment: Array, carrier: Array) -> float:
        exact = self.noise_scale == 0 and self.moment_scale == 0
        if exact and self.n == 1:
            return inf  # one record says nothing about the spread: the region is the whole space
        if not self.bootstrap:
            return chi_squared_value(self.confidence_level, len(moment))
        value = critical_value(
            moment,
            carrier,
            n=self.n,
            scale=self.noise_scale,
            moment_scale=self.moment_scale,
            moment_range=self.moment_range,
            level=self.confidence_level,
        )
        return float(value)
