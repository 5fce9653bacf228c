"""Sensitivities against pairs of neighbours that attain them, written down, not searched for.

Each is quick and holds to the last digits, so that no number in a formula can change unnoticed.
"""

from __future__ import annotations

from math import cos, exp, inf, pi, sqrt, tan, tanh
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import quad

from skdpfrechet import sensitivity
from skdpfrechet.manifolds import Euclidean, Hyperbolic, SPDAffineInvariant, SPDLogEuclidean, Sphere

EPS = np.finfo(float).eps
ROOM = 1 + 2.0**-35  # by how much a bound may be rounded up
EXACT = {"rel": 1e-12, "abs": 0.0}
RADII = [0.05, 0.4, 0.6, 0.77, 1.2, 1.5]


def curved(kappa, dim=3, injectivity_radius=None):
    """A sphere of curvature κ, as far as sensitivities look at it."""
    radius = pi / sqrt(kappa)
    return SimpleNamespace(
        dim=dim,
        sectional_curvature_bounds=(0.0, kappa),
        injectivity_radius=radius if injectivity_radius is None else injectivity_radius,
        diameter=radius,
    )


def perpendicular(dim, radius):
    """Four vectors at a right angle to the first axis, two each way."""
    return radius * np.array([1.0, -1.0, 1.0, -1.0])[:, None] * np.eye(dim)[-1]


# --- the mean -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kappa", [0.09, 1.0, 4.0])
def test_scaled_spheres_have_scaled_bounds(kappa):
    root, space, unit = sqrt(kappa), curved(kappa), curved(1.0)
    assert sensitivity.radius_limit(space) * root == pytest.approx(pi / 2, **EXACT)
    assert sensitivity.radius_limit_paper(space) * root == pytest.approx(pi / 4, **EXACT)
    for n in (1, 7):
        for r in (0.3, 0.7):
            for bound in (sensitivity.frechet_mean, sensitivity.frechet_mean_paper):
                assert bound(space, r / root, n) * root == pytest.approx(bound(unit, r, n), **EXACT)
    for r in RADII:
        for g in (1e-6, 0.9 / tan(r)):
            far = sensitivity.distance_to_mean(unit, r, g)
            scaled = sensitivity.distance_to_mean(space, r / root, g / root)
            assert scaled * root == pytest.approx(far, **EXACT)


def test_a_short_closed_geodesic_limits_the_radius():
    # A flat cylinder, or a projective plane: the injectivity radius is smaller than π/√κ.
    assert sensitivity.radius_limit(curved(1.0, injectivity_radius=pi / 2)) == pi / 4
    assert sensitivity.radius_limit(curved(1e-300, injectivity_radius=3.0)) == 1.5
    assert sensitivity.radius_limit_paper(curved(1.0, injectivity_radius=0.5)) == 0.25


def test_curvature_alone_limits_the_radius():
    # A paraboloid has no closed geodesic; flat and negatively curved spaces have no limit.
    paraboloid = curved(0.25, injectivity_radius=inf)
    assert sensitivity.radius_limit(paraboloid) == pi
    assert sensitivity.radius_limit_paper(paraboloid) == pi / 2
    for space in (Euclidean(2), Hyperbolic(2), SPDAffineInvariant(2)):
        assert sensitivity.radius_limit(space) == inf
        assert sensitivity.radius_limit_paper(space) == inf


def test_a_line_is_not_curved():
    assert sensitivity.frechet_mean(curved(1.0, dim=1), 0.5, 10) == 0.1


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("dim", [2, 4])
def test_mean_of_many_records_attains_its_bound(dim, radius):
    # The mean moves by H⁻¹ (log x' - log x)/n; x and x' at the ends of a diameter, the others at a
    # right angle to it, where the squared distance is least convex.
    sphere, n, m0 = Sphere(dim), 10**9, np.eye(dim + 1)[0]
    others = perpendicular(dim, radius)
    hessian = sphere.mean_squared_distance_hessian(m0, others) / 2
    moved = np.linalg.solve(hessian, 2 * radius / n * np.eye(dim)[0])
    bound = sensitivity.frechet_mean(sphere, radius, n)
    assert np.linalg.norm(moved) == pytest.approx(bound, rel=1e-10, abs=0.0)


