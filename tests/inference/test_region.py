"""Confidence regions: geometry of the ellipsoid in either chart, sizes, serialisation."""

import json
from math import pi

import numpy as np
import pytest
from scipy.stats import chi2

from skdpfrechet import DPFrechetMean
from skdpfrechet.inference import ConfidenceRegion
from skdpfrechet.manifolds import (
    Euclidean,
    Hyperbolic,
    SPDAffineInvariant,
    SPDLogCholesky,
    SPDLogEuclidean,
    Sphere,
)

SPACES = [
    Euclidean(1),
    Euclidean(4),
    Sphere(2),
    Sphere(5),
    Hyperbolic(2),
    SPDAffineInvariant(2),
    SPDAffineInvariant(3),
    SPDLogEuclidean(2),
    SPDLogCholesky(2),
]
HADAMARD = [space for space in SPACES if not isinstance(space, Sphere)]


def pole(space):
    return np.eye(space.dim + 1)[0] if isinstance(space, Sphere) else space.origin


def make_region(space, foot=False, scale=0.2, seed=0):
    rng = np.random.default_rng(seed)
    center = space.exp_coords(pole(space), 0.5 * rng.standard_normal(space.dim))
    factor = rng.standard_normal((space.dim, space.dim + 2))
    covariance = scale**2 * factor @ factor.T / space.dim
    critical = float(chi2.ppf(0.95, space.dim))
    return ConfidenceRegion(
        space, center, covariance, critical, 0.95, pole(space) if foot else None
    )


REGIONS = [pytest.param(make_region(s), id=f"{s}") for s in SPACES]
REGIONS += [pytest.param(make_region(s, foot=True), id=f"{s}-foot") for s in HADAMARD]


@pytest.mark.parametrize("region", REGIONS)
def test_center_is_inside_and_boundary_on_the_edge(region):
    assert region.statistic(region.center) == pytest.approx(0, abs=1e-20)
    boundary = region.boundary(50)
    assert boundary.shape == (50, *region.manifold.point_shape)
    np.testing.assert_allclose(region.statistic(boundary), region.critical_value, rtol=1e-7)
    assert region.manifold.contains(boundary).all()


@pytest.mark.parametrize("region", REGIONS)
def test_statistic_is_quadratic_along_the_chart(region):
    """Half way to the boundary, in the chart, the statistic is a quarter."""
    space, foot = region.manifold, region.foot
    base = region.center if foot is None else foot
    middle = space.log_coords(base, region.center)
    edge = space.log_coords(base, region.boundary(20))
    half = space.exp_coords(base, (middle + edge) / 2)
    np.testing.assert_allclose(region.statistic(half), region.critical_value / 4, rtol=1e-7)


@pytest.mark.parametrize("space", HADAMARD, ids=str)
def test_covariance_at_center_is_the_pushed_covariance(space):
    """Small Gaussian displacements in the chart have this covariance in the frame at the centre.

    Central differences along the axes of the chart give the columns of the Jacobian, with an error
    of order h² = 1e-10.
    """
    region = make_region(space, foot=True, scale=1.0)
    middle = space.log_coords(region.foot, region.center)
    h = 1e-5
    steps = h * np.eye(space.dim)
    ahead = space.log_coords(region.center, space.exp_coords(region.foot, middle + steps))
    behind = space.log_coords(region.center, space.exp_coords(region.foot, middle - steps))
    jacobian = (ahead - behind).T / (2 * h)
    expected = jacobian @ region.covariance @ jacobian.T
    np.testing.assert_allclose(region.covariance_at_center, expected, rtol=1e-6, atol=1e-8)


def test_sizes_of_an_axis_parallel_ellipse():
    region = ConfidenceRegion(Euclidean(2), np.zeros(2), np.diag([4.0, 9.0]), 2.0, 0.9)
    assert region.volume == pytest.approx(pi * 2.0 * 6.0)  # π c √det Γ
    assert region.effective_radius == pytest.approx(np.sqrt(13))
    np.testing.assert_allclose(region.eigenvalues, [9.0, 4.0])
    np.testing.assert_array_equal(region.contains([[2.8, 0.0], [2.9, 0.0], [0, 4.3]]), [1, 0, 0])


