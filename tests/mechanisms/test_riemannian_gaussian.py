"""The Riemannian Gaussian: exact privacy on spheres, exact radii, uniform directions."""

from __future__ import annotations

from itertools import pairwise
from math import inf, log, pi, sin, sqrt

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq
from scipy.special import betainc
from scipy.stats import beta, ks_2samp, kstest

from skdpfrechet.manifolds import Euclidean, Hyperbolic, SPDLogEuclidean, Sphere
from skdpfrechet.mechanisms import RiemannianGaussian
from skdpfrechet.mechanisms import _sphere_radius as sphere_radius
from skdpfrechet.privacy import GDP, ApproxDP, gdp_delta

# --- exact privacy --------------------------------------------------------------------------------
#
# Two centres at distance Δ, polar coordinates (s, θ) at the first, ρ₂ the distance to the second.
# The loss of a point is (ρ₂² - s²)/2σ², so {loss > ε} = {ρ₂ > b}, b² = s² + 2σ²ε, and by the
# half-angle law of cosines {ρ₂ > b} = {(1 - cos θ)/2 > h}, where (1 - cos θ)/2 has the distribution
# Beta((d-1)/2, (d-1)/2). With sinh for sin everything holds on hyperbolic space.


def share_beyond(s, b, distance, dim, sine):
    """Share of the sphere of radius s around one centre that is farther than b from the other."""
    h = sine((b + s - distance) / 2) * sine((b - s + distance) / 2) / (sine(s) * sine(distance))
    if dim == 1:  # two points: θ = 0 and θ = π
        share = np.where(h < 0, 1.0, np.where(h < 1, 0.5, 0.0))
    else:
        share = betainc((dim - 1) / 2, (dim - 1) / 2, 1 - np.clip(h, 0, 1))
    return np.where(b < (pi if sine is np.sin else inf), share, 0.0)


NODES, WEIGHTS = np.polynomial.legendre.leggauss(100)


def integrate(f, breaks):
    """∫ f over the breaks; s = middle - half cos φ makes the square roots at breaks analytic."""
    phi = pi * (NODES + 1) / 2
    total = 0.0
    for low, high in pairwise(breaks):
        half = (high - low) / 2
        s = low + 2 * half * np.sin(phi / 2) ** 2
        total += (f(s) * np.sin(phi)) @ WEIGHTS * half * pi / 2
    return total


def exact_delta(distance, sigma, epsilon, dim, curvature):
    """δ(ε) = P₁(loss > ε) - e^ε P₁(loss < -ε) of the two centres, curvature 1 or -1."""
    sine, end = (np.sin, pi) if curvature > 0 else (np.sinh, inf)
    shift = 2 * sigma**2 * epsilon
    # Geodesic triangles degenerate, and the share has a corner, where b = |s ± Δ| or, on a sphere,
    # where the perimeter is 2π; and b = π.
    around = 2 * pi - distance if curvature > 0 else distance
    breaks = [(c + sign * shift / c) / 2 for c in (distance, -distance, around) for sign in (1, -1)]
    breaks += [sqrt(shift), sqrt(max(pi**2 - shift, 0.0)), sigma * sqrt(dim), distance]
    modulus = 1 / sigma**2 + (dim - 1 if curvature > 0 else 0)
    spread = 9 / sqrt(modulus)
    top = min(end, spread + (sphere_radius._radial_mode(dim, sigma) if curvature > 0 else sigma**2))
    breaks += list(np.linspace(0, top, 12))
    breaks = sorted({0.0, top} | {x for x in breaks if 0 < x < top})

    def density(s):
        return np.exp(-(s**2) / (2 * sigma**2)) * sine(s) ** (dim - 1)

    def above(s):
        return density(s) * share_beyond(s, np.sqrt(s * s + shift), distance, dim, sine)

    def below(s):
        b = np.sqrt(np.maximum(s * s - shift, 0.0))
        return np.where(
            s * s > shift, density(s) * (1 - share_beyond(s, b, distance, dim, sine)), 0
        )

    mass = integrate(density, breaks)
    return (integrate(above, breaks) - np.exp(epsilon) * integrate(below, breaks)) / mass


