"""Gaussian noise in the ambient space of a sphere, projected back."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi, sqrt, tan

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import chi2

from skdpfrechet import sensitivity as sensitivities
from skdpfrechet._numerics import Array
from skdpfrechet._validation import check_nonnegative
from skdpfrechet.manifolds import Manifold, Sphere
from skdpfrechet.mechanisms._base import Mechanism, gaussian_guarantee, gaussian_scale
from skdpfrechet.mechanisms._grid import Grid, add_gaussian, gaussian_grid
from skdpfrechet.mechanisms._system_generator import RandomSource
from skdpfrechet.privacy import GDP, ApproxDP

_LINEAR = 0.01  # the projection differs from its tangent by about the square of its scale
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)


@dataclass(frozen=True)
class ProjectedGaussian(Mechanism):
    """Release ``(η + σZ)/|η + σZ|`` on the unit sphere, Z standard normal in R^{d+1}.

    Parameters
    ----------
    manifold : Sphere
    sigma : float
        Standard deviation of each ambient coordinate.
    grid : Grid or None
        Where not None, the ambient release is on that grid and the guarantee holds on a computer
        too; made by `calibrate_secure`.

    Notes
    -----
    Neighbouring relation: replace-one, through the sensitivity. μ-GDP with μ = 2 sin(Δ/2)/σ: the
    ambient release is a Gaussian mechanism whose sensitivity is the chord of the geodesic
    sensitivity Δ, and normalising is post-processing. No property of the sphere is needed. On a
    grid the rounding of the d + 1 coordinates adds to the chord.

    References
    ----------
    .. [1] Dong, Roth, Su, "Gaussian differential privacy", JRSS-B 84, 2022, Theorem 1.
    .. [2] Mardia, Jupp, "Directional Statistics", Wiley, 2000, section 9.3 (density).

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
    grid: Grid | None = None

    def __post_init__(self) -> None:
        check_nonnegative("sigma", self.sigma)
        _require_sphere(self.manifold)

    @classmethod
    def calibrate(
        cls, manifold: Manifold, sensitivity: float, guarantee: GDP | ApproxDP
    ) -> ProjectedGaussian:
        """Return the mechanism with the least noise that gives `guarantee`."""
        _require_sphere(manifold)
        return cls(manifold, gaussian_scale(sensitivities.sphere_chord(sensitivity), guarantee))

    @classmethod
    def calibrate_secure(
        cls, manifold: Manifold, sensitivity: float, guarantee: GDP | ApproxDP
    ) -> ProjectedGaussian:
        """Return the mechanism with the least float-safe noise that gives `guarantee`."""
        _require_sphere(manifold)
        chord = sensitivities.sphere_chord(sensitivity)
        return cls(manifold, *gaussian_grid(chord, guarantee, manifold.dim + 1))

    def effective_sensitivity(self, sensitivity: float) -> float:
        """Return that of what the noise is added to, the ambient value on its grid."""
        chord = sensitivities.sphere_chord(sensitivity)
        return chord if self.grid is None else self.grid.sensitivity(chord)

    def guarantee(self, sensitivity: float) -> GDP:
        return gaussian_guarantee(self.effective_sensitivity(sensitivity), self.sigma)

    def normal_scale(self, level: float) -> float:
        """Return the scale at which normal noise in the tangent space is as wide at `level`.

        The projection has longer tails than its tangent: on the circle with σ = .5 a share .09 of
        the angles exceeds what .05 of normal ones would. Never below `sigma`.

        Notes
        -----
        With ``T = σ χ_d`` the tangential length, the angle is at most a exactly where
        ``1 + σ Z_0 ≥ T cot a``, so its distribution function is ``E Φ(1/σ - χ_d cot a)``, a
        non-central t.
        """
        if self.sigma < _LINEAR:
            return self.sigma
        dim = self.manifold.dim
        length = np.sqrt(chi2.ppf((_NODES + 1) / 2, dim))

        def excess(angle: float) -> float:
            inside = ndtr(1 / self.sigma - length / tan(angle))
            return float(_WEIGHTS @ inside) / 2 - level

        normal = sqrt(float(chi2.ppf(level, dim)))
        if self.sigma * normal >= pi or excess(self.sigma * normal) >= 0:
            return self.sigma
        return float(brentq(excess, self.sigma * normal, pi)) / normal

    def release(self, center: Array, rng: RandomSource) -> Array:
        noisy = add_gaussian(center, self.sigma, self.grid, rng)
        if self.grid is not None:
            # The origin, which has no direction, is a point of the grid.
            noisy[..., 0] += np.where((noisy == 0).all(axis=-1), self.grid.step, 0.0)
        return self.manifold.canonical(noisy)

    def log_density(self, center: Array, x: Array) -> Array:
        # The ambient density integrated along the ray through x: t^d φ(t - a) with a = <x, η>/σ.
        dim = self.manifold.dim
        cosine = (center * x).sum(axis=-1)
        a = cosine / self.sigma
        sine_squared = ((x - cosine[..., None] * center) ** 2).sum(axis=-1)
        radial = _log_radial_moment(a, dim)
        return np.asarray(radial - sine_squared / (2 * self.sigma**2) - dim / 2 * log(2 * pi))


def _log_radial_moment(a: Array, power: int) -> Array:
    """Return ``log ∫_0^∞ t^power exp(-(t - a)²/2)/√(2π) dt``, by Gauss-Legendre around the mode.

    At the mode m, ``m - a = power/m``; at ``m + x`` the integrand is smaller by the factor
    ``exp(-x²/2 - power (x/m - log(1 + x/m)))``, whose logarithm is at most
    ``-max(x²/2, power (x/m)²/(2 + 2x/m))`` for x > 0 and ``-(1 + power/m²) x²/2`` for x < 0.
    """
    larger = (np.abs(a) + np.hypot(a, 2 * np.sqrt(power))) / 2
    mode = np.where(a < 0, power / larger, larger)
    cut = 45.0
    left = np.minimum(mode, np.sqrt(2 * cut / (1 + power / mode**2)))
    right = np.minimum(sqrt(2 * cut), mode * (cut + sqrt(cut * (cut + 2 * power))) / power)
    x = -left[..., None] + (left + right)[..., None] * (_NODES + 1) / 2
    y = x / mode[..., None]
    total = np.exp(-x * x / 2 - power * (y - np.log1p(y))) @ _WEIGHTS * (left + right) / 2
    top = power * np.log(mode) - (power / mode) ** 2 / 2
    return np.asarray(top + np.log(total) - log(2 * pi) / 2)


def _require_sphere(manifold: Manifold) -> None:
    if not isinstance(manifold, Sphere):
        raise ValueError(
            f"mechanism 'projected-gaussian' requires a sphere, got {manifold!r}; "
            "use 'wrapped-gaussian' there."
        )
