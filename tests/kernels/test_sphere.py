"""Compiled sphere kernels against the numpy functions of the manifold, and mpmath at the cut."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("numba")

from skdpfrechet._kernels import _sphere as kernels
from skdpfrechet._kernels import _threads
from skdpfrechet._kernels._sphere_coordinates import clipped_coordinates
from skdpfrechet._numerics import clip_norm
from skdpfrechet.manifolds import Sphere

SIZES = (2, 3, 5, 6, 11, 16, 17, 100, 201)  # every kind of kernel, whole vectors and rests
COUNTS = (1, 7, 16, 131)
NEARLY_PI = np.pi - 1e-6


@pytest.fixture
def rng():
    return np.random.default_rng(20260612)


def unit(rng, *shape):
    x = rng.standard_normal(shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def frames(sphere, base):
    rows = sphere.from_coords(base[:, None], np.eye(sphere.dim))
    return np.swapaxes(rows, -1, -2)


def at_distances(rng, base, distances):
    """Points of random directions at `distances`, shape (n,), from each base point."""
    sphere = Sphere(base.shape[-1] - 1)
    c = unit(rng, len(base), len(distances), sphere.dim) * np.asarray(distances)[:, None]
    return sphere.exp_coords(base[:, None], c)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("count", COUNTS)
def test_sums_match_numpy(rng, size, count):
    sphere = Sphere(size - 1)
    base, points = unit(rng, 3, size), unit(rng, 3, count, size)
    points[:, 0] = base  # no direction, no distance
    logs, c = sphere.log(base[:, None], points), sphere.log_coords(base[:, None], points)
    packed = kernels.pack(points)
    for hessian in (False, True):
        sums = kernels.log_sums(packed, base, hessian)
        assert_allclose(sums.log / count, logs.mean(axis=1), rtol=0, atol=1e-13)
        squares = sphere.dist(base[:, None], points) ** 2
        assert_allclose(sums.squared_distance, squares.sum(axis=1), rtol=1e-12, atol=1e-300)
        assert (sums.hessian is not None) == hessian
    frame = frames(sphere, base)
    expected = sphere.mean_squared_distance_hessian(base, c) / 2
    inner = np.swapaxes(frame, -1, -2) @ sums.hessian @ frame
    assert_allclose(inner, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    assert_allclose((sums.hessian @ base[..., None])[..., 0], 0, atol=1e-12)
    trace = 1 + (size - 2) * sums.cotangent / count
    assert_allclose(np.trace(sums.hessian, axis1=1, axis2=2), trace, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("distance", [0.0, 1e-7, 1e-3, 1.0, np.pi / 2, 3.0, NEARLY_PI])
def test_every_distance_is_accurate(rng, size, distance):
    sphere = Sphere(size - 1)
    base = unit(rng, 2, size)
    points = at_distances(rng, base, np.full(19, distance))
    packed = kernels.pack(points)
    expected = sphere.dist(base[:, None], points)
    squares = kernels.squared_distances(packed, base)
    assert_allclose(squares, expected**2, rtol=1e-12, atol=1e-30)
    sums = kernels.log_sums(packed, base, hessian=True)
    logs = sphere.log(base[:, None], points)
    # Tighter than asked for near the base: relative to the length of the logarithms.
    assert_allclose(
        sums.log / 19, logs.mean(axis=1), rtol=0, atol=max(1e-13 * min(1.0, distance), 1e-15)
    )
    c = sphere.coords(base[:, None], logs)
    hessian = sphere.mean_squared_distance_hessian(base, c) / 2
    frame = frames(sphere, base)
    inner = np.swapaxes(frame, -1, -2) @ sums.hessian @ frame
    # numpy's x / tan x loses digits at the cut locus; the next test has an exact reference.
    accuracy = 1e-8 if distance == NEARLY_PI else 1e-12
    assert_allclose(inner, hessian, rtol=0, atol=accuracy * np.abs(hessian).max())


@pytest.mark.parametrize("size", [3, 11, 100])
@pytest.mark.parametrize(
    "distance", [1e-7, 0.5, np.pi / 2 - 1e-9, np.pi / 2 + 1e-9, 3.1, NEARLY_PI]
)
def test_ratios_match_mpmath(rng, size, distance):
    base = unit(rng, 1, size)
    points = at_distances(rng, base, [distance])
    packed = kernels.pack(points)
    with mpmath.workdps(50):
        p, q = ([mpmath.mpf(float(x)) for x in v] for v in (base[0], points[0, 0]))
        cosine = mpmath.fdot(p, q) / mpmath.sqrt(mpmath.fdot(p, p) * mpmath.fdot(q, q))
        theta = mpmath.acos(cosine)
        square, cotangent = float(theta**2), float(theta * mpmath.cot(theta))
    sums = kernels.log_sums(packed, base, hessian=True)
    assert_allclose(sums.squared_distance, square, rtol=2e-15 if distance > 0.1 else 1e-13)
    # θ cot θ crosses 0 at the equator; coordinates are rounded to 1e-16.
    assert_allclose(sums.cotangent, cotangent, rtol=1e-12, atol=4e-15)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("radius", [0.0, 0.3, 1.2, np.inf])
def test_moments_match_numpy(rng, size, radius):
    sphere = Sphere(size - 1)
    base, points = unit(rng, 2, size), unit(rng, 2, 45, size)
    points[:, 3] = base
    points[:, 4] = at_distances(rng, base, [NEARLY_PI])[:, 0]
    points[:, 5, 0], points[:, 6, 0], points[:, 44] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        c = clip_norm(sphere.log_coords(base[:, None], points), radius)
    expected = np.swapaxes(c, -1, -2) @ c / 45
    moment = kernels.clipped_moment(kernels.pack(points), base, frames(sphere, base), radius)
    assert_allclose(moment, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_antipode_is_finite(rng, size):
    base = unit(rng, 1, size)
    packed = kernels.pack(-np.repeat(base[:, None], 9, axis=1))
    sums = kernels.log_sums(packed, base, hessian=True)
    assert np.isfinite(sums.log).all()
    assert np.isfinite(sums.hessian).all()
    assert_allclose(kernels.squared_distances(packed, base), np.pi**2, rtol=1e-14)


@pytest.mark.parametrize("size", SIZES)
def test_bits_do_not_depend_on_threads_or_neighbours(rng, size, monkeypatch):
    monkeypatch.setattr(_threads, "_SEGMENT", 256)
    monkeypatch.setattr(_threads, "_THREAD_SECONDS", 1e-12)
    sphere = Sphere(size - 1)
    base, points = unit(rng, 5, size), unit(rng, 5, 333, size)
    frame = frames(sphere, base)

    def results(rows, n_jobs):
        packed = kernels.pack(points[rows], n_jobs)
        sums = kernels.log_sums(packed, base[rows], True, n_jobs)
        return (
            sums.log,
            sums.squared_distance,
            sums.cotangent,
            sums.hessian,
            kernels.squared_distances(packed, base[rows], n_jobs),
            kernels.clipped_moment(packed, base[rows], frame[rows], 1.0, n_jobs),
        )

    serial = results(slice(None), 1)
    for one, two in zip(serial, results(slice(None), 2), strict=True):
        assert_array_equal(one, two)
    for one, alone in zip(serial[:3], results(slice(2, 3), 1)[:3], strict=True):
        assert_array_equal(one[2:3], alone)


def test_read_only_and_strided_points(rng):
    points, base = unit(rng, 2, 40, 3), unit(rng, 2, 3)
    expected = kernels.squared_distances(kernels.pack(points), base)
    points.setflags(write=False)
    assert_array_equal(kernels.squared_distances(kernels.pack(points), base), expected)
    strided = np.asfortranarray(points)
    assert_array_equal(kernels.squared_distances(kernels.pack(strided), base), expected)


@pytest.mark.parametrize("radius", [0.3, 3.0])
def test_coordinates_stay_in_their_ball_whatever_the_points_are(radius):
    rng = np.random.default_rng(0)
    manifold = Sphere(3)
    base = manifold.canonical(rng.standard_normal(4))
    wild = rng.choice([np.nan, np.inf, -np.inf, 1e308, 1e-320, 0.0, 1.0], (500, 4))
    points = np.concatenate([wild, base[None], -base[None], rng.standard_normal((500, 4))])
    c = clipped_coordinates(points, base, radius)
    assert (np.linalg.norm(c, axis=1) <= radius * (1 + 1e-14)).all()
    assert_array_equal(c[~np.isfinite(points).all(axis=1)], 0)
    assert_array_equal(c[500], 0)


def test_coordinates_are_the_same_bits_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(_threads, "_SEGMENT", 256)
    monkeypatch.setattr(_threads, "_THREAD_SECONDS", 1e-12)
    manifold = Sphere(5)
    points = manifold.canonical(np.random.default_rng(1).standard_normal((1001, 6)))
    args = (points, points[0], 1.0)
    assert_array_equal(clipped_coordinates(*args), clipped_coordinates(*args, n_jobs=3))
