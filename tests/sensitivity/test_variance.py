"""Attacks on the sensitivities of the Fréchet variance and of the joint moment curve."""

from __future__ import annotations

from math import inf, pi

import numpy as np
import pytest

from skdpfrechet import sensitivity
from skdpfrechet.manifolds import Euclidean, Hyperbolic, SPDAffineInvariant, SPDLogEuclidean, Sphere

SPACES = [
    Euclidean(1),
    Euclidean(2),
    SPDLogEuclidean(2),
    Hyperbolic(2),
    SPDAffineInvariant(2),
    Sphere(1),
    Sphere(2),
]
SHARES = [0.0, 0.3, 1.0]  # D/r of a released mean that was projected to the ball


def squared_distances(adversary, manifold, radius, distance):
    """ρ² of candidates to a point at `distance` from m0, clipped as the estimators do."""
    base = manifold.exp_coords(adversary.center(manifold), distance * np.eye(manifold.dim)[0])
    low, high = sensitivity.squared_distance_range(radius, distance)
    return lambda c: np.clip(manifold.dist(base, adversary.points(manifold, c)) ** 2, low, high)


@pytest.mark.parametrize("share", [*SHARES, 2.0])
@pytest.mark.parametrize("manifold", SPACES, ids=repr)
def test_range_of_squared_distances(adversary, check, manifold, share):
    radius, distance = 0.7, 0.7 * share
    base = manifold.exp_coords(adversary.center(manifold), distance * np.eye(manifold.dim)[0])

    def square(c):
        return manifold.dist(base, adversary.points(manifold, c))[:, 0] ** 2

    low, high = sensitivity.squared_distance_range(radius, distance)
    check(adversary.maximise(square, 1, manifold.dim, radius), high, sharp=True)
    assert -adversary.maximise(lambda c: -square(c), 1, manifold.dim, radius) >= low * (1 - 1e-9)


@pytest.mark.parametrize("n", [1, 2, 10])
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("manifold", SPACES, ids=repr)
def test_variance(adversary, check, manifold, share, n):
    radius, distance = 0.7, 0.7 * share
    squares = squared_distances(adversary, manifold, radius, distance)

    def objective(c):
        y = squares(c)
        return np.abs(y[:, :-1].mean(axis=-1) - y[:, 1:].mean(axis=-1))

    found = adversary.maximise(objective, n + 1, manifold.dim, radius)
    bound = sensitivity.variance(radius, distance, n)
    check(found, bound, sharp=True)
    check(found, sensitivity.variance_paper(radius, n), sharp=share == 1)
    with pytest.raises(AssertionError):  # a planted bug
        check(found, bound * n / (n + 1))


@pytest.mark.parametrize("n", [1, 2, 10])
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("manifold", SPACES, ids=repr)
def test_moment_curve_costs_no_more_than_the_variance(adversary, check, manifold, share, n):
    radius, distance = 0.7, 0.7 * share
    squares = squared_distances(adversary, manifold, radius, distance)
    low, high = sensitivity.squared_distance_range(radius, distance)
    middle, half = (low + high) / 2, (high - low) / 2

    def objective(c):
        y = squares(c) - middle
        curve = np.stack([y, sensitivity.MOMENT_CURVE_CONSTANT / half * y**2], axis=-1)
        return np.linalg.norm(curve[:, :-1].mean(axis=1) - curve[:, 1:].mean(axis=1), axis=-1)

    found = adversary.maximise(objective, n + 1, manifold.dim, radius)
    check(found, sensitivity.variance(radius, distance, n), sharp=True)


def test_moment_curve_constant_is_the_largest():
    # Chords of (y, c y²) on |y| <= h = 1, over a grid of both ends.
    y = np.linspace(-1, 1, 2001)

    def diameter(c):
        first, second = y[:, None] - y, c * (y[:, None] ** 2 - y**2)
        return np.sqrt(first**2 + second**2).max()

    constant = sensitivity.MOMENT_CURVE_CONSTANT
    assert constant == pytest.approx(1.665095, abs=1e-6)
    assert diameter(constant) == pytest.approx(2, abs=1e-12)
    assert diameter(0.99 * constant) == pytest.approx(2, abs=1e-12)
    assert diameter(1.01 * constant) > 2.003
    assert diameter(1.001 * constant) > 2.0003
    # The chord that is about to exceed: (y - z)² (1 + c²(y + z)²) = 4 with y = 1, z = 1 - u.
    golden = (1 + 5**0.5) / 2
    u = np.linspace(0, 2, 20001)
    chords = u**2 * (1 + constant**2 * (2 - u) ** 2)
    assert chords.max() == pytest.approx(4, abs=1e-8)
    inner = u[chords[:-1000].argmax()]
    assert inner == pytest.approx(2 / golden, abs=1e-3)


def test_variance_of_the_paper_fails_outside_the_ball(adversary):
    # S², n = 20: at small μ the released mean leaves the ball, and 4r²/n is no bound any more.
    sphere, radius, n = Sphere(2), pi / 8, 20
    paper = sensitivity.variance_paper(radius, n)
    ratios = []
    for distance in (radius, 1.0, 2.0, pi - radius):
        squares = squared_distances(adversary, sphere, radius, distance)

        def objective(c, squares=squares):
            y = squares(c)
            return np.abs(y[:, :-1].mean(axis=-1) - y[:, 1:].mean(axis=-1))

        ratios.append(adversary.maximise(objective, n + 1, 2, radius) / paper)
    assert ratios[0] == pytest.approx(1)
    assert ratios == sorted(ratios)
    assert ratios[-1] == pytest.approx(7, rel=0.01)


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("n", [2, 5, 10])
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("manifold", [Euclidean(2), Hyperbolic(2), Sphere(2)], ids=repr)
def test_spread_of_the_paper(adversary, check, manifold, share, n, ddof):
    radius, distance = 0.7, 0.7 * share
    squares = squared_distances(adversary, manifold, radius, distance)

    def objective(c):
        y = squares(c)
        return np.abs(y[:, :-1].var(axis=-1, ddof=ddof) - y[:, 1:].var(axis=-1, ddof=ddof))

    found = adversary.maximise(objective, n + 1, manifold.dim, radius)
    bound = sensitivity.spread_paper(radius, n)
    check(found, bound, sharp=share == 1 and ddof == 1)
    if ddof == 0:  # the divisor n of the recipe
        check(found, bound * (n - 1) / n, sharp=share == 1)


@pytest.mark.parametrize("radius", [0.1, pi / 8, 1.5])
def test_noise_of_the_variance_against_the_paper(radius):
    paper = sensitivity.variance_paper(radius, 7)
    assert sensitivity.variance(radius, 0.0, 7) == pytest.approx(paper / 4)
    assert sensitivity.variance(radius, radius, 7) == pytest.approx(paper)
    assert sensitivity.variance(radius, radius, 7) < inf
