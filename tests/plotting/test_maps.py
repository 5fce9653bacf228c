"""Geometry of the pictures: areas, cones, outlines, charts."""

from itertools import combinations
from math import cos, pi

import numpy as np
import pytest
from scipy.stats import chi2

from skdpfrechet.inference import ConfidenceRegion
from skdpfrechet.manifolds import (
    Euclidean,
    Hyperbolic,
    SPDAffineInvariant,
    SPDLogCholesky,
    Sphere,
)
from skdpfrechet.plotting import _maps

GLOBE = Sphere(2)
VIEWS = [np.eye(3)[k] * sign for k in range(3) for sign in (1.0, -1.0)]
VIEWS += [np.array([2.0, -3.0, 6.0]) / 7]


def make_region(space, scale=0.2, foot=False, seed=0):
    rng = np.random.default_rng(seed)
    pole = np.eye(space.dim + 1)[0] if isinstance(space, Sphere) else space.origin
    center = space.exp_coords(pole, 0.5 * rng.standard_normal(space.dim))
    factor = rng.standard_normal((space.dim, space.dim + 2))
    covariance = scale**2 * factor @ factor.T / space.dim
    critical = 1.2 * float(chi2.ppf(0.95, space.dim))  # wider than χ²: noise is allowed for
    return ConfidenceRegion(space, center, covariance, critical, 0.95, pole if foot else None)


def area(curve):
    """Area of a polygon, by Gauss."""
    x, y = curve.T
    return abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


@pytest.mark.parametrize("view", VIEWS, ids=str)
def test_compass_is_a_right_handed_frame(view):
    east, north = _maps.compass(view)
    np.testing.assert_allclose(
        np.array([east, north, view]) @ np.array([east, north, view]).T, np.eye(3), atol=1e-15
    )
    np.testing.assert_allclose(np.cross(east, north), view, atol=1e-15)
    if abs(view[2]) < 0.9:
        assert north[2] > 0


@pytest.mark.parametrize("view", VIEWS, ids=str)
@pytest.mark.parametrize(("offset", "angle"), [(0.0, 1.0), (0.7, 0.5), (1.5, 1.2), (2.5, 0.3)])
def test_lambert_preserves_areas(view, offset, angle):
    """Caps of S² have the area 2π(1 - cos t); a polygon of n sides misses about 7/n² of it."""
    n = 4000
    center = GLOBE.exp_coords(view, offset * np.array([0.6, 0.8]))
    turn = 2 * pi * np.arange(n)[:, None] / n
    rim = GLOBE.exp_coords(center, angle * np.hstack([np.cos(turn), np.sin(turn)]))
    assert area(_maps.lambert(rim, view)) == pytest.approx(2 * pi * (1 - cos(angle)), rel=1e-5)


def test_lambert_of_the_middle_and_the_antipode():
    for view in VIEWS:
        np.testing.assert_allclose(_maps.lambert(view, view), 0, atol=1e-15)
        assert np.isfinite(_maps.lambert(-view, view)).all()
        near = GLOBE.exp_coords(view, np.array([pi - 1e-6, 0.0]))
        assert np.linalg.norm(_maps.lambert(near, view)) == pytest.approx(2)


def test_cone_of_positive_definite_matrices():
    space = SPDAffineInvariant(2)
    matrices = space.exp_coords(np.eye(2), np.random.default_rng(0).normal(size=(50, 3)))
    x, y, z = _maps.cone(matrices).T
    np.testing.assert_allclose(z**2 - x**2 - y**2, np.linalg.det(matrices))
    assert (z > 0).all()
    rebuilt = np.moveaxis(np.array([[z + x, y], [y, z - x]]), -1, 0)
    np.testing.assert_allclose(rebuilt, matrices)


@pytest.mark.parametrize("n", [50, 200])
def test_triangles_close_a_surface_through_every_point(n):
    faces = _maps.triangles(n)
    assert set(faces.ravel()) == set(range(n))
    edges = [frozenset(edge) for face in faces for edge in combinations(face.tolist(), 2)]
    assert n - len(set(edges)) + len(faces) == 2  # Euler: a sphere
    assert all(edges.count(edge) == 2 for edge in set(edges))


def test_triangles_join_neighbours_of_any_region():
    """In the chart whitened by Γ, up to a rotation, they are short and face outward."""
    region = make_region(SPDAffineInvariant(2), foot=True)
    space = region.manifold
    edge = region.boundary(200)
    w = space.log_coords(region.foot, edge) - space.log_coords(region.foot, region.center)
    z = np.linalg.solve(np.linalg.cholesky(region.covariance), w.T).T / region.critical_value**0.5
    corners = z[_maps.triangles(200)]
    sides = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=-1)
    assert sides.max() < 0.4  # 200 points cover 4π: about .25 apart
    assert len(set(np.sign(np.linalg.det(corners)))) == 1


