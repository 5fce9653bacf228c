"""Compiled samples compute what the reference computes, for any number of threads."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skdpfrechet import _kernels
from skdpfrechet._solvers import Sample, enter_ball, frechet_mean, load
from skdpfrechet.manifolds import Hyperbolic, SPDAffineInvariant, Sphere

pytest.importorskip("numba")

SPACES = [
    *(SPDAffineInvariant(p) for p in (2, 3, 5, 8, 9, 16, 40)),
    *(Sphere(d) for d in (1, 2, 5, 15, 16, 40, 200)),
    *(Hyperbolic(d) for d in (1, 2, 7)),
]


@pytest.fixture(params=SPACES, ids=repr)
def space(request):
    return request.param


@pytest.fixture
def rng():
    return np.random.default_rng(20261130)


def center_of(space):
    return np.eye(space.dim + 1)[-1] if isinstance(space, Sphere) else space.origin


def records(space, rng, n, radius, replications=()):
    c = rng.standard_normal((*replications, n, space.dim))
    length = radius * rng.random((*replications, n, 1))
    c *= length / np.linalg.norm(c, axis=-1, keepdims=True)
    return space.exp_coords(center_of(space), c)


@pytest.mark.parametrize("radius", [1e-3, 1.0, 1.4])
def test_samples_agree(space, rng, radius):
    X = records(space, rng, 37, radius)
    base = space.exp_coords(center_of(space), 0.2 * rng.standard_normal(space.dim) / space.dim)
    middle = np.zeros(space.dim) if isinstance(space, Sphere) else 0.1 * np.eye(space.dim)[0]
    with _kernels.kernels("numba"):
        compiled = load(space, X)
    reference = Sample(space, X)
    assert type(compiled) is not Sample
    assert compiled.n == reference.n == 37
    assert_array_equal(compiled.points, X)
    squares = reference.squared_distances(base)
    assert_allclose(compiled.squared_distances(base), squares, rtol=1e-9, atol=1e-18)
    args = (base, middle, 0.8 * radius)  # some are clipped
    moment = reference.second_moment(*args)
    assert_allclose(compiled.second_moment(*args), moment, rtol=0, atol=1e-9 * np.trace(moment))
    assert_allclose(compiled.coordinates(*args), reference.coordinates(*args), rtol=0, atol=1e-11)


@pytest.mark.parametrize("radius", [1e-3, 1.0, 1.5])
def test_means_agree(space, rng, radius):
    X, start = records(space, rng, 60, radius), center_of(space)
    options = {"radius": 1.55, "tolerance": 0.0, "accept": 1e-9}
    with _kernels.kernels("numpy"):
        expected = frechet_mean(space, X, start, **options)
    with _kernels.kernels("numba"):
        assert_allclose(frechet_mean(space, X, start, **options), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("space", [SPDAffineInvariant(3), Sphere(2), Sphere(30)], ids=repr)
def test_replications_are_solved_alone(space, rng):
    X = records(space, rng, 50, 1.2, replications=(2, 3))
    with _kernels.kernels("numba"):
        together = frechet_mean(space, X, center_of(space), radius=1.3, tolerance=1e-12)
        for i, j in np.ndindex(2, 3):
            alone = frechet_mean(space, X[i, j], center_of(space), radius=1.3, tolerance=1e-12)
            assert_array_equal(together[i, j], alone)


@pytest.mark.parametrize(
    ("space", "n"),
    [(SPDAffineInvariant(5), 40_000), (SPDAffineInvariant(12), 4_000), (Sphere(2), 400_000)],
    ids=repr,
)
def test_threads_change_no_bit(space, n, rng):
    X, start = records(space, rng, n, 1.0), center_of(space)
    results = []
    for count in (1, 2, 3):
        with _kernels.kernels("numba"), _kernels.threads(count):
            sample = load(space, X)
            mean = frechet_mean(space, sample, start, radius=1.2, tolerance=1e-10)
            moment = sample.second_moment(mean, np.zeros(space.dim), 2.0)
            results.append((mean, moment, sample.squared_distances(mean)))
    for other in results[1:]:
        for left, right in zip(results[0], other, strict=True):
            assert_array_equal(left, right)


@pytest.mark.parametrize("p", [2, 5, 12])
@pytest.mark.parametrize("spread", [8.0, 15.0, 30.0])
def test_logarithms_beyond_the_kernels_fall_back(p, spread, rng):
    """At |log λ| up to 30 the reference itself keeps few digits: both must agree to those."""
    space = SPDAffineInvariant(p)
    values = np.exp(spread * rng.uniform(-1, 1, (40, p)))
    X = values[:, :, None] * np.eye(p)  # diagonal: the mean is known exactly
    with _kernels.kernels("numba"):
        mean = frechet_mean(space, X, np.eye(p), tolerance=1e-9, accept=1e-7)
        squares = load(space, X).squared_distances(np.eye(p))
    assert_allclose(np.log(np.diag(mean)), np.log(values).mean(axis=0), rtol=0, atol=1e-6)
    assert_allclose(squares, (np.log(values) ** 2).sum(axis=1), rtol=1e-9)


def test_condition_numbers_of_1e12(rng):
    space, p = SPDAffineInvariant(4), 4
    w = np.exp(np.linspace(0, np.log(1e12), p))
    q = np.linalg.qr(rng.standard_normal((p, p)))[0]
    common = (q * np.sqrt(w)) @ q.T
    core = records(space, rng, 50, 1.0)
    X = common @ core @ common
    X = (X + X.swapaxes(1, 2)) / 2
    with _kernels.kernels("numba"):
        mean = frechet_mean(space, X, common @ common, tolerance=1e-7, accept=1e-4)
        expected = common @ frechet_mean(space, core, np.eye(p), tolerance=1e-12) @ common
    assert space.dist(expected, mean) < 1e-3  # ε times the condition number


@pytest.mark.parametrize("n", [5, 16, 37])
@pytest.mark.parametrize("cap", [np.inf, 0.6])
def test_records_enter_the_ball_as_the_reference_moves_them(space, n, cap, rng):
    center, radius = center_of(space), 0.9
    X = records(space, rng, n, 1.5)
    X[0] = space.exp_coords(center, 1.4 * np.eye(space.dim)[0])  # record 0 fills the last block
    with _kernels.kernels("numba"):
        compiled = enter_ball(space.localize(center), X, radius, cap)
    reference = space.project_to_ball(X, center, radius, cap)
    assert type(compiled) is not Sample
    assert_allclose(compiled.points, reference, rtol=0, atol=1e-13)
    assert_allclose(
        compiled.squared_distances(center),
        Sample(space, reference).squared_distances(center),
        rtol=1e-9,
    )
    if isinstance(space, SPDAffineInvariant):
        last = compiled._packed.blocks[0, -1]
        assert_array_equal(
            last[:, n % 8 or 8 :], np.repeat(compiled._packed.blocks[0, 0, :, :1], -n % 8, axis=1)
        )


@pytest.mark.parametrize("p", [2, 9])
def test_steps_beyond_float64_are_refused(p):
    """The descent by passes meets no exception, whatever it tries."""
    space = SPDAffineInvariant(p)
    sample = load(space, np.stack([np.eye(p), 2 * np.eye(p)]))
    if type(sample) is Sample:
        pytest.skip("needs numba")
    factor = np.diag(np.r_[1e-200, np.ones(p - 1)])
    assert np.isnan(sample.log_means(factor, factor)[0]).all()
