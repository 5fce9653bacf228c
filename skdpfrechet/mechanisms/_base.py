"""The `Mechanism` interface: the only place where a statistic of the records meets randomness."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import inf, nextafter

import numpy as np

from skdpfrechet._numerics import Array
from skdpfrechet._validation import check_nonnegative
from skdpfrechet.manifolds import Manifold
from skdpfrechet.privacy import GDP


class Mechanism(ABC):
    """Noise of a fixed, public scale added to one statistic.

    Instances are frozen. ``sigma`` is the public noise scale; 0 means no noise and no privacy.
    """

    sigma: float

    @abstractmethod
    def release(self, center: Array, rng: np.random.Generator) -> Array:
        """Return a noisy version of `center`, the private statistic.

        Parameters
        ----------
        center : ndarray
            The private value; leading axes are independent releases.
        rng : numpy.random.Generator
        """

    @abstractmethod
    def log_density(self, center: Array, x: Array) -> Array:
        """Return the log density of releasing `x` when the private value is `center`.

        The reference measure is the Riemannian (or Lebesgue) volume.
        """

    @abstractmethod
    def guarantee(self, sensitivity: float) -> GDP:
        """Return what a release guarantees for a statistic of the given sensitivity."""


def gaussian_scale(sensitivity: float, guarantee: GDP) -> float:
    """Return the smallest float σ with ``sensitivity / σ ≤ μ`` in floating point."""
    if not isinstance(guarantee, GDP):
        raise TypeError(
            f"guarantee must be a GDP for Gaussian noise, got {type(guarantee).__name__}."
        )
    mu = guarantee.mu
    check_nonnegative("sensitivity", sensitivity)
    if mu == inf or sensitivity == 0:
        return 0.0
    if mu == 0:
        raise ValueError(f"guarantee must have mu > 0, got {mu!r}.")
    sigma = max(sensitivity / mu, nextafter(0.0, 1.0))
    while sensitivity / sigma > mu:
        sigma = nextafter(sigma, inf)
    return sigma


def gaussian_guarantee(sensitivity: float, sigma: float) -> GDP:
    """Return the guarantee of Gaussian noise, `sensitivity` / `sigma`, infinite without noise."""
    check_nonnegative("sensitivity", sensitivity, allow_inf=True)
    if sensitivity == 0:
        return GDP(0.0)
    return GDP(sensitivity / sigma if sigma > 0 else inf)


def standard_normal_coords(
    manifold: Manifold, center: Array, rng: np.random.Generator
) -> tuple[Array, tuple[int, ...]]:
    """Return standard normal coordinates for each of the points in `center`, and their batch."""
    batch = np.shape(center)[: np.ndim(center) - len(manifold.point_shape)]
    return rng.standard_normal((*batch, manifold.dim)), batch
