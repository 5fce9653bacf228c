"""What shape, type and parameters decide is refused before the ledger is charged.

Every message names the parameter, what it must be and what it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan

import numpy as np
import pytest

from skdpfrechet import DPMDM, DPFrechetMean, DPFrechetVariance, DPPrincipalGeodesics, sensitivity
from skdpfrechet.estimators import _noise
from skdpfrechet.estimators._mechanisms import MECHANISMS, calibrate, mean_law, rebuild
from skdpfrechet.inference._hessian import hessian_range, mean_hessian_bound
from skdpfrechet.manifolds import Euclidean, Hyperbolic, Manifold, Sphere
from skdpfrechet.mechanisms import ProjectedGaussian, RiemannianGaussian, RiemannianLaplace
from skdpfrechet.privacy import GDP, PrivacyLedger

ESTIMATORS = [DPFrechetMean, DPFrechetVariance, DPMDM, DPPrincipalGeodesics]
N = 12
X = np.random.default_rng(0).normal(scale=0.3, size=(N, 2))
Y = np.repeat([0, 1], N // 2)


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "ledger", budget=GDP(100.0))


@pytest.fixture(params=ESTIMATORS)
def kind(request):
    return request.param


def refuse(ledger, estimator, data=X, y=Y, **arguments):
    """Return the message of a fit that must raise; nothing may be spent."""
    with pytest.raises((ValueError, TypeError, ImportError)) as caught:
        estimator.fit(data, y, **arguments)
    assert ledger.spent == GDP(0.0)
    message = str(caught.value)
    assert message.rstrip().endswith(".")
    assert "\n" not in message
    assert not hasattr(estimator, "privacy_")
    return message


# --- parameters -----------------------------------------------------------------------------------

NO_NAMES = ["x", None, 3, ["sharp"], np.array(["a", "b"])]
NO_NUMBERS = ["a", True, [1.0], 1j, nan]
BAD = {
    "manifold": ["torus", None, 3, Sphere, Euclidean(3)],
    "radius": [*NO_NUMBERS, None, 0.0, -1.0, inf, 1e-300, 1e300],
    "center": ["public", [0.0], [[0.0, 0.0]], [nan, 0.0], [1e300, 1e300, 0.0], {}],
    "mu": [*NO_NUMBERS, None, 0.0, -1.0, 1e-11, 1e21],
    "confidence_level": [*NO_NUMBERS, 0.0, 1.0, -1.0, 95],
    "mechanism": [*NO_NAMES, "laplace", "projected-gaussian"],
    "calibration": NO_NAMES,
    "budget_split": ["x", 3, {"mean": 0.5}, {"mean": 2.0, "variance": -1.0}, {}],
    "random_state": [-1, 1.5, "x", True, np.random.default_rng(0)],
    "n_jobs": [0, 1.5, "all"],
    "outer_radius": [*NO_NUMBERS, 1.0, -1.0],
    "outer_center": [[0.0, 0.0], "x"],
    "noise": [*NO_NAMES, "exact"],
    "invalid": [*NO_NAMES, "drop"],
    "n_components": [0, 3, 1.5, "x", True],
    "mean": [1.0, "x", np.zeros(2)],
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param(name, value, id=f"{name}-{i}-{type(value).__name__}")
        for name, values in BAD.items()
        for i, value in enumerate(values)
    ],
)
def test_parameters(kind, ledger, name, value):
    estimator = kind("euclidean", radius=1.0, ledger=ledger)
    if name not in estimator.get_params():
        return
    message = refuse(ledger, estimator.set_params(**{name: value}))
    assert name in message or (value == Euclidean(3) and "X must" in message)
    assert "must" in message or "requires" in message
    plain = isinstance(value, str | int | float | list) or value is None
    if plain and name not in ("center", "outer_center"):
        shown = (repr(value), type(value).__name__, "range")
        assert any(word in message for word in shown)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"noise": "secure", "calibration": "paper"}, "noise='secure' requires"),
        ({"noise": "secure", "mechanism": "riemannian-gaussian"}, "noise='secure' requires"),
        ({"radius": "private"}, "outer_radius must be given"),
        ({"radius": "private", "outer_radius": 5.0, "ball_share": 2.0}, "ball_share must"),
        ({"radius": "private", "outer_radius": 5.0, "ball_quantile": 0.0}, "ball_quantile must"),
        ({"center": "private", "outer_radius": -5.0}, "outer_radius must be positive"),
        ({"random_state": 3}, "random_state must be None with a ledger, got 3"),
        ({"mu": inf}, "mu must be finite with a ledger, got inf"),
    ],
)
def test_parameters_that_do_not_go_together(kind, ledger, parameters, words):
    estimator = kind("euclidean", **{"radius": 1.0, "ledger": ledger})
    if set(parameters) <= set(estimator.get_params()):
        assert words in refuse(ledger, estimator.set_params(**parameters))


def test_exact_noise_without_the_extra(kind, ledger, monkeypatch):
    monkeypatch.setattr(_noise, "has_flint", lambda: False)
    estimator = kind("euclidean", radius=1.0, ledger=ledger, noise="secure")
    assert "skdpfrechet[secure]" in refuse(ledger, estimator)


# --- shapes and types -----------------------------------------------------------------------------

NO_RECORDS = {
    "one axis": np.zeros(N),
    "three axes": np.zeros((N, 2, 2)),
    "no record": np.zeros((0, 2)),
    "no column": np.zeros((N, 0)),
    "complex": np.zeros((N, 2), complex),
    "dates": np.zeros((N, 2), "M8[s]"),
    "structures": np.zeros((N, 2), [("x", float)]),
    "ragged": [[0.0], [0.0, 1.0]] * 6,
    "nothing": None,
    "a number": 3.0,
}


@pytest.mark.parametrize("invalid", ["raise", "replace"])
@pytest.mark.parametrize("name", NO_RECORDS)
def test_shapes_and_types(kind, ledger, name, invalid):
    estimator = kind("euclidean", radius=1.0, ledger=ledger, invalid=invalid)
    assert (
        "must" in (message := refuse(ledger, estimator, NO_RECORDS[name]))
        or "Complex" in (message)
        or "minimum of 1 is required" in message
    )


@pytest.mark.parametrize(
    "groups", [np.zeros(3), np.zeros((N, 2)), [None] * N, [nan] * N, "abc", 3.0, [{}] * N]
)
def test_groups(kind, ledger, groups):
    estimator = kind("euclidean", radius=1.0, ledger=ledger, unit="person")
    message = refuse(ledger, estimator, groups=groups)
    assert message.startswith("groups must")
    assert str(N) not in message


@pytest.mark.parametrize("y", [None, np.zeros(N), [None] * N, np.zeros((N, 2)), Y + 1j])
def test_labels(ledger, y):
    assert "y" in refuse(ledger, DPMDM("euclidean", radius=1.0, ledger=ledger), y=y)


# --- spaces from outside --------------------------------------------------------------------------

H = Hyperbolic(2)


@dataclass(frozen=True)
class Outside(Manifold):
    """The hyperbolic plane with distances divided by `a`: curvature -a², unknown to the library."""

    a: float = 4.0
    dim = 2
    point_shape = (3,)
    origin = H.origin

    @property
    def sectional_curvature_bounds(self):
        return -(self.a**2), -(self.a**2)

    def coords(self, p, v):
        return H.coords(p, v) / self.a

    def from_coords(self, p, c):
        return H.from_coords(p, np.asarray(c) * self.a)

    def exp(self, p, v):
        return H.exp(p, v)

    def log(self, p, q):
        return H.log(p, q)

    def inner(self, p, u, v):
        return H.inner(p, u, v) / self.a**2

    def transport(self, p, q, v):
        return H.transport(p, q, v)

    def curvature_frame(self, p, v):
        return H.curvature_frame(p, v)

    def violations(self, points, epsilon=2.0**-52):
        return H.violations(points, epsilon)

    def canonical(self, points):
        return H.canonical(points)

    def saturate(self, p, v):
        return H.saturate(p, v)


@pytest.mark.parametrize("parameters", [{}, {"calibration": "paper"}, {"confidence_level": None}])
def test_a_space_that_nobody_knows_is_refused_before_it_is_paid(kind, ledger, parameters):
    space = Outside()
    estimator = kind(space, radius=1.0, ledger=ledger)
    if not set(parameters) <= set(estimator.get_params()):
        return
    points = H.exp_coords(np.broadcast_to(H.origin, (N, 3)), X)
    assert repr(space) in refuse(ledger, estimator.set_params(**parameters), points)


def test_formulas_refuse_spaces_that_they_do_not_know():
    space, moment = Outside(), np.eye(2)
    for formula in (
        lambda: sensitivity.float_log_cap(space, 1.0, 10),
        lambda: sensitivity.float_log_error(space, 1.0, 10),
        lambda: sensitivity.float_radius_limit(space, 10),
        lambda: sensitivity.hessian(space, 1.0, 10),
        lambda: sensitivity.hessian_paper(space, 1.0, 10),
        lambda: hessian_range(space, 1.0),
        lambda: mean_hessian_bound(space, moment, 1.0, 1.0),
        lambda: RiemannianGaussian(space, 1.0),
        lambda: ProjectedGaussian(space, 1.0),
        lambda: RiemannianLaplace(space, 0.1),
    ):
        with pytest.raises(ValueError, match=r"Outside\(a=4.0\)"):
            formula()


# --- mechanisms by name ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["laplace", "", "auto", "Wrapped-Gaussian", None, 3, ["x"]])
def test_no_release_is_drawn_from_a_mechanism_that_nobody_knows(name):
    space = Sphere(2)
    foot = np.eye(3)[0]
    for attempt in (
        lambda: mean_law(name),
        lambda: calibrate(name, space, foot, 0.1, GDP(1.0)),
        lambda: calibrate(name, space, foot, 0.1, GDP(1.0), secure=True),
        lambda: rebuild(name, space, foot, 0.1),
    ):
        with pytest.raises(ValueError, match="the mechanism of a mean must be one of"):
            attempt()


@pytest.mark.parametrize("name", MECHANISMS[1:])
def test_float_safe_noise_is_refused_where_there_is_none(name):
    pytest.importorskip("flint")
    space = Euclidean(2) if name == "wrapped-gaussian" else Sphere(2)
    foot = np.zeros(space.point_shape)
    if mean_law(name).calibrate_secure is not None:
        made = calibrate(name, space, foot, 0.1, GDP(1.0), secure=True)
        assert made.grid is not None
        return
    with pytest.raises(ValueError, match="float-safe noise requires"):
        calibrate(name, space, foot, 0.1, GDP(1.0), secure=True)