@pytest.mark.parametrize("radius", RADII)
def test_mean_of_one_record_attains_the_diameter_of_the_ball(radius):
    assert sensitivity.frechet_mean(Sphere(2), radius, 1) == 2 * radius
    assert sensitivity.frechet_mean(Euclidean(2), radius, 1) == 2 * radius


@pytest.mark.parametrize("bound", [sensitivity.frechet_mean, sensitivity.frechet_mean_paper])
@pytest.mark.parametrize("space", [Euclidean(3), Sphere(1), Hyperbolic(2), SPDAffineInvariant(2)])
def test_mean_on_a_line_attains_its_bound(bound, space):
    line = np.array([-0.7, 0.1, 0.2, 0.3])
    moved = np.r_[0.7, line[1:]].mean() - line.mean()
    assert bound(space, 0.7, 4) == pytest.approx(moved, **EXACT)


@pytest.mark.parametrize("radius", [0.1, 0.4, 0.75])
def test_printed_mean(radius):
    # Reimherr, Bharath, Soto (2021), Theorem 2: 2r(2 - h)/(nh), h = 2r√κ cot(2r√κ).
    h = 2 * radius / tan(2 * radius)
    expected = 2 * radius * (2 - h) / (5 * h)
    assert sensitivity.frechet_mean_paper(Sphere(3), radius, 5) == pytest.approx(expected, **EXACT)


def test_the_limits_themselves_are_refused():
    for bound, limit in [
        (sensitivity.frechet_mean, pi / 2),
        (sensitivity.frechet_mean_paper, pi / 4),
    ]:
        with pytest.raises(ValueError, match="radius must be below"):
            bound(Sphere(2), limit, 10)
        assert bound(Sphere(2), limit * (1 - 1e-9), 10) > 0


@pytest.mark.parametrize("share", [1e-6, 0.3, 0.99])
@pytest.mark.parametrize("radius", RADII)
def test_distance_to_the_mean_is_the_longest_way_that_a_shrinking_residual_allows(radius, share):
    # The residual γ shrinks at the rate λ(γ) along the flow to the mean, so the way is ∫ dγ/λ(γ).
    residual = share / tan(radius)

    def slowness(gamma):
        return 1 / (radius / tan(radius) * (1 - gamma * tan(radius)))

    way = quad(slowness, 0.0, residual, epsabs=0.0, epsrel=1e-11)[0]
    found = sensitivity.distance_to_mean(Sphere(2), radius, residual)
    assert found == pytest.approx(way, rel=1e-9)
    assert sensitivity.distance_to_mean(Sphere(2), radius, 1.01 / tan(radius)) == inf
    assert sensitivity.distance_to_mean(SPDAffineInvariant(3), radius, residual) == residual
    assert sensitivity.distance_to_mean(Sphere(1), radius, residual) == residual


@pytest.mark.parametrize("size", [2, 5])
@pytest.mark.parametrize("n", [1, 30, 10**6, 10**15])
@pytest.mark.parametrize("radius", [0.01, 2.0, 40.0])
def test_log_cap_leaves_an_error_of_a_hundredth_of_the_sensitivity(size, n, radius):
    space = SPDAffineInvariant(size)
    cap = sensitivity.float_log_cap(space, radius, n)
    share = 4 * size * EPS * exp(4 * cap) / min(sensitivity.frechet_mean(space, radius, n), 10.0)
    assert cap == 1.0 or share == pytest.approx(0.01, rel=1e-9)
    assert cap >= 1.0
    assert cap > 1.0 or share >= 0.01
    assert sensitivity.float_log_cap(SPDLogEuclidean(size), radius, n) == inf


