"""From the releases of a private mean to its covariance and confidence region."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf, sqrt

import numpy as np
from scipy.stats import chi2

from skdpfrechet._numerics import Array, clip_eigenvalues, eigh, jacobi_ratio, symmetrize, unvecd
from skdpfrechet.inference._hessian import hessian_range, mean_hessian_bound
from skdpfrechet.inference._region import ConfidenceRegion
from skdpfrechet.manifolds import Manifold
from skdpfrechet.privacy import GDP

DRAWS = 2000  # the paired quantile below leaves a Monte Carlo error of about .003 in the level
NEGLIGIBLE_NOISE = 1e-6  # relative to the trace of the moment: changes the quantile by less
BOOTSTRAP_MAX_DIM = 60  # beyond, 2,000 eigendecompositions cost seconds and change c by < 2%


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
    """

    manifold: Manifold
    point: Array
    foot: Array
    scale: float
    mechanism: str
    guarantee: GDP
    void_reason: str | None = None

    def __post_init__(self) -> None:
        for name in ("point", "foot"):
            value = np.array(getattr(self, name), dtype=float)
            value.flags.writeable = False
            object.__setattr__(self, name, value)


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
    in_chart : bool
        Whether the noise was added in the chart at m0.
    bootstrap : bool
        Whether the critical value accounts for the noise in `moment`.
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
    in_chart: bool
    bootstrap: bool
    hessian: Array | None = None
    hessian_clip: bool = False

    @cached_property
    def region(self) -> ConfidenceRegion:
        """The confidence region."""
        moment = clip_eigenvalues(self.moment, *self.moment_range)
        carrier = self._carrier(moment)
        covariance = carrier @ moment @ carrier.T + self.release.scale**2 * np.eye(len(moment))
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
        carrier = 2 / sqrt(self.n) * np.linalg.solve(hessian, np.eye(len(moment)))
        if self.in_chart:
            # Frames of the model are parallel along geodesics from its origin, so L, the Jacobian
            # of exp there, is symmetric and its inverse needs no solver, however far the mean is.
            velocity = self.model.log(self.origin, self.point)
            kappa, basis = self.model.curvature_frame(self.origin, velocity)
            carrier = (basis / jacobi_ratio(kappa)) @ basis.T @ carrier
        return np.asarray(carrier)

    def _critical_value(self, moment: Array, carrier: Array) -> float:
        dim = len(moment)
        exact = self.release.scale == 0 and self.moment_scale == 0
        if exact and self.n == 1:
            return inf  # one record says nothing about the spread: the region is the whole space
        quantile = float(chi2.ppf(self.confidence_level, dim))
        negligible = self.moment_scale <= NEGLIGIBLE_NOISE * np.trace(moment)
        if not self.bootstrap or negligible or dim > BOOTSTRAP_MAX_DIM:
            return quantile
        return quantile * self._bootstrap_factor(moment, carrier)

    def _bootstrap_factor(self, moment: Array, carrier: Array) -> float:
        """Return by how much the noise in the moment stretches the quantile of the statistic.

        Parametric bootstrap around the released values: the error of the mean is drawn from the
        estimated law, the moment from the Wishart law of n Gaussian records plus fresh noise, with
        the same repair, and the statistic is studentised by what came out. Dividing by the quantile
        of the same errors studentised by the truth removes most of the simulation error. The
        generator is seeded: nothing private enters, and a region must not change between two looks.
        """
        rng = np.random.default_rng(20260514)
        dim = len(moment)
        noise = np.eye(dim) * self.release.scale**2
        normal = rng.standard_normal((DRAWS, dim))
        variances, axes = eigh(carrier @ moment @ carrier.T + noise)
        error = normal * np.sqrt(np.maximum(variances, 0.0)) @ axes.T
        shaken = _wishart_means(moment, self.n, rng) + unvecd(
            self.moment_scale * rng.standard_normal((DRAWS, dim * (dim + 1) // 2))
        )
        shaken = clip_eigenvalues(shaken, *self.moment_range)
        estimated = carrier @ shaken @ carrier.T + noise
        studentised = (error * np.linalg.solve(estimated, error[..., None])[..., 0]).sum(axis=-1)
        oracle = (normal**2).sum(axis=-1)
        level = self.confidence_level
        return float(np.quantile(studentised, level) / np.quantile(oracle, level))


def _wishart_means(moment: Array, n: int, rng: np.random.Generator) -> Array:
    """Draw second moments about their mean of n Gaussian vectors with the given second moment.

    Shape (DRAWS, dim, dim). Bartlett's triangular factor where the Wishart law has one; where there
    are fewer degrees of freedom than dimensions, the vectors themselves.
    """
    dim, freedom = len(moment), max(n - 1, 1)
    w, q = eigh(moment)
    root = q * np.sqrt(np.maximum(w, 0.0))
    if freedom < dim:
        factor = rng.standard_normal((DRAWS, dim, freedom))
    else:
        factor = np.tril(rng.standard_normal((DRAWS, dim, dim)), -1)
        diagonal = np.arange(dim)
        factor[:, diagonal, diagonal] = np.sqrt(rng.chisquare(freedom - diagonal, (DRAWS, dim)))
    factor = root @ factor
    return np.asarray(factor @ np.swapaxes(factor, -1, -2) / n)
