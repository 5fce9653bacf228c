"""A few hundred cases of the fuzzer, and planted defects that it has to find."""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skdpfrechet import DPFrechetMean, sensitivity
from skdpfrechet.estimators import _mean, _plan, _private_mean
from skdpfrechet.manifolds import Manifold
from skdpfrechet.mechanisms import WrappedGaussian
from skdpfrechet.privacy import Record
from skdpfrechet.privacy._ledger import Payment
from tests.statistical import fuzz_ledger
from tests.statistical.fuzz import (
    Case,
    Outcome,
    Summary,
    Worker,
    check_message,
    draw_case,
    page,
    run_case,
    run_chunks,
    run_records,
)

PLAIN = Case(
    number=0,
    seed=0,
    estimator="DPFrechetMean",
    space="euclidean",
    size=2,
    n=5,
    parameters={"radius": 3.0, "random_state": 0, "mechanism": "wrapped-gaussian"},
    scale=1.0,
    structure="spread",
    fault="none",
    dtype="float64",
    container="array",
)
POINT = replace(PLAIN, parameters={**PLAIN.parameters, "confidence_level": None})
PAYING = replace(
    POINT, parameters={**POINT.parameters, "mu": 0.5, "random_state": None}, ledger="rich"
)
SPD = replace(POINT, space="spd", parameters={**POINT.parameters, "manifold": "spd"})


@pytest.mark.parametrize("block", range(6))
def test_cases(block, tmp_path):
    for number in range(50 * block, 50 * (block + 1)):
        outcome = run_case(draw_case(number), tmp_path)
        assert not outcome.defects, str(outcome.case)


def test_cases_can_be_repeated(tmp_path):
    for number in range(20):
        assert str(draw_case(number)) == str(draw_case(number))
        first, again = (run_case(draw_case(number), tmp_path) for _ in range(2))
        assert (first.kind, first.message) == (again.kind, again.message)


SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
DTYPES = st.one_of(
    hnp.floating_dtypes(), hnp.integer_dtypes(), hnp.boolean_dtypes(), hnp.complex_number_dtypes()
)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(
    X=hnp.arrays(DTYPES, SHAPES),
    space=st.sampled_from(["euclidean", "sphere", "hyperbolic", "spd", "logeuclid", "logchol"]),
    estimator=st.sampled_from(["DPFrechetMean", "DPFrechetVariance", "DPPrincipalGeodesics"]),
    mu=st.sampled_from([1e-3, 1.0, inf]),
)
def test_any_array(X, space, estimator, mu):
    center = np.eye(max(X.shape[1], 1))[0] if space == "sphere" and X.ndim > 1 else None
    parameters = {"manifold": space, "radius": 1.0, "center": center, "mu": mu, "random_state": 0}
    case = replace(PLAIN, estimator=estimator, space=space, parameters=parameters)
    n = len(X) if X.ndim else 0
    assert not run_records(replace(case, n=n), X).defects


@pytest.mark.parametrize("case", [PLAIN, SPD], ids=["plane", "spd"])
def test_the_plain_cases_are_fine(case, tmp_path):
    outcome = run_case(case, tmp_path)
    assert outcome.kind == "released"
    assert outcome.defects == []


def defects(case, directory):
    return " ".join(run_case(case, directory).defects)


# --- planted defects -----------------------------------------------------------------------------


def test_finds_nan(monkeypatch, tmp_path):
    monkeypatch.setattr(WrappedGaussian, "release", lambda self, center, rng: np.nan * center)
    assert "not finite: mean_" in defects(POINT, tmp_path)
    assert "internal" in defects(PLAIN, tmp_path)  # the spread around it is refused


def test_finds_means_off_the_manifold(monkeypatch, tmp_path):
    monkeypatch.setattr(_private_mean, "_representable", lambda problem, point: -point)
    assert "off the manifold: mean_" in defects(SPD, tmp_path)


def test_finds_asymmetry(monkeypatch, tmp_path):
    tilt = np.array([[0.0, 1e-12], [0.0, 0.0]])
    monkeypatch.setattr(WrappedGaussian, "release", lambda self, center, rng: center + tilt)
    assert "not symmetric: mean_" in defects(SPD, tmp_path)


