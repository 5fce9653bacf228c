"""Cases on which public software of this field fails, each with the right value.

Every estimator, with and without compiled kernels, and every warning is an error.
"""

from __future__ import annotations

from math import e, inf, pi, sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pyriemann.estimation import Covariances

from skdpfrechet import DPMDM, DPFrechetMean, DPFrechetVariance, DPPrincipalGeodesics
from skdpfrechet._kernels import kernels
from skdpfrechet.manifolds import SPDLogCholesky

ESTIMATORS = [DPFrechetMean, DPFrechetVariance, DPMDM, DPPrincipalGeodesics]
METRICS = ["spd", "logeuclid", "logchol"]
TRIALS = np.array([[[1, 4], [2, 5], [3, 6]], [[3, 4], [1, 2], [3, 6]]], dtype=float)
NORTH, EAST = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])


@pytest.fixture(params=["numpy", "numba"], autouse=True)
def kernel(request):
    with kernels(request.param):
        yield request.param


@pytest.fixture(params=ESTIMATORS)
def estimator_class(request):
    return request.param


@pytest.fixture(params=METRICS)
def metric(request):
    return request.param


def fit(estimator_class, manifold, X, **parameters):
    """Return the fitted estimator; a classifier gets the records twice, as two classes."""
    estimator = estimator_class(manifold, **{"radius": 1.0, "random_state": 0, **parameters})
    return refit(estimator, X)


def refit(estimator, X):
    if isinstance(estimator, DPMDM):
        return estimator.fit(np.concatenate([X, X]), np.repeat(["one", "two"], len(X)))
    return estimator.fit(X)


def means(fitted):
    """The released means, shape (k, *point_shape)."""
    return fitted.means_ if isinstance(fitted, DPMDM) else fitted.mean_[None]


def spd(n, p, seed=0, spread=0.3):
    """Matrices around the identity, exactly symmetric."""
    half = np.eye(p) + spread * np.random.default_rng(seed).normal(size=(n, p, p)) / sqrt(p)
    return half @ np.swapaxes(half, 1, 2)


# --- singular covariances ------------------------------------------------------------------------


@pytest.mark.parametrize("centred", [False, True], ids=["raw", "centred"])
def test_more_channels_than_samples(estimator_class, metric, centred):
    """Three channels, two samples: rank 2, or 1 when centred. A shrunk estimate is the way out."""
    x = TRIALS - TRIALS.mean(axis=2, keepdims=True) if centred else TRIALS
    with pytest.raises(ValueError, match=r"positive definite matrices; .*Covariances\('oas'\)"):
        fit(estimator_class, metric, x @ np.swapaxes(x, 1, 2) / 2)
    shrunk = Covariances("oas").transform(TRIALS)
    fitted = fit(estimator_class, metric, shrunk, radius=5.0, mu=inf)
    assert (np.linalg.eigvalsh(means(fitted)) > 0).all()


@pytest.mark.parametrize("unit", [1.0, 1e-6], ids=["V", "µV"])
@pytest.mark.parametrize("p", [2, 8, 19])
def test_average_reference(estimator_class, metric, p, unit):
    """Rank p - 1: rounding makes some of the matrices look positive definite, none may pass."""
    x = unit * np.random.default_rng(p).normal(size=(20, p, 256))
    x -= x.mean(axis=1, keepdims=True)
    cov = x @ np.swapaxes(x, 1, 2) / 256
    for record in cov[:6]:
        with pytest.raises(ValueError, match="positive definite"):
            fit(estimator_class, metric, record[None])
    with pytest.raises(ValueError, match="positive definite"):
        fit(estimator_class, metric, cov)
    dropped = cov[:, 1:, 1:] / unit**2  # without one channel the rank is full
    assert np.isfinite(means(fit(estimator_class, metric, dropped, radius=10.0))).all()


# --- shapes --------------------------------------------------------------------------------------


