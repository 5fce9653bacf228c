"""Samplers against densities, and the exact privacy of wrapped and projected noise."""

from __future__ import annotations

from math import gamma, log, pi, sqrt

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import beta, chi2, kstest, norm

from skdpfrechet._numerics import unvecd, vecd
from skdpfrechet.manifolds import (
    Euclidean,
    Hyperbolic,
    SPDAffineInvariant,
    SPDLogCholesky,
    SPDLogEuclidean,
    Sphere,
)
from skdpfrechet.mechanisms import (
    Gaussian,
    ProjectedGaussian,
    RiemannianGaussian,
    SymmetricGaussian,
    WrappedGaussian,
)
from skdpfrechet.privacy import GDP, gdp_delta

SAMPLES = 20_000
# Every comparison raises a false alarm with probability at most 1e-9, and this file makes fewer
# than 250 (118 of whitened coordinates, 10 of losses, 16 of angles, 64 of directions): below 3e-7
# in all.
ALARM = 1e-9

HADAMARD = [
    Euclidean(2),
    Hyperbolic(2),
    SPDAffineInvariant(2),
    SPDLogEuclidean(2),
    SPDLogCholesky(2),
]


@pytest.fixture
def rng():
    return np.random.default_rng(20260519)


def agrees(sample, cdf):
    """Whether a sample has a continuous distribution, by the bound of Massart (1990) at `ALARM`."""
    return kstest(sample, cdf, method="asymp").statistic < sqrt(log(2 / ALARM) / (2 * len(sample)))


def points_near(space, rng, *shape):
    """Points about 1 away from the origin."""
    c = rng.standard_normal((*shape, space.dim)) / sqrt(space.dim)
    return space.exp_coords(space.origin, c)


def assert_standard_normal(z, rng):
    """Each coordinate, three random projections, and the length of all coordinates together."""
    dim = z.shape[-1]
    axes = rng.standard_normal((3, dim))
    for axis in [*np.eye(dim), *axes / np.linalg.norm(axes, axis=-1, keepdims=True)]:
        assert agrees(z @ axis, norm.cdf)
    assert agrees((z * z).sum(axis=-1), chi2(dim).cdf)


# --- Gaussian coordinates ----------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [1e-3, 4.0])
def test_vectors_get_independent_noise_of_equal_scale(rng, sigma):
    center = np.array([3.0, -1.0, 0.5, 100.0])
    released = Gaussian(sigma).release(np.broadcast_to(center, (SAMPLES, 4)), rng)
    assert_standard_normal((released - center) / sigma, rng)


@pytest.mark.parametrize("sigma", [1e-3, 4.0])
def test_symmetric_matrices_get_noise_isotropic_in_the_frobenius_norm(rng, sigma):
    center = unvecd(rng.standard_normal(6))
    released = SymmetricGaussian(sigma).release(np.broadcast_to(center, (SAMPLES, 3, 3)), rng)
    assert_standard_normal(vecd(released - center) / sigma, rng)
    noise = (released - center) / sigma
    # In terms of entries: 1 on the diagonal, 1/√2 off it, hence E |noise|² = p(p+1)/2.
    assert agrees(noise[:, 1, 1], norm.cdf)
    assert agrees(noise[:, 0, 2] * sqrt(2), norm.cdf)
    assert agrees((noise**2).sum(axis=(-1, -2)), chi2(6).cdf)


@pytest.mark.parametrize("sigma", [0.01, 1.0])
@pytest.mark.parametrize("space", HADAMARD, ids=repr)
def test_wrapped_noise_is_gaussian_in_coordinates_at_the_foot(rng, space, sigma):
    foot, center = points_near(space, rng, 2)
    centers = np.broadcast_to(center, (SAMPLES, *space.point_shape))
    released = WrappedGaussian(space, foot, sigma).release(centers, rng)
    z = (space.log_coords(foot, released) - space.log_coords(foot, center)) / sigma
    assert_standard_normal(z, rng)


def test_riemannian_noise_on_a_flat_space_is_gaussian(rng):
    center = np.array([3.0, -1.0])
    mechanism = RiemannianGaussian(Euclidean(2), 0.3)
    released = mechanism.release(np.broadcast_to(center, (SAMPLES, 2)), rng)
    assert_standard_normal((released - center) / 0.3, rng)


