import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given
from hypothesis import strategies as st

from skdpfrechet.privacy import GDP, ApproxDP, PureDP, compose

SIZE = st.floats(0, 1e200)
MUS = st.lists(SIZE, min_size=1, max_size=5)


@given(MUS)
def test_gdp_never_underreports_and_is_the_next_float(mus):
    total = compose(*map(GDP, mus)).mu
    square = sum(Fraction(mu) ** 2 for mu in mus)
    assert Fraction(total) ** 2 >= square
    assert total == 0 or Fraction(math.nextafter(total, 0)) ** 2 < square


@pytest.mark.parametrize("ulps", [-3, -1, 1, 3])
@pytest.mark.parametrize("mus", [[0.6, 0.8], [3.0, 4.0], [0.1, 0.2, 0.3], [1e-300], [1e-5, 7.0]])
def test_gdp_rounds_up_whatever_the_library_makes_of_the_root(monkeypatch, mus, ulps):
    right, hypot = compose(*map(GDP, mus)), math.hypot
    monkeypatch.setattr(math, "hypot", lambda *x: hypot(*x) + ulps * math.ulp(hypot(*x)))
    assert compose(*map(GDP, mus)) == right


@given(MUS)
def test_pure_never_underreports_and_is_the_next_float(epsilons):
    total = compose(*map(PureDP, epsilons)).epsilon
    exact = sum(map(Fraction, epsilons))
    assert Fraction(total) >= exact
    assert total == 0 or Fraction(math.nextafter(total, 0)) < exact


@given(st.permutations([GDP(0.1), GDP(0.7), PureDP(0.3), GDP(1e-9), PureDP(2.0)]))
def test_order_does_not_matter(guarantees):
    assert compose(*guarantees) == compose(*sorted(guarantees, key=str))


@given(SIZE, SIZE, SIZE)
def test_is_associative(first, second, third):
    a, b, c = GDP(first), GDP(second), GDP(third)
    left = compose(compose(a, b), c).mu
    assert compose(a, compose(b, c)).mu == pytest.approx(left, rel=1e-15, abs=1e-300)


@pytest.mark.parametrize("guarantee", [GDP(0.1), PureDP(0.1), ApproxDP(0.1, 0.3)])
def test_one_guarantee_is_itself(guarantee):
    assert compose(guarantee) == guarantee


def test_agrees_with_composed_privacy_loss_distributions():
    first = pld.from_gaussian_mechanism(1 / 0.8, value_discretization_interval=1e-3)
    second = pld.from_gaussian_mechanism(1 / 0.5, value_discretization_interval=1e-3)
    reference = first.compose(second)
    total = compose(GDP(0.8), GDP(0.5))
    for epsilon in (0.0, 0.5, 2.0, 4.0):
        # The reference is pessimistic, by at most the discretisation.
        exact = total.delta(epsilon)
        assert exact - 1e-9 <= reference.get_delta_for_epsilon(epsilon) <= exact + 1e-3


def test_basic_composition():
    total = compose(ApproxDP(0.5, 1e-6), PureDP(1.0), ApproxDP(0.25, 2e-6))
    assert total == ApproxDP(1.75, math.fsum([1e-6, 2e-6]))
    assert compose(ApproxDP(1.0, 0.7), ApproxDP(1.0, 0.7)) == ApproxDP(2.0, 1.0)


@given(st.floats(1e-12, 1e4))
def test_pure_enters_gdp_at_the_crossing_of_the_trade_off_curves(epsilon):
    mu = compose(GDP(0.0), PureDP(epsilon)).mu
    with mpmath.workdps(50):
        crossing = 1 / (1 + mpmath.exp(epsilon))

        def type_one_error(scale):  # Φ(−μ/2)
            return mpmath.erfc(mpmath.mpf(mu) * scale / mpmath.sqrt(8)) / 2

        assert type_one_error(1) <= crossing < type_one_error(1 - mpmath.mpf("2e-13"))


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
def test_gaussian_curve_of_pure_dominates_its_profile(epsilon):
    grid = np.linspace(0, 1.2 * epsilon, 200)
    gaussian = compose(GDP(0.0), PureDP(epsilon)).delta(grid)
    pure = PureDP(epsilon).delta_at(grid)
    assert np.all(gaussian >= pure * (1 - 1e-15))
    assert gaussian[0] == pytest.approx(pure[0], rel=1e-12)


def test_mixed_gaussian_and_laplace_is_covered():
    gaussian = pld.from_gaussian_mechanism(1 / 0.8, value_discretization_interval=1e-3)
    laplace = pld.from_laplace_mechanism(2.0, value_discretization_interval=1e-3)
    reference = gaussian.compose(laplace)
    total = compose(GDP(0.8), PureDP(0.5))
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        assert reference.get_delta_for_epsilon(epsilon) <= total.delta(epsilon)


@pytest.mark.parametrize(
    ("guarantees", "total"),
    [
        ((GDP(math.inf), GDP(1.0)), GDP(math.inf)),
        ((GDP(1e300), GDP(1.7e308), GDP(1.7e308)), GDP(math.inf)),
        ((GDP(1.0), PureDP(math.inf)), GDP(math.inf)),
        ((PureDP(1.7e308), PureDP(1.7e308)), PureDP(math.inf)),
        ((PureDP(math.inf), ApproxDP(1.0, 0.0)), ApproxDP(math.inf, 0.0)),
    ],
)
def test_infinite_totals(guarantees, total):
    assert compose(*guarantees) == total


def test_a_point_is_never_upgraded_to_a_curve():
    for guarantees in itertools.permutations([GDP(1.0), PureDP(1.0), ApproxDP(1.0, 1e-5)]):
        with pytest.raises(ValueError, match=r"mix GDP with ApproxDP, got 1-GDP and \(1, 1e-05\)"):
            compose(*guarantees)


def test_refuses_nothing_and_strangers():
    with pytest.raises(ValueError, match="at least one guarantee, got none"):
        compose()
    with pytest.raises(TypeError, match="guarantees must be GDP, PureDP or ApproxDP, got float"):
        compose(GDP(1.0), 1.0)
