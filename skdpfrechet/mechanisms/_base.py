"""The `Mechanism` interface: the only place where a statistic of the records meets randomness."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import inf

import numpy as np

from skdpfrechet._numerics import Array
from skdpfrechet._validation import check_nonnegative
from skdpfrechet.manifolds import Manifold
from skdpfrechet.mechanisms._system_generator import RandomSource
from skdpfrechet.privacy import GDP, ApproxDP, PureDP, gdp_mu
from skdpfrechet.privacy._rounding import quotient_up


class Mechanism(ABC):
    """Noise of a fixed, public scale added to one statistic.

    Instances are frozen. One field is the public noise scale, ``sigma`` where the noise is
    Gaussian; 0 means no noise and no privacy. Those with a `grid` can add noise that is exact
    where float64 is not: ``calibrate_secure`` instead of ``calibrate``.
    """

    @abstractmethod
    def release(self, center: Array, rng: RandomSource) -> Array:
        """Return a noisy version of `center`, the private statistic.

        Parameters
        ----------
        center : ndarray
            The private value; leading axes are independent releases.
        rng : SystemGenerator or numpy.random.Generator
            The second, which can be predicted, is for tests and simulations only.
        """

    def simulate(self, center: Array, count: int, rng: RandomSource) -> Array:
        """Return `count` independent releases of one public `center`."""
        return self.release(np.broadcast_to(center, (count, *np.shape(center))), rng)

    @abstractmethod
    def log_density(self, center: Array, x: Array) -> Array:
        """Return the log density of releasing `x` when the private value is `center`.

        The reference measure is the Riemannian (or Lebesgue) volume.
        """

    @abstractmethod
    def guarantee(self, sensitivity: float) -> GDP | PureDP:
        """Return what a release guarantees for a statistic of the given sensitivity."""


def noise_scale(sensitivity: float, name: str, level: float) -> float:
    """Return the smallest float scale with ``sensitivity / scale ≤ level`` in exact arithmetic.

    `level` is the parameter `name` of a guarantee.
    """
    check_nonnegative("sensitivity", sensitivity)
    if level == inf or sensitivity == 0:
        return 0.0
    if level == 0:
        raise ValueError(f"guarantee must have {name} > 0, got {level!r}.")
    return quotient_up(sensitivity, level)


def noise_guarantee(sensitivity: float, scale: float) -> float:
    """Return `sensitivity` / `scale` rounded up, infinite without noise."""
    check_nonnegative("sensitivity", sensitivity, allow_inf=True)
    if sensitivity == 0:
        return 0.0
    return quotient_up(sensitivity, scale) if scale > 0 and sensitivity < inf else inf


def gaussian_scale(sensitivity: float, guarantee: GDP | ApproxDP) -> float:
    """Return the least σ of Gaussian noise that gives `guarantee`.

    For an (ε, δ) it is the analytic Gaussian mechanism: Δ over the largest μ whose curve δ_μ passes
    below the point.

    References
    ----------
    .. [1] B. Balle, Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy:
       analytical calibration and optimal denoising", ICML 2018, Theorem 8.
    """
    if isinstance(guarantee, GDP):
        return noise_scale(sensitivity, "mu", guarantee.mu)
    if not isinstance(guarantee, ApproxDP):
        raise TypeError(
            "guarantee must be a GDP or an ApproxDP for Gaussian noise, "
            f"got {type(guarantee).__name__}."
        )
    return noise_scale(sensitivity, "delta", gdp_mu(guarantee.epsilon, guarantee.delta))


def gaussian_guarantee(sensitivity: float, sigma: float) -> GDP:
    """Return the guarantee of Gaussian noise, `sensitivity` / `sigma`, infinite without noise."""
    return GDP(noise_guarantee(sensitivity, sigma))


def standard_normal_coords(
    manifold: Manifold, center: Array, rng: RandomSource
) -> tuple[Array, tuple[int, ...]]:
    """Return standard normal coordinates for each of the points in `center`, and their batch."""
    batch = np.shape(center)[: np.ndim(center) - len(manifold.point_shape)]
    return rng.standard_normal((*batch, manifold.dim)), batch
