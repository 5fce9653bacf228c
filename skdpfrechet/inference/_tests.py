"""Hypothesis tests for means: post-processing of released regions, at no cost in privacy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import inf, isinf
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag
from scipy.stats import chi2

from skdpfrechet.inference._charts import common_chart, stretch
from skdpfrechet.inference._region import ConfidenceRegion, mahalanobis


@dataclass(frozen=True)
class TestResult:
    """Outcome of a test; unpacks to statistic and p-value, as scipy's results do.

    Parameters
    ----------
    statistic : float
        Compared to a χ² law of `df` degrees of freedom (means) or to Student's (variances).
    pvalue : float
        Probability under the hypothesis of a statistic at least as extreme.
    df : float

    Examples
    --------
    >>> from skdpfrechet import TestResult
    >>> statistic, pvalue = TestResult(statistic=9.2, pvalue=0.01, df=2)
    >>> pvalue
    0.01
    """

    __test__: ClassVar[bool] = False  # the name looks like one of pytest's classes

    statistic: float
    pvalue: float
    df: float

    def __iter__(self) -> Iterator[float]:
        return iter((self.statistic, self.pvalue))


class FittedMean(Protocol):
    """A fitted estimator with a region, such as `DPFrechetMean`."""

    @property
    def confidence_region_(self) -> ConfidenceRegion:
        """Region of the mean."""


def one_sample_test(region: ConfidenceRegion | FittedMean, point: ArrayLike) -> TestResult:
    """Test whether a mean is a given point.

    Parameters
    ----------
    region : ConfidenceRegion or fitted DPFrechetMean
    point : array-like, shape point_shape
        The mean under the hypothesis; public, or released by somebody else.

    Returns
    -------
    TestResult
        ``pvalue < 1 - confidence_level`` exactly where the region does not contain `point`.

    Raises
    ------
    ValueError
        If `point` is not one point of the manifold.

    Notes
    -----
    Post-processing: no budget is spent, whatever the number of points that are tried. The statistic
    is that of the region over ``critical_value / χ²_level``, the factor by which the region allows
    for the errors of its own covariance. The factor was found at the region's level, so p-values
    far below ``1 - confidence_level`` are approximate. With ``mu=np.inf`` the law is that of large
    samples: 30 records in dimension 3 are rejected about twice too often.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpfrechet import DPFrechetMean, one_sample_test
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> fit = DPFrechetMean("euclidean", radius=4.0, mu=1.0, random_state=0).fit(X)
    >>> one_sample_test(fit, [0.0, 0.0]).pvalue > 0.05
    True
    >>> one_sample_test(fit, [0.5, 0.0]).pvalue < 0.001
    True
    """
    region = _region(region)
    if np.shape(point) != region.manifold.point_shape:
        raise ValueError(
            f"point must have shape {region.manifold.point_shape}, got {np.shape(point)}."
        )
    statistic = float(region.statistic(point))
    factor = stretch(region)
    return _chi_squared_result(0.0 if isinf(factor) else statistic / factor, region.manifold.dim)


def two_sample_test(
    a: ConfidenceRegion | FittedMean, b: ConfidenceRegion | FittedMean
) -> TestResult:
    """Test whether two independent populations have the same mean.

    Parameters
    ----------
    a, b : ConfidenceRegion or fitted DPFrechetMean
        On the same manifold, from records that have nothing in common.

    Returns
    -------
    TestResult

    Raises
    ------
    ValueError
        If the manifolds differ or the two visibly share records or noise.

    See Also
    --------
    frechet_anova : The same for any number of populations, with Notes on validity.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpfrechet import DPFrechetMean, two_sample_test
    >>> rng = np.random.default_rng(0)
    >>> a, b = (
    ...     DPFrechetMean("euclidean", radius=4.0, mu=1.0, random_state=seed).fit(
    ...         rng.normal(shift, size=(500, 2))
    ...     )
    ...     for seed, shift in ((1, 0.0), (2, 0.5))
    ... )
    >>> two_sample_test(a, b).pvalue < 0.001
    True
    """
    return frechet_anova(a, b)


def frechet_anova(*fits: ConfidenceRegion | FittedMean) -> TestResult:
    """Test whether all of several independent populations have the same mean.

    Parameters
    ----------
    *fits : ConfidenceRegion or fitted DPFrechetMean
        At least two, on the same manifold, from records that have nothing in common.

    Returns
    -------
    TestResult
        With ``(k - 1) * dim`` degrees of freedom for k populations.

    Raises
    ------
    ValueError
        If there are fewer than two, the manifolds differ or two of them visibly share records or
        noise: the same release twice, or one integer ``random_state``.
    TypeError
        If one of them is neither a region nor a fitted estimator that has one.

    Notes
    -----
    Post-processing: no budget is spent. The statistic is Wald's, the squared length of the
    differences of the released means from their precision-weighted average, studentised by what
    the regions know of sampling error and noise; two populations give
    ``dᵀ (Γ_a + Γ_b)⁻¹ d``. Each covariance is multiplied by the factor by which its own region
    allows for the errors in it, so a mean that is known exactly gives `one_sample_test`.

    Means and covariances are compared in one chart. Where wrapped Gaussian noise was added in the
    chart at a public foot, it is that chart (of the most uncertain mean, if the feet differ): there
    the noise is exactly Gaussian. Otherwise it is the tangent space at the average of the means, to
    which covariances are carried by parallel transport.

    **Independence.** The populations must share no record, and no person if a person gave several
    records: persons above average in one sample tend to be so in the other, and the variance of the
    difference is then not ``Γ_a + Γ_b``. Releases do not tell whose records they hold, so this can
    be refused only where it shows. For paired samples make one record of each pair, such as its
    difference in the tangent space of a public point, and use `one_sample_test`.

    Each mean is that of records moved into a public ball. Use one ball for all: the same population
    has different means in different balls as soon as records are moved.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpfrechet import DPFrechetMean, frechet_anova
    >>> rng = np.random.default_rng(0)
    >>> fits = [
    ...     DPFrechetMean("euclidean", radius=4.0, random_state=k).fit(rng.normal(size=(300, 2)))
    ...     for k in range(3, 6)
    ... ]
    >>> result = frechet_anova(*fits)
    >>> result.df, result.pvalue > 0.05
    (4, True)
    """
    regions = [_region(fit) for fit in fits]
    if len(regions) < 2:
        raise ValueError(f"frechet_anova requires at least two fits, got {len(regions)}.")
    manifold = regions[0].manifold
    for other in regions[1:]:
        if other.manifold != manifold:
            raise ValueError(
                f"fits must be on the same manifold, got {manifold!r} and {other.manifold!r}."
            )
    for (one, s), (other, t) in combinations(zip(regions, fits, strict=True), 2):
        if np.array_equal(one.center, other.center) and np.array_equal(
            one.covariance, other.covariance
        ):
            raise ValueError("fits must be independent, got the same release twice.")
        check_seeds(s, t)
    df = (len(regions) - 1) * manifold.dim
    # A region that is the whole space says nothing about its mean.
    known = [region for region in regions if not isinf(region.critical_value)]
    if len(known) < 2:
        return _chi_squared_result(0.0, df)
    points, covariances = common_chart(known)
    # Differences from one mean are equivalent to those from the weighted average, and their
    # covariance may be regular where that of a single mean is not. The most certain one and the
    # scaling keep it well conditioned however different the budgets are.
    order = np.argsort(np.trace(covariances, axis1=1, axis2=2), kind="stable")
    base, rest = covariances[order[0]], covariances[order[1:]]
    traces = np.trace(base + rest, axis1=1, axis2=2)
    scales = np.repeat(np.sqrt(np.where(traces > 0, traces, 1.0)), manifold.dim)
    differences = (points[order[1:]] - points[order[0]]).ravel() / scales
    spread = block_diag(*rest) + np.tile(base, (len(rest), len(rest)))
    spread = spread / scales[:, None] / scales
    return _chi_squared_result(float(mahalanobis(differences, spread)), df)


def _chi_squared_result(statistic: float, df: int) -> TestResult:
    """Return the result of comparing `statistic` to χ²."""
    return TestResult(statistic, float(chi2.sf(statistic, df)), df)


def check_seeds(a: object, b: object) -> None:
    """Raise if two fits drew their noise from the same integer seed."""
    seed = getattr(a, "random_state", None)
    noisy = all(getattr(fit, "mu", inf) != inf for fit in (a, b))
    if noisy and seed is not None and seed == getattr(b, "random_state", None):
        raise ValueError(f"fits must be independent, got the same noise from random_state={seed}.")


def _region(fit: Any) -> ConfidenceRegion:
    if isinstance(fit, ConfidenceRegion):
        return fit
    if not hasattr(type(fit), "confidence_region_"):
        raise TypeError(
            "a mean must be given as a ConfidenceRegion or a fitted DPFrechetMean, "
            f"got {type(fit).__name__}."
        )
    region = fit.confidence_region_
    assert isinstance(region, ConfidenceRegion)
    return region
