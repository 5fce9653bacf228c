"""``invalid="replace"``: a record that is no point of the space becomes a public one, unheard.

The strongest test compares with the same data in which the user put the public point by hand: every
number of the fitted state must be the same bit for bit. That it follows from the record alone which
points count is tested on `admit`; the bound on the sensitivity then follows, and is tested as well.
"""

from __future__ import annotations

from math import inf

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skdpfrechet import DPMDM, DPFrechetMean, DPFrechetVariance, DPPrincipalGeodesics, sensitivity
from skdpfrechet._kernels import kernels
from skdpfrechet.estimators._records import admit
from skdpfrechet.manifolds import (
    Euclidean,
    Hyperbolic,
    SPDAffineInvariant,
    SPDLogCholesky,
    SPDLogEuclidean,
    Sphere,
)
from tests.estimators.test_firewall import assert_same_state, blind_mechanisms  # noqa: F401

N, ROW = 20, 3
ESTIMATORS = [DPFrechetMean, DPFrechetVariance, DPMDM, DPPrincipalGeodesics]
NORTH = np.array([0.0, 0.0, 1.0])
SPACES = {
    "euclidean": Euclidean(3),
    "sphere": Sphere(2),
    "hyperbolic": Hyperbolic(2),
    "spd": SPDAffineInvariant(2),
    "logeuclid": SPDLogEuclidean(2),
    "logchol": SPDLogCholesky(2),
}


def origin(space):
    return NORTH if isinstance(space, Sphere) else space.origin


def records(space, n=N, seed=0):
    """Points of which some lie outside the ball of radius 1."""
    rng = np.random.default_rng(seed)
    scale = 0.8 / np.sqrt(space.dim)
    return space.exp_coords(origin(space), rng.normal(scale=scale, size=(n, space.dim)))


def nowhere(space):
    """Records that are no points of the space."""
    one = np.ones(space.point_shape)
    yield "nan", np.nan * one
    second = np.arange(one.size).reshape(one.shape) == 1
    yield "one nan", np.where(second, np.nan, records(space)[0])
    yield "inf", inf * one
    yield "minus inf", -inf * one
    if not isinstance(space, Euclidean):
        yield "zero", 0 * one
        yield "1e300", 1e300 * one
        yield "1e-300", 1e-300 * one
    if isinstance(space, Sphere):
        yield "length 2", 2 * NORTH
        yield "almost a unit vector", (1 + 2e-5) * NORTH
    if len(space.point_shape) == 2:
        yield "negative", -np.eye(2)
        yield "asymmetric", np.array([[1.0, 0.5], [0.0, 1.0]])
        yield "singular", np.array([[1.0, 1.0], [1.0, 1.0]])


def far_away(space):
    """Points of the space that a record may be, however wild."""
    yield "duplicate", records(space)[0]
    if isinstance(space, Sphere):
        yield "antipode", -NORTH
    elif isinstance(space, Euclidean):
        yield "1e300", np.full(3, 1e300)
        yield "1e-300", np.full(3, 1e-300)
    elif isinstance(space, Hyperbolic):
        yield "far", space.exp_coords(space.origin, np.array([30.0, 0.0]))
    else:
        yield "1e300", 1e300 * np.eye(2)
        yield "1e-300", 1e-300 * np.eye(2)
        yield "denormal", 5e-324 * np.eye(2)
        yield "both", np.diag([1e300, 1e-300])


NOWHERE = [
    pytest.param(name, record, id=f"{name}-{fault}")
    for name, space in SPACES.items()
    for fault, record in nowhere(space)
]
WILD = [
    pytest.param(name, record, id=f"{name}-{fault}")
    for name, space in SPACES.items()
    for faults in (nowhere(space), far_away(space))
    for fault, record in faults
]


@pytest.fixture(params=ESTIMATORS)
def estimator_class(request):
    return request.param


def build(estimator_class, name, **parameters):
    center = NORTH if name == "sphere" else None
    public = {"radius": 1.0, "center": center, "random_state": 0, "invalid": "replace"}
    return estimator_class(name, **{**public, **parameters})


def fit(estimator_class, name, X, groups=None, **parameters):
    y = np.arange(len(X)) % 2
    return build(estimator_class, name, **parameters).fit(X, y, groups=groups)