@pytest.mark.parametrize(
    "quoted", [lambda X: X.max(), lambda X: np.argmax(X), lambda X: np.isnan(X).sum()]
)
def test_finds_a_message_about_the_records(monkeypatch, tmp_path, quoted):
    """A value, an index, a count."""

    def check(manifold, points, epsilon, substitute=None):
        raise ValueError(f"X must be better than {quoted(points):.6g}.")

    case = replace(PLAIN, n=40)
    monkeypatch.setattr(_plan, "admit", check)
    if quoted(np.array([np.nan])) == 1:  # a count, of what was spoilt
        case = replace(case, fault="nan")
    assert "leak" in defects(case, tmp_path)


def test_finds_a_message_of_two_sentences():
    assert list(check_message(ValueError("X is bad. It should be good.")))
    assert list(check_message(ValueError("X is bad")))
    assert not list(check_message(ValueError("X must be in V², got 1.5.")))


def test_finds_a_chained_error():
    error = ValueError("X must be good.")
    error.__context__ = KeyError(3.14159)
    assert "chained" in next(check_message(error))
    error.__suppress_context__ = True
    assert not list(check_message(error))


def test_finds_a_message_about_internals():
    assert "internal" in next(check_message(ValueError("sensitivity must not be negative.")))


def test_finds_other_exceptions_and_warnings(monkeypatch, tmp_path):
    def fail(*arguments, **options):
        warnings.warn("some record is far away", RuntimeWarning, stacklevel=2)
        raise ZeroDivisionError

    monkeypatch.setattr(_private_mean, "point_of_ball", fail)
    found = defects(PLAIN, tmp_path)
    assert "exception: ZeroDivisionError" in found
    assert "warning: RuntimeWarning" in found


def test_finds_a_change_of_the_input(monkeypatch, tmp_path):
    original = DPFrechetMean.fit

    def fit(self, X, y=None, *, groups=None):
        original(self, X, groups=groups)
        X *= 2
        return self

    monkeypatch.setattr(DPFrechetMean, "fit", fit)
    assert "input: X was changed" in defects(PLAIN, tmp_path)


def test_finds_too_little_noise(monkeypatch, tmp_path):
    monkeypatch.setattr(sensitivity, "computed_mean", lambda *arguments, **options: 1e-3)
    assert "account: less than the sensitivity" in defects(PLAIN, tmp_path)


def test_finds_a_failing_transform(monkeypatch, tmp_path):
    monkeypatch.setattr(DPFrechetMean, "transform", lambda self, X: np.inf * X)
    assert "transform: not finite" in defects(PLAIN, tmp_path)


def test_finds_slow_fits(monkeypatch, tmp_path):
    monkeypatch.setattr("tests.statistical.fuzz.SLOW", 0.0)
    assert "slow" in defects(PLAIN, tmp_path)


@pytest.mark.parametrize("kind", fuzz_ledger.KINDS)
@pytest.mark.parametrize("fault", ["none", "nan", "one axis more"])
def test_every_ledger_is_used_as_it_should_be(kind, fault, tmp_path):
    """What is checked happens: releases, refusals before the charge and after it."""
    outcome = run_case(replace(PAYING, ledger=kind, fault=fault), tmp_path)
    assert outcome.defects == []
    usable = kind not in ("poor", "group", *fuzz_ledger.BROKEN)  # there are no groups
    assert (outcome.kind == "released") == (usable and fault == "none")


def test_finds_a_release_off_the_record(monkeypatch, tmp_path):
    monkeypatch.setattr(_mean, "pay", lambda *arguments: Payment())
    assert "ledger: rich, 0 entries after released" in defects(PAYING, tmp_path)
    assert "ledger: missing, 0 entries after released" in defects(
        replace(PAYING, ledger="missing"), tmp_path
    )


