"""Blocks: what their samples evaluate is what the reference does, and means are weighted."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skdpfrechet._solvers import (
    Blocks,
    Sample,
    descend_in_ball,
    frechet_mean,
    load,
    point_of_ball,
)
from skdpfrechet.manifolds import Euclidean, Hyperbolic, SPDAffineInvariant, Sphere

RNG = np.random.default_rng(0)
CURVED = [Sphere(2), Sphere(20), Hyperbolic(3)]


def records(space, n=50):
    start = np.eye(space.dim + 1)[-1] if space.origin is None else space.origin
    c = RNG.normal(scale=0.4 / np.sqrt(space.dim), size=(n, space.dim))
    return start, space.exp_coords(start, c)


def blocks(space, X, cuts=(3, 4)):
    parts = [load(space, part) for part in np.split(X, cuts)]

    def total(statistic):
        return tuple(map(sum, zip(*map(statistic, parts), strict=True)))

    return Blocks(space, len(X), total)


@pytest.mark.parametrize("space", CURVED, ids=str)
def test_newton_terms_are_those_of_the_reference(space):
    start, X = records(space)
    base = X[0]
    compiled, reference = load(space, X), Sample(space, X)
    found, wanted = (
        sample.newton_problem(start, 1.0).evaluate(base) for sample in (compiled, reference)
    )
    for a, b in zip(found, wanted, strict=True):
        assert_allclose(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [2, 5, 12])
def test_log_means_are_those_of_the_reference(size):
    space = SPDAffineInvariant(size)
    _, X = records(space)
    factor = np.linalg.cholesky(X[0])
    inverse = np.linalg.inv(factor)
    found, wanted = (
        sample.log_means(factor, inverse) for sample in (load(space, X), Sample(space, X))
    )
    for a, b in zip(found[:2], wanted[:2], strict=True):
        assert_allclose(a, b, rtol=0, atol=1e-11)
    assert_allclose(found[2], wanted[2], rtol=0.1)  # of the step only


@pytest.mark.parametrize(
    "space", [*CURVED, Euclidean(3), SPDAffineInvariant(1), SPDAffineInvariant(4)], ids=str
)
def test_mean_and_second_moment(space):
    start, X = records(space)
    sample, whole = blocks(space, X), load(space, X)
    means = [frechet_mean(space, each, start, radius=1.4, accept=1e-10) for each in (sample, whole)]
    assert_allclose(*means, rtol=0, atol=1e-12)
    at = (means[1], np.zeros(space.dim), 1.0)
    assert_allclose(sample.second_moment(*at), whole.second_moment(*at), rtol=0, atol=1e-13)
    total, carry = sample.exact_second_moment(*at, 2.0**-20)
    other, carry_other = whole.exact_second_moment(*at, 2.0**-20)
    assert_allclose(carry(total), carry_other(other), rtol=0, atol=1e-4)


def test_blocks_are_weighted_by_their_numbers():
    X = RNG.normal(size=(9, 2))
    sample = blocks(Euclidean(2), X, cuts=(1, 6))
    (mean,) = sample.average(lambda part: (part.points.mean(axis=0),))
    assert_allclose(mean, X.mean(axis=0), rtol=1e-14)
    (count,) = sample.total(lambda part: (np.asarray(part.n),))
    assert_array_equal(count, 9)
    with pytest.raises(TypeError, match="never together"):
        _ = sample.points


@pytest.mark.parametrize("space", [*CURVED, SPDAffineInvariant(1), SPDAffineInvariant(4)], ids=str)
def test_the_descent_needs_sums_over_blocks_only(space, monkeypatch):
    start, X = records(space)
    sample = blocks(space, X)
    assert_allclose(sample.mean_log(X[0]), space.log_coords(X[0], X).mean(axis=0), atol=1e-13)
    found = [descend_in_ball(sample, start, start, 1.4, 1e-8, 10**4)]
    monkeypatch.setattr(
        Blocks, "improve", lambda self, begin, start, *rest: (begin, np.array(np.inf))
    )
    found.append(descend_in_ball(sample, start, start, 1.4, 1e-8, 10**4))
    for p, residual in found:
        assert residual <= 1e-8
        assert np.linalg.norm(space.log_coords(p, X).mean(axis=0)) <= 1e-8 + 1e-13


@pytest.mark.parametrize("space", [Sphere(2), Hyperbolic(3), SPDAffineInvariant(4)], ids=str)
def test_blocks_whose_fast_iteration_fails_end_in_the_ball(space, monkeypatch):
    start, X = records(space)
    monkeypatch.setattr(
        Blocks, "mean", lambda self, start, *rest: (np.full(start.shape, np.nan), np.array(np.inf))
    )
    options = {"radius": 1.4, "log_cap": np.inf, "tolerance": 1e-8}
    p = point_of_ball(blocks(space, X), start, passes=10**4, **options)
    assert np.linalg.norm(space.log_coords(p, X).mean(axis=0)) <= 1e-8 + 1e-13
    assert_array_equal(point_of_ball(blocks(space, X), start, passes=0, **options), start)
