"""`audit_pipeline`: its tables against what the steps do, and the walk through a pipeline.

A leak is found by fitting a step on two data sets that differ in one record, with the same labels
and the same seed: what then differs in the fitted step, or in what it makes of a third data set,
has been learnt from that record.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import joblib
import numpy as np
import pyriemann
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pyriemann import (
    artifact_detection,
    channelselection,
    classification,
    clustering,
    embedding,
    estimation,
    regression,
    spatialfilters,
    transfer,
)
from pyriemann.estimation import Covariances, Shrinkage
from pyriemann.preprocessing import Whitening
from pyriemann.tangentspace import TangentSpace
from pyriemann.transfer import encode_domains
from scipy.sparse import issparse
from scipy.special import expit
from sklearn import (
    cross_decomposition,
    decomposition,
    ensemble,
    feature_extraction,
    feature_selection,
    impute,
    isotonic,
    kernel_approximation,
    preprocessing,
    random_projection,
)
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.feature_extraction import text
from sklearn.feature_extraction.image import PatchExtractor
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeCV
from sklearn.manifold import TSNE, SpectralEmbedding
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, Normalizer, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils import all_estimators

from skdpfrechet import (
    DPMDM,
    GDP,
    DPFrechetMean,
    DPFrechetVariance,
    DPPrincipalGeodesics,
    audit_pipeline,
)
from skdpfrechet.estimators._pipeline_audit import (
    CONDITIONAL,
    FITTED,
    LEAK,
    PRIVATE,
    RECORD_WISE,
    SAFE,
    UNKNOWN,
    VOID,
    _key,
)

N = 24
Y = np.arange(N) % 2


# --- neighbouring data sets ----------------------------------------------------------------------
# Of each pair of functions, the first draws a data set, the second its record 3 in the neighbour:
# far from the others, so that a step that learns at all learns from it.


def vectors(seed):
    return np.random.default_rng(seed).uniform(0.1, 1, size=(N, 6))


def one_good_feature(seed):
    """The neighbour's record spoils the good feature."""
    X = vectors(seed)
    X[:, 0] = Y
    X[:, 1] = np.where(np.arange(N) == 5, 1 - Y, Y)
    return X


def column(seed):
    return vectors(seed)[:, 0]


def series(seed):
    return np.random.default_rng(seed).normal(size=(N, 4, 64))


def flat_but_one(seed):
    """A channel that is flat in all records, but not in the neighbour's."""
    X = series(seed)
    X[:, 2] = 0.0
    return X


def subjects(seed):
    return np.random.default_rng(seed).normal(size=(6, 3, 4, 64))


def matrices(seed):
    x = series(seed)
    return x @ x.swapaxes(1, 2) / 64


def kernels(seed):
    X = vectors(seed)
    return X @ X.T


def texts(seed):
    rng = np.random.default_rng(seed)
    return np.array([" ".join(rng.choice(list("abcdef"), 8)) for _ in range(N)], dtype=object)


def categories(seed):
    return np.random.default_rng(seed).integers(0, 3, size=(N, 2)).astype(float)


def balanced(seed):
    """Every category equally often: the neighbour's record decides which is rare."""
    return np.stack([np.arange(N) % 3.0] * 2, axis=1)


def counts(seed):
    X = np.random.default_rng(seed).integers(0, 2, size=(N, 6)).astype(float)
    X[3] = 0.0
    return X


def dictionaries(seed):
    return [{"abcdefgh"[k]: 1.0} for k in np.random.default_rng(seed).integers(0, 3, N)]


def sets(seed):
    return [{"abc"[k]} for k in np.random.default_rng(seed).integers(0, 3, N)]


def labels(seed):
    return np.random.default_rng(seed).integers(0, 3, N)


def images(seed):
    return np.random.default_rng(seed).uniform(size=(N, 5, 5))


def with_missing(seed):
    X = vectors(seed)
    X[5:9, 0] = np.nan
    return X


