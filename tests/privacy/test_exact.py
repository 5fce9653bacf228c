"""Exact budgets on spheres: independent computations, published values, the laws of μ* and σ."""

from __future__ import annotations

from itertools import pairwise
from math import exp, inf, lgamma, log, nan, pi, sqrt, tan

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import erf, erfc, erfinv

from skdpfrechet.manifolds import Sphere
from skdpfrechet.mechanisms import RiemannianGaussian
from skdpfrechet.privacy import exact, gdp_delta
from skdpfrechet.privacy._rounding import quotient_up
from skdpfrechet.privacy.exact import sphere_mu, sphere_profile, sphere_sigma

MU_ERROR = 2e-11  # by which μ* may be too large, relative
ROUNDED_UP = 1e-12  # what is added to the profile
DIMS = [1, 2, 3, 10, 60, 200]
DISTANCES = [1e-4, 0.05, 0.4, 1.5, 2.9, 3.14, pi]
SIGMAS = [0.01, 0.1, 0.4, 1.0, 10.0]
GRID = [(dim, distance, sigma) for dim in DIMS for distance in DISTANCES for sigma in SIGMAS]
dims = st.one_of(st.sampled_from([1, 2, 3]), st.integers(1, 200))
distances = st.floats(log(1e-4), log(pi)).map(exp)
sigmas = st.floats(log(0.01), log(10)).map(exp)


def epsilons(mu):
    """ε where the profile of a μ-GDP mechanism is neither 0 nor 1, ε = 0 included."""
    around = mu * (mu / 2 + np.array([-2.0, -1.0, -0.3, 0.0, 0.5, 1.0, 2.0, 3.0]))
    return np.concatenate([[0.0, 0.1 * mu, mu], around[around > 0]])


# --- independent computations ---------------------------------------------------------------------


def circle_profile(epsilon, distance, sigma):
    """Closed form: on the angles (-π, π] both sets of large loss are intervals."""
    shift, rest = 2 * sigma**2 * epsilon, 2 * pi - distance
    if shift >= distance * rest:
        return 0.0

    scale = sqrt(2) * sigma

    def inside(angle):
        return erf(angle / scale) / erf(pi / scale) / 2

    def beyond(angle):
        return (erfc(angle / scale) - erfc(pi / scale)) / erf(pi / scale) / 2

    above = inside((distance - shift / distance) / 2) + inside((rest - shift / rest) / 2)
    below = beyond((distance + shift / distance) / 2) + beyond((rest + shift / rest) / 2)
    return above - exp(epsilon) * below


@pytest.mark.parametrize("distance", [1e-3, 0.3, 1.5, 3.1, pi])
@pytest.mark.parametrize("sigma", [0.1, 0.7, 2.0, 10.0])
def test_circle_has_a_closed_form(distance, sigma):
    for epsilon in np.append(epsilons(min(distance / sigma, 30.0)), 0.7):
        if epsilon < 300:
            seen = sphere_profile(epsilon, dim=1, distance=distance, sigma=sigma)
            want = circle_profile(epsilon, distance, sigma)
            error = 1e-13 * max(1, epsilon)  # of the closed form, too
            assert want * (1 - 1e-9) - max(error - ROUNDED_UP, 0) <= seen
            assert seen <= want + ROUNDED_UP + error


def sphere_2_profile(epsilon, distance, sigma):
    """∫ (p₁ - e^ε p₂)₊ over S² from dot products; the corner leaves an error below 1e-5."""
    z, w = np.polynomial.legendre.leggauss(300)
    phi = 2 * pi * (np.arange(400) + 0.5) / 400
    x = np.sqrt(1 - z**2)[:, None] * np.cos(phi)
    first = np.arccos(z)[:, None]
    dots = z[:, None] * np.cos(distance) + x * np.sin(distance)
    second = np.arccos(np.clip(dots, -1, 1))
    p1, p2 = (np.exp(-(r**2) / (2 * sigma**2)) for r in (first, second))
    gain = np.maximum(p1 - np.exp(epsilon) * p2, 0.0)
    return (w @ gain).sum() / (w @ np.broadcast_to(p1, gain.shape)).sum()


