"""`audit_pipeline`: which steps of a pipeline keep a later guarantee true.

The tables speak of pyriemann 0.12 and scikit-learn 1.6 to 1.9. tests/estimators/test_pipeline_audit
fits every step named here on two data sets that differ in one record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import hypot, isinf
from numbers import Real
from typing import Any

import numpy as np

from skdpfrechet.estimators._base import _DPEstimator
from skdpfrechet.estimators._mdm import DPMDM
from skdpfrechet.estimators._mechanisms import SEEDED, resolve_mechanism
from skdpfrechet.estimators._noise import exact_noise, resolve_noise
from skdpfrechet.manifolds import Manifold
from skdpfrechet.manifolds._resolve import point_ndim, resolve_manifold
from skdpfrechet.privacy import GDP, compose

SAFE, LEAK, UNKNOWN, PRIVATE, VOID = "record-wise", "fitted on data", "unknown", "private", "void"

# --- the tables ----------------------------------------------------------------------------------

_ONE = "looks at one record at a time"
_SHAPE = "learns the shape of X only"
_DRAWN = "is drawn without the records"

RECORD_WISE: dict[str, str] = {
    "pyriemann.BilinearFilter": "applies the given filters, chosen without the records",
    "pyriemann.BlockCovariances": _ONE,
    "pyriemann.CoSpectra": _ONE,
    "pyriemann.Coherences": _ONE,
    "pyriemann.Covariances": _ONE,
    "pyriemann.CrossSpectra": _ONE,
    "pyriemann.Kernels": _ONE,
    "pyriemann.Shrinkage": _ONE,
    "pyriemann.TLDummy": "does nothing",
    "pyriemann.TimeDelayCovariances": (
        f"{_ONE}, but keeps the records of its last call in Xtd_: delete that before sharing it"
    ),
    "sklearn.AdditiveChi2Sampler": _ONE,
    "sklearn.Binarizer": _ONE,
    "sklearn.FeatureHasher": _ONE,
    "sklearn.GaussianRandomProjection": _DRAWN,
    "sklearn.HashingVectorizer": _ONE,
    "sklearn.Normalizer": _ONE,
    "sklearn.PatchExtractor": f"{_ONE}, but makes many of it: the unit is then the patch",
    "sklearn.PolynomialCountSketch": _DRAWN,
    "sklearn.PolynomialFeatures": _SHAPE,
    "sklearn.SkewedChi2Sampler": _DRAWN,
    "sklearn.SparseCoder": "uses the given dictionary, chosen without the records",
    "sklearn.SparseRandomProjection": _DRAWN,
}

FITTED: dict[str, str] = {
    # What the step learns. pyriemann
    "pyriemann.AJDC": "spatial filters",
    "pyriemann.CSP": "spatial filters",
    "pyriemann.ERPCovariances": "the mean response of each class",
    "pyriemann.ElectrodeSelection": "which electrodes to keep",
    "pyriemann.FGDA": "a reference mean and a discriminant",
    "pyriemann.FgMDM": "class means and a discriminant",
    "pyriemann.FlatChannelRemover": "which channels are flat in all records",
    "pyriemann.GaussianMixture": "clusters",
    "pyriemann.KNearestNeighbor": "the records themselves",
    "pyriemann.KNearestNeighborRegressor": "the records themselves",
    "pyriemann.Kmeans": "cluster means",
    "pyriemann.KmeansPerClassTransform": "cluster means",
    "pyriemann.LocallyLinearEmbedding": "the records themselves",
    "pyriemann.MDM": "class means without noise; DPMDM is the private one",
    "pyriemann.MDWM": "class means",
    "pyriemann.MeanField": "power means of each class",
    "pyriemann.MeanShift": "modes",
    "pyriemann.NearestConvexHull": "the records themselves",
    "pyriemann.Potato": "a mean and the spread around it",
    "pyriemann.PotatoField": "means and the spread around them",
    "pyriemann.SPoC": "spatial filters",
    "pyriemann.SVC": "a reference mean and support vectors, which are records",
    "pyriemann.SVR": "a reference mean and support vectors, which are records",
    "pyriemann.SpectralEmbedding": "an embedding of the records",
    "pyriemann.TLCenter": "the mean of each domain",
    "pyriemann.TLClassifier": "a classifier",
    "pyriemann.TLEstimator": "an estimator",
    "pyriemann.TLRegressor": "a regressor",
    "pyriemann.TLRotate": "rotations between domains",
    "pyriemann.TLScale": "the spread of each domain",
    "pyriemann.TSClassifier": "a reference mean and a classifier",
    "pyriemann.TSNE": "an embedding of the records",
    "pyriemann.TangentSpace": "a reference mean without noise; DPFrechetMean is the private one",
    "pyriemann.Whitening": "the mean matrix",
    "pyriemann.Xdawn": "spatial filters and mean responses",
    "pyriemann.XdawnCovariances": "spatial filters and mean responses",
    # scikit-learn; its predictors need no line
    "sklearn.BernoulliRBM": "weights",
    "sklearn.DictVectorizer": "the names that occur",
    "sklearn.DictionaryLearning": "a dictionary",
    "sklearn.FactorAnalysis": "a mean and loadings",
    "sklearn.FastICA": "a mean and components",
    "sklearn.FeatureAgglomeration": "clusters of features",
    "sklearn.GenericUnivariateSelect": "which features to keep",
    "sklearn.IncrementalPCA": "a mean and components",
    "sklearn.Isomap": "the records themselves",
    "sklearn.IterativeImputer": "a regression for each feature",
    "sklearn.KBinsDiscretizer": "bin edges",
    "sklearn.KNNImputer": "the records themselves",
    "sklearn.KNeighborsTransformer": "the records themselves",
    "sklearn.KernelCenterer": "means of the kernel",
    "sklearn.KernelPCA": "the records themselves",
    "sklearn.LabelBinarizer": "which labels occur",
    "sklearn.LabelEncoder": "which labels occur",
    "sklearn.LatentDirichletAllocation": "topics",
    "sklearn.LocallyLinearEmbedding": "the records themselves",
    "sklearn.MaxAbsScaler": "extremes",
    "sklearn.MinMaxScaler": "extremes",
    "sklearn.MiniBatchDictionaryLearning": "a dictionary",
    "sklearn.MiniBatchNMF": "components",
    "sklearn.MiniBatchSparsePCA": "a mean and components",
    "sklearn.NMF": "components",
    "sklearn.NeighborhoodComponentsAnalysis": "a metric",
    "sklearn.Nystroem": "a sample of the records themselves",
    "sklearn.PCA": "a mean and components; DPPrincipalGeodesics is the private one",
    "sklearn.PLSSVD": "means and components",
    "sklearn.PowerTransformer": "exponents, means and scales",
    "sklearn.QuantileTransformer": "quantiles",
    "sklearn.RFE": "which features to keep",
    "sklearn.RFECV": "which features to keep",
    "sklearn.RadiusNeighborsTransformer": "the records themselves",
    "sklearn.RandomTreesEmbedding": "trees",
    "sklearn.SelectFdr": "which features to keep",
    "sklearn.SelectFpr": "which features to keep",
    "sklearn.SelectFromModel": "which features to keep",
    "sklearn.SelectFwe": "which features to keep",
    "sklearn.SelectKBest": "which features to keep",
    "sklearn.SelectPercentile": "which features to keep",
    "sklearn.SequentialFeatureSelector": "which features to keep",
    "sklearn.SparsePCA": "a mean and components",
    "sklearn.SpectralEmbedding": "an embedding of the records",
    "sklearn.TSNE": "an embedding of the records",
    "sklearn.TargetEncoder": "means of the target",
    "sklearn.TruncatedSVD": "components",
    "sklearn.VarianceThreshold": "which features to keep",
}


def _given(name: str, automatic: object, learns: str) -> Callable[[Any], tuple[bool, str]]:
    """Safe when the parameter is given."""

    def rule(step: Any) -> tuple[bool, str]:
        given = not _is(getattr(step, name), automatic)
        return given, f"uses the given {name}" if given else f"{learns}; give {name} instead"

    return rule


def _off(*names: str, learns: str) -> Callable[[Any], tuple[bool, str]]:
    """Safe when all switches are off."""

    def rule(step: Any) -> tuple[bool, str]:
        safe = not any(getattr(step, name) for name in names)
        return safe, f"has {' and '.join(names)} off" if safe else learns

    return rule


def _encoder(step: Any) -> tuple[bool, str]:
    if _is(step.categories, "auto"):
        return False, "which categories occur; give categories instead"
    if step.min_frequency is not None or step.max_categories is not None:
        return False, "how frequent the categories are"
    return True, "uses the given categories"


def _imputer(step: Any) -> tuple[bool, str]:
    if step.strategy != "constant":
        return False, f"a statistic ({step.strategy}) of each feature"
    if step.add_indicator or not step.keep_empty_features:
        return False, "in which features values are missing; set keep_empty_features instead"
    return True, "fills in a given constant"


def _counter(step: Any) -> tuple[bool, str]:
    if step.vocabulary is None:
        return False, "which words occur; give vocabulary instead"
    if getattr(step, "use_idf", False):
        return False, "how frequent the words are"
    return True, "uses the given vocabulary"


CONDITIONAL: dict[str, Callable[[Any], tuple[bool, str]]] = {
    "sklearn.CountVectorizer": _counter,
    "sklearn.MissingIndicator": _given(
        "features", "missing-only", "in which features values are missing"
    ),
    "sklearn.MultiLabelBinarizer": _given("classes", None, "which labels occur"),
    "sklearn.OneHotEncoder": _encoder,
    "sklearn.OrdinalEncoder": _encoder,
    "sklearn.RBFSampler": _given("gamma", "scale", "the variance of X"),
    "sklearn.RobustScaler": _off("with_centering", "with_scaling", learns="medians and quantiles"),
    "sklearn.SimpleImputer": _imputer,
    "sklearn.SplineTransformer": lambda step: (
        (False, "the range of each feature; give an array of knots instead")
        if isinstance(step.knots, str)
        else (True, "uses the given knots")
    ),
    "sklearn.StandardScaler": _off("with_mean", "with_std", learns="means and variances"),
    "sklearn.TfidfTransformer": _off("use_idf", learns="how frequent the words are"),
    "sklearn.TfidfVectorizer": _counter,
}

SEARCHES = (
    "sklearn.GridSearchCV",
    "sklearn.HalvingGridSearchCV",
    "sklearn.HalvingRandomSearchCV",
    "sklearn.RandomizedSearchCV",
)

# --- the result ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class StepAudit:
    """The verdict on one step.

    Parameters
    ----------
    name : str
        Path of the step, joined by ``__`` as in `set_params`.
    kind : str
        Class of the step.
    verdict : str
        ``"record-wise"``, ``"fitted on data"``, ``"unknown"``, ``"private"`` or ``"void"``.
    reason : str
        Why.
    mu : float or None
        Budget of a private step, whatever became of its guarantee.
    """

    name: str
    kind: str
    verdict: str
    reason: str
    mu: float | None = None


@dataclass(frozen=True)
class PipelineAudit:
    """The verdicts on all steps of a pipeline, in order; prints as a table.

    Parameters
    ----------
    steps : tuple of StepAudit

    Attributes
    ----------
    safe : list of str
        Steps that turn each record into something by itself: a guarantee downstream stays true.
    private : list of str
        Steps of this library whose guarantee holds.
    leaks : list of str
        Steps that learn from all records without noise. What they hold, and what they make of a
        record, carries no guarantee.
    void : list of str
        Steps of this library whose guarantee does not hold here, for the reason given.
    unknown : list of str
        Steps not in the tables. A private step after one of them is listed here, too.
    guarantee : GDP or None
        What the private steps of one fit spend together.
    """

    steps: tuple[StepAudit, ...]

    def _named(self, verdict: str) -> list[str]:
        return [step.name for step in self.steps if step.verdict == verdict]

    @property
    def safe(self) -> list[str]:
        """Steps that look at one record at a time."""
        return self._named(SAFE)

    @property
    def private(self) -> list[str]:
        """Steps whose guarantee holds."""
        return self._named(PRIVATE)

    @property
    def leaks(self) -> list[str]:
        """Steps fitted on the records without noise."""
        return self._named(LEAK)

    @property
    def void(self) -> list[str]:
        """Private steps whose guarantee does not hold."""
        return self._named(VOID)

    @property
    def unknown(self) -> list[str]:
        """Steps on which no verdict is possible."""
        return self._named(UNKNOWN)

    @property
    def guarantee(self) -> GDP | None:
        """What the private steps of one fit spend together; None without such a step."""
        spent = [GDP(s.mu) for s in self.steps if s.verdict == PRIVATE and s.mu is not None]
        return compose(*spent) if spent else None

    def __str__(self) -> str:
        rows = [("step", "class", "verdict", "reason")]
        rows += [(step.name, step.kind, step.verdict, step.reason) for step in self.steps]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        if self.guarantee is not None:
            lines += ["", f"private steps together: {self.guarantee} at each fit"]
        return "\n".join(lines)


def audit_pipeline(pipe) -> PipelineAudit:
    """Return which steps of a pipeline are safe, which leak, and which are unknown.

    Parameters
    ----------
    pipe : estimator
        A pipeline, fitted or not, or any estimator. Pipelines, unions, column transformers and
        searches are entered, however nested.

    Returns
    -------
    PipelineAudit

    Raises
    ------
    TypeError
        If `pipe` is not an estimator.

    Notes
    -----
    The verdict is read off the classes and their parameters; no data are seen and nothing is
    fitted. What cannot be seen here: whether the parameters (`center`, `radius`, filters,
    categories) were chosen without the records; how often the pipeline is fitted, each fit being a
    release of its own; and what is published besides it, such as scores.

    A step is taken for what its class is: a subclass or a step of another library is unknown.

    Examples
    --------
    >>> from pyriemann.estimation import Covariances
    >>> from pyriemann.preprocessing import Whitening
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdpfrechet import DPMDM, audit_pipeline
    >>> print(audit_pipeline(make_pipeline(Covariances(), DPMDM(radius=3.0))))
    step         class        verdict      reason
    covariances  Covariances  record-wise  looks at one record at a time
    dpmdm        DPMDM        private      1-GDP per fit; labels and class sizes are public
    <BLANKLINE>
    private steps together: 1-GDP at each fit
    >>> audit = audit_pipeline(make_pipeline(Covariances(), Whitening(), DPMDM(radius=3.0)))
    >>> audit.leaks, audit.void
    (['whitening'], ['dpmdm'])
    """
    if isinstance(pipe, type) or not hasattr(pipe, "fit"):
        raise TypeError(f"pipe must be an estimator, got {pipe!r}.")
    return PipelineAudit(tuple(_audit(pipe, "", (), searched=False)))


# --- the walk ------------------------------------------------------------------------------------


def _audit(
    step: Any, path: str, before: tuple[StepAudit, ...], searched: bool
) -> Iterator[StepAudit]:
    """Yield the verdicts on a step and all within. `before` are the verdicts on what feeds it."""
    # Imported here: they bring in a tenth of scikit-learn.
    from sklearn.compose import ColumnTransformer, make_column_selector
    from sklearn.pipeline import FeatureUnion, Pipeline

    if isinstance(step, Pipeline):
        for name, child in step.steps:
            rows = tuple(_audit(child, _join(path, name), before, searched))
            before += rows
            yield from rows
    elif isinstance(step, FeatureUnion):
        for name, child in step.transformer_list:
            yield from _audit(child, _join(path, name), before, searched)
    elif isinstance(step, ColumnTransformer):
        branches = [*step.transformers, ("remainder", step.remainder, None)]
        for name, child, columns in branches[: -1 if _is(step.remainder, "drop") else None]:
            if callable(columns) and type(columns) is not make_column_selector:
                reason = "a function of X chooses the columns"
                row = StepAudit(f"{_join(path, name)} (columns)", "function", UNKNOWN, reason)
                before += (row,)
                yield row
            yield from _audit(child, _join(path, name), before, searched)
    elif _key(step) in SEARCHES:
        yield StepAudit(
            path or _name(step),
            type(step).__name__,
            LEAK,
            "learns best_params_ and scores, with no noise, from one fit per candidate and fold",
        )
        yield from _audit(step.estimator, _join(path, "estimator"), before, searched=True)
    else:
        yield _judge(step, path or _name(step), before, searched)


def _judge(step: Any, path: str, before: tuple[StepAudit, ...], searched: bool) -> StepAudit:
    if step is None or isinstance(step, str):
        return StepAudit(path, str(step), SAFE, "passes or drops what it gets")
    if isinstance(step, _DPEstimator) and _key(step).startswith("skdpfrechet."):
        verdict, reason, mu = _judge_private(step, before, searched)
        return StepAudit(path, type(step).__name__, verdict, reason, mu)
    return StepAudit(path, type(step).__name__, *_judge_other(step))


def _judge_private(
    step: Any, before: tuple[StepAudit, ...], searched: bool
) -> tuple[str, str, float | None]:
    mu = float(step.mu) if isinstance(step.mu, Real) else 0.0
    if not mu > 0:
        return UNKNOWN, f"mu must be a positive number, got {step.mu!r}", None
    if isinf(mu):
        return LEAK, "learns the exact result: mu is infinite", mu
    promise = f"{mu:g}-GDP per fit"
    if isinstance(step, DPMDM):
        promise += "; labels and class sizes are public"
    reused = getattr(step, "mean", None)
    if reused is not None:
        together = hypot(mu, reused.guarantee.mu)
        promise += f"; {together:g}-GDP with the release that it reuses"
    leaking = _names(before, LEAK, VOID)
    if leaking:
        return VOID, f"one record changes all that {leaking} passes on", mu
    if step.random_state is not None:
        return VOID, SEEDED, mu
    if reused is not None and reused.void_reason is not None:
        return VOID, f"the reused release is void: {reused.void_reason}", mu
    if searched:
        return VOID, f"{promise}, but the records choose which fit is kept", mu
    doubtful = _names(before, UNKNOWN)
    if doubtful:
        return UNKNOWN, f"{promise} if {doubtful} treats every record by itself", mu
    if _has_float_noise(step):
        promise += "; its noise is in float64, whose last bits are outside the guarantee"
    return PRIVATE, promise, mu


def _has_float_noise(step: Any) -> bool:
    """Return whether a fit would draw noise that is not float-safe; parameters decide it."""
    try:
        space, reused = step.manifold, getattr(step, "mean", None)
        if not isinstance(space, Manifold):
            space = resolve_manifold(space, (3,) * point_ndim(space))  # of any dimension
        calibration = getattr(step, "calibration", "sharp")
        exact = exact_noise(step.noise, calibration, step.mu)
        mechanism = resolve_mechanism(step.mechanism, space, exact)
        if reused is not None:
            if not reused.float_safe:
                return True
            mechanism = "wrapped-gaussian"  # of numbers only
        return not resolve_noise(step.noise, mechanism, calibration, step.mu)
    except (TypeError, ValueError, ImportError):
        return True  # fit will say what is wrong with the parameters


def _judge_other(step: Any) -> tuple[str, str]:
    key = _key(step)
    if key == "sklearn.FunctionTransformer":
        return _judge_function(step.func)
    if key == "pyriemann.Covariances" and callable(step.estimator):
        return UNKNOWN, "calls a function of each record that may remember others"
    if key in RECORD_WISE:
        return SAFE, RECORD_WISE[key]
    if key in CONDITIONAL:
        safe, reason = CONDITIONAL[key](step)
        return (SAFE, reason) if safe else (LEAK, f"learns {reason}")
    if key in FITTED:
        return LEAK, f"learns {FITTED[key]}"
    if key == "sklearn.FrozenEstimator":
        return UNKNOWN, "was fitted before: safe if on public data, a leak if on these records"
    if key.split(".")[0] in ("sklearn", "pyriemann") and hasattr(type(step), "fit"):
        if hasattr(step, "cv"):
            return LEAK, "is fitted on the records, once per fold and once more, without noise"
        if hasattr(type(step), "predict") or hasattr(step, "predict"):
            return LEAK, "is fitted on the records without noise"
    return UNKNOWN, "not in the tables: safe only if fit learns nothing from the records"


def _judge_function(function: Any) -> tuple[str, str]:
    if function is None:
        return SAFE, "does nothing"
    if isinstance(function, np.ufunc) and function.signature is None and function.nin == 1:
        return SAFE, f"applies {function.__name__} to every number"
    return UNKNOWN, "calls a function of all records: safe only if it treats each by itself"


def _names(rows: tuple[StepAudit, ...], *verdicts: str) -> str:
    return ", ".join(row.name for row in rows if row.verdict in verdicts)


def _key(step: Any) -> str:
    """Return library and class, such as ``sklearn.PCA``."""
    return f"{type(step).__module__.split('.')[0]}.{type(step).__qualname__}"


def _name(step: Any) -> str:
    return type(step).__name__.lower()


def _join(path: str, name: str) -> str:
    return f"{path}__{name}" if path else name


def _is(value: object, constant: object) -> bool:
    """Whether a parameter, possibly an array, is the constant."""
    return value is constant or (isinstance(value, str) and value == constant)
