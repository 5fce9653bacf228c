"""Attacks on the sensitivities of second moments and mean Hessians at a released point."""

from __future__ import annotations

from math import pi, sqrt
from unittest.mock import Mock

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skdpfrechet import sensitivity
from skdpfrechet._solvers import local_coordinates, second_moment
from skdpfrechet.manifolds import (
    Euclidean,
    Hyperbolic,
    Manifold,
    SPDAffineInvariant,
    SPDLogCholesky,
    SPDLogEuclidean,
    Sphere,
)

FLAT = [Euclidean(2), Euclidean(3), SPDLogEuclidean(2), SPDLogCholesky(2)]
CURVED = [Hyperbolic(2), Hyperbolic(3), SPDAffineInvariant(2), SPDAffineInvariant(3)]
LINES = [Euclidean(1), Hyperbolic(1), SPDAffineInvariant(1), SPDLogEuclidean(1)]
SHARES = [0.0, 0.2, 1 / sqrt(3), 0.8, 1.0, 1.7, 4.0]  # D/r: all three cases and their borders


class Query:
    """The second moment at a point at `distance` from m0, computed as the estimators do."""

    def __init__(self, adversary, manifold, radius, distance):
        self.manifold, center = manifold, adversary.center(manifold)
        direction = adversary.rng.standard_normal(manifold.dim)
        direction /= np.linalg.norm(direction)
        self.base = manifold.exp_coords(center, distance * direction)
        self.middle, self.radius = manifold.log_coords(self.base, center), radius
        if isinstance(manifold, Sphere):
            self.middle, self.radius = np.zeros(manifold.dim), min(radius + distance, pi)

    def __call__(self, points):
        """Second moments over the axis behind the first."""
        return second_moment(self.logs(points))

    def logs(self, points):
        return local_coordinates(self.manifold, self.base, points, self.middle, self.radius)


def gap(adversary, query):
    def objective(c):
        points = adversary.points(query.manifold, c)
        return np.linalg.norm(query(points[:, :-1]) - query(points[:, 1:]), axis=(-2, -1))

    return objective


def nasty_records(manifold, rng, count=400):
    """Arrays that no honest source sends: NaN, infinities, overflow, zeros, the wrong signature."""
    values = [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e200, 1e-320, 0.0, -1.0, 1.0, 50.0]
    shape = (count, *manifold.point_shape)
    mixed = rng.choice(values, size=shape)
    constant = np.broadcast_to(
        rng.choice(values, size=(count, *(1,) * len(manifold.point_shape))), shape
    )
    large = rng.standard_normal(shape) * 10.0 ** rng.uniform(-300, 300, shape)
    return np.concatenate([mixed, constant, large])


# --- the second moment --------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("manifold", [*FLAT, *CURVED], ids=repr)
def test_second_moment_on_hadamard_spaces(adversary, check, manifold, share, n):
    radius, distance = 1.3, 1.3 * share
    query = Query(adversary, manifold, radius, distance)
    found = adversary.maximise(gap(adversary, query), n + 1, manifold.dim, radius, rounds=60)
    sharp = manifold in FLAT or distance == 0
    check(found, sensitivity.second_moment(manifold, radius, distance, n), sharp=sharp)
    if distance == 0:
        assert sensitivity.second_moment(manifold, radius, 0.0, n) == pytest.approx(
            sqrt(2) * radius**2 / n
        )


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("manifold", LINES, ids=repr)
def test_second_moment_on_lines(adversary, check, manifold, share):
    radius, n = 0.8, 3
    query = Query(adversary, manifold, radius, radius * share)
    found = adversary.maximise(gap(adversary, query), n + 1, 1, radius)
    check(found, sensitivity.second_moment(manifold, radius, radius * share, n), sharp=True)