@pytest.mark.parametrize(
    ("epsilon", "distance", "sigma"),
    [(0.0, 0.5, 0.5), (0.5, 0.8, 0.8), (1.0, 1.5, 0.6), (0.3, 2.5, 2.0), (0.2, 0.4, 1.5)],
)
def test_profile_is_the_integral_over_the_sphere(epsilon, distance, sigma):
    seen = sphere_profile(epsilon, dim=2, distance=distance, sigma=sigma)
    assert_allclose(seen, sphere_2_profile(epsilon, distance, sigma), rtol=0, atol=1e-5)


def rule(breaks, count):
    """Nodes and weights that make the square roots at the ends of each interval analytic."""
    x, w = np.polynomial.legendre.leggauss(count)
    unit, weight = np.sin(pi * (x + 1) / 4) ** 2, np.sin(pi * (x + 1) / 2) * w * pi / 4
    parts = [(low + (high - low) * unit, (high - low) * weight) for low, high in pairwise(breaks)]
    return np.concatenate([s for s, _ in parts]), np.concatenate([w for _, w in parts])


def positive_profile(epsilon, dim, distance, sigma):
    """∫ p₁ (1 - e^{ε - loss}) over {loss > ε}, d ≥ 2, in polar coordinates at the second centre.

    Two-dimensional, smooth on the region and without cancellation, so that small δ are relatively
    accurate. The loss is computed from sin((s - ρ₁)/2), free of cancellation as well.
    """
    shift, rest = 2 * sigma**2 * epsilon, 2 * pi - distance
    if shift >= distance * rest:
        return 0.0
    inner, outer = (distance + shift / distance) / 2, min((rest + shift / rest) / 2, pi)

    def log_radial(s):
        return -((s / sigma) ** 2) / 2 + (dim - 1) * np.log(np.sin(s))

    grid = np.linspace(0, pi, 100_001)[1:-1]
    mode, spread = grid[log_radial(grid).argmax()], 1 / sqrt(1 / sigma**2 + dim - 1)
    top = log_radial(mode)
    s, w = rule(np.linspace(max(mode - 12 * spread, 0), min(mode + 12 * spread, pi), 25), 30)
    mass = np.exp(log_radial(s) - top) @ w

    doublings = 2.0 ** np.arange(40)
    steps = np.arange(-24, 25) * spread / 2
    breaks = [inner, outer, pi, *(inner * doublings), *(pi - (pi - outer) * doublings)]
    breaks = np.unique([*breaks, *(mode + steps), *(distance + steps), *np.linspace(0, pi, 41)])
    s, w = rule(breaks[(breaks >= inner) & (breaks <= pi)], 24)
    s, w = s[:, None], w[:, None]
    b = np.sqrt(np.maximum(s * s - shift, 0.0))
    h = np.sin((distance - shift / (b + s)) / 2) * np.sin((b + s - distance) / 2)
    h = h / (np.sin(s) * np.sin(distance))
    last = np.where(s < outer, 2 * np.arcsin(np.sqrt(np.clip(h, 0, 1))), pi)
    t, v = rule(np.linspace(0, 1, 6), 30)
    theta = last * t
    haversine = np.sin((s - distance) / 2) ** 2
    haversine = haversine + np.sin(s) * np.sin(distance) * np.sin(theta / 2) ** 2
    first = 2 * np.arcsin(np.sqrt(np.minimum(haversine, 1)))
    sine = np.sin(s) * np.cos(distance / 2) * np.cos(theta) - np.cos(s) * np.sin(distance / 2)
    sine = np.sin(distance / 2) * sine / np.sin((s + first) / 2)
    loss = 2 * np.arcsin(np.clip(sine, -1, 1)) * (s + first) / (2 * sigma**2)
    gain = np.maximum(-np.expm1(np.minimum(epsilon - loss, 0)), 0)
    law = np.exp(-((first / sigma) ** 2) / 2 + (dim - 1) * np.log(np.sin(s)) - top)
    beta = lgamma((dim - 1) / 2) + log(pi) / 2 - lgamma(dim / 2)
    angle = np.exp((dim - 2) * np.log(np.sin(theta)) - beta) if dim > 2 else exp(-beta)
    return float((law * gain * angle * last * v * w).sum() / mass)


