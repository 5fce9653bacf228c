"""Exact budget of the Riemannian Gaussian on a sphere: its profile, its μ and the smallest σ.

Two centres at distance Δ on S^d, polar coordinates (s, θ) at the first, ρ₂ the distance to the
second. The loss of a point is (ρ₂² − s²)/2σ², so {loss > ε} = {ρ₂ > b}, b² = s² + 2σ²ε. On the
sphere of radius s that set is {(1 − cos θ)/2 > h}, with a law Beta((d−1)/2, (d−1)/2) on the left
and, by the half-angle law of cosines, h = sin((b+s−Δ)/2) sin((b−s+Δ)/2)/(sin s sin Δ). So every
probability is an integral over s, here a Gauss-Legendre sum between the points where the geodesic
triangle degenerates. An isometry swaps the centres, hence P₂(loss > ε) = P₁(loss < −ε).
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, log, pi, sqrt, tan
from typing import overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import betainc, betaln, erfinv, ndtri_exp

from skdpfrechet._validation import check_nonnegative, check_positive, check_positive_integer
from skdpfrechet.privacy._conversions import gdp_delta, nonnegative_array, unwrap
from skdpfrechet.privacy._gaussian_profile import FloatArray
from skdpfrechet.privacy._rounding import quotient_up

__all__ = ["sphere_mu", "sphere_profile", "sphere_sigma"]

# Measured over dim 1 to 200, σ .01 to 10, Δ 1e-4 to π, against the rule with finer panels and
# against quadrature over the sphere: the profile errs by less than 1e-13, μ by 1e-13 of itself.
_PROFILE_ERROR = 1e-12
_MU_ERROR = 1e-11
# ε/μ at which `sphere_mu` compares the profile with that of its answer: near 0, where they part,
# and around μ/2, where the larger part of the loss lies.
_CHECKED_BELOW, _CHECKED_AROUND = np.array([0.3, 1.0, 2.0, 3.0]), np.array([-1.0, 0.0, 1.0, 2.0])
_CUT = 50.0  # log integrands are followed down to this far below their peak
_PANELS = 16
_nodes, _weights = np.polynomial.legendre.leggauss(24)
# s = low + length sin²(φ/2): square roots at the ends of a panel become analytic in φ.
_NODES = np.sin(pi * (_nodes + 1) / 4) ** 2
_WEIGHTS = np.sin(pi * (_nodes + 1) / 2) * _weights * pi / 4

LogIntegrand = Callable[[FloatArray], FloatArray]


def _log_integral(log_f: LogIntegrand, low: float, high: float) -> float:
    """Return ``log ∫ exp(log_f)`` for a unimodal integrand on an interval of [0, π].

    What goes on at the ends of the interval has the scale of their distances to 0 and to π.
    """
    if not low < high:
        return -inf
    left, right = low, high
    while True:  # shrinks to a third at least, or is done
        grid = left + (right - left) * (np.arange(64) + 0.5) / 64
        values = log_f(grid)
        top = float(values.max())
        if top == -inf:
            return -inf
        kept = np.flatnonzero(values >= top - _CUT)
        left = grid[kept[0] - 1] if kept[0] > 0 else left
        right = grid[kept[-1] + 1] if kept[-1] < 63 else right
        if len(kept) > 16:
            break
    doublings = 2.0 ** np.arange(44)
    breaks = np.concatenate(
        [
            np.linspace(left, right, _PANELS + 1),
            max(low, 1e-12 * right) * doublings,
            pi - max(pi - high, 1e-12 * (pi - left)) * doublings,
        ]
    )
    breaks = np.unique(breaks[(breaks >= left) & (breaks <= right)])
    length = np.diff(breaks)[:, None]
    values = log_f((breaks[:-1, None] + length * _NODES).ravel())
    top = float(values.max())
    return top + log(float(np.exp(values - top) @ (length * _WEIGHTS).ravel()))


def _log_volume(s: FloatArray, dim: int) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray((dim - 1) * np.log(np.sin(s)) if dim > 1 else np.zeros_like(s))


def _log_radial(s: FloatArray, dim: int, sigma: float) -> FloatArray:
    """Log density of the distance from the centre, up to a constant."""
    return np.asarray(_log_volume(s, dim) - (s / sigma) ** 2 / 2)


def _log_mass(dim: int, sigma: float, low: float = 0.0, high: float = pi) -> float:
    return _log_integral(lambda s: _log_radial(s, dim, sigma), low, high)


def _log_share(h: FloatArray, dim: int) -> FloatArray:
    """Log of the share {(1 − cos θ)/2 < h} of a sphere of dimension d − 1, for 0 < h < 1."""
    if dim == 1:  # two points: θ = 0 and θ = π
        return np.full_like(h, log(0.5))
    a, h = (dim - 1) / 2, np.clip(h, 0.0, 1.0)
    share = betainc(a, a, h)
    with np.errstate(divide="ignore"):
        out = np.asarray(np.log(share))
    lost = (share < 1e-280) & (h > 0)
    if np.any(lost):
        out[lost] = _log_incomplete_beta(a, h[lost])
    return out


def _log_incomplete_beta(a: float, x: FloatArray) -> FloatArray:
    """log I_x(a, a) for x < 1/2 by x^a (1−x)^a F(2a, 1; a+1; x)/(a B(a, a)), free of underflow."""
    term, series, k = np.ones_like(x), np.ones_like(x), 0
    while np.any(term > 1e-17 * series):
        term = term * x * ((2 * a + k) / (a + 1 + k))
        series, k = series + term, k + 1
    return np.asarray(a * np.log(x * (1 - x)) - log(a) - betaln(a, a) + np.log(series))


def _profile(epsilon: float, dim: int, distance: float, sigma: float, mass: float) -> float:
    """δ(ε) = P₁(loss > ε) − e^ε P₁(loss < −ε), `mass` the log integral of the radial density.

    Rounded up.
    """
    shift, rest = 2 * sigma**2 * epsilon, 2 * pi - distance  # shift = b² − s²
    if shift > distance * rest * (1 + _PROFILE_ERROR):  # loss at the antipode of the second centre
        return 0.0
    if shift >= distance * rest:
        return _PROFILE_ERROR
    # Where b touches |s − Δ| and 2π − s − Δ, the extremes of ρ₂ on the sphere of radius s.
    near, far = (distance - shift / distance) / 2, (rest - shift / rest) / 2
    inner, outer = (distance + shift / distance) / 2, (rest + shift / rest) / 2
    root = sqrt(shift)

    def above(s: FloatArray) -> FloatArray:
        b = np.hypot(s, root)
        height = np.sin((distance + s + b) / 2) * np.sin((distance - shift / (b + s)) / 2)
        share = _log_share(height / (np.sin(s) * np.sin(distance)), dim)
        return np.asarray(_log_radial(s, dim, sigma) + share)

    def below_everywhere(s: FloatArray) -> FloatArray:  # e^ε times the density, at ρ₂ < b
        return np.asarray(_log_volume(s, dim) - (s - root) * (s + root) / sigma**2 / 2)

    def below(s: FloatArray) -> FloatArray:
        b = np.sqrt((s - root) * (s + root))
        height = np.sin((b + s - distance) / 2) * np.sin((distance - shift / (b + s)) / 2)
        share = _log_share(height / (np.sin(s) * np.sin(distance)), dim)
        return np.asarray(below_everywhere(s) + share)

    logs = (
        _log_mass(dim, sigma, 0.0, near),
        _log_integral(above, abs(near), far),
        _log_integral(below, inner, outer),
        _log_integral(below_everywhere, outer, pi),
    )
    sure, partial, below_partial, below_sure = (exp(value - mass) for value in logs)
    return max(sure + partial - below_partial - below_sure, 0.0) + _PROFILE_ERROR


def _log_total_variation(dim: int, distance: float, sigma: float) -> float:
    """log δ(0) but for the mass of the radial density, to full accuracy for small δ(0) as well.

    P₁(loss > 0) − P₁(loss < 0) with the spheres of radii s and π − s taken together: on the first
    the share of loss > 0 exceeds that of loss < 0 by I_{c²}(1/2, (d−1)/2), c = tan(Δ/2) cot s, on
    the second it falls short by as much. All terms are positive.
    """

    def excess(s: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            gain = np.log(-np.expm1((s - pi / 2) * pi / sigma**2))
        return np.asarray(_log_radial(s, dim, sigma) + gain)

    def partial(s: FloatArray) -> FloatArray:
        cosine = np.minimum(tan(distance / 2) / np.tan(s), 1.0)
        return np.asarray(excess(s) + np.log(betainc(0.5, (dim - 1) / 2, cosine**2)))

    inside = _log_integral(excess, 0.0, distance / 2)
    outside = _log_integral(partial, distance / 2, pi / 2) if dim > 1 else -inf
    return float(np.logaddexp(inside, outside))


def _log_overlap(dim: int, distance: float, sigma: float) -> float:
    """log(1 − δ(0)) but for the mass: twice what the first law puts nearer to the second centre."""

    def nearer(s: FloatArray) -> FloatArray:
        height = np.sin(distance / 2) * np.sin(s - distance / 2) / np.sin(s) / np.sin(distance)
        return np.asarray(_log_radial(s, dim, sigma) + _log_share(height, dim))

    partial = _log_integral(nearer, distance / 2, pi - distance / 2)
    whole = _log_mass(dim, sigma, pi - distance / 2)
    return log(2) + float(np.logaddexp(partial, whole))


def _squares_are_floats(distance: float, sigma: float) -> bool:
    """Whether squares neither underflow nor overflow; elsewhere the theorem's Δ/σ has to do."""
    return min(distance, sigma) > 1e-100 and sigma < 1e100


