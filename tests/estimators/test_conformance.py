"""scikit-learn's estimator checks, by their names, where scikit-learn cannot run them itself.

Its own suite stops at estimators of three-dimensional arrays and feeds spheres rows that are not
unit vectors. This file has the checks of parameters, state and outputs; those of input data are in
test_conformance_input.
"""

from __future__ import annotations

import inspect
import io
import pickle
import re

import joblib
import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from skdpfrechet import DPFrechetMean

ROUNDING = 1e-12


def releases(estimator):
    """The numbers that a fitted estimator publishes, as one dict."""
    names = ("mean_", "covariance_", "variance_", "interval_")
    return {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}


def assert_same_releases(first, second):
    first, second = releases(first), releases(second)
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert_array_equal(value, second[name])


# --- parameters ----------------------------------------------------------------------------------


def test_check_estimator_cloneable(estimator):
    copy = clone(estimator)
    assert copy.get_params().keys() == estimator.get_params().keys()
    assert joblib.hash(copy.get_params()) == joblib.hash(estimator.get_params())


def test_check_estimator_cloneable_after_fit(case, estimator):
    X = case.records()
    copy = clone(estimator.fit(X))
    with pytest.raises(NotFittedError):
        check_is_fitted(copy)
    assert_same_releases(copy.fit(X), estimator)


def test_check_get_params_invariance(estimator):
    assert estimator.get_params(deep=False).items() <= estimator.get_params(deep=True).items()
    signature = inspect.signature(type(estimator).__init__).parameters
    assert set(estimator.get_params()) == set(signature) - {"self"}


def test_check_set_params(estimator):
    for name in estimator.get_params():
        for value in (-np.inf, "a", [1], {}, None, np.zeros(2)):
            assert estimator.set_params(**{name: value}) is estimator
            assert estimator.get_params()[name] is value


def test_check_no_attributes_set_in_init(estimator):
    assert set(vars(estimator)) == set(estimator.get_params())


def test_check_do_not_raise_errors_in_init_or_set_params(estimator_class):
    anything = object()
    names = set(inspect.signature(estimator_class).parameters)
    estimator = estimator_class(**dict.fromkeys(names, anything))
    assert all(value is anything for value in vars(estimator).values())
    assert get_tags(estimator).input_tags.two_d_array  # tags are asked for before `fit` validates


def test_check_estimators_overwrite_params(case, estimator):
    """`fit` and `transform` change neither the parameters nor the arrays that they receive."""
    public = case.space.origin if case.center is None else case.center
    estimator.set_params(center=case.space.exp_coords(public, np.full(case.space.dim, 0.05)))
    X = case.records()
    originals, data = estimator.get_params(), X.copy()
    before = joblib.hash(originals)
    estimator.fit(X).transform(X)
    assert all(value is originals[name] for name, value in estimator.get_params().items())
    assert joblib.hash(originals) == before
    assert_array_equal(X, data)


def test_check_dont_overwrite_parameters(case, estimator):
    """What `fit` sets ends or starts with an underscore."""
    before = set(vars(estimator))
    estimator.fit(case.records())
    assert all(re.search(r"^_|_$", name) for name in set(vars(estimator)) - before)


def test_check_mixin_order(estimator):
    order = type(estimator).__mro__
    assert order.index(TransformerMixin) < order.index(BaseEstimator)


def test_check_valid_tag_types(case, estimator):
    tags = get_tags(estimator)
    assert tags.input_tags.three_d_array is case.matrices
    assert tags.input_tags.two_d_array is not case.matrices
    assert not tags.input_tags.sparse
    assert not tags.input_tags.allow_nan
    assert not tags.target_tags.required
    assert tags.requires_fit
    assert not tags.non_deterministic  # an integer seed
    exact = case.parameters.get("mu") == np.inf
    assert get_tags(estimator.set_params(random_state=None)).non_deterministic is not exact


def test_check_estimator_repr(case, estimator):
    """Text and HTML, before and after `fit`."""
    for _ in range(2):
        assert repr(estimator).startswith(type(estimator).__name__ + "(")
        assert type(estimator).__name__ in estimator._repr_html_()
        estimator.fit(case.records())
    assert str(estimator.privacy_)


def test_html_shows_what_is_stored_and_computes_nothing(case, monkeypatch):
    """scikit-learn 1.9 lists fitted attributes; the region may take longer than the fit."""
    mean = case.build(DPFrechetMean).fit(case.records())
    monkeypatch.setattr(DPFrechetMean, "confidence_region_", property(lambda self: 1 / 0))
    html = mean._repr_html_()
    if hasattr(BaseEstimator, "_get_fitted_attr_html"):
        assert "n_samples_" in html
        assert "confidence_region_" not in html


def test_html_shows_the_whole_report_once_there_is_one(case, estimator):
    """In a pipeline too, from scikit-learn 1.9 on; earlier it has no place for it there."""
    pipeline = make_pipeline(estimator)
    assert "Privacy report" not in estimator._repr_html_()
    assert "Privacy report" not in pipeline._repr_html_()
    estimator.fit(case.records())
    report = estimator.privacy_._repr_html_()
    pages = [estimator._repr_html_(), estimator._repr_mimebundle_()["text/html"]]
    if hasattr(BaseEstimator, "_get_fitted_attr_html"):
        pages.append(pipeline._repr_html_())
    for page in pages:
        assert page.count(report) == 1
        assert page.count("PrivacyReport") == 0


# --- fit -----------------------------------------------------------------------------------------


def test_check_estimators_fit_returns_self(case, estimator):
    assert estimator.fit(case.records()) is estimator


