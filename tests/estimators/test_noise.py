"""The parameter `noise`: what it resolves to, what it costs, and what float-safe fits release."""

from __future__ import annotations

from math import frexp, inf, ldexp, sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2, kstest

from skdpfrechet import DPMDM, DPFrechetMean, DPFrechetVariance, DPPrincipalGeodesics
from skdpfrechet.estimators import _noise
from skdpfrechet.manifolds import Sphere
from skdpfrechet.mechanisms import ProjectedGaussian, _grid
from skdpfrechet.mechanisms._rounded_gaussian import rounded_gaussian

pytest.importorskip("flint")

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(60, 3))
SPHERE = np.array([0, 0, 1]) + 0.3 * RNG.normal(size=(60, 3))
SPHERE /= np.linalg.norm(SPHERE, axis=1, keepdims=True)
MATRICES = np.exp(RNG.normal(scale=0.3, size=(60, 2)))[:, :, None] * np.eye(2)
HYPERBOLOID = np.column_stack([np.sqrt(1 + (VECTORS**2).sum(axis=1)), VECTORS])

EUCLIDEAN = ("euclidean", VECTORS, {"radius": 3.0})
SPD = ("spd", MATRICES, {"radius": 1.5})
HADAMARD = [
    EUCLIDEAN,
    SPD,
    ("logeuclid", MATRICES, {"radius": 1.5}),
    ("logchol", MATRICES, {"radius": 1.5}),
    ("hyperbolic", HYPERBOLOID, {"radius": 2.0}),
]
PROJECTED = (
    "sphere",
    SPHERE,
    {"radius": 1.0, "center": [0, 0, 1], "mechanism": "projected-gaussian"},
)
PRIVATE = [
    ("euclidean", VECTORS, {"radius": "private", "center": "private", "outer_radius": 20.0}),
    ("spd", MATRICES, {"radius": "private", "outer_radius": 5.0}),
    ("sphere", SPHERE, {**PROJECTED[2], "center": "private", "mu": 5.0}),
]
SAFE = [*HADAMARD, PROJECTED]
ESTIMATORS = [DPFrechetMean, DPFrechetVariance]


def fit(kind, case, **more):
    manifold, X, parameters = case
    return kind(manifold, **{**parameters, **more}).fit(X)


def exact(estimator):
    """Whether all noise is exact; what the report says must agree."""
    report = estimator.privacy_
    (kind,) = {release.float_safe for release in report.releases}
    assert report.is_private == kind
    assert len(report.caveats) == (not kind)
    return kind


# --- what the parameter means ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("case", SAFE, ids=lambda case: case[0])
def test_auto_is_secure_where_it_can_be(kind, case):
    assert exact(fit(kind, case))
    assert exact(fit(kind, case, noise="secure"))
    assert not exact(fit(kind, case, noise="float"))


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_auto_is_float_without_the_extra(kind, monkeypatch):
    monkeypatch.setattr(_noise, "has_flint", lambda: False)
    assert not exact(fit(kind, SPD))
    with pytest.raises(ImportError, match=r"skdpfrechet\[secure\]"):
        fit(kind, SPD, noise="secure")


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_spheres(kind):
    """The projected Gaussian wherever its noise is exact, the Riemannian one where it is not."""
    case = ("sphere", SPHERE, {"radius": 0.7, "center": [0, 0, 1]})
    for parameters in ({}, {"noise": "secure"}):
        safe = fit(kind, case, **parameters)
        assert exact(safe)
        assert safe.privacy_.releases[0].mechanism == "projected-gaussian"
    for parameters in (
        {"noise": "float"},
        {"calibration": "paper"},
        {"mechanism": "riemannian-gaussian"},
    ):
        plain = fit(kind, case, **parameters)
        assert not exact(plain)
        assert plain.privacy_.releases[0].mechanism == "riemannian-gaussian"
    assert fit(kind, case, mu=inf).privacy_.releases[0].mechanism == "riemannian-gaussian"


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_spheres_without_the_extra(kind, monkeypatch):
    monkeypatch.setattr(_noise, "has_flint", lambda: False)
    case = ("sphere", SPHERE, {"radius": 1.0, "center": [0, 0, 1]})
    plain = fit(kind, case)
    assert not exact(plain)
    assert plain.privacy_.releases[0].mechanism == "riemannian-gaussian"
    with pytest.raises(ImportError, match=r"skdpfrechet\[secure\]"):
        fit(kind, case, noise="secure")


