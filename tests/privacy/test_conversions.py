import math
from fractions import Fraction

import dp_accounting
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdpfrechet.privacy import gdp_delta, gdp_epsilon, gdp_mu, gdp_rho
from skdpfrechet.privacy._gaussian_profile import PROFILE_ERROR, log_profile

ANY = st.floats(0, math.inf)
PROBABILITY = st.floats(0, 1)


def _profile(mu, a):
    """δ at ε = μ(μ/2 − a) for mpmath numbers; the difference costs about log10(1/μ) digits."""
    b = a - mu
    growth = mpmath.exp(mu * (mu / 2 - a))
    return (mpmath.erfc(-a / mpmath.sqrt(2)) - growth * mpmath.erfc(-b / mpmath.sqrt(2))) / 2


def _exact(mu, epsilon):
    with mpmath.workdps(50 + max(0, round(-math.log10(mu)))):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return _profile(mu, mu / 2 - epsilon / mu)


def _curve_points(count):
    """(μ, ε) over μ in [1e-8, 1e3], ε in [0, 1e4], down to δ = 1e-300."""
    rng = np.random.default_rng(0)
    mu = 10 ** rng.uniform(-8, 3, count)
    inside = mu * (mu / 2 - rng.uniform(-37, np.minimum(mu / 2, 8)))
    anywhere = 10 ** rng.uniform(-10, 4, count)
    epsilon = np.choose(rng.integers(0, 5, count), [inside, inside, inside, anywhere, 0.0])
    keep = (epsilon <= 1e4) & (mu / 2 - epsilon / mu > -37)
    return mu[keep], epsilon[keep]


def _targets(count):
    """(first, δ) with δ from 1e-300 to 1, both tails resolved."""
    rng = np.random.default_rng(1)
    delta = np.where(rng.random(count) < 0.7, 10 ** rng.uniform(-300, 0, count), rng.random(count))
    return rng, np.where(rng.random(count) < 0.1, 1 - delta.clip(1e-12, 0.5), delta)


def _check_rounded_up(mu, epsilon):
    for m, e, delta in zip(mu, epsilon, gdp_delta(mu, epsilon), strict=True):
        exact = _exact(m, e)
        assert exact <= delta, (m, e)
        with mpmath.workdps(50):
            room = 6e-15 * (1 - mpmath.log(exact)) * exact
            assert delta <= exact + room + math.ulp(0.0), (m, e)


def test_delta_is_rounded_up_and_tight():
    mu, epsilon = _curve_points(1500)
    assert len(mu) > 1000
    _check_rounded_up(mu, epsilon)


def test_delta_is_rounded_up_on_a_grid_with_tails_beyond_float64():
    grid = np.geomspace(1e-6, 1e3, 28), np.append(0.0, np.geomspace(1e-8, 1e4, 37))
    mu, epsilon = (axis.ravel() for axis in np.meshgrid(*grid))
    _check_rounded_up(mu, epsilon)
    # Around δ_μ(ε) = 1e-308 float64 is coarse, and below 5e-324 it has no numbers.
    mu = np.repeat(np.geomspace(1e-3, 1e2, 6), 40)
    _check_rounded_up(mu, mu * (mu / 2 + np.tile(np.linspace(37, 39.5, 40), 6)))


def test_delta_never_vanishes_where_something_may_be_lost():
    assert gdp_delta(1.0, 1e4) == math.ulp(0.0)
    assert gdp_delta(1e-300, 1e300) == math.ulp(0.0)
    assert gdp_delta(0.0, 0.0) == gdp_delta(1.0, math.inf) == 0.0


def test_core_error_is_below_half_the_bound_that_the_rounding_relies_on():
    mu, epsilon = _curve_points(1500)
    a = mu / 2 - epsilon / mu
    for mu_, a_, value in zip(mu, a, log_profile(a, mu), strict=True):
        with mpmath.workdps(50):
            error = value - mpmath.log(_profile(mpmath.mpf(mu_), mpmath.mpf(a_)))
        assert abs(float(error)) < PROFILE_ERROR / 2 * (1 + abs(value))


# 2e-11: the slack in log δ is 4e-15 · (1 + 691), and |a| ≤ 37 times the slack in a,
# 4.4e-16 · (μ/2 + ε/μ) ≤ 4.4e-16 · 1050 at μ = 1e3.
def test_epsilon_is_rounded_up_and_tight():
    rng, targets = _targets(500)
    for mu, delta in zip(10 ** rng.uniform(-8, 3, 500), targets, strict=True):
        epsilon = gdp_epsilon(mu, delta)
        if epsilon == 0:
            assert _exact(mu, 0.0) <= delta * (1 + 1e-12)
        else:
            assert delta * (1 - 2e-11) <= _exact(mu, epsilon) <= delta


def test_mu_is_rounded_down_and_tight():
    rng, targets = _targets(500)
    epsilons = np.where(rng.random(500) < 0.1, 0.0, 10 ** rng.uniform(-10, 4, 500))
    for epsilon, delta in zip(epsilons, targets, strict=True):
        mu = gdp_mu(epsilon, delta)
        assert delta * (1 - 2e-11) <= _exact(mu, epsilon) <= delta


