"""The privacy firewall: what a fitted estimator holds, prints, warns of and raises.

The strongest check replaces every mechanism by one that ignores its input. Whatever then still
differs between two data sets has passed by the mechanisms.
"""

import dataclasses
import io
import json
import pickle
import re
import warnings

import numpy as np
import pytest

from skdpfrechet import DPMDM, DPFrechetMean, DPFrechetVariance, DPPrincipalGeodesics
from skdpfrechet.estimators import _private_mean
from skdpfrechet.exceptions import ConvergenceError
from skdpfrechet.manifolds import Hyperbolic, SPDAffineInvariant, Sphere
from skdpfrechet.mechanisms import (
    Gaussian,
    ProjectedGaussian,
    RiemannianGaussian,
    SymmetricGaussian,
    WrappedGaussian,
)

N = 12


def spd(rng):
    return SPDAffineInvariant(2).exp_coords(np.eye(2), rng.normal(size=(N, 3)))


def sphere(rng):
    x = rng.normal(size=(N, 3))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def hyperbolic(rng):
    return Hyperbolic(2).exp_coords(Hyperbolic(2).origin, rng.normal(size=(N, 2)))


NORTH = np.array([0.0, 0.0, 1.0])
SPACES = [
    pytest.param(lambda rng: rng.normal(size=(N, 3)), {"manifold": "euclidean"}, id="euclidean"),
    pytest.param(spd, {"manifold": "spd"}, id="spd"),
    pytest.param(spd, {"manifold": "logeuclid"}, id="logeuclid"),
    pytest.param(spd, {"manifold": "logchol"}, id="logchol"),
    pytest.param(hyperbolic, {"manifold": "hyperbolic"}, id="hyperbolic"),
    pytest.param(sphere, {"manifold": "sphere", "center": NORTH}, id="sphere"),
    pytest.param(
        sphere,
        {"manifold": "sphere", "center": NORTH, "mechanism": "projected-gaussian"},
        id="projected",
    ),
]
ESTIMATORS = [DPFrechetMean, DPFrechetVariance]
CALIBRATIONS = ["sharp", "paper"]


@pytest.fixture
def blind_mechanisms(monkeypatch):
    """Make every release a constant: the data no longer reach anything that is kept."""

    def at_foot(self, center, rng):
        return np.broadcast_to(self.foot, np.shape(center)).copy()

    def at_pole(self, center, rng):
        pole = np.zeros(np.shape(center))
        pole[..., -1] = 1.0
        return pole

    monkeypatch.setattr(WrappedGaussian, "release", at_foot)
    monkeypatch.setattr(RiemannianGaussian, "release", at_pole)
    monkeypatch.setattr(ProjectedGaussian, "release", at_pole)
    monkeypatch.setattr(Gaussian, "release", lambda self, c, rng: np.full(np.shape(c), 0.25))
    monkeypatch.setattr(
        SymmetricGaussian, "release", lambda self, c, rng: 0.25 * np.eye(len(c)) + 0 * c
    )


def leaves(value, path=""):
    """Yield every number, array and string reachable from `value`, private attributes too."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {**vars(value)}
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        value = vars(value)
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from leaves(item, f"{path}[{i}]")
    else:
        yield path, value


def assert_same_state(a, b):
    left, right = dict(leaves(a)), dict(leaves(b))
    assert left.keys() == right.keys()
    for path, value in left.items():
        other = right[path]
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, other, err_msg=path)
        else:
            assert value == other or (value != value and other != other), path


@pytest.mark.usefixtures("blind_mechanisms")
@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(("make", "parameters"), SPACES)
def test_fitted_state_depends_on_the_data_through_mechanisms_only(
    make, parameters, estimator, calibration
):
    radius = 0.7 if parameters["manifold"] == "sphere" else 2.0
    fits = []
    for seed in (0, 1):
        est = estimator(
            radius=radius, calibration=calibration, mu=0.5, random_state=0, **parameters
        ).fit(make(np.random.default_rng(seed)))
        if estimator is DPFrechetMean:
            _ = est.confidence_region_  # fills what is computed lazily
        fits.append(est)
    assert_same_state(*fits)
    assert pickle.dumps(fits[0]) == pickle.dumps(fits[1])
    assert repr(fits[0]) == repr(fits[1])
    assert str(fits[0].privacy_) == str(fits[1].privacy_)
    assert fits[0]._repr_html_().count("class") == fits[1]._repr_html_().count("class")


def outputs(estimator):
    """Return all that is shown, without the running numbers of scikit-learn's diagrams."""
    html = re.sub(r"sk-(container|estimator)-id-\d+", "", estimator._repr_html_())
    report = estimator.privacy_
    texts = [repr(estimator), str(report), html, report._repr_html_(), json.dumps(report.to_dict())]
    if hasattr(estimator, "confidence_region_"):
        texts.append(json.dumps(estimator.confidence_region_.to_dict()))
    return texts