@pytest.mark.parametrize("level", [0.9, 0.95])
@pytest.mark.parametrize("radius", [0.3, 1.2])
def test_the_region_of_a_sphere_is_as_wide_as_its_noise(level, radius):
    """The tails of a projected normal law are longer than normal ones."""
    X = np.tile([0.0, 0.0, 1.0], (4, 1))
    parameters = {"radius": radius, "center": [0, 0, 1], "mu": 1.0, "confidence_level": level}
    mean = DPFrechetMean("sphere", **parameters).fit(X)
    sigma = mean.release_.scale
    wider = mean._inference.noise_scale / sigma
    assert 1 <= wider < 1.3
    draws = ProjectedGaussian(Sphere(2), sigma).simulate(X[0], 100_000, np.random.default_rng(1))
    angle = np.arccos(draws[:, 2])
    within = (angle <= wider * sigma * sqrt(chi2.ppf(level, 2))).mean()
    # 5.5 standard errors of a share of 100,000: false alarm 2e-8 a side.
    assert within > level - 5.5 * sqrt(level * (1 - level) / 100_000)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_no_privacy_needs_no_noise(kind):
    secure, plain = (fit(kind, SPD, mu=inf, noise=noise) for noise in ("secure", "float"))
    assert not any(report.privacy_.is_private for report in (secure, plain))
    assert_array_equal(secure.mean_, plain.mean_)


def test_paper_is_float():
    assert not exact(fit(DPFrechetMean, SPD, calibration="paper"))


def test_a_reused_mean_does_not_matter_to_the_noise_of_the_variance():
    """It matters to the report: both are published."""
    public = {"radius": 1.0, "center": [0, 0, 1]}
    for noise in ("secure", "float"):
        mean = DPFrechetMean("sphere", **public, confidence_level=None, noise=noise).fit(SPHERE)
        variance = DPFrechetVariance("sphere", **public, mean=mean.release_).fit(SPHERE)
        assert [row.float_safe for row in variance.privacy_.releases] == [True]
        assert variance.privacy_.is_private == (noise == "secure")
        assert ("the reused release" in str(variance.privacy_)) == (noise == "float")


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"noise": "exact"}, r"noise must be one of 'auto', 'float', 'secure', got 'exact'\."),
        ({"noise": None}, "noise must be one of"),
        (
            {"noise": "secure", "calibration": "paper"},
            r"noise='secure' requires calibration='sharp', got 'paper'\.",
        ),
        (
            {"noise": "secure", "mechanism": "riemannian-gaussian"},
            "noise='secure' requires mechanism 'wrapped-gaussian' or 'projected-gaussian', "
            "got 'riemannian-gaussian'",
        ),
    ],
)
def test_errors(kind, parameters, message):
    with pytest.raises(ValueError, match=message):
        kind("euclidean", radius=3.0, **parameters).fit(VECTORS)


def test_estimators_built_on_the_mean_pass_it_on():
    y = np.arange(60) % 2
    for noise, kind in [("secure", True), ("float", False)]:
        assert exact(DPPrincipalGeodesics("spd", radius=1.5, noise=noise).fit(MATRICES)) == kind
        assert exact(DPMDM("spd", radius=1.5, noise=noise).fit(MATRICES, y)) == kind


# --- what it costs --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("case", [*SAFE, *PRIVATE], ids=lambda case: str(sorted(case[2])))
@pytest.mark.parametrize("mu", [0.01, 1.0, 20.0])
def test_rows_keep_their_budget_and_cost_no_more_noise(kind, case, mu):
    secure, plain = (
        fit(kind, case, mu=mu, noise=noise, random_state=0) for noise in ("secure", "float")
    )
    assert len(secure.privacy_.releases) == len(plain.privacy_.releases)
    for a, b in zip(secure.privacy_.releases, plain.privacy_.releases, strict=True):
        assert a.statistic == b.statistic
        assert a.mu == b.mu
        assert a.sensitivity / a.noise_scale <= a.mu * (1 + 1e-15)
    first, other = secure.privacy_.releases[0], plain.privacy_.releases[0]
    assert first.noise_scale < 1.0001 * other.noise_scale


@pytest.mark.parametrize("mu", [0.01, 1.0, 50.0])
@pytest.mark.parametrize("n", [1, 60, 5_000])
def test_noise_is_fine_enough_and_quickly_drawn(n, mu, monkeypatch):
    """In steps of the grid: from 2^40 on ball arithmetic draws it, a hundred times as slow."""
    scales = []

    def record(s, shape, rng):
        scales.extend(np.ravel(s))
        return rounded_gaussian(s, shape, rng)

    monkeypatch.setattr(_grid, "rounded_gaussian", record)
    X = np.resize(VECTORS, (n, 3))
    for kind, count in [(DPFrechetMean, 1 + 6), (DPFrechetVariance, 3)]:
        scales.clear()
        kind("euclidean", radius=3.0, mu=mu, noise="secure").fit(X)
        assert len(scales) == count
        assert min(scales) > 2**12
        assert max(scales) <= 2**38