def missing_but_one(seed):
    X = vectors(seed)
    X[:, 0] = np.nan
    return X


def full_but_one(seed):
    return vectors(seed)


OUTLIERS = {
    vectors: lambda X: np.array([9.0, 0.1, 3.0, 0.2, 7.0, 1.0]),
    one_good_feature: lambda X: np.array([-9.0, 1.0, 3.0, 0.2, 7.0, 1.0]),
    column: lambda X: -X[3],
    series: lambda X: 5 * X[3] * np.arange(1, 5)[:, None],
    flat_but_one: lambda X: series(7)[3],
    subjects: lambda X: 5 * X[3] * np.arange(1, 5)[:, None],
    matrices: lambda X: X[3] * np.outer([9, 4, 0.1, 25], [9, 4, 0.1, 25]),
    kernels: lambda X: 3 * X[3],
    texts: lambda X: "zebra yak a a a",
    categories: lambda X: np.array([7.0, 1.0]),
    balanced: lambda X: np.array([7.0, 1.0]),
    counts: lambda X: np.ones(6),
    dictionaries: lambda X: {"zebra": 3.0},
    sets: lambda X: {"z"},
    labels: lambda X: 9,
    images: lambda X: 1 - X[3],
    with_missing: lambda X: np.array([9.0, np.nan, 3.0, 3.0, np.nan, 3.0]),
    missing_but_one: lambda X: np.array([9.0, 0.1, 3.0, 0.2, 7.0, 1.0]),
    full_but_one: lambda X: np.array([np.nan, 0.1, 3.0, 0.2, 7.0, 1.0]),
}


def neighbours(make):
    X = make(0)
    neighbour = X.copy()
    neighbour[3] = OUTLIERS[make](X)
    return X, neighbour