def _mu_upper(dim: int, distance: float, sigma: float) -> float:
    """The μ with δ_μ(0) = δ(0), rounded up, and no more than the theorem's Δ/σ."""
    if not _squares_are_floats(distance, sigma):
        return quotient_up(distance, sigma)
    mass = _log_mass(dim, sigma)
    log_delta = _log_total_variation(dim, distance, sigma) - mass
    if log_delta < log(0.5):
        mu = sqrt(8) * float(erfinv(exp(log_delta)))
    else:
        mu = -2 * float(ndtri_exp(_log_overlap(dim, distance, sigma) - mass - log(2)))
    return min(mu * (1 + _MU_ERROR), quotient_up(distance, sigma))


def _arguments(dim: int, distance: float) -> tuple[int, float]:
    distance = check_nonnegative("distance", distance, allow_inf=True)
    return check_positive_integer("dim", dim), min(distance, pi)


@overload
def sphere_profile(epsilon: float, *, dim: int, distance: float, sigma: float) -> float: ...
@overload
def sphere_profile(
    epsilon: ArrayLike, *, dim: int, distance: float, sigma: float
) -> float | FloatArray: ...
def sphere_profile(
    epsilon: ArrayLike, *, dim: int, distance: float, sigma: float
) -> float | FloatArray:
    """Smallest δ(ε) of the Riemannian Gaussian between two centres on a unit sphere.

    Parameters
    ----------
    epsilon : array_like
        In [0, ∞].
    dim : int
        Dimension d of the sphere S^d.
    distance : float
        Distance of the centres in [0, ∞]; beyond the diameter it counts as π.
    sigma : float
        Scale of the density ∝ exp(−ρ²/2σ²), positive.

    Returns
    -------
    float or ndarray
        δ rounded up, by less than 2e-12; exactly 0 beyond the largest possible loss Δ(2π − Δ)/2σ²,
        where the mechanism is purely differentially private.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range or NaN, or is not numeric.

    Notes
    -----
    Both laws have positive densities, so neither has mass where the other has none, and the profile
    is symmetric in the two centres. It increases with `distance` (checked on grids over the range
    named in `sphere_mu`), so with the sensitivity for `distance` it covers all neighbours.

    References
    ----------
    .. [1] Y. Jiang, X. Chang, Y. Liu, L. Ding, L. Kong, B. Jiang (2023). Gaussian differential
       privacy on Riemannian manifolds. NeurIPS 36: the definition, and an estimate by Markov chain
       Monte Carlo.
    .. [2] B. Balle, Y.-X. Wang (2018). Improving the Gaussian mechanism for differential privacy.
       ICML, Theorem 5: δ(ε) from the two tails of the loss.

    Examples
    --------
    >>> from skdpfrechet.privacy.exact import sphere_profile
    >>> round(sphere_profile(0.5, dim=2, distance=0.6, sigma=0.6), 6)
    0.213986
    """
    epsilon_ = nonnegative_array("epsilon", epsilon)
    dim, distance = _arguments(dim, distance)
    sigma = check_positive("sigma", sigma)
    bound = quotient_up(distance, sigma)
    out = np.asarray(gdp_delta(bound, epsilon_))  # an upper bound, by a theorem
    if _squares_are_floats(distance, sigma):
        mass = _log_mass(dim, sigma)
        values = [_profile(e, dim, distance, sigma, mass) for e in epsilon_.ravel().tolist()]
        out = np.minimum(out, np.reshape(values, epsilon_.shape))
    return unwrap(out)


