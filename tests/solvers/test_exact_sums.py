"""Sums of rounded records: exact, in any order, and as sensitive as claimed."""

from __future__ import annotations

from fractions import Fraction
from math import frexp, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from skdpfrechet import _kernels, sensitivity
from skdpfrechet._numerics import clip_norm, vecd
from skdpfrechet._solvers import Sample, exact_moment_sums, exact_step, exact_sum, load
from skdpfrechet._solvers._moments import exact_second_moment_sum
from skdpfrechet.manifolds import Euclidean, SPDAffineInvariant, Sphere
from skdpfrechet.sensitivity import MOMENT_CURVE_CONSTANT


@given(
    reach=st.floats(1e-100, 1e100),
    n=st.integers(1, 10**9),
    power=st.sampled_from([1, 2]),
)
def test_step_is_the_least_power_of_two_that_keeps_sums_exact(reach, n, power):
    step = exact_step(reach, n, power)
    assert frexp(step)[0] == 0.5
    bound = [n * (Fraction(reach) / Fraction(s) + 1) ** power for s in (step, step / 4)]
    assert bound[0] <= 2**53
    assert bound[1] > 2**52


@settings(max_examples=30)
@given(n=st.integers(1, 300), dim=st.integers(1, 5), scale=st.floats(1e-6, 1e6))
def test_sums_equal_those_of_rational_numbers(n, dim, scale):
    rng = np.random.default_rng(n)
    c = clip_norm(scale * rng.standard_normal((n, dim)), scale)
    step = exact_step(scale, n, 2)
    exact = [[Fraction(int(k)) * Fraction(step) for k in row] for row in np.rint(c / step)]
    moment = exact_second_moment_sum(c, step)
    total = exact_sum(c, step)
    for i in range(dim):
        assert Fraction(total[i]) == sum(row[i] for row in exact)
        for j in range(dim):
            assert Fraction(moment[i, j]) == sum(row[i] * row[j] for row in exact)
    y = c[:, 0]
    assert exact_moment_sums(y, 2 * scale, step, step) == (total[0], moment[0, 0])


@pytest.mark.parametrize("n", [2, 1000, 100_000])
def test_order_does_not_matter(n):
    rng = np.random.default_rng(0)
    c = clip_norm(rng.standard_normal((n, 7)), 1.0)
    step = exact_step(1.0, n, 2)
    shuffled = c[rng.permutation(n)]
    assert_array_equal(exact_second_moment_sum(c, step), exact_second_moment_sum(shuffled, step))
    assert_array_equal(exact_sum(c, step), exact_sum(shuffled, step))
    fine = exact_step(1.0, n, 1)
    sums = [exact_moment_sums(x[:, 0], 1.0, fine, step) for x in (c, shuffled)]
    assert sums[0] == sums[1]


def test_a_record_changes_its_own_term_alone():
    """The difference of neighbours is that of two records, whatever the others are."""
    rng = np.random.default_rng(1)
    step = exact_step(1.0, 10_000, 2)
    pair = clip_norm(rng.standard_normal((2, 3)), 1.0)
    differences = []
    for seed in range(3):
        others = clip_norm(np.random.default_rng(seed).standard_normal((9_999, 3)), 1.0)
        a, b = (exact_second_moment_sum(np.vstack([others, x]), step) for x in pair)
        differences.append(a - b)
    assert_array_equal(differences[0], differences[1])
    assert_array_equal(differences[0], differences[2])


@pytest.mark.parametrize("distance", [0.0, 0.3, 0.8, 2.0])
@pytest.mark.parametrize("manifold", [Euclidean(1), Euclidean(3), Sphere(1), Sphere(3)], ids=repr)
def test_rounded_second_moment_keeps_within_its_sensitivity(manifold, distance):
    """A coarse grid, where rounding matters: random pairs and those that attain the bound."""
    rng = np.random.default_rng(2)
    radius, step, dim = 1.04, 2.0**-4, manifold.dim
    flat = isinstance(manifold, Euclidean)
    middle = np.zeros(dim)
    middle[0] = distance if flat else 0.0
    ball = radius if flat else min(radius + distance, manifold.diameter)
    pairs = rng.standard_normal((20_000, 2, dim))
    pairs[:, 1, 1:] = -pairs[:, 0, 1:]  # placed symmetrically to the axis, as the farthest are
    pairs[:, 1, 0] = pairs[:, 0, 0] if dim > 1 else -pairs[:, 0, 0]
    pairs[::2] = rng.standard_normal((10_000, 2, dim))
    pairs = middle + clip_norm(10 * pairs, ball)
    moments = exact_second_moment_sum(pairs[:, :, None, :], step)
    found = np.linalg.norm(moments[:, 0] - moments[:, 1], axis=(-2, -1)).max()
    rounding = sensitivity.rounding(dim, step)
    assert found <= sensitivity.second_moment(manifold, radius, distance, 1, rounding)
    if manifold == Euclidean(3):  # without the term the bound is false
        assert found > sensitivity.second_moment(manifold, radius, distance, 1)


