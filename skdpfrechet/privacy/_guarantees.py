"""Privacy guarantees as frozen values, each with its tight privacy profile δ(ε) and the inverse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from skdpfrechet._validation import check_nonnegative
from skdpfrechet.privacy._conversions import (
    gdp_delta,
    gdp_epsilon,
    gdp_rho,
    nonnegative_array,
    probability_array,
    unwrap,
)
from skdpfrechet.privacy._gaussian_profile import ULP, FloatArray


def _approx_delta(epsilon: float, delta: float, at: ArrayLike) -> float | FloatArray:
    """sup over (ε, δ)-DP mechanisms of the hockey-stick divergence at e^at.

    The trade-off function max(0, 1 − δ − e^ε α, e^{−ε}(1 − δ − α)) has its kink at
    α = (1 − δ)/(1 + e^ε), so the divergence is δ beyond ε and 1 − (1 − δ)(1 + e^at)/(1 + e^ε)
    before it, that is δ + (1 − δ)(e^ε − e^at)/(1 + e^ε). Rounded up.
    """
    at_ = nonnegative_array("epsilon", at)
    gap = np.zeros(at_.shape)
    inside = at_ < epsilon
    # ε − at may be rounded: an ulp of ε is added to it before a few are to the result.
    slack = ULP * epsilon if epsilon < np.inf else 0.0
    gap[inside] = -np.expm1(at_[inside] - epsilon - slack) / (1 + np.exp(-epsilon))
    total = delta + (1 - delta) * gap
    rounded = np.minimum(np.nextafter(total * (1 + 8 * ULP), np.inf), 1.0)
    return unwrap(np.where(inside, rounded, delta))


def _approx_epsilon(epsilon: float, delta: float, at: ArrayLike) -> float | FloatArray:
    """Inverse of `_approx_delta` in its last argument: the least ε it allows, rounded up."""
    at_ = probability_array("delta", at)
    out = np.where(at_ < delta, np.inf, 0.0)
    if delta < 1:
        fraction = (at_ - delta) / (1 - delta) * (1 + np.exp(-epsilon)) * (1 - 8 * ULP)
        inside = (fraction >= 0) & (fraction < 1) & (at_ < 1)
        less = np.log1p(-fraction[inside])
        rounded = epsilon + less + 2 * ULP * (epsilon - less)
        out[inside] = np.clip(rounded, 0.0, epsilon)
    return unwrap(out)


@dataclass(frozen=True)
class GDP:
    """Gaussian differential privacy: no easier to break than telling N(0, 1) from N(μ, 1).

    Parameters
    ----------
    mu : float
        In [0, ∞]; 0 reveals nothing, ∞ promises nothing.

    Raises
    ------
    ValueError, TypeError
        If `mu` is negative or NaN, or is not a real number.

    Notes
    -----
    Neighbouring relation: replace-one, as everywhere in this library. Equivalent to
    (ε, δ_μ(ε))-DP for all ε ≥ 0 at once, so one (ε, δ) point never implies it.

    References
    ----------
    .. [1] Dong, Roth, Su (2022). Gaussian differential privacy. JRSS-B 84, 3-37.
    .. [2] M. Bun, T. Steinke (2016). Concentrated differential privacy: simplifications,
       extensions, and lower bounds. TCC, 635-658.

    Examples
    --------
    >>> from skdpfrechet.privacy import GDP
    >>> guarantee = GDP(mu=1.0)
    >>> round(guarantee.epsilon(1e-5), 4), guarantee.rho
    (4.3772, 0.5)
    >>> print(guarantee)
    1-GDP
    """

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", check_nonnegative("mu", self.mu, allow_inf=True))

    def __str__(self) -> str:
        return f"{self.mu:.6g}-GDP"

    @property
    def rho(self) -> float:
        """ρ = μ²/2 of the zero-concentrated differential privacy implied."""
        return gdp_rho(self.mu)

    @overload
    def delta(self, epsilon: float) -> float: ...
    @overload
    def delta(self, epsilon: ArrayLike) -> float | FloatArray: ...
    def delta(self, epsilon: ArrayLike) -> float | FloatArray:
        """Smallest δ at this ε; see `gdp_delta`."""
        return gdp_delta(self.mu, epsilon)

    @overload
    def epsilon(self, delta: float) -> float: ...
    @overload
    def epsilon(self, delta: ArrayLike) -> float | FloatArray: ...
    def epsilon(self, delta: ArrayLike) -> float | FloatArray:
        """Smallest ε at this δ, rounded up; see `gdp_epsilon`."""
        return gdp_epsilon(self.mu, delta)


@dataclass(frozen=True)
class PureDP:
    """Pure ε-differential privacy: no probability changes by more than the factor e^ε.

    Parameters
    ----------
    epsilon : float
        In [0, ∞].

    Raises
    ------
    ValueError, TypeError
        If `epsilon` is negative or NaN, or is not a real number.

    Notes
    -----
    Neighbouring relation: replace-one. The profile is that of randomised response, the worst
    ε-DP mechanism: δ(ε') = max(0, (e^ε − e^ε')/(1 + e^ε)).

    References
    ----------
    .. [1] C. Dwork, A. Roth (2014). The algorithmic foundations of differential privacy.
       Foundations and Trends in Theoretical Computer Science 9, 211-407.
    .. [2] P. Kairouz, S. Oh, P. Viswanath (2017). The composition theorem for differential
       privacy. IEEE Transactions on Information Theory 63, 4037-4049.

    Examples
    --------
    >>> from skdpfrechet.privacy import PureDP
    >>> guarantee = PureDP(epsilon=1.0)
    >>> guarantee.epsilon_at(0.0), round(guarantee.delta_at(0.0), 6)
    (1.0, 0.462117)
    >>> print(guarantee)
    1-DP
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "epsilon", check_nonnegative("epsilon", self.epsilon, allow_inf=True)
        )

    def __str__(self) -> str:
        return f"{self.epsilon:.6g}-DP"

    @overload
    def delta_at(self, epsilon: float) -> float: ...
    @overload
    def delta_at(self, epsilon: ArrayLike) -> float | FloatArray: ...
    def delta_at(self, epsilon: ArrayLike) -> float | FloatArray:
        """Smallest δ for which every such mechanism is (`epsilon`, δ)-DP."""
        return _approx_delta(self.epsilon, 0.0, epsilon)

    @overload
    def epsilon_at(self, delta: float) -> float: ...
    @overload
    def epsilon_at(self, delta: ArrayLike) -> float | FloatArray: ...
    def epsilon_at(self, delta: ArrayLike) -> float | FloatArray:
        """Smallest ε for which every such mechanism is (ε, `delta`)-DP."""
        return _approx_epsilon(self.epsilon, 0.0, delta)


