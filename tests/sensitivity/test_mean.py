"""Attacks on the sensitivity of the exact Fréchet mean, and on the ball that it needs."""

from __future__ import annotations

from math import inf, pi, tan

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skdpfrechet import sensitivity
from skdpfrechet._numerics import x_over_tan
from skdpfrechet._solvers import frechet_mean
from skdpfrechet.manifolds import (
    Euclidean,
    Hyperbolic,
    SPDAffineInvariant,
    SPDLogCholesky,
    SPDLogEuclidean,
    Sphere,
)

HADAMARD = [
    Euclidean(1),
    Euclidean(2),
    Hyperbolic(1),
    Hyperbolic(2),
    SPDAffineInvariant(1),
    SPDAffineInvariant(2),
    SPDLogEuclidean(2),
    SPDLogCholesky(2),
]
SIZES = [1, 2, 3, 5, 10]
RADII = [0.1, pi / 8, 0.7, 0.9, 1.2, 1.5]


def radius_seen_from(radius, distance):
    """r_a: cos r_a = cos r / cos a on the unit sphere."""
    return np.arccos(np.minimum(np.cos(radius) / np.cos(distance), 1.0))


# --- admissible radii ---------------------------------------------------------------------------


@pytest.mark.parametrize("manifold", HADAMARD, ids=repr)
def test_hadamard_spaces_admit_every_radius(manifold):
    assert sensitivity.radius_limit(manifold) == inf
    assert sensitivity.radius_limit_paper(manifold) == inf


@pytest.mark.parametrize(("dim", "paper"), [(1, pi / 2), (2, pi / 4), (3, pi / 4), (9, pi / 4)])
def test_spheres_admit_open_hemispheres(dim, paper):
    assert sensitivity.radius_limit(Sphere(dim)) == pi / 2
    assert sensitivity.radius_limit_paper(Sphere(dim)) == paper


def test_at_the_limit_the_mean_is_not_unique():
    # Four records around the equator of m0: both poles are means, so no bound can hold.
    equator = np.array([[1.0, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]])
    poles = np.array([[0, 0, 1.0], [0, 0, -1]])
    sphere = Sphere(2)
    cost = (sphere.dist(poles[:, None], equator) ** 2).mean(axis=-1)
    assert_allclose(cost, (pi / 2) ** 2)


# --- the exact mean -----------------------------------------------------------------------------


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("radius", [0.5, 3.0])
@pytest.mark.parametrize("manifold", HADAMARD, ids=repr)
def test_mean_on_hadamard_spaces(adversary, check, manifold, radius, n):
    objective = adversary.gap_of_means(manifold, radius)
    found = adversary.maximise(objective, n + 1, manifold.dim, radius)
    check(found, sensitivity.frechet_mean(manifold, radius, n), sharp=True)


@pytest.mark.parametrize("n", [1, 2, 3, 10])
@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_mean_on_spheres(adversary, check, dim, radius, n):
    manifold = Sphere(dim)
    objective = adversary.gap_of_means(manifold, radius)
    found = adversary.maximise(objective, n + 1, dim, radius, rounds=60)
    sharp = n == 1 or dim == 1 or (n >= 10 and radius <= 0.9)
    check(found, sensitivity.frechet_mean(manifold, radius, n), sharp=sharp)


@pytest.mark.parametrize(("n", "expected"), [(2, 0.801), (3, 0.814), (10, 0.824)])
def test_the_search_on_s2_finds_the_known_worst_cases(adversary, n, expected):
    objective = adversary.gap_of_means(Sphere(2), pi / 8)
    found = adversary.maximise(objective, n + 1, 2, pi / 8, rounds=60)
    assert n * found == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("dim", [2, 3])
def test_mean_of_many_records_on_spheres(adversary, check, dim, radius):
    # n to infinity: the mean of equally heavy atoms moves with velocity H^-1 (log X' - log X) / n.
    manifold = Sphere(dim)

    def objective(c):
        p, logs = adversary.at_the_mean(manifold, radius, c)
        hessian = manifold.mean_squared_distance_hessian(p, logs[:, 1:-1]) / 2
        velocity = np.linalg.solve(hessian, (logs[:, -1] - logs[:, 0])[..., None])
        return np.linalg.norm(velocity[..., 0], axis=-1)

    found = adversary.maximise(objective, 6, dim, radius, rounds=60)
    n = 10**4
    check(found / n, sensitivity.frechet_mean(manifold, radius, n), sharp=True)
    if radius == pi / 8:
        assert found == pytest.approx(0.8284, abs=1e-4)


@pytest.mark.parametrize("radius", RADII)
def test_hessian_comparison_behind_the_mean(adversary, check, radius):
    # First step of the proof: H >= r_a cot r_a at the mean.
    manifold = Sphere(2)

    def objective(c):
        p, logs = adversary.at_the_mean(manifold, radius, c)
        hessian = manifold.mean_squared_distance_hessian(p, logs[:, 1:-1]) / 2
        seen = radius_seen_from(radius, manifold.dist(adversary.center(manifold), p))
        return x_over_tan(seen) / np.linalg.eigvalsh(hessian)[:, 0]

    check(adversary.maximise(objective, 6, 2, radius), 1.0, sharp=True)