POSITIVE = [
    (dim, distance, sigma)
    for dim in (2, 3, 10, 60)
    for distance, sigma in [
        (1e-4, 0.01), (1e-4, 3.0), (0.05, 0.1), (0.4, 0.4), (1.5, 0.5), (2.9, 1.0), (2.0, 10.0),
    ]
]  # fmt: skip


@pytest.mark.parametrize(("dim", "distance", "sigma"), POSITIVE)
def test_profile_and_mu_match_two_dimensional_quadrature(dim, distance, sigma):
    mu = sphere_mu(dim=dim, distance=distance, sigma=sigma)
    at = epsilons(mu)[::2]
    seen = sphere_profile(at, dim=dim, distance=distance, sigma=sigma)
    want = [positive_profile(epsilon, dim, distance, sigma) for epsilon in at]
    assert (want <= seen).all()
    assert_allclose(seen, want, rtol=0, atol=2 * ROUNDED_UP)
    # Relative accuracy: δ_μ(0) = erf(μ/√8) is proportional to μ for small μ.
    if want[0] < 0.99:
        exact_mu = sqrt(8) * erfinv(want[0])
        assert exact_mu * (1 - 1e-12) <= mu <= exact_mu * (1 + MU_ERROR)


@pytest.mark.parametrize(("dim", "distance", "sigma"), POSITIVE[::2])
def test_the_largest_mu_is_at_epsilon_zero(dim, distance, sigma):
    # What `sphere_mu` relies on and no theorem says; here in relative terms, deep into the tail.
    mu = sphere_mu(dim=dim, distance=distance, sigma=sigma)
    for step in (0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 6.0):
        bound = gdp_delta(mu, mu * step)
        assert positive_profile(mu * step, dim, distance, sigma) <= bound * (1 + 1e-10)


def log_overlap_on_s3(distance, sigma):
    """log(1 - δ(0)) on S³, where the share of a circle is h itself, to thirty digits."""
    with mpmath.workdps(40):
        d, sigma = mpmath.mpf(distance), mpmath.mpf(sigma)

        def density(s):
            return mpmath.exp(-((s / sigma) ** 2) / 2) * mpmath.sin(s) ** 2

        def nearer(s):
            height = mpmath.sin(d / 2) * mpmath.sin(s - d / 2)
            return density(s) * height / (mpmath.sin(s) * mpmath.sin(d))

        # exp(-s²/2σ²) falls by 1/e over σ²/s there.
        scale = min(sigma**2 / d, sigma)
        breaks = [d / 2 + k * scale for k in (0, 0.5, 1, 2, 4, 8, 16, 32, 64, 128)]
        breaks = [x for x in breaks if x < mpmath.pi - d / 2] + [mpmath.pi - d / 2]
        partial = mpmath.quad(nearer, breaks)
        whole = mpmath.quad(density, [mpmath.pi - d / 2, mpmath.pi])
        mass = mpmath.quad(density, [k * mpmath.pi / 100 for k in range(101)])
        return mpmath.log(2 * (partial + whole) / mass)


@pytest.mark.parametrize(
    ("distance", "sigma"), [(0.3, 0.1), (1.0, 0.1), (1.0, 0.02), (2.5, 0.05), (3.0, 0.6)]
)
def test_large_mu_by_high_precision(distance, sigma):
    # Down to 1 - δ(0) = e^{-1250}.
    want = log_overlap_on_s3(distance, sigma)
    with mpmath.workdps(40):
        start = mpmath.mpf(distance / sigma)
        mu = float(
            mpmath.findroot(
                lambda m: mpmath.log(mpmath.erfc(m / mpmath.sqrt(8))) - want,
                (start, start * 0.9),
            )
        )
    seen = sphere_mu(dim=3, distance=distance, sigma=sigma)
    assert mu * (1 - 1e-13) <= seen <= mu * (1 + MU_ERROR)


