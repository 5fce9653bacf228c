"""The parts of a fit, in exact arithmetic: never more than its μ together, and enough noise."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nextafter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdpfrechet import DPMDM, DPFrechetMean, DPFrechetVariance, DPPrincipalGeodesics
from skdpfrechet.estimators._budget import mean_shares, part, variance_shares
from skdpfrechet.privacy import compose

N = 40
GROUPS = np.arange(N) // 2
LABELS = np.arange(N) // 8  # five classes
budgets = st.floats(-3, 2).map(lambda x: 10.0**x)
shares = st.floats(0.001, 0.999)


def points(name):
    c = 0.2 * np.random.default_rng(0).standard_normal((N, 3))
    if name == "spd":
        return np.exp(c[:, :2, None]) * np.eye(2)
    if name == "sphere":
        c[:, 2] += 1.0
        return c / np.linalg.norm(c, axis=1, keepdims=True)
    return c


def exact_excess(mu, rows):
    return sum(Fraction(row.mu) ** 2 for row in rows) - Fraction(mu) ** 2


def check(mu, report):
    assert exact_excess(mu, report.releases) <= 0
    assert exact_excess(mu * (1 - 1e-12), report.releases) > 0  # and hardly anything is wasted
    for row in report.releases:
        # The noise of a row in exact arithmetic; it was given per record, hence an ulp or two.
        assert Fraction(row.sensitivity) <= Fraction(row.mu) * Fraction(row.noise_scale) * (
            1 + Fraction(2) ** -51
        )


@settings(max_examples=200, deadline=None)
@given(mu=budgets, first=shares, second=shares, n=st.integers(1, 10**6))
def test_shares_of_a_fit_in_exact_arithmetic(mu, first, second, n):
    third = (1 - first) * second
    split = {"mean": first, "second_moment": third, "hessian": 1 - first - third}
    pair = {"mean": first, "variance": 1 - first}
    for parts in (
        mean_shares(mu, n, "sharp", None, True),
        mean_shares(mu, n, "paper", None, True),
        mean_shares(mu, n, "sharp", {"mean": first, "second_moment": 1 - first}, True),
        mean_shares(mu, n, "paper", split, True),
        variance_shares("sharp", None, True, False),
        variance_shares("sharp", pair, True, False),
        variance_shares("paper", None, True, False),
        {str(k): 1 / 7 for k in range(7)},
        {str(k): 1 / 93 for k in range(93)},
    ):
        exact = sum(Fraction(part(mu, share)) ** 2 for share in parts.values())
        assert Fraction(mu) ** 2 * (1 - Fraction(1, 10**13)) < exact <= Fraction(mu) ** 2


def test_the_parts_without_rounding_down_would_exceed_the_whole():
    """Shares as split by a user, in floats: what is wrong without the factor of `part`."""
    rng = np.random.default_rng(0)
    over = 0
    for mu, first in rng.uniform(0.1, 1, (200, 2)).tolist():
        exact = sum(Fraction(mu * np.sqrt(share)) ** 2 for share in (first, 1 - first))
        over += exact > Fraction(mu) ** 2
    assert over > 50


def test_a_part_that_is_the_whole_stays_whole():
    assert part(0.3, 1.0) == 0.3
    assert part(inf, 0.5) == inf
    assert part(1.0, nextafter(1.0, 0.0)) < 1.0


@settings(max_examples=8, deadline=None)
@given(mu=budgets, first=shares)
@pytest.mark.parametrize("name", ["euclidean", "spd", "sphere"])
def test_rows_of_every_estimator_compose_to_no_more_than_its_mu(name, mu, first):
    X = points(name)
    center = [0.0, 0.0, 1.0] if name == "sphere" else None
    public = {"radius": 0.7, "center": center, "mu": mu, "random_state": 0}
    pair = {"mean": first, "second_moment": 1 - first}
    for estimator in (
        DPFrechetMean(name, **public, budget_split=pair),
        DPFrechetMean(name, **public, confidence_level=None),
        DPFrechetMean(name, **public, calibration="paper"),
        DPFrechetVariance(name, **public, budget_split={"mean": first, "variance": 1 - first}),
        DPFrechetVariance(name, **public, calibration="paper"),
        DPPrincipalGeodesics(name, **public),
    ):
        for groups in (None, GROUPS):
            report = estimator.fit(X, groups=groups).privacy_
            check(mu, report)
            assert compose(report.guarantee).mu == mu


@settings(max_examples=6, deadline=None)
@given(mu=st.floats(0.5, 50), share=st.floats(0.01, 0.9))
@pytest.mark.parametrize("name", ["euclidean", "spd", "sphere"])
def test_rows_of_a_private_ball_compose_to_no_more_than_its_mu(name, mu, share):
    X = points(name)
    outer = {} if name == "sphere" else {"outer_radius": 3.0}
    for center, radius in (("private", "private"), ("private", 0.7)):
        for ball_share in ("auto", share):
            estimator = DPFrechetMean(
                name,
                center=center,
                radius=radius,
                mu=mu,
                ball_share=ball_share,
                random_state=0,
                **outer,
            )
            check(mu, estimator.fit(X).privacy_)


@settings(max_examples=8, deadline=None)
@given(mu=budgets)
def test_rows_of_all_classes_compose_to_no_more_than_the_mu_of_a_person(mu):
    X = points("spd")
    persons = np.arange(N) % 8  # each in all five classes
    classifier = DPMDM("spd", radius=0.7, mu=mu, random_state=0)
    check(mu, classifier.fit(X, LABELS, groups=persons).privacy_)
    for label in range(5):  # without persons every class has the whole budget
        rows = classifier.fit(X, LABELS).privacy_.releases
        own = [row for row in rows if row.statistic.endswith(f"class {label}")]
        assert exact_excess(mu, own) <= 0
