"""Gaussian noise on numbers, vectors and symmetric matrices."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, nextafter, pi, sqrt

import numpy as np

from skdpfrechet._numerics import Array, triangle, unvecd, vecd
from skdpfrechet._validation import check_nonnegative
from skdpfrechet.mechanisms._base import Mechanism, gaussian_guarantee, gaussian_scale
from skdpfrechet.mechanisms._grid import Grid, add_gaussian, gaussian_grid
from skdpfrechet.mechanisms._system_generator import RandomSource
from skdpfrechet.privacy import GDP, ApproxDP


@dataclass(frozen=True)
class Gaussian(Mechanism):
    """Independent Gaussian noise of scale `sigma` on every entry of a vector.

    Parameters
    ----------
    sigma : float
        Standard deviation of each entry.
    grid : Grid or None
        Where not None, noise and release are on that grid and the guarantee holds on a computer
        too; made by `calibrate_secure`.

    Notes
    -----
    Neighbouring relation: replace-one, through the sensitivity. μ-GDP with μ = Δ/σ, exactly, for a
    statistic of Euclidean sensitivity Δ (attained: one pair of values at distance Δ), and with the
    sensitivity of the rounded statistic on a grid.

    References
    ----------
    .. [1] Dong, Roth, Su, "Gaussian differential privacy", JRSS-B 84, 2022, Theorem 1.

    Examples
    --------
    >>> from skdpfrechet.mechanisms import Gaussian
    >>> from skdpfrechet.privacy import GDP
    >>> Gaussian.calibrate(sensitivity=0.5, guarantee=GDP(1.0)).sigma
    0.5
    """

    sigma: float
    grid: Grid | None = None

    def __post_init__(self) -> None:
        check_nonnegative("sigma", self.sigma)

    @classmethod
    def calibrate(cls, sensitivity: float, guarantee: GDP | ApproxDP) -> Gaussian:
        """Return the mechanism with the least noise that gives `guarantee`."""
        return cls(gaussian_scale(sensitivity, guarantee))

    @classmethod
    def calibrate_secure(
        cls, sensitivity: float, guarantee: GDP | ApproxDP, entries: int
    ) -> Gaussian:
        """Return the mechanism with the least float-safe noise for vectors of `entries` numbers."""
        return cls(*gaussian_grid(sensitivity, guarantee, entries))

    def guarantee(self, sensitivity: float) -> GDP:
        if self.grid is not None:
            sensitivity = self.grid.sensitivity(sensitivity)
        return gaussian_guarantee(sensitivity, self.sigma)

    def release(self, center: Array, rng: RandomSource) -> Array:
        if self.grid is not None:
            self.grid.check_shape(np.shape(center)[-1:])
        return add_gaussian(center, self.sigma, self.grid, rng)

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
    grid : Grid or None
        As for `Gaussian`; it holds the entries of the matrix.

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

    @classmethod
    def calibrate_secure(
        cls, sensitivity: float, guarantee: GDP | ApproxDP, size: int
    ) -> SymmetricGaussian:
        """Return the mechanism with the least float-safe noise for matrices of `size` rows."""
        return cls(*gaussian_grid(sensitivity, guarantee, size * size))

    def release(self, center: Array, rng: RandomSource) -> Array:
        if self.grid is None:
            return unvecd(add_gaussian(vecd(center), self.sigma, None, rng))
        self.grid.check_shape(np.shape(center)[-2:])
        rows, columns = triangle(center.shape[-1])
        off_diagonal = nextafter(self.sigma * sqrt(0.5), inf)
        sigma = np.where(rows == columns, self.sigma, off_diagonal)
        noisy = np.empty(center.shape)
        noisy[..., rows, columns] = self.grid.add_noise(center[..., rows, columns], sigma, rng)
        noisy[..., columns, rows] = noisy[..., rows, columns]
        return noisy

    def log_density(self, center: Array, x: Array) -> Array:
        return super().log_density(vecd(np.asarray(center)), vecd(np.asarray(x)))
