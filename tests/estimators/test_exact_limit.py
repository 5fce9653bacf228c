"""`mu=inf` against means, covariances and variances computed here by other means.

The ball is so large that it moves no record; with it the results are the textbook ones.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from pyriemann.geometry.distance import distance_riemann
from pyriemann.geometry.mean import mean_riemann
from scipy.linalg import expm, logm
from scipy.stats import chi2

from skdpfrechet import DPFrechetMean, DPFrechetVariance
from skdpfrechet.manifolds import Hyperbolic, SPDAffineInvariant

N = 60
EXACT = 1e-12


def spd_records(p, seed=0):
    a = np.random.default_rng(seed).normal(size=(N, p, 3 * p))
    return a @ a.swapaxes(1, 2) / (3 * p)


def sphere_records(d, seed=0):
    rng = np.random.default_rng(seed)
    x = np.eye(d + 1)[-1] + 0.25 * rng.normal(size=(N, d + 1)) / np.sqrt(d)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def fit(estimator_class, manifold, X, **parameters):
    return estimator_class(manifold, mu=np.inf, **{"radius": 20.0, **parameters}).fit(X)


# --- means ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 2, 3, 6])
def test_affine_invariant_mean_is_that_of_pyriemann(p):
    X = spd_records(p)
    expected = mean_riemann(X, tol=1e-13, maxiter=200)
    assert_allclose(fit(DPFrechetMean, "spd", X).mean_, expected, rtol=0, atol=EXACT)


@pytest.mark.parametrize("p", [1, 2, 4])
def test_log_euclidean_mean_is_the_exponential_of_the_mean_logarithm(p):
    X = spd_records(p)
    expected = expm(np.mean([logm(x) for x in X], axis=0))
    assert_allclose(fit(DPFrechetMean, "logeuclid", X).mean_, expected, rtol=0, atol=EXACT)


@pytest.mark.parametrize("p", [1, 2, 4])
def test_log_cholesky_mean_averages_the_factors(p):
    X = spd_records(p)
    factors = np.linalg.cholesky(X)
    factor = np.tril(factors.mean(axis=0), -1)
    diagonals = np.diagonal(factors, axis1=1, axis2=2)
    factor += np.diag(np.exp(np.log(diagonals).mean(axis=0)))
    expected = factor @ factor.T
    assert_allclose(fit(DPFrechetMean, "logchol", X).mean_, expected, rtol=0, atol=EXACT)


def sphere_logs(p, X):
    cosine = np.clip(X @ p, -1, 1)[:, None]
    tangent = X - cosine * p
    sine = np.linalg.norm(tangent, axis=1, keepdims=True)
    return np.arctan2(sine, cosine) * tangent / sine


def sphere_mean(X):
    """Gradient descent with unit step from the normalised average."""
    p = X.mean(axis=0) / np.linalg.norm(X.mean(axis=0))
    for _ in range(200):
        v = sphere_logs(p, X).mean(axis=0)
        s = np.linalg.norm(v)
        p = np.cos(s) * p + np.sinc(s / np.pi) * v
        p /= np.linalg.norm(p)
    return p


@pytest.mark.parametrize("d", [1, 2, 5])
def test_sphere_mean(d):
    X = sphere_records(d)
    fitted = fit(DPFrechetMean, "sphere", X, radius=1.5, center=np.eye(d + 1)[-1])
    assert_allclose(fitted.mean_, sphere_mean(X), rtol=0, atol=EXACT)


def test_hyperbolic_mean_has_no_mean_logarithm():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 3))
    X = np.column_stack([np.sqrt(1 + (x**2).sum(axis=1)), x])
    p = fit(DPFrechetMean, "hyperbolic", X, radius=5.0).mean_
    cosh = X[:, :1] * p[0] - X[:, 1:] @ p[1:, None]  # minus the Lorentz product
    logs = np.arccosh(cosh) / np.sqrt(cosh**2 - 1) * (X - cosh * p)
    assert_allclose(logs.mean(axis=0), 0, rtol=0, atol=EXACT)


def test_euclidean_mean():
    X = np.random.default_rng(0).normal(size=(N, 3))
    assert_allclose(fit(DPFrechetMean, "euclidean", X).mean_, X.mean(axis=0), rtol=0, atol=EXACT)


# --- covariances: (1/n) (Λ/2)⁻¹ S (Λ/2)⁻¹, S the second moment of the logarithms, Λ the Hessian ---


@pytest.mark.parametrize("calibration", ["sharp", "paper"])
def test_euclidean_covariance_is_that_of_the_sample_mean(calibration):
    X = np.random.default_rng(0).normal(size=(N, 3))
    fitted = fit(DPFrechetMean, "euclidean", X, calibration=calibration)
    ddof = 1 if calibration == "paper" else 0
    assert_allclose(fitted.covariance_, np.cov(X.T, ddof=ddof) / N, rtol=0, atol=EXACT)
    region = fitted.confidence_region_
    assert region.critical_value == chi2.ppf(0.95, 3)
    error = X.mean(axis=0) - 0.1
    statistic = error @ np.linalg.solve(np.cov(X.T, ddof=ddof) / N, error)
    assert region.statistic(np.full(3, 0.1)) == pytest.approx(statistic, rel=1e-10)


@pytest.mark.parametrize("manifold", ["logeuclid", "logchol"])
def test_flat_covariance_is_that_of_the_coordinates(manifold):
    fitted = fit(DPFrechetMean, manifold, spd_records(2))
    c = fitted.transform(spd_records(2))
    assert_allclose(c.mean(axis=0), 0, rtol=0, atol=EXACT)
    assert_allclose(fitted.covariance_, c.T @ c / N**2, rtol=0, atol=EXACT)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_sphere_covariance(d):
    """Half the Hessian is uuᵀ + θ cot θ (I - uuᵀ) for a record at angle θ in direction u."""
    X = sphere_records(d)
    fitted = fit(DPFrechetMean, "sphere", X, radius=1.5, center=np.eye(d + 1)[-1])
    c = fitted.transform(X)
    angle = np.linalg.norm(c, axis=1)[:, None, None]
    radial = c[:, :, None] * c[:, None, :] / angle**2
    half_hessian = (radial + angle / np.tan(angle) * (np.eye(d) - radial)).mean(axis=0)
    carrier = np.linalg.inv(half_hessian)
    expected = carrier @ (c.T @ c / N) @ carrier / N
    assert_allclose(fitted.covariance_, expected, rtol=0, atol=EXACT)


def test_affine_invariant_covariance():
    """The Hessian by differences of pyriemann's distance along geodesics through the mean."""
    X = spd_records(2)
    fitted = fit(DPFrechetMean, "spd", X)
    step, axes = 1e-3, np.eye(3)

    def objective(c):
        return (distance_riemann(X, fitted.inverse_transform(c[None])[0]) ** 2).mean()

    def second(u, v):
        signs = ((1, 1), (1, -1), (-1, 1), (-1, -1))
        return sum(s * t * objective(step * (s * u + t * v)) for s, t in signs) / (4 * step**2)

    half_hessian = np.array([[second(u, v) for v in axes] for u in axes]) / 2
    c = fitted.transform(X)
    carrier = np.linalg.inv(half_hessian)
    assert_allclose(fitted.covariance_, carrier @ (c.T @ c) @ carrier / N**2, rtol=1e-4, atol=1e-8)


