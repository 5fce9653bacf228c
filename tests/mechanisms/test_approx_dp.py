"""Gaussian noise calibrated to one (ε, δ) point: the analytic and the classical scale."""

from __future__ import annotations

from math import exp, inf, log, sqrt

import numpy as np
import pytest
from dp_accounting.gaussian_mechanism import get_sigma_gaussian
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from skdpfrechet.manifolds import Euclidean, Hyperbolic, SPDAffineInvariant, SPDLogEuclidean, Sphere
from skdpfrechet.mechanisms import (
    Gaussian,
    ProjectedGaussian,
    RiemannianGaussian,
    SymmetricGaussian,
    WrappedGaussian,
)
from skdpfrechet.privacy import GDP, ApproxDP, PureDP, gdp_delta, gdp_mu
from skdpfrechet.sensitivity import sphere_chord

SPACE = SPDLogEuclidean(3)
DELTA = 0.3  # the sensitivity; the δ of a guarantee is written delta
ANALYTIC = {
    "vector": lambda g: Gaussian.calibrate(DELTA, g),
    "matrix": lambda g: SymmetricGaussian.calibrate(DELTA, g),
    "tangent": lambda g: WrappedGaussian.calibrate(SPACE, DELTA, g),
    "wrapped": lambda g: WrappedGaussian.calibrate(SPDAffineInvariant(2), DELTA, g),
    "riemannian": lambda g: RiemannianGaussian.calibrate(Sphere(2), DELTA, g),
    "projected": lambda g: ProjectedGaussian.calibrate(Sphere(2), DELTA, g),
}
POINTS = [(0.0, 0.1), (0.1, 1e-6), (1.0, 1e-5), (4.0, 1e-9), (20.0, 0.3)]


def is_one_sentence(error):
    text = str(error.value)
    return text.endswith(".") and ". " not in text and "\n" not in text


# --- analytic ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ANALYTIC)
@pytest.mark.parametrize(("epsilon", "delta"), POINTS)
def test_the_curve_passes_through_the_point(name, epsilon, delta):
    mechanism = ANALYTIC[name](ApproxDP(epsilon, delta))
    guarantee = mechanism.guarantee(DELTA)
    assert isinstance(guarantee, GDP)
    assert guarantee.delta(epsilon) <= delta * (1 + 1e-11)
    assert_allclose(guarantee.delta(epsilon), delta, rtol=1e-9)
    assert guarantee.mu <= gdp_mu(epsilon, delta)
    assert_allclose(guarantee.mu, gdp_mu(epsilon, delta), rtol=1e-14)


@pytest.mark.parametrize("name", ANALYTIC)
def test_a_point_is_the_gdp_through_it(name):
    by_point = ANALYTIC[name](ApproxDP(1.0, 1e-5))
    assert by_point.sigma == ANALYTIC[name](GDP(gdp_mu(1.0, 1e-5))).sigma


@pytest.mark.parametrize(("epsilon", "delta"), POINTS[1:4])
def test_the_scale_is_that_of_balle_and_wang(epsilon, delta):
    # Another implementation of their algorithm, tight to a relative tolerance of its own.
    other = DELTA * get_sigma_gaussian(epsilon, delta)
    for mechanism in (ANALYTIC["vector"], ANALYTIC["tangent"]):
        assert_allclose(mechanism(ApproxDP(epsilon, delta)).sigma, other, rtol=1e-6)
    chord = sphere_chord(DELTA)
    sigma = ANALYTIC["projected"](ApproxDP(epsilon, delta)).sigma
    assert_allclose(sigma, chord / DELTA * other, rtol=1e-6)


