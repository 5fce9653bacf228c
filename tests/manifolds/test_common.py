"""The laws of `Manifold`, over all spaces: a new space is tested by one more line of `SPACES`."""

from __future__ import annotations

import pickle
from copy import deepcopy
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skdpfrechet.manifolds import (
    Euclidean,
    Hyperbolic,
    Manifold,
    SPDAffineInvariant,
    SPDLogCholesky,
    SPDLogEuclidean,
    Sphere,
    resolve_manifold,
)

SPACES = [
    Euclidean(1),
    Euclidean(4),
    Sphere(1),
    Sphere(2),
    Sphere(7),
    Sphere(60),
    Hyperbolic(1),
    Hyperbolic(2),
    Hyperbolic(5),
    SPDAffineInvariant(1),
    SPDAffineInvariant(2),
    SPDAffineInvariant(3),
    SPDAffineInvariant(5),
    SPDLogEuclidean(1),
    SPDLogEuclidean(2),
    SPDLogEuclidean(4),
    SPDLogCholesky(1),
    SPDLogCholesky(2),
    SPDLogCholesky(4),
]
EPS = np.finfo(float).eps


@pytest.fixture(params=SPACES, ids=repr)
def space(request):
    return request.param


@pytest.fixture
def rng():
    return np.random.default_rng(20260516)


def directions(space, rng, *shape):
    """Unit vectors of coordinates."""
    c = rng.standard_normal((*shape, space.dim))
    return c / np.linalg.norm(c, axis=-1, keepdims=True)


def random_points(space, rng, *shape):
    """Points within 1 of the origin; on a space without origin, uniform directions."""
    if space.origin is None:
        x = rng.standard_normal((*shape, *space.point_shape))
        return x / np.linalg.norm(x, axis=-1, keepdims=True)
    lengths = rng.uniform(0, 1, (*shape, 1))
    return space.exp_coords(space.origin, lengths * directions(space, rng, *shape))


def rounding(space, length=0.0):
    """Absolute error of coordinates of vectors of `length` at points within 1 of the origin.

    Positive matrices at distance D from the identity have condition up to e^{2D}, and points of
    the hyperboloid at distance D have entries e^D whose squares cancel: both amplify rounding by
    e^{2D}. Near the cut locus, π - s away, directions lose 1/(π - s).
    """
    if np.isfinite(space.injectivity_radius):
        return 50 * EPS / max(1 - length / space.injectivity_radius, 1e-9)
    return 50 * EPS * (np.exp(2 * (1 + length)) + length)


def scales(space):
    """Lengths of tangent vectors, from next to nothing to next to the cut locus."""
    limit = space.injectivity_radius
    far = [limit - 1e-3, limit - 1e-6] if np.isfinite(limit) else [4.0]
    return [0.0, 1e-12, 1e-8, 1e-4, 0.03, 1.0, 3.0, *far]


def operator(eigen):
    values, basis = eigen
    return (basis * values[..., None, :]) @ np.swapaxes(basis, -1, -2)


# --- exponential, logarithm, distance ------------------------------------------------------------


def test_logarithm_inverts_exponential(space, rng):
    p = random_points(space, rng, 20)
    for length in scales(space):
        c = length * directions(space, rng, 20)
        q = space.exp_coords(p, c)
        assert space.contains(q).all()
        assert_allclose(space.log_coords(p, q), c, rtol=0, atol=rounding(space, length))


def test_exponential_inverts_logarithm(space, rng):
    p = random_points(space, rng, 20)
    for length in scales(space):
        q = space.exp_coords(p, length * directions(space, rng, 20))
        again = space.exp(p, space.log(p, q))
        scale = np.abs(q).max()
        assert_allclose(again, q, rtol=0, atol=rounding(space, length) * scale)


def test_maps_of_vectors_and_of_coordinates_agree(space, rng):
    p, q = random_points(space, rng, 20), random_points(space, rng, 20)
    c = 0.8 * directions(space, rng, 20)
    tolerance = rounding(space, 1.0)
    v = space.from_coords(p, c)
    assert_allclose(space.coords(p, v), c, atol=tolerance)
    assert_allclose(space.from_coords(p, space.coords(p, v)), v, atol=tolerance)
    assert_allclose(space.exp_coords(p, c), space.exp(p, v), atol=tolerance)
    far = rounding(space, 2.9)  # uniform points of a sphere are closer than that to antipodes
    assert_allclose(space.log_coords(p, q), space.coords(p, space.log(p, q)), atol=far)


