"""From released moments of the squared distances to an interval."""

import numpy as np
import pytest
from scipy.stats import norm

from skdpfrechet.inference import noise_bias, squared_distance_spread, variance_interval
from skdpfrechet.manifolds import Euclidean, SPDAffineInvariant, Sphere
from skdpfrechet.mechanisms import RiemannianGaussian, WrappedGaussian


def test_noise_bias_near_the_centre_is_that_of_a_chi_squared():
    """ρ² = σ² χ²_d in flat space: mean dσ², variance 2dσ⁴; 2,000 draws, 6 standard errors."""
    space, sigma, dim = Euclidean(6), 0.1, 6
    mechanism = WrappedGaussian(space, space.origin, sigma)
    bias, spread = noise_bias(space, space.origin, 10.0, mechanism, space.origin)
    assert bias == pytest.approx(dim * sigma**2, abs=6 * np.sqrt(2 * dim / 2000) * sigma**2)
    assert spread == pytest.approx(2 * dim * sigma**4, rel=0.3)


def test_noise_bias_on_a_sphere_against_quadrature():
    space, sigma = Sphere(2), 0.4
    pole = np.array([0.0, 0.0, 1.0])
    s = np.linspace(0, np.pi, 20001)
    density = np.exp(-(s**2) / (2 * sigma**2)) * np.sin(s)
    density /= density.sum()
    mean = (density * s**2).sum()
    deviation = np.sqrt((density * s**4).sum() - mean**2)
    bias, _ = noise_bias(space, pole, 3.1, RiemannianGaussian(space, sigma), pole)
    assert bias == pytest.approx(mean, abs=6 * deviation / np.sqrt(2000))


def test_noise_bias_is_bounded_by_the_ball():
    space = SPDAffineInvariant(2)
    mechanism = WrappedGaussian(space, space.origin, 50.0)
    bias, _ = noise_bias(space, space.origin, 1.5, mechanism, space.origin)
    assert bias <= 1.5**2


def test_spread_of_exact_moments_is_the_variance():
    y = np.random.default_rng(0).uniform(0, 4, 1000)
    spread = squared_distance_spread(y.mean(), ((y - 2) ** 2).mean(), 0.0, 0.0, 4.0)
    assert spread == pytest.approx(y.var())


@pytest.mark.parametrize("mean", [-1.0, 0.0, 1.0, 3.0, 4.0, 9.0])
@pytest.mark.parametrize("second", [-10.0, 0.0, 1.0, 50.0])
def test_spread_stays_possible_and_above_its_own_noise(mean, second):
    spread = squared_distance_spread(mean, second, 0.1, 0.0, 4.0)
    inside = min(max(mean, 0.0), 4.0)
    inside += 0.1 if inside < 2 else -0.1  # one noise scale towards the middle
    # The second moment has noise .1 · 2/1.665, and m² adds 2 |m - 2| .1 to it.
    noise = 0.1 * np.hypot(2 / 1.6650957, 2 * (min(max(mean, 0.0), 4.0) - 2))
    assert min(noise, inside * (4 - inside)) <= spread + 1e-6
    assert spread <= inside * (4 - inside)


def test_interval_is_normal_and_clipped():
    low, high = variance_interval(1.0, 0.2, 0.9, high=4.0)
    z = norm.ppf(0.95)
    assert (low, high) == pytest.approx((1 - 0.2 * z, 1 + 0.2 * z))
    assert variance_interval(0.1, 1.0, 0.95, high=1.5) == (0.0, 1.5)


@pytest.mark.parametrize("center", [-5.0, 9.0])
def test_interval_outside_the_possible_range_becomes_the_range(center):
    assert variance_interval(center, 0.5, 0.95, high=4.0) == (0.0, 4.0)


def test_interval_of_few_records_is_students():
    low, high = variance_interval(1.0, 0.1, 0.95, high=9.0, freedom=4)
    assert high - low == pytest.approx(2 * 0.1 * 2.776445)  # t_{.975} with 4 degrees of freedom


def test_interval_of_one_record_is_the_range_whatever_the_level():
    assert variance_interval(1.0, np.inf, 1e-300, high=4.0) == (0.0, 4.0)