@pytest.mark.parametrize("dim", [2, 7])
@pytest.mark.parametrize("n", [1, 1000, 10**5])
def test_at_the_radius_limit_an_error_is_a_hundredth_of_the_sensitivity(dim, n):
    space = Hyperbolic(dim)
    limit = sensitivity.float_radius_limit(space, n)
    boost = (dim + 1) * EPS * exp(2 * limit)
    assert boost == pytest.approx(sensitivity.frechet_mean(space, limit, n) / 100, rel=1e-9)
    assert limit > 1.0
    assert sensitivity.float_radius_limit(space, 10**15) == 1.0
    assert sensitivity.float_radius_limit(Euclidean(dim), n) == inf


# --- chords and grids ---------------------------------------------------------------------------


@pytest.mark.parametrize("distance", [0.0, 0.3, 1.0, 3.0, pi, 5.0])
def test_chord_joins_points_at_that_distance(distance):
    q = Sphere(2).exp_coords(np.eye(3)[0], np.array([min(distance, pi), 0.0]))
    chord = np.linalg.norm(q - np.eye(3)[0])
    assert sensitivity.sphere_chord(distance) == pytest.approx(chord, rel=1e-12, abs=1e-15)


def test_opposite_unit_vectors():
    x = np.eye(3)
    moved = np.linalg.norm(np.r_[-x[:1], x[1:]].mean(axis=0) - x.mean(axis=0))
    assert sensitivity.extrinsic_mean(3) == pytest.approx(moved, **EXACT)


@pytest.mark.parametrize("entries", [1, 3, 40])
def test_rounding_of_entries_half_a_step_off(entries):
    step = 0.125
    value = np.full(entries, (7 + 0.5 - 1e-9) * step)
    moved = np.linalg.norm(np.rint(value / step) * step - value)
    assert moved <= sensitivity.rounding(entries, step) <= moved * 1.0011


def test_neighbours_that_are_rounded_apart():
    step = 2.0**-4
    v, w = np.array([0.5, -0.5]) - 0.499999 * step, np.array([1.5, -1.5]) + 0.499999 * step
    v, w = v * [1, -1], w * [1, -1]
    gap = np.linalg.norm(v - w)
    moved = np.linalg.norm(np.rint((v - 1e-9) / step) * step - np.rint((w + 1e-9) / step) * step)
    bound = sensitivity.on_grid(gap, 2, step)
    assert moved <= bound
    exact = gap + 2 * sensitivity.rounding(2, step)
    assert exact < bound <= exact * ROOM
    curve = sensitivity.variance(1.0, 0.5, 1) + 2 * (0.25 + 0.125)
    assert curve < sensitivity.rounded_curve(1.0, 0.5, 0.25, 0.125) <= curve * ROOM


def test_opposite_tangent_vectors():
    n, radius = 1000, 0.7
    moved = 2 * (radius + sensitivity.rounding(3, 0.01))
    assert moved < sensitivity.rounded_tangent_sum(radius, 3, 0.01) <= moved * ROOM
    assert sensitivity.tangent_mean(radius, n) == 2 * radius / n
    slack = sensitivity.computed_tangent_mean(radius, n) - 2 * radius / n
    assert slack == pytest.approx(2 * n * EPS * radius, rel=0.1)


def test_two_bins():
    before, after = np.array([3, 1, 0]), np.array([2, 1, 1])
    assert sensitivity.distance_histogram() == np.linalg.norm(before - after)


# --- second moments -----------------------------------------------------------------------------


def farthest(radius, distance, count=721):
    """Largest ``|v vᵀ - w wᵀ|`` for v, w on the border of a disc of which 0 is `distance` away."""
    angle = np.linspace(-pi, pi, count)
    v = np.stack([distance + radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    square = (v * v).sum(axis=-1)
    return sqrt((square[:, None] ** 2 + square**2 - 2 * (v @ v.T) ** 2).max())


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.57, 0.59, 0.8, 0.99, 1.01, 1.7])
@pytest.mark.parametrize("space", [Euclidean(2), Hyperbolic(3), SPDAffineInvariant(2)], ids=repr)
def test_second_moment_of_the_farthest_pair_of_a_flat_ball(space, share):
    radius = 1.3
    found = farthest(radius, radius * share)
    bound = 3 * sensitivity.second_moment(space, radius, radius * share, 3)
    assert found <= bound * (1 + 1e-12)
    assert bound == pytest.approx(found, rel=1e-4)
    rounded = sensitivity.second_moment(space, radius - 0.2, radius * share, 3, 0.2)
    assert 3 * rounded == pytest.approx(bound, **EXACT)


