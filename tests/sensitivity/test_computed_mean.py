"""Attacks on what a computed mean adds: early stopping and rounding."""

from __future__ import annotations

from math import inf

import mpmath
import numpy as np
import pytest

from skdpfrechet import sensitivity
from skdpfrechet._numerics import clip_norm, from_eigen, vecd
from skdpfrechet._solvers import frechet_mean
from skdpfrechet.manifolds import (
    Euclidean,
    Hyperbolic,
    SPDAffineInvariant,
    SPDLogEuclidean,
    Sphere,
)

# --- early stopping -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("manifold", "radius"),
    [
        *[(Sphere(2), r) for r in (0.3, 0.7, 0.78, 0.8, 1.0, 1.2, 1.4, 1.5)],
        (Sphere(3), 0.7),
        (Sphere(3), 1.2),
        (Sphere(1), 1.4),
        (Euclidean(2), 1.0),
        (Hyperbolic(2), 1.0),
        (Hyperbolic(2), 4.0),
        (SPDAffineInvariant(2), 1.0),
        (SPDAffineInvariant(2), 4.0),
    ],
    ids=repr,
)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_small_residual_means_that_the_mean_is_near(adversary, check, manifold, radius, n):
    # Rows: an unused one, n records, the point p.
    def objective(c):
        points = adversary.points(manifold, c)
        p = points[:, -1]
        mean, _ = adversary.at_the_mean(manifold, radius, c)
        logs = manifold.log_coords(p[:, None], points[:, 1:-1])
        residual = np.linalg.norm(logs.mean(axis=-2), axis=-1)
        bound = [sensitivity.distance_to_mean(manifold, radius, g) for g in residual]
        ratio = manifold.dist(p, mean) / np.maximum(bound, 1e-12)
        return np.where(residual > 1e-4, ratio, 0.0)  # smaller ones measure rounding

    found = adversary.maximise(objective, n + 2, manifold.dim, radius)
    sharp = sensitivity.radius_limit(manifold) == inf or manifold.dim == 1
    check(found, 1.0, sharp=sharp)


@pytest.mark.parametrize("radius", [0.3, 1.2, 1.5])
def test_the_factor_of_small_residuals_cannot_be_lowered(radius):
    sphere, north = Sphere(2), np.array([0.0, 0.0, 1.0])
    points = sphere.exp_coords(north, radius * np.array([[1.0, 0.0], [-1.0, 0.0]]))
    p = sphere.exp_coords(north, np.array([0.0, 1e-5]))
    residual = np.linalg.norm(sphere.log_coords(p, points).mean(axis=0))
    bound = sensitivity.distance_to_mean(sphere, radius, residual)
    assert bound * (1 - 2e-4) <= float(sphere.dist(p, north)) <= bound


def test_distance_to_the_mean_grows_with_radius_and_residual():
    radii = np.linspace(0.01, 1.57, 200)
    by_radius = [sensitivity.distance_to_mean(Sphere(2), r, 1e-4) for r in radii]
    assert (np.diff(by_radius) > 0).all()
    assert by_radius[0] == pytest.approx(1e-4, rel=1e-3)
    by_residual = [sensitivity.distance_to_mean(Sphere(2), 1.4, g) for g in (0.0, 0.1, 0.17)]
    assert (np.diff(by_residual) > 0).all()
    assert sensitivity.distance_to_mean(Sphere(2), 1.4, 0.173) == inf  # cot 1.4 = 0.1725
    assert sensitivity.distance_to_mean(Sphere(1), 1.5, 0.2) == 0.2
    assert sensitivity.distance_to_mean(Hyperbolic(3), 9.0, 0.2) == 0.2


@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize("share", [1e-4, 0.1])
@pytest.mark.parametrize(
    ("manifold", "radius"),
    [(Sphere(2), 0.7), (Sphere(2), 1.2), (Hyperbolic(2), 1.0), (SPDAffineInvariant(2), 2.0)],
    ids=repr,
)
def test_an_early_stop_costs_at_most_two_such_distances(
    adversary, check, manifold, radius, share, n
):
    g = share * 2 * radius / n
    objective = adversary.gap_of_means(manifold, radius, tolerance=g, accept=g)
    found = adversary.maximise(objective, n + 1, manifold.dim, radius)
    bound = sensitivity.frechet_mean(manifold, radius, n)
    check(found, bound + 2 * sensitivity.distance_to_mean(manifold, radius, g))


# --- rounding: logarithms against 50 digits -------------------------------------------------------