def test_distance_is_the_length_of_the_logarithm(space, rng):
    p = random_points(space, rng, 20)
    for length in scales(space):
        q = space.exp_coords(p, length * directions(space, rng, 20))
        # Rounding turns the logarithm near a cut locus but does not change its length.
        tolerance = rounding(space, min(length, 4.0) if np.isinf(space.diameter) else 0.0)
        assert_allclose(space.dist(p, q), length, rtol=0, atol=tolerance)
        assert_allclose(space.dist(q, p), length, rtol=0, atol=tolerance)
        log = space.log(p, q)
        assert_allclose(space.norm(p, log), length, rtol=0, atol=tolerance)
        assert_allclose(np.linalg.norm(space.log_coords(p, q), axis=-1), length, atol=tolerance)


def test_distance_is_a_metric(space, rng):
    p, q, x = random_points(space, rng, 3, 200)
    tolerance = rounding(space, 2.0)
    assert_allclose(space.dist(p, q), space.dist(q, p), rtol=0, atol=tolerance)
    assert_allclose(space.dist(p, p), 0.0, atol=tolerance)
    assert (space.dist(p, q) <= space.dist(p, x) + space.dist(x, q) + tolerance).all()
    assert (space.dist(p, q) <= space.diameter).all()
    assert (space.dist(p, q) > 0).all()


def test_geodesics_have_constant_speed(space, rng):
    p = random_points(space, rng, 20)
    c = 2.0 * directions(space, rng, 20)
    middle, end = space.exp_coords(p, c / 2), space.exp_coords(p, c)
    tolerance = rounding(space, 2.0)
    assert_allclose(space.dist(middle, end), 1.0, atol=tolerance)
    # Seen from the middle, the two ends are opposite.
    opposite = space.log_coords(middle, p) + space.log_coords(middle, end)
    assert_allclose(opposite, 0.0, atol=tolerance)


# --- frames --------------------------------------------------------------------------------------


def test_frame_is_orthonormal(space, rng):
    p = random_points(space, rng, 3)
    frame = space.frame(p)
    assert frame.shape == (3, space.dim, *space.point_shape)
    assert len(space.frame(p[0])) == space.dim
    gram = space.inner(
        np.expand_dims(p, (1, 2)), np.expand_dims(frame, 2), np.expand_dims(frame, 1)
    )
    eye = np.broadcast_to(np.eye(space.dim), gram.shape)
    assert_allclose(gram, eye, rtol=0, atol=rounding(space, 0.0))


def test_coordinates_are_isometric(space, rng):
    p = random_points(space, rng, 20)
    c, d = rng.standard_normal((2, 20, space.dim))
    u, v = space.from_coords(p, c), space.from_coords(p, d)
    tolerance = rounding(space, 0.0) * space.dim
    assert_allclose(space.inner(p, u, v), (c * d).sum(axis=-1), rtol=0, atol=tolerance)
    assert_allclose(space.norm(p, u), np.linalg.norm(c, axis=-1), rtol=0, atol=tolerance)
    by_frame = np.moveaxis(space.frame(p), 1, -1) @ c.reshape(
        20, *(1,) * (len(space.point_shape) - 1), space.dim, 1
    )
    assert_allclose(by_frame[..., 0], u, atol=tolerance)


def test_transport_is_a_linear_isometry(space, rng):
    p, q = random_points(space, rng, 2, 20)
    u, v = space.from_coords(p, rng.standard_normal((2, 20, space.dim)))
    tolerance = rounding(space, 2.9) * space.dim
    carried, other = space.transport(p, q, u), space.transport(p, q, v)
    assert_allclose(space.inner(q, carried, other), space.inner(p, u, v), atol=tolerance)
    assert_allclose(space.transport(p, q, u - 2 * v), carried - 2 * other, atol=tolerance)
    assert_allclose(space.transport(q, p, carried), u, atol=tolerance)
    assert_allclose(space.transport(p, p, u), u, atol=tolerance)


