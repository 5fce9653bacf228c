"""The Riemannian Gaussian, sampled exactly."""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma, log, pi, prod

import numpy as np

from skdpfrechet._numerics import Array
from skdpfrechet._validation import check_nonnegative
from skdpfrechet.manifolds import FlatManifold, Manifold, Sphere
from skdpfrechet.mechanisms._base import (
    Mechanism,
    gaussian_guarantee,
    gaussian_scale,
    standard_normal_coords,
)
from skdpfrechet.mechanisms._sphere_radius import log_radial_integral, sample_sphere_radius
from skdpfrechet.mechanisms._system_generator import RandomSource
from skdpfrechet.privacy import GDP
from skdpfrechet.privacy.exact import sphere_mu, sphere_sigma


@dataclass(frozen=True)
class RiemannianGaussian(Mechanism):
    """Release a point with density proportional to ``exp(-ρ²(x, η)/2σ²)``.

    Parameters
    ----------
    manifold : Sphere or flat manifold
    sigma : float
        Noise scale, in the units of `Manifold.dist`.

    Notes
    -----
    Neighbouring relation: replace-one, through the sensitivity. μ-GDP with μ = Δ/σ for every Δ and
    σ on complete homogeneous spaces of sectional curvature ≥ 0 whose geodesics are orbits of
    isometries; false where the curvature is negative (on the hyperbolic plane Δ = σ = 1 gives 1.161
    instead of 1), so such spaces are refused.

    It has no float-safe path: the radius and the direction are rounded after the noise was drawn,
    and how, depends on the private value. On spheres `ProjectedGaussian` has one.

    References
    ----------
    .. [1] Y. Jiang, X. Chang, Y. Liu, L. Ding, L. Kong, B. Jiang, "Gaussian differential privacy
       on Riemannian manifolds", NeurIPS 2023.
    .. [2] Jiang, Chang, Hu, arXiv 2605.14762.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpfrechet.manifolds import Sphere
    >>> from skdpfrechet.mechanisms import RiemannianGaussian
    >>> from skdpfrechet.privacy import GDP
    >>> mechanism = RiemannianGaussian.calibrate(Sphere(2), 0.1, GDP(0.5))
    >>> x = mechanism.release(np.array([0.0, 0.0, 1.0]), np.random.default_rng(0))
    >>> round(float(np.linalg.norm(x)), 12)
    1.0
    """

    manifold: Manifold
    sigma: float

    def __post_init__(self) -> None:
        check_nonnegative("sigma", self.sigma)
        _require_nonnegative_curvature(self.manifold)

    @classmethod
    def calibrate(
        cls, manifold: Manifold, sensitivity: float, guarantee: GDP
    ) -> RiemannianGaussian:
        """Return the mechanism with the scale Δ/μ."""
        _require_nonnegative_curvature(manifold)
        return cls(manifold, gaussian_scale(sensitivity, guarantee))

    @classmethod
    def calibrate_exact(
        cls, manifold: Manifold, sensitivity: float, guarantee: GDP
    ) -> RiemannianGaussian:
        """Return the mechanism with the smallest scale that gives `guarantee`.

        On spheres of dimension d it is below Δ/μ, by the factor 1 - (d-1)σ²/6 + …; on flat spaces
        it is Δ/μ. See `skdpfrechet.privacy.exact.sphere_sigma`, also for what is proven.
        """
        _require_nonnegative_curvature(manifold)
        if not isinstance(guarantee, GDP):
            raise TypeError(
                f"guarantee must be a GDP for the exact scale, got {type(guarantee).__name__}."
            )
        scale = gaussian_scale(sensitivity, guarantee)
        if isinstance(manifold, Sphere) and scale > 0:
            scale = sphere_sigma(guarantee.mu, dim=manifold.dim, distance=sensitivity)
        return cls(manifold, scale)

    def effective_sensitivity(self, sensitivity: float) -> float:
        """Return that of what the noise is added to, the point itself."""
        return sensitivity

    def normal_scale(self, level: float) -> float:
        """Return `sigma`: in normal coordinates the release is no wider than normal noise."""
        return self.sigma

    def guarantee(self, sensitivity: float) -> GDP:
        return gaussian_guarantee(sensitivity, self.sigma)

    def exact_guarantee(self, sensitivity: float) -> GDP:
        """Return the strongest guarantee of a release, at least as strong as `guarantee`.

        See `skdpfrechet.privacy.exact.sphere_mu`, also for what is proven.
        """
        plain = self.guarantee(sensitivity)
        if not isinstance(self.manifold, Sphere) or self.sigma == 0:
            return plain
        return GDP(sphere_mu(dim=self.manifold.dim, distance=sensitivity, sigma=self.sigma))

    def release(self, center: Array, rng: RandomSource) -> Array:
        z, batch = standard_normal_coords(self.manifold, center, rng)
        if isinstance(self.manifold, Sphere) and self.sigma > 0:
            direction = z / np.linalg.norm(z, axis=-1, keepdims=True)
            radius = sample_sphere_radius(self.manifold.dim, self.sigma, prod(batch), rng)
            return self.manifold.exp_coords(center, direction * radius.reshape(*batch, 1))
        return self.manifold.exp_coords(center, self.sigma * z)

    def log_density(self, center: Array, x: Array) -> Array:
        distance = self.manifold.dist(center, x)
        return np.asarray(-((distance / self.sigma) ** 2) / 2 - self._log_normalizer())

    def _log_normalizer(self) -> float:
        dim = self.manifold.dim
        if not isinstance(self.manifold, Sphere):
            return dim * (log(self.sigma) + log(2 * pi) / 2)
        area = log(2) + dim / 2 * log(pi) - lgamma(dim / 2)  # of S^{d-1}
        return area + log_radial_integral(dim, self.sigma)


def _require_nonnegative_curvature(manifold: Manifold) -> None:
    if not isinstance(manifold, Sphere | FlatManifold):
        raise ValueError(
            "mechanism 'riemannian-gaussian' requires a homogeneous space of curvature ≥ 0, "
            f"got {manifold!r}; use 'wrapped-gaussian' there."
        )
