"""What `PrivacyUtilityDisplay` plans, shows and refuses."""

import sys
from math import sqrt

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from skdpfrechet import DPFrechetMean, DPFrechetVariance
from skdpfrechet.manifolds import Euclidean, Hyperbolic, SPDAffineInvariant, SPDLogEuclidean, Sphere
from skdpfrechet.plotting import PrivacyUtilityDisplay

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(200, 2))


def fit(mu, estimator=DPFrechetMean, **parameters):
    return estimator(radius=4.0, mu=mu, **parameters).fit(VECTORS)


@pytest.mark.parametrize(
    ("space", "parameters"),
    [
        (Euclidean(3), {}),
        (Sphere(2), {}),
        (Sphere(2), {"mechanism": "projected-gaussian"}),
        (Sphere(2), {"mechanism": "riemannian-gaussian-exact"}),
        (Sphere(2), {"calibration": "paper"}),
        (Hyperbolic(2), {}),
        (SPDAffineInvariant(2), {"budget_split": {"mean": 0.5, "second_moment": 0.5}}),
        (SPDLogEuclidean(2), {"calibration": "paper"}),
    ],
    ids=str,
)
def test_the_plan_is_the_noise_of_the_fit(space, parameters):
    center = np.eye(space.dim + 1)[-1] if space.origin is None else space.origin
    X = space.exp_coords(center, RNG.normal(scale=0.2, size=(40, space.dim)))
    budgets = [0.5, 1.0, 4.0]
    plan = PrivacyUtilityDisplay.from_public(
        space, radius=0.7, n_samples=40, mu=budgets, **parameters
    )
    assert list(plan.curves) == ["noise"]
    for mu, noise in zip(budgets, plan.curves["noise"], strict=True):
        mean = DPFrechetMean(space, radius=0.7, center=center, mu=mu, **parameters).fit(X)
        assert noise / sqrt(space.dim) == pytest.approx(mean.release_.scale, rel=1e-3)


def test_the_plan_is_the_effective_radius_of_large_samples():
    """n = 20,000 and spread √3: the sampling error of the second moment, √(2/n), is 1%, and its
    noise, (2r)²/(nμ) = .005 of 1, half of that. 5% is five times both; seeds are fixed."""
    X = np.random.default_rng(1).normal(size=(20_000, 3))
    plan = PrivacyUtilityDisplay.from_public(
        Euclidean(3), radius=5.0, n_samples=20_000, mu=[0.1, 1.0], spread=sqrt(3)
    )
    for mu, radius in zip(plan.mu, plan.curves["noise and sampling"], strict=True):
        mean = DPFrechetMean(radius=5.0, mu=mu, random_state=0).fit(X)
        assert mean.confidence_region_.effective_radius == pytest.approx(radius, rel=0.05)


def test_the_plan_adds_noise_and_sampling():
    plan = PrivacyUtilityDisplay.from_public(
        SPDAffineInvariant(3), radius=2.0, n_samples=400, spread=0.8
    )
    both, noise, sampling = plan.curves.values()
    np.testing.assert_allclose(sampling, 0.8 / 20)
    np.testing.assert_allclose(both**2, noise**2 + sampling**2)
    assert (np.diff(noise) < 0).all()
    assert plan.ball_.get_ydata()[0] == 2.0
    assert [line.get_label() for line in plan.lines_] == list(plan.curves)


def test_from_estimators_draws_the_released_regions_in_order_of_mu():
    fits = [fit(0.8), fit(0.6)]
    display = PrivacyUtilityDisplay.from_estimators(fits, label="sharp")
    (line,) = display.lines_
    np.testing.assert_array_equal(line.get_xdata(), [0.6, 0.8])
    sizes = [each.confidence_region_.effective_radius for each in fits[::-1]]
    np.testing.assert_array_equal(line.get_ydata(), sizes)
    assert line.get_label() == "sharp, together 1-GDP"
    assert display.ax_.get_ylabel() == "effective radius"
    assert display.ball_ is None