# --- variances -----------------------------------------------------------------------------------


def squared_distances(manifold, X, mean):
    if manifold == "spd":
        return distance_riemann(X, mean) ** 2
    if manifold == "sphere":
        return np.arccos(X @ mean) ** 2
    return ((X - mean) ** 2).sum(axis=1)


@pytest.mark.parametrize("calibration", ["sharp", "paper"])
@pytest.mark.parametrize(
    ("manifold", "X", "mean", "ball"),
    [
        ("euclidean", sphere_records(2), sphere_records(2).mean(axis=0), {}),
        ("spd", spd_records(3), mean_riemann(spd_records(3), tol=1e-13, maxiter=200), {}),
        (
            "sphere",
            sphere_records(2),
            sphere_mean(sphere_records(2)),
            {"radius": 0.75, "center": np.eye(3)[-1]},
        ),
    ],
    ids=["euclidean", "spd", "sphere"],
)
def test_variance_is_the_average_squared_distance(manifold, X, mean, ball, calibration):
    squares = squared_distances(manifold, X, mean)
    fitted = fit(DPFrechetVariance, manifold, X, calibration=calibration, **ball)
    assert fitted.variance_ == pytest.approx(squares.mean(), abs=EXACT)
    assert_allclose(fitted.transform(X)[:, 0], squares, rtol=0, atol=1e-11)
    low, high = fitted.interval_
    assert low < fitted.variance_ < high
    # The width of Wald's interval, up to terms of order 1/n.
    width = 2 * 1.959964 * squares.std() / np.sqrt(N)
    assert high - low == pytest.approx(width, rel=0.1)