def test_transport_turns_the_logarithm_around(space, rng):
    p = random_points(space, rng, 20)
    for length in scales(space):
        q = space.exp_coords(p, length * directions(space, rng, 20))
        there = space.coords(q, space.transport(p, q, space.log(p, q)))
        tolerance = rounding(space, length) * max(1.0, length)
        assert_allclose(there, -space.log_coords(q, p), rtol=0, atol=tolerance)


def test_transported_frame_is_orthonormal(space, rng):
    p, q = random_points(space, rng, 2)
    frame = space.transport(p, q, space.frame(p))
    gram = space.inner(q, frame[:, None], frame[None])
    assert_allclose(gram, np.eye(space.dim), rtol=0, atol=rounding(space, 2.9))


# --- curvature -----------------------------------------------------------------------------------


def test_curvature_frame_diagonalises_a_curvature_operator(space, rng):
    p = random_points(space, rng, 20)
    for length in (0.0, 1e-9, 1.0, 5.0):
        c = length * directions(space, rng, 20)
        kappa, basis = space.curvature_frame(p, space.from_coords(p, c))
        assert kappa.shape == (20, space.dim)
        assert basis.shape == (20, space.dim, space.dim)
        tolerance = rounding(space, 0.0) * max(1.0, length**2)
        eye = np.broadcast_to(np.eye(space.dim), basis.shape)
        assert_allclose(basis @ np.swapaxes(basis, -1, -2), eye, rtol=0, atol=tolerance)
        low, high = space.sectional_curvature_bounds
        # The direction of v itself spans no plane: its eigenvalue is 0.
        assert (kappa >= min(low, 0) * length**2 - tolerance).all()
        assert (kappa <= max(high, 0) * length**2 + tolerance).all()
        # R(v, v)v = 0.
        along = operator((kappa, basis)) @ c[..., None]
        assert_allclose(along, 0.0, atol=tolerance * max(1.0, length))


def test_curvature_operator_has_the_symmetry_of_the_riemann_tensor(space, rng):
    p = random_points(space, rng, 20)
    c, d = directions(space, rng, 2, 20)
    by_c = operator(space.curvature_frame(p, space.from_coords(p, c)))
    by_d = operator(space.curvature_frame(p, space.from_coords(p, d)))
    # <R(d, c)c, d> = <R(c, d)d, c>.
    left = np.einsum("ni,nij,nj->n", d, by_c, d)
    right = np.einsum("ni,nij,nj->n", c, by_d, c)
    assert_allclose(left, right, rtol=0, atol=rounding(space, 0.0))


@pytest.mark.parametrize("space", [s for s in SPACES if s.dim > 1], ids=repr)
def test_curvature_is_the_one_that_spreading_geodesics_show(space, rng):
    p = random_points(space, rng, 20)
    basis = np.linalg.qr(rng.standard_normal((20, space.dim, 2)))[0]
    u, w = basis[..., 0], basis[..., 1]

    def curvature(t):
        # d²(exp tu, exp tw) = 2t² - K t⁴/3 + O(t⁶), even in t on a symmetric space.
        square = space.dist(space.exp_coords(p, t * u), space.exp_coords(p, t * w)) ** 2
        return 3 * (2 * t**2 - square) / t**4

    t = 0.05
    coarse, middle, fine = curvature(4 * t), curvature(2 * t), curvature(t)
    first, second = (4 * middle - coarse) / 3, (4 * fine - middle) / 3
    seen = (16 * second - first) / 15
    predicted = np.einsum(
        "ni,nij,nj->n", u, operator(space.curvature_frame(p, space.from_coords(p, w))), u
    )
    # Left over: O(t⁶) with coefficients of order one, and rounding 6 ε_d / t³ from d.
    assert_allclose(seen, predicted, rtol=0, atol=(4 * t) ** 6 + 6 * rounding(space, 0.2) / t**3)
    low, high = space.sectional_curvature_bounds
    assert (predicted >= low - 1e-12).all()
    assert (predicted <= high + 1e-12).all()


def second_derivative(f, h):
    """Central difference of order 4."""
    return (16 * (f(h) + f(-h)) - (f(2 * h) + f(-2 * h)) - 30 * f(0.0)) / (12 * h * h)


def first_derivative(f, h):
    """Central difference of order 4."""
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