@dataclass
class Trial:
    """A step with the data and the labels that it needs."""

    step: Any
    make: Callable = vectors
    y: str = "classes"
    fit_on: Callable = lambda X: X
    apply_to: Callable = lambda X: X

    def __str__(self):
        return " ".join(f"{self.step}".split())

    def labels(self, X):
        y = np.linspace(0, 1, N) if "values" in self.y else Y
        if "domains" in self.y:
            return encode_domains(X, y, np.repeat(["source", "target"], N // 2))[1]
        return None if self.y == "none" else y


def outcome(trial, X, third):
    """All that a fit makes known: its state, and what it makes of other records."""
    step = deepcopy(trial.step)  # some steps of pyriemann cannot be cloned
    if hasattr(step, "random_state"):
        step.random_state = 0
    np.random.seed(0)  # noqa: NPY002 some pyriemann steps draw from the global state
    y = trial.labels(X)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        step.fit(*(trial.fit_on(X),) if y is None else (trial.fit_on(X), y))
        state = joblib.hash(learnt(step))
        made = None
        for name in ("transform", "predict"):
            if made is None and hasattr(step, name):
                made = getattr(step, name)(trial.apply_to(third))
    return state, joblib.hash(dense(made))


def learnt(step):
    """Return the attributes that are neither parameters nor functions of the library."""
    parameters = inspect.signature(type(step)).parameters
    return {
        name: value
        for name, value in vars(step).items()
        if name not in parameters and not callable(value)
    }


def dense(X):
    return X.toarray() if issparse(X) else np.asarray(X)


def learns(trial):
    """Whether the step learnt something from the one record in which the data sets differ."""
    X, neighbour = neighbours(trial.make)
    third = trial.make(1)
    first = outcome(trial, X, third)
    assert outcome(trial, X, third) == first, "the comparison must be deterministic"
    return outcome(trial, neighbour, third) != first


def verdict(step):
    (row,) = audit_pipeline(step).steps
    return row.verdict


class Planted(TransformerMixin, BaseEstimator):
    """Keeps one number of one record."""

    def fit(self, X, y=None):
        self._hidden = [{"first": X[3, 0]}]
        return self

    def transform(self, X):
        return X


def test_the_comparison_finds_a_leak_and_only_a_leak():
    assert learns(Trial(Planted()))
    assert not learns(Trial(Normalizer()))


# --- every step of pyriemann ---------------------------------------------------------------------


def pyriemann_classes():
    for module in pkgutil.walk_packages(pyriemann.__path__, "pyriemann."):
        if module.name.split(".")[1] not in ("datasets", "geometry", "optimization", "utils"):
            members = inspect.getmembers(importlib.import_module(module.name), inspect.isclass)
            yield from (
                thing
                for _, thing in members
                if issubclass(thing, BaseEstimator) and thing.__module__ == module.name
            )


PYRIEMANN = {
    "AJDC": Trial(
        spatialfilters.AJDC(window=16, dim_red={"n_components": 2}, verbose=False),
        subjects,
        "none",
        apply_to=lambda X: X[0],
    ),
    "BilinearFilter": Trial(spatialfilters.BilinearFilter(np.eye(4)[:2]), matrices),
    "BlockCovariances": Trial(estimation.BlockCovariances(block_size=2), series),
    "CoSpectra": Trial(estimation.CoSpectra(window=16), series),
    "Coherences": Trial(estimation.Coherences(window=16), series),
    "Covariances": Trial(Covariances("oas"), series),
    "CrossSpectra": Trial(estimation.CrossSpectra(window=16), series),
    "ERPCovariances": Trial(estimation.ERPCovariances(), series),
    "ElectrodeSelection": Trial(channelselection.ElectrodeSelection(nelec=2), matrices),
    "FlatChannelRemover": Trial(channelselection.FlatChannelRemover(), flat_but_one),
    "KNearestNeighborRegressor": Trial(regression.KNearestNeighborRegressor(), matrices, "values"),
    "Kernels": Trial(estimation.Kernels("rbf"), series),
    "KmeansPerClassTransform": Trial(
        clustering.KmeansPerClassTransform(2, random_state=0), matrices
    ),
    "MDWM": Trial(transfer.MDWM(0.5, "target"), matrices, "domains"),
    "PotatoField": Trial(
        artifact_detection.PotatoField(2),
        matrices,
        fit_on=lambda X: [X, X],
        apply_to=lambda X: [X, X],
    ),
    "SPoC": Trial(spatialfilters.SPoC(nfilter=2), matrices, "values"),
    "SVR": Trial(regression.SVR(), matrices, "values"),
    "TLCenter": Trial(transfer.TLCenter("target"), matrices, "domains"),
    "TLClassifier": Trial(
        transfer.TLClassifier("target", classification.MDM()), matrices, "domains"
    ),
    "TLDummy": Trial(transfer.TLDummy(), matrices),
    "TLEstimator": Trial(transfer.TLEstimator("target", classification.MDM()), matrices, "domains"),
    "TLRegressor": Trial(
        transfer.TLRegressor("target", regression.KNearestNeighborRegressor()),
        matrices,
        "domains and values",
    ),
    "TLRotate": Trial(transfer.TLRotate("target"), matrices, "domains"),
    "TLScale": Trial(transfer.TLScale("target"), matrices, "domains"),
    "TSNE": Trial(embedding.TSNE(max_iter=3), matrices),
    "TimeDelayCovariances": Trial(estimation.TimeDelayCovariances(2), series),
    "Xdawn": Trial(spatialfilters.Xdawn(2), series),
    "XdawnCovariances": Trial(estimation.XdawnCovariances(2), series),
}


def pyriemann_trials():
    for kind in pyriemann_classes():
        trial = PYRIEMANN.get(kind.__name__)
        yield pytest.param(Trial(kind(), matrices) if trial is None else trial, id=kind.__name__)


@pytest.mark.parametrize("trial", list(pyriemann_trials()))
def test_every_step_of_pyriemann_does_what_the_table_says(trial):
    assert verdict(trial.step) == (LEAK if learns(trial) else SAFE)


@pytest.mark.parametrize("metric", ["riemann", "euclid", "logeuclid"])
def test_a_reference_mean_is_learnt_whatever_the_metric(metric):
    for step in (TangentSpace(metric), TangentSpace(metric, tsupdate=True), Whitening(metric)):
        assert learns(Trial(step, matrices))
        assert verdict(step) == LEAK


@pytest.mark.parametrize(
    "step",
    [
        *(Covariances(name) for name in ("cov", "corr", "hub", "lwf", "oas", "sch", "scm", "tyl")),
        *(estimation.Kernels(name) for name in ("linear", "poly", "rbf", "cosine")),
        *(estimation.Coherences(16, coh=name) for name in ("ordinary", "lagged")),
        estimation.CoSpectra(16),
        estimation.TimeDelayCovariances(3),
        estimation.BlockCovariances([1, 3], "lwf"),
    ],
    ids=str,
)
def test_record_wise_steps_treat_every_record_by_itself(step):
    X = series(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = step.fit(X).transform(X)
        alone = np.concatenate([clone(step).fit(X[:5]).transform(X[i : i + 1]) for i in range(5)])
    assert_allclose(whole[:5], alone, rtol=1e-10, atol=1e-12)
    assert verdict(step) == SAFE


def test_what_time_delays_keep_is_said():
    """The transformation is record-wise, the fitted step is not fit to be shared."""
    pipeline = make_pipeline(estimation.TimeDelayCovariances(2), DPMDM(radius=9.0)).fit(
        series(0), Y
    )
    assert_array_equal(pipeline[0].Xtd_[:, :4], series(0))
    step, mdm = audit_pipeline(pipeline).steps
    assert (step.verdict, mdm.verdict) == (SAFE, PRIVATE)
    assert "Xtd_" in step.reason


# --- every transformer of scikit-learn -----------------------------------------------------------

WALKED = {"ColumnTransformer", "FeatureUnion"}
GIVEN = {"categories": [[0, 1, 2, 7]] * 2}
SKLEARN = {
    "CCA": Trial(cross_decomposition.CCA(1)),
    "DictVectorizer": Trial(feature_extraction.DictVectorizer(), dictionaries),
    "FeatureHasher": Trial(feature_extraction.FeatureHasher(8), dictionaries),
    "GaussianRandomProjection": Trial(random_projection.GaussianRandomProjection(3)),
    "HashingVectorizer": Trial(text.HashingVectorizer(n_features=16), texts),
    "IsotonicRegression": Trial(isotonic.IsotonicRegression(out_of_bounds="clip"), column),
    "KernelCenterer": Trial(preprocessing.KernelCenterer(), kernels),
    "LabelBinarizer": Trial(preprocessing.LabelBinarizer(), labels, "none"),
    "LabelEncoder": Trial(preprocessing.LabelEncoder(), labels, "none"),
    "MiniBatchSparsePCA": Trial(decomposition.MiniBatchSparsePCA(2, max_iter=3)),
    "MissingIndicator": Trial(impute.MissingIndicator(error_on_new=False), with_missing),
    "MultiLabelBinarizer": Trial(preprocessing.MultiLabelBinarizer(), sets, "none"),
    "OneHotEncoder": Trial(preprocessing.OneHotEncoder(), categories),
    "OrdinalEncoder": Trial(preprocessing.OrdinalEncoder(), categories),
    "PLSCanonical": Trial(cross_decomposition.PLSCanonical(1)),
    "PLSRegression": Trial(cross_decomposition.PLSRegression(1)),
    "PLSSVD": Trial(cross_decomposition.PLSSVD(1)),
    "PatchExtractor": Trial(PatchExtractor(patch_size=(3, 3)), images, "none"),
    "RandomTreesEmbedding": Trial(ensemble.RandomTreesEmbedding(3)),
    "RFE": Trial(feature_selection.RFE(LinearSVC())),
    "RFECV": Trial(feature_selection.RFECV(LinearSVC(), cv=2)),
    "SelectFromModel": Trial(feature_selection.SelectFromModel(LinearSVC())),
    "SequentialFeatureSelector": Trial(
        feature_selection.SequentialFeatureSelector(LinearSVC(), n_features_to_select=1, cv=2),
        one_good_feature,
    ),
    "SimpleImputer": Trial(impute.SimpleImputer(), with_missing),
    "SparseCoder": Trial(decomposition.SparseCoder(np.eye(6)[:3])),
    "SparseRandomProjection": Trial(random_projection.SparseRandomProjection(3)),
    "StackingClassifier": Trial(ensemble.StackingClassifier([("a", LogisticRegression())])),
    "StackingRegressor": Trial(ensemble.StackingRegressor([("a", LinearRegression())])),
    "TSNE": Trial(TSNE(perplexity=5)),
    "TargetEncoder": Trial(preprocessing.TargetEncoder(), categories),
    "TfidfTransformer": Trial(text.TfidfTransformer(), counts),
    "VotingClassifier": Trial(ensemble.VotingClassifier([("a", LogisticRegression())])),
    "VotingRegressor": Trial(ensemble.VotingRegressor([("a", LinearRegression())])),
}


def sklearn_trials():
    for name, kind in all_estimators("transformer"):
        if name not in WALKED:
            yield pytest.param(Trial(kind()) if name not in SKLEARN else SKLEARN[name], id=name)


@pytest.mark.parametrize("trial", list(sklearn_trials()))
def test_every_transformer_of_sklearn_does_what_the_table_says(trial):
    if type(trial.step) is FunctionTransformer:
        assert verdict(trial.step) == SAFE
    else:
        assert verdict(trial.step) == (LEAK if learns(trial) else SAFE)


PARAMETERS_DECIDE = [
    Trial(StandardScaler(with_mean=False, with_std=False)),
    Trial(StandardScaler(with_mean=False)),
    Trial(StandardScaler(with_std=False)),
    Trial(preprocessing.RobustScaler(with_centering=False, with_scaling=False)),
    Trial(preprocessing.RobustScaler(with_scaling=False)),
    Trial(preprocessing.SplineTransformer(knots=np.linspace(-9, 99, 6)[:, None] * np.ones(6))),
    Trial(preprocessing.SplineTransformer(knots="quantile")),
    Trial(preprocessing.OneHotEncoder(**GIVEN), categories),
    Trial(preprocessing.OneHotEncoder(**GIVEN, min_frequency=8), balanced),
    Trial(preprocessing.OneHotEncoder(**GIVEN, max_categories=2), balanced),
    Trial(preprocessing.OrdinalEncoder(**GIVEN), categories),
    Trial(preprocessing.MultiLabelBinarizer(classes=list("abcz")), sets, "none"),
    Trial(kernel_approximation.RBFSampler(gamma=1.0)),
    Trial(kernel_approximation.RBFSampler(gamma="scale")),
    Trial(text.TfidfTransformer(use_idf=False), counts),
    Trial(text.TfidfTransformer(use_idf=True), counts),
    Trial(text.CountVectorizer(token_pattern=r"\w+"), texts),
    Trial(text.CountVectorizer(vocabulary=["a", "zebra"], token_pattern=r"\w+"), texts),
    Trial(text.TfidfVectorizer(vocabulary=["a", "b"], token_pattern=r"\w+"), texts),
    Trial(text.TfidfVectorizer(vocabulary=["a"], use_idf=False, token_pattern=r"\w+"), texts),
    Trial(impute.MissingIndicator(features="all"), with_missing),
    Trial(impute.SimpleImputer(strategy="most_frequent"), balanced),
    Trial(impute.SimpleImputer(strategy="constant"), missing_but_one),
    Trial(impute.SimpleImputer(strategy="constant", keep_empty_features=True), missing_but_one),
    Trial(
        impute.SimpleImputer(strategy="constant", keep_empty_features=True, add_indicator=True),
        full_but_one,
    ),
    Trial(impute.KNNImputer(), with_missing),
]


@pytest.mark.parametrize("trial", PARAMETERS_DECIDE, ids=str)
def test_parameters_decide(trial):
    assert verdict(trial.step) == (LEAK if learns(trial) else SAFE)


PREDICTORS = [
    LogisticRegression(),
    RidgeCV(cv=2),
    LinearRegression(),
    LinearSVC(),
    CalibratedClassifierCV(LinearSVC(), cv=2),
    ensemble.RandomForestClassifier(3),
    classification.SVC(),
]


@pytest.mark.parametrize("step", PREDICTORS, ids=lambda step: type(step).__name__)
def test_predictors_leak(step):
    trial = Trial(step, matrices if isinstance(step, classification.SVC) else vectors)
    assert learns(trial)
    assert verdict(step) == LEAK


def test_no_line_of_the_tables_goes_untested():
    tested = {f"pyriemann.{kind.__name__}" for kind in pyriemann_classes()}
    tested |= {f"sklearn.{name}" for name, _ in all_estimators("transformer")}
    tested |= {_key(trial.step) for trial in PARAMETERS_DECIDE}
    tested |= {"sklearn.IterativeImputer", "sklearn.SpectralEmbedding"}  # the next test
    assert {*RECORD_WISE, *FITTED, *CONDITIONAL} <= tested
    assert not set(RECORD_WISE) & set(FITTED)
    assert not set(CONDITIONAL) & {*RECORD_WISE, *FITTED}


def test_experimental_and_transductive_steps():
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401

    for trial in (Trial(impute.IterativeImputer(), with_missing), Trial(SpectralEmbedding())):
        assert learns(trial)
        assert verdict(trial.step) == LEAK


# --- unknown steps -------------------------------------------------------------------------------


class ScalerOfMine(StandardScaler):
    """May do anything."""


UNKNOWN_STEPS = [
    Planted(),
    ScalerOfMine(with_mean=False, with_std=False),
    FunctionTransformer(lambda X: X - X.mean()),
    FunctionTransformer(np.linalg.norm),
    FunctionTransformer(np.add),
    FunctionTransformer(np.matmul),
    Covariances(estimator=np.cov),
]


@pytest.mark.parametrize("step", UNKNOWN_STEPS, ids=lambda step: type(step).__name__)
def test_unknown(step):
    assert verdict(step) == UNKNOWN


@pytest.mark.parametrize("function", [None, np.log, np.sqrt, expit])
def test_functions_of_single_numbers_are_safe(function):
    assert verdict(FunctionTransformer(function)) == SAFE
    assert not learns(Trial(FunctionTransformer(function)))


def test_a_frozen_estimator_may_have_seen_anything():
    frozen = pytest.importorskip("sklearn.frozen")
    step = frozen.FrozenEstimator(StandardScaler().fit(vectors(0)))
    assert verdict(step) == UNKNOWN


# --- private steps -------------------------------------------------------------------------------

PRIVATE_STEPS = [
    DPFrechetMean("spd", radius=1.0),
    DPFrechetVariance("spd", radius=1.0),
    DPMDM(radius=1.0),
    DPPrincipalGeodesics(radius=1.0),
]


@pytest.mark.parametrize("step", PRIVATE_STEPS, ids=lambda step: type(step).__name__)
def test_private_steps(step):
    (row,) = audit_pipeline(step).steps
    assert (row.name, row.verdict, row.mu) == (type(step).__name__.lower(), PRIVATE, 1.0)
    assert row.reason.startswith("1-GDP per fit")
    assert audit_pipeline(step).guarantee == GDP(1.0)
    assert verdict(clone(step).set_params(mu=np.inf)) == LEAK
    assert verdict(clone(step).set_params(random_state=0)) == VOID
    assert verdict(clone(step).set_params(mu="a")) == UNKNOWN


def test_a_leak_before_a_private_step_voids_it():
    pipeline = make_pipeline(Covariances(), Whitening(), DPFrechetMean("spd", radius=1.0))
    audit = audit_pipeline(pipeline)
    assert audit.safe == ["covariances"]
    assert audit.leaks == ["whitening"]
    assert audit.void == ["dpfrechetmean"]
    assert audit.private == audit.unknown == []
    assert audit.guarantee is None
    assert audit.steps[-1].reason == "one record changes all that whitening passes on"


def test_a_leak_after_a_private_step_does_not():
    audit = audit_pipeline(
        make_pipeline(Covariances(), DPFrechetMean("spd", radius=1.0), LogisticRegression())
    )
    assert (audit.safe, audit.private) == (["covariances"], ["dpfrechetmean"])
    assert audit.leaks == ["logisticregression"]
    assert audit.guarantee == GDP(1.0)


def test_an_unknown_step_before_a_private_one_leaves_it_open():
    audit = audit_pipeline(make_pipeline(Planted(), DPMDM("euclidean", radius=1.0)))
    assert audit.unknown == ["planted", "dpmdm"]
    assert "if planted treats every record by itself" in audit.steps[1].reason


def test_a_private_step_after_a_private_step():
    """Adaptive composition: the second sees records in coordinates that are a release."""
    mean = DPFrechetMean("spd", radius=1.0, mu=0.6)
    audit = audit_pipeline(make_pipeline(mean, DPFrechetVariance(radius=1.0, mu=0.8)))
    assert audit.private == ["dpfrechetmean", "dpfrechetvariance"]
    assert audit.guarantee.mu == pytest.approx(1.0)
    assert "private steps together: 1-GDP at each fit" in str(audit)
    seeded = clone(mean).set_params(random_state=1)
    assert audit_pipeline(make_pipeline(seeded, DPFrechetVariance(radius=1.0))).void == [
        "dpfrechetmean",
        "dpfrechetvariance",
    ]


def test_a_reused_release():
    X = np.zeros((9, 2))
    release = DPFrechetMean(radius=1.0, mu=0.75).fit(X).release_
    (row,) = audit_pipeline(DPFrechetVariance(radius=1.0, mean=release)).steps
    assert row.reason == "1-GDP per fit; 1.25-GDP with the release that it reuses"
    seeded = DPFrechetMean(radius=1.0, random_state=0).fit(X).release_
    assert verdict(DPFrechetVariance(radius=1.0, mean=seeded)) == VOID


# --- nested pipelines ----------------------------------------------------------------------------


def test_nested_pipelines_have_the_names_of_set_params():
    inner = Pipeline([("scale", MinMaxScaler()), ("pass", "passthrough"), ("none", None)])
    outer = Pipeline([("first", Normalizer()), ("inner", inner), ("mdm", DPMDM(radius=1.0))])
    audit = audit_pipeline(outer)
    assert audit.safe == ["first", "inner__pass", "inner__none"]
    assert audit.leaks == ["inner__scale"]
    assert audit.void == ["mdm"]
    assert set(audit.safe + audit.leaks + audit.void) <= set(outer.get_params())


def test_branches_of_a_union_do_not_feed_each_other():
    union = FeatureUnion([("pca", PCA()), ("mean", DPFrechetMean(radius=1.0)), ("off", "drop")])
    audit = audit_pipeline(make_pipeline(union, DPFrechetVariance(radius=1.0)))
    assert audit.leaks == ["featureunion__pca"]
    assert audit.private == ["featureunion__mean"]
    assert audit.void == ["dpfrechetvariance"]


def test_columns():
    columns = ColumnTransformer(
        [
            ("scale", StandardScaler(), [0]),
            ("mean", DPFrechetMean(radius=1.0), make_column_selector(dtype_include=float)),
            ("keep", "passthrough", [1]),
        ],
        remainder=Normalizer(),
    )
    audit = audit_pipeline(columns)
    assert audit.leaks == ["scale"]
    assert audit.private == ["mean"]
    assert audit.safe == ["keep", "remainder"]
    columns = ColumnTransformer([("mean", DPFrechetMean(radius=1.0), lambda X: [X.argmax()])])
    assert audit_pipeline(columns).unknown == ["mean (columns)", "mean"]


def test_searches():
    pipeline = make_pipeline(Covariances(), DPMDM(radius=1.0))
    grid = {"dpmdm__mu": [1.0, 2.0]}
    for search in (GridSearchCV(pipeline, grid), RandomizedSearchCV(pipeline, grid, n_iter=1)):
        audit = audit_pipeline(search)
        assert audit.leaks == [type(search).__name__.lower()]
        assert "best_params_" in audit.steps[0].reason
        assert audit.safe == ["estimator__covariances"]
        assert audit.void == ["estimator__dpmdm"]
        assert "choose which fit is kept" in audit.steps[-1].reason
    last = audit_pipeline(
        make_pipeline(Covariances(), GridSearchCV(DPMDM(radius=1.0), {"mu": [1]}))
    )
    assert last.leaks == ["gridsearchcv"]
    assert last.void == ["gridsearchcv__estimator"]


def test_stated_examples_of_pyriemann():
    """The steps that the theory names: safe ones, and those that void what follows."""
    safe = [Covariances(), Shrinkage(), estimation.CoSpectra(), estimation.BlockCovariances(2)]
    leaks = [Whitening(), TangentSpace(), estimation.XdawnCovariances(), spatialfilters.CSP()]
    assert [verdict(step) for step in safe] == [SAFE] * 4
    assert [verdict(step) for step in leaks] == [LEAK] * 4


# --- the result ----------------------------------------------------------------------------------


def test_result_is_a_frozen_table():
    audit = audit_pipeline(
        make_pipeline(Covariances(), TangentSpace(), Planted(), LogisticRegression())
    )
    assert [line.split()[0] for line in str(audit).splitlines()] == [
        "step",
        "covariances",
        "tangentspace",
        "planted",
        "logisticregression",
    ]
    with pytest.raises(FrozenInstanceError):
        audit.steps = ()
    assert audit == audit_pipeline(
        make_pipeline(Covariances(), TangentSpace(), Planted(), LogisticRegression())
    )


def test_a_fitted_pipeline_gets_the_verdict_of_an_unfitted_one():
    pipeline = make_pipeline(Covariances(), DPMDM(radius=3.0), memory=None)
    before = audit_pipeline(pipeline)
    assert audit_pipeline(pipeline.fit(series(0), Y)) == before


@pytest.mark.parametrize("thing", [None, "passthrough", DPMDM, 3, np.zeros(3)])
def test_not_an_estimator(thing):
    with pytest.raises(TypeError, match="pipe must be an estimator"):
        audit_pipeline(thing)


@pytest.mark.parametrize(
    ("step", "exact"),
    [
        (DPFrechetMean("spd", radius=1.0), True),
        (DPFrechetMean("sphere", radius=1.0), True),
        (DPFrechetMean("sphere", radius=1.0, mechanism="riemannian-gaussian"), False),
        (DPFrechetMean("sphere", radius=1.0, calibration="paper"), False),
        (DPMDM("spd", radius=1.0, noise="float"), False),
    ],
)
def test_float_noise_is_said_to_be_such(step, exact):
    pytest.importorskip("flint")
    (found,) = audit_pipeline(make_pipeline(step)).steps
    assert found.verdict == "private"
    assert ("last bits are outside the guarantee" in found.reason) != exact
