"""Positive definite matrices: agreement with pyriemann, invariance, ill-conditioned records."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from pyriemann.geometry.distance import distance
from pyriemann.geometry.geodesic import geodesic
from pyriemann.geometry.tangentspace import (
    exp_map,
    innerproduct,
    log_map,
    tangent_space,
    transport,
    untangent_space,
)

from skdpfrechet.manifolds import SPDAffineInvariant, SPDLogCholesky, SPDLogEuclidean

EPS = np.finfo(float).eps
METRICS = {
    "riemann": SPDAffineInvariant,
    "logeuclid": SPDLogEuclidean,
    "logchol": SPDLogCholesky,
}
SIZES = [1, 2, 3, 6]


@pytest.fixture
def rng():
    return np.random.default_rng(20260517)


@pytest.fixture(params=[(m, p) for m in METRICS for p in SIZES], ids=lambda x: f"{x[0]}-{x[1]}")
def pair(request):
    metric, size = request.param
    return metric, METRICS[metric](size)


def covariances(rng, *shape, size, scale=1.0):
    """Wishart matrices of condition around 100."""
    g = rng.standard_normal((*shape, size, 3 * size + 2))
    return scale * g @ np.swapaxes(g, -1, -2) / g.shape[-1]


def symmetric(rng, *shape, size):
    g = rng.standard_normal((*shape, size, size))
    return (g + np.swapaxes(g, -1, -2)) / 2


def rotation(rng, size):
    return np.linalg.qr(rng.standard_normal((size, size)))[0]


# --- pyriemann -----------------------------------------------------------------------------------


def test_distance_agrees_with_pyriemann(pair, rng):
    metric, space = pair
    p, q = covariances(rng, 2, 10, size=space.size)
    expected = [distance(a, b, metric=metric) for a, b in zip(p, q, strict=True)]
    assert_allclose(space.dist(p, q), expected, rtol=1e-11)


def test_exponential_and_logarithm_agree_with_pyriemann(pair, rng):
    metric, space = pair
    p, points = covariances(rng, size=space.size), covariances(rng, 10, size=space.size)
    # Without these flags pyriemann leaves affine-invariant vectors whitened.
    log_flag, exp_flag = ({"C12": True}, {"Cm12": True}) if metric == "riemann" else ({}, {})
    logs = log_map(points, p, metric=metric, **log_flag)
    assert_allclose(space.log(p, points), logs, atol=1e-11)
    assert_allclose(space.exp(p, logs), exp_map(logs, p, metric=metric, **exp_flag), atol=1e-11)


def test_inner_product_agrees_with_pyriemann(pair, rng):
    metric, space = pair
    p = covariances(rng, size=space.size)
    u, v = symmetric(rng, 2, 10, size=space.size)
    expected = [innerproduct(a, b, p, metric=metric) for a, b in zip(u, v, strict=True)]
    assert_allclose(space.inner(p, u, v), expected, rtol=1e-9, atol=1e-10)


def test_transport_agrees_with_pyriemann(pair, rng):
    metric, space = pair
    p, q = covariances(rng, 2, size=space.size)
    v = symmetric(rng, 10, size=space.size)
    assert_allclose(space.transport(p, q, v), transport(v, p, q, metric=metric), atol=1e-10)


def test_geodesic_agrees_with_pyriemann(pair, rng):
    metric, space = pair
    p, q = covariances(rng, 2, size=space.size)
    c = space.log_coords(p, q)
    for t in (0.25, 0.5, 1.5):
        expected = geodesic(p, q, t, metric=metric)
        assert_allclose(space.exp_coords(p, t * c), expected, atol=1e-10)


@pytest.mark.parametrize("size", SIZES)
def test_normal_coordinates_are_the_tangent_space_of_pyriemann(rng, size):
    space = SPDAffineInvariant(size)
    p, points = covariances(rng, size=size), covariances(rng, 10, size=size)
    c = tangent_space(points, p, metric="riemann")
    assert_allclose(space.log_coords(p, points), c, atol=1e-10)
    assert_allclose(space.exp_coords(p, c), untangent_space(c, p, metric="riemann"), atol=1e-10)


@pytest.mark.parametrize("size", SIZES)
def test_log_euclidean_coordinates_at_the_identity_are_those_of_pyriemann(rng, size):
    points, eye = covariances(rng, 10, size=size), np.eye(size)
    expected = tangent_space(points, eye, metric="logeuclid")
    assert_allclose(SPDLogEuclidean(size).log_coords(eye, points), expected, atol=1e-11)


# --- closed forms and invariance -----------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_affine_invariance(rng, size):
    space = SPDAffineInvariant(size)
    p, q = covariances(rng, 2, 10, size=size)
    v = symmetric(rng, 10, size=size)
    g = rng.standard_normal((size, size)) + 2 * np.eye(size)

    def move(x):
        moved = g @ x @ g.T
        return (moved + np.swapaxes(moved, -1, -2)) / 2

    assert_allclose(space.dist(move(p), move(q)), space.dist(p, q), rtol=1e-10)
    assert_allclose(space.log(move(p), move(q)), move(space.log(p, q)), atol=1e-8)
    assert_allclose(
        space.transport(move(p), move(q), move(v)), move(space.transport(p, q, v)), atol=1e-8
    )
    assert_allclose(space.dist(np.linalg.inv(p), np.linalg.inv(q)), space.dist(p, q), rtol=1e-10)


@settings(max_examples=30, deadline=None)
@given(a=st.floats(-6, 6), b=st.floats(-6, 6), angle=st.floats(0, 3.2))
def test_distance_to_the_identity_is_the_norm_of_the_logarithm(a, b, angle):
    cos, sin = np.cos(angle), np.sin(angle)
    turn = np.array([[cos, -sin], [sin, cos]])
    point = turn @ np.diag(np.exp([a, b])) @ turn.T
    point = (point + point.T) / 2
    # A matrix of condition κ, rounded entrywise, moves its smallest log-eigenvalue by κ ε.
    tolerance = 20 * EPS * np.exp(abs(a - b)) + 1e-14
    for space in (SPDAffineInvariant(2), SPDLogEuclidean(2)):
        assert_allclose(space.dist(np.eye(2), point), np.hypot(a, b), rtol=0, atol=tolerance)


def test_log_cholesky_distance_of_explicit_factors():
    left, right = np.array([[2.0, 0.0], [1.0, 3.0]]), np.array([[1.0, 0.0], [-2.0, 0.5]])
    expected = np.sqrt(3.0**2 + np.log(2.0) ** 2 + np.log(6.0) ** 2)
    assert_allclose(SPDLogCholesky(2).dist(left @ left.T, right @ right.T), expected, rtol=1e-14)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_the_lower_bound_of_the_curvature_is_attained(rng, size):
    space = SPDAffineInvariant(size)
    p = covariances(rng, size=size)
    unit = np.zeros((size, size))
    unit[0, 0], unit[1, 1] = np.sqrt(0.5), -np.sqrt(0.5)
    q = rotation(rng, size)
    c = space.coords(np.eye(size), q @ unit @ q.T)
    kappa, _ = space.curvature_frame(p, space.from_coords(p, c))
    assert_allclose(kappa.min(), space.sectional_curvature_bounds[0], rtol=1e-11)
    # A multiple of the identity spans only flat planes.
    flat, _ = space.curvature_frame(p, 3 * p)
    assert_allclose(flat, 0.0, atol=1e-12)


# --- ill-conditioned and tiny matrices -----------------------------------------------------------


@pytest.mark.parametrize("size", [2, 3, 6])
@pytest.mark.parametrize("kind", METRICS.values(), ids=METRICS.keys())
def test_condition_1e12(rng, size, kind):
    space = kind(size)
    q = rotation(rng, size)
    logs = np.linspace(-np.log(1e12), 0, size)
    point = q @ np.diag(np.exp(logs)) @ q.T
    point = (point + point.T) / 2
    assert space.contains(point)
    eye = np.eye(size)
    back = space.exp_coords(eye, space.log_coords(eye, point))
    # Log and exp are backward stable: the matrix comes back to ε |log| relative to its norm,
    # although κ ε = 2e-4 is the accuracy of its smallest eigenvalue.
    assert_allclose(back, point, rtol=0, atol=200 * EPS)
    if kind is not SPDLogCholesky:
        assert_allclose(space.dist(eye, point), np.linalg.norm(logs), rtol=0, atol=4e-4)
        graded = np.diag(np.exp(logs))
        assert_allclose(space.dist(eye, graded), np.linalg.norm(logs), rtol=1e-14)


@pytest.mark.parametrize("size", [2, 4])
def test_squared_volts_are_as_good_as_any_unit(rng, size):
    """EEG covariances in V² have entries around 1e-12: nothing depends on the unit."""
    p, q = covariances(rng, 2, 10, size=size)
    tiny = 1e-12
    for kind in METRICS.values():
        space = kind(size)
        assert space.contains(tiny * p).all()
        again = space.exp(tiny * p, space.log(tiny * p, tiny * q))
        assert_allclose(again, tiny * q, rtol=0, atol=1e-24)
        center = tiny * p[0]
        projected = space.project_to_ball(tiny * q, center, 0.5)
        assert space.contains(projected).all()
        assert (space.dist(center, projected) <= 0.5 + 1e-12).all()
    affine, log_euclidean = SPDAffineInvariant(size), SPDLogEuclidean(size)
    assert_allclose(
        affine.log_coords(tiny * p, tiny * q), affine.log_coords(p, q), rtol=0, atol=1e-12
    )
    assert_allclose(affine.dist(tiny * p, tiny * q), affine.dist(p, q), rtol=1e-12)
    assert_allclose(log_euclidean.dist(tiny * p, tiny * q), log_euclidean.dist(p, q), rtol=1e-12)


def test_positive_definiteness_does_not_depend_on_units(rng):
    space = SPDAffineInvariant(4)
    points = covariances(rng, 20, size=4)
    units = np.array([1.0, 1e-9, 1e6, 1e-3])
    assert space.contains(points * units[:, None] * units).all()


def test_membership_of_a_matrix_does_not_depend_on_its_neighbours():
    space = SPDAffineInvariant(2)
    # Accepted by its pivot, 12 ε, although its smallest eigenvalue is only 6 ε.
    off = 1 - 6 * EPS
    borderline = np.array([[1.0, off], [off, 1.0]])
    assert space.contains(borderline)
    batch = np.stack([borderline, np.ones((2, 2)), -np.eye(2), borderline])
    assert_array_equal(space.contains(batch), [True, False, False, True])


def test_symmetry_is_judged_at_the_precision_of_the_input(rng):
    space = SPDAffineInvariant(3)
    points = covariances(rng, size=3)
    points[0, 1] *= 1 + 2e-7  # float32 rounding
    strict, _ = (mask for mask, _ in space.violations(points))
    single, _ = (mask for mask, _ in space.violations(points, epsilon=2.0**-23))
    assert strict
    assert not single


@pytest.mark.parametrize("kind", METRICS.values(), ids=METRICS.keys())
def test_contains_refuses_matrices_off_the_cone(rng, kind):
    space = kind(3)
    good = covariances(rng, size=3)
    few = rng.standard_normal((3, 2))
    asymmetric = good.copy()
    asymmetric[0, 1] += 1e-6
    nearly = good.copy()
    nearly[0, 1] += 1e-12
    points = np.stack([good, few @ few.T, -good, np.zeros((3, 3)), asymmetric, nearly])
    assert_array_equal(space.contains(points), [True, False, False, False, False, True])
    assert not space.contains(np.diag([1.0, 1.0, -1e-3]))
    assert not space.contains(np.ones((3, 3)))
    requirements = [text for _, text in space.violations(points)]
    assert "symmetric" in requirements[0]
    assert "shrinkage" in requirements[1]
    assert_array_equal(space.canonical(nearly), space.canonical(nearly).T)


# --- balls ---------------------------------------------------------------------------------------


def test_log_cap_clips_eigenvalues_before_the_radius(rng):
    space = SPDAffineInvariant(2)
    q = rotation(rng, 2)

    def at(*logs):
        point = q @ np.diag(np.exp(logs)) @ q.T
        return (point + point.T) / 2

    def logs_of(point):
        return np.sort(np.log(np.linalg.eigvalsh(point)))

    eye = np.eye(2)
    capped = space.project_to_ball(at(8.0, -8.0), eye, 20.0, log_cap=6.0)
    assert_allclose(logs_of(capped), [-6.0, 6.0], atol=1e-8)
    one = space.project_to_ball(at(8.0, -1.0), eye, 20.0, log_cap=6.0)
    assert_allclose(logs_of(one), [-1.0, 6.0], atol=1e-8)
    both = space.project_to_ball(at(9.0, -12.0), eye, 3.0, log_cap=6.0)
    assert_allclose(logs_of(both), 3.0 * np.array([-1.0, 1.0]) / np.sqrt(2), atol=1e-4)
    inside = at(2.0, -3.0)
    assert_array_equal(space.project_to_ball(inside, eye, 20.0, log_cap=6.0), inside)
    # Relative to the centre.
    root = np.diag([1e-3, 5.0])
    moved = space.project_to_ball(root @ at(8.0, -8.0) @ root, root @ root, 20.0, log_cap=6.0)
    white = np.diag(1 / np.diag(root)) @ moved @ np.diag(1 / np.diag(root))
    assert_allclose(logs_of(white), [-6.0, 6.0], atol=1e-7)


BAD = {
    "zero": np.zeros((3, 3)),
    "rank one": np.ones((3, 3)),
    "negative": -np.eye(3),
    "indefinite": np.diag([1.0, 1.0, -1.0]),
    "huge": 1e300 * np.eye(3),
    "tiny": 1e-300 * np.eye(3),
    "subnormal": 1e-310 * np.ones((3, 3)),
    "overflowing": np.full((3, 3), 1.7e308),
    "nan": np.full((3, 3), np.nan),
    "one nan": np.where(np.eye(3) > 0, [1.0, np.nan, 1.0], 0.0),
    "inf": np.full((3, 3), np.inf),
    "one inf": np.diag([1.0, np.inf, 1.0]),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize("kind", METRICS.values(), ids=METRICS.keys())
@pytest.mark.parametrize("radius", [0.5, 5.0])
def test_any_record_lands_in_the_ball(rng, kind, bad, radius):
    space = kind(3)
    # A log-Cholesky unit is one unit of the off-diagonal entries, whatever the scale: around a tiny
    # centre the ball consists of nearly singular matrices.
    scale = 1.0 if kind is SPDLogCholesky else 1e-12
    for center in (np.eye(3), covariances(rng, size=3), covariances(rng, size=3, scale=scale)):
        good = space.exp_coords(center, 0.1 * rng.standard_normal((2, 6)))
        projected = space.project_to_ball(np.stack([good[0], bad, good[1]]), center, radius)
        assert space.contains(projected).all()
        assert (space.dist(center, projected) <= radius + 1e-9).all()
        assert_array_equal(projected[[0, 2]], good)
        assert_array_equal(space.project_to_ball(bad, center, radius), projected[1])


def test_saturation_caps_log_eigenvalues(rng):
    space = SPDAffineInvariant(3)
    q = rotation(rng, 3)
    v = q @ np.diag([100.0, 1.0, -14.0]) @ q.T
    expected = q @ np.diag([15.0, 1.0, -14.0]) @ q.T
    assert_allclose(space.saturate(np.eye(3), (v + v.T) / 2), expected, atol=1e-12)


@pytest.mark.parametrize("kind", [SPDAffineInvariant, SPDLogEuclidean])
def test_logarithm_where_an_eigenvalue_is_beyond_float64(kind):
    """All entries are below 1.7e308, the largest eigenvalue is 2.6e308; the other record stays."""
    space, shape = kind(3), np.full((3, 3), 0.8) + 0.2 * np.eye(3)
    both = np.stack([1e308 * shape, shape])
    c = space.log_coords(np.eye(3), both)
    assert_array_equal(c[1], space.log_coords(np.eye(3), shape[None])[0])
    expected = c[1] + 308 * np.log(10) * space.log_coords(np.eye(3), np.e * np.eye(3))
    assert_allclose(c[0], expected, rtol=1e-12)


def test_logarithm_where_the_whitened_matrix_is_beyond_float64(rng):
    space, x = SPDAffineInvariant(3), covariances(rng, size=3)
    p = 1e-9 * covariances(rng, size=3)
    with np.errstate(all="ignore"):
        c = space.log_coords(p, np.stack([1e303 * x, x]))
        v = space.log(p, np.stack([1e303 * x, x]))
    assert_array_equal(c[1], space.log_coords(p, x[None])[0])
    expected = c[1] + 303 * np.log(10) * space.log_coords(np.eye(3), np.e * np.eye(3))
    assert_allclose(c[0], expected, rtol=1e-11)
    assert_allclose(space.coords(p, v[0]), expected, rtol=1e-9)


def test_log_cholesky_of_a_matrix_that_rounding_made_indefinite(rng):
    space, x = SPDLogCholesky(12), rng.standard_normal((12, 11))
    singular = (x @ x.T + (x @ x.T).T) / 2
    w, q = np.linalg.eigh(singular)
    w[0] = -1e-16 * w[-1]  # what positive eigenvalues may look like after a congruence
    broken = (q * w) @ q.T
    both = np.stack([(broken + broken.T) / 2, covariances(rng, size=12)])
    c = space.chart(both)
    assert np.isfinite(c).all()
    assert_array_equal(c[1], space.chart(both[1:])[0])
    assert_allclose(space.chart_inverse(c)[0], both[0], atol=1e-9 * w[-1])
    assert np.isfinite(space.chart(both[0])).all()
