"""Releases that float64 can hold: badly scaled centres, and noise far beyond the ball."""

import numpy as np
import pytest

from skdpfrechet import DPFrechetMean, DPFrechetVariance, DPPrincipalGeodesics
from skdpfrechet.manifolds import SPDAffineInvariant, SPDLogCholesky

TURN = np.array([[1, 1], [-1, 1]]) / np.sqrt(2)
SKEWED = (TURN * [1e6, 1.0]) @ TURN.T
CASES = {
    "tiny units": ("logchol", SPDLogCholesky(3), 1e-12 * np.eye(3), 1.0, 1.0, 30),
    "much noise": ("logchol", SPDLogCholesky(4), np.eye(4), 4.0, 0.01, 5),
    "condition 1e6": ("spd", SPDAffineInvariant(2), (SKEWED + SKEWED.T) / 2, 0.5, 0.01, 12),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("estimator", [DPFrechetMean, DPFrechetVariance, DPPrincipalGeodesics])
def test_whatever_the_noise_what_is_released_can_be_used(name, estimator):
    manifold, space, center, radius, mu, n = CASES[name]
    X = np.stack([center] * n)
    for seed in range(40):
        fit = estimator(manifold, radius=radius, center=center, mu=mu, random_state=seed).fit(X)
        assert space.contains(fit.mean_)
        assert np.isfinite(fit.transform(X)).all()
        if estimator is DPFrechetMean:
            assert np.isfinite(fit.covariance_).all()