def test_refit_with_another_size(estimator_class, metric):
    """Nothing of the first fit survives."""
    estimator = refit(estimator_class(metric, radius=1.0, random_state=0), spd(20, 2))
    X = spd(20, 3)
    refit(estimator, X)
    fresh = fit(estimator_class, metric, X)
    assert estimator.n_features_in_ == 3
    assert_array_equal(means(estimator), means(fresh))
    assert_array_equal(estimator.center_, np.eye(3))
    assert_array_equal(estimator.transform(X), fresh.transform(X))
    with pytest.raises(ValueError, match=r"X has 2 features, but .* 3 "):
        estimator.transform(spd(20, 2))
    with pytest.raises(ValueError, match=r"center must have shape \(3, 3\)"):
        refit(estimator.set_params(center=np.eye(2)), X)


def test_one_by_one(estimator_class, metric):
    """p = 1 are positive numbers; their mean is the geometric one."""
    x = np.array([0.5, 1.0, 3.0, 4.0])
    fitted = fit(estimator_class, metric, x[:, None, None], radius=2.0, mu=inf)
    assert_allclose(means(fitted).ravel(), np.exp(np.log(x).mean()), rtol=1e-15)
    unit = 4 if metric == "logchol" else 1  # it measures the logarithm of the root
    spread = np.log(x).var() / unit
    if estimator_class is DPFrechetVariance:
        assert fitted.variance_ == pytest.approx(spread, rel=1e-14)
    if estimator_class is DPPrincipalGeodesics:
        assert_allclose(fitted.explained_variance_, [spread], rtol=1e-14)
        assert_array_equal(np.abs(fitted.components_), [[1.0]])
    private = fit(estimator_class, metric, x[:, None, None], radius=2.0)
    assert means(private).shape[1:] == (1, 1)
    assert (means(private) > 0).all()


# --- values --------------------------------------------------------------------------------------


def test_mean_of_two_diagonal_matrices(estimator_class, metric, kernel):
    """The mean of diag(e², 1) and the identity is diag(e, 1), both at distance 1 from it."""
    X = np.stack([np.diag([e**2, 1.0]), np.eye(2)])
    fitted = fit(estimator_class, metric, X, radius=3.0, mu=inf)
    # The compiled logarithm of a matrix is a rational function, right to 1e-13.
    rounding = 2e-13 if (kernel, metric) == ("numba", "logeuclid") else 2e-15
    assert_allclose(means(fitted) - np.diag([e, 1.0]), 0 * means(fitted), atol=rounding)
    square = 0.25 if metric == "logchol" else 1.0
    if estimator_class is DPFrechetVariance:
        assert fitted.variance_ == pytest.approx(square, rel=rounding)
    if estimator_class is DPPrincipalGeodesics:
        assert_allclose(fitted.explained_variance_, [square, 0, 0], rtol=0, atol=4e-13)
        assert_allclose(fitted.components_[0], [1, 0, 0], atol=1e-13)


@pytest.mark.parametrize("scale", [1e-5, 1e-12, 1e12])
@pytest.mark.parametrize("mu", [1.0, inf])
def test_symmetry_is_relative(estimator_class, metric, scale, mu):
    """Means of small matrices are exactly symmetric; small asymmetry is told from rounding."""
    X = scale * spd(30, 3)
    X *= 1 + 1e-15 * np.random.default_rng(1).normal(size=X.shape)  # as products come out
    fitted = fit(estimator_class, metric, X, center=scale * np.eye(3), mu=mu)
    assert_array_equal(means(fitted), np.swapaxes(means(fitted), 1, 2))
    assert_array_equal(fitted.center_, scale * np.eye(3))
    wrong = scale * spd(30, 3)
    wrong[0, 0, 1] += 1e-3 * scale
    with pytest.raises(ValueError, match="symmetric matrices"):
        fit(estimator_class, metric, wrong, center=scale * np.eye(3), mu=mu)