@pytest.mark.parametrize("estimator_class", [DPFrechetMean, DPFrechetVariance])
def test_privacy_says_that_nothing_is_private(estimator_class):
    fitted = fit(estimator_class, "spd", spd_records(2), random_state=0)
    assert not fitted.privacy_.is_private
    assert fitted.privacy_.guarantee.mu == np.inf
    assert all(release.noise_scale == 0 for release in fitted.privacy_.releases)


def test_clipping_still_applies():
    X = np.array([[3.0, 0.0], [0.0, -0.5], [-0.1, 0.0]])
    moved = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1)
    mean = fit(DPFrechetMean, "euclidean", X, radius=1.0)
    assert_allclose(mean.mean_, moved.mean(axis=0), rtol=0, atol=EXACT)
    variance = fit(DPFrechetVariance, "euclidean", X, radius=1.0).variance_
    assert variance == pytest.approx(((moved - moved.mean(axis=0)) ** 2).sum(axis=1).mean())


OFF_ORIGIN = {
    "hyperbolic": (Hyperbolic(3), np.array([1.1, -0.4, 0.7])),
    "spd": (SPDAffineInvariant(3), np.array([0.5, 0.9, -0.6, -0.3, 0.8, 1.0])),
}


@pytest.mark.parametrize("calibration", ["sharp", "paper"])
@pytest.mark.parametrize("manifold", OFF_ORIGIN)
def test_the_public_centre_does_not_turn_the_exact_covariance(manifold, calibration):
    """Without noise and clipping the centre is only where the iteration starts."""
    space, shift = OFF_ORIGIN[manifold]
    point = space.exp_coords(space.origin, -0.7 * shift[::-1])
    spread = np.linspace(0.1, 0.8, space.dim)
    X = space.exp_coords(point, np.random.default_rng(0).normal(size=(200, space.dim)) * spread)
    fits = [
        DPFrechetMean(manifold, radius=8.0, center=c, mu=np.inf, calibration=calibration).fit(X)
        for c in (None, space.exp_coords(space.origin, shift))
    ]
    # The printed recipe divides by n - 1 and truncates at the radius, which binds nowhere here.
    np.testing.assert_allclose(fits[0].covariance_, fits[1].covariance_, rtol=1e-8, atol=1e-12)
    logs = fits[0].transform(X)
    hessian = space.mean_squared_distance_hessian(fits[0].mean_, logs)
    divisor = 200 if calibration == "sharp" else 199
    half = np.linalg.solve(hessian, logs.T @ logs / divisor)
    expected = 4 / 200 * np.linalg.solve(hessian, half.T)
    np.testing.assert_allclose(fits[1].covariance_, expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("radius", [2.0, 1e3, 1e6])
def test_exact_variance_does_not_depend_on_a_generous_radius(radius):
    X = 0.3 * np.random.default_rng(0).normal(size=(100, 2))
    y = ((X - X.mean(axis=0)) ** 2).sum(axis=1)
    fit = DPFrechetVariance(radius=radius, mu=np.inf).fit(X)
    assert fit.variance_ == pytest.approx(y.mean(), rel=1e-12)
    assert fit.release_.standard_error == pytest.approx(y.std() / np.sqrt(99) * 100 / 99, rel=1e-12)