@pytest.mark.parametrize(("dim", "distance", "sigma"), GRID[::3])
def test_finer_quadrature_changes_nothing(dim, distance, sigma, monkeypatch):
    mu = exact._mu_upper(dim, distance, sigma)
    at = epsilons(mu)
    delta = sphere_profile(at, dim=dim, distance=distance, sigma=sigma)
    x, w = np.polynomial.legendre.leggauss(50)
    monkeypatch.setattr(exact, "_NODES", np.sin(pi * (x + 1) / 4) ** 2)
    monkeypatch.setattr(exact, "_WEIGHTS", np.sin(pi * (x + 1) / 2) * w * pi / 4)
    monkeypatch.setattr(exact, "_PANELS", 40)
    monkeypatch.setattr(exact, "_CUT", 70.0)
    finer = sphere_profile(at, dim=dim, distance=distance, sigma=sigma)
    assert_allclose(delta, finer, rtol=0, atol=2e-13)
    assert_allclose(mu, exact._mu_upper(dim, distance, sigma), rtol=2e-13)


# Hoeffding: (1 - e^{ε - loss})₊ lies in [0, 1], so the mean of 200,000 is off by more than
# sqrt(log(2/1e-9)/4e5) = .0073 with probability below 1e-9; 30 comparisons, false alarm below 3e-8.
@pytest.mark.parametrize(
    ("dim", "distance", "sigma"),
    [(1, 1.0, 0.8), (2, 0.5, 0.5), (2, 3.0, 1.0), (3, 1.5, 0.4), (10, 0.8, 0.6), (60, 2.0, 0.3)],
)
def test_profile_matches_the_sampler(dim, distance, sigma):
    count, sphere = 200_000, Sphere(dim)
    first, second = np.eye(dim + 1)[0], np.zeros(dim + 1)
    second[:2] = np.cos(distance), np.sin(distance)
    mechanism = RiemannianGaussian(sphere, sigma)
    x = mechanism.release(np.broadcast_to(first, (count, dim + 1)), np.random.default_rng(dim))
    loss = (sphere.dist(second, x) ** 2 - sphere.dist(first, x) ** 2) / (2 * sigma**2)
    mu = sphere_mu(dim=dim, distance=distance, sigma=sigma)
    for epsilon in mu * np.array([0.0, 0.3, 1.0, 2.0, 0.5 + mu / 2]):
        seen = np.maximum(-np.expm1(np.minimum(epsilon - loss, 0)), 0).mean()
        want = sphere_profile(epsilon, dim=dim, distance=distance, sigma=sigma)
        assert abs(seen - want) < sqrt(log(2 / 1e-9) / (2 * count))


@pytest.mark.parametrize(
    ("a", "x"), [(100.0, 1e-4), (100.0, 0.01), (99.5, 1e-5), (0.5, 0.01), (1.0, 0.2), (5000, 0.3)]
)
def test_share_without_underflow(a, x):
    with mpmath.workdps(40):
        want = float(mpmath.log(mpmath.betainc(a, a, 0, x, regularized=True)))
    assert_allclose(exact._log_incomplete_beta(a, np.array([x]))[0], want, rtol=1e-13)
    assert_allclose(exact._log_share(np.array([x]), round(2 * a + 1))[0], want, rtol=1e-12)


# --- values ---------------------------------------------------------------------------------------


def test_exact_budgets_of_the_printed_table():
    # arXiv 2605.14762, Table 1: S², n = 600, r = π/8, the printed sensitivity, σ = Δ/μ. The μ* were
    # computed independently of this code in an audit of that table.
    distance = 2 * (tan(pi / 4) - pi / 8) / 600
    printed = [0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 2.5]
    wanted = [0.099993, 0.199997, 0.299998, 0.499999, 0.699999, 0.999999, 1.5, 2.0, 2.5]
    seen = [sphere_mu(dim=2, distance=distance, sigma=distance / mu) for mu in printed]
    assert [round(mu, 6) for mu in seen] == wanted


@pytest.mark.parametrize(("dim", "saving"), [(2, 0.907), (10, 0.688)])
def test_noise_saved_at_ten_records(dim, saving):
    # n = 10, μ = .1, r = π/8 and the sharp sensitivity 2 tan(r)/n; from the same audit.
    distance = 2 * tan(pi / 8) / 10
    assert round(sphere_sigma(0.1, dim=dim, distance=distance) / (distance / 0.1), 3) == saving


@pytest.mark.parametrize("dim", [2, 3, 10, 60, 200])
def test_curvature_saves_as_the_expansion_says(dim):
    # μ* = μ (1 - (d-1)σ²/6 + O(d²σ⁴)), whatever the distance, as long as it is small.
    sigma = 1e-2 / sqrt(dim)
    for distance in (1e-4, 1e-3, 0.1 * sigma):
        saved = 1 - sphere_mu(dim=dim, distance=distance, sigma=sigma) * sigma / distance
        assert_allclose(saved / sigma**2, (dim - 1) / 6, rtol=1e-3)