def test_the_scale_satisfies_the_condition_of_balle_and_wang():
    # Φ(Δ/2σ - εσ/Δ) - e^ε Φ(-Δ/2σ - εσ/Δ) = δ, their equation (6).
    epsilon, delta = 0.5, 1e-4
    ratio = WrappedGaussian.calibrate(SPACE, DELTA, ApproxDP(epsilon, delta)).sigma / DELTA
    seen = norm.cdf(1 / (2 * ratio) - epsilon * ratio)
    seen -= exp(epsilon) * norm.cdf(-1 / (2 * ratio) - epsilon * ratio)
    assert_allclose(seen, delta, rtol=1e-9)


@pytest.mark.parametrize("name", ANALYTIC)
def test_points_without_finite_noise(name):
    with pytest.raises(ValueError, match=r"guarantee must have delta > 0.* got 0\.0") as caught:
        ANALYTIC[name](ApproxDP(1.0, 0.0))
    assert is_one_sentence(caught)
    for nothing in (ApproxDP(inf, 1e-5), ApproxDP(1.0, 1.0)):
        assert ANALYTIC[name](nothing).sigma == 0
    with pytest.raises(TypeError, match="got PureDP") as caught:
        ANALYTIC[name](PureDP(1.0))
    assert is_one_sentence(caught)


# --- classical -----------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(
    epsilon=st.floats(1e-3, 1),
    exponent=st.floats(-15, 0),
    sensitivity=st.floats(1e-6, 1e3),
)
def test_the_classical_scale_is_sufficient_and_never_smaller(epsilon, exponent, sensitivity):
    guarantee = ApproxDP(epsilon, 10.0**exponent)
    classical = WrappedGaussian.calibrate_classical(SPACE, sensitivity, guarantee)
    formula = sensitivity * sqrt(2 * log(1.25 / guarantee.delta)) / epsilon
    assert_allclose(classical.sigma, formula, rtol=1e-14)
    assert classical.guarantee(sensitivity).delta(epsilon) <= guarantee.delta
    assert classical.sigma >= WrappedGaussian.calibrate(SPACE, sensitivity, guarantee).sigma


def test_the_classical_scale_is_false_for_large_epsilon():
    # Why it is refused beyond 1: at ε = 9 the scale for δ = 1e-5 gives 1.36e-5.
    mu = 9 / sqrt(2 * log(1.25e5))
    assert_allclose(gdp_delta(mu, 9.0), 1.3588e-5, rtol=1e-4)


def test_the_classical_scale_is_refused_where_it_is_not_a_theorem():
    calibrate = WrappedGaussian.calibrate_classical
    for epsilon in (0.0, np.nextafter(1.0, 2.0), 9.0, inf):
        with pytest.raises(ValueError, match=r"0 < epsilon ≤ 1.*calibrate has no") as caught:
            calibrate(SPACE, DELTA, ApproxDP(epsilon, 1e-5))
        assert is_one_sentence(caught)
    with pytest.raises(ValueError, match=r"delta > 0, got 0\.0"):
        calibrate(SPACE, DELTA, ApproxDP(0.5, 0.0))
    for other in (GDP(1.0), PureDP(1.0), 1.0, None):
        with pytest.raises(TypeError, match="must be an ApproxDP") as caught:
            calibrate(SPACE, DELTA, other)
        assert is_one_sentence(caught)
    with pytest.raises(ValueError, match="wrapped-gaussian' requires"):
        calibrate(Sphere(2), DELTA, ApproxDP(0.5, 1e-5))
    with pytest.raises(ValueError, match="sensitivity must be finite"):
        calibrate(SPACE, inf, ApproxDP(0.5, 1e-5))


def test_the_classical_foot():
    point = ApproxDP(0.5, 1e-5)
    for space in (Euclidean(2), Hyperbolic(2), SPACE):
        assert_array_equal(
            WrappedGaussian.calibrate_classical(space, DELTA, point).foot, space.origin
        )
    foot = 2 * np.eye(3)
    assert_array_equal(WrappedGaussian.calibrate_classical(SPACE, DELTA, point, foot).foot, foot)
    assert WrappedGaussian.calibrate_classical(SPACE, 0.0, point).sigma == 0