@pytest.mark.parametrize("fine", [2.0**-5, 2.0**-8])
def test_rounded_curve_keeps_within_its_sensitivity(fine):
    """The numbers stay within ±h after rounding, so that the curve keeps its diameter 2h."""
    half, coarse = 1.3125, 2.0**-5
    radius = sqrt(2 * half)  # of a ball around the point: squared distances in [0, 2h]
    y = np.linspace(-half, half, 801)
    curve = np.array([exact_moment_sums(np.array([t]), half, fine, coarse) for t in y])
    curve[:, 1] *= MOMENT_CURVE_CONSTANT / half
    found = np.linalg.norm(curve[:, None] - curve[None], axis=-1).max()
    assert 0.95 * 2 * half < found <= sensitivity.rounded_curve(radius, 0.0, fine, coarse)
    if fine == coarse:
        assert found <= 2 * half
    else:  # without the term the bound is false
        assert found > 2 * half


def test_equal_numbers_add_up_to_what_they_are():
    """Their rounding errors are equal too; all of them must be little next to one record."""
    n, half = 1_000_000, 1.3
    y = np.full(n, 0.123456789)
    first, _ = exact_moment_sums(y, half, exact_step(half, n, 1), exact_step(half, n, 2))
    assert first == pytest.approx(n * y[0], abs=1e-3 * half)


def test_rounded_sum_keeps_within_its_sensitivity():
    rng = np.random.default_rng(3)
    step = 2.0**-3
    v = clip_norm(10 * rng.standard_normal((10_000, 2, 2)), 1.0)
    v[:, 1] = -v[:, 0]
    totals = exact_sum(v[:, :, None, :], step)
    found = np.linalg.norm(totals[:, 0] - totals[:, 1], axis=-1).max()
    assert 2.0 < found <= sensitivity.rounded_tangent_sum(1.0, 2, step)


def test_rounding_is_attained():
    moved = np.linalg.norm(np.full(5, 0.5) - np.rint(np.full(5, 0.5)))
    assert moved == pytest.approx(sqrt(5) / 2)
    assert moved <= sensitivity.rounding(5, 1.0) * (1 + 1e-15)


@pytest.mark.parametrize("count", [5, 203])
@pytest.mark.parametrize("size", [2, 5, 8, 11])
def test_kernels_round_and_add_what_numpy_does(size, count):
    """In the frame of the Cholesky factor, carried to the other one after the noise.

    Kernels and numpy differ by 1e-13 at most, where a multiple of the step is 1e-6: that one of
    the numbers here rounds to another integer has a probability below .002, and the seed is fixed.
    """
    space = SPDAffineInvariant(size)
    rng = np.random.default_rng(size)
    spread = rng.choice([0.3, 2.0, 8.0], (count, 1))  # some beyond the reach of the kernels
    X = space.exp_coords(np.eye(size), spread * rng.standard_normal((count, space.dim)) / size)
    base = space.exp_coords(np.eye(size), 0.3 * rng.standard_normal(space.dim))
    middle = 0.1 * rng.standard_normal(space.dim)
    radius, step = 1.5, 2.0**-20
    total, carry = load(space, X).exact_second_moment(base, middle, radius, step)
    if _kernels.compiled():
        lower = np.linalg.cholesky(base)
        whitened = np.linalg.solve(lower, np.linalg.solve(lower, X).swapaxes(1, 2))
        root = space.exp(np.eye(size), space.log(np.eye(size), base) / 2)
        rotation = np.linalg.solve(lower, root)
        symmetric = space.log(np.eye(size), (whitened + whitened.swapaxes(1, 2)) / 2)
        offset = vecd(symmetric - rotation @ space.from_coords(np.eye(size), middle) @ rotation.T)
        turned = vecd(rotation @ space.from_coords(np.eye(size), middle) @ rotation.T)
        assert_array_equal(total, exact_second_moment_sum(turned + clip_norm(offset, radius), step))
    assert_array_equal(
        total, load(space, X[::-1]).exact_second_moment(base, middle, radius, step)[0]
    )
    expected, _ = Sample(space, X).exact_second_moment(base, middle, radius, step)
    error = 3 * count * radius * step * np.sqrt(space.dim)
    np.testing.assert_allclose(carry(total), expected, rtol=0, atol=error)