# --- privacy of the wrapped Gaussian -----------------------------------------------------------


@pytest.mark.parametrize("space", HADAMARD, ids=repr)
def test_coordinates_at_the_foot_do_not_stretch_distances(rng, space):
    foot = points_near(space, rng)
    p, q = points_near(space, rng, 2, 2000)
    difference = space.log_coords(foot, p) - space.log_coords(foot, q)
    # Distances of order 1; rounding at most e^4 ulp.
    assert (np.linalg.norm(difference, axis=-1) <= space.dist(p, q) + 1e-12).all()


@pytest.mark.parametrize("space", HADAMARD, ids=repr)
def test_wrapped_noise_gives_exactly_the_gaussian_profile(rng, space):
    # Whatever the space, the loss between two centres is normal, as for N(0, 1) against N(m, 1).
    foot, first, second = points_near(space, rng, 3)
    assert_gaussian_loss(WrappedGaussian(space, foot, 0.8), first, second, rng)


@pytest.mark.parametrize("space", HADAMARD, ids=repr)
def test_promise_to_wrapped_noise_is_attained(rng, space):
    # Two centres on a geodesic through the foot, 1.2 apart.
    foot, direction = points_near(space, rng), rng.standard_normal(space.dim)
    ends = np.outer([-0.5, 0.7], direction / np.linalg.norm(direction))
    first, second = space.exp_coords(foot, ends)
    mechanism = WrappedGaussian.calibrate(space, 1.2, GDP(1.5), foot)
    assert_allclose(assert_gaussian_loss(mechanism, first, second, rng), 1.5, rtol=1e-12)


def assert_gaussian_loss(mechanism, first, second, rng):
    """The loss from `first` to `second` has the law N(μ²/2, μ²), μ at most what is promised."""
    space, foot = mechanism.manifold, mechanism.foot
    change = space.log_coords(foot, first) - space.log_coords(foot, second)
    mu = float(np.linalg.norm(change)) / mechanism.sigma
    assert mu <= mechanism.guarantee(float(space.dist(first, second))).mu * (1 + 1e-12)
    x = mechanism.release(np.broadcast_to(first, (SAMPLES, *space.point_shape)), rng)
    loss = mechanism.log_density(first, x) - mechanism.log_density(second, x)
    assert agrees((loss - mu**2 / 2) / mu, norm.cdf)
    return mu


# --- the projected Gaussian --------------------------------------------------------------------


def angles(dim, sigma):
    """Distribution function of the angle of a projected release, by quadrature of the density."""
    sphere = Sphere(dim)
    edges = np.linspace(0, min(pi, sigma * (sqrt(dim) + 14)), 2001)
    s = (edges[:-1] + edges[1:]) / 2
    center = np.eye(dim + 1)[0]
    x = sphere.exp_coords(center, s[:, None] * np.eye(dim)[0])
    density = np.exp(ProjectedGaussian(sphere, sigma).log_density(center, x))
    area = 2 * pi ** (dim / 2) / gamma(dim / 2)
    mass = np.cumsum(area * density * np.sin(s) ** (dim - 1)) * (edges[1] - edges[0])
    assert_allclose(mass[-1], 1.0, rtol=0, atol=1e-5)
    return lambda angle: np.interp(angle, edges, np.concatenate([[0.0], mass]))


@pytest.mark.parametrize("sigma", [0.01, 0.3, 1.0, 20.0])
@pytest.mark.parametrize("dim", [1, 2, 3, 10])
def test_projected_noise_follows_its_density(rng, dim, sigma):
    sphere = Sphere(dim)
    center = sphere.canonical(rng.standard_normal(dim + 1))
    centers = np.broadcast_to(center, (SAMPLES, dim + 1))
    c = sphere.log_coords(center, ProjectedGaussian(sphere, sigma).release(centers, rng))
    distance = np.linalg.norm(c, axis=-1)
    assert agrees(distance, angles(dim, sigma))
    # Uniform directions.
    for axis in np.eye(dim):
        heights = (1 + c @ axis / distance) / 2
        if dim == 1:  # Hoeffding's bound is the same as Massart's
            assert abs(heights.mean() - 0.5) < sqrt(log(2 / ALARM) / (2 * SAMPLES))
        else:
            assert agrees(heights, beta((dim - 1) / 2, (dim - 1) / 2).cdf)


