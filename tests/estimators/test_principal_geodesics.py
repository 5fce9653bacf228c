"""`DPPrincipalGeodesics`: scikit-learn's suite, principal components computed by other means."""

from __future__ import annotations

import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pyriemann.geometry.mean import mean_riemann
from pyriemann.geometry.tangentspace import tangent_space
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skdpfrechet import DPFrechetMean, DPPrincipalGeodesics
from skdpfrechet.datasets import load_muse_eeg, load_pneumonia_descriptors
from skdpfrechet.estimators._principal_geodesics import repair_variances
from skdpfrechet.manifolds import Hyperbolic, SPDAffineInvariant, SPDLogCholesky, Sphere
from skdpfrechet.mechanisms import (
    ProjectedGaussian,
    RiemannianGaussian,
    SymmetricGaussian,
    WrappedGaussian,
)

with pytest.MonkeyPatch.context() as patch:
    # Where array-api-compat is installed, scikit-learn 1.6 wants this to import its test tools.
    patch.setenv("SCIPY_ARRAY_API", "1")
    from sklearn.utils.estimator_checks import estimator_checks_generator

NORTH = np.array([0.0, 0.0, 0.0, 1.0])
SPACES = {
    "spd": ("spd", SPDAffineInvariant(2), None),
    "centred elsewhere": ("spd", SPDAffineInvariant(2), np.array([[2.0, 0.5], [0.5, 1.0]])),
    "logchol": ("logchol", SPDLogCholesky(2), None),
    "sphere": ("sphere", Sphere(3), NORTH),
    "hyperbolic": ("hyperbolic", Hyperbolic(3), None),
}
AXIS = np.array([2.0, 1.0, -2.0]) / 3


@pytest.fixture(params=SPACES)
def problem(request):
    """An unfitted estimator and records around a point off the centre, along one direction."""
    manifold, space, center = SPACES[request.param]
    rng = np.random.default_rng(0)
    foot = space.origin if center is None else center
    middle = space.exp_coords(foot, np.array([0.2, -0.1, 0.15]))
    c = rng.normal(scale=0.2, size=(300, 1)) * AXIS + rng.normal(scale=0.05, size=(300, 3))
    X = space.exp_coords(middle, c)
    pga = DPPrincipalGeodesics(manifold, radius=1.2, center=center, mu=3.0, random_state=0)
    return pga, X


# --- scikit-learn's own checks -------------------------------------------------------------------

CONFIGURATIONS = [
    {"radius": 100.0, "random_state": 0},
    {"radius": 100.0, "random_state": 0, "n_components": 1},
    {"radius": 100.0, "random_state": 0, "mechanism": "riemannian-gaussian"},
    {"radius": 100.0, "mu": np.inf},
]


def name_of(check):
    while isinstance(check, partial):
        check = check.func
    return check.__name__


def all_checks():
    for configuration in CONFIGURATIONS:
        estimator = DPPrincipalGeodesics("euclidean", **configuration)
        for instance, check in estimator_checks_generator(estimator):
            if name_of(check) != "check_array_api_input":  # needs a fresh interpreter
                yield pytest.param(instance, check, id=f"{instance}-{name_of(check)}")


@pytest.mark.parametrize(("estimator", "check"), list(all_checks()))
def test_sklearn_check(estimator, check):
    check(estimator)


# --- without noise -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ssvep", "pneumonia"])
def test_without_noise_it_is_pca_of_the_tangent_space(kind):
    """Mean and logarithms by pyriemann, components by scikit-learn, which divides by n - 1."""
    data = load_muse_eeg(kind="ssvep") if kind == "ssvep" else load_pneumonia_descriptors()
    X, n = data.data, len(data.data)
    pga = DPPrincipalGeodesics(radius=15.0, center=data.center, mu=np.inf).fit(X)
    mean = mean_riemann(X, tol=1e-12, maxiter=200)
    logs = tangent_space(X, mean, metric="riemann")
    pca = PCA().fit(logs)
    assert_allclose(pga.mean_, mean, rtol=0, atol=1e-8 * mean.max())
    assert_allclose(pga.explained_variance_, pca.explained_variance_ * (n - 1) / n, atol=1e-8)
    assert_allclose(pga.explained_variance_ratio_, pca.explained_variance_ratio_, atol=1e-8)
    k = 5  # beyond, eigenvalues lie so close that directions are not determined to 1e-6
    signs = np.sign((pga.components_[:k] * pca.components_[:k]).sum(axis=1))
    assert_allclose(pga.components_[:k], signs[:, None] * pca.components_[:k], atol=1e-6)
    scores = pca.transform(logs)[:, :k] * signs
    assert_allclose(pga.transform(X)[:, :k], scores, rtol=0, atol=1e-6)


