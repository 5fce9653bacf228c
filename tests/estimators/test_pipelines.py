"""The estimators inside scikit-learn's and pyriemann's machinery."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from joblib import Parallel, delayed, parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from pyriemann.estimation import Covariances
from pyriemann.geometry.tangentspace import tangent_space
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union

from skdpfrechet import DPFrechetMean, DPFrechetVariance


@pytest.fixture(scope="module")
def epochs():
    """Simulated EEG: the first channel is stronger in the second class."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    mixing = np.eye(4) + 0.3 * rng.normal(size=(4, 4))
    sources = rng.normal(size=(len(y), 4, 128))
    sources[y == 1, 0] *= 2
    return mixing @ sources, y


@pytest.fixture(scope="module")
def covariances(epochs):
    return Covariances("oas").transform(epochs[0])


def classifier(**parameters):
    return make_pipeline(
        Covariances("oas"), DPFrechetMean("spd", radius=3.0, **parameters), LogisticRegression()
    )


def test_pipeline_classifies_epochs(epochs):
    X, y = epochs
    pipeline = classifier(mu=1.0, confidence_level=None, random_state=0).fit(X[::2], y[::2])
    assert pipeline.predict(X[1::2]).shape == y[1::2].shape
    assert pipeline.score(X[1::2], y[1::2]) > 0.9
    assert pipeline[1].get_feature_names_out().shape == (10,)


def test_transform_is_the_tangent_space_of_pyriemann(covariances):
    mean = DPFrechetMean("spd", radius=3.0, random_state=0).fit(covariances)
    expected = tangent_space(covariances, mean.mean_, metric="riemann")
    assert_allclose(mean.transform(covariances), expected, rtol=0, atol=1e-10)


def test_cross_val_score_spends_the_budget_of_each_fold(epochs):
    X, y = epochs
    scores = cross_val_score(classifier(random_state=0), X, y, cv=3)
    assert scores.mean() > 0.9


def test_grid_search_over_mu(epochs):
    """Every candidate and every fold is a fit, and spends its own mu: report them all."""
    X, y = epochs
    grid = {"dpfrechetmean__mu": [0.5, 2.0, np.inf]}
    search = GridSearchCV(classifier(random_state=0), grid, cv=2, error_score="raise").fit(X, y)
    best = search.best_estimator_.named_steps["dpfrechetmean"]
    assert best.mu == search.best_params_["dpfrechetmean__mu"]
    assert best.privacy_.guarantee.mu == best.mu  # of the refit alone, not of the search


def test_grid_search_in_parallel_gives_the_same(epochs):
    X, y = epochs
    grid = {"dpfrechetmean__mu": [0.5, 2.0]}
    search = GridSearchCV(classifier(random_state=0), grid, cv=2, error_score="raise")
    scores = search.fit(X, y).cv_results_["mean_test_score"]
    with parallel_config(backend="threading", n_jobs=2):
        assert_array_equal(search.fit(X, y).cv_results_["mean_test_score"], scores)


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_parallel_fits(covariances, backend):
    """Seeded fits agree across workers, and unseeded workers never share their noise."""
    estimator = DPFrechetMean("spd", radius=3.0, random_state=0)
    seeded = Parallel(n_jobs=2, backend=backend)(
        delayed(clone(estimator).fit)(covariances) for _ in range(2)
    )
    assert_array_equal(seeded[0].mean_, seeded[1].mean_)
    estimator.set_params(random_state=None)
    fresh = Parallel(n_jobs=2, backend=backend)(
        delayed(clone(estimator).fit)(covariances) for _ in range(4)
    )
    assert len({fit.mean_.tobytes() for fit in fresh}) == 4


def test_feature_union_of_mean_and_variance(covariances):
    mean = DPFrechetMean("spd", radius=3.0, random_state=0)
    variance = DPFrechetVariance("spd", radius=3.0, random_state=1)
    union = make_union(mean, variance).fit(covariances)
    expected = [clone(part).fit_transform(covariances) for part in (mean, variance)]
    assert_array_equal(union.transform(covariances), np.hstack(expected))
    names = union.get_feature_names_out()
    assert names[0] == "dpfrechetmean__dpfrechetmean0"
    assert names[-1] == "dpfrechetvariance__dpfrechetvariance0"


