"""Exact conversions between the parameter of Gaussian differential privacy and (ε, δ)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import erfinv, ndtri

from skdpfrechet.privacy._gaussian_profile import ULP, FloatArray, delta_upper, log_delta_upper
from skdpfrechet.privacy._rounding import half_square_up


def nonnegative_array(name: str, value: ArrayLike) -> FloatArray:
    """Return `value` as an array of floats in [0, ∞]; negatives and NaN are refused."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be a real number or an array of them, got {value!r}.")
    if not np.all(array >= 0):
        raise ValueError(f"{name} must not be negative or NaN, got {value!r}.")
    return array.astype(np.float64)


def probability_array(name: str, value: ArrayLike) -> FloatArray:
    """Return `value` as an array of floats in [0, 1]."""
    array = nonnegative_array(name, value)
    if not np.all(array <= 1):
        raise ValueError(f"{name} must lie between 0 and 1, got {value!r}.")
    return array


def unwrap(array: FloatArray) -> float | FloatArray:
    """Return a 0-dimensional array as a Python float, any other unchanged."""
    return float(array) if np.ndim(array) == 0 else array


def _solve_epsilon(mu: float, delta: float) -> float:
    if mu == 0 or delta == 1:
        return 0.0
    if delta == 0 or math.isinf(mu):
        return math.inf
    if gdp_delta(mu, 0.0) <= delta:
        return 0.0

    # Bracket. δ_μ(0) > δ was just seen. δ_μ(ε) < Φ(a), so a = min(Φ⁻¹(δ), 0) − 1 makes it less
    # than .32 δ (log Φ is concave, hence Φ(x − 1)/Φ(x) ≤ Φ(−1)/Φ(0) for x ≤ 0); the factor
    # 1 + 1e-14 outweighs the rounding of a for every μ.
    high = mu * (mu / 2 + 1 - min(float(ndtri(delta)), 0.0)) * (1 + 1e-14)
    if math.isinf(high):
        return math.inf

    def excess(epsilon: float) -> float:
        return log_delta_upper(mu, epsilon) - math.log(delta)

    epsilon = float(brentq(excess, 0, high, xtol=1e-300, rtol=4 * ULP, maxiter=1000))
    step = math.ulp(max(epsilon, mu * mu))
    while excess(epsilon) > 0:  # round up; ends, since excess(high) < 0
        epsilon += step
        step *= 2
    return epsilon


def _solve_mu(epsilon: float, delta: float) -> float:
    if math.isinf(epsilon) or delta == 1:
        return math.inf
    if delta == 0:
        return 0.0

    def mu_at(a: float) -> float:  # the positive solution of a = μ/2 − ε/μ
        root = math.sqrt(2) * math.sqrt(epsilon)
        length = math.hypot(a, root)
        return a + length if a >= 0 else root * (root / (length - a))

    # Bracket. δ_μ(ε) increases with μ. It is less than Φ(a) and at most δ_μ(0) = erf(μ/√8), so it
    # is at most δ at the larger of the two μ that solve these for δ; half of it moves a down by
    # (μ/2 + ε/μ)/2 and μ by half, which outweighs rounding. For a ≥ 0, b ≤ −a and so
    # 1 − δ_μ(ε) = φ(a) [m(−a) + m(b)] ≤ 2 Φ(−a): δ_μ(ε) ≥ δ at a = √2 erfinv(δ), and more at
    # twice that a; the factor outweighs the rounding of μ, which may move a by more than that.
    normal = math.sqrt(2) * float(erfinv(delta))
    low = max(mu_at(float(ndtri(delta))), 2 * normal) / 2
    high = mu_at(2 * normal) * (1 + 8 * ULP)

    def excess(mu: float) -> float:
        return log_delta_upper(mu, epsilon) - math.log(delta)

    # log(μ/low): the bracket can span hundreds of powers of ten.
    log_ratio = brentq(
        lambda u: excess(low * math.exp(u)), 0, math.log(high / low), xtol=1e-15, maxiter=1000
    )
    mu = low * math.exp(log_ratio)
    step = math.ulp(mu)
    while excess(mu) > 0:  # round down; ends, since excess(low) < 0
        mu = max(mu - step, low)
        step *= 2
    return mu


def _broadcast(
    solve: Callable[[float, float], float], first: FloatArray, second: FloatArray
) -> float | FloatArray:
    with np.errstate(over="ignore", under="ignore"):
        return unwrap(np.vectorize(solve, otypes=[float])(first, second))


