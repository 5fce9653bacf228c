"""Distance from the centre of a Riemannian Gaussian on a sphere: density, integral, exact draws.

The density on (0, π) is proportional to ``exp(-s²/2σ²) sin^{d-1} s``, which is log-concave.
"""

from __future__ import annotations

from math import log, pi, sqrt, tan

import numpy as np
from scipy.optimize import brentq

from skdpfrechet._numerics import Array

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)


def _radial_log_density(s: Array, dim: int, sigma: float) -> Array:
    """Return ``-s²/2σ² + (d-1) log sin s``, the log density of the distance up to a constant."""
    with np.errstate(divide="ignore"):
        volume = (dim - 1) * np.log(np.sin(s)) if dim > 1 else 0.0
    return np.asarray(-((s / sigma) ** 2) / 2 + volume)


def _radial_slope(s: float, dim: int, sigma: float) -> float:
    return -s / sigma**2 + ((dim - 1) / tan(s) if dim > 1 else 0.0)


def _radial_mode(dim: int, sigma: float) -> float:
    """Return the mode: the slope falls from +∞ at 0 to below 0 past π/2, so the root is bracketed.

    At π/2 itself the slope is -π/2σ², which rounding of the tangent hides for large σ.
    """
    if dim == 1:
        return 0.0
    xtol = 1e-14 * min(sigma, 1.0)
    return float(brentq(_radial_slope, 1e-300, 2.0, args=(dim, sigma), xtol=xtol))


def log_radial_integral(dim: int, sigma: float) -> float:
    """Return ``log ∫_0^π exp(-s²/2σ²) sin^{d-1} s ds`` by Gauss-Legendre around the mode."""
    mode = _radial_mode(dim, sigma)
    # The log density is strongly concave with modulus 1/σ² + (d-1), so this window holds all but
    # a share far below 1e-16 of the mass.
    reach = 12 / sqrt(1 / sigma**2 + (dim - 1))
    low, high = max(mode - reach, 0.0), min(mode + reach, pi)
    s = low + (high - low) * (_NODES + 1) / 2
    logs = _radial_log_density(s, dim, sigma)
    top = float(logs.max())
    return top + log(float((_WEIGHTS * np.exp(logs - top)).sum()) * (high - low) / 2)


def sample_sphere_radius(dim: int, sigma: float, count: int, rng: np.random.Generator) -> Array:
    """Draw distances with density ∝ ``exp(-s²/2σ²) sin^{d-1} s`` on (0, π), exactly.

    Rejection from σ·chi_d with acceptance ``(sin s/s)^{d-1}`` while σd ≤ 1, where about
    exp(-σ²d²/6) of the proposals are kept; beyond, that share collapses and rejection from the
    tangent envelope of the log-concave density takes over, at any d and σ.
    """
    draw = _propose_chi if sigma * dim <= 1 else _TangentEnvelope(dim, sigma)
    kept: list[Array] = []
    missing = count
    while missing > 0:
        s = draw(dim, sigma, 2 * missing + 16, rng)
        kept.append(s[:missing])
        missing -= min(len(s), missing)
    return np.concatenate(kept) if kept else np.empty(0)


def _propose_chi(dim: int, sigma: float, size: int, rng: np.random.Generator) -> Array:
    s = sigma * np.sqrt(rng.chisquare(dim, size))
    inside = s < pi
    accept = np.where(inside, np.sinc(s / pi), 0.0) ** (dim - 1)
    return np.asarray(s[inside & (rng.random(size) < accept)])


class _TangentEnvelope:
    """Rejection from three tangents of the concave log density: at its mode and on either side."""

    def __init__(self, dim: int, sigma: float) -> None:
        mode = _radial_mode(dim, sigma)
        top = float(_radial_log_density(np.array(max(mode, 1e-300)), dim, sigma))

        def drop(s: float) -> float:
            return float(_radial_log_density(np.array(s), dim, sigma)) - top + 1

        points = [mode]
        if drop(pi * (1 - 1e-12)) < 0:
            points.append(float(brentq(drop, max(mode, 1e-300), pi * (1 - 1e-12))))
        if mode > 0 and drop(mode * 1e-6) < 0:
            points.insert(0, float(brentq(drop, mode * 1e-6, mode)))
        slopes = [0.0 if s == mode else _radial_slope(s, dim, sigma) for s in points]
        heights = [float(_radial_log_density(np.array(max(s, 1e-300)), dim, sigma)) for s in points]
        # Knots where neighbouring tangents meet; their slopes decrease, so they do meet.
        knots = [0.0]
        for i in range(len(points) - 1):
            rise = heights[i + 1] - slopes[i + 1] * points[i + 1]
            rise -= heights[i] - slopes[i] * points[i]
            knots.append(rise / (slopes[i] - slopes[i + 1]))
        knots.append(pi)
        self.low, self.high = np.array(knots[:-1]), np.array(knots[1:])
        self.slope, self.height = np.array(slopes), np.array(heights)
        self.point = np.array(points)
        # Each piece decays exponentially from its higher end, which never overflows.
        self.anchor = np.where(self.slope > 0, self.high, self.low)
        start = self.height + self.slope * (self.anchor - self.point) - top
        width, rate = self.high - self.low, np.abs(self.slope)
        safe = np.where(rate > 0, rate, 1.0)
        mass = np.exp(start) * np.where(rate > 0, -np.expm1(-rate * width) / safe, width)
        self.share = np.cumsum(mass) / mass.sum()

    def __call__(self, dim: int, sigma: float, size: int, rng: np.random.Generator) -> Array:
        piece = np.searchsorted(self.share[:-1], rng.random(size))
        slope, width = self.slope[piece], (self.high - self.low)[piece]
        u, rate = rng.random(size), np.abs(slope)
        safe = np.where(rate > 0, rate, 1.0)
        way = np.where(rate > 0, -np.log1p(u * np.expm1(-rate * width)) / safe, u * width)
        s = self.anchor[piece] + np.where(slope > 0, -way, way)
        envelope = self.height[piece] + slope * (s - self.point[piece])
        with np.errstate(divide="ignore"):
            log_u = np.log(rng.random(size))
        inside = (s > 0) & (s < pi)
        density = _radial_log_density(np.where(inside, s, pi / 2), dim, sigma)
        return np.asarray(s[inside & (log_u < density - envelope)])