def put(X, record, rows=ROW):
    X = np.array(X)
    X[rows] = record
    return X


# --- the public point stands in ------------------------------------------------------------------


@pytest.mark.parametrize(("name", "record"), NOWHERE)
def test_as_if_the_user_had_put_the_centre_there(estimator_class, name, record):
    space = SPACES[name]
    center = space.exp_coords(origin(space), np.full(space.dim, 0.1))
    X = records(space)
    for public in (None, center) if name != "sphere" else (center,):
        point = space.origin if public is None else public
        bad = fit(estimator_class, name, put(X, record), center=public)
        assert_same_state(bad, fit(estimator_class, name, put(X, point), center=public))


@pytest.mark.parametrize("name", SPACES)
def test_valid_records_are_left_alone(estimator_class, name):
    """Directions of single precision, off the sphere by 1e-7, are valid as they always were."""
    X = records(SPACES[name]).astype(np.float32)
    assert_same_state(
        fit(estimator_class, name, X),
        fit(estimator_class, name, X, invalid="raise").set_params(invalid="replace"),
    )


@pytest.mark.parametrize("name", SPACES)
def test_all_records_may_be_replaced(estimator_class, name):
    space = SPACES[name]
    X = np.full((N, *space.point_shape), np.nan)
    centers = np.broadcast_to(origin(space), X.shape)
    assert_same_state(fit(estimator_class, name, X), fit(estimator_class, name, centers))


def test_within_its_group(estimator_class):
    X, groups = records(SPACES["spd"]), np.arange(N) // 4
    bad = fit(estimator_class, "spd", put(X, np.nan), groups)
    assert_same_state(bad, fit(estimator_class, "spd", put(X, np.eye(2)), groups))