@pytest.mark.parametrize("distance", [0.0, 0.3, 1.0, 2.0, pi - 0.7, 3.0, pi])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_second_moment_on_spheres(adversary, check, dim, distance):
    radius, n = 0.7, 3
    query = Query(adversary, Sphere(dim), radius, distance)
    found = adversary.maximise(gap(adversary, query), n + 1, dim, radius, rounds=60)
    # The antipode of the released point has logarithms of norm π in all directions.
    sharp = distance in (0.0, pi) and dim > 1
    check(found, sensitivity.second_moment(Sphere(dim), radius, distance, n), sharp=sharp)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.5, 1 / sqrt(3), 0.7, 0.9, 1.0, 1.3, 4.0])
def test_second_moment_formula_is_the_maximum_over_a_flat_ball(adversary, check, share):
    # |v vᵀ - w wᵀ|² = |v|⁴ + |w|⁴ - 2 <v, w>², over pairs in the ball of radius 1 around D e_1.
    def distance_of_squares(v, w):
        fourth = (v * v).sum(axis=-1) ** 2 + (w * w).sum(axis=-1) ** 2
        return np.sqrt(np.maximum(fourth - 2 * (v * w).sum(axis=-1) ** 2, 0))

    bound = sensitivity.second_moment(Euclidean(2), 1.0, share, 1)
    angle = np.linspace(0, 2 * pi, 721)
    circle = np.stack([share + np.cos(angle), np.sin(angle)], axis=-1)
    on_the_circle = distance_of_squares(circle[:, None], circle).max()
    assert on_the_circle <= bound * (1 + 1e-12)
    assert on_the_circle >= bound * (1 - 1e-4)

    def objective(c):
        v = c + share * np.eye(4)[0]
        return distance_of_squares(v[:, 0], v[:, 1])

    check(adversary.maximise(objective, 2, 4, 1.0, batch=200, rounds=100), bound, sharp=True)


def test_second_moment_grows_with_the_distance():
    # So a distance rounded up is safe, and the three cases meet.
    for manifold in (Euclidean(2), Hyperbolic(1), Sphere(2)):
        distances = np.linspace(0, 5, 2001)
        values = np.array([sensitivity.second_moment(manifold, 1.0, d, 1) for d in distances])
        assert (np.diff(values) >= 0).all()
        assert np.diff(values).max() < 0.05


@pytest.mark.parametrize("manifold", [*FLAT, *CURVED, *LINES, Sphere(1), Sphere(2)], ids=repr)
@pytest.mark.parametrize("distance", [0.0, 0.4, 2.5])
def test_second_moment_of_nasty_records(adversary, check, manifold, distance):
    radius, n = 0.7, 2
    query = Query(adversary, manifold, radius, distance)
    honest = adversary.points(manifold, adversary.starts(100, 1, manifold.dim, radius)[:, 0])
    outside = adversary.points(manifold, adversary.starts(100, 1, manifold.dim, 3.0)[:, 0])
    records = np.concatenate([nasty_records(manifold, adversary.rng), honest, outside])
    logs = query.logs(records)
    assert np.isfinite(logs).all()
    assert np.linalg.norm(logs - query.middle, axis=-1).max() <= query.radius * (1 + 1e-12)
    # Exchange any record for any other, next to a third one that stays.
    squares = (logs[:, :, None] * logs[:, None, :]).reshape(len(logs), -1)
    square = (squares * squares).sum(axis=-1)
    gaps = np.sqrt(np.maximum(square[:, None] + square - 2 * squares @ squares.T, 0)) / n
    bound = sensitivity.second_moment(manifold, radius, distance, n)
    check(float(gaps.max()), bound)
    first, last = np.unravel_index(gaps.argmax(), gaps.shape)
    one, other = query(records[[first, 0]]), query(records[[last, 0]])
    assert_allclose(np.linalg.norm(one - other), gaps.max(), rtol=1e-6)