def precise(a):
    return np.vectorize(lambda x: mpmath.mpf(float(x)), otypes=[object])(a)


def precise_spd_log(p, x):
    def apply(function, a):
        w, q = mpmath.eigsy(a)
        return q * mpmath.diag([function(value) for value in w]) * q.T

    root = apply(lambda w: 1 / mpmath.sqrt(w), mpmath.matrix(precise(p).tolist()))
    white = root * mpmath.matrix(precise(x).tolist()) * root
    return np.array(apply(mpmath.log, (white + white.T) / 2).tolist())


def precise_hyperbolic_log(p, x):
    p, x = precise(p[1:]), precise(x[1:])  # the space parts define the points
    time_p, time_x = mpmath.sqrt(1 + p @ p), mpmath.sqrt(1 + x @ x)
    y = x + p * ((p @ x) / (1 + time_p) - time_x)
    length = mpmath.sqrt(y @ y)
    return y * (mpmath.asinh(length) / length)


def precise_sphere_log(p, x):
    p, x = precise(p), precise(x)
    p, x = p / mpmath.sqrt(p @ p), x / mpmath.sqrt(x @ x)
    w = x - (p @ x) * p
    length = mpmath.sqrt(w @ w)
    v = w * (mpmath.atan2(length, p @ x) / length) if length > 0 else 0 * w
    h = p.copy()
    h[0] += -1 if p[0] < 0 else 1
    return (v - h * ((h @ v) / (1 + abs(p[0]))))[1:]


def precise_coords(manifold, p, x):
    """`log_coords` in 50 digits, rounded to float64 in the end."""
    with mpmath.workdps(50):
        if isinstance(manifold, SPDAffineInvariant):
            return vecd(precise_spd_log(p, x).astype(float))
        if isinstance(manifold, Hyperbolic):
            return precise_hyperbolic_log(p, x).astype(float)
        return precise_sphere_log(p, x).astype(float)


def extreme_pair(adversary, manifold, radius, cap):
    """Two points of the ball that nearly face each other or nearly agree: rounding bites there."""
    rng, center = adversary.rng, adversary.center(manifold)
    tilt = 10.0 ** rng.uniform(-12, 0.5)
    if isinstance(manifold, SPDAffineInvariant):
        size, limit = manifold.size, min(cap, radius)
        q = np.linalg.qr(rng.standard_normal((size, size)))[0]
        turned = np.linalg.qr(q + tilt * rng.standard_normal((size, size)))[0]
        corner = np.where(np.arange(size) < rng.integers(1, size), -limit, limit)
        pair = np.stack([from_eigen(np.exp(corner), q), from_eigen(np.exp(-corner), turned)])
    else:
        u = rng.standard_normal(manifold.dim)
        w = rng.choice([-1, 1]) * u + tilt * rng.standard_normal(manifold.dim)
        pair = clip_norm(np.stack([u, w]) * 1e3, radius)
        pair[1] *= rng.choice([1.0, rng.uniform()])
        pair = manifold.exp_coords(center, pair)
    return manifold.project_to_ball(pair, center, radius, cap)


@pytest.mark.parametrize("n", [1, 100])
@pytest.mark.parametrize(
    ("manifold", "radius"),
    [
        *[(SPDAffineInvariant(p), r) for p in (2, 3) for r in (2.0, 6.0, 10.0, 12.0, 14.0, 30.0)],
        *[(SPDAffineInvariant(4), r) for r in (14.0, 100.0)],
        *[(Hyperbolic(d), r) for d in (2, 5) for r in (0.5, 6.0, 10.0, 13.0)],
        *[(Sphere(d), r) for d in (1, 2, 5) for r in (0.1, 0.7, 1.2, 1.5)],
    ],
    ids=repr,
)
def test_error_of_a_computed_logarithm(adversary, check, manifold, radius, n):
    cap = sensitivity.float_log_cap(manifold, radius, n)
    worst = 0.0
    for _ in range(50):
        p, x = extreme_pair(adversary, manifold, radius, cap)
        error = precise_coords(manifold, p, x) - manifold.log_coords(p, x)
        worst = max(worst, float(np.linalg.norm(error)))
    check(worst, sensitivity.float_log_error(manifold, radius, n))


