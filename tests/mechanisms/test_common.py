"""The laws of `Mechanism`, over all of them: a new one is tested by one more line of `CASES`."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from copy import deepcopy
from dataclasses import FrozenInstanceError, dataclass, fields, replace
from math import gamma, inf, lgamma, log, nan, pi, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import gammainc

from skdpfrechet._numerics import unvecd, vecd
from skdpfrechet.manifolds import (
    Euclidean,
    Hyperbolic,
    Manifold,
    SPDAffineInvariant,
    SPDLogCholesky,
    SPDLogEuclidean,
    Sphere,
)
from skdpfrechet.mechanisms import (
    Gaussian,
    Grid,
    Mechanism,
    ProjectedGaussian,
    RiemannianGaussian,
    RiemannianLaplace,
    SymmetricGaussian,
    WrappedGaussian,
    _riemannian_gaussian,
)
from skdpfrechet.privacy import GDP, ApproxDP, PureDP
from skdpfrechet.sensitivity import sphere_chord


def some_points(space, seed, *shape):
    """Points about 1 away from the origin; on a sphere, uniform ones."""
    rng = np.random.default_rng(seed)
    if isinstance(space, Sphere):
        return space.canonical(rng.standard_normal((*shape, space.dim + 1)))
    c = rng.standard_normal((*shape, space.dim)) / np.sqrt(space.dim)
    return space.exp_coords(space.origin, c)


@dataclass(frozen=True)
class Case:
    """One mechanism on one space.

    `arguments` are those of the constructor before the scale, `options` those of `calibrate` after
    `guarantee`; `points` makes private values, and `space` holds them; `promise` is the guarantee
    given, and scales from `limit` on do not exist.
    """

    kind: type[Mechanism]
    space: Manifold
    arguments: tuple
    options: tuple = ()
    points: Callable = some_points
    promise: type = GDP
    limit: float = inf

    def __repr__(self):
        return f"{self.kind.__name__}-{self.space!r}"

    def make(self, sigma):
        return self.kind(*self.arguments, sigma)

    def calibrate(self, sensitivity, guarantee):
        public = self.arguments[: len(self.arguments) - len(self.options)]
        return self.kind.calibrate(*public, sensitivity, guarantee, *self.options)

    @property
    def name(self):
        return "scale" if self.kind is RiemannianLaplace else "sigma"

    def scale(self, mechanism):
        return getattr(mechanism, self.name)

    def level(self, mechanism, sensitivity):
        """The parameter of what the mechanism guarantees."""
        guarantee = mechanism.guarantee(sensitivity)
        assert type(guarantee) is self.promise
        return guarantee.epsilon if self.promise is PureDP else guarantee.mu

    def centers(self, *shape):
        return self.points(self.space, 20260517, *shape)


def symmetric_matrices(space, seed, *shape):
    return unvecd(np.random.default_rng(seed).standard_normal((*shape, space.dim)))


def wrapped(space):
    foot = some_points(space, 1)
    return Case(WrappedGaussian, space, (space, foot), (foot,))


WRAPPED = [
    wrapped(Euclidean(2)),
    wrapped(Hyperbolic(2)),
    wrapped(SPDAffineInvariant(2)),
    wrapped(SPDLogEuclidean(2)),
    wrapped(SPDLogCholesky(2)),
]
SPHERES = [Sphere(1), Sphere(2), Sphere(3), Sphere(10)]
ON_SPHERES = [Case(RiemannianGaussian, space, (space,)) for space in SPHERES] + [
    Case(ProjectedGaussian, space, (space,)) for space in SPHERES
]
FLAT = [
    Case(Gaussian, Euclidean(3), ()),
    Case(SymmetricGaussian, Euclidean(3), (), points=symmetric_matrices),
    Case(RiemannianGaussian, Euclidean(2), (Euclidean(2),)),
]
LAPLACE = [
    Case(RiemannianLaplace, space, (space,), promise=PureDP, limit=limit)
    for space, limit in [
        (Euclidean(2), inf),
        (SPDLogEuclidean(2), inf),
        (SPDLogCholesky(2), inf),
        (Sphere(1), inf),
        (Sphere(2), inf),
        (Sphere(10), inf),
        (Hyperbolic(2), 1.0),
        (SPDAffineInvariant(1), inf),
        (SPDAffineInvariant(2), sqrt(2)),
        (SPDAffineInvariant(3), sqrt(1 / 2)),
    ]
]
CASES = FLAT + WRAPPED + ON_SPHERES + LAPLACE


OVER_CASES = pytest.mark.parametrize("case", CASES, ids=repr)  # hypothesis refuses fixtures


@pytest.fixture(params=CASES, ids=repr)
def case(request):
    return request.param


def is_one_sentence(error):
    text = str(error.value)
    return text.endswith(".") and ". " not in text and "\n" not in text


# --- densities ---------------------------------------------------------------------------------


def tensor_grid(half_width, count, dim):
    """Nodes and weight of the trapezoidal rule, which converges exponentially here."""
    t = np.linspace(-half_width, half_width, count)
    return np.stack(np.meshgrid(*[t] * dim, indexing="ij"), axis=-1), (t[1] - t[0]) ** dim


@pytest.mark.parametrize("sigma", [1e-6, 0.1, 0.7, 1.5])
@pytest.mark.parametrize("case", [*WRAPPED, FLAT[2]], ids=repr)
def test_density_integrates_to_one_on_hadamard_spaces(case, sigma):
    # In normal coordinates at the private value, which is not the foot, so that the two volume
    # densities differ. At σ = 1.5 the box ends where float64 does (17 away on the hyperbolic plane,
    # log-eigenvalues of ±15). Curvature pushes at most 1e-10 of the mass out of 8.5σ; rounding of
    # points 1e-6 apart leaves 1e-10.
    space, center = case.space, case.centers()
    c, weight = tensor_grid(8.5 * sigma, 37 if space.dim == 3 else 101, space.dim)
    v = space.from_coords(center, c)
    logs = case.make(sigma).log_density(center, space.exp(center, v))
    total = np.exp(logs + space.log_volume_density(center, v)).sum() * weight
    assert_allclose(total, 1.0, rtol=0, atol=1e-9)


@pytest.mark.parametrize("sigma", [1e-3, 1.0, 1e8])
@pytest.mark.parametrize("case", [*FLAT, WRAPPED[0]], ids=repr)
def test_density_integrates_to_one_on_vectors(case, sigma):
    c, weight = tensor_grid(8 * sigma, 41, case.space.dim)
    x = unvecd(c) if case.kind is SymmetricGaussian else c
    center = case.centers() * sigma
    logs = case.make(sigma).log_density(center, center + x)
    assert_allclose(np.exp(logs).sum() * weight, 1.0, rtol=0, atol=1e-11)


@pytest.mark.parametrize("sigma", [1e-3, 0.05, 0.3, 1.0, 3.0, 50.0, 1e8])
@pytest.mark.parametrize("case", ON_SPHERES, ids=repr)
def test_density_integrates_to_one_on_spheres(case, sigma):
    # The density depends on the distance s alone, hence ∫ f s^{d-1} |D exp| ds = 1/|S^{d-1}| along
    # every direction, in normal coordinates at the centre.
    space, center = case.space, case.centers()
    mode = min(sigma * np.sqrt(space.dim), pi / 2)
    breaks = np.minimum(mode * np.array([0, 0.5, 1, 1.5, 2, 3, 5, 8, 12, 20, 40]), pi)
    breaks = np.unique(np.append(breaks[breaks < pi], min(40 * mode, pi)))
    x, w = np.polynomial.legendre.leggauss(60)
    low, width = breaks[:-1, None], np.diff(breaks)[:, None]
    s, w = (low + width * (x + 1) / 2).ravel(), (width * w / 2).ravel()
    direction = np.random.default_rng(5).standard_normal((7, space.dim))
    direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
    v = space.from_coords(center, s[:, None] * direction[:, None])
    logs = case.make(sigma).log_density(center, space.exp(center, v))
    with np.errstate(under="ignore"):
        mass = np.exp(logs + space.log_volume_density(center, v)) * s ** (space.dim - 1) @ w
    area = 2 * pi ** (space.dim / 2) / gamma(space.dim / 2)
    assert_allclose(area * mass, 1.0, rtol=0, atol=1e-11)


def test_density_broadcasts(case):
    mechanism = case.make(0.4)
    centers, x = case.centers(3), case.centers(2)
    together = mechanism.log_density(np.expand_dims(centers, 1), x)
    assert together.shape == (3, 2)
    for i in range(3):
        for j in range(2):
            alone = mechanism.log_density(centers[i], x[j])
            assert alone.shape == ()
            assert_allclose(alone, together[i, j], rtol=1e-10)


# --- the law of the draws ----------------------------------------------------------------------

DRAWS = 50_000
# Standard errors. 26 cases and 11 float-safe forms at two scales are compared in 10 numbers each,
# 740 in all; a normal variable exceeds 6.2 either way with probability 6e-10, so the false alarm of
# all together is below 5e-7.
LIMIT = 6.2


def proposal(space, theta, count, rng):
    """Coordinates of flat Laplace noise, within the injectivity radius, and their log density."""
    dim, reach = space.dim, space.injectivity_radius
    s = np.empty(0)
    while len(s) < count:
        more = theta * rng.gamma(dim, size=2 * count)
        s = np.append(s, more[more < reach])[:count]
    direction = rng.standard_normal((count, dim))
    direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
    area = log(2) + dim / 2 * log(pi) - lgamma(dim / 2)
    within = 1.0 if reach == inf else gammainc(dim, reach / theta)
    log_density = -s / theta - lgamma(dim) - dim * log(theta) - area - log(within)
    return s[:, None] * direction, log_density


def events(c, typical):
    """Ten events that a draw with coordinates `c` at the private value may belong to."""
    s = np.linalg.norm(c, axis=-1)
    first, last = c[:, 0], c[:, -1]
    return np.stack(
        [
            *(s < factor * typical for factor in (0.3, 0.6, 0.8, 1.0, 1.2, 1.6)),
            *(first < 0, last < -0.5 * typical / np.sqrt(c.shape[-1]), first * last > 0),
            np.ones(len(c), dtype=bool),  # the density integrates to one
        ],
        axis=-1,
    ).astype(float)


def typical_distance(case, sigma):
    """Return about how far draws are from the private value."""
    space = case.space
    if isinstance(space, Sphere):
        s = np.linspace(0.0, pi, 2001)[1:-1]
        tail = -s / sigma if case.promise is PureDP else -((s / sigma) ** 2) / 2
        return np.average(s, weights=np.exp(tail) * np.sin(s) ** (space.dim - 1))
    if case.promise is PureDP:
        return space.dim / (1 / sigma - 1 / case.limit)
    return sigma * sqrt(space.dim)


def gap(case, mechanism, sigma, seed):
    """Return by how many standard errors draws differ from the density, in the worst of the events.

    The probability of an event under the density is found by importance sampling: draws of another
    law, known by a formula of its own, are weighted by the density.
    """
    space, center = case.space, case.centers()
    rng = np.random.default_rng(seed)
    matrices = case.kind is SymmetricGaussian
    typical = typical_distance(case, sigma)
    theta = 1.3 * typical / space.dim
    c, log_q = proposal(space, theta, DRAWS, rng)
    if matrices:
        x, log_volume = center + unvecd(c), 0.0
    else:
        v = space.from_coords(center, c)
        x, log_volume = space.exp(center, v), space.log_volume_density(center, v)
    weights = np.exp(mechanism.log_density(center, x) + log_volume - log_q)
    assert weights.max() < 60  # else the standard errors below could not be trusted
    expected = weights[:, None] * events(c, typical)
    draws = mechanism.simulate(center, DRAWS, rng)
    seen = events(vecd(draws - center) if matrices else space.log_coords(center, draws), typical)
    error = np.sqrt((expected.var(axis=0) + seen.var(axis=0)) / DRAWS)
    return float((np.abs(expected.mean(axis=0) - seen.mean(axis=0)) / error).max())


def some_scales(case):
    if case.limit < inf:
        return [0.2 * case.limit, 0.4 * case.limit]
    return [0.7, 1.5] if isinstance(case.space, Sphere) else [0.2, 0.7]


@pytest.mark.parametrize("which", [0, 1])
def test_draws_follow_the_density(case, which):
    sigma = some_scales(case)[which]
    assert gap(case, case.make(sigma), sigma, 20260518 + which) < LIMIT


GRID_ENTRIES = {Gaussian: 0, WrappedGaussian: 0, ProjectedGaussian: 1}
ON_GRIDS = [case for case in CASES if case.kind in (*GRID_ENTRIES, SymmetricGaussian)]


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("case", ON_GRIDS, ids=repr)
def test_float_safe_draws_follow_the_density(case, which):
    pytest.importorskip("flint")
    sigma = some_scales(case)[which]
    matrices = case.kind is SymmetricGaussian
    entries = 4 if matrices else case.space.dim + GRID_ENTRIES[case.kind]
    mechanism = replace(case.make(sigma), grid=Grid(2.0**-22, entries))
    assert gap(case, mechanism, sigma, 20260520 + which) < LIMIT


@pytest.mark.parametrize("dim", [1, 2, 3, 10])
def test_a_sampler_of_another_law_is_found(dim, monkeypatch):
    """Flat noise carried by exp, for which the theorem is false. On the circle it only winds."""

    def flat(dim, sigma, count, rng):
        return sigma * np.linalg.norm(rng.standard_normal((count, dim)), axis=-1)

    monkeypatch.setattr(_riemannian_gaussian, "sample_sphere_radius", flat)
    space = Sphere(dim)
    case = Case(RiemannianGaussian, space, (space,))
    found = [gap(case, case.make(sigma), sigma, 20260518) for sigma in some_scales(case)]
    assert max(found) > LIMIT


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_noise_of_another_scale_is_found(case):
    """Six per cent more of it, in every mechanism."""
    sigma = min(some_scales(case)[0], 0.2)
    wrong = replace(case.make(sigma), **{case.name: 1.06 * sigma})

    class Mixed:
        log_density = staticmethod(case.make(sigma).log_density)
        simulate = staticmethod(wrong.simulate)

    assert gap(case, Mixed, sigma, 20260518) > LIMIT


# --- guarantees --------------------------------------------------------------------------------


@OVER_CASES
@settings(max_examples=30, deadline=None)
@given(exponent=st.floats(-12, 3), mu_exponent=st.floats(-3, 3))
def test_calibration_keeps_its_promise_and_is_tight(case, exponent, mu_exponent):
    sensitivity = 10.0**exponent
    mu = max(10.0**mu_exponent, sensitivity / (0.99 * case.limit))
    mechanism = case.calibrate(sensitivity, case.promise(mu))
    assert type(mechanism) is case.kind
    assert mu * (1 - 1e-12) <= case.level(mechanism, sensitivity) <= mu


@OVER_CASES
@settings(max_examples=30, deadline=None)
@given(exponent=st.floats(-12, 3), factor=st.floats(1, 100), sigma=st.floats(1e-6, 1e6))
def test_guarantee_is_monotone(case, exponent, factor, sigma):
    sensitivity = 10.0**exponent
    sigma = min(sigma, 0.99 * case.limit / factor)
    base = case.level(case.make(sigma), sensitivity)
    assert case.level(case.make(sigma), factor * sensitivity) >= base
    assert case.level(case.make(factor * sigma), sensitivity) <= base


def test_scale_is_the_sensitivity_over_the_level(case):
    effective = sphere_chord(0.3) if case.kind is ProjectedGaussian else 0.3
    mechanism = case.calibrate(0.3, case.promise(0.7))
    assert_allclose(case.scale(mechanism), effective / 0.7, rtol=1e-15)
    assert_allclose(case.level(case.make(0.2), 0.3), effective / 0.2, rtol=1e-15)


@pytest.mark.parametrize("dim", [1, 2, 10])
def test_ambient_sensitivity_is_never_more_than_the_diameter(dim):
    mechanism = ProjectedGaussian(Sphere(dim), 0.5)
    for sensitivity in (pi, 4.0, 2 * pi, 100.0, inf):
        assert mechanism.guarantee(sensitivity).mu == 4.0
        assert ProjectedGaussian.calibrate(Sphere(dim), sensitivity, GDP(4.0)) == mechanism


def test_no_noise_guarantees_nothing(case):
    assert case.level(case.make(0.0), 0.1) == inf
    assert case.level(case.make(0), 1e-300) == inf
    assert case.scale(case.calibrate(0.1, case.promise(inf))) == 0


def test_a_constant_needs_no_noise(case):
    mechanism = case.calibrate(0.0, case.promise(1.0))
    assert case.scale(mechanism) == 0
    assert case.level(mechanism, 0.0) == 0


@pytest.mark.parametrize("sensitivity", [1e-12, 0.1, 1e3])
def test_perfect_privacy_is_refused(case, sensitivity):
    with pytest.raises(ValueError, match=r"guarantee must have \w+ > 0.* got 0\.0") as caught:
        case.calibrate(sensitivity, case.promise(0.0))
    assert is_one_sentence(caught)


@pytest.mark.parametrize("sensitivity", [inf, nan])
@pytest.mark.parametrize("case", [c for c in CASES if c.kind is not ProjectedGaussian], ids=repr)
def test_unbounded_sensitivity_is_refused(case, sensitivity):
    with pytest.raises(ValueError, match=r"sensitivity must be (finite|a number)") as caught:
        case.calibrate(sensitivity, case.promise(1.0))
    assert is_one_sentence(caught)


def test_meaningless_sensitivities_are_refused(case):
    with pytest.raises(ValueError, match="must"):
        case.calibrate(nan, case.promise(1.0))
    with pytest.raises(ValueError, match="must not be negative"):
        case.calibrate(-1.0, case.promise(1.0))
    for sensitivity in (nan, -1.0):
        with pytest.raises(ValueError, match="must"):
            case.make(0.5).guarantee(sensitivity)


@pytest.mark.parametrize("guarantee", [GDP(1.0), PureDP(1.0), ApproxDP(1.0, 1e-6), 1.0, None])
def test_other_guarantees_are_refused(case, guarantee):
    if type(guarantee) in (case.promise, *((ApproxDP,) if case.promise is GDP else ())):
        assert case.scale(case.calibrate(0.1, guarantee)) > 0
        return
    with pytest.raises(TypeError, match=f"guarantee must be a {case.promise.__name__}") as caught:
        case.calibrate(0.1, guarantee)
    assert type(guarantee).__name__ in str(caught.value)
    assert is_one_sentence(caught)


@pytest.mark.parametrize(
    ("sigma", "error"),
    [
        (-1e-300, ValueError),
        (-1.0, ValueError),
        (nan, ValueError),
        (inf, ValueError),
        ("1", TypeError),
        (None, TypeError),
        (True, TypeError),
        (1j, TypeError),
    ],
)
def test_bad_scales_are_refused(case, sigma, error):
    with pytest.raises(error, match=f"^{case.name} must ") as caught:
        case.make(sigma)
    assert is_one_sentence(caught)


HADAMARD = [Hyperbolic(1), Hyperbolic(2), SPDAffineInvariant(1), SPDAffineInvariant(2)]
UNCOVERED = [
    *((RiemannianGaussian, space, "wrapped-gaussian") for space in HADAMARD),
    *((WrappedGaussian, space, "riemannian-gaussian") for space in SPHERES),
    *(
        (ProjectedGaussian, space, "wrapped-gaussian")
        for space in [*HADAMARD, Euclidean(2), SPDLogEuclidean(2), SPDLogCholesky(2)]
    ),
]


@pytest.mark.parametrize(("kind", "space", "instead"), UNCOVERED)
def test_pairs_without_a_theorem_are_refused(kind, space, instead):
    foot = () if kind is not WrappedGaussian else (np.ones(space.point_shape),)
    name = {
        RiemannianGaussian: "riemannian-gaussian",
        WrappedGaussian: "wrapped-gaussian",
        ProjectedGaussian: "projected-gaussian",
    }[kind]
    for attempt in (
        lambda: kind(space, *foot, 0.1),
        lambda: kind(space, *foot, 0.0),
        lambda: kind.calibrate(space, 0.1, GDP(1.0), *foot),
        lambda: kind.calibrate(space, 0.1, GDP(inf)),
    ):
        with pytest.raises(ValueError, match=f"^mechanism '{name}' requires .* got ") as caught:
            attempt()
        assert repr(space) in str(caught.value)
        assert f"use '{instead}' there" in str(caught.value)
        assert is_one_sentence(caught)


@pytest.mark.parametrize("space", [SPDLogEuclidean(2), SPDLogCholesky(3), Euclidean(1)], ids=repr)
def test_flat_spaces_are_covered_twice(space):
    # One law, two descriptions: a Riemannian Gaussian of a flat space is a wrapped one.
    center, x = some_points(space, 2), some_points(space, 3, 4)
    riemannian = RiemannianGaussian.calibrate(space, 0.2, GDP(0.5))
    tangent = WrappedGaussian.calibrate(space, 0.2, GDP(0.5))
    assert riemannian.sigma == tangent.sigma
    assert_allclose(
        riemannian.log_density(center, x), tangent.log_density(center, x), rtol=0, atol=1e-9
    )
    one = riemannian.release(center, np.random.default_rng(0))
    other = tangent.release(center, np.random.default_rng(0))
    assert_allclose(one, other, rtol=1e-9)


# --- releases ----------------------------------------------------------------------------------


def test_without_noise_the_value_is_released(case):
    centers = case.centers(4, 3)
    for mechanism in (case.make(0.0), case.calibrate(0.1, case.promise(inf))):
        released = mechanism.release(centers, np.random.default_rng(0))
        assert released.shape == centers.shape
        # Points have condition below e^4 here, which exp(foot, log(foot, .)) may lose.
        assert_allclose(released, centers, rtol=0, atol=1e-13 * np.exp(4))


@pytest.mark.parametrize("batch", [(), (1,), (5,), (2, 3), (0,)])
@pytest.mark.parametrize("sigma", [0.0, 1e-3, 0.5, 30.0])
def test_releases_are_batched(case, batch, sigma):
    sigma = min(sigma, 0.99 * case.limit)
    centers = case.centers(*batch)
    released = case.make(sigma).release(centers, np.random.default_rng(1))
    assert isinstance(released, np.ndarray)
    assert released.shape == centers.shape
    assert released.dtype == np.float64
    assert np.isfinite(released).all()
    if sigma > 0 and released.size:
        # Independent noise for each of the batch.
        different = released.reshape(-1, *centers.shape[len(batch) :])
        noise = different - centers.reshape(different.shape)
        assert (np.abs(noise).reshape(len(noise), -1).max(axis=1) > 0).all()
        assert len(np.unique(noise.reshape(len(noise), -1), axis=0)) == len(noise)


def test_releases_stay_on_the_space(case):
    if case.kind is SymmetricGaussian:
        released = case.make(2.0).release(case.centers(100), np.random.default_rng(2))
        assert_array_equal(released, np.swapaxes(released, -1, -2))
        return
    for sigma in (1e-9, 0.1, 1.0, 5.0):
        mechanism = case.make(min(sigma, 0.99 * case.limit))
        released = mechanism.release(case.centers(100), np.random.default_rng(2))
        assert case.space.contains(released).all()


def test_equal_generators_give_equal_releases(case):
    mechanism, centers = case.make(0.5), case.centers(6)
    first = mechanism.release(centers, np.random.default_rng(8))
    assert_array_equal(mechanism.release(centers, np.random.default_rng(8)), first)
    assert (mechanism.release(centers, np.random.default_rng(9)) != first).any()
    rng = np.random.default_rng(8)
    mechanism.release(centers, rng)
    assert (mechanism.release(centers, rng) != first).any()


def test_simulations_are_releases_of_a_repeated_value(case):
    center, count = case.centers(), 7
    mechanism = case.make(0.3)
    draws = mechanism.simulate(center, count, np.random.default_rng(3))
    repeated = np.broadcast_to(center, (count, *center.shape))
    releases = mechanism.release(repeated, np.random.default_rng(3))
    assert_allclose(draws, releases, rtol=1e-12, atol=1e-12)
    assert len(np.unique(draws.round(9), axis=0)) > 1


def test_noise_does_not_use_the_global_generator(case):
    state = np.random.get_state(legacy=False)  # noqa: NPY002
    case.make(0.5).release(case.centers(6), np.random.default_rng(8))
    after = np.random.get_state(legacy=False)  # noqa: NPY002
    assert_array_equal(after["state"]["key"], state["state"]["key"])
    assert after["state"]["pos"] == state["state"]["pos"]


@pytest.mark.parametrize("sigma", [0.0, 0.5])
def test_inputs_are_left_alone(case, sigma):
    mechanism, centers = case.make(sigma), case.centers(6)
    kept = centers.copy()
    centers.setflags(write=False)
    released = mechanism.release(centers, np.random.default_rng(0))
    mechanism.guarantee(0.1)
    assert not np.shares_memory(released, centers)
    if sigma > 0:
        mechanism.log_density(centers, released)
    assert_array_equal(centers, kept)
    if case.kind is WrappedGaussian:
        assert_array_equal(mechanism.foot, case.arguments[1])


# --- instances ---------------------------------------------------------------------------------


def test_mechanisms_are_frozen(case):
    mechanism = case.make(0.5)
    assert isinstance(mechanism, Mechanism)
    for name in (case.name, "manifold", "anything"):
        with pytest.raises(FrozenInstanceError):
            setattr(mechanism, name, 0.1)


def test_mechanisms_are_values(case):
    mechanism = case.make(0.5)
    for copy in (pickle.loads(pickle.dumps(mechanism)), deepcopy(mechanism)):
        assert type(copy) is case.kind
        assert repr(copy) == repr(mechanism)
        for field in fields(mechanism):
            assert_array_equal(getattr(copy, field.name), getattr(mechanism, field.name))
        centers = case.centers(3)
        assert_array_equal(
            copy.release(centers, np.random.default_rng(0)),
            mechanism.release(centers, np.random.default_rng(0)),
        )
        if case.kind is not WrappedGaussian:  # its foot is an array
            assert copy == mechanism
            assert hash(copy) == hash(mechanism)


def test_the_foot_is_the_origin_by_default():
    for case in WRAPPED:
        mechanism = WrappedGaussian.calibrate(case.space, 0.1, GDP(1.0))
        assert_array_equal(mechanism.foot, case.space.origin)
