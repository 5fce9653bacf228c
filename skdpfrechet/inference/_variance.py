"""From the releases of a private variance to its estimate and confidence interval."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t

from skdpfrechet._numerics import Array
from skdpfrechet._solvers import enter_ball
from skdpfrechet._validation import check_open_unit
from skdpfrechet.inference._interval import ConfidenceInterval
from skdpfrechet.inference._mean import MeanRelease
from skdpfrechet.manifolds import Manifold
from skdpfrechet.mechanisms import Mechanism
from skdpfrechet.privacy import GDP
from skdpfrechet.sensitivity import MOMENT_CURVE_CONSTANT


@dataclass(frozen=True, eq=False)
class VarianceRelease:
    """A released Fréchet variance and all that is public about its error.

    Parameters
    ----------
    value : float
        The released variance less its bias, within the range that the ball allows.
    center : float
        Estimate of the population variance on which intervals and tests rest: the released number
        less all known biases, not clipped, hence possibly negative.
    standard_error : float or None
        Of `center`, noise included; infinite if nothing is known of it; None if none was released.
    upper : float
        Largest possible variance in the ball.
    n : int
    mean : MeanRelease
        The mean from which distances were taken.
    guarantee : GDP
        What the fit spent, a reused mean not included.
    void_reason : str or None
        Why the guarantee does not hold, such as a fixed seed.
    freedom : float
        Degrees of freedom of `standard_error`: about n - 1 where sampling dominates, without bound
        where noise of known scale does.
    """

    value: float
    center: float
    standard_error: float | None
    upper: float
    n: int
    mean: MeanRelease
    guarantee: GDP
    void_reason: str | None = None
    freedom: float = inf

    def interval(self, confidence_level: float) -> ConfidenceInterval:
        """Return the interval of any level; it costs nothing."""
        level = check_open_unit("confidence_level", confidence_level)
        if self.standard_error is None:
            raise ValueError("interval requires a confidence_level at fit, got None.")
        return variance_interval(self.center, self.standard_error, level, self.upper, self.freedom)


def noise_bias(
    manifold: Manifold, origin: Array, radius: float, mechanism: Mechanism, point: Array
) -> tuple[float, float]:
    """Return mean and variance of ρ²(p, p'), what the noise in the mean adds to the variance.

    p' is a fresh release around the released point p, projected to the ball as p was. The generator
    is seeded: nothing private enters.
    """
    bias, variance = noise_moments(manifold, origin, radius, mechanism, point[None])
    return float(bias[0]), float(variance[0])


def noise_moments(
    manifold: Manifold, origin: Array, radius: float, mechanism: Mechanism, points: Array
) -> tuple[Array, Array]:
    """Return `noise_bias` of each of `points`, shape (k, *point_shape), as two arrays (k,).

    Every point meets the draws that it would meet alone, so the draws are made anew for each.
    """
    # The share of ρ² that varies falls with the dimension, and so do the draws that it takes.
    draws = max(50, min(2000, 10000 // manifold.dim))
    squares, local = np.empty((len(points), draws)), manifold.localize(origin)
    for point, row in zip(points, squares, strict=True):
        shaken = mechanism.simulate(point, draws, np.random.default_rng(20260514))
        sample = enter_ball(local, shaken, radius, inf)
        row[:] = sample.squared_distances(local.to_model(point))
    return np.minimum(squares.mean(axis=-1), radius**2), squares.var(axis=-1)


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
        Raised to the standard deviation of its own noise, as the eigenvalues of a second moment
        are: a spread lost in the noise, which comes with a low mean, would make the interval too
        short. Cut to the possible variances ``(m - low)(high - m)`` given a mean m that is one
        σ_V closer to the middle.
    """
    return float(spread_from_moments(mean, second, scale, low, high))


def spread_from_moments(
    mean: ArrayLike, second: ArrayLike, scale: ArrayLike, low: ArrayLike, high: ArrayLike
) -> Array:
    """Return `squared_distance_spread` over arrays."""
    mean, second, scale, low, high = (
        np.asarray(x, dtype=float) for x in (mean, second, scale, low, high)
    )
    middle, half = (low + high) / 2, (high - low) / 2
    inside = np.clip(mean, low, high)
    own_noise = scale * np.hypot(half / MOMENT_CURVE_CONSTANT, 2 * (inside - middle))
    spread = np.maximum(second - (mean - middle) ** 2 + scale**2, own_noise)
    inside = inside + np.clip(middle - inside, -scale, scale)
    return np.asarray(np.minimum(spread, (inside - low) * (high - inside)))


def variance_interval(
    center: float,
    standard_error: float,
    confidence_level: float,
    high: float,
    freedom: float = inf,
) -> ConfidenceInterval:
    """Return the Student interval around `center`, cut to the possible range [0, `high`].

    Where the noise has carried all of it out of the range, the release says nothing: the range.
    """
    ends = interval_ends(center, standard_error, confidence_level, high, freedom)
    return ConfidenceInterval(*(float(end) for end in ends))


def interval_ends(
    center: ArrayLike,
    standard_error: ArrayLike,
    confidence_level: float,
    high: ArrayLike,
    freedom: ArrayLike = inf,
) -> tuple[Array, Array]:
    """Return the ends of `variance_interval` over arrays."""
    center, high = np.asarray(center, dtype=float), np.asarray(high, dtype=float)
    with np.errstate(invalid="ignore"):  # one record: 0 times infinity, at a level next to 0
        half = t.ppf((1 + confidence_level) / 2, freedom) * np.asarray(standard_error, dtype=float)
    lower, upper = center - half, center + half
    touches = (upper > 0) & (lower < high)  # written so that NaN gives the range
    return (
        np.where(touches, np.maximum(lower, 0.0), 0.0),
        np.where(touches, np.minimum(upper, high), high),
    )
