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
from skdpfrechet.manifolds import SPDAffineInvariant, Sphere

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


# --- steps 5 and 6 -------------------------------------------------------------------------------


def unkind_measures(radius, dim, rng, count):
    """Yield few atoms, mostly on the boundary, their weights, and a point of the ball."""
    sphere, center = Sphere(dim), np.eye(dim + 1)[-1]
    for k in rng.integers(2, 6, count):
        u = rng.standard_normal((k, dim))
        if k % 2:  # along one axis, or nearly
            u = rng.choice([-1.0, 1.0], (k, 1)) * np.eye(dim)[0] + rng.choice([1e-3, 0.1]) * u
        u *= radius / np.linalg.norm(u, axis=-1, keepdims=True)
        u *= np.where(rng.uniform(size=(k, 1)) < 0.7, 1.0, rng.uniform(size=(k, 1)))
        step = rng.standard_normal(dim)
        step *= radius * rng.uniform() ** 0.3 / np.linalg.norm(step)
        weights = rng.dirichlet(np.full(k, rng.choice([0.2, 1.0, 20.0])))
        yield sphere.exp_coords(center, u), weights, sphere.exp_coords(center, step)


@pytest.mark.parametrize("dim", [2, 5])
@pytest.mark.parametrize("radius", [0.3, 1.2, 1.5, 1.55])
def test_the_hessian_and_the_step_where_the_residual_is_small(radius, dim):
    rng, sphere, center = np.random.default_rng(dim), Sphere(dim), np.eye(dim + 1)[-1]
    seen = 0
    for x, weights, p in unkind_measures(radius, dim, rng, 25):
        for _ in range(40):
            c = sphere.log_coords(p, x)
            w = weights @ c
            residual = np.linalg.norm(w)
            if residual * tan(radius) <= 1:
                seen += 1
                parts = sphere.squared_distance_hessian(p, sphere.from_coords(p, c)) / 2
                least = np.linalg.eigvalsh(np.tensordot(weights, parts, 1))[0]
                bound = x_over_tan(radius) * (1 - residual * tan(radius))
                assert least >= bound - 1e-9
            p = sphere.exp_coords(p, w)
            assert sphere.dist(center, p) <= radius + 1e-12  # Lemma 10
    assert seen > 100


@pytest.mark.parametrize("radius", [0.3, 1.2, 1.5, 1.57])
def test_moving_back_to_the_boundary_comes_nearer_to_all(radius):
    rng, sphere, center = np.random.default_rng(0), Sphere(2), np.array([0.0, 0.0, 1.0])
    u = rng.standard_normal((2000, 2))
    u /= np.linalg.norm(u, axis=-1, keepdims=True)
    x = sphere.exp_coords(center, radius * np.sqrt(rng.uniform(size=(2000, 1))) * u)
    for h in (1e-6, 0.5 * (pi - 2 * radius), pi - 2 * radius):
        outside = sphere.exp_coords(center, np.array([radius + h, 0.0]))
        moved = sphere.project_to_ball(outside[None], center, radius)[0]
        assert (sphere.dist(moved, x) <= sphere.dist(outside, x) + 1e-14).all()


@pytest.mark.parametrize("size", [2, 3])
def test_clipping_log_eigenvalues_comes_nearer_to_all(size):
    rng, space = np.random.default_rng(0), SPDAffineInvariant(size)
    records = space.exp_coords(np.eye(size), 3 * rng.standard_normal((200, space.dim)))
    records = space.project_to_ball(records, np.eye(size), 2.5, 1.2)
    for c in 3 * rng.standard_normal((50, space.dim)):
        outside = space.exp_coords(np.eye(size), c)
        moved = space.project_to_ball(outside[None], np.eye(size), 2.5, 1.2)[0]
        assert (space.dist(moved, records) <= space.dist(outside, records) + 1e-12).all()
