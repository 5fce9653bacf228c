"""The Riemannian Laplace: normalisers, exact draws, pure privacy."""

from __future__ import annotations

from math import exp, inf, log, nextafter, pi, sinh, sqrt

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import beta, gamma, ks_2samp, kstest

from skdpfrechet.manifolds import (
    Euclidean,
    Hyperbolic,
    Manifold,
    SPDAffineInvariant,
    SPDLogCholesky,
    SPDLogEuclidean,
    Sphere,
)
from skdpfrechet.mechanisms import RiemannianLaplace
from skdpfrechet.mechanisms import _laplace_radius as radius
from skdpfrechet.mechanisms import _riemannian_laplace as riemannian_laplace
from skdpfrechet.mechanisms import _spd_laplace as spd
from skdpfrechet.privacy import GDP, ApproxDP, PureDP

SAMPLES = 10_000
# Every comparison raises a false alarm with probability at most 1e-9, and this file makes fewer
# than 300 of them: below 3e-7 in all.
ALARM = 1e-9

HOMOGENEOUS = [
    Euclidean(1),
    Euclidean(3),
    SPDLogEuclidean(2),
    SPDLogCholesky(2),
    Sphere(1),
    Sphere(2),
    Sphere(10),
    Hyperbolic(1),
    Hyperbolic(2),
    SPDAffineInvariant(1),
    SPDAffineInvariant(2),
    SPDAffineInvariant(4),
]


@pytest.fixture
def rng():
    return np.random.default_rng(20260601)


def points_near(space, rng, *shape):
    """Points about 1 away from the origin; on a sphere, uniform ones."""
    if isinstance(space, Sphere):
        return space.canonical(rng.standard_normal((*shape, space.dim + 1)))
    return space.exp_coords(
        space.origin, rng.standard_normal((*shape, space.dim)) / sqrt(space.dim)
    )


def threshold(count, alarm=ALARM):
    """The bound of Massart (1990)."""
    return sqrt(log(2 / alarm) / (2 * count))


def agrees(sample, cdf):
    return kstest(sample, cdf, method="asymp").statistic < threshold(len(sample))


def equal_laws(first, second):
    """By the triangle inequality through the common law; false alarm at most 2 · 1e-9."""
    distance = ks_2samp(first, second, method="asymp").statistic
    return distance < threshold(len(first)) + threshold(len(second))


def distribution(log_density, end, count=4001):
    """Distribution function on (0, end) by the midpoint rule; its error is O(1/count²)."""
    edges = np.linspace(0, end, count)
    logs = log_density((edges[:-1] + edges[1:]) / 2)
    mass = np.cumsum(np.exp(logs - logs.max()))
    return lambda s: np.interp(s, edges, np.concatenate([[0.0], mass / mass[-1]]))


def is_one_sentence(error):
    text = str(error.value)
    return text.endswith(".") and ". " not in text and "\n" not in text


# --- privacy -------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", HOMOGENEOUS, ids=repr)
def test_no_loss_exceeds_epsilon(space, rng):
    # Random pairs of centres, random releases: near them, and drawn by the mechanism.
    first, second = points_near(space, rng, 2, 200, 1)
    mechanism = RiemannianLaplace(space, 0.2)
    x = np.concatenate([points_near(space, rng, 200, 20), mechanism.release(first, rng)], axis=1)
    loss = mechanism.log_density(first, x) - mechanism.log_density(second, x)
    epsilon = space.dist(first, second) / mechanism.scale
    # Distances of a few units, of points with condition e^6 or so, divided by .2.
    assert (np.abs(loss) <= epsilon + 1e-9).all()
    for i in range(5):
        promised = mechanism.guarantee(float(space.dist(first[i, 0], second[i, 0])))
        assert isinstance(promised, PureDP)
        assert promised.epsilon == pytest.approx(epsilon[i, 0], rel=1e-12)


@pytest.mark.parametrize("space", HOMOGENEOUS, ids=repr)
def test_the_promise_is_attained(space, rng):
    # By every release on the geodesic behind one of the centres.
    epsilon, distance = 1.5, 0.3
    center = points_near(space, rng)
    u = rng.standard_normal(space.dim)
    u /= np.linalg.norm(u)
    second, behind = space.exp_coords(center, np.outer([distance, -0.7], u))
    mechanism = RiemannianLaplace.calibrate(space, distance, PureDP(epsilon))
    loss = mechanism.log_density(center, behind) - mechanism.log_density(second, behind)
    assert_allclose(loss, epsilon, rtol=1e-10)
    assert_allclose(mechanism.guarantee(distance).epsilon, epsilon, rtol=1e-15)