def test_check_fit_score_takes_y(case, estimator):
    X = case.records()
    assert_same_releases(clone(estimator).fit(X), clone(estimator).fit(X, np.arange(len(X))))
    assert list(inspect.signature(estimator.fit).parameters) == ["X", "y", "groups"]


def test_check_fit_idempotent(case, estimator):
    X = case.records()
    first = pickle.loads(pickle.dumps(estimator.fit(X)))
    assert_same_releases(estimator.fit(X), first)


def test_fits_without_a_seed_differ(case, estimator_class):
    """The opposite of idempotence is what protects the records; `np.random.seed` has no say."""
    X, means = case.records(), []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        means.append(case.build(estimator_class, random_state=None).fit(X).mean_)
    exact = case.parameters.get("mu") == np.inf
    assert np.array_equal(*means) is exact


def test_check_fit_check_is_fitted(case, estimator):
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)
    check_is_fitted(estimator.fit(case.records()))


def test_check_estimators_unfitted(case, estimator):
    methods = [estimator.transform, estimator.get_feature_names_out]
    if hasattr(estimator, "inverse_transform"):
        methods.append(estimator.inverse_transform)
    for method in methods:
        with pytest.raises(NotFittedError):
            method(case.records())
    for name in ("mean_", "covariance_", "confidence_region_", "interval_", "privacy_"):
        assert not hasattr(estimator, name)


def test_check_refit_forgets_the_last_fit(case, estimator):
    """Another p, other parameters: nothing of the first fit is left."""
    other = case.build(type(estimator), confidence_level=0.9)
    X = case.records()
    estimator.set_params(**other.get_params()).fit(X)
    estimator.set_params(confidence_level=None, manifold="euclidean", center=None, mechanism="auto")
    estimator.fit(X.reshape(len(X), -1)[:, :1])
    assert not hasattr(estimator, "confidence_region_")
    assert not hasattr(estimator, "interval_")
    assert estimator.n_features_in_ == 1
    assert estimator.mean_.shape == (1,)
    fresh = clone(estimator).fit(X.reshape(len(X), -1)[:, :1])
    assert vars(fresh).keys() == vars(estimator).keys()


# --- transform -----------------------------------------------------------------------------------


def test_check_transformer_general(case, estimator):
    X = case.records()
    width = case.space.dim if isinstance(estimator, DPFrechetMean) else 1
    out = clone(estimator).fit_transform(X)
    assert out.shape == (len(X), width)
    assert out.dtype == np.float64
    assert_array_equal(out, estimator.fit(X).transform(X))


def test_check_pipeline_consistency(case, estimator):
    X = case.records()
    out = make_pipeline(clone(estimator)).fit(X).transform(X)
    assert_array_equal(out, estimator.fit(X).transform(X))


def test_check_transformer_n_iter(case, estimator):
    """The number of passes over the records depends on them, so there is none to see."""
    assert not hasattr(estimator.fit(case.records()), "n_iter_")


def test_check_dict_unchanged(case, estimator):
    X = case.records()
    estimator.fit(X)
    before = joblib.hash(vars(estimator))
    estimator.transform(X)
    assert joblib.hash(vars(estimator)) == before


def test_check_methods_subset_invariance(case, estimator):
    X = case.records()
    whole = estimator.fit(X).transform(X)
    single = np.concatenate([estimator.transform(X[i : i + 1]) for i in range(len(X))])
    assert_allclose(whole, single, rtol=0, atol=ROUNDING)


def test_check_methods_sample_order_invariance(case, estimator):
    X = case.records()
    order = np.random.default_rng(1).permutation(len(X))
    estimator.fit(X)
    assert_allclose(
        estimator.transform(X)[order], estimator.transform(X[order]), rtol=0, atol=ROUNDING
    )


def test_check_fit_sample_order_invariance(case, estimator):
    X = case.records()
    backwards = releases(clone(estimator).fit(X[::-1]))
    for name, value in releases(estimator.fit(X)).items():
        assert_allclose(value, backwards[name], rtol=1e-6, atol=1e-6)


# --- persistence and outputs ---------------------------------------------------------------------


def test_check_estimators_pickle(case, estimator):
    X = case.records()
    clone_of_unfitted = pickle.loads(pickle.dumps(estimator))
    assert repr(clone_of_unfitted) == repr(estimator)
    fitted = pickle.loads(pickle.dumps(estimator.fit(X)))
    buffer = io.BytesIO()
    joblib.dump(estimator, buffer)
    for copy in (fitted, joblib.load(io.BytesIO(buffer.getvalue()))):
        assert_same_releases(copy, estimator)
        assert_array_equal(copy.transform(X), estimator.transform(X))
        assert copy.privacy_ == estimator.privacy_


def test_check_transformer_get_feature_names_out(case, estimator):
    X = case.records()
    names = estimator.fit(X).get_feature_names_out()
    assert list(names) == [
        f"{type(estimator).__name__.lower()}{i}" for i in range(estimator.transform(X).shape[1])
    ]


def test_check_set_output_transform_pandas(case, estimator):
    X = case.records()
    plain = clone(estimator).fit_transform(X)
    frame = estimator.set_output(transform="pandas").fit_transform(X)
    assert list(frame.columns) == list(estimator.get_feature_names_out())
    assert_array_equal(frame.to_numpy(), plain)


def test_check_metadata_routing(case, estimator):
    X = case.records()
    with sklearn.config_context(enable_metadata_routing=True):
        request = estimator.get_metadata_routing()
        assert "sample_weight" not in str(request)
        out = make_pipeline(clone(estimator)).fit(X).transform(X)
    assert_array_equal(out, estimator.fit(X).transform(X))
    with pytest.raises(TypeError, match="sample_weight"):
        estimator.fit(X, sample_weight=np.ones(len(X)))