def effective_mu(distance, sigma, epsilons, dim, curvature):
    """Smallest μ with δ_μ ≥ δ at all `epsilons`: a lower bound on the μ of the mechanism."""
    return max(
        brentq(lambda mu, delta=delta, e=e: gdp_delta(mu, e) - delta, 1e-6, 10 * distance / sigma)
        for e in map(float, epsilons)
        if (delta := exact_delta(distance, sigma, e, dim, curvature)) > 1e-9
    )


def test_profile_by_polar_coordinates_equals_the_integral_over_the_sphere():
    # Midpoint rule in the angle and Gauss-Legendre in the height over all of S², from dot products:
    # δ = ∫ (p₁ - e^ε p₂)₊. The integrand has a corner; 300 x 400 points leave less than 1e-5.
    z, w = np.polynomial.legendre.leggauss(300)
    phi = 2 * pi * (np.arange(400) + 0.5) / 400
    x = np.sqrt(1 - z**2)[:, None] * np.cos(phi)
    for distance, sigma, epsilon in [(0.8, 0.8, 0.5), (1.5, 0.6, 1.0), (2.5, 2.0, 0.3)]:
        first = np.arccos(z)[:, None]
        second = np.arccos(np.clip(z[:, None] * np.cos(distance) + x * sin(distance), -1, 1))
        p1 = np.exp(-(first**2) / (2 * sigma**2))
        p2 = np.exp(-(second**2) / (2 * sigma**2))
        gain = np.maximum(p1 - np.exp(epsilon) * p2, 0.0)
        direct = (w @ gain).sum() / (w @ np.broadcast_to(p1, gain.shape)).sum()
        assert_allclose(exact_delta(distance, sigma, epsilon, 2, 1), direct, rtol=0, atol=1e-5)


def test_profile_on_the_circle_equals_the_integral_over_the_circle():
    angle = 2 * pi * (np.arange(400_000) + 0.5) / 400_000
    for distance, sigma, epsilon in [(0.8, 0.8, 0.5), (1.5, 0.6, 1.0), (2.5, 2.0, 0.3)]:
        first = np.minimum(angle, 2 * pi - angle)
        other = np.abs(angle - distance)
        second = np.minimum(other, 2 * pi - other)
        p1, p2 = (np.exp(-(r**2) / (2 * sigma**2)) for r in (first, second))
        direct = np.maximum(p1 - np.exp(epsilon) * p2, 0.0).sum() / p1.sum()
        assert_allclose(exact_delta(distance, sigma, epsilon, 1, 1), direct, rtol=0, atol=1e-9)


@pytest.mark.parametrize("dim", [1, 2, 3, 10])
def test_spheres_get_what_is_promised(dim):
    for distance in (1e-3, 0.05, 0.3, 1.0, 2.0, 3.0, 3.14):
        for mu in (0.1, 0.3, 1.0, 2.5, 6.0):
            promise = RiemannianGaussian(Sphere(dim), distance / mu).guarantee(distance)
            for epsilon in (0.0, 0.01, 0.1, 0.5, 1.0, 3.0, 8.0):
                delta = exact_delta(distance, distance / mu, epsilon, dim, 1)
                assert delta <= promise.delta(epsilon) + 1e-12


@pytest.mark.parametrize("dim", [2, 3, 10])
def test_curvature_saves_privacy_as_the_expansion_says(dim):
    # μ*/μ = 1 - (d-1)σ²/6 + O(d²σ⁴): what remains is the profile itself, not a loose bound.
    sigma = 0.05
    mu = effective_mu(sigma, sigma, np.linspace(0, 3, 7), dim, 1)
    assert_allclose((1 - mu) / sigma**2, (dim - 1) / 6, rtol=0.02)


def test_hyperbolic_plane_does_not_get_what_it_would_be_promised():
    # Why the mechanism refuses negative curvature.
    mu = effective_mu(1.0, 1.0, np.linspace(0, 3, 7), 2, -1)
    assert_allclose(mu, 1.1612239, rtol=0, atol=1e-6)
    excess = exact_delta(1.0, 1.0, 0.0, 2, -1) - gdp_delta(1.0, 0.0)
    assert excess > 0.05


