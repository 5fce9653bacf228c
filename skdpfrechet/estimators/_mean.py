"""`DPFrechetMean`."""

from __future__ import annotations

from functools import partial
from math import inf

import numpy as np
from sklearn.utils.validation import check_array, check_is_fitted

from skdpfrechet import sensitivity
from skdpfrechet._numerics import Array, symmetrize
from skdpfrechet._solvers import Sample
from skdpfrechet.estimators._base import _DPEstimator, fit_notes, fit_threads, make_report
from skdpfrechet.estimators._budget import mean_shares, part
from skdpfrechet.estimators._groups import without_counts
from skdpfrechet.estimators._mechanisms import mean_law, rebuild
from skdpfrechet.estimators._noise import release_second_moment
from skdpfrechet.estimators._plan import (
    BallProblem,
    FitPlan,
    check_blocks,
    pay,
    plan_fit,
    read_into_ball,
)
from skdpfrechet.estimators._private_mean import mean_notes, release_mean
from skdpfrechet.estimators._records import look, real_numbers
from skdpfrechet.inference import ConfidenceRegion, MeanInference, MeanRelease
from skdpfrechet.mechanisms import RandomSource, SymmetricGaussian
from skdpfrechet.privacy import GDP, Release
from skdpfrechet.privacy._ledger import Payment

NOTHING = Payment()  # what a fit without a ledger has for it
_HESSIAN_ENTRIES = 2**20  # of the Hessians of single records, held together: 8 MB


