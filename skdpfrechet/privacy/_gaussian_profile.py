"""The privacy profile of Gaussian differential privacy in log space: the numerical core.

With a = μ/2 − ε/μ, b = a − μ and the Mills ratio m = Φ/φ, e^ε φ(b) = φ(a) gives

    δ_μ(ε) = Φ(a) − e^ε Φ(b) = φ(a) [m(a) − m(b)] = φ(a) ∫_0^∞ e^{at − t²/2} (1 − e^{−μt}) dt,

so nothing overflows, and the integral, all of one sign, replaces the difference where it cancels.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, exprel

from skdpfrechet.privacy._rounding import float_up

FloatArray = NDArray[np.float64]

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
ULP = 2.0**-52
# Bound on the error of `log_profile`, relative to 1 + |log δ|; the tests measure less than half.
PROFILE_ERROR = 4e-15
# The integrand is cut where e^{at − t²/2} < e^{−45} for a ≤ 0, and the rule used as long as
# 1 − e^{−μt} is resolved by its 40 nodes.
_CUT = 45.0
_RESOLVED = 10.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)
_NODES, _WEIGHTS = (1 + _NODES) / 2, _WEIGHTS / 2


def _log_density(a: FloatArray) -> FloatArray:
    return -0.5 * a * a - _LOG_SQRT_2PI


def _mills(x: FloatArray) -> FloatArray:
    """Φ(x)/φ(x) at x ≤ 0."""
    ratio: FloatArray = math.sqrt(math.pi / 2) * erfcx(-x / math.sqrt(2))
    return ratio


def _mills_slope(a: FloatArray, mu: FloatArray, window: FloatArray) -> FloatArray:
    """[m(a) − m(a − μ)]/μ by Gauss–Legendre on [0, window]: positive terms, no cancellation."""
    t = window[..., None] * _NODES
    integrand = np.exp((a[..., None] - t / 2) * t) * t * exprel(-mu[..., None] * t)
    return np.asarray(window * (integrand @ _WEIGHTS))


def log_profile(a: FloatArray, mu: FloatArray) -> FloatArray:
    """log δ as a function of a ≤ μ/2 and of μ in (0, ∞); increasing in both."""
    with np.errstate(over="ignore", under="ignore"):
        a, mu = np.broadcast_arrays(np.maximum(a, -1e150), mu)  # the limit keeps −∞ · 0 away
        left = np.maximum(-a, 0)
        window = 2 * _CUT / (left + np.sqrt(left * left + 2 * _CUT))
        close = mu * window < _RESOLVED
        below, above = ~close & (a < 0), ~close & (a >= 0)
        out = np.empty(a.shape)
        a_, mu_ = a[close], mu[close]
        out[close] = _log_density(a_) + np.log(mu_) + np.log(_mills_slope(a_, mu_, window[close]))
        a_, mu_ = a[below], mu[below]
        out[below] = _log_density(a_) + np.log(_mills(a_) - _mills(a_ - mu_))
        a_, mu_ = a[above], mu[above]  # 1 − δ = φ(a) [m(−a) + m(b)]
        out[above] = np.log1p(-np.exp(_log_density(a_)) * (_mills(-a_) + _mills(a_ - mu_)))
    return out


def gap_upper(mu: float, epsilon: float) -> float:
    """a = μ/2 − ε/μ rounded up, for μ in (0, ∞), ε < ∞: two large numbers may nearly cancel."""
    return float_up(Fraction(mu) / 2 - Fraction(epsilon) / Fraction(mu))


def log_delta_upper(mu: float, epsilon: float) -> float:
    """A bound on log δ_μ(ε) from above that counts every rounding, for μ in (0, ∞), ε < ∞."""
    log_delta = float(log_profile(np.asarray(gap_upper(mu, epsilon)), np.asarray(mu)))
    return log_delta + PROFILE_ERROR * (1 - log_delta)


def delta_upper(mu: FloatArray, epsilon: FloatArray) -> FloatArray:
    """A bound on δ_μ(ε) from above, in (0, 1], for μ in (0, ∞), ε < ∞; below `log_delta_upper`.

    The error of `log_profile` is less than half of what is added to its logarithm here, and
    `log_delta_upper` adds a third more, which the rounding of exp cannot make up for.
    """
    log_delta = log_profile(np.vectorize(gap_upper, otypes=[float])(mu, epsilon), mu)
    log_delta = np.minimum(log_delta + 0.75 * PROFILE_ERROR * (1 - log_delta), 0.0)
    return np.asarray(np.vectorize(_exp_up, otypes=[float])(log_delta))


def _exp_up(x: float) -> float:
    """exp(x) for x ≤ 0; where it is subnormal, or vanishes, rounded up to a positive number."""
    if x > -700:
        return math.exp(x)
    scaled = math.exp(max(x, -1e4) + 500 * math.log(2)) * (1 + 8 * ULP)
    return max(float_up(Fraction(scaled) / 2**500), math.ulp(0.0))