@pytest.mark.parametrize("distance", [0.0, 0.3, 1.0, 2.5])
def test_second_moment_on_a_line_is_that_of_the_interval(distance):
    y = np.array([distance - 1.0, distance + 1.0, np.clip(0.0, distance - 1, distance + 1)]) ** 2
    bound = 5 * sensitivity.second_moment(Euclidean(1), 0.9, distance, 5, 0.1)
    assert bound == pytest.approx(y.max() - y.min(), **EXACT)


@pytest.mark.parametrize("distance", [0.0, 0.3, 1.0, 2.5])
def test_second_moment_of_right_angles_on_a_sphere(distance):
    reach = min(1.0 + distance, pi) + 0.01
    v, w = reach * np.eye(3)[:2]
    gap = np.linalg.norm(np.outer(v, v) - np.outer(w, w)) / 4
    bound = sensitivity.second_moment(Sphere(3), 1.0, distance, 4, 0.01)
    assert bound == pytest.approx(gap, **EXACT)
    circle = sensitivity.second_moment(Sphere(1), 1.0, distance, 4, 0.01)
    assert circle == pytest.approx(reach**2 / 4, **EXACT)


@pytest.mark.parametrize(
    ("kappa", "injectivity_radius"), [(0.0, 2.0), (0.5, inf)], ids=["flat torus", "paraboloid"]
)
def test_hadamard_spaces_are_neither_closed_nor_positively_curved(kappa, injectivity_radius):
    # On others a ball around 0 is all that is known of the logarithms.
    space = SimpleNamespace(
        dim=2,
        sectional_curvature_bounds=(0.0, kappa),
        injectivity_radius=injectivity_radius,
        diameter=3.0,
    )
    assert sensitivity.second_moment(space, 1.0, 0.5, 1) == pytest.approx(sqrt(2) * 2.25, **EXACT)
    assert sensitivity.second_moment(space, 1.0, 5.0, 1) == pytest.approx(sqrt(2) * 9, **EXACT)


@pytest.mark.parametrize("n", [2, 3, 10])
def test_printed_constants_are_attained_with_the_divisor_n_minus_1(n):
    radius = 0.6
    line = np.full(n, -radius)
    line[0] = radius  # before, all were equal
    attained = line.var(ddof=1)
    assert sensitivity.second_moment_paper(radius, n) == pytest.approx(attained, **EXACT)
    squares = (line + radius) ** 2
    attained = squares.var(ddof=1)
    assert sensitivity.spread_paper(radius, n) == pytest.approx(attained, **EXACT)
    attained = squares.mean()
    assert sensitivity.variance_paper(radius, n) == pytest.approx(attained, **EXACT)


# --- Hessians -----------------------------------------------------------------------------------


def hessian_at(space, base, coords):
    """Hessian of the squared distance to a point with these coordinates, on the coordinates."""
    return space.mean_squared_distance_hessian(base, coords[None])


@pytest.mark.parametrize("dim", [2, 3, 5])
@pytest.mark.parametrize("kind", [Sphere, Hyperbolic])
@pytest.mark.parametrize("reach", [0.3, 1.4, 2.6])
def test_hessians_of_right_angles_or_of_the_base_point(kind, dim, reach):
    space = kind(dim)
    base = np.eye(dim + 1)[0]
    one, other = reach * np.eye(dim)[:2]
    gap = hessian_at(space, base, one) - hessian_at(space, base, other)
    here = hessian_at(space, base, one) - hessian_at(space, base, 1e-9 * one)
    attained = max(np.linalg.norm(gap), np.linalg.norm(here))
    assert sensitivity.hessian(space, reach, 7) == pytest.approx(attained / 7, rel=1e-9)