# --- normalisers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 2, 3, 4, 10, 61])
@pytest.mark.parametrize("scale", [1e-6, 1e-2, 0.3, 1.0, 5.0, 1e8])
def test_integral_on_spheres(dim, scale):
    with mpmath.workdps(30):
        lam = mpmath.mpf(scale)
        mode = mpmath.atan((dim - 1) * lam)
        breaks = [k * mode for k in (0, 0.5, 1, 1.5, 2, 3, 5)] + [
            mode + k * lam for k in (1, 3, 10, 30, 80)
        ]
        breaks = sorted({min(b, mpmath.pi) for b in breaks} | {mpmath.mpf(0)})
        top = -mode / lam + (dim - 1) * mpmath.log(mpmath.sin(mode)) if dim > 1 else 0
        mass = mpmath.quad(
            lambda s: mpmath.exp(-s / lam - top) * mpmath.sin(s) ** (dim - 1), breaks
        )
        exact = float(mpmath.log(mass) + top)
    assert_allclose(radius.log_sphere_integral(dim, scale), exact, rtol=1e-14, atol=1e-13)


@pytest.mark.parametrize("dim", [1, 2, 3, 4, 10])
@pytest.mark.parametrize("share", [1e-6, 0.01, 0.5, 0.9, 0.999])
def test_integral_on_hyperbolic_spaces(dim, share):
    scale = share / max(dim - 1, 1)
    with mpmath.workdps(30):
        # Γ functions, after exp(-2s) = t: B(d, (1/λ - d + 1)/2)/2^d.
        exact = mpmath.log(mpmath.beta(dim, (1 / mpmath.mpf(scale) - dim + 1) / 2))
        exact = float(exact - dim * mpmath.log(2))
    assert_allclose(radius.log_hyperbolic_integral(dim, scale), exact, rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("space", [*HOMOGENEOUS, Hyperbolic(4)], ids=repr)
@pytest.mark.parametrize("scale", [0.02, 0.15])
def test_density_integrates_to_one(space, scale, rng):
    # In normal coordinates at the centre, averaged over random directions except where the density
    # of the volume is the same in all of them.
    isotropic = not isinstance(space, SPDAffineInvariant)
    count = 1 if isotropic else 1500
    center = points_near(space, rng)
    x, w = np.polynomial.legendre.leggauss(60)
    peak = max(space.dim - 1, 1) * scale
    breaks = np.unique(np.minimum(peak * np.array([0, 0.5, 1, 2, 4, 8, 20, 45]), 12.0))
    breaks = np.unique(np.minimum(breaks, pi)) if isinstance(space, Sphere) else breaks
    width = np.diff(breaks)
    s = (breaks[:-1, None] + width[:, None] * (x + 1) / 2).ravel()
    w = (width[:, None] * w / 2).ravel()
    u = rng.standard_normal((count, 1, space.dim))
    u /= np.linalg.norm(u, axis=-1, keepdims=True)
    first = u[:1] * s[:, None]
    at = space.exp_coords(center, first)
    logs = RiemannianLaplace(space, scale).log_density(center, at)[0] + radius.log_unit_area(
        space.dim
    )
    if isinstance(space, SPDAffineInvariant) and space.size > 1:
        kappa, _ = space.curvature_frame(space.origin, space.from_coords(space.origin, u))
        a = np.sqrt(np.maximum(-kappa, 0)) * s[:, None]
        volume = np.exp(spd._log_sinh_ratio(a).sum(axis=-1))
    else:
        v = space.from_coords(center, first)
        volume = np.exp(space.log_volume_density(center, v))
    mass = volume * np.exp(logs) * s ** (space.dim - 1) @ w
    if isotropic:
        assert_allclose(mass, 1.0, rtol=0, atol=1e-9)
    else:  # 6.1 standard errors have probability 1e-9
        error = mass.std() / sqrt(count)
        assert abs(mass.mean() - 1) < 6.1 * error + 1e-9
        assert error < 0.02


@pytest.mark.parametrize("share", [1e-5, 1e-3, 0.1, 0.5, 0.9])
def test_integral_on_spd_2(share):
    # Coordinates t = (a + b)/√2 and (u, w) of the matrices [[a, c], [c, b]], |(u, w)| = r, whose
    # eigenvalues are √2 r apart: Z = 2π ∫∫ exp(-√(t² + r²)/λ) √2 sinh(r/√2) dr dt, in polar
    # coordinates. The integral over their radius is elementary.
    scale = share * sqrt(2)

    def inner(angle):  # ∫ s exp(-s/λ) sinh(k s) ds, k = sin(angle)/√2
        k = mpmath.sin(angle) / mpmath.sqrt(2)
        return (1 / (1 / lam - k) ** 2 - 1 / (1 / lam + k) ** 2) / 2

    with mpmath.workdps(30):
        lam = mpmath.mpf(scale)
        breaks = [0, mpmath.pi / 4, 3 * mpmath.pi / 8, mpmath.pi / 2]
        half = mpmath.quad(inner, breaks)
        exact = float(mpmath.log(2 * mpmath.pi * mpmath.sqrt(2) * 2 * half))
    assert_allclose(spd.log_spd_integral(2, scale), exact, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("size", [3, 4, 5, 8])
def test_small_and_large_noise_on_spd_match_at_the_expansion(size):
    # Below the switch the normaliser is an expansion whose next term is of relative order 1e-8
    # squared; above, the Pfaffians.
    dim = size * (size + 1) // 2
    switch = 1e-4 / (dim * sqrt(size))

    def excess(scale):
        flat = radius.log_unit_area(dim) + radius.log_flat_integral(dim, scale)
        return spd.log_spd_integral(size, scale) - flat

    assert_allclose(excess(switch * 1.001), excess(switch * 0.999), rtol=0, atol=1e-9)
    assert excess(switch * 100) == pytest.approx(excess(switch) * 1e4, rel=0.01)


@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("z", [0.2, 0.6, 1.5])
def test_pfaffian_is_the_share_of_ordered_gaussians(size, z, rng):
    # E ∏ (1 - exp(x_i - x_j)) over ascending x, x normal with mean w g and variance w = 4z².
    w = 4 * z * z
    x = w * (np.arange(size) - (size - 1) / 2) + sqrt(w) * rng.standard_normal((200_000, size))
    i, j = np.triu_indices(size, 1)
    share = np.prod(-np.expm1(np.minimum(x[:, i] - x[:, j], 0)), axis=-1)
    share *= (np.diff(x) > 0).all(axis=-1)
    error = share.std() / sqrt(len(x))
    assert abs(share.mean() - exp(spd._log_pfaffian(size, z))) < 6.1 * error + 1e-6


@pytest.mark.parametrize("z", [1e-4, 0.03, 0.5, 1.0, 3.0, 20.0])
def test_pfaffians_in_closed_form(z):
    with mpmath.workdps(60):
        one, two, three = (mpmath.erf(k * mpmath.mpf(z)) for k in (1, 2, 3))
        exact = {2: one, 3: 2 * one - two, 4: one**2 - two**2 + three * one}
        for size, value in exact.items():
            log_value = float(mpmath.log(value))
            assert_allclose(spd._log_pfaffian(size, z), log_value, rtol=1e-14, atol=1e-14)


# --- draws ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 2, 3, 10, 60])
@pytest.mark.parametrize("scale", [1e-6, 0.01, 0.1, 0.5, 2.0, 1e6])
def test_distances_on_spheres(dim, scale, rng):
    s = radius.sample_sphere_distance(dim, scale, SAMPLES, rng)
    end = min(pi, (dim + 12 * sqrt(dim) + 30) * scale)

    def log_density(t):
        return -t / scale + ((dim - 1) * np.log(np.sin(t)) if dim > 1 else 0.0)

    assert s.shape == (SAMPLES,)
    assert ((s > 0) & (s < pi)).all()
    assert agrees(s, distribution(log_density, end))


@pytest.mark.parametrize("dim", [1, 2, 3, 10])
@pytest.mark.parametrize("share", [1e-6, 0.1, 0.5, 0.8])
def test_distances_on_hyperbolic_spaces(dim, share, rng):
    scale = share / max(dim - 1, 1)
    s = radius.sample_hyperbolic_distance(dim, scale, SAMPLES, rng)
    end = (dim + 12 * sqrt(dim) + 30) * scale / (1 - share)

    def log_density(t):
        return -t / scale + (dim - 1) * (t + np.log(-np.expm1(-2 * t)))

    assert agrees(s, distribution(log_density, end, 20_001))


@pytest.mark.parametrize("space", [s for s in HOMOGENEOUS if s.dim < 10], ids=repr)
def test_releases_have_uniform_directions(space, rng):
    center = points_near(space, rng)
    centers = np.broadcast_to(center, (SAMPLES, *space.point_shape))
    mechanism = RiemannianLaplace(space, 0.2)
    c = space.log_coords(center, mechanism.release(centers, rng))
    s = np.linalg.norm(c, axis=-1)
    if space.sectional_curvature_bounds == (0.0, 0.0) and not isinstance(space, Sphere):
        assert agrees(s, gamma(space.dim, scale=0.2).cdf)
    if isinstance(space, SPDAffineInvariant) and space.size > 1:
        return  # curvature prefers traceless directions: see below
    for subset in (s < np.median(s), s >= np.median(s)):
        heights = (1 + c[subset, 0] / s[subset]) / 2
        if space.dim == 1:  # Hoeffding's bound is the same as Massart's
            assert abs(heights.mean() - 0.5) < threshold(len(heights))
        else:
            assert agrees(heights, beta((space.dim - 1) / 2, (space.dim - 1) / 2).cdf)


@pytest.mark.parametrize("share", [1e-6, 0.3, 0.6199, 0.6201, 0.9])
def test_noise_on_spd_2_follows_its_density(share, rng):
    # Both marginals of (t, r) of the test of the integral, on a grid.
    scale = share * sqrt(2)
    v = spd.sample_spd_noise(2, scale, SAMPLES, rng)
    t = np.trace(v, axis1=-2, axis2=-1) / sqrt(2)
    r = np.sqrt(np.maximum((v * v).sum(axis=(-1, -2)) - t * t, 0))
    length = 30 * scale / (1 - share)
    nodes, weights = np.polynomial.legendre.leggauss(200)
    nodes = length * (nodes + 1) / 2

    def log_joint(t, r):
        s = np.hypot(t, r)
        return -s / scale + r / sqrt(2) + np.log(-np.expm1(-sqrt(2) * r))

    def marginal_r(r):
        return np.log(np.exp(log_joint(nodes, r[:, None])) @ weights)

    def marginal_t(t):
        return np.log(np.exp(log_joint(t[:, None], nodes)) @ weights)

    assert agrees(r, distribution(marginal_r, length, 801))
    assert agrees(np.abs(t), distribution(marginal_t, length, 801))
    assert abs((t > 0).mean() - 0.5) < threshold(SAMPLES)


@pytest.mark.parametrize(
    ("size", "share"), [(2, 0.3), (2, 0.8), (3, 0.7), (3, 0.8), (4, 0.8), (5, 0.82)]
)
def test_both_proposals_draw_the_same_noise(size, share, rng):
    # Two algorithms that share nothing but the density.
    scale = share / spd.growth(size)
    flat = spd._FlatDirections(size, scale)
    count = 4000
    first = spd.collect(lambda number: flat(number, rng), count)
    second = spd.collect(lambda number: spd._propose_drift(size, scale, number, rng), count)
    assert first.shape == second.shape == (count, size, size)
    x, y = np.linalg.eigvalsh(first), np.linalg.eigvalsh(second)
    assert equal_laws(np.linalg.norm(x, axis=-1), np.linalg.norm(y, axis=-1))
    assert equal_laws(x.sum(axis=-1), y.sum(axis=-1))
    for k in range(size - 1):
        assert equal_laws(x[:, k + 1] - x[:, k], y[:, k + 1] - y[:, k])
    assert equal_laws(first[:, 0, 0], second[:, 0, 0])
    assert equal_laws(first[:, 0, 1], second[:, 0, 1])


@pytest.mark.parametrize(
    ("size", "share"), [(3, 0.3), (4, 0.95), (5, 0.5), (6, 0.6), (6, 0.9), (8, 0.5), (10, 0.3)]
)
def test_lengths_on_spd_have_the_mean_of_the_normaliser(size, share, rng):
    # E|x| = -d log Z/dα at α = 1/λ, and Var|x| its derivative; 6.1 standard errors, α and the
    # difference quotient (steps of 1 %) known to 1e-3 standard deviations.
    alpha = spd.growth(size) / share
    step = 1e-3 * (alpha - spd.growth(size))
    low, middle, high = (spd.log_spd_integral(size, 1 / (alpha + k * step)) for k in (-1, 0, 1))
    mean, variance = (low - high) / (2 * step), (low - 2 * middle + high) / step**2
    s = np.linalg.norm(spd.sample_spd_noise(size, 1 / alpha, 4000, rng), axis=(-1, -2))
    assert abs(s.mean() - mean) < 6.2 * sqrt(variance / len(s))
    assert_allclose(s.std(), sqrt(variance), rtol=0.15)


@pytest.mark.parametrize(("size", "share"), [(3, 0.5), (3, 0.9), (5, 0.5), (5, 0.9)])
def test_axes_on_spd_are_uniform(size, share, rng):
    v = spd.sample_spd_noise(size, share / spd.growth(size), 4000, rng)
    x, q = np.linalg.eigh(v)
    gap = x[:, -1] - x[:, -2]
    for subset in (gap < np.median(gap), gap >= np.median(gap)):
        for axis, column in ((0, 0), (1, 0), (0, size - 1)):
            assert agrees(q[subset, axis, column] ** 2, beta(0.5, (size - 1) / 2).cdf)


@pytest.mark.parametrize(
    ("size", "kept"),
    [(2, 0.55), (3, 0.3), (4, 0.14), (5, 0.04), (6, 0.006), (7, 0.15), (10, 0.08)],
)
def test_enough_proposals_are_kept_on_spd(size, kept, rng):
    # The worst scales, on both sides of the switch; expected .67, .40, .18, .06, .010, .19, .11 and
    # 40,000 proposals.
    switch = spd._SWITCH.get(size, spd._SHARE)
    below = spd._FlatDirections(size, switch * (1 - 1e-9) / spd.growth(size))
    assert len(below(40_000, rng)) > kept * 40_000
    for share in (switch, 0.9, 1 - 1e-9) if size in spd._SWITCH else ():
        assert len(spd._propose_drift(size, share / spd.growth(size), 40_000, rng)) > kept * 40_000


def test_no_draws_are_an_empty_array(rng):
    assert radius.sample_sphere_distance(3, 0.5, 0, rng).shape == (0,)
    assert radius.sample_hyperbolic_distance(3, 0.1, 0, rng).shape == (0,)
    for share in (0.1, 0.95):
        assert spd.sample_spd_noise(3, share / spd.growth(3), 0, rng).shape == (0, 3, 3)


# --- the range of the scale ----------------------------------------------------------------------


def test_growth_of_volume_on_spd():
    # The largest Σ |x_i - x_j|/2 of a unit vector; the limit of λ is its reciprocal.
    for size in (2, 3, 5, 10):
        assert_allclose(spd.growth(size), sqrt(size * (size**2 - 1)) / (2 * sqrt(3)), rtol=1e-15)
        x = np.random.default_rng(size).standard_normal((10_000, size))
        x = np.vstack([x, np.arange(size) - (size - 1) / 2])
        x /= np.linalg.norm(x, axis=-1, keepdims=True)
        rates = np.abs(x[:, :, None] - x[:, None, :]).sum(axis=(-1, -2)) / 4
        assert_allclose(rates.max(), spd.growth(size), rtol=1e-12)
    assert spd.largest_scale(2) == pytest.approx(sqrt(2))
    assert spd.largest_scale(1) == inf


LIMITED = [
    (Hyperbolic(2), 1.0),
    (Hyperbolic(5), 0.25),
    (SPDAffineInvariant(2), 2 * sqrt(3) / sqrt(6)),
    (SPDAffineInvariant(5), 2 * sqrt(3) / sqrt(120)),
    (SPDAffineInvariant(8), 0.75 * 2 * sqrt(3) / sqrt(504)),
]


@pytest.mark.parametrize(("space", "limit"), LIMITED)
def test_scales_that_cannot_be_normalised_are_refused(space, limit):
    for scale in (limit * (1 + 1e-12), 2 * limit, 1e9):
        for attempt in (
            lambda scale=scale: RiemannianLaplace(space, scale),
            lambda scale=scale: RiemannianLaplace.calibrate(space, scale / 2, PureDP(0.5)),
        ):
            with pytest.raises(ValueError, match=f"scale.*must be below {limit:.6g} on") as caught:
                attempt()
            assert repr(space) in str(caught.value)
            assert is_one_sentence(caught)


@pytest.mark.parametrize(("space", "limit"), LIMITED)
@pytest.mark.parametrize("share", [0.9, 0.999, 1 - 1e-9])
def test_releases_close_to_the_limit_stay_on_the_space(space, limit, share, rng):
    mechanism = RiemannianLaplace(space, share * limit)
    centers = points_near(space, rng, 300)
    released = mechanism.release(centers, rng)
    assert np.isfinite(released).all()
    assert space.contains(released).all()
    assert np.isfinite(mechanism.log_density(centers, released)).all()


@pytest.mark.parametrize("space", [Sphere(2), SPDAffineInvariant(1), SPDLogCholesky(3)], ids=repr)
@pytest.mark.parametrize("scale", [1e3, 1e8])
def test_huge_noise_stays_on_the_space(space, scale, rng):
    released = RiemannianLaplace(space, scale).release(points_near(space, rng, 300), rng)
    assert np.isfinite(released).all()
    assert space.contains(released).all()


def test_what_float64_cannot_hold_is_a_function_of_the_release():
    # The same matrix from two centres, that is, from two private values.
    first = spd.add_spd_noise(np.eye(2), np.diag([40.0, -40.0]))
    second = spd.add_spd_noise(np.diag([exp(3.0), exp(-3.0)]), np.diag([37.0, -37.0]))
    assert_allclose(first, second, rtol=1e-12)
    assert_allclose(np.diag(first), [exp(40), exp(10)], rtol=1e-12)
    # Representable ones are not touched, whatever their unit.
    tiny = 1e-12 * np.array([[2.0, 1.0], [1.0, 3.0]])
    assert_allclose(spd.add_spd_noise(tiny, np.zeros((2, 2))), tiny, rtol=1e-14)
    v = np.array([[0.3, -0.2], [-0.2, 1.0]])
    space = SPDAffineInvariant(2)
    expected = space.exp_coords(tiny, np.array([0.3, -0.2 * sqrt(2), 1.0]))
    assert_allclose(spd.add_spd_noise(tiny, v), expected, rtol=1e-13)
    # On hyperbolic spaces points end up 17 from the origin, in the direction they had.
    plane = Hyperbolic(2)
    x = plane.exp_coords(plane.origin, np.array([[200.0, 0.0], [0.0, 5.0]]))
    short = riemannian_laplace._representable(plane, x)
    assert_allclose(short[0, 1], sinh(17), rtol=1e-12)
    assert_array_equal(short[1], x[1])


class Torus(Manifold):
    """Some space without a theorem."""

    dim = 2
    point_shape = (2,)
    sectional_curvature_bounds = (0.0, 0.0)
    exp = log = inner = transport = coords = from_coords = curvature_frame = violations = None


def test_spaces_without_a_theorem_are_refused():
    for space in (Torus(), SPDAffineInvariant(11)):
        for attempt in (
            lambda space=space: RiemannianLaplace(space, 1e-3),
            lambda space=space: RiemannianLaplace.calibrate(space, 0.1, PureDP(1.0)),
            lambda space=space: RiemannianLaplace.calibrate(space, 0.1, None),
        ):
            with pytest.raises(ValueError, match=r"^mechanism 'riemannian-laplace' req") as caught:
                attempt()
            assert is_one_sentence(caught)


def test_only_pure_privacy_is_promised():
    for other in (GDP(1.0), ApproxDP(1.0, 1e-6), 1.0):
        with pytest.raises(TypeError, match="guarantee must be a PureDP for Laplace noise"):
            RiemannianLaplace.calibrate(Sphere(2), 0.1, other)
    mechanism = RiemannianLaplace.calibrate(Sphere(2), 0.1, PureDP(1.0))
    assert mechanism.guarantee(inf) == PureDP(inf)
    assert mechanism.guarantee(0.1 * nextafter(1.0, 0.0)).epsilon <= 1
