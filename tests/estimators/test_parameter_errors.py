"""Bad parameters: one sentence that names the parameter, the requirement and the value."""

from __future__ import annotations

import re
from math import nextafter, pi

import numpy as np
import pytest

from skdpfrechet import DPFrechetMean, DPFrechetVariance
from skdpfrechet.manifolds import SPDAffineInvariant, Sphere

NORTH = np.array([0.0, 0.0, 1.0])
EYE = np.eye(2)
DATA = {
    "euclidean": np.random.default_rng(0).normal(size=(20, 3)),
    "sphere": np.stack([NORTH] * 20),
    "spd": np.stack([EYE] * 20),
}
VALID = {
    "euclidean": {"radius": 1.0},
    "sphere": {"radius": 1.0, "center": NORTH},
    "spd": {"radius": 1.0},
}
REAL = "{} must be a real number, got {!r}."
UNIT = "{} must lie strictly between 0 and 1, got {!r}."


def row(space, error, message, **parameters):
    """One line of the table; the id is the parameter and its value."""
    label = "-".join(f"{name}={value!r}" for name, value in parameters.items())
    label = re.sub(r" at 0x\w+", "", label)  # ids must agree between test processes
    return pytest.param(space, parameters, error, message, id=f"{space}-{label}"[:80])


def rows(space, name, template, error, values):
    """The same message for several values."""
    return [row(space, error, template.format(name, v), **{name: v}) for v in values]


RADIUS = [
    *rows("spd", "radius", "{} must be positive, got {!r}.", ValueError, [0, -1, -np.inf]),
    *rows("spd", "radius", "{} must be a number, got {!r}.", ValueError, [np.nan]),
    *rows("spd", "radius", "{} must be finite, got {!r}.", ValueError, [np.inf]),
    *rows("spd", "radius", REAL, TypeError, ["a", True, None, [1.0], 1j, np.ones(2)]),
    *rows("spd", "radius", "between 1e-06 and 1e+20 on SPD", ValueError, [1e-9, 1e21]),
    *rows("euclidean", "radius", "between 1e-20 and 1e+20 on Euclid", ValueError, [1e-300, 1e300]),
    *rows(
        "sphere",
        "radius",
        f"{{}} must be below {pi / 2!r}, the curvature limit of Sphere(dim=2) for a unique mean, "
        "got {!r}.",
        ValueError,
        [pi / 2, 1.6, 100],
    ),
]
RADIUS_PAPER = (
    f"radius must be below {pi / 4!r}, the curvature limit of Sphere(dim=2) for the printed "
    "sensitivity, got 0.8."
)
CENTER = [
    row("sphere", ValueError, "use a direction known without the data", center=None),
    row(
        "sphere",
        ValueError,
        "center must have shape (3,) on Sphere(dim=2), got (2,).",
        center=EYE[0],
    ),
    row("sphere", ValueError, "center must have shape (3,) on", center=[NORTH]),
    row("sphere", ValueError, ", which holds unit vectors", center=2 * NORTH),
    row("sphere", ValueError, ", which holds directions of non-zero length", center=0 * NORTH),
    row("sphere", ValueError, "center must be finite", center=[0, np.nan, 1]),
    row("sphere", TypeError, "center must be an array of real numbers, got str.", center="north"),
    row(
        "sphere", TypeError, "center must be an array of real numbers, got list.", center=[0, 0, 1j]
    ),
    row("sphere", ValueError, "center must be a rectangular array", center=[[1], [1, 2]]),
    row("spd", ValueError, "center must have shape (2, 2) on", center=np.eye(3)),
    row("spd", ValueError, ", which holds symmetric matrices", center=[[1.0, 0.5], [0.0, 1.0]]),
    row("spd", ValueError, ", which holds positive definite matrices", center=-EYE),
    row("euclidean", ValueError, "center must be finite", center=[np.inf, 0, 0]),
]
BUDGET = [
    *rows("spd", "mu", "{} must be positive, got {!r}.", ValueError, [0, -1, -np.inf]),
    *rows("spd", "mu", "{} must be a number, got {!r}.", ValueError, [np.nan]),
    *rows("spd", "mu", REAL, TypeError, ["1", None, True, [1.0]]),
    *rows("spd", "mu", "{} must be from 1e-10 to 1e+20", ValueError, [1e-11, 1e-300, 1e21]),
    *rows("spd", "confidence_level", UNIT, ValueError, [0, 1, 1.5, -0.1]),
    *rows("spd", "confidence_level", "{} must be a number, got nan.", ValueError, [np.nan]),
    *rows("spd", "confidence_level", REAL, TypeError, ["0.95", True]),
    *rows(
        "spd",
        "calibration",
        "{} must be one of 'sharp', 'paper', got {!r}.",
        ValueError,
        ["x", None, 1],
    ),
]
CHOICES = [
    *rows("spd", "mechanism", "{} must be one of 'auto', ", ValueError, ["laplace", None, 1]),
    *rows(
        "spd",
        "mechanism",
        "{} '{}' requires a homogeneous space of curvature ≥ 0, got SPD",
        ValueError,
        ["riemannian-gaussian"],
    ),
    *rows(
        "spd", "mechanism", "{} '{}' requires a sphere, got SPD", ValueError, ["projected-gaussian"]
    ),
    *rows(
        "euclidean",
        "mechanism",
        "{} '{}' requires a sphere, got Euclid",
        ValueError,
        ["projected-gaussian"],
    ),
    *rows(
        "sphere",
        "mechanism",
        "{} '{}' requires a simply connected space",
        ValueError,
        ["wrapped-gaussian"],
    ),
    *rows("spd", "random_state", "{} must not be negative, got {!r}.", ValueError, [-1]),
    row(
        "spd",
        TypeError,
        "random_state must be None or an integer (for tests only), got bool.",
        random_state=True,
    ),
    row("spd", TypeError, "got Generator.", random_state=np.random.default_rng(0)),
    row("spd", TypeError, "got RandomState.", random_state=np.random.RandomState(0)),
    row("spd", TypeError, "got float.", random_state=1.0),
    *rows(
        "spd", "manifold", "{} must be one of 'euclidean', 'sphere', ", ValueError, ["SPD", "torus"]
    ),
    row("spd", TypeError, "manifold must be a string or a Manifold, got int.", manifold=1),
    row("spd", TypeError, "manifold must be a string or a Manifold, got NoneType.", manifold=None),
    row(
        "spd",
        TypeError,
        "manifold must be a string or a Manifold, got ABCMeta.",
        manifold=SPDAffineInvariant,
    ),
    row(
        "spd",
        ValueError,
        "X must have shape (n_samples, 3, 3) on SPD",
        manifold=SPDAffineInvariant(3),
    ),
    row(
        "sphere",
        ValueError,
        "X must have shape (n_samples, 5) on Sphere(dim=4), got",
        manifold=Sphere(4),
    ),
]


