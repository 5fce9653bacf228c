"""`DPFrechetVariance`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import inf, sqrt

import numpy as np

from skdpfrechet import sensitivity
from skdpfrechet._numerics import Array
from skdpfrechet._solvers import Sample
from skdpfrechet.estimators._ball import is_private
from skdpfrechet.estimators._base import _DPEstimator, fit_notes, fit_threads, make_report
from skdpfrechet.estimators._budget import part, variance_shares
from skdpfrechet.estimators._groups import without_counts
from skdpfrechet.estimators._mechanisms import rebuild
from skdpfrechet.estimators._noise import release_moment_curve
from skdpfrechet.estimators._plan import (
    BallProblem,
    FitPlan,
    check_blocks,
    pay,
    plan_fit,
    read_into_ball,
)
from skdpfrechet.estimators._private_mean import mean_notes, release_mean
from skdpfrechet.estimators._records import look
from skdpfrechet.inference import (
    MeanRelease,
    VarianceRelease,
    noise_bias,
    squared_distance_spread,
)
from skdpfrechet.mechanisms import Gaussian, RandomSource
from skdpfrechet.privacy import GDP, Release
from skdpfrechet.privacy._ledger import Payment, Reused


class DPFrechetVariance(_DPEstimator):
    """Differentially private Fréchet variance with a confidence interval.

    The Fréchet variance is the mean squared geodesic distance to the Fréchet mean. The mean is
    released first and projected to the public ball; the squared distances of the records to it,
    whose range is then public, are released together with their second moment by one query.

    Parameters
    ----------
    manifold : str or Manifold, default="euclidean"
        As for `DPFrechetMean`.
    radius : float or "private"
        Radius of the ball, as for `DPFrechetMean`.
    center : array-like of shape point_shape or "private", default=None
        Centre of the ball, as for `DPFrechetMean`.
    mu : float, default=1.0
        Budget of this fit. ``np.inf`` gives the exact sample variance, and no privacy.
    confidence_level : float or None, default=0.95
        Level of the interval; None gives the estimate alone.
    mechanism : str, default="auto"
        Mechanism for the mean, as for `DPFrechetMean`.
    calibration : {"sharp", "paper"}, default="sharp"
        The audited recipe, or the constants and equal shares as printed in [1]_.
    budget_split : dict or None, default=None
        Shares of μ² of ``"mean"`` and ``"variance"`` (and ``"spread"`` for ``"paper"``).
    mean : MeanRelease or None, default=None
        The `release_` of a `DPFrechetMean` fitted on the same records. It is reused, so the whole
        `mu` goes to the variance; `privacy_` reports the two fits together.
    random_state : int or None, default=None
        None draws from the operating system's entropy. An integer is for tests: it voids the
        guarantee, and `privacy_` says so.
    n_jobs : int or None, default=None
        Threads for the passes over the records, -1 for all cores. They need the extra ``fast``;
        results do not depend on it. None means 1 unless in a `joblib.parallel_config` context.
    outer_radius : float or None, default=None
        Radius of the public ball in which a private one is looked for, when `center` or `radius` is
        ``"private"``. It may be wide. None is the whole sphere, and an error on other spaces.
    outer_center : array-like of shape point_shape, default=None
        Centre of that ball when `center` is ``"private"``, otherwise it is `center`. None is the
        identity or 0.
    ball_share : "auto" or float, default="auto"
        Share of μ² that a private ball costs. ``"auto"`` decides by public numbers, spends at most
        17% (40% for a centre and a radius on a sphere, where there is no outer ball to fall back
        to), and nothing where the records are too few to be located: then the outer ball is used.
    ball_quantile : "auto" or float, default="auto"
        Share of the records that a private ball shall hold. ``"auto"`` weighs the bias from moving
        records against the noise of a wider ball.
    noise : {"auto", "float", "secure"}, default="auto"
        ``"float"`` noise is drawn and added in float64, whose last bits can tell more than the
        guarantee allows. ``"secure"`` is exact on a public grid (extra ``secure``). ``"auto"`` is
        secure where python-flint is installed, the mechanism permits it and `calibration` is
        ``"sharp"``; `privacy_` says which it was, and a fit with float noise is not ``is_private``.
    unit : str or None, default=None
        Name of the partition in `groups`, such as ``"person"``, as for `DPFrechetMean`.
    ledger : PrivacyLedger, str or PathLike, default=None
        Where every fit records its `mu` before it reads the value of a record, as for
        `DPFrechetMean`. A reused mean is not recorded again: its own fit must have paid for it, in
        the same data set of the same ledger.
    invalid : {"raise", "replace"}, default="raise"
        What `fit` does with a record that is not finite or not on the manifold: raise, which lies
        outside the guarantee, or put the public centre in its place, as for `DPFrechetMean`.

    Attributes
    ----------
    variance_ : float
        The released variance, less the bias that the noise in the mean adds.
    interval_ : ConfidenceInterval
        Interval for the population variance; unpacks to low, high.
    release_ : VarianceRelease
        The released numbers, for `variance_test` and `variance_ratio_interval`.
    mean_ : ndarray of shape point_shape
        The released mean, projected to the ball, to which distances are taken.
    privacy_ : PrivacyReport
        What the fit spent.
    manifold_ : Manifold
        The space.
    center_ : ndarray of shape point_shape
        The centre of the ball, public or released.
    radius_ : float
        The radius of the ball, public or released.
    n_samples_ : int
        Number of records, or of groups if there are any; public.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, when X has string names.

    See Also
    --------
    DPFrechetMean : Private Fréchet mean with a confidence region.

    Notes
    -----
    Neighbouring relation: replace one record, n public. `transform` is not a release. There is no
    `sample_weight`: weights change the sensitivity, and would have to be public themselves.

    In simulations of 20 to 600 records in up to 15 dimensions intervals of level .95 covered .92 or
    more (docs/small_samples.md); where squared distances are very skewed it can be .88.

    References
    ----------
    .. [1] Jiang, Chang, Hu, "Differentially private inference framework for Riemannian manifold
       data", arXiv 2605.14762.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpfrechet import DPFrechetVariance
    >>> rng = np.random.default_rng(0)
    >>> X = np.exp(rng.normal(scale=0.3, size=(500, 2)))[:, :, None] * np.eye(2)
    >>> variance = DPFrechetVariance("spd", radius=1.5, mu=1.0, random_state=0).fit(X)
    >>> low, high = variance.interval_
    >>> low < 2 * 0.3**2 < high
    True
    """

    def __init__(
        self,
        manifold="euclidean",
        *,
        radius,
        center=None,
        mu=1.0,
        confidence_level=0.95,
        mechanism="auto",
        calibration="sharp",
        budget_split=None,
        mean=None,
        random_state=None,
        n_jobs=None,
        outer_radius=None,
        outer_center=None,
        ball_share="auto",
        ball_quantile="auto",
        noise="auto",
        unit=None,
        ledger=None,
        invalid="raise",
    ):
        self.manifold = manifold
        self.radius = radius
        self.center = center
        self.mu = mu
        self.confidence_level = confidence_level
        self.mechanism = mechanism
        self.calibration = calibration
        self.budget_split = budget_split
        self.mean = mean
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.outer_radius = outer_radius
        self.outer_center = outer_center
        self.ball_share = ball_share
        self.ball_quantile = ball_quantile
        self.noise = noise
        self.unit = unit
        self.ledger = ledger
        self.invalid = invalid

    def fit(self, X, y=None, *, groups=None):
        """Release the variance of the records.

        Parameters
        ----------
        X : array-like or dask array of shape ``(n_samples, *point_shape)``
            Records, as for `DPFrechetMean`.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), default=None
            The person, or other unit, that each record belongs to. Every group then counts as one
            record, its own Fréchet mean, and what is protected is the group with all its records;
            the number of groups is public, their sizes are not.

        Returns
        -------
        self : DPFrechetVariance

        Raises
        ------
        ValueError, TypeError
            If a parameter is out of range or X is not an array of points of the manifold.
        PrivacyBudgetError
            If the ledger has less than `mu` left. Nothing was read, nothing is released.
        PrivacyLedgerError, FileNotFoundError
            If the ledger cannot be used. Nothing was read, nothing is released.
        ConvergenceError
            If `mu` is infinite and the exact mean is not found. No private fit raises it.
        """
        with fit_threads(self.n_jobs):
            return without_counts(self._fit, groups, X)

    def _fit(self, X, groups):
        self._forget()
        unread = look(self, X, reset=True, blocks=True, grouped=groups is not None)
        plan = self._plan(unread.shape, groups)
        check_blocks(self, plan, unread)
        reused = None if self.mean is None else Reused("mean", self.mean.receipt)
        paid = pay(self, plan.mu, plan.unit, plan.statistics, reused)
        return self._release(plan, read_into_ball(self, plan, unread), paid)

    def _plan(self, shape, groups) -> FitPlan:
        _check_release(self.mean)
        if self.mean is not None and (is_private(self.center) or is_private(self.radius)):
            raise ValueError(
                "center and radius must be public when a mean is reused; pass the center_ and the "
                "radius_ of the fit that released it."
            )
        plan = plan_fit(self, shape, groups)
        if self.mean is not None:
            _check_reuse(plan, self.mean)
        return plan

    def _shares(self, mu, n):
        region, reused = self.confidence_level is not None, self.mean is not None
        return variance_shares(self.calibration, self.budget_split, region, reused)

    def _release(self, plan: FitPlan, problem: BallProblem, paid: Payment):
        """Release what was planned; a ball that was to be found is released already."""
        mu, shares, level, rng = problem.mu, plan.shares, plan.level, plan.rng
        void_reason, notes = plan.void_reason, paid.notes
        if self.mean is None:
            mean_mu = part(mu, shares["mean"])
            release, point, row = release_mean(
                problem,
                mean_mu,
                plan.mu,
                plan.mechanism,
                self.calibration,
                rng,
                void_reason,
                paid.receipt,
            )
            rows = [*problem.releases, row]
            notes += mean_notes(problem, self.calibration)
        else:
            release, rows = self.mean, []
            point = problem.local.to_model(release.point)
            void_reason = void_reason or release.void_reason
        spend = _release_variance_paper if self.calibration == "paper" else _release_variance
        base = problem.local.model.project_to_ball(point, problem.local.origin, problem.radius)
        estimate, more = spend(problem, release, base, mu, shares, level, rng)
        self.release_ = replace(estimate, guarantee=GDP(plan.mu), void_reason=void_reason)
        self.variance_ = estimate.value
        if level is not None:
            self.interval_ = estimate.interval(level)
        self.mean_ = problem.local.from_model(base)
        self.manifold_ = problem.manifold
        self.center_ = problem.center
        self.radius_ = problem.radius
        self.n_samples_ = problem.n
        self.privacy_ = make_report(
            plan.mu,
            rows + more,
            void_reason,
            notes + fit_notes(problem, release.mechanism),
            problem.unit,
            reused=None if self.mean is None else release.guarantee,
            reused_float_safe=release.float_safe,
        )
        self._n_features_out = 1
        return self

    def transform(self, X):
        """Return the squared geodesic distances of records to `mean_`.

        Parameters
        ----------
        X : array-like of shape ``(n_samples, *point_shape)``

        Returns
        -------
        ndarray of shape (n_samples, 1)
            Not a release.
        """
        X = self._read_for_transform(X)
        with np.errstate(all="ignore"):  # no overflow warning may tell that some record is huge
            return self.manifold_.dist(self.mean_, X)[:, None] ** 2


def _check_release(mean) -> None:
    if mean is not None and not isinstance(mean, MeanRelease):
        raise TypeError(
            "mean must be the release_ of a fitted DPFrechetMean or None, "
            f"got {type(mean).__name__}."
        )


def _check_reuse(plan: FitPlan, release: MeanRelease) -> None:
    if release.manifold != plan.manifold:
        raise ValueError(
            f"mean must be a release on {plan.manifold!r}, got one on {release.manifold!r}."
        )
    if release.unit != plan.unit:
        raise ValueError(
            f"mean must protect the unit of this fit, {plan.unit}, got a release that protects "
            f"{release.unit}; pass the same groups and unit to both fits."
        )


def _public_range(problem: BallProblem, base: Array) -> tuple[float, float, float]:
    """Return the range of squared distances to `base`, and D."""
    distance = min(float(problem.local.model.dist(problem.local.origin, base)), problem.radius)
    return *sensitivity.squared_distance_range(problem.radius, distance), distance


def _squared_distances(base: Array, low: float, high: float, sample: Sample) -> Array:
    """Return the squared distances to `base` clipped to their public range."""
    with np.errstate(all="ignore"):
        y = sample.squared_distances(base)
    return np.clip(np.where(np.isnan(y), low, y), low, high)


def _centred(distances: Callable[[Sample], Array], middle: float, sample: Sample) -> Array:
    return distances(sample) - middle


def _mean(values: Callable[[Sample], Array], sample: Sample) -> tuple[Array]:
    return (values(sample).mean(),)


def _mean_square(values: Callable[[Sample], Array], sample: Sample) -> tuple[Array]:
    return ((values(sample) ** 2).mean(),)


def _release_variance(
    problem: BallProblem,
    release: MeanRelease,
    base: Array,
    mu: float,
    shares: dict[str, float],
    level: float | None,
    rng: RandomSource,
) -> tuple[VarianceRelease, list[Release]]:
    """Release the first two moments of the squared distances by one query on their curve."""
    n = problem.n
    sample, (low, high, distance) = problem.sample, _public_range(problem, base)
    distances = partial(_squared_distances, base, low, high)
    middle, half = (low + high) / 2, (high - low) / 2
    budget = part(mu, shares["variance"])
    released, width, sigma = release_moment_curve(
        sample,
        partial(_centred, distances, middle),
        half,
        problem.radius,
        distance,
        level is not None,
        budget,
        problem.secure,
        rng,
    )
    mean = middle + float(released[0])
    if mu == inf:  # taken directly: from the middle of a wide range moments cancel
        mean = float(sample.average(partial(_mean, distances))[0])
    row = Release("variance", budget, width, sigma, "gaussian", problem.secure)
    bias, bias_variance = _bias(problem, release, base)
    error, freedom = None, inf
    if level is not None and (n == 1 or (n == 2 and mu == inf)):
        error = inf  # the squared distances of one record, or of two from their mean, do not spread
    elif level is not None:
        if mu == inf:
            centred = partial(_centred, distances, mean)
            spread = float(sample.average(partial(_mean_square, centred))[0])
        else:
            second = float(released[1]) * half / sensitivity.MOMENT_CURVE_CONSTANT
            spread = squared_distance_spread(mean, second, sigma, low, high)
        sampling = spread / (n - 1)
        total = sampling + sigma**2 + bias_variance
        error = sqrt(total) * n / (n - 1)
        # Welch and Satterthwaite: only the sampling part is itself estimated.
        freedom = (n - 1) * (total / sampling) ** 2 if sampling > 0 else inf
    estimate = VarianceRelease(
        value=min(max(mean - bias, 0.0), high),
        # The sample mean lies closer to the records than the population mean does.
        center=(mean - bias) * n / max(n - 1, 1),
        standard_error=error,
        upper=high,
        n=n,
        mean=release,
        guarantee=GDP(mu),
        freedom=freedom,
    )
    return estimate, [row]


def _release_variance_paper(
    problem: BallProblem,
    release: MeanRelease,
    base: Array,
    mu: float,
    shares: dict[str, float],
    level: float | None,
    rng: RandomSource,
) -> tuple[VarianceRelease, list[Release]]:
    """Release the mean and, by a query of its own, the variance of the squared distances."""
    n = problem.n
    low, high, _ = _public_range(problem, base)
    y = _squared_distances(base, low, high, problem.sample)
    budget = part(mu, shares["variance"])
    width = sensitivity.computed_paper(sensitivity.variance_paper(problem.radius, n), n)
    noise = Gaussian.calibrate(width, GDP(budget))
    mean = float(noise.release(np.array([y.mean()]), rng)[0])
    rows = [Release("variance", budget, width, noise.sigma, "gaussian")]
    error = None
    if level is not None:
        spread_budget = part(mu, shares["spread"])
        spread_width = sensitivity.computed_paper(sensitivity.spread_paper(problem.radius, n), n)
        spread_noise = Gaussian.calibrate(spread_width, GDP(spread_budget))
        spread = float(spread_noise.release(np.array([y.var()]), rng)[0])
        rows.append(Release("spread", spread_budget, spread_width, spread_noise.sigma, "gaussian"))
        error = sqrt(min(max(spread, 0.0), high**2 / 4) / n + noise.sigma**2)
    estimate = VarianceRelease(
        value=min(max(mean, 0.0), high),
        center=mean,
        standard_error=error,
        upper=high,
        n=n,
        mean=release,
        guarantee=GDP(mu),
    )
    return estimate, rows


def _bias(problem: BallProblem, release: MeanRelease, base: Array) -> tuple[float, float]:
    """Return the mean and variance of what the noise in the mean adds to a squared distance."""
    if release.scale == 0:
        return 0.0, 0.0
    local = problem.local
    mechanism = rebuild(release.mechanism, local.model, local.to_model(release.foot), release.scale)
    return noise_bias(local.model, local.origin, problem.radius, mechanism, base)