class DPFrechetMean(_DPEstimator):
    """Differentially private Fréchet mean with a confidence region.

    Every record is moved into the ball of `radius` around `center`, both public; the Fréchet mean
    of the moved records is released with noise scaled to its sensitivity, and so is their second
    moment around the released mean, from which the region follows without further cost. The region
    is about the population mean of the moved records.

    Parameters
    ----------
    manifold : str or Manifold, default="euclidean"
        ``"euclidean"``, ``"sphere"``, ``"spd"`` (affine-invariant; alias ``"riemann"``),
        ``"logeuclid"``, ``"logchol"``, ``"hyperbolic"`` or an instance.
    radius : float or "private"
        Radius of the ball, in the units of the distance. Public: choose it without the data. On
        spheres below π/2 (π/4 for ``calibration="paper"``). ``"private"`` spends part of `mu` to
        find it.
    center : array-like of shape point_shape or "private", default=None
        Public centre of the ball. None is the identity or 0: covariances then need units in which
        they are of order one, as those in V² would all be moved to the boundary. Required on
        spheres. ``"private"`` spends part of `mu` to find it, not on all spaces.
    mu : float, default=1.0
        Budget of the whole fit in Gaussian differential privacy. ``np.inf`` gives the exact mean of
        the moved records with its classical region, and no privacy.
    confidence_level : float or None, default=0.95
        Level of the region. None spends the whole budget on the mean and gives no region.
    mechanism : str, default="auto"
        ``"riemannian-gaussian"`` (spheres, flat spaces), ``"wrapped-gaussian"`` (Hadamard spaces)
        or ``"projected-gaussian"`` (spheres). ``"auto"`` takes the second on Hadamard spaces, and
        on spheres the third where its noise is exact (see `noise`), else the first.
        ``"riemannian-gaussian-exact"`` is the first with the smallest scale of its exact budget,
        which saves noise on spheres when sensitivity/μ exceeds about .2; see
        `skdpfrechet.privacy.exact`.
    calibration : {"sharp", "paper"}, default="sharp"
        The audited recipe, or the constants and equal shares as printed in [1]_.
    budget_split : dict or None, default=None
        Shares of μ² of ``"mean"`` and ``"second_moment"`` (and ``"hessian"`` for ``"paper"``).
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
        Name of the partition in `groups`, such as ``"person"``: what one group is. Required with
        `groups` and a `ledger`, refused without `groups`. `privacy_` and the ledger say it.
    ledger : PrivacyLedger, str or PathLike, default=None
        A `skdpfrechet.privacy.PrivacyLedger`, or the path of one that exists. Every fit records its
        `mu` there before it reads the value of a record, or raises `PrivacyBudgetError`; what a fit
        has paid stays spent if it fails afterwards. Refuses an integer `random_state` and an
        infinite `mu`.
    invalid : {"raise", "replace"}, default="raise"
        What `fit` does with a record that is not finite or not on the manifold: raise, which tells
        that there is one and lies outside the guarantee, or silently put the public centre in its
        place (see the user guide for private centres). `transform` always raises.

    Attributes
    ----------
    mean_ : ndarray of shape point_shape
        The released mean.
    covariance_ : ndarray of shape (dim, dim)
        Covariance of its error, sampling and noise together, in the orthonormal frame at `mean_`.
    confidence_region_ : ConfidenceRegion
        Region of `confidence_level`.
    release_ : MeanRelease
        The released point with its foot, noise scale and guarantee; `DPFrechetVariance` reuses it.
    privacy_ : PrivacyReport
        What the fit spent; prints as a table.
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
    DPFrechetVariance : Private Fréchet variance with a confidence interval.

    Notes
    -----
    Neighbouring relation: replace one record, n public. `transform` applies the released mean to
    records; its output is not a release, it is as sensitive as its input. There is no
    `sample_weight`: weights change the sensitivity, and would have to be public themselves.

    In simulations of 20 to 600 records in up to 15 dimensions regions of level .95 covered .92 or
    more (docs/small_samples.md). With fewer records and next to no noise they cover less: .88 for
    5 records of SPD(2) at ``mu=10``.

    With ``invalid="raise"``, `fit` raises if X holds a value that is not finite or not on the
    manifold; whether it does depends on the records and lies outside the guarantee. Valid records
    never make it raise. The shape and the dtype of X are public.

    References
    ----------
    .. [1] Jiang, Chang, Hu, "Differentially private inference framework for Riemannian manifold
       data", arXiv 2605.14762.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpfrechet import DPFrechetMean
    >>> rng = np.random.default_rng(0)
    >>> X = np.exp(rng.normal(scale=0.3, size=(500, 2)))[:, :, None] * np.eye(2)
    >>> mean = DPFrechetMean("spd", radius=1.5, mu=1.0, random_state=0).fit(X)
    >>> mean.mean_.shape
    (2, 2)
    >>> bool(mean.confidence_region_.contains(np.eye(2)))
    True
    >>> mean.transform(X).shape
    (500, 3)
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
        """Release the mean of the records.

        Parameters
        ----------
        X : array-like or dask array of shape ``(n_samples, *point_shape)``
            Records: ``(n, p, p)`` for SPD matrices, ``(n, d + 1)`` unit vectors for spheres,
            ``(n, d)`` for Euclidean space. Dask arrays and large memory maps are read in blocks;
            see the user guide.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), default=None
            The person, or other unit, that each record belongs to. Every group then counts as one
            record, its own Fréchet mean, and what is protected is the group with all its records;
            the number of groups is public, their sizes are not.

        Returns
        -------
        self : DPFrechetMean

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
        paid = pay(self, plan.mu, plan.unit, plan.statistics)
        return self._release(plan, read_into_ball(self, plan, unread), paid)

    def _plan(self, shape, groups) -> FitPlan:
        return plan_fit(self, shape, groups)

    def _shares(self, mu, n):
        region = self.confidence_level is not None
        return mean_shares(mu, n, self.calibration, self.budget_split, region)

    def _release(self, plan: FitPlan, problem: BallProblem, paid: Payment = NOTHING):
        """Release what was planned; a ball that was to be found is released already."""
        mu, shares, level, rng = problem.mu, plan.shares, plan.level, plan.rng
        release, point, row = release_mean(
            problem,
            part(mu, shares["mean"]),
            plan.mu,
            plan.mechanism,
            self.calibration,
            rng,
            plan.void_reason,
            paid.receipt,
        )
        rows, inference = [*problem.releases, row], None
        if level is not None:
            spend = _release_spread_paper if self.calibration == "paper" else _release_spread
            inference, more = spend(problem, release, point, mu, shares, level, rng)
            rows += more
        self.release_ = release
        self.mean_ = release.point.copy()
        self.manifold_ = problem.manifold
        self.center_ = problem.center
        self.radius_ = problem.radius
        self.n_samples_ = problem.n
        self.privacy_ = make_report(
            plan.mu,
            rows,
            plan.void_reason,
            paid.notes + mean_notes(problem, self.calibration) + fit_notes(problem, plan.mechanism),
            problem.unit,
        )
        self._inference = inference
        self._n_features_out = problem.manifold.dim
        return self

    @property
    def confidence_region_(self) -> ConfidenceRegion:
        """Confidence region for the mean, computed from the releases when first asked for."""
        check_is_fitted(self)
        if self._inference is None:
            raise AttributeError("confidence_region_ requires a confidence_level at fit, got None.")
        return self._inference.region

    @property
    def covariance_(self) -> Array:
        """Covariance of the error of `mean_` in the orthonormal frame at `mean_`."""
        return self.confidence_region_.covariance_at_center

    def transform(self, X):
        """Return the normal coordinates of records at `mean_`.

        Parameters
        ----------
        X : array-like of shape ``(n_samples, *point_shape)``

        Returns
        -------
        ndarray of shape (n_samples, dim)
            On affine-invariant SPD matrices those of pyriemann's ``tangent_space(X, mean_)``. Not a
            release.
        """
        X = self._read_for_transform(X)
        with np.errstate(all="ignore"):  # no overflow warning may tell that some record is huge
            return self.manifold_.log_coords(self.mean_, X)

    def inverse_transform(self, X):
        """Return the points with the given normal coordinates at `mean_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, dim)

        Returns
        -------
        ndarray of shape ``(n_samples, *point_shape)``
        """
        check_is_fitted(self)
        X, dim = real_numbers(X), self.manifold_.dim
        if np.ndim(X) != 2 or np.shape(X)[1] != dim:
            raise ValueError(f"X must have shape (n_samples, {dim}), got {np.shape(X)}.")
        c = check_array(X, dtype=np.float64, ensure_min_samples=0, input_name="X")
        return self.manifold_.exp_coords(self.mean_, c)