@given(ANY, PROBABILITY)
def test_rounding_is_safe_in_floats_over_their_whole_range(value, delta):
    assert gdp_delta(value, gdp_epsilon(value, delta)) <= delta
    assert gdp_delta(gdp_mu(value, delta), value) <= delta


@given(ANY, ANY, ANY)
def test_delta_is_monotone(first, second, other):
    low, high = sorted((first, second))
    slack = 1 + 1e-12
    assert gdp_delta(other, high) <= gdp_delta(other, low) * slack
    assert gdp_delta(low, other) <= gdp_delta(high, other) * slack


@given(st.floats(1e-3, 5), st.floats(-30, 2))
def test_round_trips(mu, a):
    epsilon = mu * (mu / 2 - min(a, mu / 2 - 1e-2))
    delta = gdp_delta(mu, epsilon)
    assert gdp_epsilon(mu, delta) == pytest.approx(epsilon, rel=1e-10)
    assert gdp_mu(epsilon, delta) == pytest.approx(mu, rel=1e-10)


@given(st.floats(0.01, 50), st.floats(-200, -0.01))
def test_agrees_with_dp_accounting(sigma, log_delta):
    delta = math.exp(log_delta)
    epsilon = dp_accounting.get_epsilon_gaussian(sigma, delta)
    assert gdp_epsilon(1 / sigma, delta) == pytest.approx(epsilon, rel=1e-8, abs=1e-10)
    sigma_back = dp_accounting.get_sigma_gaussian(sigma, delta)
    assert gdp_mu(sigma, delta) == pytest.approx(1 / sigma_back, rel=1e-8)


def test_published_noise_scale():
    # The reference implementation of Balle and Wang (2018), ε = 1, δ = 1e-5, sensitivity 1.
    assert 1 / gdp_mu(1.0, 1e-5) == pytest.approx(3.730631634944469, rel=1e-9)


@pytest.mark.parametrize(
    ("mu", "epsilon", "delta"),
    [
        (0.0, 0.0, 0.0),
        (math.inf, 1e300, 1.0),
        (math.inf, math.inf, 0.0),
        (1.0, math.inf, 0.0),
        (1e-300, 0.0, 1e-300 / math.sqrt(2 * math.pi)),
        (1.0, 0.0, math.erf(1 / math.sqrt(8))),
    ],
)
def test_delta_at_the_edges(mu, epsilon, delta):
    assert gdp_delta(mu, epsilon) == pytest.approx(delta, rel=3e-12, abs=0)


@pytest.mark.parametrize(
    ("mu", "delta", "epsilon"),
    [
        (0.0, 0.0, 0.0),
        (1.0, 0.0, math.inf),
        (math.inf, 0.999, math.inf),
        (math.inf, 1.0, 0.0),
        (1.0, 1.0, 0.0),
        (1.0, gdp_delta(1.0, 0.0), 0.0),
    ],
)
def test_epsilon_at_the_edges(mu, delta, epsilon):
    assert gdp_epsilon(mu, delta) == epsilon


@pytest.mark.parametrize(
    ("epsilon", "delta", "mu"),
    [(1.0, 0.0, 0.0), (1.0, 1.0, math.inf), (math.inf, 0.0, math.inf), (0.0, 0.0, 0.0)],
)
def test_mu_at_the_edges(epsilon, delta, mu):
    assert gdp_mu(epsilon, delta) == mu


@pytest.mark.parametrize("function", [gdp_delta, gdp_epsilon, gdp_mu])
def test_broadcasts_and_gives_floats_for_scalars(function):
    first, second = np.array([[0.5], [1.0], [2.0]]), np.array([0.1, 0.2])
    table = function(first, second)
    assert table.shape == (3, 2)
    assert table[2, 1] == function(2.0, 0.2)
    assert type(function(np.float32(1), 1)) is float
    assert function([], 0.5).shape == (0,)


@given(st.floats(0, 1e200))
def test_rho_is_rounded_up(mu):
    rho = gdp_rho(mu)
    assert math.isinf(rho) or Fraction(rho) >= Fraction(mu) ** 2 / 2
    assert rho == 0 or Fraction(math.nextafter(rho, 0)) < Fraction(mu) ** 2 / 2


def test_rho_is_half_the_square():
    assert gdp_rho(3.0) == 4.5
    np.testing.assert_array_equal(gdp_rho([0.0, 1.0, math.inf]), [0.0, 0.5, math.inf])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: gdp_delta(-1.0, 1.0), ValueError, "mu must not be negative or NaN, got -1.0"),
        (lambda: gdp_delta([1.0, math.nan], 1.0), ValueError, "mu must not be negative or NaN"),
        (lambda: gdp_epsilon(1.0, 1.5), ValueError, "delta must lie between 0 and 1, got 1.5"),
        (lambda: gdp_mu("1", 0.1), TypeError, "epsilon must be a real number or an array"),
        (lambda: gdp_rho(True), TypeError, "mu must be a real number or an array"),
    ],
)
def test_refuses_bad_arguments_in_one_sentence(call, error, message):
    with pytest.raises(error, match=message):
        call()