@pytest.mark.parametrize("length", [0.0, 1e-6, 0.5, 2.0])
def test_hessian_of_the_squared_distance(space, rng, length):
    p = random_points(space, rng, 20)
    c, u = length * directions(space, rng, 20), directions(space, rng, 20)
    q = space.exp_coords(p, c)
    h = 0.02
    seen = second_derivative(lambda t: space.dist(space.exp_coords(p, t * u), q) ** 2, h)
    hessian = space.squared_distance_hessian(p, space.from_coords(p, c))
    assert_allclose(hessian, np.swapaxes(hessian, -1, -2), atol=1e-14)
    # Truncation h⁴ f⁗″/90 < 1e-7 (|f⁗″| < 50 for ρ ≤ 2.1); rounding 5 ε(ρ²)/h² < 1e-8.
    assert_allclose(np.einsum("ni,nij,nj->n", u, hessian, u), seen, rtol=0, atol=2e-7)
    # The gradient of ρ² along the geodesic is 2ρ: an eigenvector with eigenvalue 2.
    assert_allclose(hessian @ c[..., None], 2 * c[..., None], atol=10 * rounding(space, 0.0))


def test_mean_hessian_is_the_average(space, rng):
    p = random_points(space, rng, 3)
    c = rng.uniform(0, 2.5, (3, 9, 1)) * directions(space, rng, 3, 9)
    mean = space.mean_squared_distance_hessian(p, c)
    for i in range(3):
        single = [space.squared_distance_hessian(p[i], space.from_coords(p[i], x)) for x in c[i]]
        assert_allclose(mean[i], np.mean(single, axis=0), rtol=0, atol=10 * rounding(space, 0.0))
        alone = space.mean_squared_distance_hessian(p[i], c[i])
        assert_allclose(alone, mean[i], rtol=0, atol=10 * rounding(space, 0.0))


@pytest.mark.parametrize("length", [0.0, 1e-6, 0.5, 2.5])
def test_jacobian_of_the_exponential(space, rng, length):
    p = random_points(space, rng, 20)
    c, u = length * directions(space, rng, 20), directions(space, rng, 20)
    v = space.from_coords(p, c)
    q = space.exp(p, v)
    seen = first_derivative(lambda t: space.log_coords(q, space.exp_coords(p, c + t * u)), 0.002)
    jacobian = space.exp_jacobian(p, v)
    assert jacobian.shape == (20, space.dim, space.dim)
    # Truncation h⁴ f⁽⁵⁾/30 < 1e-10 (the derivative is at most sinh(2.5)/2.5 times e^{2.5});
    # rounding 1.5 ε_log / h.
    tolerance = 1e-10 + 2 * rounding(space, length) / 0.002
    assert_allclose((jacobian @ u[..., None])[..., 0], seen, rtol=0, atol=tolerance)
    sign, logdet = np.linalg.slogdet(jacobian)
    assert_allclose(np.abs(sign), 1.0)
    density = space.log_volume_density(p, v)
    assert_allclose(density, logdet, rtol=0, atol=space.dim * rounding(space, 1.0))


# --- batching ------------------------------------------------------------------------------------

# The operation, and which of p, q (points) and c (coordinates at p) it depends on.
OPERATIONS = {
    "exp": ("pc", lambda space, p, q, c: space.exp(p, space.from_coords(p, c))),
    "log": ("pq", lambda space, p, q, c: space.log(p, q)),
    "dist": ("pq", lambda space, p, q, c: space.dist(p, q)),
    "norm": ("pc", lambda space, p, q, c: space.norm(p, space.from_coords(p, c))),
    "inner": (
        "pqc",
        lambda space, p, q, c: space.inner(p, space.from_coords(p, c), space.log(p, q)),
    ),
    "exp_coords": ("pc", lambda space, p, q, c: space.exp_coords(p, c)),
    "log_coords": ("pq", lambda space, p, q, c: space.log_coords(p, q)),
    "from_coords": ("pc", lambda space, p, q, c: space.from_coords(p, c)),
    "coords": ("pc", lambda space, p, q, c: space.coords(p, space.from_coords(p, c))),
    "transport": ("pqc", lambda space, p, q, c: space.transport(p, q, space.from_coords(p, c))),
    "curvature": ("pq", lambda space, p, q, c: operator(space.curvature_frame(p, space.log(p, q)))),
    "hessian": ("pq", lambda space, p, q, c: space.squared_distance_hessian(p, space.log(p, q))),
    "jacobian": ("pc", lambda space, p, q, c: space.exp_jacobian(p, space.from_coords(p, c))),
    "density": ("pc", lambda space, p, q, c: space.log_volume_density(p, space.from_coords(p, c))),
    "saturate": ("pc", lambda space, p, q, c: space.saturate(p, space.from_coords(p, c))),
    "saturated_exp": ("pc", lambda space, p, q, c: space.saturated_exp(p, c)),
    "canonical": ("q", lambda space, p, q, c: space.canonical(q)),
    "contains": ("q", lambda space, p, q, c: space.contains(q)),
}
# Leading axes of p, q and c.
SHAPES = {
    "one base point": ((), (3,), (3,)),
    "many base points": ((3,), (), ()),
    "paired": ((3,), (3,), (3,)),
    "outer": ((3, 1), (2,), (3, 2)),
    "empty": ((0,), (0,), (0,)),
}