def _spread_inputs(problem: BallProblem, point: Array) -> tuple[float, float, Array, float]:
    """Return D, R, and the ball of the tangent space at `point` that holds all logarithms."""
    model, origin, radius = problem.local.model, problem.local.origin, problem.radius
    if model.sectional_curvature_bounds[1] <= 0 and model.injectivity_radius == inf:
        # A Hadamard logarithm does not stretch: the logarithms lie within r of that of the centre.
        # It is the opposite of the one at the centre, whose frame, transported, is the frame here.
        middle = -model.log_coords(origin, point)
        distance = float(np.linalg.norm(middle))
        return distance, radius + distance, middle, radius
    distance = float(model.dist(origin, point))
    reach = min(radius + distance, model.diameter)
    return distance, reach, np.zeros(model.dim), reach


def _release_spread(
    problem: BallProblem,
    release: MeanRelease,
    point: Array,
    mu: float,
    shares: dict[str, float],
    level: float,
    rng: RandomSource,
) -> tuple[MeanInference, list[Release]]:
    """Release the uncentred second moment at the released mean; the Hessian follows from it."""
    model, n = problem.local.model, problem.n
    distance, reach, middle, radius = _spread_inputs(problem, point)
    budget = part(mu, shares["second_moment"])
    moment, scale, sigma = release_second_moment(
        model,
        problem.sample,
        point,
        (middle, radius),
        problem.radius,
        distance,
        budget,
        problem.secure,
        rng,
    )
    exact = mu == inf
    inference = MeanInference(
        manifold=problem.manifold,
        model=model,
        origin=problem.local.origin,
        point=point,
        release=release,
        n=n,
        moment=moment,
        moment_scale=sigma,
        # The floor keeps the noise from making the region too small; see docs/theory.
        moment_range=(sigma, max(reach**2, sigma)),
        reach=reach,
        radius=problem.radius,
        confidence_level=level,
        noise_scale=_noise_scale(problem, release, level),
        in_chart=not exact and mean_law(release.mechanism).in_chart,
        bootstrap=True,
        hessian=_exact_hessian(problem, point, middle, radius) if exact else None,
    )
    row = Release("second moment", budget, scale, sigma, "gaussian", problem.secure)
    return inference, [row]


