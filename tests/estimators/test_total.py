"""Valid records never make a fit raise, whatever they are."""

from __future__ import annotations

import warnings
from math import pi

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skdpfrechet import (
    DPMDM,
    DPFrechetMean,
    DPFrechetVariance,
    DPPrincipalGeodesics,
    _kernels,
    sensitivity,
)
from skdpfrechet._solvers import Sample
from skdpfrechet._solvers import _frechet_mean as solver
from skdpfrechet.estimators import _private_mean
from skdpfrechet.manifolds import (
    Euclidean,
    Hyperbolic,
    SPDAffineInvariant,
    SPDLogCholesky,
    SPDLogEuclidean,
    Sphere,
)

SPACES = [
    *[Sphere(d) for d in (1, 2, 3, 5)],
    *[SPDAffineInvariant(p) for p in (1, 2, 4)],
    *[Hyperbolic(d) for d in (1, 3)],
    SPDLogEuclidean(3),
    SPDLogCholesky(3),
    Euclidean(2),
]
ESTIMATORS = [DPFrechetMean, DPFrechetVariance, DPPrincipalGeodesics, DPMDM]


def center_of(space):
    return np.eye(space.dim + 1)[-1] if isinstance(space, Sphere) else space.origin


def extremes(space, radius):
    """Legal records of every unkind sort."""
    center, axes = center_of(space), np.concatenate([np.eye(space.dim), -np.eye(space.dim)])
    yield center
    for factor in (1 - 1e-12, 1.0, 1 + 1e-12, 1e-9):
        yield from space.exp_coords(center, factor * radius * axes)
    if isinstance(space, Sphere):
        yield -center
        yield space.exp_coords(-center, 1e-9 * axes[0])
        yield space.exp_coords(center, pi / 2 * axes[-1])
    elif isinstance(space, Hyperbolic):
        yield space.exp_coords(center, 16.0 * axes[0])
    elif isinstance(space, Euclidean):
        yield 1e300 * axes[0]
        yield 5e-324 * axes[0]
    else:
        size = space.size
        dense = np.full((size, size), 1 - 1e-13)
        np.fill_diagonal(dense, 1.0)
        yield dense
        for scale in (1e300, 1e-300):
            yield scale * np.eye(size)
            yield np.diag([scale, *[1.0] * (size - 1)])
            yield np.sqrt(scale) * dense


@st.composite
def fits(draw):
    space = draw(st.sampled_from(SPACES))
    if isinstance(space, Sphere):
        radius = draw(st.sampled_from([1e-6, 0.3, 1.2, 1.5, 1.562, 1.565, 1.57, 1.5707]))
    else:
        radius = draw(st.sampled_from([1e-5, 1.0, 5.0, 9.0]))
    pool = np.stack(list(extremes(space, radius)))
    kinds = draw(st.lists(st.integers(0, len(pool) - 1), min_size=1, max_size=4))
    n = draw(st.sampled_from([4, 5, 64]))
    counts = draw(st.lists(st.integers(0, len(kinds) - 1), min_size=n, max_size=n))
    rows = np.array(kinds)[counts]
    groups = None
    if draw(st.booleans()):
        groups = np.arange(n) // 2
    estimator = draw(st.sampled_from(ESTIMATORS))
    return space, radius, pool[rows], groups, estimator, draw(st.sampled_from([0.5, 1e6]))


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(fits())
def test_no_valid_records_make_a_fit_raise(case):
    space, radius, X, groups, estimator, mu = case
    model = estimator(space, radius=radius, center=center_of(space), mu=mu, noise="float")
    arguments = {"groups": groups}
    if estimator is DPMDM:
        arguments["y"] = np.arange(len(X)) % 2
    with warnings.catch_warnings(), _kernels.kernels("numpy"):
        warnings.simplefilter("error")
        model.fit(X, **arguments)
    released = model.means_ if estimator is DPMDM else model.mean_
    assert np.asarray(space.contains(released)).all()


def test_extremes_with_kernels():
    for space in (Sphere(2), SPDAffineInvariant(2), Hyperbolic(3)):
        for radius in (0.3, 1.5, 1.5707) if isinstance(space, Sphere) else (1.0, 9.0):
            pool = np.stack(list(extremes(space, radius)))
            for i in range(len(pool)):
                X = np.concatenate([np.repeat(pool[i][None], 40, axis=0), pool])
                DPFrechetMean(space, radius=radius, center=center_of(space)).fit(X)


# --- one record and the certificate ---------------------------------------------------------------