@pytest.mark.parametrize("n", [1, 100, 10**5])
@pytest.mark.parametrize(
    "manifold", [Euclidean(2), Sphere(2), Hyperbolic(2), SPDAffineInvariant(2)], ids=repr
)
def test_error_of_the_running_sum(adversary, check, manifold, n):
    # Equal records: every partial sum is rounded in the same direction for long stretches.
    center = adversary.center(manifold)
    worst = 0.0
    for c in adversary.starts(6, 1, manifold.dim, 0.5)[:, 0]:
        logs = np.broadcast_to(
            manifold.log_coords(center, manifold.exp_coords(center, c)), (n, manifold.dim)
        )
        worst = max(
            worst, float(np.linalg.norm(np.ascontiguousarray(logs).mean(axis=-2) - logs[0]))
        )
    check(worst, sensitivity.float_log_error(manifold, 0.5, n))


def test_log_cap():
    for manifold in (Euclidean(2), Sphere(2), Hyperbolic(2), SPDLogEuclidean(2)):
        assert sensitivity.float_log_cap(manifold, 3.0, 10) == inf
    for size, radius, n in [(2, 14.0, 50), (3, 10.0, 600), (8, 30.0, 1000)]:
        manifold = SPDAffineInvariant(size)
        cap = sensitivity.float_log_cap(manifold, radius, n)
        assert 5 < cap < 8
        assert sensitivity.float_log_error(manifold, radius, n) == pytest.approx(
            sensitivity.frechet_mean(manifold, radius, n) / 100, rel=1e-6
        )
    # However large the radius, no whitened eigenvalue may drown in rounding.
    assert sensitivity.float_log_error(SPDAffineInvariant(4), 500.0, 1) == pytest.approx(0.1)


@pytest.mark.parametrize("n", [1, 10, 1000])
@pytest.mark.parametrize("dim", [2, 5])
def test_hyperbolic_radius_limit(dim, n):
    manifold = Hyperbolic(dim)
    limit = sensitivity.float_radius_limit(manifold, n)
    share = sensitivity.float_log_error(manifold, limit, n) / sensitivity.frechet_mean(
        manifold, limit, n
    )
    assert share == pytest.approx(0.01, rel=1e-3)
    assert sensitivity.float_radius_limit(SPDAffineInvariant(2), n) == inf


# --- rounding: the computed mean -----------------------------------------------------------------


def tolerance(manifold, radius, n):
    """The public tolerance of the estimators."""
    error = sensitivity.float_log_error(manifold, radius, n)
    return sensitivity.mean_tolerance(manifold, radius, n), error


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize(
    ("manifold", "radius"),
    [
        *[(SPDAffineInvariant(p), r) for p in (2, 3) for r in (6.0, 10.0, 12.0, 14.0)],
        *[(Hyperbolic(2), r) for r in (6.0, 12.0)],
        *[(Sphere(2), r) for r in (0.7, 1.5)],
    ],
    ids=repr,
)
def test_exact_residual_at_the_computed_mean(adversary, check, manifold, radius, n):
    # The certificate is a computed residual; what counts is the exact one at the same point.
    cap = sensitivity.float_log_cap(manifold, radius, n)
    g, error = tolerance(manifold, radius, n)
    center = adversary.center(manifold)
    pairs = np.stack([extreme_pair(adversary, manifold, radius, cap) for _ in range(8)])
    weights = (np.arange(n) >= (n + 1) // 2).astype(int)  # records on the two points
    means = frechet_mean(manifold, pairs[:, weights], center, radius=radius, tolerance=g, accept=g)
    worst = 0.0
    for p, pair in zip(means, pairs, strict=True):
        logs = np.stack([precise_coords(manifold, p, x) for x in pair])
        worst = max(worst, float(np.linalg.norm(logs[weights].mean(axis=0))))
    check(worst, g + error)


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("radius", [6.0, 10.0, 12.0, 14.0])
@pytest.mark.parametrize("size", [2, 3])
def test_computed_mean_of_far_flung_matrices(adversary, check, size, radius, n):
    manifold = SPDAffineInvariant(size)
    cap = sensitivity.float_log_cap(manifold, radius, n)
    g, error = tolerance(manifold, radius, n)

    def objective(c):
        points = adversary.points(manifold, c)
        points = manifold.project_to_ball(points, manifold.origin, radius, cap)
        both = np.stack([points[:, :-1], points[:, 1:]])
        p, q = frechet_mean(manifold, both, manifold.origin, tolerance=g, accept=g)
        return manifold.dist(p, q)

    found = adversary.maximise(objective, n + 1, manifold.dim, radius, batch=64, rounds=20)
    check(found, sensitivity.frechet_mean(manifold, radius, n) + 2 * (g + error))
