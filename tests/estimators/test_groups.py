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


# --- no message counts the records ---------------------------------------------------------------

COUNT = 37  # records; every message is searched for it and its neighbours


def messages_of(error):
    """Return the text of an exception and of all that hangs on it."""
    texts = []
    while error is not None:
        texts += [str(error), repr(error)]
        error = error.__context__
    return texts


def counted(rng):
    """Return faults by name: what becomes of X, y, groups and the parameters."""
    X, y, groups = rng.normal(size=(COUNT, 2)), np.arange(COUNT) % 2, np.arange(COUNT) // 5
    nan, text = X.copy(), X.astype(object)
    nan[3, 0], text[3, 0] = np.nan, "a"
    frame = pd.DataFrame(X, columns=["a", "b"])
    ragged = [[0.0], *X[1:].tolist()]
    return {
        "one axis": (X[:, 0], y, groups, {}),
        "three axes": (X[:, :, None], y, groups, {}),
        "no columns": (X[:, :0], y, groups, {}),
        "no records": (X[:0], y[:0], groups[:0], {}),
        "complex": (X + 0j, y, groups, {}),
        "ragged": (ragged, y, groups, {}),
        "nan": (nan, y, groups, {}),
        "text": (text, y, groups, {}),
        "mixed names": (frame.rename(columns={"a": 1}), y, groups, {}),
        "short groups": (X, y, groups[:-1], {}),
        "table of groups": (X, y, np.zeros((COUNT, 2)), {}),
        "ragged groups": (X, y, [[0], [0, 1]] * 18 + [[0]], {}),
        "missing group": (X, y, [None, *groups[1:]], {}),
        "groups of lists": (X, y, [[0]] * COUNT, {}),
        "groups that are none": (X, y, 3, {}),
        "short y": (X, y[:-1], groups, {}),
        "table of y": (X, np.zeros((COUNT, 2)), groups, {}),
        "ragged y": (X, [[0], [0, 1]] * 18 + [[0]], groups, {}),
        "y of numbers": (X, rng.normal(size=COUNT), groups, {}),
        "y of nan": (X, np.r_[np.nan, y[1:]], groups, {}),
        "one class": (X, np.zeros(COUNT), groups, {}),
        "column of y": (X, y[:, None], groups, {}),
        "many classes": (X, np.r_[np.arange(COUNT - 4), np.arange(4)], groups, {}),
        "wide": (X, y, groups, {"radius": 1e300}),
        "center": (X, y, groups, {"center": np.zeros(3)}),
        "unit": (X, y, groups, {"unit": 3}),
        "good": (X, y, groups, {}),
        "sizes": (np.tile(X, (2, 1)), np.tile(y, 2), np.tile(groups, 2), {}),
    }


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("fault", counted(np.random.default_rng(0)))
@pytest.mark.parametrize("estimator_class", [*ESTIMATORS, DPMDM])
def test_no_message_counts_records(estimator_class, fault, rng, recwarn):
    X, y, groups, parameters = counted(rng)[fault]
    estimator = estimator_class("euclidean", **{"radius": 1.0, **parameters})
    texts = []
    try:
        estimator.fit(X, y, groups=groups)
    except Exception as error:
        texts += messages_of(error)
    else:
        texts += [repr(estimator), estimator._repr_html_(), str(estimator.privacy_)]
        texts += [repr(estimator.privacy_.to_dict()), *estimator.privacy_.notes]
        texts.append(repr(getattr(estimator, "release_", "")))
    texts += [str(warning.message) for warning in recwarn]
    assert texts
    for text in texts:
        # Hashes of HTML ids and the style sheet hold any digits.
        told = re.sub(r"<style>.*?</style>|<script>.*?</script>|sk-\S+", "", text, flags=re.S)
        told = re.sub(r"\d+\.\d+(e[+-]?\d+)?|#\w+", "", told)  # released numbers, colours
        assert not re.search(
            rf"(?<![\w.]){COUNT - 1}|(?<![\w.])({COUNT}|{2 * COUNT})(?![\w.])", told
        )


def test_a_warning_about_classes_does_not_depend_on_the_number_of_records(rng, recwarn):
    """scikit-learn compares their number with that of the records."""
    y = np.r_[np.arange(33), np.arange(4)]
    for repeats in (1, 20):
        X = rng.normal(size=(37 * repeats, 2))
        groups = np.tile(np.arange(37), repeats)
        DPMDM("euclidean", radius=1.0).fit(X, np.tile(y, repeats), groups=groups)
    assert len(recwarn) == 0


@pytest.mark.parametrize("estimator_class", [*ESTIMATORS, DPMDM])
def test_a_lack_of_memory_does_not_count_records(estimator_class, rng, monkeypatch):
    """numpy's message has the shape of what it could not hold."""

    def full(*args, **kwargs):
        np.empty((COUNT, 2**48))

    monkeypatch.setattr("skdpfrechet.estimators._records.Unread.numbers", full)
    X, y = rng.normal(size=(COUNT, 2)), np.arange(COUNT) % 2
    estimator = estimator_class("euclidean", radius=1.0)
    with pytest.raises(MemoryError) as caught:
        estimator.fit(X, y, groups=np.arange(COUNT) // 5)
    assert not any(str(COUNT) in text for text in messages_of(caught.value))
    with pytest.raises(MemoryError, match=str(COUNT)):
        estimator.fit(X, y)


def test_the_unit_is_the_name_of_the_partition(rng):
    X, y, groups = spd(rng, 12), np.arange(12) % 2, np.arange(12) // 3
    for estimator_class in (*ESTIMATORS, DPMDM):
        person = Group("person")
        wanted = SameClass(person) if estimator_class is DPMDM else person
        fit = estimator_class("spd", radius=1.0, unit="person").fit(X, y, groups=groups)
        assert fit.privacy_.unit == wanted
        assert str(wanted) in str(fit.privacy_)
        with pytest.raises(ValueError, match=r"unit must be None without groups, .* got 'person'"):
            fit.fit(X, y)
