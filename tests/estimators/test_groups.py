"""Persons as the unit: a group of records counts as one point, whatever its size."""

import inspect
import re

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from pyriemann.estimation import Covariances
from pyriemann.geometry.mean import mean_riemann
from sklearn.pipeline import make_pipeline

from skdpfrechet import DPMDM, DPFrechetMean, DPFrechetVariance, DPPrincipalGeodesics, sensitivity
from skdpfrechet.estimators._groups import check_groups, group_means
from skdpfrechet.manifolds import Euclidean, Hyperbolic, SPDAffineInvariant, Sphere
from skdpfrechet.privacy import Group, Record, SameClass
from tests.estimators.test_firewall import assert_same_state, blind_mechanisms  # noqa: F401

ESTIMATORS = [DPFrechetMean, DPFrechetVariance, DPPrincipalGeodesics]
SIZES = (1, 1, 2, 3, 5, 8, 40)


@pytest.fixture
def rng():
    return np.random.default_rng(20261130)


def spd(rng, n, spread=0.5):
    return SPDAffineInvariant(2).exp_coords(np.eye(2), spread * rng.normal(size=(n, 3)))


def shuffled_groups(rng, sizes=SIZES):
    groups = np.repeat([f"person {i}" for i in range(len(sizes))], sizes)
    return rng.permutation(groups)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_groups_of_one_record_change_nothing_but_the_unit(estimator, rng):
    X = spd(rng, 12)
    plain = estimator("spd", radius=2.0, random_state=0).fit(X)
    grouped = estimator("spd", radius=2.0, random_state=0).fit(X, groups=np.arange(12))
    assert_array_equal(grouped.mean_, plain.mean_)
    assert grouped.privacy_.releases == plain.privacy_.releases
    assert (plain.privacy_.unit, grouped.privacy_.unit) == (Record(), Group("group"))


def test_exact_mean_is_the_mean_of_the_group_means(rng):
    groups = shuffled_groups(rng)
    X = spd(rng, len(groups))
    fit = DPFrechetMean("spd", radius=4.0, mu=np.inf).fit(X, groups=groups)
    means = [mean_riemann(X[groups == g], tol=1e-12) for g in np.unique(groups)]
    assert_allclose(fit.mean_, mean_riemann(np.stack(means), tol=1e-12), rtol=0, atol=1e-8)
    assert fit.n_samples_ == len(SIZES)


def test_noise_is_scaled_to_the_number_of_groups(rng):
    groups = shuffled_groups(rng)
    fit = DPFrechetMean("spd", radius=1.0, confidence_level=None).fit(
        spd(rng, len(groups)), groups=groups
    )
    expected = sensitivity.frechet_mean(SPDAffineInvariant(2), 1.0, len(SIZES))
    assert_allclose(fit.privacy_.releases[0].sensitivity, expected, rtol=1e-3)


@pytest.mark.parametrize("space", [Euclidean(2), Sphere(2), Hyperbolic(2), SPDAffineInvariant(2)])
def test_every_group_is_solved_alone_and_lands_in_the_ball(space, rng):
    center = np.array([0.0, 0.0, 1.0]) if isinstance(space, Sphere) else space.origin
    radius = 1.2
    groups = shuffled_groups(rng)
    coordinates = rng.normal(size=(len(groups), space.dim))
    points = space.project_to_ball(space.exp_coords(center, coordinates), center, radius)
    local = space.localize(center)
    codes = check_groups(groups, len(groups))
    means = group_means(local, local.to_model(points), codes, radius)
    distances = local.model.dist(local.origin, means)
    assert (distances <= radius * (1 + 1e-12)).all()
    for g in range(len(SIZES)):
        alone = group_means(
            local, local.to_model(points[codes == g]), np.zeros((codes == g).sum(), int), radius
        )
        assert_array_equal(alone[0], means[g])


@pytest.mark.parametrize("estimator", [DPFrechetMean, DPFrechetVariance])
def test_replacing_a_group_by_one_of_another_size_keeps_to_the_sensitivity(estimator, rng):
    """The worst case: all records of one person jump across the ball, and become many more."""
    radius, persons = 1.0, 5
    rest = spd(rng, persons - 1, 0.1)
    ends = SPDAffineInvariant(2).exp_coords(np.eye(2), radius * np.array([[1.0, 0, 0], [-1, 0, 0]]))
    exact = []
    for end, size in zip(ends, (1, 500), strict=True):
        X = np.concatenate([np.repeat(end[None], size, axis=0), rest])
        groups = np.r_[np.zeros(size, int), np.arange(1, persons)]
        exact.append(estimator("spd", radius=radius, mu=np.inf).fit(X, groups=groups))
    if estimator is DPFrechetMean:
        moved = SPDAffineInvariant(2).dist(exact[0].mean_, exact[1].mean_)
        bound = sensitivity.frechet_mean(SPDAffineInvariant(2), radius, persons)
        assert 0.9 * bound < moved <= bound * (1 + 1e-6)
    else:
        assert abs(exact[0].variance_ - exact[1].variance_) <= 4 * radius**2 / persons


