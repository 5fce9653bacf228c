"""The steps of docs/sensitivity_proof.md in numbers: a guard against slips, not the proof."""

from __future__ import annotations

from math import atan2, cos, pi, sin, sqrt, tan

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog

from skdpfrechet._numerics import x_over_tan
from skdpfrechet._solvers import frechet_mean
from skdpfrechet.manifolds import Sphere

# Both ends matter: the lemmas are equalities at 0 and singular at pi.
ARGUMENTS = sorted(
    [mpmath.mpf(10) ** -k for k in range(1, 9)]
    + [mpmath.mpf(k) / 16 for k in range(2, 50)]
    + [mpmath.pi - mpmath.mpf(10) ** -k for k in range(2, 9)]
)
RADII = [1e-3, 0.1, pi / 8, 0.7, 0.9, 1.2, 1.5, 1.57, pi / 2 - 1e-6]
SHARES = [1e-3, 0.1, 0.4, 0.7, 0.9, 0.999, 1.0]  # a/r


def phi(s):
    return s / mpmath.sin(s) if s else mpmath.mpf(1)


def seen(radius, distance):
    """b: cos b = cos r / cos a, without cancellation."""
    return atan2(sqrt(max(sin(radius - distance) * sin(radius + distance), 0.0)), cos(radius))


def rim(radius, distance, count=801):
    """Half of the boundary of B as seen from p: coordinates along and across the axis e."""
    sphere, angle = Sphere(2), np.linspace(0, pi, count)
    center = np.array([0.0, 0.0, 1.0])
    p = np.array([-sin(distance), 0.0, cos(distance)])
    x = np.stack([sin(radius) * np.cos(angle), sin(radius) * np.sin(angle)], axis=-1)
    v = sphere.log(p, np.column_stack([x, np.full(count, cos(radius))]))
    axis = center - cos(distance) * p
    return v @ axis / np.linalg.norm(axis), v[:, 1]


# --- the lemmas -----------------------------------------------------------------------------------


@pytest.fixture
def digits():
    with mpmath.workdps(60):
        yield


@pytest.mark.parametrize("function", [phi, lambda s: -(s**2)], ids=["lemma 1", "lemma 2"])
def test_convex_functions_of_s_cot_s(digits, function):
    c = [s * mpmath.cot(s) for s in ARGUMENTS]
    value = [function(s) for s in ARGUMENTS]
    slope = np.diff(value) / np.diff(c)
    assert (np.diff(c) < 0).all()
    assert (np.diff(slope) < 0).all()  # c runs downwards, so the slope of a convex function does


def test_lemma_3(digits):
    for b in [mpmath.mpf(0), *ARGUMENTS]:
        for s in ARGUMENTS:
            if s > b:
                right = 2 * phi(b) * phi(s) * (mpmath.cos(b) - mpmath.cos(s))
                assert s**2 - b**2 < right
                assert s**2 - b**2 > 0.999 * right or s > 0.05  # an equality to first order


# --- step 2 --------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", SHARES[:-2])
@pytest.mark.parametrize("radius", RADII[1:-1])
def test_least_hessian_at_a_mean(radius, share):
    # All measures on a fine mesh of log_p B with mean zero: a linear program.
    distance = share * radius
    b = seen(radius, distance)
    along, across = rim(radius, distance, 401)
    # Two mirrored halves, the interior as well, and the extremal atoms: p ± b across the axis.
    scale = np.array([1.0, 0.9, 0.5, 0.1])[:, None]
    along = np.concatenate([*(scale * along), *(scale * along), [0.0, 0.0]])
    across = np.concatenate([*(scale * across), *(-scale * across), [b, -b]])
    cost = x_over_tan(np.hypot(along, across))
    solution = linprog(
        cost, A_eq=np.stack([along, across, np.ones_like(along)]), b_eq=[0.0, 0.0, 1.0]
    )
    assert solution.status == 0
    assert_allclose(solution.fun, x_over_tan(b), atol=1e-6)  # the solver's feasibility: 1e-7


def test_reflection_brings_an_outer_point_nearer():
    # Proposition 6 on S²: the tangent great circle at the ball's nearest point.
    rng, sphere, center = np.random.default_rng(0), Sphere(2), np.array([0.0, 0.0, 1.0])
    for radius in RADII[1:]:
        x = sphere.exp_coords(center, radius * sqrt(0.5) * rng.uniform(-1, 1, (500, 2)))
        for outer in np.linspace(radius, pi, 20)[1:]:
            q = np.array([sin(outer), 0.0, cos(outer)])
            normal = np.array([cos(radius), 0.0, -sin(radius)])
            image = q - 2 * (q @ normal) * normal
            assert sphere.dist(center, image) == pytest.approx(abs(outer - 2 * radius), abs=1e-7)
            assert (sphere.dist(image, x) <= sphere.dist(q, x) + 1e-12).all()


# --- step 3 --------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, *SHARES])
@pytest.mark.parametrize("radius", RADII)
def test_diameter_of_the_logarithms(radius, share):
    distance = max(share * radius, 1e-9)  # keeps the axis defined
    b = seen(radius, distance)
    along, across = rim(radius, distance)
    # Of two points at given heights along the axis the farthest are on opposite sides of it.
    gaps = np.hypot(along[:, None] - along, across[:, None] + across)
    bound = 2 * tan(radius) * x_over_tan(b)
    assert gaps.max() <= bound * (1 + 1e-9)
    assert_allclose(gaps.max(), 2 * across.max(), rtol=1e-3)  # mirror images; the mesh is finite
    if share <= 0.1:
        assert gaps.max() >= 0.98 * bound
    if share == 0:
        assert gaps.max() > 2 * radius * (1 - 1e-6)
        assert_allclose(bound, 2 * radius, rtol=1e-6)


@pytest.mark.parametrize("dim", [2, 3, 6])
def test_dimension_does_not_matter(dim):
    # Inequality (1), an equality on the boundary: the only thing the proof knows about B.
    rng, sphere, center = np.random.default_rng(dim), Sphere(dim), np.eye(dim + 1)[-1]
    for radius in RADII[:-1]:
        directions = rng.standard_normal((300, dim))
        directions *= radius / np.linalg.norm(directions, axis=-1, keepdims=True)
        x = sphere.exp_coords(center, directions)
        p = sphere.exp_coords(center, rng.uniform(size=(300, 1)) * directions[::-1])
        v = sphere.log(p, x)
        s, a = np.linalg.norm(v, axis=-1), sphere.dist(center, p)
        lean = (sphere.log(p, center) * v).sum(axis=-1) / a
        left = np.cos(a) * x_over_tan(s) + np.sin(a) * lean
        assert_allclose(left, cos(radius) / np.sinc(s / pi), rtol=1e-6, atol=1e-9)


# --- step 4 --------------------------------------------------------------------------------------


@pytest.mark.parametrize("radius", [0.1, pi / 8, 0.9, 1.2])
def test_the_factor_cannot_be_lowered(radius):
    sphere, center, half = Sphere(2), np.array([0.0, 0.0, 1.0]), 5000
    n = 2 * half + 1
    c = np.repeat([[0.0, radius], [0.0, -radius]], half, axis=0)
    both = [np.vstack([c, [[sign * radius, 0.0]]]) for sign in (1, -1)]
    points = sphere.exp_coords(center, np.stack(both))
    p, q = frechet_mean(sphere, points, center, radius=radius, tolerance=1e-13, accept=1e-11)
    gap = n * float(sphere.dist(p, q))
    assert gap == pytest.approx(2 * tan(radius), rel=1e-3)
    assert gap <= 2 * tan(radius)
