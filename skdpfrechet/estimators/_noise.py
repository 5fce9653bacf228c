"""Releases of means over the records, with noise in float64 or float-safe.

Float-safe is: every record is rounded, the sum of the rounded ones is exact, its noise is exact,
and the division by n is post-processing. Each function returns the noisy mean, its sensitivity and
the scale of its noise, both in units of the mean.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import frexp, inf, ldexp, nextafter, sqrt

import numpy as np

from skdpfrechet import sensitivity
from skdpfrechet._numerics import Array
from skdpfrechet._solvers import (
    Sample,
    exact_moment_sums,
    exact_step,
    exact_sum,
)
from skdpfrechet.estimators._mechanisms import mean_law
from skdpfrechet.manifolds import Manifold
from skdpfrechet.mechanisms import Gaussian, Grid, RandomSource, SymmetricGaussian
from skdpfrechet.mechanisms._rounded_gaussian import has_flint
from skdpfrechet.privacy import GDP

NOISES = ("auto", "float", "secure")
_FINENESS = 2.0**-19  # its square: of a grid against its noise, finer ones only take longer to draw


def exact_noise(noise, calibration: str, mu: float) -> bool:
    """Return whether noise is exact wherever the mechanism has such a form: public numbers only."""
    if not isinstance(noise, str) or noise not in NOISES:
        names = ", ".join(repr(name) for name in NOISES)
        raise ValueError(f"noise must be one of {names}, got {noise!r}.")
    if noise == "auto":
        return calibration == "sharp" and mu < inf and has_flint()
    return noise == "secure"


def resolve_noise(noise: str, mechanism: str, calibration: str, mu: float) -> bool:
    """Return whether the noise of a fit is float-safe; raise where it must be and cannot."""
    if not exact_noise(noise, calibration, mu) or mu == inf:
        return False
    safe = mean_law(mechanism).calibrate_secure is not None
    if noise == "auto":
        return safe
    if not safe:
        raise ValueError(
            "noise='secure' requires mechanism 'wrapped-gaussian' or 'projected-gaussian', "
            f"got {mechanism!r}."
        )
    if calibration != "sharp":
        raise ValueError(f"noise='secure' requires calibration='sharp', got {calibration!r}.")
    if not has_flint():
        raise ImportError(
            "noise='secure' requires python-flint: pip install 'skdpfrechet[secure]'."
        )
    return True


def release_mean_vector(
    vectors: Array, radius: float, plain: float, budget: float, secure: bool, rng: RandomSource
) -> tuple[Array, float, float]:
    """Release the mean of `vectors`, shape (n, k), of norm at most `radius`.

    `plain` is the sensitivity of the mean as float64 computes it.
    """
    if not secure:
        noise = Gaussian.calibrate(plain, GDP(budget))
        return noise.release(vectors.mean(axis=0), rng), plain, noise.sigma
    n, dim = vectors.shape
    step = exact_step(radius, n, 1)
    scale = sensitivity.rounded_tangent_sum(radius, dim, step)
    noise = Gaussian.calibrate_secure(scale, GDP(budget), dim)
    return noise.release(exact_sum(vectors, step), rng) / n, *_per_record(noise, scale, n)


def release_second_moment(
    model: Manifold,
    sample: Sample,
    point: Array,
    ball: tuple[Array, float],
    radius: float,
    distance: float,
    budget: float,
    secure: bool,
    rng: RandomSource,
) -> tuple[Array, float, float]:
    """Release the second moment of the logarithms at `point`, which lie in a `ball` there.

    `radius` and `distance` are those of `sensitivity.second_moment`.
    """
    n = sample.n
    if not secure:
        scale = sensitivity.computed_second_moment(model, radius, distance, n)
        noise = SymmetricGaussian.calibrate(scale, GDP(budget))
        return noise.release(sample.second_moment(point, *ball), rng), scale, noise.sigma
    step = exact_step(min(radius + distance, model.diameter), n, 2)
    scale = sensitivity.rounded_second_moment(model, radius, distance, step)
    noise = SymmetricGaussian.calibrate_secure(scale, GDP(budget), model.dim)
    total, carry = sample.exact_second_moment(point, *ball, step)
    return carry(noise.release(total, rng) / n), *_per_record(noise, scale, n)


def release_moment_curve(
    sample: Sample,
    values: Callable[[Sample], Array],
    half: float,
    radius: float,
    distance: float,
    both: bool,
    budget: float,
    secure: bool,
    rng: RandomSource,
) -> tuple[Array, float, float]:
    """Release the mean of ``(y, c y²)``, c the `MOMENT_CURVE_CONSTANT` over `half`, |y| ≤ `half`.

    ``y = values(sample)``, one number for each record; `radius` and `distance` are those of
    `sensitivity.variance`. Only the first of the two unless `both`.
    """
    curvature = sensitivity.MOMENT_CURVE_CONSTANT / half
    n = sample.n
    if not secure:
        width = sensitivity.computed_variance(radius, distance, n)
        noise = Gaussian.calibrate(width, GDP(budget))
        first, second = sample.average(partial(_moments, values))
        curve = np.array([first, curvature * second])
        return noise.release(curve if both else curve[:1], rng), width, noise.sigma
    sigma = Gaussian.calibrate(sensitivity.variance(radius, distance, 1), GDP(budget)).sigma
    fine = _no_finer(exact_step(half, n, 1), _FINENESS**2 * sigma)
    coarse = _no_finer(exact_step(half, n, 2), _FINENESS * sqrt(sigma / curvature))
    scale = sensitivity.rounded_curve(radius, distance, fine, coarse)
    sigma = Gaussian.calibrate(scale, GDP(budget)).sigma
    first, second = sample.total(partial(_exact_moments, values, half, fine, coarse))
    # The sums lie on the grids of fine and coarse², so the curve needs no further rounding.
    released = Gaussian(sigma, Grid(fine, 1)).release(np.array([first]), rng)
    if both:
        sigma_second = nextafter(sigma / curvature, inf)
        square = Gaussian(sigma_second, Grid(coarse**2, 1)).release(np.array([second]), rng)
        released = np.append(released, curvature * square)
    return released / n, scale / n, sigma / n


def _no_finer(step: float, limit: float) -> float:
    """Return a power of two, the step or the one that follows the limit."""
    return max(step, ldexp(1.0, frexp(limit)[1]))


def _moments(values: Callable[[Sample], Array], sample: Sample) -> tuple[Array, Array]:
    y = values(sample)
    return y.mean(), (y * y).mean()


def _exact_moments(
    values: Callable[[Sample], Array], half: float, fine: float, coarse: float, sample: Sample
) -> tuple[Array, Array]:
    first, second = exact_moment_sums(values(sample), half, fine, coarse)
    return np.asarray(first), np.asarray(second)


def _per_record(noise: Gaussian, scale: float, n: int) -> tuple[float, float]:
    return (scale if noise.grid is None else noise.grid.sensitivity(scale)) / n, noise.sigma / n