# --- the distance from the centre -----------------------------------------------------------------

DIMS = [1, 2, 3, 10, 60, 200]
SIGMAS = [1e-3, 0.05, 0.3, 1.0, 3.0, 50.0]
GRID = [(dim, sigma) for dim in DIMS for sigma in SIGMAS]
SAMPLES = 50_000


def dkw_threshold(samples, alarm):
    """Exceeded by the Kolmogorov distance with probability at most `alarm` (Massart 1990)."""
    return sqrt(log(2 / alarm) / (2 * samples))


def distribution(dim, sigma):
    """Distribution function of the distance, by a midpoint rule with an error below 1e-6."""
    edges = np.linspace(0, min(pi, sigma * (sqrt(dim) + 12)), 20_001)
    s = (edges[:-1] + edges[1:]) / 2
    logs = -(s**2) / (2 * sigma**2) + (dim - 1) * np.log(np.sin(s))
    mass = np.cumsum(np.exp(logs - logs.max()))
    return lambda x: np.interp(x, edges, np.concatenate([[0.0], mass / mass[-1]]))


def kolmogorov_distance(sample, cdf):
    return kstest(sample, cdf, method="asymp").statistic


# 36 pairs through the public function, 36 through the envelope, 15 through the chi proposals: with
# 1e-9 each, all of them together raise a false alarm with probability below 1e-7.
@pytest.mark.parametrize(("dim", "sigma"), GRID)
def test_distances_follow_the_density(dim, sigma):
    rng = np.random.default_rng([dim, round(1e3 * sigma)])
    threshold = dkw_threshold(SAMPLES, 1e-9)
    cdf = distribution(dim, sigma)
    s = sphere_radius.sample_sphere_radius(dim, sigma, SAMPLES, rng)
    assert s.shape == (SAMPLES,)
    assert (s > 0).all()
    assert (s < pi).all()
    assert kolmogorov_distance(s, cdf) < threshold
    # Each branch alone, wherever it keeps enough proposals, beyond the switch as well.
    branches = [sphere_radius._TangentEnvelope(dim, sigma)]
    if sigma * dim <= 3:
        branches.append(sphere_radius._propose_chi)
    for draw in branches:
        s = draw(dim, sigma, 2 * SAMPLES, rng)
        assert kolmogorov_distance(s, cdf) < dkw_threshold(len(s), 1e-9)


@pytest.mark.parametrize("dim", [1, 2, 3, 10, 60, 200])
def test_both_sides_of_the_switch_agree(dim):
    rng = np.random.default_rng(dim)
    sigma = 1 / dim
    below = sphere_radius.sample_sphere_radius(dim, sigma, SAMPLES, rng)
    above = sphere_radius.sample_sphere_radius(dim, np.nextafter(sigma, inf), SAMPLES, rng)
    # Two samples of equal law: by the triangle inequality through it, false alarm 2e-9 each.
    assert ks_2samp(below, above).statistic < 2 * dkw_threshold(SAMPLES, 1e-9)


class CountingGenerator(np.random.Generator):
    """Counts the uniform variables drawn."""

    def __init__(self, seed):
        super().__init__(np.random.PCG64(seed))
        self.uniforms = 0

    def random(self, size=None):
        self.uniforms += int(np.prod(size))
        return super().random(size)


@pytest.mark.parametrize("dim", [*DIMS, 10_000, 1_000_000])
def test_a_fixed_share_of_the_proposals_is_kept(dim):
    # The chi branch keeps about exp(-σ²d²/6) ≥ .846 up to its switch, the envelope at least .8 by
    # experiment. 20,000 proposals: a share of .84 falls below .8 with probability exp(-64).
    for sigma in [1e-8, *SIGMAS, 1 / dim, np.nextafter(1 / dim, inf), 2 / dim, 1e8, 1e15]:
        rng = np.random.default_rng(3)
        chi = sigma * dim <= 1
        draw = sphere_radius._propose_chi if chi else sphere_radius._TangentEnvelope(dim, sigma)
        assert len(draw(dim, sigma, 20_000, rng)) > 0.8 * 20_000
        # The public loop proposes twice what is missing and is done after one or two rounds.
        counting = CountingGenerator(4)
        assert len(sphere_radius.sample_sphere_radius(dim, sigma, 1000, counting)) == 1000
        assert counting.uniforms == (1 if chi else 3) * 2016
        single = CountingGenerator(5)
        assert len(sphere_radius.sample_sphere_radius(dim, sigma, 1, single)) == 1
        assert single.uniforms == (1 if chi else 3) * 18


