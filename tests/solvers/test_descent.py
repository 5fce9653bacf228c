"""The descent that is proved to reach the certificate, with nothing faster to help it."""

from __future__ import annotations

from math import inf, pi

import mpmath
import numpy as np
import pytest

from skdpfrechet import sensitivity
from skdpfrechet._solvers import Sample, descend_in_ball, point_of_ball
from skdpfrechet._solvers import _frechet_mean as solver
from skdpfrechet.manifolds import Euclidean, Hyperbolic, SPDAffineInvariant, Sphere

N = 64


class Counted(Sample):
    """A sample that counts passes, and on which every fast iteration fails at once."""

    passes = 0

    def mean(self, start, radius, tolerance, max_iter):
        return start, np.array(inf)

    def improve(self, begin, start, radius, tolerance, max_iter):
        return begin, np.array(inf)

    def mean_log(self, base):
        self.passes += 1
        return super().mean_log(base)


class Helped(Counted):
    """Counts passes of the descent, and leaves it the fast iteration."""

    improve = Sample.improve


def center_of(space):
    return np.eye(space.dim + 1)[-1] if isinstance(space, Sphere) else space.origin


def configurations(space, radius, n=N):
    """Records in unkind places, and where a descent from them would rather not begin."""
    rng = np.random.default_rng(3)
    axis, other = np.eye(space.dim)[0], np.eye(space.dim)[-1]
    sign = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)[:, None]
    spread = rng.standard_normal((n, space.dim))
    spread *= radius / np.linalg.norm(spread, axis=-1, keepdims=True)
    tilted = sign * axis + 1e-3 * rng.standard_normal((n, space.dim))
    tilted *= radius / np.linalg.norm(tilted, axis=-1, keepdims=True)
    almost = np.repeat(radius * axis[None], n, axis=0)
    almost[0] *= -1
    lopsided = np.where(np.arange(n)[:, None] < n // 4, -radius, radius) * axis
    for c in (radius * sign * axis, spread, tilted, almost, lopsided, 0 * spread):
        yield c, radius * other
        yield c, np.zeros(space.dim)
        yield c, -radius * axis


@pytest.mark.parametrize(
    ("space", "radius"),
    [
        *[(Sphere(d), r) for d in (1, 2, 5) for r in (1e-8, 0.3, 1.2, 1.5)],
        (Sphere(2), 1.54),
        *[(Hyperbolic(d), r) for d in (1, 2, 5) for r in (1e-8, 1.0, 6.0)],
        *[(SPDAffineInvariant(p), r) for p in (1, 2, 4) for r in (1e-8, 1.0, 5.0, 14.0, 500.0)],
    ],
    ids=repr,
)
def test_it_reaches_the_tolerance_within_the_stated_passes(space, radius):
    tolerance = sensitivity.mean_tolerance(space, radius, N)
    cap = sensitivity.float_log_cap(space, radius, N)
    passes = sensitivity.mean_passes(space, radius, N)
    start = center_of(space)
    assert passes <= sensitivity.MOST_PASSES
    for c, begin in configurations(space, radius):
        points, first = (
            space.project_to_ball(space.exp_coords(start, x), start, radius, cap)
            for x in (c, begin)
        )
        sample = Counted(space, points)
        p, residual = descend_in_ball(
            sample, first, start, radius, tolerance, int(passes), log_cap=cap
        )
        assert residual <= tolerance
        # One more for each of the attempts that fail here.
        assert sample.passes <= passes + np.log2(passes) + 1
        moved = space.project_to_ball(p, start, radius, cap)
        assert float(space.dist(moved, p)) <= sensitivity.log_error(space, radius, N)


@pytest.mark.parametrize(
    ("space", "radius"), [(Sphere(2), 1.5), (Hyperbolic(2), 5.0), (SPDAffineInvariant(2), 5.0)]
)
def test_the_whole_solver_needs_nothing_else(space, radius):
    tolerance, start = sensitivity.mean_tolerance(space, radius, N), center_of(space)
    for c, _ in configurations(space, radius):
        sample = Counted(space, space.exp_coords(start, c))
        p = point_of_ball(
            sample, start, radius=radius, log_cap=inf, tolerance=tolerance, passes=10**6
        )
        assert np.linalg.norm(space.log_coords(p, sample.points).mean(axis=0)) <= tolerance


def test_no_descent_where_nothing_rests_on_it():
    sphere = Sphere(2)
    sample = Counted(sphere, sphere.exp_coords(center_of(sphere), np.eye(2)))
    p = point_of_ball(sample, center_of(sphere), radius=1.57, log_cap=inf, tolerance=1e-9, passes=0)
    assert sample.passes == 0
    assert (p == center_of(sphere)).all()


class Liar(Counted):
    """The fast iteration ends outside the ball, or at nothing, and claims success."""

    def __init__(self, manifold, points, claim):
        super().__init__(manifold, points)
        self.claim = claim

    def mean(self, start, radius, tolerance, max_iter):
        return self.claim, np.array(0.0)


@pytest.mark.parametrize("claim", [[0.0, 0.0, -1.0], [1.0, 0.0, 0.0], [np.nan] * 3])
@pytest.mark.parametrize("passes", [0, 10**6])
def test_a_point_outside_the_ball_is_never_believed(claim, passes):
    sphere, radius = Sphere(2), 1.4
    start, c = center_of(sphere), np.array([[1.0, 0.0], [-1.0, 0.2], [0.3, 0.9]])
    sample = Liar(sphere, sphere.exp_coords(start, c), np.array(claim))
    p = point_of_ball(sample, start, radius=radius, log_cap=inf, tolerance=1e-6, passes=passes)
    assert float(sphere.dist(start, p)) <= radius * (1 + 1e-15)
    if passes:
        assert np.linalg.norm(sphere.log_coords(p, sample.points).mean(axis=0)) <= 1e-6


def test_an_attempt_that_succeeds_ends_the_descent():
    """Else a fit near a hemisphere would take its ten thousand passes."""
    sphere, radius = Sphere(2), 1.5
    start = center_of(sphere)
    for c, begin in configurations(sphere, radius):
        sample = Helped(sphere, sphere.exp_coords(start, c))
        descend_in_ball(sample, sphere.exp_coords(start, begin), start, radius, 1e-8, 10**6)
        assert sample.passes <= 64


def test_the_step_on_matrices_is_short_enough():
    # x coth x is the largest eigenvalue of the Hessian at distance x √2.
    space = SPDAffineInvariant(2)
    for radius in (0.5, 3.0):
        far = 3 * radius * np.array([1.0, -1.0, 0.0]) / np.sqrt(2)
        hessian = space.squared_distance_hessian(np.eye(2), space.from_coords(np.eye(2), far)) / 2
        smooth = 1 / sensitivity.descent_step(space, radius, N)
        assert np.linalg.eigvalsh(hessian)[-1] <= smooth
        assert smooth == pytest.approx(max(2.0, np.linalg.eigvalsh(hessian)[-1]), rel=0.2)


def test_passes_that_are_too_many_to_promise():
    for n, limit in ((100, 1.5625), (10**5, 1.5617)):
        assert sensitivity.mean_passes(Sphere(2), limit, n) <= sensitivity.MOST_PASSES
        assert sensitivity.mean_passes(Sphere(2), limit + 1e-4, n) > sensitivity.MOST_PASSES
        assert sensitivity.certified(Sphere(2), limit, n)
        assert not sensitivity.certified(Sphere(2), 1.565, n)
        assert sensitivity.unproved(Sphere(2), 1.565, n) == (n > 100)  # else Δ is no less anyway
    assert sensitivity.mean_passes(Euclidean(3), 2.0, 10) == 1
    for space in (Hyperbolic(2), SPDAffineInvariant(3), Sphere(1)):
        radius = min(pi / 2 - 1e-9, sensitivity.float_radius_limit(space, 10**6))
        assert sensitivity.mean_passes(space, radius, 10**6) < 10**4


def test_certified_points_are_near_the_mean_in_fifty_digits():
    """The mean of n - k records at one point and k at another is on the geodesic between them."""
    sphere, radius = Sphere(2), 1.5
    start = center_of(sphere)
    with mpmath.workdps(50):
        for k in (1, 13, 32):
            c = np.where(np.arange(N)[:, None] < k, -radius, radius) * np.array([0.6, 0.8])
            points = sphere.exp_coords(start, c)
            x, y = (mpmath.matrix(points[i].tolist()) for i in (0, -1))
            x, y = x / mpmath.norm(x), y / mpmath.norm(y)
            angle = mpmath.acos((x.T * y)[0])
            share = mpmath.mpf(N - k) / N
            exact = mpmath.sin((1 - share) * angle) * x + mpmath.sin(share * angle) * y
            exact /= mpmath.sin(angle)
            g = sensitivity.mean_tolerance(sphere, radius, N)
            error = sensitivity.float_log_error(sphere, radius, N)
            for sample in (Sample(sphere, points), Counted(sphere, points)):
                p = point_of_ball(
                    sample, start, radius=radius, log_cap=inf, tolerance=g, passes=10**6
                )
                q = mpmath.matrix(p.tolist())
                gap = 2 * mpmath.asin(mpmath.norm(exact - q / mpmath.norm(q)) / 2)
                assert gap <= sensitivity.distance_to_mean(sphere, radius, g + error)


def test_what_is_not_a_number_ends_the_descent():
    sphere = Sphere(2)
    sample = Sample(sphere, np.full((5, 3), np.nan))
    p, residual = solver.descend_in_ball(
        sample, center_of(sphere), center_of(sphere), 1.2, 1e-6, 10**6
    )
    assert (p == center_of(sphere)).all()
    assert residual == inf
