"""The mean Hessian of ρ² is bounded below by a linear map of the second moment."""

import numpy as np
import pytest

from skdpfrechet._numerics import unvecd, vecd
from skdpfrechet.inference import hessian_range, mean_hessian_bound
from skdpfrechet.inference._hessian import mean_squared_adjoint
from skdpfrechet.manifolds import (
    Euclidean,
    Hyperbolic,
    SPDAffineInvariant,
    SPDLogEuclidean,
    Sphere,
)

CURVED = [
    Sphere(2),
    Sphere(4),
    Hyperbolic(2),
    Hyperbolic(5),
    SPDAffineInvariant(2),
    SPDAffineInvariant(3),
    SPDAffineInvariant(4),
]


def logs_within(space, reach, n, seed):
    rng = np.random.default_rng(seed)
    c = rng.standard_normal((n, space.dim)) * rng.uniform(0.2, 2, space.dim)
    return c / np.linalg.norm(c, axis=1, keepdims=True) * reach * rng.random((n, 1)) ** 0.3


@pytest.mark.parametrize("reach", [0.3, 1.0, 1.5])
@pytest.mark.parametrize("space", CURVED, ids=str)
def test_bound_is_below_the_mean_hessian(space, reach):
    point = np.eye(space.dim + 1)[0] if isinstance(space, Sphere) else space.origin
    for seed in range(5):
        c = logs_within(space, reach, 20, seed)
        exact = space.mean_squared_distance_hessian(point, c)
        bound = mean_hessian_bound(space, c.T @ c / 20, reach, radius=reach)
        assert np.linalg.eigvalsh(exact - bound).min() >= -1e-12
        # ... and not far below: the ratio that is frozen varies by O(R²) only.
        assert np.abs(exact - bound).max() < 0.3 * reach**2


@pytest.mark.parametrize("space", [Sphere(2), Sphere(4), Hyperbolic(2), Hyperbolic(5)], ids=str)
def test_bound_is_exact_when_all_records_are_at_the_reach(space):
    point = np.eye(space.dim + 1)[0]
    c = 0.6 * np.eye(space.dim)[:1]
    bound = mean_hessian_bound(space, c.T @ c, 0.6, radius=0.6)
    exact = space.mean_squared_distance_hessian(point, c)
    np.testing.assert_allclose(bound, exact, rtol=1e-12, atol=1e-12)


def test_bound_is_exact_on_spd2_at_the_widest_gap():
    space = SPDAffineInvariant(2)
    c = vecd(np.array([[0.5, 0.0], [0.0, -0.5]]))[None]
    bound = mean_hessian_bound(space, c.T @ c, np.sqrt(0.5), radius=1.0)
    exact = space.mean_squared_distance_hessian(space.origin, c)
    np.testing.assert_allclose(bound, exact, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("space", [Euclidean(3), SPDLogEuclidean(2), Sphere(1)], ids=str)
def test_flat_spaces_have_twice_the_identity(space):
    moment = np.diag(np.arange(1.0, space.dim + 1))
    np.testing.assert_array_equal(
        mean_hessian_bound(space, moment, 1.0, 1.0), 2 * np.eye(space.dim)
    )
    assert hessian_range(space, 1.0) == (2.0, 2.0)


def test_sphere_floor_holds_for_any_moment():
    bound = mean_hessian_bound(Sphere(2), 50 * np.eye(2), reach=3.0, radius=1.4)
    assert np.linalg.eigvalsh(bound).min() == pytest.approx(2 * 1.4 / np.tan(1.4))


@pytest.mark.parametrize("space", CURVED, ids=str)
def test_range_holds_every_hessian(space):
    point = np.eye(space.dim + 1)[0] if isinstance(space, Sphere) else space.origin
    low, high = hessian_range(space, 1.2)
    c = logs_within(space, 1.2, 200, 0)
    c[0] = 1.2 * np.eye(space.dim)[0]
    values = np.linalg.eigvalsh([space.mean_squared_distance_hessian(point, v[None]) for v in c])
    assert values.min() >= low - 1e-12
    assert values.max() <= high + 1e-12


@pytest.mark.parametrize("p", [1, 2, 3, 5])
def test_mean_squared_adjoint_is_the_mean_double_commutator(p):
    rng = np.random.default_rng(p)
    c = rng.standard_normal((7, p * (p + 1) // 2))
    u = unvecd(rng.standard_normal(c.shape[1]))
    inner = [v @ u - u @ v for v in unvecd(c)]
    expected = np.mean([v @ k - k @ v for v, k in zip(unvecd(c), inner, strict=True)], axis=0)
    result = mean_squared_adjoint(c.T @ c / 7) @ vecd(u)
    np.testing.assert_allclose(result, vecd(expected), atol=1e-12)
