"""`DPMDM`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from math import sqrt
from warnings import catch_warnings, simplefilter

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.extmath import softmax
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_consistent_length, column_or_1d

from skdpfrechet._numerics import Array
from skdpfrechet.estimators._ball import is_private
from skdpfrechet.estimators._base import _DPEstimator, fit_threads
from skdpfrechet.estimators._budget import part
from skdpfrechet.estimators._groups import check_groups, check_unit, without_counts
from skdpfrechet.estimators._mean import DPFrechetMean
from skdpfrechet.estimators._mechanisms import make_generator
from skdpfrechet.estimators._plan import check_mu, enter, pay
from skdpfrechet.estimators._records import look
from skdpfrechet.manifolds import resolve_manifold
from skdpfrechet.privacy import GDP, PrivacyReport, Record, SameClass, Unit

SAME_CLASS = SameClass(Record())
PARALLEL_NOTE = (
    "parallel composition: a record enters the mean of its own class only, so what the classes "
    "spend does not add up"
)


@dataclass(frozen=True)
class ParallelReport(PrivacyReport):
    """Privacy report of releases about disjoint sets of records, each set at the full budget.

    Parameters
    ----------
    parts : int
        Number of sets.

    Raises
    ------
    ValueError
        If the releases do not spend `guarantee` once for every set.
    """

    unit: Unit = SAME_CLASS
    parts: int = 1

    def __post_init__(self) -> None:
        releases = tuple(self.releases)
        # Shared out evenly they spend what one set alone does.
        shares = tuple(replace(row, mu=row.mu / sqrt(self.parts)) for row in releases)
        object.__setattr__(self, "releases", shares)
        super().__post_init__()
        object.__setattr__(self, "releases", releases)


class DPMDM(ClassifierMixin, _DPEstimator):
    """Differentially private classification by minimum distance to mean.

    Every class is summed up by its private Fréchet mean, and a record goes to the class of the
    nearest one. In place of pyriemann's `MDM`, in the same pipelines.

    Parameters
    ----------
    manifold : str or Manifold, default="spd"
        As for `DPFrechetMean`.
    radius : float or "private"
        Radius of the ball, as for `DPFrechetMean`; a private one is found for each class.
    center : array-like of shape point_shape, default=None
        Public centre of the ball. None is the identity or 0: covariances then need units in which
        they are of order one, as those in V² would all be moved to the boundary. Required on
        spheres.
    mu : float, default=1.0
        Budget of the whole fit in Gaussian differential privacy; each class mean gets all of it.
        ``np.inf`` gives the exact means of the moved records, and no privacy.
    mechanism : str, default="auto"
        Mechanism for the means, as for `DPFrechetMean`.
    calibration : {"sharp", "paper"}, default="sharp"
        The audited sensitivity, or the printed one.
    random_state : int or None, default=None
        None draws from the operating system's entropy. An integer is for tests: it voids the
        guarantee, and `privacy_` says so.
    n_jobs : int or None, default=None
        Threads for the passes over the records, as for `DPFrechetMean`.
    outer_radius, outer_center, ball_share, ball_quantile
        How a ``"private"`` centre or radius is found, as for `DPFrechetMean`.
    noise : {"auto", "float", "secure"}, default="auto"
        Whether noise is float-safe, as for `DPFrechetMean`.
    unit : str or None, default=None
        Name of the partition in `groups`, such as ``"person"``, as for `DPFrechetMean`.
    ledger : PrivacyLedger, str or PathLike, default=None
        Where every fit records its `mu` before it reads the value of a record, as for
        `DPFrechetMean`. Its unit must be a `SameClass`: this fit promises nothing to a record whose
        class changes.
    invalid : {"raise", "replace"}, default="raise"
        What `fit` does with a record that is not finite or not on the manifold: raise, which lies
        outside the guarantee, or put the public centre in its place, as for `DPFrechetMean`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    means_ : ndarray of shape ``(n_classes, *point_shape)``
        The released means, in the order of `classes_`.
    privacy_ : PrivacyReport
        What the fit spent, class by class; prints as a table.
    manifold_ : Manifold
        The space.
    center_ : ndarray of shape point_shape
        The public centre, if it is public.
    n_samples_ : int
        Number of records, or of groups if there are any; public.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, when X has string names.

    See Also
    --------
    DPFrechetMean : The mean of one class, with a confidence region.
    audit_pipeline : Which steps before this one would void the guarantee.

    Notes
    -----
    Neighbouring relation: replace one record by another **of the same class**; the labels and the
    class sizes are public. Then only one mean depends on the record, and the fit is μ-GDP by
    parallel composition. A changed label is outside the guarantee. With `groups` neighbours differ
    in all records of one group, whose set of classes is public, and the class means compose.

    The classifier is private, other than a linear model on tangent coordinates: `predict`,
    `predict_proba` and `transform` use the released means only, so predictions for new records
    cost those of `fit` nothing more. They do disclose the new records. A score on private records
    is computed without noise and is not covered.

    A class of few records is fine and gets much noise: its sensitivity is that of its size. There
    is no `sample_weight`: weights change the sensitivity, and would have to be public themselves.

    References
    ----------
    .. [1] Barachant, Bonnet, Congedo, Jutten, "Multiclass brain-computer interface classification
       by Riemannian geometry", IEEE Trans. Biomed. Eng. 59(4), 2012.
    .. [2] McSherry, "Privacy integrated queries", SIGMOD 2009 (parallel composition).

    Examples
    --------
    >>> import numpy as np
    >>> from skdpfrechet import DPMDM
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["rest", "task"], 200)
    >>> scale = np.where(y == "task", 0.5, -0.5)[:, None] + rng.normal(scale=0.3, size=(400, 2))
    >>> X = np.exp(scale)[:, :, None] * np.eye(2)
    >>> mdm = DPMDM(radius=2.0, mu=1.0, random_state=0).fit(X, y)
    >>> mdm.score(X, y) > 0.9
    True
    >>> print([row.statistic for row in mdm.privacy_.releases])
    ['mean of class rest', 'mean of class task']
    """

    def __init__(
        self,
        manifold="spd",
        *,
        radius,
        center=None,
        mu=1.0,
        mechanism="auto",
        calibration="sharp",
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
        self.mechanism = mechanism
        self.calibration = calibration
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

    def fit(self, X, y, *, groups=None):
        """Release the mean of every class.

        Parameters
        ----------
        X : array-like of shape ``(n_samples, *point_shape)``
            Records, as for `DPFrechetMean`.
        y : array-like of shape (n_samples,)
            Labels of at least two classes, public.
        groups : array-like of shape (n_samples,), default=None
            The person, or other unit, that each record belongs to. Each counts once in the mean of
            every class that it has records of, and what is protected is the person with all
            records. As one may be in all K classes, each mean gets μ/√K.

        Returns
        -------
        self : DPMDM

        Raises
        ------
        ValueError, TypeError
            If a parameter is out of range, X is not an array of points of the manifold, or y does
            not hold labels of two classes or more.
        PrivacyBudgetError
            If the ledger has less than `mu` left. Nothing was read, nothing is released.
        PrivacyLedgerError, FileNotFoundError
            If the ledger cannot be used. Nothing was read, nothing is released.
        ConvergenceError
            If `mu` is infinite and the exact mean is not found. No private fit raises it.
        """
        with fit_threads(self.n_jobs):
            return without_counts(self._fit, groups, X, y)

    def _fit(self, X, y, groups):
        self._forget()
        mu = check_mu(self.mu)
        if y is None:
            raise ValueError("DPMDM requires y to be passed, but the target y is None.")
        unread = look(self, X, reset=True, grouped=groups is not None)
        n, point_shape = unread.shape[0], unread.shape[1:]
        unit = SameClass(check_unit(self, groups))
        y, classes = _read_labels(y, n, groups is not None)
        codes = None if groups is None else check_groups(groups, n)
        manifold = resolve_manifold(self.manifold, point_shape)
        means = [
            DPFrechetMean(
                manifold,
                radius=self.radius,
                center=self.center,
                mu=mu if codes is None else part(mu, 1 / len(classes)),
                confidence_level=None,
                mechanism=self.mechanism,
                calibration=self.calibration,
                random_state=seed,
                outer_radius=self.outer_radius,
                outer_center=self.outer_center,
                ball_share=self.ball_share,
                ball_quantile=self.ball_quantile,
                noise=self.noise,
                invalid=self.invalid,
                unit=self.unit,
            )
            for seed in _class_seeds(self.random_state, len(classes))
        ]
        members = [y == label for label in classes]
        plans = [
            mean._plan((int(rows.sum()), *point_shape), None if codes is None else codes[rows])
            for mean, rows in zip(means, members, strict=True)
        ]
        paid = pay(self, mu, unit, ["mean of every class"])
        points, epsilon = unread.numbers(replace=self.invalid == "replace")
        for mean, plan, rows in zip(means, plans, members, strict=True):
            mean._release(plan, enter(mean, plan, points[rows], epsilon))
        self.classes_ = classes
        self.means_ = np.stack([mean.mean_ for mean in means])
        self.manifold_ = manifold
        if not is_private(self.center):
            self.center_ = means[0].center_
        self.n_samples_ = n if codes is None else int(codes.max()) + 1
        self.privacy_ = _report(mu, unit, classes, [mean.privacy_ for mean in means], paid.notes)
        self._n_features_out = len(classes)
        return self

    def transform(self, X):
        """Return the distances of records to the class means.

        Parameters
        ----------
        X : array-like of shape ``(n_samples, *point_shape)``

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._distances(X)

    def predict(self, X):
        """Return the class of the nearest mean.

        Parameters
        ----------
        X : array-like of shape ``(n_samples, *point_shape)``

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        nearest = self._distances(X).argmin(axis=1)
        return self.classes_[nearest]

    def predict_proba(self, X):
        """Return the softmax of the negative squared distances, as pyriemann's `MDM` does.

        Parameters
        ----------
        X : array-like of shape ``(n_samples, *point_shape)``

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of `classes_`. They rank the classes; they are not calibrated.
        """
        distances = self._distances(X)
        nearest = distances.min(axis=1, keepdims=True)
        # The difference of squares, in factors that do not overflow.
        with np.errstate(over="ignore"):
            return softmax(-(distances - nearest) * (distances + nearest))

    def _distances(self, X) -> Array:
        X = self._read_for_transform(X)
        with np.errstate(all="ignore"):  # no overflow warning may tell that some record is huge
            return np.stack([self.manifold_.dist(mean, X) for mean in self.means_], axis=1)


def _read_labels(y, n: int, grouped: bool) -> tuple[Array, Array]:
    """Return the labels as an array, and the sorted classes.

    With groups no message counts records, as those of scikit-learn do, nor depends on their number.
    """
    labels = None
    with suppress(ValueError):  # numpy's own message counts the records
        labels = np.asarray(y)
    if labels is None or (grouped and (labels.shape not in ((n,), (n, 1)))):
        raise ValueError("y must be one-dimensional, with one label per record.")
    if labels.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must hold class labels.")
    if labels.dtype.kind == "O" and any(label is None or label != label for label in labels.flat):
        raise ValueError("y must name a class for every record, got a missing label.")
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    with catch_warnings():
        if grouped:  # a warning about the number of classes compares it with that of records
            simplefilter("ignore")
        check_classification_targets(y)
    check_consistent_length(np.empty(n), y)
    classes = np.unique(y)
    if len(classes) < 2:
        raise ValueError("y must hold labels of at least two classes, got one class.")
    return y, classes


def _class_seeds(random_state, k: int) -> list[int | None]:
    """Return one seed per class: with a common one the means would share their noise."""
    make_generator(random_state)  # refuses what is neither None nor an integer
    if random_state is None:
        return [None] * k
    return [int(seed) for seed in np.random.SeedSequence(int(random_state)).generate_state(k)]


def _report(
    mu: float,
    unit: SameClass,
    classes: Array,
    reports: list[PrivacyReport],
    ledger_notes: tuple[str, ...],
) -> PrivacyReport:
    rows = [
        replace(row, statistic=f"{row.statistic} of class {label}")
        for label, report in zip(classes, reports, strict=True)
        for row in report.releases
    ]
    notes = dict.fromkeys([*ledger_notes, *(note for report in reports for note in report.notes)])
    void_reason = reports[0].void_reason
    if unit != SAME_CLASS:
        return PrivacyReport(GDP(mu), tuple(rows), unit, tuple(notes), void_reason)
    return ParallelReport(
        guarantee=GDP(mu),
        releases=tuple(rows),
        notes=(PARALLEL_NOTE, *notes),
        void_reason=void_reason,
        parts=len(classes),
    )