@pytest.mark.parametrize("radius", [*RADII, 1.56])
@pytest.mark.parametrize("dim", [2, 3])
def test_diameter_of_the_logarithms_behind_the_mean(adversary, check, dim, radius):
    # Second step of the proof: diam(log_p B) tan(r_a)/r_a <= 2 tan r.
    manifold = Sphere(dim)

    def objective(c):
        points = adversary.points(manifold, c)
        p = points[:, 1]
        seen = radius_seen_from(radius, np.linalg.norm(c[:, 1], axis=-1))
        logs = manifold.log_coords(p[:, None], points[:, [0, -1]])
        return np.linalg.norm(logs[:, 0] - logs[:, 1], axis=-1) / x_over_tan(seen)

    found = adversary.maximise(objective, 3, dim, radius, batch=200, rounds=100)
    check(found, 2 * tan(radius), sharp=True)


@pytest.mark.parametrize("manifold", [Euclidean(2), Sphere(1), Sphere(2), Hyperbolic(2)], ids=repr)
def test_paper_never_needs_less_noise(manifold):
    for radius in np.linspace(1e-3, min(sensitivity.radius_limit_paper(manifold), 5), 50)[:-1]:
        for n in (1, 7):
            ours = sensitivity.frechet_mean(manifold, radius, n)
            paper = sensitivity.frechet_mean_paper(manifold, radius, n)
            assert ours <= paper * (1 + 1e-12)
    if manifold == Sphere(2):
        assert sensitivity.frechet_mean(manifold, pi / 8, 1000) * 1000 == pytest.approx(
            0.8284, abs=1e-4
        )
        assert sensitivity.frechet_mean_paper(manifold, pi / 8, 1) == pytest.approx(
            1.2146, abs=1e-4
        )


# --- means without a ball, and a ball that is not public -----------------------------------------


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dim", [1, 2, 4])
def test_extrinsic_mean(adversary, check, dim, n):
    def objective(c):
        x = c / np.linalg.norm(c, axis=-1, keepdims=True)
        return np.linalg.norm(x[:, :-1].mean(axis=1) - x[:, 1:].mean(axis=1), axis=-1)

    check(
        adversary.maximise(objective, n + 1, dim + 1, 1.0),
        sensitivity.extrinsic_mean(n),
        sharp=True,
    )


@pytest.mark.parametrize("distance", [1e-9, 0.3, pi / 2, 3.0, pi, 4.0])
def test_chord_of_the_sphere(adversary, check, distance):
    sphere = Sphere(2)

    def objective(c):
        points = adversary.points(sphere, c)
        return np.linalg.norm(points[:, 0] - points[:, 1], axis=-1)

    # Any two points of a ball of radius Δ/2 are at most Δ apart.
    found = adversary.maximise(objective, 2, 2, min(distance, pi) / 2)
    check(found, sensitivity.sphere_chord(distance), sharp=True)


def test_a_ball_centred_at_the_data_is_not_private(adversary):
    # Clip to B(sample mean, r), then average: what the paper's recipe does when its ball is found
    # from the data. The sample mean of far-flung records is sensitive, and the ball moves with it.
    sphere, n, r, reach = Sphere(2), 48, pi / 8, 1.5
    center = adversary.center(sphere)

    def objective(c):
        points = adversary.points(sphere, c)
        both = np.stack([points[:, :-1], points[:, 1:]])
        raw = frechet_mean(sphere, both, center, radius=reach, tolerance=1e-11, accept=1e-10)
        v = sphere.log_coords(raw[:, :, None], both)
        length = np.linalg.norm(v, axis=-1, keepdims=True)
        clipped = v * np.minimum(1, r / np.maximum(length, 1e-300))
        local = sphere.exp_coords(center, clipped)  # the ball, moved to m0 by an isometry
        mean = frechet_mean(sphere, local, center, radius=r, tolerance=1e-11, accept=1e-10)
        p, q = sphere.exp_coords(raw, sphere.log_coords(center, mean))
        return sphere.dist(p, q)

    claimed = sensitivity.frechet_mean_paper(sphere, r, n)
    assert n * claimed == pytest.approx(1.2146, abs=1e-4)
    assert adversary.maximise(objective, n + 1, 2, reach, rounds=25) > 1.3 * claimed


def test_the_search_finds_a_planted_bug(adversary, check):
    n, radius = 10, pi / 8
    for manifold in (Hyperbolic(2), Sphere(1), Sphere(2)):
        found = adversary.maximise(
            adversary.gap_of_means(manifold, radius), n + 1, manifold.dim, radius, rounds=60
        )
        check(found, sensitivity.frechet_mean(manifold, radius, n))
        with pytest.raises(AssertionError):
            check(found, sensitivity.frechet_mean(manifold, radius, n + 1))
        if manifold == Sphere(2):
            with pytest.raises(AssertionError):  # the curvature forgotten
                check(found, 2 * radius / n)


@pytest.mark.parametrize("radius", [np.pi / 2, 2.0, np.pi, np.nan])
def test_no_sensitivity_beyond_the_curvature_limit(radius):
    """tan turns negative there: a number would be a promise far too good."""
    for function in (sensitivity.frechet_mean, sensitivity.frechet_mean_paper):
        with pytest.raises(ValueError, match="radius must be below"):
            function(Sphere(2), radius, 10)
    with pytest.raises(ValueError, match="radius must be below"):
        sensitivity.frechet_mean_paper(Sphere(2), np.pi / 4, 10)