def closed_form(dim, sigma, angle):
    """Log density of the projected Gaussian on S^1 and S^2 (Mardia and Jupp, sections 3.5.6, 9.3).

    ``(2π)^{-d/2} exp(-sin²/2σ²) ∫_0^∞ t^d φ(t - a) dt``, a = cos/σ; the integral is φ(a) + a Φ(a)
    for d = 1 and a φ(a) + (1 + a²) Φ(a) for d = 2.
    """
    with mpmath.workdps(60):
        angle, sigma = mpmath.mpf(angle), mpmath.mpf(sigma)
        a = mpmath.cos(angle) / sigma
        density, tail = mpmath.npdf(a), mpmath.erfc(-a / mpmath.sqrt(2)) / 2
        radial = density + a * tail if dim == 1 else a * density + (1 + a * a) * tail
        exponent = -(mpmath.sin(angle) ** 2) / (2 * sigma**2)
        return float(mpmath.log(radial) + exponent - dim * mpmath.log(2 * mpmath.pi) / 2)


@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("sigma", [1e-6, 1e-3, 0.05, 0.3, 1.0, 10.0, 1e6])
def test_projected_density_on_circle_and_sphere_has_its_closed_form(dim, sigma):
    sphere, center = Sphere(dim), np.eye(dim + 1)[0]
    angle = np.array([0.0, 1e-8, sigma * 1e-3, 0.3, 1.0, 1.5, 1.7, 2.5, 3.1])
    x = np.cos(angle)[:, None] * center + np.sin(angle)[:, None] * np.eye(dim + 1)[1]
    seen = ProjectedGaussian(sphere, sigma).log_density(center, x)
    exact = np.array([closed_form(dim, sigma, t) for t in angle])
    # One ulp of the coordinates moves -sin²/2σ² or -a²/2 by an ulp of 1/σ².
    tolerance = 4e-14 + 4 * np.finfo(float).eps / sigma**2 * np.minimum(angle, 1.0)
    assert (np.abs(seen - exact) <= tolerance).all()


@pytest.mark.parametrize("dim", [3, 10, 60])
@pytest.mark.parametrize("a", [-1e4, -30.0, -3.0, -0.1, 0.0, 1.0, 8.0, 1e3])
def test_projected_density_in_any_dimension(dim, a):
    # ∫_0^∞ t^d φ(t - a) dt by thirty-digit quadrature, a = cos/σ: at the centre (a > 0), at the
    # antipode (a < 0) or halfway.
    sphere, center = Sphere(dim), np.eye(dim + 1)[0]
    if a == 0:
        sigma, x = 0.7, np.eye(dim + 1)[1]
    else:
        sigma, x = 1 / abs(a), np.sign(a) * center
    seen = float(ProjectedGaussian(sphere, sigma).log_density(center, x))
    with mpmath.workdps(40):
        b = mpmath.mpf(a)
        mode = (b + mpmath.sqrt(b * b + 4 * dim)) / 2
        width = 1 / mpmath.sqrt(1 + dim / mode**2)

        def drop(t):
            return dim * mpmath.log(t / mode) - (t - b) ** 2 / 2 + (mode - b) ** 2 / 2

        breaks = {max(mode + k * width, mpmath.mpf(0)) for k in (-20, -8, -3, 0, 3, 8, 20, 60, 200)}
        radial = mpmath.quad(lambda t: mpmath.exp(drop(t)) / width, sorted(breaks)) * width
        exact = mpmath.log(radial) + dim * mpmath.log(mode) - (mode - b) ** 2 / 2
        exact -= (dim + 1) * mpmath.log(2 * mpmath.pi) / 2
        if a == 0:
            exact -= 1 / (2 * mpmath.mpf(sigma) ** 2)
    assert_allclose(seen, float(exact), rtol=1e-14, atol=4e-14)


