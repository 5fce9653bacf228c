"""Every addend of a computed sensitivity, each with a case that breaks the bound without it.

Floats are played by an adversary in exact arithmetic: each of the errors that `sensitivity` bounds
is as large as its bound and points the worst way. Where a real error is easy to have, it is used.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, pi, sqrt, tan

import numpy as np
import pytest

from skdpfrechet import DPFrechetMean, DPFrechetVariance, sensitivity
from skdpfrechet._numerics import vecd
from skdpfrechet._solvers import load
from skdpfrechet._solvers._moments import exact_second_moment_sum
from skdpfrechet.estimators import _groups
from skdpfrechet.estimators._variance import _squared_distances
from skdpfrechet.manifolds import Euclidean, Hyperbolic, SPDAffineInvariant, Sphere
from skdpfrechet.mechanisms import Gaussian
from skdpfrechet.mechanisms._rounded_gaussian import has_flint

ROOM = Fraction(1) + Fraction(2) ** -35  # by how much the bounds may be rounded up

# --- the computed mean ----------------------------------------------------------------------------


HADAMARD = [
    (Euclidean(2), 1.0, 20_000),
    (Euclidean(2), 3.0, 2),
    (Hyperbolic(2), 13.0, 100),
    (Hyperbolic(5), 6.0, 1000),
    (SPDAffineInvariant(2), 2.0, 5000),
    (SPDAffineInvariant(3), 14.0, 50),
]


@pytest.mark.parametrize(("manifold", "radius", "n"), HADAMARD, ids=repr)
def test_computed_means_on_a_line_with_every_error_at_its_worst(manifold, radius, n):
    """All happens on one geodesic through the centre, where the spaces are lines.

    The exchanged record was moved to either end of a diameter, with an error outwards. The solver
    stopped at the tolerance, and the mean logarithm that it saw was too short by its error, on the
    one side for one data set and on the other for the other. So were the coordinates.
    """
    error = Fraction(sensitivity.log_error(manifold, radius, n))
    unseen = error + Fraction(sensitivity.running_sum(radius, n))
    g = Fraction(sensitivity.mean_tolerance(manifold, radius, n))
    end = Fraction(radius) + error
    exact = end / n, -end / n  # the others are at the centre
    p, q = exact[0] + (g + unseen), exact[1] - (g + unseen)
    gap = min(p - q, 2 * end) + 2 * error
    bound = Fraction(sensitivity.computed_mean(manifold, radius, n))
    assert gap <= bound <= gap * Fraction(1001, 1000)


@pytest.mark.parametrize("certified", [True, False])
@pytest.mark.parametrize(("manifold", "radius", "_"), HADAMARD, ids=repr)
def test_without_a_certificate_the_ball_bounds_the_mean(
    monkeypatch, manifold, radius, _, certified
):
    if not certified:
        monkeypatch.setattr(sensitivity, "MOST_PASSES", 0)
    n = 1 if certified else 100
    error = Fraction(sensitivity.log_error(manifold, radius, n))
    diameter = 2 * (Fraction(radius) + error) + 2 * error
    bound = Fraction(sensitivity.computed_mean(manifold, radius, n))
    assert diameter <= bound <= diameter * ROOM


def test_no_point_of_a_sphere_is_farther_than_its_diameter(monkeypatch):
    assert sensitivity.ball_diameter(Sphere(2), 1.5707963, 1) <= pi
    near = sensitivity.computed_mean(Sphere(2), 1.5, 10**6)
    assert near == pytest.approx(sensitivity.frechet_mean(Sphere(2), 1.5, 10**6), rel=0.25)
    monkeypatch.setattr(sensitivity, "MOST_PASSES", 0)
    wide = sensitivity.computed_mean(Sphere(2), 1.5, 10**6)
    assert 3.0 < wide < 3.0 * (1 + 1e-10)


@pytest.mark.parametrize("radius", [0.5, 0.78, 1.2, 1.5])
def test_slack_on_a_sphere_counts_both_means(radius):
    manifold, n = Sphere(2), 50
    g = Fraction(sensitivity.mean_tolerance(manifold, radius, n))
    unseen = Fraction(sensitivity.float_log_error(manifold, radius, n))
    # No residual moves a mean by less than tan(r)/r times its length, where records spread across.
    reached = 2 * (g + unseen) * Fraction(tan(radius) / radius)
    assert reached <= Fraction(sensitivity.mean_slack(manifold, radius, n)) * ROOM
    exact = Fraction(sensitivity.frechet_mean(manifold, radius, n))
    coordinates = 2 * Fraction(sensitivity.log_error(manifold, radius, n))
    assert exact + reached + coordinates <= Fraction(sensitivity.computed_mean(manifold, radius, n))


def test_the_residual_is_not_asked_to_be_smaller_than_its_own_error():
    for manifold, radius, n in HADAMARD:
        g = sensitivity.mean_tolerance(manifold, radius, n)
        assert g >= sensitivity.float_log_error(manifold, radius, n)
        assert 1e-4 * 2 * radius / n <= g <= 0.033 * 2 * radius / n


def exact_mean(values):
    return sum(map(Fraction, values.tolist())) / len(values)


def test_running_sums_of_equal_records_err_by_more_than_one_logarithm():
    n, radius = 100_000, 0.1
    X = np.full((n, 2), 0.07)
    sample = load(Euclidean(2), X)
    mean = sample.mean(np.zeros(2), radius, 0.0, 10)[0]
    error = abs(Fraction(float(mean[0])) - exact_mean(X[:, 0]))
    assert error > Fraction(sensitivity.log_error(Euclidean(2), radius, n))
    assert 2 * error < Fraction(sensitivity.running_sum(radius, n))


# --- other statistics in float64 ------------------------------------------------------------------


def test_float_sums_of_other_statistics_err_and_the_error_is_counted():
    n, radius = 100_000, 0.1
    X = np.full((n, 2), 0.07)
    sample = load(Euclidean(2), X)
    v = sample.coordinates(np.zeros(2), np.zeros(2), radius)
    square = Fraction(float(v[0, 0])) ** 2
    moment = abs(
        Fraction(float(sample.second_moment(np.zeros(2), np.zeros(2), radius)[0, 0])) - square
    )
    first = abs(Fraction(float(v.mean(axis=0)[0])) - exact_mean(v[:, 0]))
    assert first > 0
    s = sensitivity
    plane = Euclidean(2)
    for error, computed, plain in (
        (first, s.computed_tangent_mean(radius, n), s.tangent_mean(radius, n)),
        (first, s.computed_extrinsic_mean(n), s.extrinsic_mean(n)),
        (first, s.computed_variance(sqrt(radius), 0.0, n), s.variance(sqrt(radius), 0.0, n)),
        (
            moment,
            s.computed_second_moment(plane, radius, 0.0, n),
            s.second_moment(plane, radius, 0.0, n),
        ),
        (first, s.computed_paper(s.variance_paper(radius, n), n), s.variance_paper(radius, n)),
    ):
        assert 2 * error <= Fraction(computed) - Fraction(plain)
    # The room for rounding alone would not do.
    assert 2 * first > Fraction(s.tangent_mean(radius, n)) * (ROOM - 1)


@pytest.mark.parametrize("distance", [0.0, 0.3, 1.0, 7.0])
def test_running_sums_are_counted_for_terms_of_every_length(distance):
    n, radius, epsilon = 10**6, 1.0, 2.0**-52
    reach = radius + distance
    plane = Euclidean(2)
    plain = sensitivity.second_moment(plane, radius, distance, n)
    found = sensitivity.computed_second_moment(plane, radius, distance, n) - plain
    assert found >= 2 * n * epsilon * reach**2 / 2  # half of it is what additions can err by
    plain = sensitivity.variance(radius, distance, n)
    found = sensitivity.computed_variance(radius, distance, n) - plain
    assert found >= 2 * n * epsilon * reach**2 / 2


# --- exact sums of rounded records ----------------------------------------------------------------


def test_rounded_logarithms_leave_their_ball_and_that_is_counted():
    rng, step = np.random.default_rng(0), 2.0**-4
    turn = rng.uniform(0, 2 * pi, 20_000)
    v = np.stack([np.cos(turn), np.sin(turn)], axis=-1)
    w = np.stack([-v[:, 1], v[:, 0]], axis=-1)
    moments = exact_second_moment_sum(np.stack([v, w], axis=1)[:, :, None, :], step)
    found = np.linalg.norm(vecd(moments[:, 0]) - vecd(moments[:, 1]), axis=-1).max()
    plane = Euclidean(2)
    assert sensitivity.second_moment(plane, 1.0, 0.0, 1) < found
    assert found <= sensitivity.rounded_second_moment(plane, 1.0, 0.0, step)


def test_a_grid_moves_both_values():
    step, entries = 2.0**-6, 3
    gap = np.array([1.0, 1.0, 1.0]) * step * 1.02
    low = np.full(3, 0.49) * step
    a, b = np.rint(low / step) * step, np.rint((low + gap) / step) * step
    plain = float(np.linalg.norm(gap))
    assert np.linalg.norm(a - b) > plain
    assert np.linalg.norm(a - b) <= sensitivity.on_grid(plain, entries, step)


@pytest.mark.skipif(not has_flint(), reason="needs python-flint")
@pytest.mark.parametrize("n", [3, 1000])
def test_a_float_safe_variance_states_the_rounding_of_its_own_grids(monkeypatch, n):
    grids, release = [], Gaussian.release

    def spy(self, center, rng):
        if self.grid is not None:
            grids.append(self.grid.step)
        return release(self, center, rng)

    X = 0.1 * np.random.default_rng(0).standard_normal((n, 2))
    mean = DPFrechetMean(radius=1.0, mu=5.0, noise="secure").fit(X).release_
    monkeypatch.setattr(Gaussian, "release", spy)
    fit = DPFrechetVariance(radius=1.0, mu=1.0, mean=mean, noise="secure").fit(X)
    fine, coarse = grids[0], sqrt(grids[1])
    (row,) = fit.privacy_.releases
    distance = min(float(np.linalg.norm(fit.mean_)), 1.0)
    low, high = sensitivity.squared_distance_range(1.0, distance)
    # Two records at the ends of the range, each off by the two steps.
    worst = Fraction(high) - Fraction(low) + 2 * (Fraction(fine) + Fraction(coarse))
    assert worst <= Fraction(row.sensitivity) * n * (1 + Fraction(2) ** -50)
    assert worst > (Fraction(high) - Fraction(low)) * ROOM


# --- what clips before a sensitivity counts -------------------------------------------------------


@pytest.mark.parametrize("manifold", [Euclidean(2), Sphere(2), Hyperbolic(2)], ids=repr)
def test_group_means_are_put_back_into_the_ball(monkeypatch, manifold):
    center = np.eye(3)[-1] if manifold == Sphere(2) else manifold.origin
    local, radius = manifold.localize(center), 0.5
    outside = local.model.exp_coords(local.origin, np.array([1.1, 0.4]))

    class Lost:
        """A sample whose solver fails."""

        manifold, n = local.model, 2

        def reference(self):
            return self

        def mean_log(self, p):
            return np.full(2, np.nan)

        def mean(self, *arguments):
            return outside, np.asarray(inf)

    monkeypatch.setattr(_groups, "load", lambda *arguments: Lost())
    points = np.stack(
        [local.model.exp_coords(local.origin, c) for c in 0.1 * np.eye(2)[[0, 1, 0, 1]]]
    )
    means = _groups.group_means(local, points, np.array([0, 0, 1, 1]), radius)
    assert (local.model.dist(local.origin, means) <= radius * (1 + 1e-14)).all()


def test_squared_distances_are_clipped_to_their_range():
    class Lost:
        """A sample whose distances are anything."""

        def squared_distances(self, base):
            return np.array([-1.0, 0.0, 0.5, 4.0, 1e300, np.inf, -np.inf, np.nan])

    y = _squared_distances(np.zeros(2), 0.25, 4.0, Lost())
    assert y.tolist() == [0.25, 0.25, 0.5, 4.0, 4.0, 4.0, 0.25, 0.25]


def test_both_of_two_neighbours_are_summed_and_rounded():
    n = 10**6
    error = Fraction(sensitivity.running_sum(1.0, n))
    assert Fraction(sensitivity.in_float64(2 / n, 1.0, n)) >= Fraction(2 / n) + 2 * error
    fine, coarse = 2.0**-3, 2.0**-5  # each moves a record by less than a step
    worst = Fraction(sensitivity.variance(1.0, 0.5, 1)) + 2 * (Fraction(fine) + Fraction(coarse))
    assert Fraction(sensitivity.rounded_curve(1.0, 0.5, fine, coarse)) >= worst