@pytest.mark.parametrize("reach", [0.3, 1.4, 4.0])
def test_hessians_of_matrices(reach):
    space, base = SPDAffineInvariant(2), np.eye(2)
    vectors = np.array([[[1.0, 0.0], [0.0, -1.0]], [[0.0, 1.0], [1.0, 0.0]]]) * reach / sqrt(2)
    one, other = (hessian_at(space, base, space.coords(base, v)) for v in vectors)
    attained = np.linalg.norm(one - other)
    assert sensitivity.hessian(space, reach, 7) == pytest.approx(attained / 7, rel=1e-9)
    larger = sensitivity.hessian(SPDAffineInvariant(6), reach, 7)
    assert larger == pytest.approx(sqrt(3) * attained / 7, rel=1e-9)


def test_flat_hessians_never_change():
    for space in (Euclidean(3), SPDLogEuclidean(2), Sphere(1), Hyperbolic(1)):
        assert sensitivity.hessian(space, 1.0, 5) == 0.0


def test_printed_hessians():
    # Jiang, Chang, Hu (2026): 2 B_H/n with the bounds B_H of |H|.
    coth = 1 / tanh(1.0)
    assert sensitivity.hessian_paper(Sphere(4), 0.5, 3) == pytest.approx(8 / 3, **EXACT)
    assert sensitivity.hessian_paper(Hyperbolic(1), 0.5, 3) == pytest.approx(4 / 3, **EXACT)
    assert sensitivity.hessian_paper(SPDAffineInvariant(1), 0.5, 3) == pytest.approx(4 / 3, **EXACT)
    matrices = sensitivity.hessian_paper(SPDAffineInvariant(4), sqrt(2), 3)
    assert matrices == pytest.approx(4 / 3 * sqrt(4 + 6 * coth**2 + 6), **EXACT)
    hyperbolic = sensitivity.hessian_paper(Hyperbolic(4), 1.0, 3)
    assert hyperbolic == pytest.approx(4 / 3 * sqrt(1 + 3 * coth**2), **EXACT)
    matrices = sensitivity.hessian_paper(SPDAffineInvariant(2), sqrt(2), 3)
    assert matrices == pytest.approx(4 / 3 * sqrt(2 + coth**2 + 1), **EXACT)
    hyperbolic = sensitivity.hessian_paper(Hyperbolic(2), 1.0, 3)
    assert hyperbolic == pytest.approx(4 / 3 * sqrt(1 + coth**2), **EXACT)
    twice = 2 / tanh(2.0)
    hyperbolic = sensitivity.hessian_paper(Hyperbolic(4), 2.0, 3)
    assert hyperbolic == pytest.approx(4 / 3 * sqrt(1 + 3 * twice**2), **EXACT)


# --- variance -----------------------------------------------------------------------------------


@pytest.mark.parametrize("distance", [0.0, 0.3, 1.0, 2.5])
def test_squared_distances_on_a_line(distance):
    line = np.clip([-1.0, 1.0, distance], -1.0, 1.0)  # the ends, and the point nearest to p
    squares = (line - distance) ** 2
    low, high = sensitivity.squared_distance_range(1.0, distance)
    assert low == pytest.approx(squares.min(), **EXACT)
    assert high == pytest.approx(squares.max(), **EXACT)
    width = sensitivity.variance(1.0, distance, 9)
    assert width == pytest.approx((squares.max() - squares.min()) / 9, **EXACT)


def test_no_chord_of_the_moment_curve_is_longer_than_its_range():
    # Of the chords between y and z = y - u, for the worst y + z.
    u = np.linspace(0, 2, 400_001)

    def longest(bend):
        return np.sqrt((u**2 * (1 + bend**2 * (2 - u) ** 2)).max())

    assert longest(sensitivity.MOMENT_CURVE_CONSTANT) <= 2 * (1 + 1e-15)
    assert longest(sensitivity.MOMENT_CURVE_CONSTANT * (1 + 1e-6)) > 2
    assert cos(pi / 5) * 2 == pytest.approx((2 * sensitivity.MOMENT_CURVE_CONSTANT) ** 0.4)