@pytest.mark.parametrize("mu", [1.0, inf])
def test_square_volts(estimator_class, metric, mu):
    """Covariances of 1e-12 V² with the centre in V² are those in µV², noise included."""
    X = spd(40, 3)
    volts = fit(estimator_class, metric, 1e-12 * X, center=1e-12 * np.eye(3), mu=mu)
    if metric == "logchol":  # the only metric that scaling does not preserve
        assert np.isfinite(means(volts)).all()
        if mu == inf:
            space = SPDLogCholesky(3)
            origin = space.chart(1e-12 * np.eye(3))
            moved = space.chart(1e-12 * X) - origin
            moved *= np.minimum(1, 1 / np.linalg.norm(moved, axis=1))[:, None]
            right = space.chart_inverse(origin + moved.mean(axis=0))
            assert_allclose(means(volts)[0], right, rtol=1e-12)
        return
    micro = fit(estimator_class, metric, X, mu=mu)
    assert_allclose(1e12 * means(volts), means(micro), rtol=1e-8)
    if estimator_class is DPFrechetVariance:
        assert volts.variance_ == pytest.approx(micro.variance_, rel=1e-8)
    if estimator_class is DPPrincipalGeodesics:
        assert_allclose(volts.explained_variance_, micro.explained_variance_, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("record", [0, 7, 19])
def test_nan_in_one_record(estimator_class, metric, record):
    """Refused, and no word of where."""
    X = spd(20, 3)
    X[record, 2, 1] = np.nan
    with pytest.raises(ValueError, match=r"^X must contain finite numbers only, got NaN or infin"):
        fit(estimator_class, metric, X)


# --- spheres -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [1.0, inf])
def test_antipodal_points(estimator_class, mu):
    """Without the ball their mean is any point of a circle; within it there is one."""
    X = np.stack([NORTH, -NORTH])
    fitted = fit(estimator_class, "sphere", X, center=EAST, radius=1.5, mu=mu)
    assert_allclose(np.linalg.norm(means(fitted), axis=-1), 1.0, rtol=1e-15)
    if mu == inf:  # both were moved to distance 1.5 from the centre, on opposite sides
        assert_allclose(means(fitted), np.broadcast_to(EAST, (len(means(fitted)), 3)), atol=1e-15)
        if estimator_class is DPFrechetVariance:
            assert fitted.variance_ == pytest.approx(1.5**2, rel=1e-14)


def test_antipode_of_the_centre(estimator_class):
    """It has no direction and goes to a fixed point of the boundary, whose mean with the centre is
    half way.
    """
    X = np.stack([NORTH, -NORTH])
    fitted = fit(estimator_class, "sphere", X, center=NORTH, radius=1.0, mu=inf)
    assert_allclose(np.arccos(means(fitted) @ NORTH), 0.5, rtol=1e-14)
    assert np.isfinite(fitted.transform(np.concatenate([X, -means(fitted)]))).all()


@pytest.mark.parametrize("stored", ["float32", "float64"])
def test_unit_vectors_of_single_precision(estimator_class, stored):
    """Off the sphere by 1e-7: accepted, and what is released has unit length."""
    z = np.random.default_rng(0).normal(size=(50, 3)) + 2 * NORTH
    exact = z / np.linalg.norm(z, axis=1, keepdims=True)
    X = exact.astype(np.float32).astype(stored)
    assert abs(np.linalg.norm(X.astype(float), axis=1) - 1).max() > 1e-8
    fitted = fit(estimator_class, "sphere", X, center=NORTH, radius=pi / 3, mu=inf)
    right = fit(estimator_class, "sphere", exact, center=NORTH, radius=pi / 3, mu=inf)
    assert_allclose(np.linalg.norm(means(fitted), axis=-1), 1.0, rtol=4e-16)
    assert_allclose(means(fitted), means(right), atol=1e-7)
    assert np.isfinite(fitted.transform(X)).all()