def test_no_draws_are_an_empty_array():
    rng = np.random.default_rng(0)
    for sigma in (0.1, 1.0):
        assert sphere_radius.sample_sphere_radius(3, sigma, 0, rng).shape == (0,)


def exact_log_integral(dim, sigma):
    """``log ∫_0^π exp(-s²/2σ²) sin^{d-1} s ds`` to twenty digits."""
    with mpmath.workdps(25):
        sigma = mpmath.mpf(sigma)
        # The mode only says where to look and what to factor out.
        mode = mpmath.mpf(sphere_radius._radial_mode(dim, float(sigma)))

        def log_density(s):
            volume = (dim - 1) * mpmath.log(mpmath.sin(s)) if dim > 1 else 0
            return -(s**2) / (2 * sigma**2) + volume

        top = log_density(mode)
        reach = 1 / mpmath.sqrt(1 / sigma**2 + (dim - 1))
        breaks = [mode + k * reach for k in (-12, -6, -3, -1, 0, 1, 3, 6, 12)]
        breaks = sorted({min(max(b, mpmath.mpf(0)), mpmath.pi) for b in breaks})
        scaled = mpmath.quad(lambda s: mpmath.exp(log_density(s) - top), breaks) / reach
        return float(top + mpmath.log(scaled * reach))


@pytest.mark.parametrize("dim", DIMS)
def test_radial_integral_matches_mpmath(dim):
    for sigma in [1e-12, 1e-6, *SIGMAS, 1e6, 1e8, 1e12]:
        exact = exact_log_integral(dim, sigma)
        seen = sphere_radius.log_radial_integral(dim, sigma)
        # The weights of the rule err by 3e-14, the largest log density by an ulp or two of itself.
        assert_allclose(seen, exact, rtol=1e-15, atol=4e-14)


@pytest.mark.parametrize("dim", [1, 2, 3, 10, 60, 200])
def test_without_curvature_the_integral_is_gaussian(dim):
    # σ → 0: 2^{d/2-1} Γ(d/2) σ^d; σ → ∞: √π Γ(d/2)/Γ((d+1)/2). Both to O(σ²d²), O(1/σ²).
    gamma = float(mpmath.loggamma(dim / 2))
    flat = (dim / 2 - 1) * log(2) + gamma + dim * log(1e-9)
    assert_allclose(sphere_radius.log_radial_integral(dim, 1e-9), flat, rtol=1e-14, atol=1e-13)
    uniform = log(pi) / 2 + gamma - float(mpmath.loggamma((dim + 1) / 2))
    assert_allclose(sphere_radius.log_radial_integral(dim, 1e9), uniform, rtol=0, atol=1e-13)


# --- directions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dim", "sigma"), [(1, 0.5), (2, 0.1), (2, 2.0), (3, 1.0), (10, 0.05), (10, 1.0)]
)
def test_directions_are_uniform_and_independent_of_the_distance(dim, sigma):
    # 6 cases, at most 12 axes, 3 subsets: 216 comparisons at 1e-9, false alarm below 3e-7.
    rng = np.random.default_rng(dim)
    sphere = Sphere(dim)
    center = sphere.canonical(rng.standard_normal(dim + 1))
    centers = np.broadcast_to(center, (20_000, dim + 1))
    c = sphere.log_coords(center, RiemannianGaussian(sphere, sigma).release(centers, rng))
    distance = np.linalg.norm(c, axis=-1)
    unit = c / distance[:, None]
    axes = np.vstack([np.eye(dim), rng.standard_normal((2, dim))])
    axes /= np.linalg.norm(axes, axis=-1, keepdims=True)
    near = distance < np.median(distance)
    for kept in (slice(None), near, ~near):
        for axis in axes:
            heights = (1 + unit[kept] @ axis) / 2
            threshold = dkw_threshold(len(heights), 1e-9)
            if dim == 1:
                assert abs(heights.mean() - 0.5) < threshold  # Hoeffding: the same bound
            else:
                cdf = beta((dim - 1) / 2, (dim - 1) / 2).cdf
                assert kolmogorov_distance(heights, cdf) < threshold


