"""Fits that pay: what they record and when, what it survives, and that they fail closed.

The order is the point. Shape and parameters are checked first and cost nothing; then the spend is
committed; only then is the value of a record read, and noise drawn.
"""

from __future__ import annotations

import copy
import json
import os
import pickle
import sqlite3
import subprocess
import sys
from contextlib import closing
from math import inf
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from skdpfrechet import DPMDM, DPFrechetMean, DPFrechetVariance, DPPrincipalGeodesics
from skdpfrechet.estimators._budget import part
from skdpfrechet.inference import MeanRelease
from skdpfrechet.manifolds import Hyperbolic
from skdpfrechet.mechanisms import Gaussian, SymmetricGaussian, WrappedGaussian
from skdpfrechet.privacy import (
    GDP,
    Group,
    PrivacyBudgetError,
    PrivacyLedger,
    PrivacyLedgerError,
    Record,
    SameClass,
    _ledger_store,
)
from tests.privacy.test_ledger import (
    BREAKAGES,
    needs_fork,
    open_folder,  # noqa: F401
    without_root,
)

N = 24
RECORD, PERSON = Record(), Group("person")
RELEASES = {
    DPFrechetMean: "DPFrechetMean: mean, second moment",
    DPFrechetVariance: "DPFrechetVariance: mean, variance",
    DPMDM: "DPMDM: mean of every class",
    DPPrincipalGeodesics: "DPPrincipalGeodesics: mean, second moment",
}
LABELS = np.arange(N) % 2


@pytest.fixture(params=RELEASES)
def estimator_class(request):
    return request.param


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.ledger"


@pytest.fixture
def ledger(path):
    """One that takes all estimators, a classifier too."""
    return PrivacyLedger(path, budget=GDP(1.0), unit=SameClass(Record()))


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(N, 2))


def build(estimator_class, ledger, **parameters):
    return estimator_class("euclidean", **{"radius": 2.0, "mu": 0.5, **parameters}, ledger=ledger)


def spends(ledger):
    return [(spend.unit, spend.mu, spend.description) for spend in ledger.report().spends]


def unit_of(estimator_class, plain=RECORD):
    return SameClass(plain) if estimator_class is DPMDM else plain


def assert_not_fitted(estimator):
    learnt = {name for name in vars(estimator) if name.endswith("_")}
    assert learnt <= {"n_features_in_", "feature_names_in_"}
    assert not hasattr(estimator, "_inference")


# --- what is recorded ----------------------------------------------------------------------------