def assert_raises_one_sentence(estimator, X, error, message):
    with pytest.raises(error) as info:
        estimator.fit(X)
    text = str(info.value)
    assert info.type is error
    assert message in text
    assert text.endswith(".")
    assert ". " not in text
    assert "\n" not in text.replace("\n      ", "")  # but for the value of an array
    assert info.value.__cause__ is None
    assert info.value.__context__ is None or info.value.__suppress_context__
    assert not hasattr(estimator, "mean_")  # nothing was released


@pytest.mark.parametrize("estimator_class", [DPFrechetMean, DPFrechetVariance])
@pytest.mark.parametrize(
    ("space", "parameters", "error", "message"), [*RADIUS, *CENTER, *BUDGET, *CHOICES]
)
def test_bad_parameter(estimator_class, space, parameters, error, message):
    estimator = estimator_class(**{"manifold": space, **VALID[space], **parameters})
    assert_raises_one_sentence(estimator, DATA[space], error, message)


SPLITS = [
    ({}, ValueError, "must have the keys ['mean', {!r}], got {{}}."),
    ({"mean": 0.5}, ValueError, "must have the keys ['mean', {!r}], got "),
    ({"mean": 0.5, "var": 0.5}, ValueError, "must have the keys ['mean', {!r}], got "),
    ({"mean": 0.5, "?": 0.4}, ValueError, "must sum to 1, got "),
    ({"mean": 1.0, "?": 0.5}, ValueError, "['mean'] must lie strictly between 0 and 1, got 1.0."),
    ({"mean": 1.5, "?": -0.5}, ValueError, "['mean'] must lie strictly between 0 and 1, got 1.5."),
    ({"mean": 0.5, "?": 0}, ValueError, "[{!r}] must lie strictly between 0 and 1, got 0."),
    ({"mean": 0.5, "?": np.nan}, ValueError, "[{!r}] must be a number, got nan."),
    ({"mean": 0.5, "?": "0.5"}, TypeError, "[{!r}] must be a real number, got '0.5'."),
    ({"mean": 1e-30, "?": 1.0 - 1e-16}, ValueError, "mu must give every release at least 1e-10"),
    ((0.5, 0.5), TypeError, "must be a dict or None, got tuple."),
    (0.5, TypeError, "must be a dict or None, got float."),
]


