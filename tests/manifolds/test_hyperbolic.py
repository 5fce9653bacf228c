"""Hyperbolic space: distances against mpmath, trigonometry, the edge of float64."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skdpfrechet.manifolds import Hyperbolic

EPS = np.finfo(float).eps


@pytest.fixture
def rng():
    return np.random.default_rng(20260519)


def directions(rng, *shape):
    x = rng.standard_normal(shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def lift(p):
    """Space part as mpmath numbers, with the exact time part."""
    x = [mpmath.mpf(float(a)) for a in p[1:]]
    return mpmath.sqrt(1 + mpmath.fdot(x, x)), x


def lorentz_distance(p, q):
    with mpmath.workdps(60):
        (p0, x), (q0, y) = lift(p), lift(q)
        return float(mpmath.acosh(max(p0 * q0 - mpmath.fdot(x, y), mpmath.mpf(1))))


def poincare_distance(p, q):
    """arccosh(1 + 2|a - b|²/((1 - |a|²)(1 - |b|²))) for a, b in the unit ball."""
    with mpmath.workdps(60):
        a, b = ([c / (1 + t) for c in x] for t, x in (lift(p), lift(q)))
        gap = [s - t for s, t in zip(a, b, strict=True)]
        ratio = mpmath.fdot(gap, gap) / (1 - mpmath.fdot(a, a)) / (1 - mpmath.fdot(b, b))
        return float(mpmath.acosh(1 + 2 * ratio))


@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("base", [0.0, 1.0, 4.0, 8.0])
@pytest.mark.parametrize("length", [1e-9, 1e-4, 1.0, 4.0, 8.0])
def test_distance_matches_mpmath(rng, dim, base, length):
    space = Hyperbolic(dim)
    p = space.exp_coords(space.origin, base * directions(rng, 10, dim))
    q = space.exp_coords(p, length * directions(rng, 10, dim))
    # The boost subtracts products of entries, cosh(base) times cosh of the far point's distance
    # to the origin: y = sinh(d) carries that error times ε, and d carries it over cosh(d).
    error = 8 * EPS * (np.cosh(base) * q[:, 0] / np.cosh(length) + length)
    for a, b, seen, tolerance in zip(p, q, space.dist(p, q), error, strict=True):
        exact = lorentz_distance(a, b)
        assert abs(seen - exact) <= tolerance
        assert_allclose(poincare_distance(a, b), exact, rtol=1e-12)


@settings(max_examples=50, deadline=None)
@given(a=st.floats(1e-6, 6), b=st.floats(1e-6, 6), angle=st.floats(0, 3.2))
def test_hyperbolic_law_of_cosines(a, b, angle):
    space = Hyperbolic(2)
    p = space.exp_coords(space.origin, np.array([0.3, -0.5]))
    q = space.exp_coords(p, np.array([a, 0.0]))
    x = space.exp_coords(p, b * np.array([np.cos(angle), np.sin(angle)]))
    # cosh c - 1 = 2 sinh²(c/2) and its half-angle form do not cancel.
    half = np.sinh((a - b) / 2) ** 2 + np.sinh(a) * np.sinh(b) * np.sin(angle / 2) ** 2
    expected = 2 * np.arcsinh(np.sqrt(half))
    scale = np.exp(a + b)  # amplification by the entries of q and x, as above
    assert_allclose(space.dist(q, x), expected, rtol=0, atol=50 * EPS * scale)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_lorentz_transformations_are_isometries(rng, dim):
    space = Hyperbolic(dim)
    turn = np.eye(dim + 1)
    turn[1:, 1:] = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    boost = np.eye(dim + 1)
    boost[:2, :2] = [[np.cosh(0.8), np.sinh(0.8)], [np.sinh(0.8), np.cosh(0.8)]]
    move = turn @ boost
    p, q = space.exp_coords(space.origin, directions(rng, 2, 10, dim))
    v = space.from_coords(p, rng.standard_normal((10, dim)))
    assert_allclose(space.dist(p @ move, q @ move), space.dist(p, q), rtol=1e-12, atol=1e-14)
    assert_allclose(space.log(p @ move, q @ move), space.log(p, q) @ move, atol=1e-12)
    assert_allclose(space.exp(p @ move, v @ move), space.exp(p, v) @ move, rtol=1e-11)
    assert_allclose(
        space.transport(p @ move, q @ move, v @ move), space.transport(p, q, v) @ move, atol=1e-11
    )


def test_holonomy_of_a_triangle_is_minus_its_area(rng):
    """Carried around a triangle a vector turns by the angle defect (Gauss and Bonnet)."""
    space = Hyperbolic(2)
    p, q, x = space.exp_coords(space.origin, 1.5 * directions(rng, 3, 2))

    def angle(at, one, other):
        u, v = space.log_coords(at, one), space.log_coords(at, other)
        return np.arccos(u @ v / np.linalg.norm(u) / np.linalg.norm(v))

    area = np.pi - angle(p, q, x) - angle(q, p, x) - angle(x, p, q)
    v = space.from_coords(p, np.array([1.0, 0.0]))
    carried = space.transport(x, p, space.transport(q, x, space.transport(p, q, v)))
    turned = space.coords(p, carried)
    assert_allclose(np.hypot(*turned), 1.0, rtol=1e-12)
    assert_allclose(np.abs(np.arctan2(turned[1], turned[0])), area, rtol=1e-10)


def test_hessian_of_the_squared_distance_has_hyperbolic_cotangents():
    space = Hyperbolic(3)
    s = 2.0
    v = space.from_coords(space.origin, s * np.eye(3)[1])
    hessian = space.squared_distance_hessian(space.origin, v)
    transverse = 2 * s / np.tanh(s)
    assert_allclose(hessian, np.diag([transverse, 2.0, transverse]), atol=1e-13)
    density = space.log_volume_density(space.origin, v)
    assert_allclose(density, 2 * np.log(np.sinh(s) / s), rtol=1e-13)


def test_contains_the_upper_sheet_alone(rng):
    space = Hyperbolic(2)
    p = space.exp_coords(space.origin, 3 * directions(rng, 10, 2))
    assert space.contains(p).all()
    assert not space.contains(-p).any()
    assert not space.contains(p * np.array([-1.0, 1.0, 1.0])).any()
    assert not space.contains(1.001 * p).any()
    assert not space.contains(np.zeros(3))
    assert not space.contains(np.full(3, 1e200))


def test_canonical_points_satisfy_the_equation(rng):
    space = Hyperbolic(3)
    p = space.exp_coords(space.origin, 2 * directions(rng, 10, 3)).astype(np.float32)
    canonical = space.canonical(p.astype(float))
    assert_allclose(space.inner(canonical, canonical, canonical), -1.0, rtol=1e-14)
    assert_array_equal(canonical[:, 1:], p[:, 1:])


@pytest.mark.parametrize("length", [17.0, 100.0, 350.0])
def test_distant_records_are_projected(rng, length):
    space = Hyperbolic(2)
    center = space.exp_coords(space.origin, np.array([0.6, -0.2]))
    u = directions(rng, 10, 2)
    points = space.exp_coords(space.origin, length * u)
    projected = space.project_to_ball(points, center, 2.0)
    assert_allclose(space.dist(center, projected), 2.0, rtol=1e-12)
    from_origin = space.project_to_ball(points, space.origin, 2.0)
    assert_allclose(space.log_coords(space.origin, from_origin), 2.0 * u, atol=1e-12)


def test_saturation_shortens_to_a_distance_that_float64_holds(rng):
    space = Hyperbolic(2)
    p = space.exp_coords(space.origin, np.array([1.0, 2.0]))
    u = directions(rng, 10, 2)
    short = space.from_coords(p, 16.0 * u)
    assert_allclose(space.saturate(p, short), short, rtol=1e-12)
    long = space.saturate(p, space.from_coords(p, 1e3 * u))
    assert_allclose(space.coords(p, long), 17.0 * u, rtol=1e-11)