def _noise_scale(problem: BallProblem, release: MeanRelease, level: float) -> float:
    """Return the scale of normal noise that is as wide as that of the mean at `level`."""
    model, origin = problem.local.model, problem.local.origin
    return rebuild(release.mechanism, model, origin, release.scale).normal_scale(level)


def _exact_hessian(problem: BallProblem, point: Array, middle: Array, radius: float) -> Array:
    (hessian,) = problem.sample.average(partial(_mean_hessian, point, middle, radius))
    return hessian


def _mean_hessian(point: Array, middle: Array, radius: float, sample: Sample) -> tuple[Array]:
    logs = sample.coordinates(point, middle, radius)
    n, dim = logs.shape
    step = max(1, _HESSIAN_ENTRIES // dim**2)
    parts = [logs[start : start + step] for start in range(0, n, step)]
    hessians = [sample.manifold.mean_squared_distance_hessian(point, part) for part in parts]
    return (np.average(hessians, axis=0, weights=[len(part) for part in parts]),)


def _release_spread_paper(
    problem: BallProblem,
    release: MeanRelease,
    point: Array,
    mu: float,
    shares: dict[str, float],
    level: float,
    rng: RandomSource,
) -> tuple[MeanInference, list[Release]]:
    """Release the centred covariance and the mean Hessian of logarithms truncated to norm r.

    The printed recipe uses the noisy matrices as they come, indefinite in most fits at small μ;
    here both are clipped to the range that they are known to have.
    """
    model, n, radius = problem.local.model, problem.n, problem.radius
    logs = problem.sample.coordinates(point, np.zeros(model.dim), radius)
    centred = logs - logs.mean(axis=0)
    moment = symmetrize(centred.T @ centred / max(n - 1, 1))
    hessian = model.mean_squared_distance_hessian(point, logs)
    scale = sensitivity.computed_paper(sensitivity.second_moment_paper(radius, n), n)
    moment_row, moment_noise = _matrix_row("second moment", scale, mu, shares["second_moment"])
    scale = sensitivity.computed_paper(sensitivity.hessian_paper(model, radius, n), n)
    hessian_row, hessian_noise = _matrix_row("hessian", scale, mu, shares["hessian"])
    exact = mu == inf
    inference = MeanInference(
        manifold=problem.manifold,
        model=model,
        origin=problem.local.origin,
        point=point,
        release=release,
        n=n,
        moment=moment_noise.release(moment, rng),
        moment_scale=moment_noise.sigma,
        moment_range=(0.0, radius**2),
        reach=radius,
        radius=radius,
        confidence_level=level,
        noise_scale=_noise_scale(problem, release, level),
        in_chart=not exact and mean_law(release.mechanism).in_chart,
        bootstrap=False,
        hessian=hessian_noise.release(hessian, rng),
        hessian_clip=not exact,
    )
    return inference, [moment_row, hessian_row]


def _matrix_row(
    statistic: str, scale: float, mu: float, share: float
) -> tuple[Release, SymmetricGaussian]:
    budget = part(mu, share)
    noise = SymmetricGaussian.calibrate(scale, GDP(budget))
    return Release(statistic, budget, scale, noise.sigma, "gaussian"), noise