def sphere_mu(*, dim: int, distance: float, sigma: float) -> float:
    """Smallest μ for which the Riemannian Gaussian on a sphere is μ-GDP, rounded up.

    Parameters
    ----------
    dim : int
        Dimension d of the sphere S^d.
    distance : float
        Sensitivity Δ: the largest distance of the centres of neighbours, in [0, ∞].
    sigma : float
        Scale of the density ∝ exp(−ρ²/2σ²), positive.

    Returns
    -------
    float
        μ*, by less than 2e-11 of itself too large, and never more than Δ/σ. For small σ,
        μ* = (Δ/σ)(1 − (d−1)σ²/6 + …).

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range or NaN, or is not numeric.

    Notes
    -----
    Neighbouring relation: replace-one, through the sensitivity. μ* is the largest of the μ that
    solve δ_μ(ε) = δ(ε), ε ≥ 0. That μ is largest at ε = 0 and falls from there, to 0 at the largest
    loss, in all cases computed (dim 1 to 200, σ .01 to 10, Δ 1e-4 to π, by quadrature to 1e-14);
    there is no proof. So δ(0), the total variation, determines μ*, and each call compares the
    profile with δ_{μ*} at eight more ε; were it ever larger, the answer would be the proven Δ/σ.

    References
    ----------
    .. [1] J. Dong, A. Roth, W. J. Su (2022). Gaussian differential privacy. JRSS-B 84, 3-37,
       Corollary 2.13.
    .. [2] Y. Jiang, X. Chang, Y. Liu, L. Ding, L. Kong, B. Jiang (2023). Gaussian differential
       privacy on Riemannian manifolds. NeurIPS 36: the bound Δ/σ.

    Examples
    --------
    >>> from skdpfrechet.privacy.exact import sphere_mu
    >>> round(sphere_mu(dim=2, distance=0.6, sigma=0.6), 6)
    0.938932
    """
    dim, distance = _arguments(dim, distance)
    sigma = check_positive("sigma", sigma)
    mu, bound = _mu_upper(dim, distance, sigma), quotient_up(distance, sigma)
    if mu == bound:
        return mu
    epsilon = mu * np.maximum(np.concatenate([_CHECKED_BELOW, mu / 2 + _CHECKED_AROUND]), 0.0)
    delta = sphere_profile(epsilon, dim=dim, distance=distance, sigma=sigma)
    exceeded = np.any(np.asarray(delta) > np.asarray(gdp_delta(mu, epsilon)) + 2 * _PROFILE_ERROR)
    return bound if exceeded else mu