def _scattered(manifold, base, count, rng):
    """Points near the base, near its antipode and everywhere, and the two themselves."""
    dim = manifold.dim
    near = manifold.exp_coords(base, rng.standard_normal((count, dim)) / np.sqrt(dim))
    everywhere = manifold.canonical(rng.standard_normal((count, dim + 1)))
    opposite = manifold.canonical(1e-6 * everywhere - base)
    kind = rng.integers(3, size=(count, 1))
    points = np.where(kind == 0, near, np.where(kind == 1, everywhere, opposite))
    points[[0, -1]] = base, -base
    return points


@pytest.mark.parametrize("count", [2, 9, 24, 3001])
@pytest.mark.parametrize("dim", [1, 2, 3, 7, 8, 30, 200])
def test_spheres_round_and_add_what_numpy_does(dim, count):
    """Some records beyond the radius, some exactly at the base and opposite to it."""
    manifold, rng = Sphere(dim), np.random.default_rng(dim)
    base = manifold.canonical(rng.standard_normal(dim + 1))
    X = _scattered(manifold, base, count, rng)
    radius, middle = 1.1, np.zeros(dim)
    for step in (exact_step(radius, count, 2), 2.0**-4):
        sample = load(manifold, X)
        total, carry = sample.exact_second_moment(base, middle, radius, step)
        c = sample.coordinates(base, middle, radius)
        assert_array_equal(total, exact_second_moment_sum(c, step))
        assert_array_equal(carry(total), total)
        backwards, _ = load(manifold, X[::-1]).exact_second_moment(base, middle, radius, step)
        assert_array_equal(backwards, total)


@pytest.mark.parametrize("dim", [1, 2, 30, 200])
def test_sphere_kernels_round_what_the_reference_rounds(dim):
    """All but the antipode, which is 0 in kernels and π away in numpy.

    Kernels and numpy differ by 1e-14 at most, where a multiple of the step is 1e-3: that one of the
    numbers here rounds to another integer has a probability below 1e-5, and the seed is fixed.
    """
    manifold, rng = Sphere(dim), np.random.default_rng(dim)
    base = manifold.canonical(rng.standard_normal(dim + 1))
    X = _scattered(manifold, base, 2001, rng)[:-1]
    at = base, np.zeros(dim), 1.1, 2.0**-10
    expected, _ = Sample(manifold, X).exact_second_moment(*at)
    assert_array_equal(load(manifold, X).exact_second_moment(*at)[0], expected)


@pytest.mark.parametrize("dim", [2, 55])
def test_sphere_sums_do_not_depend_on_threads_or_segments(dim, monkeypatch):
    if not _kernels.compiled():
        pytest.skip("needs numba")
    from skdpfrechet._kernels import _sphere_coordinates, _threads

    monkeypatch.setattr(_threads, "_THREAD_SECONDS", 1e-12)
    manifold, rng = Sphere(dim), np.random.default_rng(dim)
    base = manifold.canonical(rng.standard_normal(dim + 1))
    X = _scattered(manifold, base, 5003, rng)
    at = base, np.zeros(dim), 1.1, exact_step(1.1, 5003, 2)
    expected = exact_second_moment_sum(load(manifold, X).coordinates(*at[:3]), at[3])
    for numbers, chunk in ((2**17, 128), (2**12, 3), (2**8, 1)):
        monkeypatch.setattr(_threads, "_SEGMENT", numbers)
        monkeypatch.setattr(_sphere_coordinates, "_LARGEST_CHUNK", chunk)
        for threads in (1, 2):
            with _kernels.threads(threads):
                total, _ = load(manifold, X).exact_second_moment(*at)
            assert_array_equal(total, expected)
