"""Records enter the ball in one pass that checks them too; it must not show in any result."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skdpfrechet import DPFrechetMean, DPFrechetVariance, _kernels
from skdpfrechet.estimators import _ball, _plan
from skdpfrechet.manifolds import SPDAffineInvariant

N = 203


def covariances(p, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((N, p, p))
    w, q = np.linalg.eigh((noise + noise.swapaxes(1, 2)) * spread / np.sqrt(2 * p + 2))
    x = (q * np.exp(w)[:, None, :]) @ q.swapaxes(1, 2)
    return (x + x.swapaxes(1, 2)) / 2


def unit_vectors(d, seed=0):
    x = np.random.default_rng(seed).standard_normal((N, d + 1)) / np.sqrt(d) + np.eye(d + 1)[-1]
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def cases():
    for p in (2, 5, 8, 11):
        X = covariances(p)
        general = covariances(p, seed=1, spread=0.3)[0]
        for center in (None, 1.3 * np.eye(p), general):
            foot = np.eye(p) if center is None else center
            share = 0.97 if p == 5 else 0.7  # few records outside, and many
            radius = np.quantile(SPDAffineInvariant(p).dist(foot, X), share)
            yield {"manifold": "spd", "radius": radius, "center": center}, X
    for d in (2, 12, 30):
        yield {"manifold": "sphere", "radius": 0.9, "center": np.eye(d + 1)[-1]}, unit_vectors(d)


CASES = [pytest.param(*case, id=f"{i}") for i, case in enumerate(cases())]


def check_first(monkeypatch):
    """Let all records be checked in numpy before they enter the ball."""
    enter = _plan.enter_public
    monkeypatch.setattr(
        _plan, "enter_public", lambda ball, X, codes, n, admit: enter(ball, admit(X), codes, n)
    )


@pytest.fixture(params=[DPFrechetMean, DPFrechetVariance])
def estimator_class(request):
    return request.param


def released(estimator):
    if isinstance(estimator, DPFrechetVariance):
        return np.r_[estimator.variance_, estimator.interval_, estimator.mean_.ravel()]
    region = estimator.confidence_region_
    return np.r_[estimator.mean_.ravel(), region.covariance.ravel(), region.critical_value]


@pytest.mark.parametrize(("parameters", "X"), CASES)
def test_releases_are_those_of_checked_records(estimator_class, parameters, X, monkeypatch):
    # Float-safe noise may round to the neighbouring point of its grid.
    estimator = estimator_class(**parameters, random_state=0, noise="float")
    at_once = released(estimator.fit(X))
    check_first(monkeypatch)
    assert_allclose(released(estimator.fit(X)), at_once, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize(("parameters", "X"), CASES)
def test_exact_results_are_those_of_numpy(estimator_class, parameters, X):
    """Private ones differ by the residual that their certificate allows."""
    estimator = estimator_class(**parameters, mu=np.inf)
    compiled = released(estimator.fit(X))
    with _kernels.kernels("numpy"):
        assert_allclose(released(estimator.fit(X)), compiled, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(("parameters", "X"), CASES)
def test_records_outside_are_moved_bit_by_bit_as_the_space_moves_them(parameters, X, monkeypatch):
    """On spheres all are; carrying matrices rounds differently in the kernels, moving does not."""
    if not _kernels.compiled():
        pytest.skip("kernels alone enter at once")
    seen = []
    enter = _ball.enter_ball

    def spy(*arguments):
        seen.append((arguments, enter(*arguments)))
        return seen[-1][1]

    monkeypatch.setattr(_ball, "enter_ball", spy)
    DPFrechetMean(**parameters, random_state=0).fit(X)
    (local, points, radius, cap, _), sample = seen[0]
    model_points = local.to_model(points)
    expected = local.model.project_to_ball(model_points, local.origin, radius, cap)
    moved = (expected != model_points).reshape(N, -1).any(axis=1)
    assert 0 < moved.sum() < N
    assert_array_equal(sample.points[moved], expected[moved])
    assert_allclose(sample.points[~moved], expected[~moved], rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(("parameters", "X"), CASES)
def test_the_same_sentence_whichever_way(estimator_class, parameters, X, monkeypatch):
    def bad():
        for value in (np.nan, np.inf, -1.0, 1e300):
            for where in (0, N - 1):
                Y = X.copy()
                Y[where].flat[0] = value
                yield Y
        Y = X.copy()
        Y[7] = 0.0
        yield Y
        if X.ndim == 3:
            Y = X.copy()
            Y[3, 0, 1] += 1e-3
            yield Y

    def sentences():
        estimator = estimator_class(**parameters)
        for Y in bad():
            try:
                estimator.fit(Y)
            except ValueError as error:
                yield str(error)
            else:
                yield None

    at_once = list(sentences())
    assert any(at_once)
    check_first(monkeypatch)
    assert list(sentences()) == at_once
    with _kernels.kernels("numpy"):
        assert list(sentences()) == at_once
