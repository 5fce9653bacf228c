"""Gaussian noise on numbers, vectors and symmetric matrices."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi

import numpy as np

from skdpfrechet._numerics import Array, unvecd, vecd
from skdpfrechet._validation import check_nonnegative
from skdpfrechet.mechanisms._base import Mechanism, gaussian_guarantee, gaussian_scale
from skdpfrechet.mechanisms._system_generator import RandomSource
from skdpfrechet.privacy import GDP, ApproxDP


@dataclass(frozen=True)
class Gaussian(Mechanism):
    """Independent Gaussian noise of scale `sigma` on every entry of a vector.

    Parameters
    ----------
    sigma : float
        Standard deviation of each entry.

    Notes
    -----
    Neighbouring relation: replace-one, through the sensitivity. μ-GDP with μ = Δ/σ, exactly, for a
    statistic of Euclidean sensitivity Δ (attained: one pair of values at distance Δ).

    References
    ----------
    .. [1] J. Dong, A. Roth, W. J. Su, "Gaussian differential privacy", JRSS-B 84, 2022, Theorem 1.

    Examples
    --------
    >>> from skdpfrechet.mechanisms import Gaussian
    >>> from skdpfrechet.privacy import GDP
    >>> Gaussian.calibrate(sensitivity=0.5, guarantee=GDP(1.0))
    Gaussian(sigma=0.5)
    """

    sigma: float

    def __post_init__(self) -> None:
        check_nonnegative("sigma", self.sigma)

    @classmethod
    def calibrate(cls, sensitivity: float, guarantee: GDP | ApproxDP) -> Gaussian:
        """Return the mechanism with the least noise that gives `guarantee`."""
        return cls(gaussian_scale(sensitivity, guarantee))

    def guarantee(self, sensitivity: float) -> GDP:
        return gaussian_guarantee(sensitivity, self.sigma)

    def release(self, center: Array, rng: RandomSource) -> Array:
        return np.asarray(center + self.sigma * rng.standard_normal(np.shape(center)))

    def log_density(self, center: Array, x: Array) -> Array:
        z = (np.asarray(x) - center) / self.sigma
        dim = z.shape[-1]
        return np.asarray(-(z * z).sum(axis=-1) / 2 - dim * (log(self.sigma) + log(2 * pi) / 2))


@dataclass(frozen=True)
class SymmetricGaussian(Gaussian):
    """Gaussian noise on a symmetric matrix, isotropic in the Frobenius norm.

    The diagonal gets standard deviation `sigma`, the entries off it σ/√2, symmetrically: noise of
    scale σ on the isometric coordinates (`vecd`).

    Parameters
    ----------
    sigma : float
        Standard deviation of each isometric coordinate.

    Notes
    -----
    As for `Gaussian`, with the sensitivity in the Frobenius norm.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpfrechet.mechanisms import SymmetricGaussian
    >>> noisy = SymmetricGaussian(0.1).release(np.eye(3), np.random.default_rng(0))
    >>> bool((noisy == noisy.T).all())
    True
    """

    @classmethod
    def calibrate(cls, sensitivity: float, guarantee: GDP | ApproxDP) -> SymmetricGaussian:
        """Return the mechanism with the least noise that gives `guarantee`."""
        return cls(gaussian_scale(sensitivity, guarantee))

    def release(self, center: Array, rng: RandomSource) -> Array:
        return unvecd(super().release(vecd(center), rng))

    def log_density(self, center: Array, x: Array) -> Array:
        return super().log_density(vecd(np.asarray(center)), vecd(np.asarray(x)))
