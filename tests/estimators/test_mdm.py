"""`DPMDM`: scikit-learn's suite, pyriemann's twin, parallel composition and the firewall."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings
from dataclasses import FrozenInstanceError
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pyriemann.classification import MDM
from pyriemann.estimation import Covariances
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from skdpfrechet import DPMDM, GDP, DPFrechetMean, PrivacyReport
from skdpfrechet.datasets import load_muse_eeg, load_pneumonia_descriptors
from skdpfrechet.estimators import _private_mean
from skdpfrechet.estimators._mdm import ParallelReport
from skdpfrechet.manifolds import Hyperbolic, SPDAffineInvariant, SPDLogEuclidean, Sphere
from skdpfrechet.mechanisms import ProjectedGaussian, RiemannianGaussian, WrappedGaussian
from skdpfrechet.privacy import Release
from skdpfrechet.sensitivity import sphere_chord

with pytest.MonkeyPatch.context() as patch:
    # Where array-api-compat is installed, scikit-learn 1.6 wants this to import its test tools.
    patch.setenv("SCIPY_ARRAY_API", "1")
    from sklearn.utils.estimator_checks import estimator_checks_generator

NORTH = np.array([0.0, 0.0, 1.0])
SPACES = {
    "spd": ("spd", SPDAffineInvariant(2), None),
    "logeuclid": ("logeuclid", SPDLogEuclidean(2), None),
    "instance": (SPDAffineInvariant(2), SPDAffineInvariant(2), None),
    "sphere": ("sphere", Sphere(2), NORTH),
    "hyperbolic": ("hyperbolic", Hyperbolic(2), None),
}


@pytest.fixture(params=SPACES)
def problem(request):
    """An unfitted classifier with three unequal classes of records, most in its ball."""
    manifold, space, center = SPACES[request.param]
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], [30, 20, 10])
    shift = {"a": 0.3, "b": -0.3, "c": 0.0}
    c = np.array([shift[label] for label in y])[:, None] + rng.normal(
        scale=0.15, size=(60, space.dim)
    )
    foot = space.origin if center is None else center
    order = rng.permutation(60)
    mdm = DPMDM(manifold, radius=0.7, center=center, mu=3.0, random_state=0)
    return mdm, space.exp_coords(foot, c)[order], y[order]


# --- scikit-learn's own checks -------------------------------------------------------------------

CONFIGURATIONS = [
    {"radius": 10.0, "mu": 5.0, "random_state": 0},
    {"radius": 10.0, "mu": 5.0, "random_state": 0, "calibration": "paper"},
    {"radius": 10.0, "mu": 5.0, "random_state": 0, "mechanism": "riemannian-gaussian"},
    {"radius": 100.0, "mu": np.inf},
]


def name_of(check):
    while isinstance(check, partial):
        check = check.func
    return check.__name__


def all_checks():
    for configuration in CONFIGURATIONS:
        for instance, check in estimator_checks_generator(DPMDM("euclidean", **configuration)):
            if name_of(check) != "check_array_api_input":  # needs a fresh interpreter
                yield pytest.param(instance, check, id=f"{instance}-{name_of(check)}")


@pytest.mark.parametrize(("estimator", "check"), list(all_checks()))
def test_sklearn_check(estimator, check):
    check(estimator)


FRESH = """
from sklearn.utils.estimator_checks import check_estimator
from skdpfrechet import DPMDM, DPPrincipalGeodesics
for estimator in (
    DPMDM("euclidean", radius=10.0, mu=5.0, random_state=0),
    DPPrincipalGeodesics("euclidean", radius=100.0, random_state=0),
):
    for result in check_estimator(estimator, on_skip=None, on_fail=None):
        if result["status"] != "passed":
            print(estimator, result["check_name"], result["status"], result["exception"])