def sphere_sigma(mu: float, *, dim: int, distance: float) -> float:
    """Smallest σ for which the Riemannian Gaussian on a sphere is μ-GDP, rounded up.

    Parameters
    ----------
    mu : float
        In (0, ∞].
    dim : int
        Dimension d of the sphere S^d.
    distance : float
        Sensitivity Δ: the largest distance of the centres of neighbours, in [0, ∞].

    Returns
    -------
    float
        σ with ``sphere_mu(σ) <= mu``, by less than 1e-10 of itself too large, and at most Δ/μ; 0 if
        μ = ∞ or Δ = 0.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range or NaN, or is not numeric.

    See Also
    --------
    sphere_mu : The function inverted, with the assumptions and references.

    Examples
    --------
    >>> from skdpfrechet.privacy.exact import sphere_sigma
    >>> round(sphere_sigma(0.5, dim=2, distance=0.3), 6)
    0.567763
    """
    dim, distance = _arguments(dim, distance)
    mu = check_positive("mu", mu, allow_inf=True)
    if mu == inf or distance == 0:
        return 0.0
    largest = quotient_up(distance, mu)
    if not _squares_are_floats(distance, largest):
        return largest

    def excess(sigma: float) -> float:
        return log(_mu_upper(dim, distance, sigma) / mu)

    # μ* falls with σ, at least as fast as 1/σ as far as computed; `largest` has μ* ≤ Δ/σ ≤ μ.
    smallest = largest
    while excess(smallest) <= 0:
        smallest /= 2
    sigma = float(brentq(excess, smallest, largest, xtol=1e-300, rtol=1e-12))
    step = 1e-13 * sigma
    while sigma < largest and excess(sigma) > 0:  # round up; ends at `largest`
        sigma = min(sigma + step, largest)
        step *= 2
    return sigma if sphere_mu(dim=dim, distance=distance, sigma=sigma) <= mu else largest