@pytest.mark.parametrize(("uses", "operation"), OPERATIONS.values(), ids=OPERATIONS.keys())
@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES.keys())
def test_operations_broadcast(space, rng, uses, operation, shapes):
    arguments = {
        "p": random_points(space, rng, *shapes[0]),
        "q": random_points(space, rng, *shapes[1]),
        "c": 0.7 * directions(space, rng, *shapes[2]),
    }
    leading = dict(zip("pqc", shapes, strict=True))
    batch = np.broadcast_shapes(*(leading[name] for name in uses))
    together = operation(space, **arguments)
    assert together.shape[: len(batch)] == batch
    broadcast = {
        name: np.broadcast_to(x, (*batch, *x.shape[len(leading[name]) :]))
        for name, x in arguments.items()
        if name in uses
    }
    for index in np.ndindex(batch):
        one = {name: x[index] for name, x in broadcast.items()}
        alone = operation(space, **{"p": None, "q": None, "c": None, **one})
        assert together[index].shape == np.shape(alone)
        assert_allclose(together[index], alone, rtol=0, atol=rounding(space, 2.9))


# --- balls ---------------------------------------------------------------------------------------


def ball_centers(space, rng):
    yield random_points(space, rng)
    if space.origin is not None:
        yield space.origin


@pytest.mark.parametrize("radius", [1e-6, 0.7, 2.0])
def test_projection_to_a_ball(space, rng, radius):
    for center in ball_centers(space, rng):
        lengths = np.concatenate([np.linspace(0, 0.999, 10), np.linspace(1.001, 1.5, 10)]) * radius
        c = lengths[:, None] * directions(space, rng, 20)
        points = space.exp_coords(center, c)
        projected = space.project_to_ball(points, center, radius)
        assert_array_equal(projected[:10], points[:10])
        assert space.contains(projected).all()
        tolerance = rounding(space, 1.5 * radius)
        assert_allclose(space.dist(center, projected[10:]), radius, rtol=0, atol=tolerance)
        expected = c[10:] * (radius / lengths[10:])[:, None]
        assert_allclose(space.log_coords(center, projected[10:]), expected, rtol=0, atol=tolerance)
        again = space.project_to_ball(projected, center, radius)
        assert_allclose(again, projected, rtol=0, atol=tolerance * np.abs(projected).max())
        # One by one, and with more axes.
        assert_allclose(
            space.project_to_ball(points[13], center, radius), projected[13], atol=tolerance
        )
        stacked = points.reshape(4, 5, *space.point_shape)
        assert_allclose(
            space.project_to_ball(stacked, center, radius).reshape(points.shape),
            projected,
            atol=tolerance,
        )


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_projection_puts_records_that_are_not_finite_into_the_ball(space, rng, bad):
    for center in ball_centers(space, rng):
        points = space.exp_coords(center, 0.3 * directions(space, rng, 4))
        damaged = points.copy()
        damaged[1].flat[-1] = bad
        damaged[2] = bad
        projected = space.project_to_ball(damaged, center, 0.5)
        assert space.contains(projected).all()
        assert (space.dist(center, projected) <= 0.5 * (1 + 1e-12)).all()
        assert_array_equal(projected[[0, 3]], points[[0, 3]])


# --- membership and representation ---------------------------------------------------------------