def pay_at(monkeypatch, place):
    """Let fits pay at another place: before anything is checked, or after records were read."""
    pay, look, read = _mean.pay, _mean.look, _mean.read_into_ball
    monkeypatch.setattr(_mean, "pay", lambda *arguments: Payment())

    def look_late(estimator, X, **options):
        pay(estimator, estimator.mu, Record(), ("mean",))
        return look(estimator, X, **options)

    def read_early(estimator, plan, unread):
        problem = read(estimator, plan, unread)
        pay(estimator, plan.mu, plan.unit, plan.statistics)
        return problem

    if place == "early":
        monkeypatch.setattr(_mean, "look", look_late)
    else:
        monkeypatch.setattr(_mean, "read_into_ball", read_early)


def test_finds_a_charge_for_a_public_error(monkeypatch, tmp_path):
    pay_at(monkeypatch, "early")
    case = replace(PAYING, fault="one axis more")
    assert "ledger: rich, 1 entries after ValueError: X must have shape" in defects(case, tmp_path)


def test_finds_an_answer_that_was_not_paid_for(monkeypatch, tmp_path):
    pay_at(monkeypatch, "late")
    for ledger in ("poor", "rich"):
        case = replace(PAYING, fault="nan", ledger=ledger)
        found = f"ledger: {ledger}, 0 entries after ValueError: X must contain finite"
        assert found in defects(case, tmp_path)


def test_finds_values_that_are_not_replaced(monkeypatch, tmp_path):
    admit = _plan.admit
    monkeypatch.setattr(_plan, "admit", lambda *arguments: admit(*arguments[:3]))
    parameters = {**POINT.parameters, "invalid": "replace"}
    case = replace(POINT, fault="nan", parameters=parameters)
    found = defects(case, tmp_path)
    assert "replace: X must contain finite numbers" in found
    assert "clean records: released" in found


def test_finds_what_a_failed_fit_leaves(monkeypatch, tmp_path):
    def fail(self, *arguments):
        self.mean_ = 0.0
        raise ValueError("X must contain better numbers.")

    monkeypatch.setattr(DPFrechetMean, "_release", fail)
    assert "refused: ['mean_'] are there" in defects(POINT, tmp_path)


def test_chunks_add_up_and_are_not_run_again(monkeypatch, tmp_path):
    ran = []

    def run(numbers, seed, budget, verbose):
        ran.append(numbers)
        summary = Summary(seed, seconds=1.0)
        for number in numbers:
            summary.add(Outcome(replace(PLAIN, number=number), "released", defects=["x"]))
        return summary

    monkeypatch.setattr("tests.statistical.fuzz.CHUNK", 4)
    monkeypatch.setattr("tests.statistical.fuzz.run_cases", run)
    for _ in range(2):
        summary = run_chunks(range(10), 0, 2, folder=tmp_path / "state")
        assert (summary.cases, summary.seconds) == (10, 3.0)
        assert sorted(summary.defects["x"]) == list(range(10))
        assert sorted(map(len, ran)) == [2, 4, 4]


def die(connection, seed):
    connection.recv()
    os._exit(3)


def sleep(connection, seed):
    connection.recv()
    time.sleep(60)


@pytest.mark.parametrize(("work", "word"), [(die, "crash: exit code 3"), (sleep, "hang")])
def test_finds_a_crash_and_a_hang(work, word):
    """The next case gets a new process."""
    worker = Worker(work=work, patience=2.0 if work is sleep else 60.0)
    for number in range(2 if work is die else 1):
        assert word in worker.run(number).defects[0]
        assert worker.process is None


def test_page_names_every_defect():
    summary = Summary(seconds=1.0)
    for number in range(3):
        case = replace(PLAIN, number=number)
        summary.add(Outcome(case, "released", defects=["not finite: mean_"] * (number > 0)))
    summary.add(Outcome(PLAIN, "refused", "radius must be positive, got -1."))
    text = page(summary)
    assert "**4 cases: 1 valid releases, 1 clean errors, 2 defects.**" in text
    assert "* 2 times, first in case 1: `not finite: mean_`" in text
    assert "* 1 × `radius must be positive, got #`" in text


def test_records_lie_on_their_manifold(tmp_path):
    """Otherwise nothing but refusals would be tested."""
    released = sum(
        run_case(draw_case(number), tmp_path).kind == "released" for number in range(140)
    )
    assert released > 40
    assert isinstance(PLAIN.manifold, Manifold)
