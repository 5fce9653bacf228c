"""From released moments to covariance and critical value."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import chi2

from skdpfrechet._numerics import unvecd
from skdpfrechet.inference import MeanInference, MeanRelease
from skdpfrechet.inference._covariance import error_carrier, repair_moment
from skdpfrechet.inference._mean import BOOTSTRAP_MAX_DIM
from skdpfrechet.manifolds import Euclidean, SPDAffineInvariant
from skdpfrechet.privacy import GDP


def make(space, *, moment, moment_scale=0.0, scale=0.0, n=100, bootstrap=True, point=None, **more):
    point = space.origin if point is None else point
    release = MeanRelease(space, point, space.origin, scale, "wrapped-gaussian", GDP(1.0))
    parameters = {
        "manifold": space,
        "model": space,
        "origin": space.origin,
        "point": point,
        "release": release,
        "n": n,
        "moment": moment,
        "moment_scale": moment_scale,
        "moment_range": (moment_scale, np.inf),
        "reach": 2.0,
        "radius": 2.0,
        "confidence_level": 0.95,
        "noise_scale": scale,
        "in_chart": False,
        "bootstrap": bootstrap,
    }
    return MeanInference(**{**parameters, **more})


def test_flat_covariance_is_the_textbook_one():
    moment = np.array([[2.0, 0.5], [0.5, 1.0]])
    region = make(Euclidean(2), moment=moment, scale=0.1, n=50).region
    np.testing.assert_allclose(region.covariance, moment / 50 + 0.01 * np.eye(2))
    assert region.critical_value == pytest.approx(chi2.ppf(0.95, 2))


def test_few_records_widen_the_region():
    few, many = (make(Euclidean(3), moment=np.eye(3), moment_scale=1e-3, n=n) for n in (8, 10_000))
    # Hotelling: d n/(n - d) F_{d, n-d}(.95) = 25.97 for n = 8, d = 3, against 7.81.
    assert few.region.critical_value == pytest.approx(25.97, rel=0.15)
    assert many.region.critical_value == pytest.approx(7.81, rel=0.02)


def test_noise_in_the_moment_widens_the_region():
    noisy = make(Euclidean(3), moment=np.eye(3), moment_scale=0.3).region
    exact = make(Euclidean(3), moment=np.eye(3)).region
    assert noisy.critical_value > 1.1 * exact.critical_value


def test_critical_value_gives_the_level_in_the_model_that_it_simulates():
    """Fresh draws from the bootstrap's own law: 40,000 of them, so a standard error of .0011.

    The critical value itself comes from 2,000 paired draws, standard error .003 in the level: 6
    joint standard errors are .02.
    """
    space, moment, sigma_m, n = Euclidean(2), np.diag([1.0, 0.4]), 0.1, 12
    inference = make(space, moment=moment, moment_scale=sigma_m, scale=0.05, n=n)
    c = inference.region.critical_value
    rng = np.random.default_rng(1)
    draws = 40_000
    error = rng.standard_normal((draws, 2)) * np.sqrt(np.diag(moment) / n + 0.05**2)
    noise = rng.standard_normal((draws, 2, 2))
    noise = sigma_m * (noise + noise.swapaxes(1, 2)) / 2
    noise[:, [0, 1], [0, 1]] = sigma_m * rng.standard_normal((draws, 2))
    records = rng.standard_normal((draws, n, 2)) * np.sqrt(np.diag(moment))
    records -= records.mean(axis=1, keepdims=True)
    w, q = np.linalg.eigh(records.swapaxes(1, 2) @ records / n + noise)
    # The two eigenvalues approach their average; the noise has two coordinates besides the trace.
    average, half = w.mean(axis=1, keepdims=True), (w[:, 1:] - w[:, :1]) / 2
    w = average + (w - average) * np.maximum(0.0, 1 - sigma_m**2 / half**2)
    shaken = (q * np.maximum(w, sigma_m)[:, None]) @ q.swapaxes(1, 2)
    covariance = shaken / n + 0.05**2 * np.eye(2)
    statistic = (error * np.linalg.solve(covariance, error[..., None])[..., 0]).sum(axis=1)
    # Off-diagonal noise of the isometric mechanism has variance σ²/2, that of (a + b)/2.
    assert np.mean(statistic <= c) == pytest.approx(0.95, abs=0.02)


def repaired(moment, scale, floor=0.0):
    return repair_moment(moment, scale, (floor, np.inf))


def test_repair_leaves_a_moment_without_noise_alone():
    moment = np.diag([3.0, 1.0, 0.1])
    np.testing.assert_allclose(repaired(moment, 0.0), moment, rtol=1e-14, atol=1e-15)
    assert_array_equal(repaired(np.eye(3), 0.0), np.eye(3))


def test_repair_keeps_the_trace_and_the_axes():
    q = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    found = q.T @ repaired(q @ np.diag([3.0, 1.0, 0.5]) @ q.T, 0.4) @ q
    np.testing.assert_allclose(found, np.diag(np.diag(found)), atol=1e-14)
    assert np.trace(found) == pytest.approx(4.5)
    assert 0.5 < found[2, 2] < found[1, 1] < 1.5 < found[0, 0] < 3


def test_noise_that_explains_everything_leaves_a_multiple_of_the_identity():
    np.testing.assert_allclose(repaired(np.diag([1.1, 1.0, 0.9]), 1.0), np.eye(3), rtol=1e-14)


def test_repair_comes_nearer_to_a_round_moment_than_the_release():
    """The noise of 54 of 55 coordinates goes: the error left is a few noises of the trace."""
    rng, dim, scale = np.random.default_rng(2), 10, 0.3
    noise = scale * unvecd(rng.standard_normal((500, dim * (dim + 1) // 2)))
    error = ((repaired(np.eye(dim) + noise, scale, -np.inf) - np.eye(dim)) ** 2).sum(axis=(1, 2))
    # Expectation of the raw error: 55 σ². That of the repaired one is at most twice the trace's σ²
    # plus what is left of a chi-squared variable with 54 degrees of freedom beyond 54: 4.2 σ².
    assert error.mean() < 10 * scale**2 < (noise**2).sum(axis=(1, 2)).mean() / 5


def test_repair_clips_to_the_range():
    found = repair_moment(np.diag([3.0, -1.0]), 0.1, (0.1, 2.0))
    np.testing.assert_allclose(np.linalg.eigvalsh(found), [0.1, 2.0], rtol=1e-12)


@pytest.mark.parametrize("tie", [1.0, 1.0 + 1e-9])
def test_critical_value_is_continuous_where_eigenvalues_tie(tie):
    inference = make(Euclidean(2), moment=np.diag([1.0, tie]), moment_scale=0.2, scale=0.1)
    assert inference.region.critical_value == pytest.approx(
        make(Euclidean(2), moment=np.eye(2), moment_scale=0.2, scale=0.1).region.critical_value,
        rel=1e-7,
    )


def test_one_exact_record_says_nothing_about_the_spread():
    region = make(Euclidean(2), moment=np.zeros((2, 2)), n=1, hessian=2 * np.eye(2)).region
    assert region.critical_value == np.inf
    assert region.contains([[1e6, 0.0]]).all()


def test_region_is_reproducible():
    space = SPDAffineInvariant(2)
    a, b = (make(space, moment=np.eye(3), moment_scale=0.2, scale=0.1).region for _ in range(2))
    assert a.critical_value == b.critical_value


def test_large_dimensions_take_the_chi_squared_quantile():
    dim = BOOTSTRAP_MAX_DIM + 1
    region = make(Euclidean(dim), moment=np.eye(dim), moment_scale=0.5).region
    assert region.critical_value == pytest.approx(chi2.ppf(0.95, dim))


def test_chart_covariance_undoes_the_jacobian():
    """In the chart the sampling error is L⁻¹ times that in the frame at the mean."""
    space = SPDAffineInvariant(2)
    point = space.exp_coords(space.origin, np.array([0.8, -0.3, -1.1]))
    moment = np.diag([1.0, 0.5, 0.3])
    chart = make(space, moment=moment, point=point, in_chart=True).region
    normal = make(space, moment=moment, point=point).region
    np.testing.assert_allclose(
        chart.covariance_at_center, normal.covariance, rtol=1e-10, atol=1e-15
    )


def test_regions_survive_a_ball_beyond_all_measure():
    """Rounding of the Hessian's largest eigenvalue, 1e20, exceeds its smallest, 2."""
    space = SPDAffineInvariant(2)
    moment = 1e36 * np.array([[-0.4, 3.7, -1.4], [3.7, 5.2, 1.6], [-1.4, 1.6, -4.9]])
    inference = make(
        space, moment=moment, moment_scale=5e36, scale=2e17, reach=1e19, radius=1e19, in_chart=True
    )
    assert inference.region.contains(space.origin)
    assert (inference.region.eigenvalues > 0).all()
    assert_array_equal(error_carrier(np.zeros((1, 1)) + 4.0, 16), [[0.125]])
    singular = np.diag([1e20, 0.0])
    np.testing.assert_allclose(error_carrier(singular, 4), np.diag([1e-20, 1 / (2.0**-52 * 1e20)]))