@pytest.mark.usefixtures("blind_mechanisms")
@pytest.mark.parametrize("noise", ["float", "secure"])
@pytest.mark.parametrize("estimator", [*ESTIMATORS, DPMDM, DPPrincipalGeodesics])
@pytest.mark.parametrize(("make", "parameters"), SPACES)
def test_nothing_that_is_shown_tells_data_sets_apart(make, parameters, estimator, noise):
    """Two that are spread, and one of equal records, for which a solver is done at once."""
    if noise == "secure":
        pytest.importorskip("flint")
        if parameters == {"manifold": "sphere", "center": NORTH}:
            pytest.skip("the Riemannian Gaussian has no float-safe form")
    radius = 0.7 if parameters["manifold"] == "sphere" else 2.0
    spread = [make(np.random.default_rng(seed)) for seed in (0, 1)]
    fits = [
        estimator(radius=radius, mu=0.5, random_state=0, noise=noise, **parameters).fit(
            X, np.arange(N) % 2
        )
        for X in (*spread, np.repeat(spread[0][:1], N, axis=0))
    ]
    shown = [outputs(fitted) for fitted in fits]
    assert shown[0] == shown[1] == shown[2]
    assert len({pickle.dumps(fitted) for fitted in fits}) == 1
    assert not re.search(r"iter|residual|n_steps|elapsed|seconds", " ".join(vars(fits[0])))


def test_the_walk_finds_a_planted_leak(monkeypatch):
    original = DPFrechetMean.fit

    def leaky(self, X, y=None):
        original(self, X)
        self._first = {"hidden": [X[0]]}
        return self

    monkeypatch.setattr(DPFrechetMean, "fit", leaky)
    data = [np.random.default_rng(seed).normal(size=(N, 3)) for seed in (0, 1)]
    fits = [DPFrechetMean(radius=2.0, mu=np.inf).fit(X) for X in data]
    with pytest.raises(AssertionError, match="hidden"):
        assert_same_state(fits[0]._first, fits[1]._first)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(("make", "parameters"), SPACES)
def test_neighbouring_fits_under_identical_noise_stay_within_the_sensitivity(
    make, parameters, estimator
):
    """With equal noise, whatever differs between neighbours differs by a sensitivity at most."""
    radius = 0.7 if parameters["manifold"] == "sphere" else 2.0
    X = make(np.random.default_rng(0))
    neighbour = X.copy()
    neighbour[3] = make(np.random.default_rng(5))[3]
    a, b = (
        estimator(radius=radius, mu=2.0, random_state=3, **parameters).fit(data)
        for data in (X, neighbour)
    )
    changed = {
        path.split(".")[1].split("[")[0]
        for (path, u), (_, v) in zip(leaves(a), leaves(b), strict=True)
        if not np.array_equal(u, v)
    }
    releases = {"mean_", "release_", "_inference", "variance_", "interval_", "privacy_"}
    assert changed <= releases
    row = a.privacy_.releases[0]
    assert row.statistic == "mean"
    manifold = a.manifold_
    if parameters["manifold"] in ("euclidean", "logeuclid", "logchol"):
        # The noise is a common translation here, so the releases differ as the means do.
        assert manifold.dist(a.mean_, b.mean_) <= row.sensitivity * (1 + 1e-9)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("mu", [0.01, 1.0, np.inf])
def test_no_warning_however_wild_the_records(estimator, mu):
    rng = np.random.default_rng(0)
    X = spd(rng)
    X[0] = np.diag([1e300, 1e290])
    X[1] = np.diag([1e-300, 1e-290])
    X[2] = 1e308 * np.eye(2)
    X[3] = [[1.0, 1 - 1e-12], [1 - 1e-12, 1.0]]
    for radius in (1.0, 6.0, 14.0):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            est = estimator("spd", radius=radius, mu=mu).fit(X)
            values = [est.mean_]
            if estimator is DPFrechetMean:
                values += [est.covariance_, est.confidence_region_.boundary(5)]
            else:
                values += [est.variance_, est.interval_]
        assert all(np.isfinite(value).all() for value in values)
        assert est.manifold_.contains(est.mean_)


BAD = {
    "nan": (lambda X, i: X.__setitem__((i, 0, 0), np.nan), "NaN"),
    "inf": (lambda X, i: X.__setitem__((i, 1, 1), np.inf), "infinity"),
    "asymmetric": (lambda X, i: X.__setitem__((i, 0, 1), 17.0 + i), "symmetric"),
    "indefinite": (lambda X, i: X.__setitem__(i, -X[i]), "positive definite"),
}