@pytest.mark.parametrize("divisor", ["n", "n - 1"])
@pytest.mark.parametrize("n", [2, 3, 5, 10])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_centred_covariance_of_the_paper(adversary, check, dim, n, divisor):
    radius = 0.6
    count = n if divisor == "n" else n - 1

    def covariance(v):
        v = v - v.mean(axis=1, keepdims=True)
        return np.swapaxes(v, -1, -2) @ v / count

    def objective(c):
        return np.linalg.norm(covariance(c[:, :-1]) - covariance(c[:, 1:]), axis=(-2, -1))

    found = adversary.maximise(objective, n + 1, dim, radius, rounds=80)
    check(found, sensitivity.second_moment_paper(radius, n), sharp=divisor == "n - 1")
    if divisor == "n":
        check(found, 4 * radius**2 * (n - 1) / n**2, sharp=True)


# --- the mean Hessian ---------------------------------------------------------------------------


def hessian_gap(manifold, center):
    def objective(c):
        one = manifold.mean_squared_distance_hessian(center, c[:, :-1])
        other = manifold.mean_squared_distance_hessian(center, c[:, 1:])
        return np.linalg.norm(one - other, axis=(-2, -1))

    return objective


@pytest.mark.parametrize(
    ("manifold", "reach"),
    [
        *[(Sphere(d), reach) for d in (2, 3, 5) for reach in (0.4, 1.2, pi / 2, 2.5, 3.0)],
        *[(Hyperbolic(d), reach) for d in (2, 3, 5) for reach in (0.4, 1.5, 6.0)],
        *[(SPDAffineInvariant(p), reach) for p in (2, 3) for reach in (0.4, 1.5, 6.0)],
        (Sphere(1), 1.0),
        (Hyperbolic(1), 1.0),
        (SPDAffineInvariant(1), 1.0),
        (SPDLogEuclidean(2), 1.0),
    ],
    ids=repr,
)
def test_mean_hessian(adversary, check, manifold, reach):
    n = 2
    objective = hessian_gap(manifold, adversary.center(manifold))
    found = adversary.maximise(objective, n + 1, manifold.dim, reach, rounds=80)
    bound = sensitivity.hessian(manifold, reach, n)
    flat = manifold.dim == 1 or isinstance(manifold, SPDLogEuclidean)
    if flat:
        assert bound == 0
        assert found < 1e-14
    else:
        check(found, bound, sharp=manifold != SPDAffineInvariant(3))
        paper = sensitivity.hessian_paper(manifold, reach, n)
        within = not isinstance(manifold, Sphere) or reach <= pi / 2
        if within:
            check(found, paper)


@pytest.mark.parametrize(
    ("manifold", "radius"), [(Sphere(2), pi / 8), (SPDAffineInvariant(2), 1.5)], ids=repr
)
def test_printed_hessian_sensitivity_is_many_times_too_large(manifold, radius):
    ours = sensitivity.hessian(manifold, radius, 1)
    assert 8 < sensitivity.hessian_paper(manifold, radius, 1) / ours < 39


def test_unknown_hessians_are_refused():
    with pytest.raises(ValueError, match="not known"):
        sensitivity.hessian(Mock(spec=Manifold, dim=2), 1.0, 5)


def test_the_search_finds_a_planted_bug(adversary, check):
    n, radius = 10, 0.9
    for manifold in (Euclidean(2), Hyperbolic(2), SPDAffineInvariant(2)):
        query = Query(adversary, manifold, radius, 0.0)
        found = adversary.maximise(gap(adversary, query), n + 1, manifold.dim, radius, rounds=60)
        check(found, sensitivity.second_moment(manifold, radius, 0.0, n))
        with pytest.raises(AssertionError):
            check(found, sensitivity.second_moment(manifold, radius, 0.0, n + 1))
        with pytest.raises(AssertionError):  # the dimension-1 constant
            check(found, radius**2 / n)
    objective = hessian_gap(Sphere(2), adversary.center(Sphere(2)))
    found = adversary.maximise(objective, n + 1, 2, radius, rounds=60)
    with pytest.raises(AssertionError):
        check(found, sensitivity.hessian(Sphere(2), radius, n + 1))