def test_contains_the_points_of_the_space(space, rng):
    points = random_points(space, rng, 5, 4)
    assert space.contains(points).shape == (5, 4)
    assert space.contains(points).all()
    assert space.contains(points[0, 0]).shape == ()
    assert space.contains(points[0, 0].tolist())
    if space.origin is not None:
        assert space.contains(space.origin)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_contains_no_point_that_is_not_finite(space, rng, bad):
    points = random_points(space, rng, 4)
    points[1].flat[0] = bad
    points[3] = bad
    assert_array_equal(space.contains(points), [True, False, True, False])


def test_violations_state_requirements(space, rng):
    points = random_points(space, rng, 4)
    for mask, requirement in space.violations(points):
        assert mask.shape == (4,)
        assert not mask.any()
        assert requirement


def test_contains_refuses_another_shape(space, rng):
    for shape in [(5, *space.point_shape[:-1], space.point_shape[-1] + 1), ()]:
        with pytest.raises(ValueError, match=r"points must have shape \(\.\.\., .*got"):
            space.contains(np.ones(shape))


def test_canonical_removes_rounding_only(space, rng):
    points = random_points(space, rng, 10)
    canonical = space.canonical(points)
    assert space.contains(canonical).all()
    assert_allclose(canonical, points, rtol=1e-14, atol=1e-14)
    assert_allclose(space.canonical(canonical), canonical, rtol=1e-15, atol=1e-15)


def test_saturation_leaves_moderate_vectors(space, rng):
    p = random_points(space, rng, 10)
    v = space.from_coords(p, 5.0 * directions(space, rng, 10))
    assert_allclose(space.saturate(p, v), v, rtol=0, atol=10 * rounding(space, 0.0))


@pytest.mark.parametrize("length", [20.0, 1e3, 1e6, 1e100, 1e300])
def test_saturated_vectors_have_an_end_point(space, rng, length):
    p = random_points(space, rng, 30)
    c = length * directions(space, rng, 30)
    for end in (
        space.exp(p, space.saturate(p, space.from_coords(p, c))),
        space.saturated_exp(p, c),
    ):
        assert np.isfinite(end).all()
        assert space.contains(end).all()


def test_saturated_exp_is_exp_of_the_saturated_vector(space, rng):
    for p in (random_points(space, rng, 10), space.origin):
        if p is not None:
            c = 5.0 * directions(space, rng, 10)
            end = space.exp(p, space.saturate(p, space.from_coords(p, c)))
            assert_allclose(space.saturated_exp(p, c), end, rtol=0, atol=rounding(space, 5.0))


def test_hadamard_model_has_opposite_logarithms(space, rng):
    """In frames along the geodesic from the origin, what `DPFrechetMean` puts its ball around."""
    if space.sectional_curvature_bounds[1] > 0 or np.isfinite(space.injectivity_radius):
        return
    for center in ball_centers(space, rng):
        local = space.localize(center)
        points = local.model.exp_coords(local.origin, 2.0 * directions(local.model, rng, 20))
        back = local.model.log_coords(points, local.origin)
        forth = local.model.log_coords(local.origin, points)
        assert_allclose(back, -forth, rtol=0, atol=rounding(local.model, 2.0))


def test_within_agrees_with_the_distance(space, rng):
    p = random_points(space, rng, 20)
    for length in (0.0, 1e-9, 1e-3, 0.3, 1.0):
        q = space.exp_coords(p, length * directions(space, rng, 20))
        for a, b in zip(p, q, strict=True):
            assert space.within(a, b, 1.001 * length + rounding(space))
            assert length == 0 or not space.within(a, b, 0.999 * length - rounding(space))
    nothing = np.full_like(p[0], np.nan)
    assert not space.within(p[0], nothing, 1.0)
    assert not space.within(nothing, p[0], 1.0)


def test_localization_is_an_isometry(space, rng):
    for center in ball_centers(space, rng):
        local = space.localize(center)
        p = space.exp_coords(center, directions(space, rng, 10))
        q = space.exp_coords(center, 0.5 * directions(space, rng, 10))
        tolerance = rounding(space, 1.0)
        there = local.to_model(p)
        assert local.model.contains(there).all()
        assert local.model.dim == space.dim
        assert_allclose(local.to_model(center), local.origin, atol=tolerance)
        assert_allclose(local.from_model(there), p, atol=tolerance * np.abs(p).max())
        assert_allclose(
            local.model.dist(there, local.to_model(q)), space.dist(p, q), atol=tolerance
        )
        # The frame at the centre goes to the frame at the origin.
        assert_allclose(
            local.model.log_coords(local.origin, there), space.log_coords(center, p), atol=tolerance
        )