# --- what is released -----------------------------------------------------------------------------


def step_of(sensitivity, sigma, entries):
    """The rule of docs/mechanisms.md, but for a factor of two at most."""
    largest = 2.0**-20 * min(sensitivity / sqrt(entries), sigma)
    return ldexp(1.0, frexp(largest)[1] - 2)


@pytest.mark.parametrize("mu", [0.01, 1.0, 50.0])
def test_the_mean_is_on_a_grid(mu):
    """Its coordinates about the centre are, here the released point itself."""
    mean = fit(DPFrechetMean, EUCLIDEAN, mu=mu)
    row = mean.privacy_.releases[0]
    steps = mean.mean_ / step_of(row.sensitivity, row.noise_scale, 3)
    assert_array_equal(steps, np.rint(steps))
    plain = fit(DPFrechetMean, EUCLIDEAN, mu=mu, noise="float").mean_
    steps = plain / step_of(row.sensitivity, row.noise_scale, 3)
    assert (steps != np.rint(steps)).any()


@pytest.mark.parametrize("case", SAFE, ids=lambda case: case[0])
def test_the_order_of_records_does_not_reach_the_last_bit(case):
    """Of what is summed over the records: the moments at a released point."""
    manifold, X, parameters = case
    release = fit(DPFrechetMean, case, random_state=0).release_
    results = {"secure": set(), "float": set()}
    for noise, found in results.items():
        for seed in range(10):
            shuffled = X[np.random.default_rng(seed).permutation(len(X))]
            variance = DPFrechetVariance(
                manifold, **parameters, mean=release, noise=noise, random_state=0
            )
            variance.fit(shuffled)
            found.add((variance.variance_, *variance.interval_))
    assert len(results["secure"]) == 1
    assert len(results["float"]) > 1


def test_variance_of_records_at_equal_distances():
    """Rounding moves all squared distances alike. False-alarm rate below 1e-6."""
    n = 1_000_000
    X = np.where(np.arange(n) % 2, 1.2345678, -1.2345678)[:, None]
    model = DPFrechetVariance("euclidean", radius=3.0, mu=20.0, noise="secure", random_state=0)
    model.fit(X)
    (row,) = [row for row in model.privacy_.releases if row.statistic == "variance"]
    assert abs(model.variance_ - 1.2345678**2) < 5 * row.noise_scale


def test_noise_of_the_mean_is_gaussian():
    """500 fits with fixed seeds; over all seeds the false-alarm rate is 1e-6."""
    exact = fit(DPFrechetMean, EUCLIDEAN, mu=inf).mean_
    z = []
    for seed in range(500):
        mean = fit(DPFrechetMean, EUCLIDEAN, confidence_level=None, random_state=seed)
        z.append((mean.mean_ - exact) / mean.release_.scale)
    assert kstest(np.ravel(z), "norm").pvalue > 1e-6


@pytest.mark.parametrize("noise", ["secure", "float"])
@pytest.mark.parametrize("offset", [0.0, 1e6, 1e12, 1e15])
def test_far_from_the_origin_the_sensitivity_holds(offset, noise):
    """Neighbours with equal noise: releases differ by no more than the report says.

    The noise is added in coordinates about the centre, where numbers are small. What comes out is
    rounded to the floats around the offset afterwards, by half a unit of each coordinate at most.
    """
    rng = np.random.default_rng(1)
    center, n, radius = np.full(2, offset), 20, 100.0
    rounding = sqrt(2) * np.spacing(offset + 2 * radius)
    widest = 0.0
    for _ in range(30):
        X = center + rng.uniform(-radius, radius, (n, 2))
        Y = X.copy()
        Y[0] = center + rng.choice([-1e300, -1.0, 1.0, 1e16, 1e300]) * rng.uniform(1, 200, 2)
        fits = [
            DPFrechetMean(
                "euclidean",
                radius=radius,
                center=center,
                confidence_level=None,
                noise=noise,
                random_state=3,
            ).fit(data)
            for data in (X, Y)
        ]
        gap = np.linalg.norm(fits[0].mean_ - fits[1].mean_)
        assert gap <= fits[0].privacy_.releases[0].sensitivity + rounding
        widest = max(widest, gap)
    assert widest > 0.5 * 2 * radius / n


def test_far_from_the_origin_the_mean_is_right():
    center = np.full(3, 1e15)
    shifted = DPFrechetMean("euclidean", radius=200.0, center=center, mu=1e4, noise="secure")
    X = center + np.rint(50 * VECTORS)
    shifted.fit(X)
    assert_allclose(shifted.mean_ - center, np.rint(50 * VECTORS).mean(axis=0), atol=0.5)
