import dataclasses
import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given
from hypothesis import strategies as st

from skdpfrechet.privacy import GDP, ApproxDP, PureDP, gdp_delta, gdp_epsilon

EPSILON = st.floats(0, 800)
PROBABILITY = st.floats(0, 1)


def _hockey_stick(p, q, at):
    return float(np.sum(np.maximum(np.asarray(p) - np.exp(at) * np.asarray(q), 0)))


@given(st.floats(0, 20), PROBABILITY, st.floats(0, 25))
def test_profile_is_attained_by_failure_or_randomised_response(epsilon, delta, at):
    truth = 1 / (1 + math.exp(-epsilon))
    first = [delta, 0, (1 - delta) * truth, (1 - delta) * (1 - truth)]
    second = [0, delta, (1 - delta) * (1 - truth), (1 - delta) * truth]
    attained = _hockey_stick(first, second, at)
    # Rounding of `1 − truth` is magnified by e^at.
    assert ApproxDP(epsilon, delta).delta_at(at) == pytest.approx(attained, rel=1e-9, abs=1e-5)


@given(st.floats(0, 5), PROBABILITY, st.integers(0, 2**32 - 1), st.floats(0, 6))
def test_no_mechanism_exceeds_the_profile(epsilon, delta, seed, at):
    rng = np.random.default_rng(seed)
    # Likelihood ratios within e^{±ε}, plus mass δ that gives itself away.
    q = rng.dirichlet(np.full(6, 0.3))
    p = q * np.exp(rng.uniform(0, epsilon, 6))
    p /= p.sum()
    assert np.max(np.abs(np.log(p / q, where=q > 0, out=np.zeros(6)))) <= epsilon + 1e-9
    p, q = np.r_[(1 - delta) * p, delta, 0], np.r_[(1 - delta) * q, 0, delta]
    assert _hockey_stick(p, q, at) <= ApproxDP(epsilon, delta).delta_at(at) + 1e-9


@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_profile_agrees_with_dp_accounting(delta):
    parameters = common.DifferentialPrivacyParameters(1.5, delta)
    reference = pld.from_privacy_parameters(parameters, value_discretization_interval=1e-2)
    at = np.array([0.0, 0.3, 1.2, 1.5, 2.0])
    expected = [reference.get_delta_for_epsilon(float(epsilon)) for epsilon in at]
    np.testing.assert_allclose(ApproxDP(1.5, delta).delta_at(at), expected, atol=1e-9)


@given(EPSILON, PROBABILITY, PROBABILITY)
def test_epsilon_at_is_the_smallest_that_the_profile_allows(epsilon, delta, target):
    guarantee = ApproxDP(epsilon, delta)
    found = guarantee.epsilon_at(target)
    if target < delta:
        assert found == math.inf
    else:
        assert guarantee.delta_at(found) <= target + 1e-12
        if found > 0:
            assert guarantee.delta_at(max(found - 1e-3, 0)) > target - 1e-12


def _exact_delta(epsilon, delta, at):
    epsilon, delta, at = map(mpmath.mpf, (epsilon, delta, at))
    if at >= epsilon:
        return delta
    gap = mpmath.exp(at) * mpmath.expm1(epsilon - at) / (1 + mpmath.exp(epsilon))
    return delta + (1 - delta) * gap


@given(EPSILON, PROBABILITY, st.floats(0, 1), st.floats(0, 30))
def test_profile_is_rounded_up_and_tight(epsilon, delta, share, below):
    for at in (epsilon * share, max(epsilon - below, 0.0), math.nextafter(epsilon, 0.0)):
        found = ApproxDP(epsilon, delta).delta_at(at)
        with mpmath.workdps(400):
            exact = _exact_delta(epsilon, delta, at)
            room = 1e-14 * exact + 2.0**-51 * epsilon + math.ulp(0.0)
            assert exact <= found <= min(exact + room, 1)


@given(EPSILON, st.floats(0, 1, exclude_max=True), st.floats(0, 1))
def test_inverse_of_the_profile_is_rounded_up(epsilon, delta, target):
    found = ApproxDP(epsilon, delta).epsilon_at(target)
    if found < math.inf:
        with mpmath.workdps(400):
            assert _exact_delta(epsilon, delta, found) <= target


@given(EPSILON, EPSILON, PROBABILITY)
def test_pure_is_approximate_without_failure(epsilon, at, target):
    pure, approximate = PureDP(epsilon), ApproxDP(epsilon, 0.0)
    assert pure.delta_at(at) == approximate.delta_at(at)
    assert pure.epsilon_at(target) == approximate.epsilon_at(target)


@pytest.mark.parametrize(
    ("guarantee", "at", "delta"),
    [
        (PureDP(1e-12), 0.0, 5e-13),
        (PureDP(1000.0), 999.0, -math.expm1(-1)),
        (PureDP(math.inf), 5.0, 1.0),
        (PureDP(math.inf), math.inf, 0.0),
        (ApproxDP(math.inf, 0.1), 5.0, 1.0),
        (ApproxDP(1.0, 1.0), 0.0, 1.0),
    ],
)
def test_profile_at_the_edges(guarantee, at, delta):
    assert guarantee.delta_at(at) == pytest.approx(delta, rel=1e-14)


@pytest.mark.parametrize(
    ("guarantee", "at", "epsilon"),
    [
        (PureDP(2.0), 0.0, 2.0),
        (PureDP(math.inf), 0.5, math.inf),
        (PureDP(math.inf), 1.0, 0.0),
        (ApproxDP(1.0, 1.0), 1.0, 0.0),
        (ApproxDP(2.0, 0.1), 0.1, 2.0),
    ],
)
def test_inverse_at_the_edges(guarantee, at, epsilon):
    assert guarantee.epsilon_at(at) == epsilon


def test_gdp_speaks_for_its_curve():
    guarantee = GDP(2)
    grid = np.array([0.0, 1.0, 5.0])
    np.testing.assert_array_equal(guarantee.delta(grid), gdp_delta(2.0, grid))
    assert guarantee.epsilon(1e-6) == gdp_epsilon(2.0, 1e-6)
    assert guarantee.rho == 2.0


@pytest.mark.parametrize(
    ("guarantee", "text"),
    [
        (GDP(1), "1-GDP"),
        (GDP(math.inf), "inf-GDP"),
        (PureDP(0.5), "0.5-DP"),
        (ApproxDP(1, 1e-5), "(1, 1e-05)-DP"),
    ],
)
def test_prints_as_the_field_writes_it(guarantee, text):
    assert str(guarantee) == text


def test_is_a_frozen_value():
    guarantee = ApproxDP(np.float32(1), 0)
    assert type(guarantee.epsilon) is float
    assert len({guarantee, ApproxDP(1.0, 0.0)}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        guarantee.delta = 0.5


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (GDP, "mu"),
        (PureDP, "epsilon"),
        (lambda value: ApproxDP(value, 0.1), "epsilon"),
        (lambda value: ApproxDP(1.0, value), "delta"),
    ],
)
@pytest.mark.parametrize(
    ("value", "error"),
    [(-1.0, ValueError), (math.nan, ValueError), (True, TypeError), ("1", TypeError)],
)
def test_refuses_bad_parameters_by_name(make, name, value, error):
    with pytest.raises(error, match=f"^{name} must .*, got {value!r}"):
        make(value)


def test_delta_must_be_a_probability():
    with pytest.raises(ValueError, match=r"delta must lie between 0 and 1, got 1\.5"):
        ApproxDP(1.0, 1.5)
