"""Moments at a base point: the range of the coordinates is enforced whatever the records do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from skdpfrechet._solvers import local_coordinates, second_moment
from skdpfrechet.manifolds import (
    Euclidean,
    Hyperbolic,
    SPDAffineInvariant,
    SPDLogCholesky,
    SPDLogEuclidean,
    Sphere,
)

EPS = np.finfo(float).eps
SPACES = [
    Euclidean(1),
    Euclidean(3),
    Sphere(1),
    Sphere(4),
    Hyperbolic(1),
    Hyperbolic(3),
    SPDAffineInvariant(1),
    SPDAffineInvariant(2),
    SPDAffineInvariant(4),
    SPDLogEuclidean(3),
    SPDLogCholesky(3),
]


@pytest.fixture(params=SPACES, ids=repr)
def space(request):
    return request.param


@pytest.fixture
def rng():
    return np.random.default_rng(20260521)


def directions(rng, *shape):
    x = rng.standard_normal(shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def some_point(space, rng):
    if space.origin is None:
        return directions(rng, *space.point_shape)
    return space.exp_coords(space.origin, 0.5 * directions(rng, space.dim))


def check_range(c, middle, radius):
    """Within the ball, up to the rounding of the addition of the middle."""
    length = np.linalg.norm(c - middle, axis=-1)
    assert (length <= radius * (1 + 8 * EPS) + 4 * EPS * np.linalg.norm(middle)).all()


def test_records_of_the_ball_keep_their_coordinates(space, rng):
    base, radius = some_point(space, rng), 0.8
    center = space.exp_coords(base, 0.6 * directions(rng, space.dim))
    lengths = radius * rng.uniform(0, 0.999, (50, 1))
    points = space.exp_coords(center, lengths * directions(rng, 50, space.dim))
    if np.isinf(space.injectivity_radius):
        # Hadamard: |log_b X - log_b m0| ≤ ρ(X, m0), nothing is clipped.
        middle = space.log_coords(base, center)
        c = local_coordinates(space, base, points, middle, radius)
    else:
        middle = np.zeros(space.dim)
        c = local_coordinates(space, base, points, middle, 1.4)
    assert_allclose(c, space.log_coords(base, points), rtol=0, atol=1e-14)


def test_every_row_is_in_the_ball(space, rng):
    base = some_point(space, rng)
    points = space.exp_coords(base, 2.5 * directions(rng, 50, space.dim))
    for middle in (np.zeros(space.dim), 0.7 * directions(rng, space.dim)):
        for radius in (1e-9, 0.3, 1.0):
            c = local_coordinates(space, base, points, middle, radius)
            assert c.shape == (50, space.dim)
            check_range(c, middle, radius)
            # Clipped along the ray from the middle.
            ray = space.log_coords(base, points) - middle
            cosines = ((c - middle) * ray).sum(-1) / np.linalg.norm(ray, axis=-1) / radius
            assert_allclose(cosines, 1.0, atol=1e-6)


@pytest.mark.parametrize(
    "bad", [np.nan, np.inf, -np.inf, 0.0, 1.0, -1.0, 1e155, 1e200, 1e308, -1e308, 1e-310]
)
def test_records_that_break_their_logarithm_stay_in_the_ball(space, rng, bad):
    base = some_point(space, rng)
    middle = 0.4 * directions(rng, space.dim)
    points = space.exp_coords(base, 0.3 * directions(rng, 5, space.dim))
    damaged = points.copy()
    damaged[1] = bad
    damaged[3].flat[-1] = bad
    c = local_coordinates(space, base, damaged, middle, 1.0)
    check_range(c, middle, 1.0)
    others = [0, 2, 4]
    clean = local_coordinates(space, base, points, middle, 1.0)
    assert_allclose(c[others], clean[others], rtol=0, atol=1e-14)
    if np.isnan(bad):
        assert_array_equal(c[1], middle)


@settings(max_examples=60, deadline=None)
@given(points=arrays(float, (4, 2, 2)), radius=st.floats(1e-3, 10))
def test_any_matrices_of_floats_stay_in_the_ball(points, radius):
    middle = np.array([0.3, -0.2, 0.1])
    for space in (SPDAffineInvariant(2), SPDLogEuclidean(2), SPDLogCholesky(2)):
        c = local_coordinates(space, np.eye(2), points, middle, radius)
        check_range(c, middle, radius)


@settings(max_examples=60, deadline=None)
@given(points=arrays(float, (4, 3)), radius=st.floats(1e-3, 3))
def test_any_vectors_of_floats_stay_in_the_ball(points, radius):
    for space in (Euclidean(3), Sphere(2), Hyperbolic(2)):
        base = np.array([1.0, 0.0, 0.0])
        middle = np.full(space.dim, 0.1)
        check_range(local_coordinates(space, base, points, middle, radius), middle, radius)


def test_second_moment_is_the_average_of_outer_products(rng):
    c = rng.standard_normal((7, 3))
    expected = sum(np.outer(x, x) for x in c) / 7
    moment = second_moment(c)
    assert_allclose(moment, expected, atol=1e-15)
    assert_allclose(np.trace(moment), (c * c).sum() / 7, rtol=1e-14)
    # Uncentred: a constant sample has a second moment.
    assert_allclose(second_moment(np.ones((4, 2))), np.ones((2, 2)), rtol=1e-15)
    assert_allclose(second_moment(c[:1]), np.outer(c[0], c[0]), rtol=1e-15)


def test_second_moment_is_batched_and_positive(rng):
    c = rng.standard_normal((2, 5, 7, 3))
    moment = second_moment(c)
    assert moment.shape == (2, 5, 3, 3)
    assert_allclose(moment[1, 2], second_moment(c[1, 2]), atol=1e-15)
    assert (np.linalg.eigvalsh(moment) > -1e-15).all()


def test_second_moment_has_the_sensitivity_it_is_released_with(rng):
    """Replacing one of n rows of length R moves S by at most √2 R²/n in Frobenius norm."""
    n, length = 6, 1.7
    largest = 0.0
    for _ in range(200):
        c = length * directions(rng, n, 3)
        other = c.copy()
        other[0] = length * directions(rng, 3)
        largest = max(largest, np.linalg.norm(second_moment(c) - second_moment(other)))
    other[0] = np.cross(c[0], c[1])
    other[0] *= length / np.linalg.norm(other[0])  # orthogonal rows attain the bound
    attained = np.linalg.norm(second_moment(np.r_[c[:1], c[1:]]) - second_moment(other))
    bound = np.sqrt(2) * length**2 / n
    assert largest <= bound * (1 + 1e-12)
    assert_allclose(attained, bound, rtol=1e-12)
