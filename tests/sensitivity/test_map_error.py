"""The map into the model around a public centre, against 50 digits, and the centres refused."""

from __future__ import annotations

from math import exp, inf, log, sqrt

import mpmath
import numpy as np
import pytest

from skdpfrechet import DPFrechetMean, sensitivity
from skdpfrechet._numerics import unvecd
from skdpfrechet.manifolds import (
    Euclidean,
    Hyperbolic,
    SPDAffineInvariant,
    SPDLogCholesky,
    SPDLogEuclidean,
    Sphere,
)


def matrix(a):
    return mpmath.matrix([[mpmath.mpf(float(x)) for x in row] for row in a])


def apply(function, a):
    w, q = mpmath.eigsy((a + a.T) / 2)
    return q * mpmath.diag([function(x) for x in w]) * q.T


def norm(a):
    return float(mpmath.sqrt(sum(x * x for x in a)))


def orthogonal(rng, size):
    return np.linalg.qr(rng.standard_normal((size, size)))[0]


def spd(logs, q):
    a = (q * np.exp(logs)) @ q.T
    return (a + a.T) / 2


def affine_error(manifold, center, x):
    found = matrix(manifold.localize(center).to_model(x[None])[0])
    white = apply(lambda w: 1 / mpmath.sqrt(w), matrix(center))
    truth = apply(lambda w: 1 / mpmath.sqrt(w), white * matrix(x) * white)
    return norm(apply(mpmath.log, truth * found * truth))


def log_euclidean_error(manifold, center, x):
    found = matrix(unvecd(manifold.localize(center).to_model(x[None])[0]))
    return norm(apply(mpmath.log, matrix(x)) - apply(mpmath.log, matrix(center)) - found)


def log_cholesky_error(manifold, center, x):
    found = matrix(manifold._unpack(manifold.localize(center).to_model(x[None])[0]))
    first, second = mpmath.cholesky(matrix(x)), mpmath.cholesky(matrix(center))
    truth = first - second
    for i in range(manifold.size):
        truth[i, i] = mpmath.log(first[i, i]) - mpmath.log(second[i, i])
    return norm(truth - found)


@pytest.mark.parametrize("length", [1.0, 1e3])
@pytest.mark.parametrize("condition", [1.0, 1e2, 1e5, 1e8, 1e11, 1e14])
@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_map_error_near_a_centre_of_any_condition(size, condition, length):
    rng, tried = np.random.default_rng(size), 0
    for shape in ("even", "one small", "one large"):
        logs = -np.linspace(0, log(condition), size)
        if shape != "even":
            logs = np.where(
                np.arange(size) < (size - 1 if shape == "one small" else 1), 0, logs[-1]
            )
        center = length**2 * spd(logs, orthogonal(rng, size))
        w, q = np.linalg.eigh(center)
        if w[0] <= 0 or w[-1] / w[0] > 1e15:
            continue
        direction = rng.standard_normal(size)
        offset = 10.0 ** rng.uniform(-6, -1.5) * direction / np.linalg.norm(direction)
        root = (q * np.sqrt(w)) @ q.T
        x = root @ spd(offset, orthogonal(rng, size)) @ root
        x, tried = (x + x.T) / 2, tried + 1
        seen = w[-1] / w[0], sqrt(w[-1])
        with mpmath.workdps(50):
            for manifold, error in (
                (SPDAffineInvariant(size), affine_error),
                (SPDLogEuclidean(size), log_euclidean_error),
                (SPDLogCholesky(size), log_cholesky_error),
            ):
                for point in (center, x):
                    if np.linalg.eigvalsh(point)[0] > 0:
                        bound = sensitivity.map_error(manifold, *seen)
                        assert error(manifold, center, point) <= bound
    assert tried > 0


