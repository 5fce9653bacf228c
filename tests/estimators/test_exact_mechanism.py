"""`mechanism="riemannian-gaussian-exact"`: the same guarantee and law with less noise."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skdpfrechet import DPFrechetMean, DPFrechetVariance
from skdpfrechet.manifolds import Sphere
from skdpfrechet.privacy.exact import sphere_mu, sphere_sigma

PLAIN, EXACT = "riemannian-gaussian", "riemannian-gaussian-exact"


def fit(estimator_class, mechanism, dim=5, n=20, **parameters):
    sphere = Sphere(dim)
    center = np.eye(dim + 1)[0]
    rng = np.random.default_rng(1)
    X = sphere.exp_coords(center, rng.normal(scale=0.1, size=(n, dim)))
    public = {"radius": 0.5, "center": center, "mu": 0.5, "random_state": 3}
    return estimator_class("sphere", mechanism=mechanism, **{**public, **parameters}).fit(X)


@pytest.mark.parametrize("calibration", ["sharp", "paper"])
@pytest.mark.parametrize("estimator_class", [DPFrechetMean, DPFrechetVariance])
def test_the_report_names_the_mechanism_and_its_smaller_scale(estimator_class, calibration):
    plain = fit(estimator_class, PLAIN, calibration=calibration).privacy_
    exact = fit(estimator_class, EXACT, calibration=calibration).privacy_
    assert exact.guarantee == plain.guarantee
    before, after = plain.releases[0], exact.releases[0]
    assert (after.statistic, after.mechanism) == ("mean", EXACT)
    assert (after.mu, after.sensitivity) == (before.mu, before.sensitivity)
    assert after.noise_scale < 0.995 * before.noise_scale
    assert after.noise_scale == sphere_sigma(after.mu, dim=5, distance=after.sensitivity)
    spent = sphere_mu(dim=5, distance=after.sensitivity, sigma=after.noise_scale)
    assert after.mu * (1 - 1e-10) <= spent <= after.mu
    assert EXACT in str(exact)


def test_inference_uses_the_smaller_scale():
    # The covariance of the mean is σ² I plus a sampling part.
    mean = fit(DPFrechetMean, EXACT, n=30, radius=1.2, mu=0.5)
    scale = mean.privacy_.releases[0].noise_scale
    assert mean.release_.scale == scale
    noise = np.linalg.eigvalsh(mean.covariance_)
    plain = fit(DPFrechetMean, PLAIN, n=30, radius=1.2, mu=0.5)
    assert (noise >= scale**2).all()
    assert noise.sum() < np.trace(plain.covariance_)


def test_a_reused_release_is_rebuilt_with_its_scale():
    mean = fit(DPFrechetMean, EXACT)
    reused = fit(DPFrechetVariance, "auto", mean=mean.release_)
    assert reused.release_.mean.scale == mean.release_.scale
    assert reused.interval_.low <= reused.variance_ <= reused.interval_.high


def test_without_privacy_it_is_the_exact_mean():
    plain, exact = (fit(DPFrechetMean, name, mu=np.inf) for name in (PLAIN, EXACT))
    assert_array_equal(plain.mean_, exact.mean_)


def test_on_flat_spaces_it_is_the_plain_mechanism():
    X = np.random.default_rng(0).normal(scale=0.1, size=(30, 3))
    plain, exact = (
        DPFrechetMean("euclidean", radius=0.5, mechanism=name, random_state=0).fit(X)
        for name in (PLAIN, EXACT)
    )
    assert_array_equal(plain.mean_, exact.mean_)
    assert_allclose(plain.covariance_, exact.covariance_, rtol=0)


def test_refused_where_no_theorem_covers_it():
    X = np.tile(np.eye(2), (5, 1, 1))
    with pytest.raises(ValueError, match="requires a homogeneous space of curvature"):
        DPFrechetMean("spd", radius=1.0, mechanism=EXACT, random_state=0).fit(X)