@pytest.mark.parametrize("name", ["spd", "hyperbolic", "logchol", "euclidean"])
@pytest.mark.parametrize("ball", [{}, {"radius": 1.0}, {"groups": np.arange(4 * N) // 2}])
def test_the_outer_centre_where_the_centre_is_bought(estimator_class, name, ball):
    space, ball = SPACES[name], dict(ball)
    X, groups = records(space, 4 * N), ball.pop("groups", None)
    outer = space.exp_coords(space.origin, np.full(space.dim, 0.2))
    wide = {
        "center": "private",
        "radius": "private",
        "outer_center": outer,
        "outer_radius": 4.0,
        "mu": 5.0,
        **ball,
    }
    bad = fit(estimator_class, name, put(X, np.nan), groups, **wide)
    assert any("ball" in row.statistic for row in bad.privacy_.releases)
    assert_same_state(bad, fit(estimator_class, name, put(X, outer), groups, **wide))


# --- a sphere without a centre -------------------------------------------------------------------

LOST = [2, 7, 8]
SEARCH = {"center": "private", "mu": inf, "random_state": None}


@pytest.mark.parametrize("radius", [1.0, "private"])
def test_a_direction_is_not_replaced_before_there_is_a_centre(radius):
    """It adds nothing to the extrinsic mean, and is at the released centre from then on."""
    X, lost = records(Sphere(2), 60), slice(0, 60, 3)
    search = {**SEARCH, "radius": radius, "ball_quantile": 0.8}
    found = fit(DPFrechetMean, "sphere", put(X, np.nan, lost), **search)
    center = np.delete(X, lost, axis=0).sum(axis=0)
    center /= np.linalg.norm(center)
    assert_allclose(found.center_, center, atol=1e-15)
    X[lost] = found.center_
    ball = {"center": found.center_, "mu": inf}
    given = fit(DPFrechetMean, "sphere", X, **ball, radius=found.radius_)
    assert_allclose(found.mean_, given.mean_, atol=1e-14)
    if radius == "private":
        # The histogram of distances counts them at the centre.
        look = {"radius": "private", "outer_radius": np.pi, "ball_quantile": 0.8}
        assert fit(DPFrechetMean, "sphere", X, **ball, **look).radius_ == found.radius_


def test_beside_true_directions_of_its_group_it_has_no_weight():
    X, groups = records(Sphere(2), 60), np.arange(60) // 5  # the second is 5 to 9
    search = {**SEARCH, "radius": 1.55}  # no record is outside
    partly = fit(DPFrechetMean, "sphere", put(X, np.nan, LOST), groups, **search)
    few, few_groups = np.delete(X, LOST, axis=0), np.delete(groups, LOST)
    assert_same_state(partly, fit(DPFrechetMean, "sphere", few, few_groups, **search))
    second = groups == 1
    wholly = fit(DPFrechetMean, "sphere", put(X, np.nan, second), groups, **search)
    others = fit(DPFrechetMean, "sphere", X[~second], groups[~second], **search)
    assert_allclose(wholly.center_, others.center_, atol=1e-14)
    assert (wholly.n_samples_, others.n_samples_) == (12, 11)
    public = {"center": wholly.center_, "radius": 1.55, "mu": inf}
    given = fit(DPFrechetMean, "sphere", put(X, wholly.center_, second), groups, **public)
    assert_allclose(wholly.mean_, given.mean_, atol=1e-9)  # groups are solved to 1e-9


@pytest.mark.parametrize("groups", [None, np.arange(60) // 5])
def test_every_estimator_finds_a_centre(estimator_class, groups):
    X = put(records(Sphere(2), 60), np.nan, LOST)
    for radius in (1.0, "private"):
        fitted = fit(estimator_class, "sphere", X, groups, center="private", radius=radius, mu=1.0)
        assert fitted.privacy_.guarantee.mu == 1.0


def test_no_direction_at_all():
    X = np.zeros((60, 3))
    fitted = fit(DPFrechetMean, "sphere", X, center="private", radius="private", mu=1.0)
    assert np.linalg.norm(fitted.mean_) == pytest.approx(1.0)


# --- privacy -------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled", ["numpy", "numba"])
@pytest.mark.parametrize("name", SPACES)
def test_what_becomes_of_a_record_depends_on_that_record_alone(name, compiled):
    """Not on the company: alone, in a crowd of good ones or of bad ones, it is the same bits."""
    space = SPACES[name]
    rng = np.random.default_rng(1)
    wild = [record for faults in (nowhere(space), far_away(space)) for _, record in faults]
    X = np.concatenate([np.stack(wild), records(space, 200)])
    X[-99:] *= 1 + 1e-12 * rng.normal(size=X[-99:].shape)  # not quite symmetric, or of length one
    with kernels(compiled):
        together = admit(space, X, 2.0**-52, origin(space))
        for i in range(len(X)):
            alone = admit(space, X[i : i + 1], 2.0**-52, origin(space))
            assert_array_equal(together.points[i], alone.points[0])
            assert together.replaced[i] == (alone.replaced is not None)
    assert together.replaced[: len(list(nowhere(space)))].all()
    assert not together.replaced[len(list(nowhere(space))) :].any()


@pytest.mark.parametrize(("name", "record"), WILD)
def test_neighbours_differ_by_the_sensitivity_at_most(name, record):
    """Exact means of neighbours, and noisy ones where equal noise is a translation in a chart."""
    space = SPACES[name]
    X = records(space)
    means = [fit(DPFrechetMean, name, data, mu=inf).mean_ for data in (X, put(X, record))]
    bound = sensitivity.frechet_mean(space, 1.0, N)
    assert space.dist(*means) <= bound * (1 + 1e-6)
    if name == "sphere":
        return
    a, b = (fit(DPFrechetMean, name, data) for data in (X, put(X, record)))
    gap = space.log_coords(origin(space), a.mean_) - space.log_coords(origin(space), b.mean_)
    row = a.privacy_.releases[0]
    assert row == b.privacy_.releases[0]
    assert np.linalg.norm(gap) <= row.sensitivity * (1 + 1e-9)


@pytest.mark.parametrize("record", [np.nan, 0.0, 1e300])
@pytest.mark.parametrize("n", [10, 60])
def test_neighbours_move_the_extrinsic_mean_by_the_sensitivity_at_most(record, n):
    """All other directions are equal, so the mean of length (n - 1)/n turns as far as it can."""
    X = np.stack([NORTH] * n)
    X[ROW] = [1.0, 0.0, 0.0]
    a, b = (
        fit(DPFrechetMean, "sphere", data, center="private", mu=1e6).center_
        for data in (X, put(X, record))
    )
    assert np.linalg.norm(a - b) <= 2 / (n - 1)


@pytest.mark.usefixtures("blind_mechanisms")
@pytest.mark.parametrize("estimator", [DPFrechetMean, DPFrechetVariance])
@pytest.mark.parametrize("name", SPACES)
def test_a_replaced_record_leaves_no_trace(estimator, name):
    """With constants in place of releases, nothing that is fitted, printed or warned differs."""
    X = records(SPACES[name])
    good = fit(estimator, name, X, mu=0.5)
    for _, record in nowhere(SPACES[name]):
        bad = fit(estimator, name, put(X, record), mu=0.5)
        assert_same_state(good, bad)
        assert str(good.privacy_) == str(bad.privacy_)


# --- what does not convert -----------------------------------------------------------------------


def with_objects(space, thing):
    X = records(space).astype(object)
    X[(ROW,) + (0,) * len(space.point_shape)] = thing
    return X


THINGS = {
    "none": None,
    "text": "secret",
    "dict": {"secret": 1},
    "complex": 1j,
    "huge": 10**400,
    "na": pd.NA,
}


@pytest.mark.parametrize("thing", THINGS)
@pytest.mark.parametrize("name", ["spd", "sphere", "euclidean"])
def test_entries_that_are_no_numbers(estimator_class, name, thing):
    space = SPACES[name]
    objects = with_objects(space, THINGS[thing])
    given = fit(estimator_class, name, put(records(space), origin(space)))
    containers = {"array": objects, "list": objects.tolist(), "arrays": list(objects)}
    if objects.ndim == 2:
        containers["frame"] = pd.DataFrame(objects)
    for container in containers.values():
        assert_same_state(fit(estimator_class, name, container), given)
        with pytest.raises((TypeError, ValueError), match=r"X must contain|Complex"):
            fit(estimator_class, name, container, invalid="raise")


def test_one_record_does_not_change_how_the_others_are_read():
    """The type of a list is that of all its records: matrices of single precision stay valid."""
    X = records(SPACES["spd"]).astype(np.float32)
    X[:, 0, 1] *= np.float32(1 + 1e-7)  # symmetric to single precision only
    DPFrechetMean("spd", radius=1.0).fit(list(X))
    plain = fit(DPFrechetMean, "spd", list(X))
    mixed = fit(DPFrechetMean, "spd", [*X[:ROW], X[ROW].astype(object), *X[ROW + 1 :]])
    assert_same_state(plain, mixed)


@pytest.mark.parametrize("X", [np.zeros((4, 2), complex), [[0.0], [0.0, 1.0]], np.zeros(3)])
def test_shape_and_type_are_public(estimator_class, X):
    with pytest.raises(ValueError, match=r"Complex|rectangular|must have shape"):
        fit(estimator_class, "euclidean", X)


# --- what stays as it was ------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "record"), NOWHERE)
def test_transform_raises(estimator_class, name, record):
    X = records(SPACES[name])
    fitted = fit(estimator_class, name, put(X, record))
    for method in ("transform", "predict", "predict_proba"):
        if hasattr(fitted, method):
            getattr(fitted, method)(X)
            with pytest.raises(ValueError, match="X must contain"):
                getattr(fitted, method)(put(X, record))


@pytest.mark.parametrize(("name", "record"), NOWHERE)
def test_fit_raises_by_default(estimator_class, name, record):
    X = put(records(SPACES[name]), record)
    with pytest.raises(ValueError, match="X must contain"):
        fit(estimator_class, name, X, invalid="raise")
    assert estimator_class("spd", radius=1.0).invalid == "raise"


@pytest.mark.parametrize("value", ["drop", None, True, ["replace"]])
def test_other_policies_are_refused(estimator_class, value):
    with pytest.raises(ValueError, match="invalid must be 'raise' or 'replace', got ") as caught:
        fit(estimator_class, "spd", records(SPACES["spd"]), invalid=value)
    assert str(caught.value).endswith(f"got {value!r}.")


def test_input_is_not_changed(estimator_class):
    X = put(records(SPACES["spd"]), np.nan)
    before = X.copy()
    X.flags.writeable = False
    fit(estimator_class, "spd", X)
    assert_array_equal(X, before)