def test_feature_union_with_pandas_output(covariances):
    union = FeatureUnion(
        [
            ("mean", DPFrechetMean("spd", radius=3.0, random_state=0)),
            ("variance", DPFrechetVariance("spd", radius=3.0, random_state=1)),
        ]
    ).set_output(transform="pandas")
    frame = union.fit_transform(covariances)
    assert frame.shape == (len(covariances), 11)
    assert frame.columns[-1] == "variance__dpfrechetvariance0"


def test_column_transformer_of_euclidean_columns():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 4)), columns=list("abcd"))
    columns = ColumnTransformer(
        [
            ("mean", DPFrechetMean(radius=3.0, random_state=0), ["a", "b"]),
            ("variance", DPFrechetVariance(radius=3.0, random_state=0), ["c"]),
        ],
        remainder="passthrough",
    )
    out = columns.fit_transform(frame)
    assert out.shape == (40, 4)
    assert_array_equal(out[:, 3], frame["d"])
    assert list(columns.named_transformers_["mean"].feature_names_in_) == ["a", "b"]
    mean = columns.named_transformers_["mean"].mean_
    assert_allclose(out[:, :2], frame[["a", "b"]] - mean, rtol=0, atol=1e-12)


class ValidatedClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that scores itself on a validation set during `fit`."""

    def fit(self, X, y, X_val=None, y_val=None):
        self.model_ = LogisticRegression().fit(X, y)
        self.classes_ = self.model_.classes_
        self.validation_score_ = self.model_.score(X_val, y_val)
        return self

    def predict(self, X):
        return self.model_.predict(X)


def test_pipeline_with_transform_input(epochs):
    """The validation set passes through the fitted mean like the training set."""
    X, y = epochs
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = Pipeline(
            [
                ("covariance", Covariances("oas")),
                ("mean", DPFrechetMean("spd", radius=3.0, random_state=0)),
                ("classify", ValidatedClassifier().set_fit_request(X_val=True, y_val=True)),
            ],
            transform_input=["X_val"],
        )
        pipeline.fit(X[::2], y[::2], X_val=X[1::2], y_val=y[1::2])
        score = pipeline.score(X[1::2], y[1::2])
    assert pipeline["classify"].validation_score_ == score


# --- reuse of a released mean --------------------------------------------------------------------


def test_variance_reuses_a_release(covariances):
    """The whole budget goes to the variance; the report adds both, the guarantee is this fit's."""
    mean = DPFrechetMean("spd", radius=3.0, mu=0.5, confidence_level=None).fit(covariances)
    variance = DPFrechetVariance("spd", radius=3.0, mu=1.2, mean=mean.release_)
    copy = clone(variance)
    assert_array_equal(copy.mean.point, mean.mean_)
    for estimator in (variance, copy):
        estimator.fit(covariances)
        assert [release.statistic for release in estimator.privacy_.releases] == ["variance"]
        assert estimator.privacy_.guarantee.mu == 1.2
        assert estimator.privacy_.total.mu == pytest.approx(1.3)
        assert_allclose(estimator.mean_, mean.mean_, rtol=0, atol=1e-12)


def test_a_seeded_release_voids_what_reuses_it(covariances):
    mean = DPFrechetMean("spd", radius=3.0, random_state=0).fit(covariances)
    variance = DPFrechetVariance("spd", radius=3.0, mean=mean.release_).fit(covariances)
    assert not variance.privacy_.is_private
    assert "random_state" in variance.privacy_.void_reason


def test_grid_search_with_a_reused_release(covariances):
    release = DPFrechetMean("spd", radius=3.0, random_state=0).fit(covariances).release_
    pipeline = make_pipeline(
        DPFrechetVariance("spd", radius=3.0, mean=release, random_state=0), LinearRegression()
    )
    target = np.log(np.linalg.det(covariances))
    grid = {"dpfrechetvariance__mu": [0.5, 2.0], "dpfrechetvariance__mean": [release, None]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(covariances, target)
    assert search.best_params_["dpfrechetvariance__mu"] in (0.5, 2.0)
    assert len(search.cv_results_["params"]) == 4