def test_a_region_does_not_hold_the_antipode_of_its_centre():
    region = make_region(Sphere(2))
    assert not region.contains(-region.center)


def test_volume_agrees_with_monte_carlo():
    """Share of a box of volume 8·2³ that is covered; the standard error is .5%, so 5 sigma."""
    region = make_region(Euclidean(3), scale=0.3)
    rng = np.random.default_rng(0)
    points = region.center + 4 * rng.uniform(-1, 1, size=(400_000, 3))
    share = region.contains(points).mean()
    error = 5 * np.sqrt(share * (1 - share) / 400_000) * 8.0**3
    assert region.volume == pytest.approx(share * 8.0**3, abs=error)


def test_boundary_of_a_plane_region_is_a_closed_curve_in_order():
    region = make_region(Sphere(2))
    boundary = region.boundary(100)
    gaps = region.manifold.dist(boundary, np.roll(boundary, -1, axis=0))
    assert gaps.max() < 4 * np.median(gaps)


@pytest.mark.parametrize("region", REGIONS)
def test_json_round_trip(region):
    text = json.dumps(region.to_dict(), allow_nan=False)
    copy = ConfidenceRegion.from_dict(json.loads(text))
    assert copy.manifold == region.manifold
    points = region.boundary(7)
    np.testing.assert_array_equal(copy.statistic(points), region.statistic(points))
    assert copy.confidence_level == region.confidence_level


def test_json_of_an_unbounded_region():
    region = ConfidenceRegion(Euclidean(1), np.zeros(1), np.zeros((1, 1)), np.inf, 0.95)
    copy = ConfidenceRegion.from_dict(json.loads(json.dumps(region.to_dict(), allow_nan=False)))
    assert copy.contains([[1e9]]).all()
    assert copy.volume == np.inf
    with pytest.raises(ValueError, match="whole space"):
        copy.boundary(3)


def test_from_dict_builds_no_other_class():
    description = make_region(Euclidean(1)).to_dict()
    for name in ("resolve_manifold", "Manifold", "os", "ABC"):
        description["manifold"] = {"name": name, "dim": 1}
        with pytest.raises((ValueError, TypeError)):
            ConfidenceRegion.from_dict(description)


def test_singular_covariance_excludes_its_null_directions():
    region = ConfidenceRegion(Euclidean(2), np.zeros(2), np.diag([1.0, 0.0]), 4.0, 0.95)
    np.testing.assert_array_equal(region.contains([[1.0, 0.0], [1.0, 0.01]]), [True, False])
    assert region.volume == 0


@pytest.mark.parametrize(
    ("points", "message"),
    [(np.zeros((2, 2)), "shape"), (np.ones((2, 3)), "must lie on")],
)
def test_points_elsewhere_are_refused(points, message):
    with pytest.raises(ValueError, match=message):
        make_region(Sphere(2)).contains(points)


def test_repr_names_the_size():
    assert "effective_radius=" in repr(make_region(Sphere(2)))


def test_a_degenerate_region_holds_its_centre():
    """All records alike and no noise: rounding would put the mean outside its own region."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        a = rng.normal(size=(3, 6))
        X = np.stack([a @ a.T] * 20)
        fit = DPFrechetMean("spd", radius=20.0, mu=np.inf).fit(X)
        assert fit.confidence_region_.contains(fit.mean_)


def test_a_region_without_extent_holds_its_centre_whatever_the_rounding():
    """Scaling a unit vector to length one again may change its last digits."""
    centers = Sphere(1).canonical(np.random.default_rng(0).standard_normal((200, 2)))
    assert any((Sphere(1).canonical(center) != center).any() for center in centers)
    for center in centers:
        region = ConfidenceRegion(Sphere(1), center, np.full((1, 1), 1e-37), 3.84, 0.95)
        assert region.contains(center)