def test_from_estimators_draws_the_length_of_intervals():
    fits = [fit(mu, DPFrechetVariance, random_state=0) for mu in (1.0, 2.0)]
    display = PrivacyUtilityDisplay.from_estimators(fits)
    ((label, values),) = display.curves.items()
    np.testing.assert_allclose(values, [high - low for low, high in (f.interval_ for f in fits)])
    assert label.endswith("-GDP, void")
    assert display.quantity == "length of the interval"


def test_a_reused_mean_counts():
    mean = fit(0.6)
    variance = fit(0.8, DPFrechetVariance, mean=mean.release_)
    display = PrivacyUtilityDisplay.from_estimators([variance])
    assert display.mu == pytest.approx([1.0])


def test_plan_and_releases_share_axes():
    plan = PrivacyUtilityDisplay.from_public(Euclidean(2), radius=4.0, n_samples=200, spread=1.4)
    display = PrivacyUtilityDisplay.from_estimators([fit(0.5), fit(1.0)], ax=plan.ax_)
    assert display.ax_ is plan.ax_
    assert display.figure_ is plan.figure_
    assert len(plt.get_fignums()) == 1
    lines = plan.lines_ + display.lines_
    assert len({line.get_color() for line in lines}) == len(lines)
    assert len(plan.ax_.get_legend().get_texts()) == len(lines) + 1
    display.figure_.canvas.draw()


def test_plot_returns_self_and_stores_what_it_was_given():
    curves = {"a": [1.0, 0.5], "b": [2.0, 1.5]}
    display = PrivacyUtilityDisplay([0.5, 1.0], curves, quantity="degrees")
    assert display.curves is curves
    assert display.plot() is display
    assert display.ax_.get_ylabel() == "degrees"
    assert display.ax_.get_xscale() == display.ax_.get_yscale() == "log"


def test_exact_fits_are_no_releases():
    with pytest.raises(ValueError, match="finite budgets, got mu=inf"):
        PrivacyUtilityDisplay.from_estimators([fit(1.0), fit(np.inf)])
    assert plt.get_fignums() == []


def test_what_is_no_list_of_fits_of_one_kind_is_refused():
    with pytest.raises(NotFittedError):
        PrivacyUtilityDisplay.from_estimators([DPFrechetMean(radius=1.0)])
    with pytest.raises(NotFittedError):
        PrivacyUtilityDisplay.from_estimators([DPFrechetVariance(radius=1.0)])
    with pytest.raises(TypeError, match="all of means or all of variances"):
        PrivacyUtilityDisplay.from_estimators([fit(1.0), fit(1.0, DPFrechetVariance)])
    with pytest.raises(ValueError, match="at least one estimator"):
        PrivacyUtilityDisplay.from_estimators([])
    with pytest.raises(AttributeError, match="interval_ requires a confidence_level"):
        PrivacyUtilityDisplay.from_estimators([fit(1.0, DPFrechetVariance, confidence_level=None)])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"manifold": "spd"}, TypeError, "manifold must be a Manifold"),
        ({"n_samples": 0}, ValueError, "n_samples must be at least 1"),
        ({"radius": -1.0}, ValueError, "radius must be positive"),
        ({"manifold": Sphere(2), "radius": 2.0}, ValueError, "radius must be below"),
        ({"mu": [0.0, 1.0]}, ValueError, "mu must be positive"),
        ({"mu": [1.0, np.inf]}, ValueError, "mu must be finite"),
        ({"spread": -1.0}, ValueError, "spread must not be negative"),
        ({"mechanism": "projected-gaussian"}, ValueError, "requires a sphere"),
        ({"calibration": "blunt"}, ValueError, "calibration must be one of"),
    ],
)
def test_a_plan_without_a_theorem_is_refused(arguments, error, message):
    public = {"manifold": SPDAffineInvariant(2), "radius": 1.0, "n_samples": 50} | arguments
    with pytest.raises(error, match=message):
        PrivacyUtilityDisplay.from_public(public.pop("manifold"), **public)
    assert plt.get_fignums() == []


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"skdpfrechet\[plot\]"):
        PrivacyUtilityDisplay.from_public(Euclidean(2), radius=1.0, n_samples=50)