@pytest.mark.parametrize("radius", [0.5, 2.0])
@pytest.mark.parametrize("condition", [1e2, 1e6])
@pytest.mark.parametrize("size", [2, 5])
def test_map_error_grows_with_the_condition_of_the_record(size, condition, radius):
    rng = np.random.default_rng(size)
    manifold = SPDAffineInvariant(size)
    for _ in range(6):
        logs = -np.linspace(0, log(condition), size)
        turn = orthogonal(rng, size)
        center, root = spd(logs, turn), spd(logs / 2, turn)
        corner = np.zeros(size)
        corner[[0, -1]] = radius / sqrt(2) * np.array([1, -1])
        near = np.linalg.qr(turn + 1e-3 * rng.standard_normal((size, size)))[0]
        x = root @ spd(corner, near) @ root
        with mpmath.workdps(50):
            error = affine_error(manifold, center, (x + x.T) / 2)
        assert error <= sensitivity.map_error(manifold, condition) * exp(sqrt(2) * radius)


@pytest.mark.parametrize("distance", [0.0, 1.0, 5.0, 10.0, 15.0])
@pytest.mark.parametrize("dim", [2, 5])
def test_map_error_near_a_centre_far_out_in_hyperbolic_space(dim, distance):
    rng, space = np.random.default_rng(dim), Hyperbolic(dim)
    for _ in range(20):
        u, v = rng.standard_normal((2, dim))
        center = space.exp_coords(space.origin, distance * u / np.linalg.norm(u))
        x = space.exp_coords(center, 10.0 ** rng.uniform(-6, -0.5) * v / np.linalg.norm(v))
        found = space.localize(center).to_model(x)[1:]
        with mpmath.workdps(50):
            p, y = ([mpmath.mpf(float(a)) for a in point[1:]] for point in (center, x))
            along = sum(a * b for a, b in zip(p, y, strict=True))
            time_p = mpmath.sqrt(1 + sum(a * a for a in p))
            time_y = mpmath.sqrt(1 + sum(a * a for a in y))
            factor = along / (1 + time_p) - time_y
            gap = [b + a * factor - float(c) for a, b, c in zip(p, y, found, strict=True)]
            error = norm(gap)
        assert error <= sensitivity.map_error(space, float(2 * center[0]) ** 2)


def test_flat_shifts_and_spheres_are_free():
    assert sensitivity.map_error(Euclidean(3), 1e14) == 0
    assert sensitivity.map_error(Sphere(2), 1.0) == 0


ILL = spd(np.linspace(0, -log(2e10), 5), orthogonal(np.random.default_rng(3), 5))


@pytest.mark.parametrize(("n", "mu"), [(10**5, 1.0), (3 * 10**6, 1.0), (10, 1.0), (10, inf)])
@pytest.mark.parametrize("name", ["spd", "logeuclid", "logchol"])
def test_a_centre_of_large_condition_is_refused_with_the_number(name, n, mu):
    estimator = DPFrechetMean(name, center=ILL, radius=4.0, mu=mu)
    with pytest.raises(ValueError, match=r"center must be .* got .* condition number of 2e\+10"):
        estimator._plan((n, 5, 5), None)


@pytest.mark.parametrize(
    ("n", "mu", "good"), [(1000, 1.0, True), (10**7, 1.0, False), (10**7, inf, True)]
)
def test_the_limit_follows_from_what_is_released(n, mu, good):
    center = spd(np.linspace(0, -log(1e7), 5), orthogonal(np.random.default_rng(4), 5))
    estimator = DPFrechetMean("spd", center=center, radius=4.0, mu=mu)
    if good:
        estimator._plan((n, 5, 5), None)
    else:
        with pytest.raises(ValueError, match="by at most 8e-09 on"):
            estimator._plan((n, 5, 5), None)


def test_a_centre_far_out_is_refused_with_the_number():
    space = Hyperbolic(2)
    center = space.exp_coords(space.origin, np.array([12.0, 0.0]))
    with pytest.raises(ValueError, match=r"got 1\.8e-05 from a condition number of 2\.6e\+10"):
        DPFrechetMean(space, center=center, radius=1.0)._plan((100, 3), None)