@pytest.mark.parametrize("fault", BAD)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_errors_speak_of_no_record(estimator, fault):
    spoil, word = BAD[fault]
    messages = set()
    for seed, bad in ((0, [1]), (1, [2, 5]), (2, [0, 3, 7])):
        X = spd(np.random.default_rng(seed))
        for i in bad:
            spoil(X, i)
        with pytest.raises(ValueError, match=word) as caught:
            estimator("spd", radius=2.0).fit(X)
        assert caught.value.__cause__ is None
        messages.add(str(caught.value))
    assert len(messages) == 1
    assert "oas" in messages.pop() or fault != "indefinite"


def test_an_exact_mean_that_is_not_found_is_an_error_that_names_no_number(monkeypatch):
    solve = _private_mean.frechet_mean
    monkeypatch.setattr(
        _private_mean, "frechet_mean", lambda *a, **k: solve(*a, **{**k, "accept": 1e-300})
    )
    est = DPFrechetMean("spd", radius=2.0, mu=np.inf)
    with pytest.raises(ConvergenceError, match="nothing was released") as caught:
        est.fit(spd(np.random.default_rng(0)))
    assert not re.search(r"\d", str(caught.value))
    assert not [name for name in vars(est) if name.endswith("_") and name != "n_features_in_"]


def test_no_output_is_printed(capsys):
    DPFrechetMean("sphere", radius=0.7, center=NORTH).fit(sphere(np.random.default_rng(0)))
    assert capsys.readouterr() == ("", "")


def test_fresh_noise_at_every_fit():
    X = np.random.default_rng(0).normal(size=(N, 3))
    est = DPFrechetMean(radius=2.0)
    first = est.fit(X).mean_
    assert not np.array_equal(first, est.fit(X).mean_)
    assert est.privacy_.is_private


def test_integer_seed_is_reproducible_and_voids_the_guarantee():
    X = np.random.default_rng(0).normal(size=(N, 3))
    est = DPFrechetMean(radius=2.0, random_state=0)
    np.testing.assert_array_equal(est.fit(X).mean_, est.fit(X).mean_)
    assert not est.privacy_.is_private
    assert "random_state" in str(est.privacy_)


def test_unpickled_state_is_the_whole_state():
    est = DPFrechetMean("sphere", radius=0.7, center=NORTH, random_state=0)
    est.fit(sphere(np.random.default_rng(0)))
    copy = pickle.load(io.BytesIO(pickle.dumps(est)))
    assert_same_state(est, copy)
    assert Sphere(2) == copy.manifold_


@pytest.mark.parametrize("manifold", ["euclidean", "logeuclid", "logchol", "spd"])
def test_no_warning_at_the_end_of_the_float_range(manifold):
    if manifold == "euclidean":
        X, center = np.array([[1.7e308, 0.0], [0.0, 0.0], [1.0, 2.0]]), np.array([-1e3, 0.0])
    else:
        X, center = np.stack([1.7e308 * np.eye(2), np.eye(2), 2 * np.eye(2)]), None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = DPFrechetMean(manifold, radius=3.0, center=center).fit(X)
    assert np.isfinite(fit.mean_).all()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_failed_fit_leaves_no_earlier_result(estimator):
    X = np.random.default_rng(0).normal(size=(N, 3))
    est = estimator(radius=2.0).fit(X)
    with pytest.raises(ValueError, match="NaN"):
        est.fit(np.full((N, 3), np.nan))
    assert not hasattr(est, "mean_")
    assert not hasattr(est, "privacy_")


def test_what_a_user_does_to_the_mean_does_not_reach_the_release():
    est = DPFrechetMean(radius=2.0).fit(np.random.default_rng(0).normal(size=(N, 3)))
    point = est.release_.point.copy()
    est.mean_ += 100
    np.testing.assert_array_equal(est.release_.point, point)
    with pytest.raises(ValueError, match="read-only"):
        est.release_.point += 1


def test_the_cap_of_float64_is_reported():
    X = np.stack([np.eye(2)] * 50)
    assert "rescale X" in str(DPFrechetMean("spd", radius=60.0).fit(X).privacy_)
    assert "rescale X" not in str(DPFrechetMean("spd", radius=4.0).fit(X).privacy_)


@pytest.mark.parametrize(
    ("manifold", "center"),
    [
        ("logchol", np.diag([1e-8, 1.0, 1e8])),
        ("logeuclid", np.diag([1e-8, 1.0, 1e8])),
        ("spd", np.outer([1e-9, 1, 1e9], [1e-9, 1, 1e9]) * (np.eye(3) + 1) / 2),
        ("hyperbolic", Hyperbolic(2).exp_coords(Hyperbolic(2).origin, np.array([20.0, 0.0]))),
    ],
)
def test_centres_that_float64_cannot_follow_are_refused(manifold, center):
    X = np.stack([np.eye(3)] * 5) if center.ndim == 2 else np.stack([Hyperbolic(2).origin] * 5)
    with pytest.raises(ValueError, match="center must be"):
        DPFrechetMean(manifold, radius=3.0, center=center).fit(X)