# --- instances -----------------------------------------------------------------------------------


def test_instances_are_values(space):
    for copy in (pickle.loads(pickle.dumps(space)), deepcopy(space)):
        assert copy == space
        assert hash(copy) == hash(space)
        assert repr(copy) == repr(space)
    assert isinstance(space, Manifold)
    with pytest.raises(FrozenInstanceError):
        space.dim = 3


def test_different_spaces_differ():
    assert len(set(SPACES)) == len(SPACES)
    assert len({repr(space) for space in SPACES}) == len(SPACES)
    assert SPDAffineInvariant(2) != SPDLogEuclidean(2)


def test_bounds_and_radii_are_consistent(space):
    low, high = space.sectional_curvature_bounds
    assert low <= high
    assert 0 < space.injectivity_radius <= space.diameter
    if space.dim == 1:
        assert (low, high) == (0.0, 0.0)
    if high > 0:
        assert space.diameter <= np.pi / np.sqrt(low)  # Bonnet and Myers
    # A single point of the space, or none, has the shape of its points.
    if space.origin is not None:
        assert space.origin.shape == space.point_shape
    assert space.shape_for("n").startswith("(n, ")


@pytest.mark.parametrize(
    "kind", [Euclidean, Sphere, Hyperbolic, SPDAffineInvariant, SPDLogEuclidean, SPDLogCholesky]
)
@pytest.mark.parametrize(
    ("value", "error"),
    [(0, ValueError), (-1, ValueError), (2.5, TypeError), (True, TypeError), ("2", TypeError)],
)
def test_sizes_are_positive_integers(kind, value, error):
    with pytest.raises(error, match=r"(dim|size) must be (an integer|at least 1), got .*\.$"):
        kind(value)


# --- names ---------------------------------------------------------------------------------------

NAMES = {
    "euclidean": ((4,), Euclidean(4)),
    "sphere": ((3,), Sphere(2)),
    "hyperbolic": ((3,), Hyperbolic(2)),
    "spd": ((3, 3), SPDAffineInvariant(3)),
    "riemann": ((3, 3), SPDAffineInvariant(3)),
    "logeuclid": ((2, 2), SPDLogEuclidean(2)),
    "logchol": ((2, 2), SPDLogCholesky(2)),
}


@pytest.mark.parametrize(("name", "shape", "expected"), [(k, *v) for k, v in NAMES.items()])
def test_names_resolve_by_shape(name, shape, expected):
    assert resolve_manifold(name, shape) == expected
    assert expected.point_shape == shape


def test_instances_resolve_to_themselves(space):
    assert resolve_manifold(space, space.point_shape) is space
    with pytest.raises(ValueError, match=r"^X must have shape \(n_samples, .*\.$"):
        resolve_manifold(space, (*space.point_shape[:-1], space.point_shape[-1] + 1))


@pytest.mark.parametrize(
    ("manifold", "shape", "error", "message"),
    [
        ("torus", (3,), ValueError, "manifold must be one of .*'spd'.* got 'torus'"),
        (None, (3,), TypeError, "manifold must be a string or a Manifold, got NoneType"),
        (Sphere, (3,), TypeError, "manifold must be a string or a Manifold, got ABCMeta"),
        ("spd", (3,), ValueError, r"X must have shape \(n_samples, p, p\).*2 dimensions"),
        ("sphere", (3, 3), ValueError, r"X must have shape \(n_samples, n_features\).*3 dimen"),
        ("spd", (3, 2), ValueError, r"square matrices.*got matrices of shape \(3, 2\)"),
        ("sphere", (1,), ValueError, "at least 2 columns for manifold='sphere', got 1"),
        ("hyperbolic", (1,), ValueError, "at least 2 columns for manifold='hyperbolic', got 1"),
        ("euclidean", (0,), ValueError, "at least 1 columns for manifold='euclidean', got 0"),
    ],
)
def test_errors_of_names_are_one_sentence(manifold, shape, error, message):
    with pytest.raises(error, match=message) as caught:
        resolve_manifold(manifold, shape)
    text = str(caught.value)
    assert text.endswith(".")
    assert ". " not in text
    assert "\n" not in text