"""


def test_whole_suite_with_array_api():
    """In a fresh interpreter and with `SCIPY_ARRAY_API`, nothing is skipped."""
    result = subprocess.run(
        [sys.executable, "-c", FRESH],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == ""


def test_tags():
    mdm = DPMDM(radius=1.0)
    tags = get_tags(mdm)
    assert is_classifier(mdm)
    assert tags.target_tags.required
    assert tags.input_tags.three_d_array
    assert not tags.input_tags.two_d_array
    assert tags.non_deterministic
    assert not get_tags(DPMDM(radius=1.0, mu=np.inf)).non_deterministic


# --- against pyriemann ---------------------------------------------------------------------------


def real_data():
    for name, bunch in (
        ("ssvep", load_muse_eeg(kind="ssvep")),
        ("pneumonia", load_pneumonia_descriptors()),
    ):
        yield pytest.param(bunch, id=name)


@pytest.mark.parametrize("data", list(real_data()))
@pytest.mark.parametrize("metric", ["riemann", "logeuclid"])
def test_without_noise_it_is_the_mdm_of_pyriemann(data, metric):
    """With a ball that moves no record; pyriemann stops its mean at 1e-8 of its own criterion."""
    X, y = data.data, data.target
    ours = DPMDM(metric, center=data.center, radius=15.0, mu=np.inf).fit(X, y)
    theirs = MDM(metric=metric).fit(X, y)
    assert_array_equal(ours.classes_, theirs.classes_)
    assert_allclose(ours.means_, theirs.covmeans_, rtol=0, atol=1e-6 * theirs.covmeans_.max())
    assert_allclose(ours.transform(X), theirs.transform(X), rtol=0, atol=1e-6)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=0, atol=1e-6)
    assert ours.score(X, y) == theirs.score(X, y)


def test_accuracy_comes_close_to_the_exact_one_on_real_data():
    data = load_pneumonia_descriptors()
    X, y = data.data, data.target
    exact = MDM().fit(X, y).score(X, y)
    ball = {"center": data.center, "radius": data.radius}
    scores = [DPMDM(**ball, mu=3.0, random_state=s).fit(X, y).score(X, y) for s in range(5)]
    assert np.mean(scores) > exact - 0.03


# --- what is released ----------------------------------------------------------------------------


def test_every_class_mean_is_that_of_its_own_fit(problem):
    mdm, X, y = problem
    mdm.set_params(mu=np.inf).fit(X, y)
    for label, mean in zip(mdm.classes_, mdm.means_, strict=True):
        alone = DPFrechetMean(
            mdm.manifold, radius=0.7, center=mdm.center, mu=np.inf, confidence_level=None
        ).fit(X[y == label])
        assert_array_equal(mean, alone.mean_)


def test_report_names_the_classes_and_composes_in_parallel(problem):
    mdm, X, y = problem
    report = mdm.fit(X, y).privacy_
    assert isinstance(report, PrivacyReport)
    assert report.guarantee == report.total == GDP(3.0)
    assert [row.statistic for row in report.releases] == [f"mean of class {c}" for c in "abc"]
    assert all(row.mu == 3.0 for row in report.releases)
    sensitivities = [row.sensitivity for row in report.releases]
    assert sensitivities[0] / sensitivities[2] == pytest.approx(1 / 3, rel=1e-2)  # 30 and 10
    text = str(report)
    assert "replace-one, by a record of the same class; labels and class sizes are public" in text
    assert "parallel composition" in text
    assert report.to_dict()["mu"] == 3.0
    assert pickle.loads(pickle.dumps(report)) == report


def test_a_parallel_report_refuses_unequal_budgets():
    rows = [Release(f"mean of class {c}", mu, 0.1, 0.1, "gaussian") for c, mu in enumerate((1, 2))]
    with pytest.raises(ValueError, match=r"mu of the releases must compose to 1\.0"):
        ParallelReport(GDP(1.0), tuple(rows))
    with pytest.raises(FrozenInstanceError):
        ParallelReport(GDP(1.0), tuple(rows[:1])).unit = "person"


def test_classes_do_not_share_their_noise():
    """With a common seed the difference of the means would be free of noise."""
    X = np.zeros((20, 3))
    mdm = DPMDM("euclidean", radius=1.0, random_state=0).fit(X, np.arange(20) % 2)
    assert not np.isclose(*mdm.means_).any()
    assert_array_equal(clone(mdm).fit(X, np.arange(20) % 2).means_, mdm.means_)


def test_unseeded_fits_differ_and_are_private(problem):
    mdm, X, y = problem
    mdm.set_params(random_state=None)
    first = mdm.fit(X, y).means_
    assert mdm.privacy_.is_private
    assert not np.array_equal(first, mdm.fit(X, y).means_)


def test_seed_and_infinite_budget_are_not_private(problem):
    mdm, X, y = problem
    assert str(mdm.fit(X, y).privacy_).startswith("VOID")
    exact = mdm.set_params(random_state=None, mu=np.inf).fit(X, y)
    assert str(exact.privacy_).startswith("NOT PRIVATE")


# --- bad and small input -------------------------------------------------------------------------


def test_one_class_is_refused_in_one_sentence(problem):
    mdm, X, _ = problem
    message = "y must hold labels of at least two classes, got one class."
    with pytest.raises(ValueError) as caught:
        mdm.fit(X, np.zeros(len(X)))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (None, "requires y"),
        (np.arange(59) % 2, "inconsistent numbers of samples"),
        (np.full(60, np.nan), "y contains NaN"),
        (np.linspace(0, 1, 60), "Unknown label type"),
        (np.zeros((60, 2)), "1d array"),
    ],
)
def test_bad_labels_are_refused(problem, y, words):
    mdm, X, _ = problem
    with pytest.raises(ValueError, match=words):
        mdm.fit(X, y)
    assert not hasattr(mdm, "means_")


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"mu": 0}, ValueError, "mu must be positive"),
        ({"radius": "a"}, TypeError, "radius must be a real number"),
        ({"mechanism": "a"}, ValueError, "mechanism must be one of"),
        ({"calibration": "a"}, ValueError, "calibration must be one of"),
        ({"random_state": np.random.default_rng()}, TypeError, "random_state must be None or an"),
        ({"random_state": True}, TypeError, "random_state must be None or an"),
        ({"manifold": "a"}, ValueError, "manifold must be one of"),
    ],
)
def test_bad_parameters_are_refused(problem, parameters, error, words):
    mdm, X, y = problem
    with pytest.raises(error, match=words):
        mdm.set_params(**parameters).fit(X, y)


def test_a_class_of_one_record_is_fine(problem):
    mdm, X, y = problem
    y = y.astype(object)
    y[0] = "lonely"
    mdm.fit(X, y)
    assert list(mdm.classes_) == ["a", "b", "c", "lonely"]
    assert mdm.manifold_.contains(mdm.means_).all()
    row = mdm.privacy_.releases[-1]
    limit = sphere_chord(1.4) if row.mechanism == "projected-gaussian" else 1.4  # 2 r
    assert row.sensitivity == pytest.approx(limit, rel=1e-2)


def test_wrong_sizes_at_predict(problem):
    mdm, X, y = problem
    mdm.fit(X, y)
    with pytest.raises(ValueError, match=r"X has .* features, but DPMDM is expecting"):
        mdm.predict(np.ones((2, *(size + 1 for size in X.shape[1:]))))


@pytest.mark.parametrize("labels", [np.array([3, 7, 9]), np.array(["a", "b", "c"], dtype=object)])
def test_labels_of_any_type(problem, labels):
    mdm, X, y = problem
    same = labels[np.searchsorted(["a", "b", "c"], y)]
    assert set(mdm.fit(X, same).predict(X)) <= set(labels)
    assert_array_equal(mdm.classes_, labels)


def test_single_precision_and_lists(problem):
    mdm, X, y = problem
    plain = mdm.fit(X, y).predict(X)
    single = X.astype(np.float32)
    assert np.mean(mdm.fit(single, y).predict(single) == plain) > 0.95
    assert_array_equal(mdm.fit(X.tolist(), list(y)).predict(X.tolist()), plain)


# --- pipelines -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def epochs():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    sources = rng.normal(size=(120, 4, 128))
    sources[y == 1, 0] *= 2
    return sources, y


def test_in_the_place_of_pyriemann(epochs):
    X, y = epochs
    pipeline = make_pipeline(Covariances("oas"), DPMDM(radius=3.0, random_state=0))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.9
    assert pipeline.fit(X, y).predict_proba(X).shape == (120, 2)
    assert pipeline.transform(X).shape == (120, 2)
    search = GridSearchCV(pipeline, {"dpmdm__mu": [0.5, 2.0]}, cv=2, error_score="raise").fit(X, y)
    assert search.best_estimator_["dpmdm"].privacy_.guarantee.mu == search.best_params_["dpmdm__mu"]


def test_clone_pickle_and_names(problem):
    mdm, X, y = problem
    mdm.fit(X, y)
    copy = pickle.loads(pickle.dumps(mdm))
    assert_array_equal(copy.predict(X), mdm.predict(X))
    assert copy.privacy_ == mdm.privacy_
    with pytest.raises(NotFittedError):
        clone(mdm).transform(X)
    assert list(mdm.get_feature_names_out()) == ["dpmdm0", "dpmdm1", "dpmdm2"]
    frame = mdm.set_output(transform="pandas").transform(X)
    assert isinstance(frame, pd.DataFrame)
    assert "DPMDM" in mdm._repr_html_()


# --- the firewall --------------------------------------------------------------------------------


@pytest.fixture
def blind_mechanisms(monkeypatch):
    monkeypatch.setattr(
        WrappedGaussian,
        "release",
        lambda self, c, rng: np.broadcast_to(self.foot, np.shape(c)).copy(),
    )
    for kind in (RiemannianGaussian, ProjectedGaussian):
        monkeypatch.setattr(kind, "release", lambda self, c, rng: NORTH.copy())


@pytest.mark.usefixtures("blind_mechanisms")
def test_the_state_depends_on_the_records_through_mechanisms_only(problem):
    mdm, X, y = problem
    states = []
    for data in (X, X[::-1]):  # other records in every class, the same labels
        fitted = clone(mdm).fit(data, y)
        states.append((pickle.dumps(fitted), repr(fitted), str(fitted.privacy_)))
    assert states[0] == states[1]


def test_a_neighbour_changes_one_mean_only(problem):
    """What parallel composition rests on."""
    mdm, X, y = problem
    neighbour = X.copy()
    place = np.flatnonzero(y == "b")[0]
    neighbour[place] = X[np.flatnonzero(y == "a")[0]]
    first, second = clone(mdm).fit(X, y), clone(mdm).fit(neighbour, y)
    same = [np.array_equal(*pair) for pair in zip(first.means_, second.means_, strict=True)]
    assert same == [True, False, True]
    assert first.privacy_ == second.privacy_


def test_a_fit_that_fails_midway_releases_nothing(problem, monkeypatch):
    mdm, X, y = problem
    mdm.fit(X, y)

    def fail(*args, **kwargs):
        raise RuntimeError("nothing was released")

    monkeypatch.setattr(_private_mean, "point_of_ball", fail)
    with pytest.raises(RuntimeError, match="nothing was released"):
        mdm.fit(X, y)
    assert not [name for name in vars(mdm) if name.endswith("_") and name != "n_features_in_"]


@pytest.mark.parametrize("mu", [0.01, 1.0, np.inf])
def test_no_warning_however_wild_the_records(mu):
    rng = np.random.default_rng(0)
    tame = SPDAffineInvariant(2).exp_coords(np.eye(2), rng.normal(size=(12, 3)))
    wild = tame.copy()
    wild[0] = np.diag([1e300, 1e290])
    wild[1] = np.diag([1e-300, 1e-290])
    wild[2] = 1e308 * np.eye(2)
    wild[3] = [[1.0, 1 - 1e-12], [1 - 1e-12, 1.0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for radius in (1.0, 6.0, 14.0):
            mdm = DPMDM(radius=radius, mu=mu).fit(wild, np.arange(12) % 2)
            assert mdm.manifold_.contains(mdm.means_).all()
            assert np.isfinite(mdm.transform(tame)).all()


def test_errors_speak_of_no_record(problem):
    mdm, X, y = problem
    messages = set()
    for rows in ([1], [2, 5]):
        bad = X.copy()
        bad[rows] = np.nan
        with pytest.raises(ValueError, match="NaN") as caught:
            mdm.fit(bad, y)
        messages.add(str(caught.value))
    assert len(messages) == 1