def test_small_scales_are_flat():
    for dim in DIMS:
        for sigma in (1e-12, 1e-8):
            assert_allclose(sphere_mu(dim=dim, distance=2 * sigma, sigma=sigma), 2.0, rtol=1e-12)
            at = epsilons(2.0)
            seen = sphere_profile(at, dim=dim, distance=2 * sigma, sigma=sigma)
            assert_allclose(seen, gdp_delta(2.0, at), rtol=0, atol=2 * ROUNDED_UP)


# --- laws -----------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(dim=dims, distance=distances, sigma=sigmas)
def test_the_promise_holds_and_is_tight(dim, distance, sigma):
    mu = sphere_mu(dim=dim, distance=distance, sigma=sigma)
    assert 0 < mu <= quotient_up(distance, sigma)
    at = epsilons(mu)
    delta = sphere_profile(at, dim=dim, distance=distance, sigma=sigma)
    assert (delta <= gdp_delta(mu, at) + 2 * ROUNDED_UP).all()
    assert (delta <= gdp_delta(quotient_up(distance, sigma), at)).all()
    assert_allclose(delta[0], gdp_delta(mu, 0.0), rtol=3 * MU_ERROR, atol=2 * ROUNDED_UP)


@settings(max_examples=60, deadline=None)
@given(dim=dims, distance=distances, sigma=sigmas, factor=st.floats(1.0, 3.0))
def test_closer_centres_and_more_noise_are_more_private(dim, distance, sigma, factor):
    here = {"dim": dim, "distance": distance, "sigma": sigma}
    farther = {**here, "distance": min(factor * distance, pi)}
    noisier = {**here, "sigma": factor * sigma}
    mu = sphere_mu(**here)
    assert sphere_mu(**farther) >= mu * (1 - MU_ERROR)
    # More than proportionally: Δ/σ is the bound for small σ.
    assert sphere_mu(**noisier) * factor <= mu * (1 + MU_ERROR)
    at = epsilons(mu)
    delta = sphere_profile(at, **here)
    assert (np.diff(delta[np.argsort(at)]) <= 1e-12).all()
    assert (sphere_profile(at, **farther) >= delta - 1e-12).all()
    assert (sphere_profile(at, **noisier) <= delta + 1e-12).all()


@settings(max_examples=40, deadline=None)
@given(dim=dims, distance=distances, sigma=sigmas, factor=st.floats(0.3, 1.0))
def test_scale_is_the_inverse(dim, distance, sigma, factor):
    mu = factor * distance / sigma
    smallest = sphere_sigma(mu, dim=dim, distance=distance)
    assert mu * (1 - 1e-10) <= sphere_mu(dim=dim, distance=distance, sigma=smallest) <= mu
    assert smallest <= distance / mu * (1 + 1e-15)
    # A scale that is known to do is not exceeded.
    known = sphere_mu(dim=dim, distance=distance, sigma=sigma)
    assert sphere_sigma(known, dim=dim, distance=distance) <= sigma * (1 + 1e-10)


@pytest.mark.parametrize(("dim", "distance", "sigma"), GRID[::7])
def test_beyond_the_largest_loss_nothing_is_left(dim, distance, sigma):
    largest = distance * (2 * pi - distance) / (2 * sigma**2)
    at = [largest * (1 + 1e-11), 2 * largest, inf]
    assert (sphere_profile(at, dim=dim, distance=distance, sigma=sigma) == 0).all()


def test_just_below_the_largest_loss_something_is_left():
    largest = 1.5 * (2 * pi - 1.5) / 2
    assert sphere_profile(0.9 * largest, dim=2, distance=1.5, sigma=1.0) > 1e-6