def two_clusters(radius, n):
    """Two clusters almost opposite each other at the rim of a hemisphere, and one record changed.

    With r = 1.57 and n = 400 the fast iteration does not solve the first data set, but the second.
    """
    sphere, north = Sphere(2), np.array([0.0, 0.0, 1.0])
    angle = np.where(np.arange(n) < n // 2, 0.0, pi + 1e-3)
    c = radius * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    X = sphere.exp_coords(north, c)
    neighbour = X.copy()
    neighbour[0] = sphere.exp_coords(north, radius * np.array([0.0, 1.0]))
    return X, neighbour, north


@pytest.mark.parametrize("kernels", ["numpy", "numba"])
@pytest.mark.parametrize(("radius", "n"), [(1.57, 400), (1.57, 10), (1.5707, 64), (1.55, 100)])
def test_no_record_decides_whether_a_hemisphere_has_a_mean(radius, n, kernels):
    if kernels == "numba" and not _kernels.compiled():
        pytest.skip("no numba")
    *data, north = two_clusters(radius, n)
    for X in data:
        with _kernels.kernels(kernels):
            fitted = DPFrechetMean("sphere", radius=radius, center=north, noise="float").fit(X)
        stated = fitted.privacy_.releases[0].sensitivity
        assert stated == pytest.approx(sensitivity.computed_mean(Sphere(2), radius, n))


class Stuck(Sample):
    """The fast iterations end where they begin."""

    def mean(self, start, radius, tolerance, max_iter):
        return start, np.array(np.inf)

    def improve(self, begin, start, radius, tolerance, max_iter):
        return begin, np.array(np.inf)


def spied(monkeypatch, sample_type=None):
    """Return a list that will hold what the mean was before noise."""
    found, original = [], _private_mean.point_of_ball

    def spy(sample, start, **options):
        if sample_type is not None:
            sample = sample_type(sample.manifold, sample.points)
        found.append(original(sample, start, **options))
        return found[-1]

    monkeypatch.setattr(_private_mean, "point_of_ball", spy)
    return found


@pytest.mark.parametrize(
    ("space", "radius"),
    [(Sphere(2), 1.2), (Sphere(2), 1.45), (SPDAffineInvariant(2), 3.0), (Hyperbolic(2), 3.0)],
    ids=repr,
)
def test_a_fit_keeps_its_promise_without_fast_solvers(space, radius, monkeypatch):
    rng, n = np.random.default_rng(0), 40
    c = rng.standard_normal((n, space.dim))
    X = space.exp_coords(center_of(space), radius * c / np.linalg.norm(c, axis=-1, keepdims=True))
    quick = spied(monkeypatch)
    DPFrechetMean(space, radius=radius, center=center_of(space)).fit(X)
    slow = spied(monkeypatch, Stuck)
    DPFrechetMean(space, radius=radius, center=center_of(space)).fit(X)
    slack = sensitivity.mean_slack(space, radius, n)
    assert float(space.dist(quick[0], slow[-1])) <= slack


def test_where_nothing_is_proved_the_report_says_so():
    X, _, north = two_clusters(1.565, 1000)
    note = "no descent of 1,000,000 passes is proved"
    for estimator in (DPFrechetMean, DPFrechetVariance, DPPrincipalGeodesics):
        report = estimator("sphere", radius=1.565, center=north, noise="float").fit(X).privacy_
        assert report.releases[0].sensitivity == pytest.approx(2 * 1.565)
        assert any(note in line for line in report.notes)
    # A hundred records would not do better with a proof.
    for radius, count in ((1.565, 100), (1.5, 1000)):
        fitted = DPFrechetMean("sphere", radius=radius, center=north, noise="float").fit(X[:count])
        assert not any(note in line for line in fitted.privacy_.notes)
    exact = DPFrechetMean("sphere", radius=1.565, center=north, mu=np.inf).fit(X)
    assert not any(note in line for line in exact.privacy_.notes)


def test_a_reused_mean_needs_no_proof():
    X, _, north = two_clusters(1.565, 1000)
    options = {"radius": 1.565, "center": north, "noise": "float"}
    mean = DPFrechetMean("sphere", **options).fit(X)
    variance = DPFrechetVariance("sphere", mean=mean.release_, **options).fit(X)
    assert not any("proved" in line for line in variance.privacy_.notes)


def test_no_descent_follows_where_the_sensitivity_is_the_diameter(monkeypatch):
    """One record would make such a fit slow otherwise."""

    def fail(*arguments, **options):
        raise AssertionError("a descent")

    monkeypatch.setattr(solver, "descend_in_ball", fail)
    *data, north = two_clusters(1.57, 400)
    for X in data:
        DPFrechetMean("sphere", radius=1.57, center=north, noise="float").fit(X)