@pytest.mark.parametrize(("split", "error", "message"), SPLITS)
@pytest.mark.parametrize(
    ("estimator_class", "key"), [(DPFrechetMean, "second_moment"), (DPFrechetVariance, "variance")]
)
def test_bad_budget_split(estimator_class, key, split, error, message):
    if isinstance(split, dict):
        split = {key if name == "?" else name: share for name, share in split.items()}
    estimator = estimator_class("spd", radius=1.0, budget_split=split)
    message = message.format(key)
    assert_raises_one_sentence(
        estimator,
        DATA["spd"],
        error,
        message if "mu" in message else "budget_split" + " " * (message[0] != "[") + message,
    )


def test_budget_split_of_one_release():
    X = DATA["spd"]
    split = {"mean": 0.5, "second_moment": 0.5}
    estimator = DPFrechetMean("spd", radius=1.0, confidence_level=None, budget_split=split)
    message = "budget_split must be None when the whole budget goes to the mean, got "
    assert_raises_one_sentence(estimator, X, ValueError, message)
    release = DPFrechetMean("spd", radius=1.0).fit(X).release_
    estimator = DPFrechetVariance("spd", radius=1.0, mean=release, budget_split={"variance": 1.0})
    message = "budget_split must be None when the whole budget goes to the variance, got "
    assert_raises_one_sentence(estimator, X, ValueError, message)


def test_budget_split_of_the_paper_has_three_keys():
    split = {"mean": 0.5, "second_moment": 0.5}
    mean = DPFrechetMean("spd", radius=0.7, calibration="paper", budget_split=split)
    message = "must have the keys ['hessian', 'mean', 'second_moment'], got "
    assert_raises_one_sentence(mean, DATA["spd"], ValueError, message)


@pytest.mark.parametrize("estimator_class", [DPFrechetMean, DPFrechetVariance])
def test_radius_has_no_default_and_parameters_are_keywords(estimator_class):
    with pytest.raises(TypeError, match="radius"):
        estimator_class("spd")
    with pytest.raises(TypeError, match="positional"):
        estimator_class("spd", 1.0)


@pytest.mark.parametrize("estimator_class", [DPFrechetMean, DPFrechetVariance])
def test_limits_of_the_radius_are_sharp(estimator_class):
    """The largest float below the limit fits; the limit of the printed recipe is half of it."""
    for calibration, limit in (("sharp", pi / 2), ("paper", pi / 4)):
        parameters = {"center": NORTH, "calibration": calibration, "mu": np.inf}
        below = estimator_class("sphere", radius=nextafter(limit, 0), **parameters)
        below.fit(DATA["sphere"])
    estimator = estimator_class("sphere", radius=0.8, center=NORTH, calibration="paper")
    assert_raises_one_sentence(estimator, DATA["sphere"], ValueError, RADIUS_PAPER)


def test_circle_has_the_limit_of_its_cut_locus():
    X = np.stack([EYE[0]] * 5)
    estimator = DPFrechetMean("sphere", radius=pi / 2, center=EYE[0], calibration="paper")
    assert_raises_one_sentence(estimator, X, ValueError, f"radius must be below {pi / 2!r}")


@pytest.mark.parametrize("reused", ["fitted estimator", "point", "other metric", "other size"])
def test_bad_mean(reused):
    X = DATA["spd"]
    mean = DPFrechetMean("spd", radius=1.0, random_state=0).fit(X)
    kind = "mean must be the release_ of a fitted DPFrechetMean or None, got "
    space = "mean must be a release on SPDAffineInvariant(size=2), got one on "
    value, error, message = {
        "fitted estimator": (mean, TypeError, kind + "DPFrechetMean."),
        "point": (mean.mean_, TypeError, kind + "ndarray."),
        "other metric": (
            DPFrechetMean("logeuclid", radius=1.0).fit(X).release_,
            ValueError,
            space + "SPDLogEuc",
        ),
        "other size": (
            DPFrechetMean("spd", radius=1.0).fit(np.stack([np.eye(3)] * 9)).release_,
            ValueError,
            space + "SPDAffineInvariant(size=3).",
        ),
    }[reused]
    estimator = DPFrechetVariance("spd", radius=1.0, mean=value)
    assert_raises_one_sentence(estimator, X, error, message)
