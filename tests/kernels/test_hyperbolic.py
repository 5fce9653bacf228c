"""Compiled hyperbolic kernels against the numpy functions of the manifold."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("numba")

from skdpfrechet._kernels import _hyperbolic as kernels
from skdpfrechet._kernels import _threads
from skdpfrechet._numerics import clip_norm
from skdpfrechet.manifolds import Hyperbolic

SIZES = (2, 3, 6, 11, 17, 100, 201)


@pytest.fixture
def rng():
    return np.random.default_rng(20260612)


def sample(rng, size, count, spread):
    """Base points of three replications, and points at about `spread` from them."""
    space = Hyperbolic(size - 1)
    scale = 1 / np.sqrt(space.dim)
    base = space.exp_coords(space.origin, rng.standard_normal((3, space.dim)) * scale)
    c = rng.standard_normal((3, count, space.dim)) * scale * spread
    return space, base, space.exp_coords(base[:, None], c)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("spread", [0.0, 1e-7, 1.0, 3.0])
def test_sums_match_numpy(rng, size, spread):
    space, base, points = sample(rng, size, 61, spread)
    points[:, 0] = base
    # The boost of the difference: space.log_coords loses digits of points close to the base.
    y = space.coords(base[:, None], points - base[:, None])
    sine = np.linalg.norm(y, axis=-1, keepdims=True)
    c = np.arcsinh(sine) / np.where(sine > 0, sine, 1.0) * y
    assert_allclose(c, space.log_coords(base[:, None], points), rtol=0, atol=1e-13)
    square = (c * c).sum(axis=-1)
    packed = kernels.pack(points)
    for hessian in (False, True):
        sums = kernels.log_sums(packed, base, hessian)
        assert_allclose(sums.log / 61, c.mean(axis=1), rtol=0, atol=1e-13)
        assert_allclose(sums.squared_distance, square.sum(axis=1), rtol=1e-12, atol=1e-30)
        assert (sums.hessian is not None) == hessian
    expected = space.mean_squared_distance_hessian(base, c) / 2
    assert_allclose(sums.hessian, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    trace = 1 + (size - 2) * sums.cotangent / 61
    assert_allclose(np.trace(sums.hessian, axis1=1, axis2=2), trace, rtol=1e-12)
    squares = kernels.squared_distances(packed, base)
    assert_allclose(squares, square, rtol=1e-12, atol=1e-30)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("radius", [0.0, 0.7, np.inf])
def test_moments_match_numpy(rng, size, radius):
    space, base, points = sample(rng, size, 45, 1.5)
    points[:, 5, 0], points[:, 6, 1], points[:, 44] = np.nan, np.inf, np.inf
    with np.errstate(invalid="ignore"):
        c = clip_norm(space.log_coords(base[:, None], points), radius)
    expected = np.swapaxes(c, -1, -2) @ c / 45
    moment = kernels.clipped_moment(kernels.pack(points), base, radius)
    assert_allclose(moment, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_bits_do_not_depend_on_threads(rng, size, monkeypatch):
    monkeypatch.setattr(_threads, "_SEGMENT", 256)
    monkeypatch.setattr(_threads, "_THREAD_SECONDS", 1e-12)
    _, base, points = sample(rng, size, 333, 1.0)
    packed = kernels.pack(points)
    one, two = (kernels.log_sums(packed, base, True, n_jobs) for n_jobs in (1, 2))
    for name in ("log", "squared_distance", "cotangent", "hessian"):
        assert_array_equal(getattr(one, name), getattr(two, name))
    for function in (
        lambda n_jobs: kernels.squared_distances(packed, base, n_jobs),
        lambda n_jobs: kernels.clipped_moment(packed, base, 1.0, n_jobs),
    ):
        assert_array_equal(function(1), function(2))