@dataclass(frozen=True)
class ApproxDP:
    """Approximate (ε, δ)-differential privacy: one point, not a curve.

    Parameters
    ----------
    epsilon : float
        In [0, ∞].
    delta : float
        In [0, 1].

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or NaN, or is not a real number.

    Notes
    -----
    Neighbouring relation: replace-one. The worst such mechanism fails altogether with
    probability δ and is randomised response otherwise, so the profile is δ from ε on and
    1 − (1 − δ)(1 + e^ε')/(1 + e^ε) before; below δ no ε holds.

    References
    ----------
    .. [1] C. Dwork, A. Roth (2014). The algorithmic foundations of differential privacy.
       Foundations and Trends in Theoretical Computer Science 9, 211-407.
    .. [2] P. Kairouz, S. Oh, P. Viswanath (2017). The composition theorem for differential
       privacy. IEEE Transactions on Information Theory 63, 4037-4049.

    Examples
    --------
    >>> from skdpfrechet.privacy import ApproxDP
    >>> guarantee = ApproxDP(epsilon=1.0, delta=1e-5)
    >>> guarantee.delta_at(2.0), guarantee.epsilon_at(1e-6)
    (1e-05, inf)
    >>> print(guarantee)
    (1, 1e-05)-DP
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "epsilon", check_nonnegative("epsilon", self.epsilon, allow_inf=True)
        )
        object.__setattr__(self, "delta", check_nonnegative("delta", self.delta))
        if self.delta > 1:
            raise ValueError(f"delta must lie between 0 and 1, got {self.delta!r}.")

    def __str__(self) -> str:
        return f"({self.epsilon:.6g}, {self.delta:.6g})-DP"

    @overload
    def delta_at(self, epsilon: float) -> float: ...
    @overload
    def delta_at(self, epsilon: ArrayLike) -> float | FloatArray: ...
    def delta_at(self, epsilon: ArrayLike) -> float | FloatArray:
        """Smallest δ for which every such mechanism is (`epsilon`, δ)-DP."""
        return _approx_delta(self.epsilon, self.delta, epsilon)

    @overload
    def epsilon_at(self, delta: float) -> float: ...
    @overload
    def epsilon_at(self, delta: ArrayLike) -> float | FloatArray: ...
    def epsilon_at(self, delta: ArrayLike) -> float | FloatArray:
        """Smallest ε for which every such mechanism is (ε, `delta`)-DP; ∞ below its own δ."""
        return _approx_epsilon(self.epsilon, self.delta, delta)


Guarantee = GDP | PureDP | ApproxDP
