"""Comparison of two Fréchet variances: post-processing of releases, at no cost in privacy."""

from __future__ import annotations

from math import copysign, hypot, inf, isinf, sqrt
from typing import Protocol

import numpy as np
from scipy.stats import t as student

from skdpfrechet._validation import check_open_unit
from skdpfrechet.inference._interval import ConfidenceInterval
from skdpfrechet.inference._tests import TestResult, check_seeds
from skdpfrechet.inference._variance import VarianceRelease


class FittedVariance(Protocol):
    """A fitted estimator with a variance to compare, such as `DPFrechetVariance`."""

    @property
    def release_(self) -> VarianceRelease:
        """The released variance."""


def variance_test(
    a: VarianceRelease | FittedVariance, b: VarianceRelease | FittedVariance
) -> TestResult:
    """Test whether two independent populations have the same Fréchet variance.

    Parameters
    ----------
    a, b : VarianceRelease or fitted DPFrechetVariance
        On the same manifold, from records that have nothing in common.

    Returns
    -------
    TestResult
        The statistic is positive where `a` varies more; it is compared to Student's law of `df`
        degrees of freedom on both sides.

    Raises
    ------
    ValueError
        If the manifolds differ, a fit had no ``confidence_level``, or the two visibly share records
        or noise: one release twice, one mean reused by both, or one integer ``random_state``.
    TypeError
        If one of them is neither a release nor a fitted estimator that has one.

    See Also
    --------
    variance_ratio_interval : How much they differ.

    Notes
    -----
    Post-processing: no budget is spent. The statistic is
    ``(v_a - v_b) / √(s_a² + s_b²)``, where the standard errors s count sampling, the noise in the
    variances and the noise in the means, and an estimate below 0 counts as 0. It is a difference
    and no log ratio, because with much noise an estimate may well be 0. The degrees of freedom are
    Welch's, infinite where noise of known scale dominates.

    The populations must share no record, and no person if a person gave several records; releases
    do not tell. Each variance is that of records moved into a public ball: use one ball for both.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpfrechet import DPFrechetVariance, variance_test
    >>> rng = np.random.default_rng(0)
    >>> a, b = (
    ...     DPFrechetVariance("euclidean", radius=4.0, mu=1.0, random_state=seed).fit(
    ...         rng.normal(scale=scale, size=(500, 2))
    ...     )
    ...     for seed, scale in ((1, 0.7), (2, 1.0))
    ... )
    >>> variance_test(a, b).pvalue < 0.001
    True
    """
    first, second = _releases(a, b)
    (x, s), (y, t) = _estimate(first), _estimate(second)
    df, error = _welch(first, second), hypot(s, t)
    exact = copysign(inf, x - y) if x != y else 0.0
    statistic = (x - y) / error if error > 0 else exact
    return TestResult(statistic, 2 * float(student.sf(abs(statistic), df)), df)


def variance_ratio_interval(
    a: VarianceRelease | FittedVariance,
    b: VarianceRelease | FittedVariance,
    confidence_level: float = 0.95,
) -> ConfidenceInterval:
    """Return a confidence interval for the ratio of two independent Fréchet variances.

    Parameters
    ----------
    a, b : VarianceRelease or fitted DPFrechetVariance
        As for `variance_test`; `a` is the numerator.
    confidence_level : float, default=0.95

    Returns
    -------
    ConfidenceInterval
        ``high`` is infinite where the noise does not tell the denominator from 0.

    Raises
    ------
    ValueError, TypeError
        As for `variance_test`.

    Notes
    -----
    Fieller's set, the ratios ρ ≥ 0 with ``(v_a - ρ v_b)² ≤ z² (s_a² + ρ² s_b²)`` [1]_, which has no
    gap since estimates below 0 count as 0; z is the quantile of `variance_test`. Nothing is
    linearised: it is unbounded where it has to be, and contains 1 exactly where `variance_test`
    does not reject at ``1 - confidence_level``.

    References
    ----------
    .. [1] E. C. Fieller, "Some problems in interval estimation", Journal of the Royal Statistical
       Society B 16, 1954.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpfrechet import DPFrechetVariance, variance_ratio_interval
    >>> rng = np.random.default_rng(0)
    >>> a, b = (
    ...     DPFrechetVariance("euclidean", radius=4.0, mu=1.0, random_state=seed).fit(
    ...         rng.normal(scale=scale, size=(500, 2))
    ...     )
    ...     for seed, scale in ((1, 0.7), (2, 1.0))
    ... )
    >>> low, high = variance_ratio_interval(a, b)
    >>> low < 0.49 < high < 1
    True
    """
    first, second = _releases(a, b)
    level = check_open_unit("confidence_level", confidence_level)
    z = float(student.ppf((1 + level) / 2, _welch(first, second)))
    (x, s), (y, t) = _estimate(first), _estimate(second)
    return fieller_interval(x, z * s, y, z * t)


def fieller_interval(x: float, s: float, y: float, t: float) -> ConfidenceInterval:
    """Return the ρ ≥ 0 with ``(x - ρy)² ≤ s² + ρ²t²``, an interval for x, y ≥ 0."""
    if isinf(s) or isinf(t):
        return ConfidenceInterval(0.0, inf)
    # The set is aρ² - 2bρ + c ≤ 0. Its roots are outer / a and c / outer, neither cancels.
    a, b, c = (y - t) * (y + t), x * y, (x - s) * (x + s)
    outer = b + sqrt(max((s * y) ** 2 + (t * x) ** 2 - (s * t) ** 2, 0.0))  # b + √(b² - ac)
    low = 0.0 if c <= 0 else (c / outer if outer > 0 else inf)
    return ConfidenceInterval(low, outer / a if a > 0 else inf)


def _estimate(release: VarianceRelease) -> tuple[float, float]:
    if release.standard_error is None:
        raise ValueError("a variance must be fitted with a confidence_level, got None.")
    return max(release.center, 0.0), release.standard_error


def _welch(first: VarianceRelease, second: VarianceRelease) -> float:
    """Return the degrees of freedom of ``√(s² + t²)``."""
    squares = [_estimate(release)[1] ** 2 for release in (first, second)]
    total = sum(squares)
    if total == 0 or isinf(total):
        return inf
    shares = [square / total for square in squares]
    loss = shares[0] ** 2 / first.freedom + shares[1] ** 2 / second.freedom
    return 1 / loss if loss > 0 else inf


def _releases(a: object, b: object) -> tuple[VarianceRelease, VarianceRelease]:
    first, second = _release(a), _release(b)
    if first.mean.manifold != second.mean.manifold:
        raise ValueError(
            "variances must be on the same manifold, "
            f"got {first.mean.manifold!r} and {second.mean.manifold!r}."
        )
    same_point = np.array_equal(first.mean.point, second.mean.point)
    estimates = {(r.center, r.standard_error) for r in (first, second)}
    if first is second or (same_point and len(estimates) == 1):
        raise ValueError("variances must be independent, got the same release twice.")
    if first.mean is second.mean or (same_point and first.mean.scale > 0):
        raise ValueError(
            "variances must be independent, got two from the same mean, hence the same records."
        )
    check_seeds(a, b)
    return first, second


def _release(fit: object) -> VarianceRelease:
    release = fit if isinstance(fit, VarianceRelease) else getattr(fit, "release_", None)
    if not isinstance(release, VarianceRelease):
        raise TypeError(
            "a variance must be given as a VarianceRelease or a fitted DPFrechetVariance, "
            f"got {type(fit).__name__}."
        )
    return release
