"""Composition of guarantees on the same records, adaptive composition included."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import overload

from scipy.special import erfinv, log_expit, ndtri_exp

from skdpfrechet.privacy._guarantees import GDP, ApproxDP, Guarantee, PureDP
from skdpfrechet.privacy._rounding import float_up


def _sum_up(values: Iterable[float]) -> float:
    """Smallest float that is at least the exact sum of values ≥ 0."""
    values = list(values)
    if math.inf in values:
        return math.inf
    return float_up(sum(map(Fraction, values), Fraction(0)))


def _hypot_up(values: Iterable[float]) -> float:
    """Smallest float that is at least the exact root of the sum of squares."""
    values = list(values)
    total = math.hypot(*values)
    if math.isinf(total):
        return math.inf
    square = sum(Fraction(value) ** 2 for value in values)
    while Fraction(total) ** 2 < square:
        total = math.nextafter(total, math.inf)
    while total > 0 and Fraction(math.nextafter(total, 0)) ** 2 >= square:
        total = math.nextafter(total, 0)
    return total


def _mu_of_pure(epsilon: float) -> float:
    """Smallest μ such that every ε-DP mechanism is μ-GDP, rounded up.

    The trade-off function of ε-DP, max(1 − e^ε α, e^{−ε}(1 − α)), consists of the two chords that
    join (0, 1), (c, c), (1, 0), c = 1/(1 + e^ε). That of μ-GDP, Φ(Φ⁻¹(1 − α) − μ), is convex and
    for μ = −2 Φ⁻¹(c) runs through the same three points, hence below the chords. A smaller μ puts
    (c, c) below it. μ/2 = Φ⁻¹(½ + ½ tanh(ε/2)) where that does not saturate.
    """
    if epsilon < 1:
        mu = math.sqrt(8) * float(erfinv(math.tanh(epsilon / 2)))
    else:
        mu = -2 * float(ndtri_exp(log_expit(-epsilon)))
    return mu * (1 + 1e-13)  # the special functions are off by less than 3e-14


@overload
def compose(*guarantees: GDP) -> GDP: ...
@overload
def compose(*guarantees: PureDP) -> PureDP: ...
@overload
def compose(*guarantees: Guarantee) -> Guarantee: ...
def compose(*guarantees: Guarantee) -> Guarantee:
    """Guarantee of several releases about the same records together.

    Parameters
    ----------
    *guarantees : GDP, PureDP or ApproxDP
        At least one. Each may have been chosen after seeing the earlier releases, its parameters
        fixed beforehand.

    Returns
    -------
    GDP, PureDP or ApproxDP
        * GDP only: μ = √(Σ μ²).
        * PureDP only: ε = Σ ε.
        * PureDP and ApproxDP: ε = Σ ε, δ = min(1, Σ δ) (basic composition).
        * GDP and PureDP: each ε-DP counts as μ-GDP with μ = 2 Φ⁻¹(e^ε/(1 + e^ε)).

        Rounded up, to the nearest float where no conversion takes place.

    Raises
    ------
    ValueError
        If there is no guarantee, or if GDP meets ApproxDP: an (ε, δ) point does not determine the
        curve that the sum of μ² needs.
    TypeError
        If an argument is not a guarantee.

    Notes
    -----
    Neighbouring relation: replace-one, the same for all guarantees. ε-DP implies GDP because the
    trade-off function of ε-DP is piecewise linear between three points of the Gaussian one,
    which is convex [3]_.

    References
    ----------
    .. [1] J. Dong, A. Roth, W. J. Su (2022). Gaussian differential privacy. JRSS-B 84, 3-37,
       Section 3.
    .. [2] C. Dwork, A. Roth (2014). The algorithmic foundations of differential privacy.
       Foundations and Trends in Theoretical Computer Science 9, 211-407, Theorem 3.16.
    .. [3] Y. Liu, K. Sun, B. Jiang, L. Kong (2022). Identification, amplification and measurement:
       a bridge to Gaussian differential privacy. NeurIPS 35.

    Examples
    --------
    >>> from skdpfrechet.privacy import GDP, ApproxDP, PureDP, compose
    >>> compose(GDP(3.0), GDP(4.0))
    GDP(mu=5.0)
    >>> compose(PureDP(1.0), ApproxDP(0.5, 1e-6))
    ApproxDP(epsilon=1.5, delta=1e-06)
    """
    if not guarantees:
        raise ValueError("compose needs at least one guarantee, got none.")
    for guarantee in guarantees:
        if not isinstance(guarantee, GDP | PureDP | ApproxDP):
            raise TypeError(
                f"guarantees must be GDP, PureDP or ApproxDP, got {type(guarantee).__name__}."
            )
    gaussian = [g for g in guarantees if isinstance(g, GDP)]
    pure = [g for g in guarantees if isinstance(g, PureDP)]
    approximate = [g for g in guarantees if isinstance(g, ApproxDP)]
    if gaussian and approximate:
        raise ValueError(
            f"guarantees must not mix GDP with ApproxDP, got {gaussian[0]} and {approximate[0]}: "
            "an (ε, δ) point does not determine the curve that μ² composition needs."
        )
    if gaussian:
        return GDP(_hypot_up([g.mu for g in gaussian] + [_mu_of_pure(g.epsilon) for g in pure]))
    points: list[PureDP | ApproxDP] = [*pure, *approximate]
    epsilon = _sum_up(g.epsilon for g in points)
    if approximate:
        return ApproxDP(epsilon, min(1.0, _sum_up(g.delta for g in approximate)))
    return PureDP(epsilon)
