"""From the releases of a private variance to its estimate and confidence interval."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from skdpfrechet._numerics import Array
from skdpfrechet.inference._interval import ConfidenceInterval
from skdpfrechet.manifolds import Manifold
from skdpfrechet.mechanisms import Mechanism


def noise_bias(
    manifold: Manifold, origin: Array, radius: float, mechanism: Mechanism, point: Array
) -> tuple[float, float]:
    """Return mean and variance of ρ²(p, p'), what the noise in the mean adds to the variance.

    p' is a fresh release around the released point p, projected to the ball as p was. The generator
    is seeded: nothing private enters.
    """
    draws = max(50, min(2000, 20000 // manifold.dim))
    start = np.broadcast_to(point, (draws, *manifold.point_shape))
    shaken = mechanism.release(start, np.random.default_rng(20260514))
    shaken = manifold.project_to_ball(shaken, origin, radius)
    squares = manifold.dist(point, shaken) ** 2
    return min(float(squares.mean()), radius**2), float(squares.var())


def squared_distance_spread(
    mean: float, second: float, scale: float, low: float, high: float
) -> float:
    """Return the variance of the squared distances from their two noisy moments.

    Parameters
    ----------
    mean, second : float
        Released first moment, and second moment about the middle of the range.
    scale : float
        Noise scale σ_V of `mean`: its square is taken off again by ``- mean²``.
    low, high : float
        Public range of the squared distances.

    Returns
    -------
    float
        Clipped to ``[0, (m - low)(high - m)]``, the possible variances given the mean m.
    """
    spread = second - (mean - (low + high) / 2) ** 2 + scale**2
    inside = min(max(mean, low), high)
    return min(max(spread, 0.0), (inside - low) * (high - inside))


def variance_interval(
    center: float, standard_error: float, confidence_level: float, high: float
) -> ConfidenceInterval:
    """Return the normal interval around `center`, clipped to the possible range [0, `high`]."""
    half = float(norm.ppf((1 + confidence_level) / 2)) * standard_error
    return ConfidenceInterval(*(min(max(end, 0.0), high) for end in (center - half, center + half)))