@overload
def gdp_delta(mu: float, epsilon: float) -> float: ...
@overload
def gdp_delta(mu: ArrayLike, epsilon: ArrayLike) -> float | FloatArray: ...
def gdp_delta(mu: ArrayLike, epsilon: ArrayLike) -> float | FloatArray:
    """Smallest δ for which every μ-GDP mechanism is (ε, δ)-DP, rounded up.

    δ_μ(ε) = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2).

    Parameters
    ----------
    mu : array_like
        Parameter of Gaussian differential privacy, in [0, ∞].
    epsilon : array_like
        In [0, ∞], broadcast against `mu`. ε = ∞ asks nothing, so δ = 0 there even for μ = ∞.

    Returns
    -------
    float or ndarray
        δ in [0, 1]; a Python float when both arguments are scalars. It is never below δ_μ(ε), and
        above it by at most ``6e-15 (1 + |log δ|)`` of itself, down to the smallest positive float,
        which stands for all that is less; 0 only if μ = 0 or ε = ∞.

    Raises
    ------
    ValueError, TypeError
        If an argument is negative or NaN, or is not numeric.

    References
    ----------
    .. [1] J. Dong, A. Roth, W. J. Su (2022). Gaussian differential privacy. JRSS-B 84, 3-37,
       Corollary 2.13.
    .. [2] B. Balle, Y.-X. Wang (2018). Improving the Gaussian mechanism for differential privacy.
       ICML, Theorem 8.

    Examples
    --------
    >>> from skdpfrechet.privacy import gdp_delta
    >>> round(gdp_delta(1.0, 1.0), 6)
    0.126937
    """
    mu_, epsilon_ = np.broadcast_arrays(
        nonnegative_array("mu", mu), nonnegative_array("epsilon", epsilon)
    )
    out = np.where(np.isinf(mu_) & np.isfinite(epsilon_), 1.0, 0.0)
    regular = (mu_ > 0) & np.isfinite(mu_) & np.isfinite(epsilon_)
    mu_, epsilon_ = mu_[regular], epsilon_[regular]
    if mu_.size > 0:
        out[regular] = delta_upper(mu_, epsilon_)
    return unwrap(out)


@overload
def gdp_epsilon(mu: float, delta: float) -> float: ...
@overload
def gdp_epsilon(mu: ArrayLike, delta: ArrayLike) -> float | FloatArray: ...
def gdp_epsilon(mu: ArrayLike, delta: ArrayLike) -> float | FloatArray:
    """Smallest ε for which every μ-GDP mechanism is (ε, δ)-DP, rounded up.

    Parameters
    ----------
    mu : array_like
        Parameter of Gaussian differential privacy, in [0, ∞].
    delta : array_like
        In [0, 1], broadcast against `mu`.

    Returns
    -------
    float or ndarray
        ε in [0, ∞]: 0 if δ ≥ δ_μ(0), ∞ if δ = 0 < μ. The rounding covers the floating-point
        errors: δ_μ of the result is at most δ.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range or NaN, or is not numeric.

    See Also
    --------
    gdp_delta : The function inverted, with the references.

    Examples
    --------
    >>> from skdpfrechet.privacy import gdp_epsilon
    >>> round(gdp_epsilon(1.0, 1e-5), 4)
    4.3772
    """
    return _broadcast(
        _solve_epsilon, nonnegative_array("mu", mu), probability_array("delta", delta)
    )


@overload
def gdp_mu(epsilon: float, delta: float) -> float: ...
@overload
def gdp_mu(epsilon: ArrayLike, delta: ArrayLike) -> float | FloatArray: ...
def gdp_mu(epsilon: ArrayLike, delta: ArrayLike) -> float | FloatArray:
    """Largest μ for which every μ-GDP mechanism is (ε, δ)-DP, rounded down.

    For calibration only: the converse fails, an (ε, δ)-DP mechanism need not be μ-GDP.

    Parameters
    ----------
    epsilon : array_like
        In [0, ∞]. ε = ∞ asks nothing, so μ = ∞.
    delta : array_like
        In [0, 1], broadcast against `epsilon`.

    Returns
    -------
    float or ndarray
        μ in [0, ∞]: 0 if δ = 0 and ε < ∞, ∞ if δ = 1. The rounding covers the floating-point
        errors: δ_μ(ε) of the result is at most δ.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range or NaN, or is not numeric.

    See Also
    --------
    gdp_delta : The function inverted, with the references.

    Examples
    --------
    >>> from skdpfrechet.privacy import gdp_mu
    >>> round(gdp_mu(1.0, 1e-5), 4)
    0.2681
    """
    return _broadcast(
        _solve_mu, nonnegative_array("epsilon", epsilon), probability_array("delta", delta)
    )


@overload
def gdp_rho(mu: float) -> float: ...
@overload
def gdp_rho(mu: ArrayLike) -> float | FloatArray: ...
def gdp_rho(mu: ArrayLike) -> float | FloatArray:
    """ρ = μ²/2 of the zero-concentrated differential privacy of Gaussian noise at μ, rounded up.

    Parameters
    ----------
    mu : array_like
        Parameter of Gaussian differential privacy, in [0, ∞].

    Returns
    -------
    float or ndarray
        ρ in [0, ∞].

    Raises
    ------
    ValueError, TypeError
        If `mu` is negative or NaN, or is not numeric.

    Notes
    -----
    Holds for every μ-GDP mechanism: by Blackwell's theorem its pair of output laws is a
    randomisation of N(0, 1) and N(μ, 1), whose Rényi divergence of order α is α μ²/2.

    References
    ----------
    .. [1] M. Bun, T. Steinke (2016). Concentrated differential privacy: simplifications,
       extensions, and lower bounds. TCC, Proposition 1.6.

    Examples
    --------
    >>> from skdpfrechet.privacy import gdp_rho
    >>> gdp_rho(2.0)
    2.0
    """
    mu_ = nonnegative_array("mu", mu)
    return unwrap(np.vectorize(half_square_up, otypes=[float])(mu_))
