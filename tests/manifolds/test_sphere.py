"""Spheres: angles against mpmath, cut locus, rotations, holonomy."""

from __future__ import annotations

from math import pi

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skdpfrechet.manifolds import Sphere

EPS = np.finfo(float).eps


@pytest.fixture
def rng():
    return np.random.default_rng(20260518)


def unit(rng, *shape):
    x = rng.standard_normal(shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def exact_angle(p, q):
    """Angle of the very floats, their lengths divided out."""
    with mpmath.workdps(60):
        a, b = ([mpmath.mpf(float(x)) for x in v] for v in (p, q))
        dot = mpmath.fdot(a, b)
        return float(mpmath.acos(dot / mpmath.sqrt(mpmath.fdot(a, a) * mpmath.fdot(b, b))))


@pytest.mark.parametrize("dim", [1, 2, 9])
@pytest.mark.parametrize("angle", [1e-9, 1e-4, 1.0, pi / 2, 3.0, pi - 1e-4, pi - 1e-9])
def test_distance_matches_mpmath(rng, dim, angle):
    sphere = Sphere(dim)
    p = unit(rng, dim + 1)
    v = sphere.from_coords(p, angle * unit(rng, dim))
    q = sphere.exp(p, v)
    exact = exact_angle(p, q)
    assert_allclose(sphere.dist(p, q), exact, rtol=0, atol=4 * EPS)
    assert_allclose(sphere.norm(p, sphere.log(p, q)), exact, rtol=0, atol=4 * EPS)
    # One rounding of each coordinate of q, over the distance to the nearer end of the geodesic.
    turned = np.linalg.norm(sphere.log(p, q) - v)
    assert turned <= 8 * EPS * pi / min(1.0, pi - angle)


@settings(max_examples=50, deadline=None)
@given(
    x=st.lists(st.floats(-1, 1), min_size=6, max_size=6),
    closeness=st.floats(-9, 0),
    flip=st.booleans(),
)
def test_logarithm_is_tangent_and_as_long_as_the_angle(x, closeness, flip):
    sphere = Sphere(2)
    p, v = np.array(x[:3]) + np.array([0.0, 0.0, 2.5]), np.array(x[3:]) + np.array([2.5, 0.0, 0.0])
    p = p / np.linalg.norm(p)
    q = p + 10.0**closeness * v
    q = (-q if flip else q) / np.linalg.norm(q)
    log = sphere.log(p, q)
    assert abs(log @ p) <= 8 * EPS
    assert_allclose(np.linalg.norm(log), exact_angle(p, q), rtol=0, atol=8 * EPS)


def test_radii():
    sphere = Sphere(3)
    assert sphere.injectivity_radius == sphere.diameter == pi
    assert sphere.origin is None
    assert sphere.sectional_curvature_bounds == (1.0, 1.0)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_geodesics_close_up(rng, dim):
    sphere = Sphere(dim)
    p, c = unit(rng, 10, dim + 1), unit(rng, 10, dim)
    assert_allclose(sphere.exp_coords(p, pi * c), -p, atol=8 * EPS)
    assert_allclose(sphere.exp_coords(p, 2 * pi * c), p, atol=8 * EPS)
    # Beyond the injectivity radius the logarithm finds the shorter way round.
    far = sphere.exp_coords(p, (pi + 0.5) * c)
    assert_allclose(sphere.log_coords(p, far), -(pi - 0.5) * c, atol=1e-14)
    assert_allclose(sphere.dist(p, -p), pi, rtol=1e-15)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_the_antipode_of_the_centre_goes_to_one_fixed_boundary_point(rng, dim):
    sphere = Sphere(dim)
    for center in (unit(rng, dim + 1), np.eye(dim + 1)[0], -np.eye(dim + 1)[0]):
        points = np.stack([-center, center, -center])
        projected = sphere.project_to_ball(points, center, 0.4)
        assert_allclose(sphere.dist(center, projected[0]), 0.4, rtol=1e-14)
        assert_array_equal(projected[1], center)
        assert_array_equal(projected[0], projected[2])
        assert_array_equal(sphere.project_to_ball(-center, center, 0.4), projected[0])
        assert sphere.contains(projected).all()
    # Next to the antipode the direction still counts.
    p, c = unit(rng, dim + 1), unit(rng, dim)
    near = sphere.exp_coords(p, (pi - 1e-6) * c)
    moved = sphere.project_to_ball(near, p, 0.4)
    assert_allclose(sphere.log_coords(p, moved), 0.4 * c, atol=1e-9)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_the_logarithm_of_the_antipode_has_length_pi(rng, dim):
    sphere = Sphere(dim)
    p = np.stack([unit(rng, dim + 1), np.eye(dim + 1)[0], -np.eye(dim + 1)[0]])
    q = np.stack([-p, p])
    log = sphere.log(p, q)
    assert_allclose(sphere.norm(p, log), [[pi] * 3, [0] * 3], rtol=1e-15)
    assert_allclose(sphere.exp(p, log), q, atol=8 * EPS)
    assert_array_equal(sphere.log(p[0], -p[0]), log[0, 0])


@pytest.mark.parametrize("dim", [1, 2, 6])
def test_rotations_are_isometries(rng, dim):
    sphere = Sphere(dim)
    turn = np.linalg.qr(rng.standard_normal((dim + 1, dim + 1)))[0]
    p, q = unit(rng, 2, 10, dim + 1)
    v = sphere.from_coords(p, rng.standard_normal((10, dim)))
    assert_allclose(sphere.dist(p @ turn, q @ turn), sphere.dist(p, q), rtol=1e-13)
    assert_allclose(sphere.log(p @ turn, q @ turn), sphere.log(p, q) @ turn, atol=1e-12)
    assert_allclose(sphere.exp(p @ turn, v @ turn), sphere.exp(p, v) @ turn, atol=1e-13)
    assert_allclose(
        sphere.transport(p @ turn, q @ turn, v @ turn), sphere.transport(p, q, v) @ turn, atol=1e-12
    )


def test_holonomy_of_a_triangle_is_its_area():
    """Carried around an octant, of area π/2, a vector turns by a right angle (Gauss and Bonnet)."""
    sphere = Sphere(2)
    x, y, z = np.eye(3)
    carried = sphere.transport(z, x, sphere.transport(y, z, sphere.transport(x, y, y)))
    assert_allclose(carried, z, atol=4 * EPS)


@pytest.mark.parametrize("dim", [1, 2, 7])
def test_volume_density(dim):
    sphere = Sphere(dim)
    p = np.eye(dim + 1)[1]
    s = np.linspace(0.1, 3.1, 9)
    v = sphere.from_coords(p, s[:, None] * np.eye(dim)[0])
    expected = (dim - 1) * np.log(np.sin(s) / s)
    assert_allclose(sphere.log_volume_density(p, v), expected, atol=1e-12)


def test_hessian_of_the_squared_distance_has_cotangents():
    sphere = Sphere(3)
    p = np.eye(4)[2]
    s = 2.0
    hessian = sphere.squared_distance_hessian(p, sphere.from_coords(p, s * np.eye(3)[1]))
    transverse = 2 * s / np.tan(s)
    assert_allclose(hessian, np.diag([transverse, 2.0, transverse]), atol=1e-13)


def test_contains_directions_in_single_precision(rng):
    sphere = Sphere(4)
    p = unit(rng, 20, 5)
    assert sphere.contains(p.astype(np.float32)).all()
    assert not sphere.contains(1.001 * p).any()
    assert not sphere.contains(np.zeros(5))
    zero, length = (text for _, text in sphere.violations(p))
    assert "no direction" in zero
    assert "unit vectors" in length
    canonical = sphere.canonical(p.astype(np.float32).astype(float))
    assert_allclose(np.linalg.norm(canonical, axis=-1), 1.0, rtol=1e-15)
    assert_allclose(canonical, p, atol=1e-6)


def test_frames_are_good_at_both_poles_of_the_reflection():
    sphere = Sphere(3)
    for tilt in (0.0, 1e-12, 1e-8, 1e-3):
        for sign in (1.0, -1.0):
            p = sphere.canonical(np.array([sign, tilt, -tilt, 0.0]))
            frame = sphere.frame(p)
            assert_allclose(frame @ frame.T, np.eye(3), atol=4 * EPS)
            assert_allclose(frame @ p, 0.0, atol=4 * EPS)


def test_saturation_is_far_beyond_any_angle(rng):
    sphere = Sphere(2)
    p = unit(rng, 3)
    v = sphere.from_coords(p, np.array([1e5, -3e5]))
    assert_array_equal(sphere.saturate(p, v), v)
    assert sphere.norm(p, sphere.saturate(p, 1e20 * v)) <= 1e8 * (1 + EPS)