def test_exact_components_are_eigenvectors_in_the_frame_at_the_mean(problem):
    """The moment is taken in a model whose frames differ from those of the space."""
    pga, X = problem
    pga.set_params(mu=np.inf).fit(X)
    c = pga.manifold_.log_coords(pga.mean_, X)
    moment = c.T @ c / len(c)
    assert_allclose(
        moment @ pga.components_.T, pga.explained_variance_ * pga.components_.T, atol=1e-12
    )
    assert_allclose(pga.components_ @ pga.components_.T, np.eye(3), atol=1e-12)
    assert_allclose((pga.transform(X) ** 2).mean(axis=0), pga.explained_variance_, atol=1e-12)
    assert pga.explained_variance_ratio_.sum() == pytest.approx(1.0)
    assert pga.noise_scale_ == pga.noise_floor_ == 0.0


# --- with noise ----------------------------------------------------------------------------------


def test_the_main_direction_is_found(problem):
    pga, X = problem
    exact = clone(pga).set_params(mu=np.inf, n_components=1).fit(X)
    found = pga.set_params(mu=20.0, n_components=1).fit(X)
    start = np.expand_dims(found.mean_, 0)
    ends = exact.manifold_.exp_coords(exact.mean_, 0.3 * exact.components_)
    carried = found.manifold_.log_coords(start, ends)[0]
    assert abs(carried / np.linalg.norm(carried) @ found.components_[0]) > 0.9
    assert found.explained_variance_[0] == pytest.approx(exact.explained_variance_[0], rel=0.5)


def test_the_frame_is_that_of_the_mean_with_noise_too(problem):
    """Noise of scale zero in the moment and a mean far from the exact one: no frame hides."""
    pga, X = problem
    pga.set_params(mu=1e5, budget_split={"mean": 1e-9, "second_moment": 1 - 1e-9}).fit(X)
    inside = pga.manifold_.project_to_ball(X, pga.center_, 1.2)
    c = pga.manifold_.log_coords(pga.mean_, inside)
    moment = c.T @ c / len(c)
    captured = np.einsum("ki,ij,kj->k", pga.components_, moment, pga.components_)
    assert_allclose(pga.explained_variance_, captured, rtol=0, atol=1e-4)
    assert_allclose(captured.max(), np.linalg.eigvalsh(moment)[-1], rtol=0, atol=1e-4)


def test_the_moment_is_uncentred():
    """At a mean that misses by e, the first component is e and its variance |e|²."""
    X = np.zeros((1000, 4))
    split = {"mean": 1e-8, "second_moment": 1 - 1e-8}
    pga = DPPrincipalGeodesics("euclidean", radius=1.0, mu=50, budget_split=split, random_state=0)
    pga.fit(X)
    error = pga.mean_
    unit = error / np.linalg.norm(error)
    assert pga.explained_variance_[0] == pytest.approx(error @ error, rel=0.01)
    assert abs(unit @ pga.components_[0]) > 0.99


def test_the_noise_fills_what_is_said():
    """Records without spread: the released eigenvalues are those of the noise."""
    tops = []
    for seed in range(20):
        pga = DPPrincipalGeodesics("euclidean", radius=1.0, mu=1.0, random_state=seed)
        pga.fit(np.zeros((1000, 30)))
        row = pga.privacy_.releases[1]
        assert pga.noise_scale_ == row.noise_scale
        tops.append(pga.explained_variance_[0])
        assert pga.noise_floor_ == pytest.approx(pga.noise_scale_ * np.sqrt(60))
    # The repair takes off what keeps the trace, so what is left lies below the floor.
    assert 0 < np.mean(tops) < pga.noise_floor_


