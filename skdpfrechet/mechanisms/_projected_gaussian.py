"""Gaussian noise in the ambient space of a sphere, projected back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from skdpfrechet import sensitivity as sensitivities
from skdpfrechet._numerics import Array
from skdpfrechet._validation import check_nonnegative
from skdpfrechet.manifolds import Manifold, Sphere
from skdpfrechet.mechanisms._base import Mechanism, gaussian_guarantee, gaussian_scale
from skdpfrechet.privacy import GDP


@dataclass(frozen=True)
class ProjectedGaussian(Mechanism):
    """Release ``(η + σZ)/|η + σZ|`` on the unit sphere, Z standard normal in R^{d+1}.

    Parameters
    ----------
    manifold : Sphere
    sigma : float
        Standard deviation of each ambient coordinate.

    Notes
    -----
    Neighbouring relation: replace-one, through the sensitivity. μ-GDP with μ = 2 sin(Δ/2)/σ: the
    ambient release is a Gaussian mechanism whose sensitivity is the chord of the geodesic
    sensitivity Δ, and normalising is post-processing. No property of the sphere is needed.

    References
    ----------
    .. [1] J. Dong, A. Roth, W. J. Su, "Gaussian differential privacy", JRSS-B 84, 2022, Theorem 1.
    .. [2] K. V. Mardia, P. E. Jupp, "Directional Statistics", Wiley, 2000, section 9.3 (density).

    Examples
    --------
    >>> from skdpfrechet.manifolds import Sphere
    >>> from skdpfrechet.mechanisms import ProjectedGaussian
    >>> from skdpfrechet.privacy import GDP
    >>> mechanism = ProjectedGaussian.calibrate(Sphere(2), 0.1, GDP(1.0))
    >>> bool(mechanism.guarantee(0.1).mu <= 1.0)
    True
    """

    manifold: Manifold
    sigma: float

    def __post_init__(self) -> None:
        check_nonnegative("sigma", self.sigma)
        _require_sphere(self.manifold)

    @classmethod
    def calibrate(cls, manifold: Manifold, sensitivity: float, guarantee: GDP) -> ProjectedGaussian:
        """Return the mechanism with the least noise that gives `guarantee`."""
        _require_sphere(manifold)
        return cls(manifold, gaussian_scale(sensitivities.sphere_chord(sensitivity), guarantee))

    def guarantee(self, sensitivity: float) -> GDP:
        return gaussian_guarantee(sensitivities.sphere_chord(sensitivity), self.sigma)

    def release(self, center: Array, rng: np.random.Generator) -> Array:
        noisy = center + self.sigma * rng.standard_normal(np.shape(center))
        return self.manifold.canonical(noisy)

    def log_density(self, center: Array, x: Array) -> Array:
        # ∫_0^∞ t^d φ(t - a) dt with a = <x, η>/σ, by the recursion of Gaussian moments in logs.
        dim = self.manifold.dim
        cosine = (center * x).sum(axis=-1)
        a = cosine / self.sigma
        sine_squared = ((x - cosine[..., None] * center) ** 2).sum(axis=-1)
        radial = _log_radial_moment(a, dim)
        return np.asarray(radial - sine_squared / (2 * self.sigma**2) - dim / 2 * np.log(2 * np.pi))


def _log_radial_moment(a: Array, power: int) -> Array:
    """Return ``log ∫_0^∞ t^power exp(-(t - a)²/2)/√(2π) dt``, by Gauss-Legendre around the mode."""
    if power == 0:
        return np.asarray(log_ndtr(a))
    mode = (a + np.sqrt(a * a + 4 * power)) / 2
    width = 1 / np.sqrt(1 + power / mode**2)
    nodes, weights = np.polynomial.legendre.leggauss(200)
    low = np.maximum(mode - 12 * width, 0.0)
    half = (mode + 12 * width - low) / 2
    t = low[..., None] + half[..., None] * (nodes + 1)
    logs = power * np.log(t) - (t - a[..., None]) ** 2 / 2
    top = logs.max(axis=-1)
    total = (weights * np.exp(logs - top[..., None])).sum(axis=-1) * half
    return np.asarray(top + np.log(total) - np.log(2 * np.pi) / 2)


def _require_sphere(manifold: Manifold) -> None:
    if not isinstance(manifold, Sphere):
        raise ValueError(f"mechanism 'projected-gaussian' requires a sphere, got {manifold!r}.")