@pytest.mark.usefixtures("blind_mechanisms")
@pytest.mark.parametrize("estimator", [DPFrechetMean, DPFrechetVariance])
def test_group_sizes_leave_no_trace(estimator, rng):
    fits = []
    for sizes in ((1, 1, 1, 1), (1, 30, 2, 7)):
        groups = np.repeat(np.arange(4), sizes)
        est = estimator("spd", radius=1.0, mu=0.5, random_state=0)
        fits.append(est.fit(spd(rng, len(groups)), groups=groups))
    assert_same_state(*fits)
    assert repr(fits[0].privacy_) == repr(fits[1].privacy_)


@pytest.mark.parametrize("estimator", [*ESTIMATORS, DPMDM])
@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.arange(11), "groups must be one-dimensional, with one label per record."),
        (np.zeros((12, 2)), "groups must be one-dimensional, with one label per record."),
        ([["a"], ["b", "c"]], "groups must be one-dimensional, with one label per record."),
        (np.r_[np.arange(11.0), np.nan], "groups must name a group for every record"),
        ([None, *"abcdefghijk"], "groups must name a group for every record"),
    ],
    ids=["short", "table", "ragged", "nan", "none"],
)
def test_bad_groups_are_refused_without_naming_a_number(estimator, groups, message, rng):
    X, y = spd(rng, 12), np.arange(12) % 2
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        estimator("spd", radius=1.0).fit(X, y, groups=groups)
    assert not re.search(r"\d", str(error.value))


def test_labels_of_any_kind_name_groups(rng):
    X = spd(rng, 6)
    for groups in (list("aabbcc"), [1, 1, 2, 2, 3, 3], np.array([[0], [0], [1], [1], [2], [2]])):
        fit = DPFrechetMean("spd", radius=1.0).fit(X, groups=groups)
        assert fit.n_samples_ == 3


def test_groups_flow_through_a_pipeline(rng):
    epochs, groups = rng.standard_normal((40, 3, 64)), np.repeat(np.arange(8), 5)
    with sklearn.config_context(enable_metadata_routing=True):
        mean = DPFrechetMean("spd", radius=3.0).set_fit_request(groups=True)
        pipeline = make_pipeline(Covariances("oas"), mean).fit(epochs, groups=groups)
    assert pipeline[-1].n_samples_ == 8
    assert pipeline[-1].privacy_.unit == Group("group")


def test_classes_share_the_budget_of_a_person(rng):
    X, y = spd(rng, 60), np.tile([0, 1, 2], 20)
    groups = np.arange(60) // 6
    fit = DPMDM(radius=1.5, mu=1.0).fit(X, y, groups=groups)
    assert fit.n_samples_ == 10
    assert_allclose([row.mu for row in fit.privacy_.releases], 1 / np.sqrt(3))
    assert fit.privacy_.guarantee.mu == 1.0
    assert fit.privacy_.unit == SameClass(Group("group"))
    expected = sensitivity.frechet_mean(SPDAffineInvariant(2), 1.5, 10)
    for row in fit.privacy_.releases:
        assert_allclose(row.sensitivity, expected, rtol=1e-3)


def test_groups_is_a_keyword():
    for estimator in (*ESTIMATORS, DPMDM):
        parameter = inspect.signature(estimator.fit).parameters["groups"]
        assert parameter.kind is parameter.KEYWORD_ONLY


def test_a_mean_of_records_is_not_reused_for_groups(rng):
    X, groups = spd(rng, 12), np.arange(12) // 3
    records = DPFrechetMean("spd", radius=1.0).fit(X)
    persons = DPFrechetMean("spd", radius=1.0).fit(X, groups=groups)
    assert persons.release_.unit == Group("group")
    with pytest.raises(ValueError, match=r"unit of this fit, group .*protects record"):
        DPFrechetVariance("spd", radius=1.0, mean=records.release_).fit(X, groups=groups)
    with pytest.raises(ValueError, match=r"unit of this fit, record, .*protects group"):
        DPFrechetVariance("spd", radius=1.0, mean=persons.release_).fit(X)
    fit = DPFrechetVariance("spd", radius=1.0, mean=persons.release_).fit(X, groups=groups)
    assert fit.privacy_.unit == Group("group")


def test_equal_labels_are_one_group_whatever_their_type(rng):
    X = spd(rng, 6)
    for groups in ([1, 1.0, "1", True, 2, 2], np.array([0.0, -0.0, 5, 5, 7, 7])):
        fit = DPFrechetMean("spd", radius=1.0).fit(X, groups=groups)
        assert fit.n_samples_ == 3  # not one for each way to write a number


@pytest.mark.parametrize(
    "groups",
    [
        ["a", "nan", np.nan],
        np.array(["2020-01-01", "NaT", "2020-01-02"], dtype="datetime64[D]"),
        np.ma.masked_array([1, 2, 3], mask=[False, True, False]),
        pd.Series(["a", pd.NA, "b"], dtype=object),
        pd.Series([1, None, 2], dtype="Int64"),
    ],
    ids=["nan", "nat", "masked", "na", "nullable"],
)
def test_missing_labels_of_all_kinds_are_refused(groups, rng):
    with pytest.raises(ValueError, match="got a missing label"):
        DPFrechetMean("spd", radius=1.0).fit(spd(rng, 3), groups=groups)