@pytest.mark.parametrize(("dim", "share"), [(3, 0.5), (30, 0.85), (150, 0.95)])
def test_the_floor_is_where_the_spectrum_of_the_noise_ends(dim, share):
    """σ √(2 dim) for large dim, from below."""
    rng = np.random.default_rng(0)
    noise = SymmetricGaussian(2.0)
    tops = [np.linalg.eigvalsh(noise.release(np.zeros((dim, dim)), rng))[-1] for _ in range(100)]
    assert share < np.mean(tops) / (2.0 * np.sqrt(2 * dim)) < 1.0


@pytest.mark.parametrize("seed", range(20))
def test_repair_is_the_nearest_of_the_same_sum(seed):
    """Against a general solver; with a sum beyond the limit, the nearest of sum `limit`."""
    rng = np.random.default_rng(seed)
    v = np.sort(rng.normal(loc=rng.uniform(-0.2, 1), size=6))[::-1]
    limit = 2.5
    total = min(max(v.sum(), 0.0), limit)
    repaired = repair_variances(v, limit)
    assert repaired.min() >= 0
    assert repaired.sum() == pytest.approx(total, abs=1e-12)
    solution = minimize(
        lambda x: ((x - v) ** 2).sum(),
        np.full(6, total / 6),
        jac=lambda x: 2 * (x - v),
        bounds=[(0, None)] * 6,
        constraints={"type": "eq", "fun": lambda x: x.sum() - total, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    assert_allclose(repaired, solution.x, rtol=0, atol=1e-5)


def test_repair_leaves_possible_variances_alone():
    v = np.array([2.0, 0.5, 0.0])
    assert_array_equal(repair_variances(v, 9.0), v)
    assert_array_equal(repair_variances(-v[::-1], 9.0), np.zeros(3))


def test_budget(problem):
    pga, X = problem
    report = pga.fit(X).privacy_
    assert report.guarantee.mu == 3.0
    assert [row.statistic for row in report.releases] == ["mean", "second moment"]
    assert report.releases[1].mu == pytest.approx(3 * np.sqrt(0.7))
    other = pga.set_params(budget_split={"mean": 0.5, "second_moment": 0.5}).fit(X).privacy_
    assert other.releases[0].mu == pytest.approx(3 * np.sqrt(0.5))


# --- transform -----------------------------------------------------------------------------------


def test_transform_and_back(problem):
    pga, X = problem
    scores = pga.fit(X).transform(X)
    assert scores.shape == (300, 3)
    assert_allclose(pga.inverse_transform(scores), X, rtol=0, atol=1e-10)
    few = clone(pga).set_params(n_components=1).fit(X)
    assert_array_equal(few.mean_, pga.mean_)
    assert_allclose(few.transform(X), scores[:, :1], rtol=0, atol=1e-12)
    points = few.inverse_transform(few.transform(X))
    assert few.manifold_.contains(points).all()
    assert_allclose(few.transform(points), few.transform(X), rtol=0, atol=1e-8)
    assert few.inverse_transform(np.zeros((0, 1))).shape == (0, *X.shape[1:])
    assert list(few.get_feature_names_out()) == ["dpprincipalgeodesics0"]


def test_all_components_turn_the_coordinates_of_the_mean(problem):
    pga, X = problem
    coordinates = DPFrechetMean(
        pga.manifold,
        radius=1.2,
        center=pga.center,
        mu=3.0,
        budget_split={"mean": 0.3, "second_moment": 0.7},
        random_state=0,
    ).fit(X)
    assert_array_equal(pga.fit(X).mean_, coordinates.mean_)
    assert_allclose(pga.transform(X), coordinates.transform(X) @ pga.components_.T, atol=1e-12)


def test_in_a_pipeline():
    data = load_pneumonia_descriptors()
    ball = {"center": data.center, "radius": data.radius}
    pipeline = make_pipeline(
        DPPrincipalGeodesics(n_components=5, **ball, mu=2.0, random_state=0), LogisticRegression()
    )
    assert pipeline.fit(data.data, data.target).score(data.data, data.target) > 0.7


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"n_components": 0}, ValueError, "between 1 and the dimension 3, got 0"),
        ({"n_components": 4}, ValueError, "between 1 and the dimension 3, got 4"),
        ({"n_components": 0.9}, TypeError, "n_components must be an integer or None, got float"),
        ({"n_components": True}, TypeError, "n_components must be an integer or None, got bool"),
        ({"budget_split": {"mean": 1.0}}, ValueError, "budget_split must have the keys"),
        ({"mu": -1}, ValueError, "mu must be positive"),
        ({"radius": 0}, ValueError, "radius must be positive"),
        ({"manifold": 3}, TypeError, "manifold must be a string or a Manifold"),
        ({"random_state": "a"}, TypeError, "random_state must be None or an integer"),
    ],
)
def test_bad_parameters_are_refused(problem, parameters, error, words):
    pga, X = problem
    with pytest.raises(error, match=words):
        pga.set_params(**parameters).fit(X)
    assert not hasattr(pga, "components_")