# --- the exact scale ------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 2, 3, 10, 60])
@pytest.mark.parametrize("mu", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("sensitivity", [1e-3, 0.08, 0.6, 3.0])
def test_exact_scale_gives_the_guarantee_with_less_noise(dim, mu, sensitivity):
    sphere, guarantee = Sphere(dim), GDP(mu)
    plain = RiemannianGaussian.calibrate(sphere, sensitivity, guarantee)
    exact = RiemannianGaussian.calibrate_exact(sphere, sensitivity, guarantee)
    assert exact.manifold == sphere
    assert 0 < exact.sigma <= plain.sigma
    assert mu * (1 - 1e-10) <= exact.exact_guarantee(sensitivity).mu <= mu
    assert plain.exact_guarantee(sensitivity).mu <= plain.guarantee(sensitivity).mu
    # This file's own quadrature agrees, at this distance and at smaller ones.
    for distance in (sensitivity, sensitivity / 2):
        for epsilon in (0.0, mu / 2, mu, 2 * mu):
            delta = exact_delta(distance, exact.sigma, epsilon, dim, 1)
            assert delta <= guarantee.delta(epsilon) + 1e-10


def test_exact_scale_saves_noise_where_the_scale_is_not_small():
    # 1 - (d-1)σ²/6, and more where σ is of order one.
    plain, exact = (
        calibrate(Sphere(10), 0.05, GDP(0.1)).sigma
        for calibrate in (RiemannianGaussian.calibrate, RiemannianGaussian.calibrate_exact)
    )
    assert plain == 0.5
    assert 0.75 < exact / plain < 0.85


@pytest.mark.parametrize("space", [Euclidean(3), SPDLogEuclidean(2)], ids=repr)
def test_on_flat_spaces_the_plain_scale_is_exact(space):
    plain = RiemannianGaussian.calibrate(space, 0.3, GDP(0.7))
    assert RiemannianGaussian.calibrate_exact(space, 0.3, GDP(0.7)) == plain
    assert plain.exact_guarantee(0.3) == plain.guarantee(0.3)


def test_limits_of_the_exact_scale():
    sphere = Sphere(2)
    assert RiemannianGaussian.calibrate_exact(sphere, 0.1, GDP(inf)).sigma == 0
    assert RiemannianGaussian.calibrate_exact(sphere, 0.0, GDP(1.0)).sigma == 0
    assert RiemannianGaussian(sphere, 0.0).exact_guarantee(0.1).mu == inf
    assert RiemannianGaussian(sphere, 0.3).exact_guarantee(0.0).mu == 0
    far = RiemannianGaussian(sphere, 0.3).exact_guarantee(inf)
    assert far == RiemannianGaussian(sphere, 0.3).exact_guarantee(pi)
    with pytest.raises(ValueError, match="guarantee must have mu > 0"):
        RiemannianGaussian.calibrate_exact(sphere, 0.1, GDP(0.0))
    with pytest.raises(ValueError, match="sensitivity must be finite"):
        RiemannianGaussian.calibrate_exact(sphere, inf, GDP(1.0))
    with pytest.raises(ValueError, match="requires a homogeneous space of curvature"):
        RiemannianGaussian.calibrate_exact(Hyperbolic(2), 0.1, GDP(1.0))
    for guarantee in (ApproxDP(1.0, 1e-6), 1.0):
        with pytest.raises(TypeError, match="guarantee must be a GDP"):
            RiemannianGaussian.calibrate_exact(sphere, 0.1, guarantee)