@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("distance", [0.1, 1.0, 2.5, pi])
def test_projection_only_loses_information_on_the_circle(distance, mu):
    # ∫ (p₁ - e^ε p₂)₊ by the midpoint rule. The corner costs h²/8 times the change of slope there,
    # about max p₁ · μ/σ < .4 μ/σ².
    turn = 2 * pi * (np.arange(10_000) + 0.5) / 10_000
    x = np.stack([np.cos(turn), np.sin(turn)], axis=-1)
    mechanism = ProjectedGaussian.calibrate(Sphere(1), distance, GDP(mu))
    h = turn[1] - turn[0]
    tolerance = h**2 / 8 * 0.4 * mu / min(mechanism.sigma, 1.0) ** 2
    assert_profile(mechanism, x, np.full(len(turn), h), distance, tolerance)


@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("distance", [1.0, 2.5, pi])
def test_projection_only_loses_information_on_the_sphere(distance, mu):
    # Height over the plane of the two centres by Gauss-Legendre, angle in it by the midpoint rule.
    z, weight = np.polynomial.legendre.leggauss(40)
    turn = 2 * pi * (np.arange(400) + 0.5) / 400
    plane = np.sqrt(1 - z * z)[:, None]
    x = np.stack([plane * np.cos(turn), plane * np.sin(turn), z[:, None] + 0 * turn], axis=-1)
    weights = weight[:, None] * np.full(len(turn), turn[1] - turn[0])
    mechanism = ProjectedGaussian.calibrate(Sphere(2), distance, GDP(mu))
    assert_profile(mechanism, x.reshape(-1, 3), weights.ravel(), distance, 1e-4)


def assert_profile(mechanism, x, weights, distance, tolerance):
    dim = mechanism.manifold.dim
    first, second = np.zeros((2, dim + 1))
    first[0], second[0], second[1] = 1.0, np.cos(distance), np.sin(distance)
    p1, p2 = (np.exp(mechanism.log_density(center, x)) for center in (first, second))
    assert_allclose(weights @ p1, 1.0, rtol=0, atol=tolerance)
    mu = mechanism.guarantee(distance).mu
    for epsilon in (0.0, 0.1, 0.5, 2.0, 6.0):
        delta = weights @ np.maximum(p1 - np.exp(epsilon) * p2, 0.0)
        assert delta <= gdp_delta(mu, epsilon) + tolerance


# --- huge noise --------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [20.0, 1e3, 1e8, 1e12])
@pytest.mark.parametrize("space", [*HADAMARD, SPDAffineInvariant(5), SPDLogCholesky(5)], ids=repr)
def test_huge_wrapped_noise_stays_on_the_space(rng, space, sigma):
    foot = points_near(space, rng)
    centers = points_near(space, rng, 500)
    released = WrappedGaussian(space, foot, sigma).release(centers, rng)
    assert np.isfinite(released).all()
    assert space.contains(released).all()


@pytest.mark.parametrize("sigma", [20.0, 1e3, 1e8, 1e12])
@pytest.mark.parametrize("dim", [1, 2, 3, 10])
def test_huge_noise_on_a_sphere_is_uniform(rng, dim, sigma):
    sphere = Sphere(dim)
    centers = sphere.canonical(rng.standard_normal((500, dim + 1)))
    for kind in (RiemannianGaussian, ProjectedGaussian):
        mechanism = kind(sphere, sigma)
        released = mechanism.release(centers, rng)
        assert np.isfinite(released).all()
        assert sphere.contains(released).all()
        uniform = log(gamma((dim + 1) / 2) / (2 * pi ** ((dim + 1) / 2)))
        # Log densities vary by π²/2σ² or by about √(2 (d+1))/σ.
        slack = 20 / sigma**2 + 2 * sqrt(2 * (dim + 1)) / sigma + 1e-12
        assert (np.abs(mechanism.log_density(centers, released) - uniform) <= slack).all()


@pytest.mark.parametrize("space", [SPDLogEuclidean(2), SPDLogCholesky(3), Euclidean(4)], ids=repr)
def test_huge_noise_on_a_flat_space_stays_there(rng, space):
    for sigma in (1e3, 1e8, 1e12):
        released = RiemannianGaussian(space, sigma).release(points_near(space, rng, 500), rng)
        assert np.isfinite(released).all()
        assert space.contains(released).all()