def test_bad_input_to_inverse_transform(problem):
    pga, X = problem
    with pytest.raises(NotFittedError):
        pga.inverse_transform(np.zeros((2, 3)))
    pga.fit(X)
    for bad in (np.zeros(3), np.zeros((2, 4)), [["a", "b", "c"]], np.full((1, 3), np.nan)):
        with pytest.raises(ValueError, match="X"):
            pga.inverse_transform(bad)


def test_one_record(problem):
    pga, X = problem
    assert np.isfinite(pga.fit(X[:1]).explained_variance_).all()
    exact = pga.set_params(mu=np.inf).fit(X[:1])
    assert_allclose(exact.explained_variance_, 0.0, atol=1e-12)
    assert np.isfinite(exact.explained_variance_ratio_).all()


# --- the firewall --------------------------------------------------------------------------------


def test_the_state_depends_on_the_records_through_mechanisms_only(problem, monkeypatch):
    monkeypatch.setattr(
        WrappedGaussian,
        "release",
        lambda self, c, rng: np.broadcast_to(self.foot, np.shape(c)).copy(),
    )
    for kind in (RiemannianGaussian, ProjectedGaussian):
        monkeypatch.setattr(kind, "release", lambda self, c, rng: NORTH.copy())
    monkeypatch.setattr(
        SymmetricGaussian, "release", lambda self, c, rng: np.diag([3.0, 2.0, 1.0]) + 0 * c
    )
    pga, X = problem
    states = []
    for data in (X[:100], X[100:200]):
        fitted = clone(pga).fit(data)
        states.append((pickle.dumps(fitted), repr(fitted), str(fitted.privacy_)))
    assert states[0] == states[1]


@pytest.mark.parametrize("mu", [0.01, 1.0, np.inf])
def test_no_warning_however_wild_the_records(mu):
    rng = np.random.default_rng(0)
    X = SPDAffineInvariant(2).exp_coords(np.eye(2), rng.normal(size=(12, 3)))
    X[0] = np.diag([1e300, 1e290])
    X[1] = np.diag([1e-300, 1e-290])
    X[2] = 1e308 * np.eye(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for radius in (1.0, 6.0, 14.0):
            pga = DPPrincipalGeodesics(radius=radius, mu=mu).fit(X)
            assert np.isfinite(pga.components_).all()
            assert (pga.explained_variance_ >= 0).all()


def test_nothing_but_releases_is_kept(problem):
    pga, X = problem
    known = {
        "mean_",
        "components_",
        "explained_variance_",
        "explained_variance_ratio_",
        "noise_scale_",
        "noise_floor_",
        "privacy_",
        "manifold_",
        "center_",
        "radius_",
        "n_samples_",
        "n_features_in_",
        "_n_features_out",
    }
    assert set(vars(pga.fit(X))) - set(pga.get_params()) == known


def test_unseeded_fits_differ_and_are_private(problem):
    pga, X = problem
    pga.set_params(random_state=None)
    first = pga.fit(X).components_
    assert pga.privacy_.is_private
    assert not np.array_equal(first, pga.fit(X).components_)