def test_a_fit_is_one_entry(estimator_class, ledger, X):
    estimator = build(estimator_class, ledger).fit(X, LABELS)
    assert spends(ledger) == [(unit_of(estimator_class), 0.5, RELEASES[estimator_class])]
    report = estimator.privacy_
    assert report.guarantee == ledger.spent == GDP(0.5)
    assert "recorded in a ledger as a spend of data set 'default'" in report.notes
    assert report.unit == unit_of(estimator_class)
    estimator.set_params(unit="person").fit(X, LABELS, groups=np.arange(N) // 2)
    person = unit_of(estimator_class, PERSON)
    assert spends(ledger)[1:] == [(person, 0.5, RELEASES[estimator_class])]
    assert estimator.privacy_.unit == person
    assert any("a record stays with its person" in note for note in estimator.privacy_.notes)


def test_paths_and_handles(estimator_class, path, ledger, X):
    for given in (str(path), path, ledger):
        build(estimator_class, given).fit(X, LABELS)
    assert len(spends(ledger)) == 3
    estimator = build(estimator_class, ledger.for_dataset("pilot")).fit(X, LABELS)
    assert ledger.for_dataset("pilot").spent == GDP(0.5)
    assert any("data set 'pilot'" in note for note in estimator.privacy_.notes)


def test_without_a_ledger_nothing_is_said_of_one(estimator_class, X):
    assert "ledger" not in str(build(estimator_class, None).fit(X, LABELS).privacy_)


def test_a_private_ball_is_part_of_the_spend(ledger):
    X = np.random.default_rng(0).normal(size=(200, 2))
    ball = {"center": "private", "radius": "private", "outer_radius": 10.0}
    build(DPFrechetMean, ledger, **ball).fit(X)
    assert spends(ledger) == [(RECORD, 0.5, "DPFrechetMean: ball, mean, second moment")]


def test_the_description_does_not_depend_on_the_records(estimator_class, ledger, X):
    build(estimator_class, ledger, mu=0.3).fit(X, LABELS)
    build(estimator_class, ledger, mu=0.3).fit(100 * X**3, LABELS)
    first, second = spends(ledger)
    assert first == second


def test_classes_and_persons_charge_the_total_once(ledger, X):
    fit = build(DPMDM, ledger, unit="person").fit(X, LABELS, groups=np.arange(N) // 4)
    assert [row.mu for row in fit.privacy_.releases] == [part(0.5, 0.5)] * 2
    assert spends(ledger) == [(SameClass(PERSON), 0.5, "DPMDM: mean of every class")]


def test_a_reused_mean_is_not_charged_again(ledger, X):
    mean = build(DPFrechetMean, ledger).fit(X)
    variance = build(DPFrechetVariance, ledger, mu=0.3, mean=mean.release_).fit(X)
    assert spends(ledger)[1:] == [(RECORD, 0.3, "DPFrechetVariance: variance")]
    assert variance.privacy_.total == ledger.spent
    assert variance.privacy_.guarantee == GDP(0.3)


def test_what_follows_a_fit_costs_nothing(ledger, X):
    mean = build(DPFrechetMean, ledger, mu=0.1).fit(X)
    assert mean.confidence_region_.contains(mean.mean_)
    mean.covariance_, mean.inverse_transform(mean.transform(X))
    build(DPFrechetVariance, ledger, mu=0.1).fit(X).transform(X)
    build(DPPrincipalGeodesics, ledger, mu=0.1).fit(X).transform(X)
    classifier = build(DPMDM, ledger, mu=0.1).fit(X, LABELS)
    classifier.predict(X), classifier.score(X, LABELS)
    assert len(spends(ledger)) == 4


def test_text_and_state_show_the_path_at_most(estimator_class, path, ledger, X):
    estimator = build(estimator_class, ledger).fit(X, LABELS)
    assert vars(estimator.ledger) == {"path": str(path), "dataset": "default"}
    for text in (repr(estimator), estimator._repr_html_()):
        assert "spent" not in text
        assert "remaining" not in text
    assert f"ledger=PrivacyLedger('{path}', dataset='default')" in repr(estimator).replace("\n", "")
    assert str(path) not in str(estimator.privacy_)
    # The history of the ledger leaves no trace in what is fitted.
    learnt = {k: v for k, v in vars(estimator).items() if k.endswith("_") or k.startswith("_")}
    assert b"ledger" not in pickle.dumps(learnt).replace(b"recorded in a ledger", b"")


# --- before, and in which order ------------------------------------------------------------------


class Tripwire:
    """A number that tells when it is read."""

    def __init__(self, read):
        self.read = read

    def __float__(self):
        self.read()
        return 0.0


def test_the_spend_is_on_the_disk_before_a_value_is_read_or_noise_is_drawn(
    estimator_class, ledger, monkeypatch
):
    seen = []

    def watch(name):
        seen.append((name, len(spends(ledger))))

    for mechanism in (Gaussian, SymmetricGaussian, WrappedGaussian):
        original = mechanism.release

        def release(self, center, rng, original=original):
            watch("noise")
            return original(self, center, rng)

        monkeypatch.setattr(mechanism, "release", release)
    X = np.full((N, 2), Tripwire(lambda: watch("value")), dtype=object)
    estimator = build(estimator_class, ledger, mu=1.0).fit(X, LABELS)
    assert {name for name, _ in seen} == {"value", "noise"}
    assert {count for _, count in seen} == {1}
    seen.clear()
    with pytest.raises(PrivacyBudgetError):
        estimator.fit(X, LABELS)
    assert seen == []
    assert_not_fitted(estimator)


def bad_records(X):
    nan, huge, text = X.copy(), X.astype(object), X.astype(object)
    nan[3, 0] = np.nan
    huge[3, 0] = 10**400
    text[3, 0] = "secret"
    unequal = X.tolist()
    unequal[3][0] = 1j
    return {"good": X, "nan": nan, "inf": nan * inf, "huge": huge, "text": text, "list": unequal}


@pytest.mark.parametrize("invalid", ["raise", "replace"])
def test_without_budget_good_and_bad_records_get_the_same_answer(
    estimator_class, ledger, X, invalid
):
    """An error about values would tell of them at no cost."""
    ledger.spend(GDP(0.9), "record", "before")
    messages = set()
    for records in bad_records(X).values():
        with pytest.raises(PrivacyBudgetError) as caught:
            build(estimator_class, ledger, invalid=invalid).fit(records, LABELS)
        messages.add(str(caught.value))
    assert len(messages) == 1
    assert len(spends(ledger)) == 1


@pytest.mark.parametrize("manifold", ["sphere", "spd", "hyperbolic"])
def test_points_off_the_manifold_are_seen_after_the_spend(estimator_class, manifold, ledger):
    shape = (N, 2, 2) if manifold == "spd" else (N, 3)
    center = np.array([0.0, 0.0, 1.0]) if manifold == "sphere" else None
    estimator = estimator_class(manifold, radius=1.0, center=center, mu=1.0, ledger=ledger)
    with pytest.raises(ValueError, match="X must contain"):
        estimator.fit(np.zeros(shape), LABELS)
    assert ledger.spent == GDP(1.0)
    with pytest.raises(PrivacyBudgetError):
        estimator.fit(np.zeros(shape), LABELS)


@pytest.mark.parametrize("name", ["nan", "inf", "huge", "text", "list"])
def test_what_a_failed_fit_has_paid_stays_spent(estimator_class, ledger, X, name):
    estimator = build(estimator_class, ledger)
    with pytest.raises((ValueError, TypeError), match=r"X must contain|Complex"):
        estimator.fit(bad_records(X)[name], LABELS)
    assert ledger.spent == GDP(0.5)
    assert_not_fitted(estimator)


FREE = {
    "radius": ({"radius": -1.0}, {}, "radius must be positive"),
    "center": ({"center": [0.0]}, {}, "center must have shape"),
    "mu": ({"mu": 1e-11}, {}, "mu must be from"),
    "outer ball": ({"radius": "private"}, {}, "outer_radius must be given"),
    "ball share": (
        {"radius": "private", "outer_radius": 9.0, "ball_share": 1e-30},
        {},
        "mu must give every release",
    ),
    "mechanism": ({"mechanism": "laplace"}, {}, "mechanism must be one of"),
    "pair": ({"mechanism": "projected-gaussian"}, {}, "requires a sphere"),
    "manifold": ({"manifold": "torus"}, {}, "manifold must be one of"),
    "random_state": ({"random_state": -1}, {}, "random_state must not be negative"),
    "n_jobs": ({"n_jobs": 0}, {}, "n_jobs must be None or an integer"),
    "invalid": ({"invalid": "drop"}, {}, "invalid must be 'raise' or 'replace', got 'drop'."),
    "seed": ({"random_state": 0}, {}, "random_state must be None with a ledger, got 0"),
    "exact": ({"mu": inf}, {}, "mu must be finite with a ledger, got inf."),
    "one axis": ({}, {"X": np.zeros(N)}, "X must have shape"),
    "three axes": ({}, {"X": np.zeros((N, 2, 2))}, "X must have shape"),
    "no rows": ({}, {"X": np.zeros((0, 2))}, "0 sample"),
    "no columns": ({}, {"X": np.zeros((N, 0))}, "0 feature"),
    "complex": ({}, {"X": np.zeros((N, 2), dtype=complex)}, "Complex data"),
    "ragged": ({}, {"X": [[0.0], [0.0, 1.0]]}, "X must be a rectangular array"),
    "groups": ({"unit": "person"}, {"groups": np.zeros(3)}, "groups must be one-dimensional"),
    "no group": ({"unit": "person"}, {"groups": [None] * N}, "groups must name a group"),
    "unit alone": ({"unit": "person"}, {}, "unit must be None without groups, .* got 'person'"),
    "no unit": ({}, {"groups": np.arange(N)}, "unit must name the partition .* got None"),
    "no name": (
        {"unit": "record"},
        {"groups": np.arange(N)},
        "unit must name what a group is, .* got 'record'",
    ),
    "unit": ({"unit": 3}, {"groups": np.arange(N)}, "unit must be the name .* got 3"),
}


@pytest.mark.parametrize("name", FREE)
def test_public_errors_cost_nothing(estimator_class, ledger, X, name):
    parameters, arguments, message = FREE[name]
    estimator = build(estimator_class, ledger).set_params(**parameters)
    with pytest.raises((ValueError, TypeError), match=message):
        estimator.fit(**{"X": X, "y": LABELS, **arguments})
    assert spends(ledger) == []
    assert_not_fitted(estimator)


def test_public_errors_of_one_class_cost_nothing(ledger, X):
    release = DPFrechetMean(radius=2.0).fit(X[:, :1]).release_
    cases = [
        (build(DPFrechetMean, ledger, budget_split={"mean": 1.0}), "budget_split"),
        (build(DPFrechetMean, ledger, confidence_level=2.0), "confidence_level"),
        (build(DPFrechetMean, ledger, calibration="x"), "calibration"),
        (build(DPPrincipalGeodesics, ledger, n_components=3), "n_components"),
        (build(DPFrechetVariance, ledger, mean=release), "mean must be a release on"),
        (build(DPFrechetVariance, ledger, budget_split={"variance": 1.0}), "budget_split"),
    ]
    for estimator, message in cases:
        with pytest.raises(ValueError, match=message):
            estimator.fit(X)
    for y in (np.zeros(N), LABELS[:3], None):
        with pytest.raises(ValueError, match=r"y |inconsistent"):
            build(DPMDM, ledger).fit(X, y)
    far = Hyperbolic(2).exp_coords(Hyperbolic(2).origin, np.array([20.0, 0.0]))
    for parameters, message in (
        ({"center": far, "radius": 1.0}, "center must be a point near which"),
        ({"radius": 19.0}, "radius must be at most .* n_samples=1,"),  # of one class
    ):
        classifier = DPMDM("hyperbolic", **parameters, mu=0.5, ledger=ledger)
        with pytest.raises(ValueError, match=message):
            classifier.fit(np.eye(3)[np.zeros(N, int)], np.arange(N) > 0)
    assert spends(ledger) == []


# --- units ---------------------------------------------------------------------------------------


@pytest.fixture
def persons(tmp_path):
    return PrivacyLedger(tmp_path / "persons.ledger", budget=GDP(1.0), dataset="eeg", unit="person")


def test_sessions_do_not_add_up_to_a_person(persons, X):
    """Two fits by session: whoever has twenty of them would have risked twenty times as much."""
    sessions, owners = np.arange(N), np.arange(N) // 8
    mean = build(DPFrechetMean, persons, unit="session", mu=0.7)
    with pytest.raises(
        ValueError, match=r"person \(all its records\), got session .*another ledger"
    ):
        mean.fit(X, groups=sessions)
    assert persons.report().spends == ()
    build(DPFrechetMean, persons, unit="person", mu=0.7).fit(X, groups=owners)
    assert persons.spent == GDP(0.7)


def test_a_ledger_of_persons_takes_no_records(estimator_class, persons, X):
    with pytest.raises(ValueError, match=r"unit must protect .*pass groups and unit='person'"):
        build(estimator_class, persons).fit(X, LABELS)
    assert persons.report().spends == ()


def test_one_data_set_has_one_partition(estimator_class, ledger, X):
    build(estimator_class, ledger, unit="session", mu=0.1).fit(X, LABELS, groups=np.arange(N) // 2)
    with pytest.raises(ValueError, match=r"unit must be 'session', .*got 'person'.*another ledger"):
        build(estimator_class, ledger, unit="person").fit(X, LABELS, groups=np.arange(N) // 4)
    assert len(spends(ledger)) == 1


def test_a_classifier_needs_a_ledger_of_what_keeps_its_class(tmp_path, persons, X):
    plain = PrivacyLedger(tmp_path / "plain.ledger", budget=GDP(1.0))
    with pytest.raises(ValueError, match=r"whose class changes.*SameClass\(unit=Record\(\)\)"):
        build(DPMDM, plain).fit(X, LABELS)
    with pytest.raises(ValueError, match=r"SameClass\(unit=Group\(partition='person'\)\)"):
        build(DPMDM, persons, unit="person").fit(X, LABELS, groups=np.arange(N) // 4)
    assert plain.report().spends == persons.report().spends == ()


def test_groups_of_the_ledgers_own_unit_need_no_note(persons, X):
    fit = build(DPFrechetMean, persons, unit="person").fit(X, groups=np.arange(N) // 4)
    assert fit.release_.unit == fit.privacy_.unit == PERSON
    assert not any("stays with" in note for note in fit.privacy_.notes)


# --- means that are reused -----------------------------------------------------------------------


def reuse(release, ledger, **parameters):
    return build(DPFrechetVariance, ledger, mu=0.3, mean=release, **parameters)


UNPAID = r"mean must be a release that data set '{}' of the ledger has paid for, got one with "


def test_a_mean_that_the_ledger_has_not_paid_is_refused(ledger, tmp_path, X):
    release = DPFrechetMean(radius=2.0, mu=3.0).fit(X).release_
    assert release.receipt is None
    other = PrivacyLedger(tmp_path / "other.ledger", budget=GDP(1.0))
    foreign = build(DPFrechetMean, other).fit(X).release_
    named = build(DPFrechetMean, ledger.for_dataset("pilot")).fit(X).release_
    paid = len(spends(ledger))
    for unpaid in (release, foreign, named):
        with pytest.raises(ValueError, match=UNPAID.format("default")) as caught:
            reuse(unpaid, ledger).fit(X)
        assert repr(unpaid.receipt) in str(caught.value)
        assert "fit it with this ledger and data set, or pass mean=None." in str(caught.value)
    assert len(spends(ledger)) == paid
    assert reuse(release, None).fit(X).privacy_.reused == GDP(3.0)  # without a ledger as before


def test_copies_of_a_paid_mean_are_paid(ledger, X):
    release = build(DPFrechetMean, ledger).fit(X).release_
    (spend,) = ledger.report().spends
    assert release.receipt == spend.receipt == ledger.report().to_dict()["spends"][0]["receipt"]
    assert len(bytes.fromhex(release.receipt)) == 16
    kept = MeanRelease.from_dict(json.loads(json.dumps(release.to_dict(), allow_nan=False)))
    for copied in (release, pickle.loads(pickle.dumps(release)), copy.deepcopy(release), kept):
        fit = clone(reuse(copied, ledger)).set_params(mu=0.1).fit(X)
        assert fit.privacy_.reused == release.guarantee
    again = reuse(fit.release_.mean, ledger).set_params(mu=0.1).fit(X)
    assert again.release_.mean.receipt == release.receipt
    assert_array_equal(kept.point, release.point)
    assert_array_equal(kept.foot, release.foot)
    for name in ("manifold", "scale", "mechanism", "guarantee", "void_reason", "unit", "receipt"):
        assert getattr(kept, name) == getattr(release, name)


@pytest.mark.parametrize(("backend", "n_jobs"), [("loky", 2), ("threading", 2)])
def test_folds_reuse_a_paid_mean(ledger, X, backend, n_jobs):
    release = build(DPFrechetMean, ledger).fit(X).release_
    pipeline = make_pipeline(reuse(release, ledger).set_params(mu=0.2), LogisticRegression())
    with parallel_config(backend, n_jobs=n_jobs):
        cross_val_score(pipeline, X, LABELS, cv=3, error_score="raise")
    assert len(spends(ledger)) == 4


def test_the_mean_of_a_variance_is_paid_with_it(ledger, X):
    release = build(DPFrechetVariance, ledger).fit(X).release_.mean
    reuse(release, ledger).fit(X)
    assert len(spends(ledger)) == 2


def test_receipts_are_drawn_anew(ledger, X):
    """Two fits of the same records by the same parameters have nothing in common."""
    receipts = [build(DPFrechetMean, ledger, mu=0.1).fit(X).release_.receipt for _ in range(5)]
    assert len(set(receipts)) == 5


def test_a_mean_of_persons_is_reused_for_persons(persons, X):
    groups = np.arange(N) // 4
    release = build(DPFrechetMean, persons, unit="person").fit(X, groups=groups).release_
    fit = reuse(release, persons, unit="person").fit(X, groups=groups)
    assert fit.privacy_.unit == PERSON
    with pytest.raises(ValueError, match=r"mean must protect the unit of this fit, session"):
        reuse(release, persons, unit="session").fit(X, groups=groups)


# --- ledgers that cannot be used -----------------------------------------------------------------


def assert_fails_closed(estimator, X, error, message):
    """Not even an earlier result is left."""
    good = clone(estimator).set_params(ledger=None).fit(X, LABELS)
    good.set_params(ledger=estimator.ledger)
    with pytest.raises(error, match=message) as caught:
        good.fit(X, LABELS)
    assert str(caught.value).endswith(".")
    assert caught.value.__cause__ is None
    assert_not_fitted(good)


@pytest.mark.parametrize("name", BREAKAGES)
def test_broken_files(estimator_class, path, ledger, X, name):
    breakage, message = BREAKAGES[name]
    ledger.spend(GDP(0.5), "record", "before")
    breakage(path)
    assert_fails_closed(build(estimator_class, ledger), X, PrivacyLedgerError, message)
    assert_fails_closed(build(estimator_class, path), X, PrivacyLedgerError, message)


def test_a_missing_file(estimator_class, path, ledger, X):
    path.unlink()
    for given in (ledger, path, str(path)):
        assert_fails_closed(
            build(estimator_class, given), X, FileNotFoundError, "there is no ledger at"
        )
    assert not path.exists()


def test_neither_a_ledger_nor_a_path(estimator_class, X):
    for given in (3, b"study.ledger", GDP(1.0), ["study.ledger"]):
        with pytest.raises(TypeError, match=r"must be a PrivacyLedger, the path|must be a string"):
            build(estimator_class, given).fit(X, LABELS)


def test_a_locked_file(estimator_class, path, ledger, X, monkeypatch):
    monkeypatch.setattr(_ledger_store, "TIMEOUT", 0.05)
    estimator = build(estimator_class, ledger)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        assert_fails_closed(estimator, X, PrivacyLedgerError, "another connection keeps it locked")
        connection.execute("ROLLBACK")
    estimator.fit(X, LABELS)
    assert ledger.spent == GDP(0.5)


def test_a_read_only_file(estimator_class, open_folder, X):  # noqa: F811
    path = open_folder / "study.ledger"
    ledger = PrivacyLedger(path, budget=GDP(1.0), unit=SameClass(RECORD))
    path.chmod(0o444)
    with without_root():
        assert_fails_closed(build(estimator_class, ledger), X, PrivacyLedgerError, "read-only")
    path.chmod(0o666)
    assert ledger.spent == GDP(0.0)


# --- copies, folds, workers ----------------------------------------------------------------------


def test_clones_and_pickles_spend_from_the_same_file(estimator_class, ledger, X):
    estimator = build(estimator_class, ledger, mu=0.4)
    for copied in (clone(estimator), pickle.loads(pickle.dumps(estimator))):
        copied.fit(X, LABELS)
    again = pickle.loads(pickle.dumps(copied))
    assert again.ledger == ledger
    assert_array_equal(again.transform(X), copied.transform(X))
    for _ in range(4):
        clone(again).fit(X, LABELS)
    assert len(spends(ledger)) == 6
    with pytest.raises(PrivacyBudgetError):
        clone(again).fit(X, LABELS)


BACKENDS = [("loky", 2), ("threading", 2), ("loky", 1)]


@pytest.fixture(scope="module", autouse=True)
def stopped_workers():
    yield
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True)


@pytest.mark.parametrize(("backend", "n_jobs"), BACKENDS)
def test_every_fold_spends(ledger, X, backend, n_jobs):
    with parallel_config(backend, n_jobs=n_jobs):
        scores = cross_val_score(build(DPMDM, ledger, mu=0.4), X, LABELS, cv=5)
        assert np.isfinite(scores).all()
        assert len(spends(ledger)) == 5
        with pytest.raises(PrivacyBudgetError, match="more than the budget allows"):
            cross_val_score(build(DPMDM, ledger, mu=0.4), X, LABELS, cv=5, error_score="raise")
    assert len(spends(ledger)) == 6
    assert ledger.spent.mu <= 1.0


@pytest.mark.parametrize(("backend", "n_jobs"), BACKENDS)
def test_grid_search_spends_for_every_fit(path, ledger, X, backend, n_jobs):
    pipeline = make_pipeline(build(DPFrechetMean, path, mu=0.35), LogisticRegression())
    grid = {"logisticregression__C": [0.1, 1.0]}
    with parallel_config(backend, n_jobs=n_jobs):
        search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(X, LABELS)
    assert len(spends(ledger)) == 2 * 3 + 1
    assert search.best_estimator_["dpfrechetmean"].ledger == path


def test_threads_of_one_fit_pay_once(ledger, X):
    build(DPFrechetMean, ledger, n_jobs=2).fit(X)
    assert len(spends(ledger)) == 1


COMMON = """
import json, os, random, signal, sys, time
import numpy as np
from skdpfrechet import DPFrechetMean
from skdpfrechet.privacy import GDP, PrivacyBudgetError, PrivacyLedger
path, folder = sys.argv[1:]
X = np.random.default_rng(0).normal(size=(50, 2))
def release(ledger, name):
    fit = DPFrechetMean(radius=2.0, mu=0.8, ledger=ledger).fit(X)
    with open(os.path.join(folder, name), "w") as file:
        json.dump(fit.mean_.tolist(), file)
def child(task, *arguments):
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            task(*arguments)
            status = 0
        except PrivacyBudgetError:
            status = 2
        finally:
            os._exit(status)
    return pid
PrivacyLedger(path, budget=GDP(1.0))
"""

# Two processes start together, and the budget of each data set is enough for one of them.
RACE = """
outcomes = []
for i in range(20):
    ledger = PrivacyLedger(path, dataset=f"{i}")
    reading, writing = os.pipe()
    def start(name):
        os.read(reading, 1)
        release(ledger, name)
    children = [child(start, f"{i}.{k}") for k in range(2)]
    os.write(writing, b"go")
    outcomes.append(sorted(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children))
    os.close(reading), os.close(writing)
print(json.dumps(outcomes))
"""

# A child releases without end, each time for a data set of its own, and is killed at a random
# instant; half of them once they have released something.
KILL = """
def loop(i):
    for k in range(10**6):
        release(PrivacyLedger(path, dataset=f"{i}.{k}"), f"{i}.{k}")
release(PrivacyLedger(path, dataset="first"), "first")  # imports and compiles
start = time.perf_counter()
release(PrivacyLedger(path, dataset="second"), "second")
wait = 3 * (time.perf_counter() - start)
random.seed(0)
for i in range(80):
    pid = child(loop, i)
    while i % 2 and not os.path.exists(os.path.join(folder, f"{i}.0")):
        time.sleep(1e-4)
    time.sleep(random.uniform(0, wait))
    os.kill(pid, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
print(json.dumps(os.listdir(folder)))
"""


def run(script, path, folder):
    """Run it in a fresh interpreter, whose children need not import again."""
    folder.mkdir()
    command = [sys.executable, "-W", "ignore", "-c", COMMON + script, str(path), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_fork
def test_of_two_processes_one_gets_the_last_budget(path, tmp_path):
    folder = tmp_path / "released"
    outcomes = run(RACE, path, folder)
    assert outcomes == [[0, 2]] * 20
    recorded = [spend.dataset for spend in PrivacyLedger(path).report().spends]
    assert sorted(recorded) == sorted(f"{i}" for i in range(20))
    assert sorted(name.split(".")[0] for name in os.listdir(folder)) == sorted(recorded)


@needs_fork
def test_no_kill_leaves_a_release_off_the_record(path, tmp_path):
    """A file that exists was written after `fit` returned, whole or not."""
    released = run(KILL, path, Path(tmp_path, "released"))
    recorded = [spend.dataset for spend in PrivacyLedger(path).report().spends]
    assert len(released) > 40  # every second child has released at least once
    assert set(released) <= set(recorded)
    assert len(set(recorded)) == len(recorded) <= len(released) + 80  # each kill may cost one