@pytest.mark.parametrize("wrong", [0.5, 0.9, 0.999])
def test_a_budget_that_the_profile_contradicts_is_not_returned(wrong, monkeypatch):
    # Were the largest μ ever not at ε = 0, the proven Δ/σ would be the answer.
    honest = exact._mu_upper
    monkeypatch.setattr(exact, "_mu_upper", lambda *args: wrong * honest(*args))
    for distance, sigma in [(0.3, 0.3), (1.0, 0.1), (0.05, 0.4)]:
        assert sphere_mu(dim=3, distance=distance, sigma=sigma) == quotient_up(distance, sigma)
        largest = sphere_sigma(0.5, dim=3, distance=distance)
        assert largest == distance / 0.5


# --- arguments ------------------------------------------------------------------------------------


def test_scalars_and_arrays():
    assert type(sphere_profile(0.5, dim=2, distance=0.4, sigma=0.4)) is float
    at = np.array([[0.0, 0.5, inf], [1.0, 2.0, 3.0]])
    seen = sphere_profile(at, dim=2, distance=0.4, sigma=0.4)
    assert seen.shape == at.shape
    assert seen[0, 1] == sphere_profile(0.5, dim=2, distance=0.4, sigma=0.4)
    assert seen[0, 2] == 0
    assert sphere_profile([], dim=2, distance=0.4, sigma=0.4).shape == (0,)
    assert type(sphere_mu(dim=2, distance=0.4, sigma=0.4)) is float
    assert type(sphere_sigma(1, dim=2, distance=1)) is float


def test_distances_end_at_the_diameter():
    for distance in (3.2, 100.0, inf):
        far, diameter = ({"dim": 2, "distance": d} for d in (distance, pi))
        assert sphere_profile(0.3, sigma=1, **far) == sphere_profile(0.3, sigma=1, **diameter)
        assert sphere_mu(sigma=1, **far) == sphere_mu(sigma=1, **diameter)
        assert sphere_sigma(0.5, **far) == sphere_sigma(0.5, **diameter)


def test_limits():
    assert sphere_profile([0.0, 1.0], dim=2, distance=0, sigma=1.0).tolist() == [0.0, 0.0]
    assert sphere_mu(dim=2, distance=0, sigma=1.0) == 0
    assert sphere_sigma(1.0, dim=2, distance=0) == 0
    assert sphere_sigma(inf, dim=2, distance=0.3) == 0


@pytest.mark.parametrize("dim", [1, 2, 10, 10_000])
@pytest.mark.parametrize("distance", [1e-320, 1e-200, 1e-99, 1e-12, 1.0, pi])
@pytest.mark.parametrize("sigma", [1e-300, 1e-99, 1e-12, 1e12, 1e99, 1e300])
def test_extremes_stay_within_the_proven_bound(dim, distance, sigma):
    bound = quotient_up(distance, sigma)
    mu = sphere_mu(dim=dim, distance=distance, sigma=sigma)
    assert 0 <= mu <= bound
    delta = sphere_profile([0.0, 1.0], dim=dim, distance=distance, sigma=sigma)
    assert (delta >= 0).all()
    assert (delta <= gdp_delta(bound, [0.0, 1.0])).all()


GOOD = {"dim": 2, "distance": 0.4, "sigma": 0.4}


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ({"dim": 0}, ValueError),
        ({"dim": 2.0}, TypeError),
        ({"dim": True}, TypeError),
        ({"distance": -0.1}, ValueError),
        ({"distance": nan}, ValueError),
        ({"distance": "1"}, TypeError),
        ({"sigma": 0.0}, ValueError),
        ({"sigma": inf}, ValueError),
        ({"sigma": nan}, ValueError),
        ({"sigma": None}, TypeError),
    ],
)
def test_bad_arguments(bad, error):
    name = next(iter(bad))
    for function in (sphere_mu, lambda **good: sphere_profile(0.5, **good)):
        with pytest.raises(error, match=f"^{name} must "):
            function(**{**GOOD, **bad})
    if name != "sigma":
        with pytest.raises(error, match=f"^{name} must "):
            sphere_sigma(1.0, **{**{"dim": 2, "distance": 0.4}, **bad})


def test_bad_levels():
    for mu in (0.0, -1.0, nan):
        with pytest.raises(ValueError, match=r"^mu must "):
            sphere_sigma(mu, dim=2, distance=0.4)
    for epsilon in (-1.0, [0.1, nan]):
        with pytest.raises(ValueError, match=r"^epsilon must "):
            sphere_profile(epsilon, **GOOD)
