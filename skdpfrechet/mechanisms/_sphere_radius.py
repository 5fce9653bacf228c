"""Distance from the centre of a Riemannian Gaussian on a sphere: density, integral, exact draws.

The density on (0, π) is proportional to ``exp(-s²/2σ²) sin^{d-1} s``, which is log-concave.
"""

from __future__ import annotations

from math import log, pi, sqrt, tan

import numpy as np
from scipy.optimize import brentq

from skdpfrechet._numerics import Array
from skdpfrechet.mechanisms._rejection import TangentEnvelope, collect
from skdpfrechet.mechanisms._system_generator import RandomSource

_FEW = 8  # dimensions in which as many normal numbers cost less than a gamma variable
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


def sample_sphere_radius(dim: int, sigma: float, count: int, rng: RandomSource) -> Array:
    """Draw distances with density ∝ ``exp(-s²/2σ²) sin^{d-1} s`` on (0, π), exactly.

    Rejection from σ·chi_d with acceptance ``(sin s/s)^{d-1}`` while σd ≤ 1, where about
    exp(-σ²d²/6) of the proposals are kept; beyond, that share collapses and rejection from the
    tangent envelope of the log-concave density takes over, at any d and σ.
    """
    propose = _propose_chi if sigma * dim <= 1 else _TangentEnvelope(dim, sigma)
    return collect(lambda size: propose(dim, sigma, size, rng), count)


def _propose_chi(dim: int, sigma: float, size: int, rng: RandomSource) -> Array:
    if dim <= _FEW:
        s = sigma * np.linalg.norm(rng.standard_normal((size, dim)), axis=-1)
    else:
        s = sigma * np.sqrt(rng.chisquare(dim, size))
    inside = s < pi
    accept = np.where(inside, np.sinc(s / pi), 0.0) ** (dim - 1)
    return np.asarray(s[inside & (rng.random(size) < accept)])


class _TangentEnvelope:
    """The tangent envelope of the density, called as `_propose_chi` is."""

    def __init__(self, dim: int, sigma: float) -> None:
        self._envelope = TangentEnvelope(
            lambda s: _radial_log_density(s, dim, sigma),
            lambda s: _radial_slope(s, dim, sigma),
            mode=_radial_mode(dim, sigma),
            end=pi,
        )

    def __call__(self, dim: int, sigma: float, size: int, rng: RandomSource) -> Array:
        return self._envelope(size, rng)