def test_outline_is_the_shadow_of_the_ellipsoid():
    """A plane that touches the outline touches the ellipsoid: uᵀPu is the squared half width."""
    space = SPDAffineInvariant(3)
    P = space.exp_coords(np.eye(3), np.array([0.9, -0.4, 0.3, 0.2, 0.6, -0.8]))
    axes = _maps.principal_axes(P, (0, 2))
    np.testing.assert_allclose(axes.T @ axes, np.eye(2), atol=1e-14)
    values = np.linalg.eigvalsh(P)
    np.testing.assert_allclose(axes.T @ P @ axes, np.diag([values[2], values[0]]), atol=1e-13)
    Q = space.exp_coords(P, np.full(6, 0.3))
    outline = _maps.outlines(Q, axes, 100_000)
    for turn in np.linspace(0, pi, 7):
        u = np.array([np.cos(turn), np.sin(turn)])
        width = np.sqrt(axes @ u @ Q @ axes @ u)
        assert (outline @ u).max() == pytest.approx(width, rel=1e-8)


SPACES = [Euclidean(3), Sphere(2), Sphere(4), Hyperbolic(2), SPDAffineInvariant(3)]
TANGENT = [pytest.param(make_region(space), id=f"{space}") for space in SPACES]
TANGENT += [
    pytest.param(make_region(space, foot=True), id=f"{space}-foot")
    for space in (Euclidean(3), Hyperbolic(2), SPDAffineInvariant(3), SPDLogCholesky(2))
]


@pytest.mark.parametrize("region", TANGENT)
@pytest.mark.parametrize("pair", [(0, 1), (1, 0), (-1, 0)])
def test_tangent_ellipse_is_the_outline_of_the_region(region, pair):
    """Its points are seen above boundary points, and no boundary point lies outside of it."""
    space = region.manifold
    pair = [k % space.dim for k in pair]
    if pair == [0, 0]:
        pytest.skip("one dimension too few")
    (center,), (curve,) = _maps.tangent_ellipses([region], tuple(pair), 40)
    base = region.center if region.foot is None else region.foot
    middle = space.log_coords(base, region.center)
    flat = isinstance(space, Euclidean)
    np.testing.assert_allclose(center, (region.center if flat else middle)[pair], atol=1e-14)

    block = region.covariance[np.ix_(pair, pair)]
    z = curve - center
    above = middle + z @ np.linalg.solve(block, region.covariance[pair])
    np.testing.assert_allclose(above[:, pair] - middle[pair], z)
    np.testing.assert_allclose(
        region.statistic(space.exp_coords(base, above)), region.critical_value, rtol=1e-7
    )

    edge = (space.log_coords(base, region.boundary(300)) - middle)[:, pair]
    inside = np.einsum("ni,ij,nj->n", edge, np.linalg.inv(block), edge)
    assert (inside <= region.critical_value * (1 + 1e-7)).all()


def test_tangent_ellipses_of_one_foot_share_its_chart():
    space = SPDAffineInvariant(2)
    regions = [make_region(space, foot=True, seed=seed) for seed in (1, 2)]
    centers, curves = _maps.tangent_ellipses(regions, (0, 2), 30)
    for region, center, curve in zip(regions, centers, curves, strict=True):
        (alone,), (curve_alone,) = _maps.tangent_ellipses([region], (0, 2), 30)
        np.testing.assert_allclose(center, alone)
        np.testing.assert_allclose(curve, curve_alone)


def test_patch_fills_the_region():
    region = make_region(GLOBE)
    edge = _maps.edge_of(region, 60)
    mesh = _maps.patch(region, edge, layers=5)
    np.testing.assert_allclose(mesh[0], np.broadcast_to(region.center, mesh[0].shape), atol=1e-15)
    np.testing.assert_allclose(mesh[-1, :-1], edge, atol=1e-14)
    np.testing.assert_allclose(region.statistic(mesh[2]), region.critical_value / 4, rtol=1e-7)


def test_a_region_around_the_sphere_has_no_edge_where_it_ends_nowhere():
    wide = ConfidenceRegion(GLOBE, np.eye(3)[2], np.diag([4.0, 0.1]), 6.0, 0.95)
    edge = _maps.edge_of(wide, 100)
    drawn = ~np.isnan(edge).any(axis=1)
    assert 0 < drawn.sum() < 100
    np.testing.assert_allclose(wide.statistic(edge[drawn]), 6.0)
    everything = ConfidenceRegion(GLOBE, np.eye(3)[2], 4 * np.eye(2), 6.0, 0.95)
    assert np.isnan(_maps.edge_of(everything, 100)).all()


def test_a_degenerate_region_keeps_its_points():
    """A sample without privacy and with fewer records than dimensions has a singular Γ."""
    flat = ConfidenceRegion(GLOBE, np.eye(3)[2], np.diag([0.1, 0.0]), 6.0, 0.95)
    assert np.isfinite(_maps.edge_of(flat, 20)).all()
    _, (curve,) = _maps.tangent_ellipses([flat], (0, 1), 20)
    np.testing.assert_allclose(curve[:, 1], 0)
