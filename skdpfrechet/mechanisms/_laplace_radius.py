"""Distance from the centre of a Riemannian Laplace in constant curvature: integrals, exact draws.

The density is proportional to ``exp(-s/λ)`` times the area of the sphere of radius s, which is
``s^{d-1}``, ``sin^{d-1} s`` on (0, π) or ``sinh^{d-1} s`` up to a constant.
"""

from __future__ import annotations

from math import atan, exp, expm1, lgamma, log, log1p, pi, tan

import numpy as np

from skdpfrechet._numerics import Array
from skdpfrechet.mechanisms._rejection import TangentEnvelope, collect
from skdpfrechet.mechanisms._system_generator import RandomSource


def log_unit_area(dim: int) -> float:
    """Return the log area of the unit sphere S^{d-1} in R^d."""
    return log(2) + dim / 2 * log(pi) - lgamma(dim / 2)


def log_flat_integral(dim: int, scale: float) -> float:
    """Return ``log ∫_0^∞ exp(-s/λ) s^{d-1} ds``."""
    return lgamma(dim) + dim * log(scale)


def log_sphere_integral(dim: int, scale: float) -> float:
    """Return ``log ∫_0^π exp(-s/λ) sin^{d-1} s ds``.

    Integrating by parts twice, ``I_n = n (n-1)/(n² + 1/λ²) I_{n-2}`` for the power n.
    """
    total = log(scale)
    if dim % 2:  # down to I_0 = λ (1 - exp(-π/λ))
        total += log(-expm1(-pi / scale))
    else:  # down to I_1 = λ² (1 + exp(-π/λ))/(1 + λ²)
        total += log(scale) + log1p(exp(-pi / scale)) - log1p(scale * scale)
    for n in range(dim - 1, 1, -2):
        total += log(n * (n - 1)) + 2 * log(scale) - log1p((n * scale) ** 2)
    return total


def log_hyperbolic_integral(dim: int, scale: float) -> float:
    """Return ``log ∫_0^∞ exp(-s/λ) sinh^{d-1} s ds`` for λ < 1/(d-1).

    As on the sphere, ``I_n = n (n-1)/(1/λ² - n²) I_{n-2}``.
    """
    total = log(scale)
    if dim % 2 == 0:  # I_1 = λ²/(1 - λ²), else I_0 = λ
        total += log(scale) - _log_complement(scale)
    for n in range(dim - 1, 1, -2):
        total += log(n * (n - 1)) + 2 * log(scale) - _log_complement(n * scale)
    return total


def _log_complement(x: float) -> float:
    """Return ``log(1 - x²)``."""
    return log1p(-x) + log1p(x)


def sample_flat_distance(dim: int, scale: float, count: int, rng: RandomSource) -> Array:
    """Draw distances with density ∝ ``exp(-s/λ) s^{d-1}``."""
    return np.asarray(scale * rng.gamma(dim, size=count))


def sample_hyperbolic_distance(dim: int, scale: float, count: int, rng: RandomSource) -> Array:
    """Draw distances with density ∝ ``exp(-s/λ) sinh^{d-1} s``, λ < 1/(d-1).

    ``exp(-2s)`` has the distribution Beta((1/λ - d + 1)/2, d).
    """
    near = rng.gamma((1 / scale - (dim - 1)) / 2, size=count)
    # Gamma variables of tiny shape round to 0, where s = ∞.
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.log1p(rng.gamma(dim, size=count) / near) / 2)


def sample_sphere_distance(dim: int, scale: float, count: int, rng: RandomSource) -> Array:
    """Draw distances with density ∝ ``exp(-s/λ) sin^{d-1} s`` on (0, π).

    On the circle by inversion, else from the tangent envelope of the log-concave density.
    """
    if dim == 1:
        return np.asarray(-scale * np.log1p(rng.random(count) * expm1(-pi / scale)))

    def log_density(s: Array) -> Array:
        return np.asarray(-s / scale + (dim - 1) * np.log(np.sin(s)))

    envelope = TangentEnvelope(
        log_density,
        lambda s: -1 / scale + (dim - 1) / tan(s),
        mode=atan((dim - 1) * scale),
        end=pi,
    )
    return collect(lambda size: envelope(size, rng), count)
