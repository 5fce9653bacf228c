"""The Fréchet mean: closed forms, pyriemann, certificates recomputed, scattered data."""

from __future__ import annotations

import re
from math import pi

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pyriemann.geometry.geodesic import geodesic
from pyriemann.geometry.mean import mean_logchol, mean_logeuclid, mean_riemann
from scipy.optimize import minimize

from skdpfrechet._solvers import frechet_mean
from skdpfrechet.exceptions import ConvergenceError
from skdpfrechet.manifolds import (
    Euclidean,
    Hyperbolic,
    SPDAffineInvariant,
    SPDLogCholesky,
    SPDLogEuclidean,
    Sphere,
)

EPS = np.finfo(float).eps
SPACES = [
    Euclidean(3),
    Sphere(1),
    Sphere(2),
    Sphere(10),
    Hyperbolic(1),
    Hyperbolic(2),
    Hyperbolic(5),
    SPDAffineInvariant(1),
    SPDAffineInvariant(2),
    SPDAffineInvariant(5),
    SPDLogEuclidean(3),
    SPDLogCholesky(3),
]


@pytest.fixture(params=SPACES, ids=repr)
def space(request):
    return request.param


@pytest.fixture
def rng():
    return np.random.default_rng(20260520)


def directions(rng, *shape):
    x = rng.standard_normal(shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def center_of(space, rng):
    """Some point, not the origin."""
    if space.origin is None:
        return directions(rng, *space.point_shape)
    return space.exp_coords(space.origin, 0.5 * directions(rng, space.dim))


def ball(space, rng, center, radius, *shape):
    lengths = radius * rng.uniform(0, 1, (*shape, 1))
    return space.exp_coords(center, lengths * directions(rng, *shape, space.dim))


def to_rounding(space, points, start, radius=np.inf):
    """Iterate until rounding stops, and accept nothing that rounding does not explain."""
    return frechet_mean(space, points, start, radius=radius, tolerance=0.0, accept=1e-10)


def residual(space, p, points):
    return np.linalg.norm(space.log_coords(p, points).mean(axis=-2), axis=-1)


def certificate(radius, n):
    """The public tolerance that the estimators ask for."""
    return max(1e-4 * 2 * radius / n, 1e-9 * radius)


def symmetric(a):
    return (a + np.swapaxes(a, -1, -2)) / 2


def wishart(rng, n, size, degrees):
    g = rng.standard_normal((n, size, degrees))
    return symmetric(g @ np.swapaxes(g, -1, -2)) / degrees


# --- laws on every space -------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 7, 50])
def test_certificate_holds_when_it_is_recomputed(space, rng, n):
    center = center_of(space, rng)
    radius = 1.2
    points = ball(space, rng, center, radius, n)
    for tolerance in (certificate(radius, n), 1e-12):
        p = frechet_mean(space, points, center, radius=radius, tolerance=tolerance)
        assert space.contains(p)
        assert space.dist(center, p) <= radius
        # The two evaluations of the residual round differently.
        assert residual(space, p, points) <= tolerance + 1e-13


def test_mean_minimises_the_mean_squared_distance(space, rng):
    center = center_of(space, rng)
    points = ball(space, rng, center, 1.2, 9)
    p = to_rounding(space, points, center, 1.2)

    def variance(x):
        return (space.dist(x, points) ** 2).mean()

    least = variance(p)
    for length in (1e-3, 0.1, 0.5):
        for c in length * directions(rng, 10, space.dim):
            # The Hessian of ρ² is at least 2 x cot x there, x = 1.2 + |p - m0| + length < 3.
            assert variance(space.exp_coords(p, c)) > least


def test_mean_of_one_record_is_the_record(space, rng):
    center = center_of(space, rng)
    points = ball(space, rng, center, 1.2, 1)
    assert_allclose(to_rounding(space, points, center, 1.2), points[0], rtol=0, atol=1e-12)
    same = np.broadcast_to(points, (5, *points.shape[1:]))
    assert_allclose(to_rounding(space, same, center, 1.2), points[0], rtol=0, atol=1e-12)


def test_mean_of_two_records_is_their_midpoint(space, rng):
    center = center_of(space, rng)
    for points in ball(space, rng, center, 1.2, 5, 2):
        middle = space.exp(points[0], space.log(points[0], points[1]) / 2)
        assert_allclose(to_rounding(space, points, center, 1.2), middle, rtol=0, atol=1e-11)


def test_mean_on_a_geodesic_is_the_mean_of_its_parameter(space, rng):
    center = center_of(space, rng)
    c = directions(rng, space.dim)
    t = np.array([-1.1, -0.4, 0.3, 1.2, 1.2])
    points = space.exp_coords(center, t[:, None] * c)
    expected = space.exp_coords(center, t.mean() * c)
    assert_allclose(to_rounding(space, points, center, 1.2), expected, rtol=0, atol=1e-11)


def test_batch_equals_loop(space, rng):
    center = center_of(space, rng)
    points = ball(space, rng, center, 1.2, 3, 4, 6)
    # One easy problem and one scattered one among the others.
    points[0, 0] = points[0, 0, 0]
    for tolerance in (1e-4, 1e-11):
        together = frechet_mean(space, points, center, radius=1.2, tolerance=tolerance)
        assert together.shape == (3, 4, *space.point_shape)
        for index in np.ndindex(3, 4):
            alone = frechet_mean(space, points[index], center, radius=1.2, tolerance=tolerance)
            assert_allclose(together[index], alone, rtol=0, atol=1e-12)


def test_same_input_gives_the_same_bits(space, rng):
    center = center_of(space, rng)
    points = ball(space, rng, center, 1.2, 8)
    first = frechet_mean(space, points, center, radius=1.2, tolerance=1e-10)
    second = frechet_mean(space, points.copy(), center.copy(), radius=1.2, tolerance=1e-10)
    assert_array_equal(first, second)


def test_order_of_records_does_not_matter(space, rng):
    center = center_of(space, rng)
    points = ball(space, rng, center, 1.2, 8)
    one = to_rounding(space, points, center, 1.2)
    other = to_rounding(space, points[::-1], center, 1.2)
    assert_allclose(one, other, rtol=0, atol=1e-12)


def test_start_does_not_matter(space, rng):
    center = center_of(space, rng)
    points = ball(space, rng, center, 0.6, 8)
    other = space.exp_coords(center, 0.5 * directions(rng, space.dim))
    one = to_rounding(space, points, center, 0.6)
    # The ball of radius 1.1 around the other start contains the records.
    assert_allclose(to_rounding(space, points, other, 1.1), one, rtol=0, atol=1e-11)


@pytest.mark.parametrize(
    "space", [s for s in SPACES if s.sectional_curvature_bounds != (0.0, 0.0)], ids=repr
)
def test_missing_the_certificate_is_an_error_that_names_no_number(space, rng):
    center = center_of(space, rng)
    points = ball(space, rng, center, 1.2, 5)
    with pytest.raises(ConvergenceError) as caught:
        frechet_mean(space, points, center, radius=1.2, tolerance=1e-300, max_iter=1)
    text = str(caught.value)
    assert not re.search(r"\d", text)
    other = ball(space, rng, center, 1.2, 5)
    with pytest.raises(ConvergenceError, match=f"^{re.escape(text)}$"):
        frechet_mean(space, other, center, radius=1.2, tolerance=1e-300, max_iter=1)


@pytest.mark.parametrize(
    "space", [s for s in SPACES if s.sectional_curvature_bounds != (0.0, 0.0)], ids=repr
)
def test_a_record_that_is_not_a_number_is_never_averaged(space, rng):
    center = center_of(space, rng)
    points = ball(space, rng, center, 1.2, 5)
    points[2] = np.nan
    with pytest.raises(ConvergenceError):
        frechet_mean(space, points, center, radius=1.2, tolerance=1e-3)


# --- positive definite matrices ------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_agrees_with_pyriemann(rng, size):
    points = wishart(rng, 15, size, 2 * size + 3)
    eye = np.eye(size)
    exact = mean_riemann(points, tol=1e-14, maxiter=500)
    assert_allclose(to_rounding(SPDAffineInvariant(size), points, eye), exact, rtol=0, atol=1e-9)
    flat = frechet_mean(SPDLogEuclidean(size), points, eye)
    assert_allclose(flat, mean_logeuclid(points), rtol=0, atol=1e-9)
    flat = frechet_mean(SPDLogCholesky(size), points, eye)
    assert_allclose(flat, mean_logchol(points), rtol=0, atol=1e-9)


def test_closed_forms_of_matrices(rng):
    space = SPDAffineInvariant(2)
    eye = np.eye(2)
    pair = np.stack([np.diag([np.e**2, 1.0]), eye])
    assert_allclose(to_rounding(space, pair, eye), np.diag([np.e, 1.0]), rtol=0, atol=1e-13)
    a, b = wishart(rng, 2, 2, 5)
    middle = geodesic(a, b, 0.5, metric="riemann")
    assert_allclose(to_rounding(space, np.stack([a, b]), eye), middle, rtol=0, atol=1e-12)
    # The geometric mean of two 2 x 2 matrices of determinant 1 is (A + B)/√det(A + B).
    a, b = a / np.sqrt(np.linalg.det(a)), b / np.sqrt(np.linalg.det(b))
    middle = (a + b) / np.sqrt(np.linalg.det(a + b))
    assert_allclose(to_rounding(space, np.stack([a, b]), eye), middle, rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [2, 5])
def test_mean_of_commuting_matrices_is_the_geometric_mean(rng, size):
    q = np.linalg.qr(rng.standard_normal((size, size)))[0]
    logs = rng.uniform(-3, 3, (12, size))
    points = symmetric((q * np.exp(logs)[:, None, :]) @ q.T)
    expected = (q * np.exp(logs.mean(axis=0))) @ q.T
    for space in (SPDAffineInvariant(size), SPDLogEuclidean(size)):
        assert_allclose(to_rounding(space, points, np.eye(size)), expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("size", [2, 4])
def test_equivariance_under_congruence_and_inversion(rng, size):
    space = SPDAffineInvariant(size)
    points = wishart(rng, 12, size, size + 3)
    g = rng.standard_normal((size, size)) + 2 * np.eye(size)
    mean = to_rounding(space, points, np.eye(size))
    moved = to_rounding(space, symmetric(g @ points @ g.T), symmetric(g @ g.T))
    assert_allclose(moved, g @ mean @ g.T, rtol=0, atol=1e-10)
    inverted = to_rounding(space, symmetric(np.linalg.inv(points)), np.eye(size))
    assert_allclose(inverted, np.linalg.inv(mean), rtol=0, atol=1e-9)
    # The determinant of the mean is the geometric mean of the determinants.
    logdet = np.linalg.slogdet(points)[1].mean()
    assert_allclose(np.linalg.slogdet(mean)[1], logdet, rtol=0, atol=1e-11)


def exact_residual(p, points):
    """|(1/n) Σ log(P^{-1/2} X P^{-1/2})| in 80 digits."""
    with mpmath.workdps(80):
        w, q = mpmath.eigsy(mpmath.matrix(p.tolist()))
        root = q * mpmath.diag([1 / mpmath.sqrt(x) for x in w]) * q.T
        total = mpmath.zeros(*p.shape)
        for point in points:
            white = root * mpmath.matrix(point.tolist()) * root
            w, q = mpmath.eigsy((white + white.T) / 2)
            total += q * mpmath.diag([mpmath.log(x) for x in w]) * q.T
        return float(mpmath.mnorm(total / len(points), "f"))


def rotated(a, angles):
    """Matrices with eigenvalues e^a, e^-a in the given directions."""
    cos, sin = np.cos(angles), np.sin(angles)
    turn = np.stack([np.stack([cos, -sin], -1), np.stack([sin, cos], -1)], -2)
    return symmetric(turn @ np.diag(np.exp([a, -a])) @ np.swapaxes(turn, -1, -2))


SHIFTED = np.array([[3.0, 0.5], [0.5, 0.4]])


@pytest.mark.parametrize("a", [1.0, 4.0, 8.0, 10.0, 12.0, 13.0, 14.0, 15.0])
@pytest.mark.parametrize("start", [np.eye(2), SHIFTED], ids=["identity", "off-centre"])
def test_scattered_matrices_meet_the_certificate(rng, a, start):
    space = SPDAffineInvariant(2)
    radius = a * np.sqrt(2)
    tolerance = certificate(radius, 3)
    # Entries of the records are rounded to ε e^a, which moves their small eigenvalue e^-a by the
    # relative ε e^{2a}: 7e-4 of the tolerance at a = 11, but more than it at a = 15.
    floor = 64 * EPS * np.exp(2 * a)
    accept = tolerance if a <= 12 else max(tolerance, floor)
    for _ in range(10):
        points = rotated(a, rng.uniform(0, pi, 3))
        p = frechet_mean(space, points, start, tolerance=tolerance, accept=accept)
        assert exact_residual(p, points) <= accept + floor


@pytest.mark.parametrize("degrees", [10, 11, 12])
def test_nearly_singular_covariances(rng, degrees):
    """n = 20 Wishart matrices of size 10: conditions up to 1e7, distances up to 14."""
    space = SPDAffineInvariant(10)
    for start in (np.eye(10), np.diag(np.geomspace(0.1, 10.0, 10))):
        points = wishart(rng, 20, 10, degrees)
        radius = float(space.dist(start, points).max())
        tolerance = certificate(radius, 20)
        p = frechet_mean(space, points, start, tolerance=tolerance)
        assert residual(space, p, points) <= tolerance + 1e-9
        # A residual g puts p within g of the mean: the objective is strongly convex.
        assert space.dist(p, to_rounding(space, points, start)) <= tolerance + 1e-9


def test_covariances_in_squared_volts(rng):
    space = SPDAffineInvariant(4)
    points = wishart(rng, 12, 4, 9)
    mean = to_rounding(space, points, np.eye(4))
    tiny = to_rounding(space, 1e-12 * points, 1e-12 * np.eye(4))
    assert_allclose(1e12 * tiny, mean, rtol=0, atol=1e-11)
    # A public centre in another unit than the records costs passes, not accuracy.
    assert_allclose(1e12 * to_rounding(space, 1e-12 * points, np.eye(4)), mean, rtol=0, atol=1e-11)


# --- spheres -------------------------------------------------------------------------------------


def test_symmetric_configurations_on_the_sphere():
    sphere = Sphere(2)
    north = np.array([0.0, 0.0, 1.0])
    for count in (2, 3, 8):
        angles = 2 * pi * np.arange(count) / count
        for height in (0.5, 1.0, 1.5):
            ring = sphere.exp_coords(
                north, height * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
            )
            start = sphere.exp_coords(north, np.array([0.02, 0.03]))
            mean = to_rounding(sphere, ring, start, min(height + 0.05, 1.56))
            assert_allclose(mean, north, rtol=0, atol=1e-11)


@pytest.mark.parametrize("dim", [1, 2, 6])
def test_rotations_carry_the_mean_along(rng, dim):
    sphere = Sphere(dim)
    turn = np.linalg.qr(rng.standard_normal((dim + 1, dim + 1)))[0]
    center = directions(rng, dim + 1)
    points = ball(sphere, rng, center, 1.4, 7)
    mean = to_rounding(sphere, points, center, 1.4)
    moved = to_rounding(sphere, points @ turn, center @ turn, 1.4)
    assert_allclose(moved, mean @ turn, rtol=0, atol=1e-11)


def smallest_in_ball(sphere, center, points, radius, rng):
    """Brute force: the least mean squared distance within the ball, from several starts."""

    def objective(c):
        return (sphere.dist(sphere.exp_coords(center, c), points) ** 2).mean()

    starts = [np.zeros(sphere.dim), *(0.8 * radius * directions(rng, 4, sphere.dim))]
    inside = {"type": "ineq", "fun": lambda c: radius**2 - c @ c}
    options = {"ftol": 1e-13, "maxiter": 300}
    return min(
        minimize(objective, c, method="SLSQP", constraints=[inside], options=options).fun
        for c in starts
    )


@pytest.mark.parametrize("dim", [2, 5])
@pytest.mark.parametrize("radius", [1.5, 1.55])
def test_data_near_the_edge_of_a_hemisphere(rng, dim, radius):
    """There are critical points outside the ball, e.g. near -m0; the mean is the one inside."""
    sphere = Sphere(dim)
    for kind in ("opposite", "opposite", "boundary", "boundary", "inside"):
        center = directions(rng, dim + 1)
        n = int(rng.integers(3, 7))
        if kind == "opposite":
            signs = rng.permutation([1.0, -1.0] + [1.0] * (n - 2))
            c = radius * signs[:, None] * directions(rng, dim)
        else:
            c = radius * directions(rng, n, dim)
            c *= 1.0 if kind == "boundary" else rng.uniform(0, 1, (n, 1))
        points = sphere.exp_coords(center, c)
        for tolerance, accept in ((certificate(radius, n), None), (0.0, 1e-7 * radius)):
            mean = frechet_mean(
                sphere, points, center, radius=radius, tolerance=tolerance, accept=accept
            )
            assert sphere.dist(center, mean) <= radius * (1 + 1e-8)
            assert residual(sphere, mean, points) <= max(tolerance, 1e-7 * radius) + 1e-12
        least = smallest_in_ball(sphere, center, points, radius, rng)
        assert_allclose((sphere.dist(mean, points) ** 2).mean(), least, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("dim", "n", "radius", "spread"),
    [(2, 3, 1.5, 0.05), (2, 3, 1.56, 1.0), (2, 3, 1.56, 0.05), (5, 5, 1.56, 1.0)],
)
def test_no_certified_mean_is_outside_the_ball(rng, dim, n, radius, spread):
    """Records on the boundary, along one axis (small spread) or all around.

    Of each thousand of these samples, a Newton iteration that may leave the ball certifies a
    critical point outside it for up to a hundred; one without the descent from the centre misses
    the certificate as often.
    """
    sphere = Sphere(dim)
    center = directions(rng, dim + 1)
    axis = directions(rng, 1000, 1, dim) * rng.choice([-1.0, 1.0], (1000, n, 1))
    around = directions(rng, 1000, n, dim)
    c = spread * around + (1 - spread) * axis
    points = sphere.exp_coords(center, radius * c / np.linalg.norm(c, axis=-1, keepdims=True))
    tolerance = certificate(radius, n)
    mean = frechet_mean(sphere, points, center, radius=radius, tolerance=tolerance)
    assert (residual(sphere, mean[:, None], points) <= tolerance + 1e-13).all()
    assert (sphere.dist(center, mean) <= radius * (1 + 1e-8)).all()


@pytest.mark.parametrize("dim", [2, 5])
def test_the_antipode_of_the_centre_is_never_the_mean(rng, dim):
    """Points at ±1.5 around m0: -m0 is a critical point with residual 0 to rounding."""
    sphere = Sphere(dim)
    center = directions(rng, dim + 1)
    c = 1.5 * directions(rng, dim)
    points = sphere.exp_coords(center, np.stack([c, -c]))
    assert residual(sphere, -center, points) <= 1e-14
    start = sphere.exp_coords(center, 0.05 * directions(rng, dim))
    for begin, radius in ((center, 1.5), (start, 1.56)):
        mean = to_rounding(sphere, points, begin, radius)
        assert_allclose(mean, center, rtol=0, atol=1e-10)


# --- hyperbolic space ----------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("n", [2, 3, 10])
def test_scattered_hyperbolic_data(rng, dim, n):
    space = Hyperbolic(dim)
    radius = 8.0
    points = space.exp_coords(space.origin, radius * directions(rng, 20, n, dim))
    tolerance = certificate(radius, n)
    mean = frechet_mean(space, points, space.origin, radius=radius, tolerance=tolerance)
    # Products of entries cosh(8) of mean and record round to ε cosh²(8) = 5e-10.
    rounding = 4 * EPS * np.cosh(radius) ** 2
    found = residual(space, mean[:, None], points)
    assert (found <= tolerance + rounding).all()
    assert (space.dist(space.origin, mean) <= radius).all()


def test_mean_of_two_hyperbolic_points_is_their_normalised_sum(rng):
    space = Hyperbolic(3)
    p, q = space.exp_coords(space.origin, 2.0 * directions(rng, 2, 3))
    total = p + q
    expected = total / np.sqrt(-space.inner(p, total, total))
    mean = to_rounding(space, np.stack([p, q]), space.origin)
    assert_allclose(mean, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("dim", [1, 3])
def test_boosts_carry_the_mean_along(rng, dim):
    space = Hyperbolic(dim)
    boost = np.eye(dim + 1)
    boost[:2, :2] = [[np.cosh(1.0), np.sinh(1.0)], [np.sinh(1.0), np.cosh(1.0)]]
    points = ball(space, rng, space.origin, 2.0, 7)
    mean = to_rounding(space, points, space.origin)
    moved = to_rounding(space, points @ boost, space.origin)
    assert_allclose(moved, mean @ boost, rtol=0, atol=1e-10)


# --- flat spaces ---------------------------------------------------------------------------------


def test_flat_means_are_averages_of_the_chart(rng):
    points = rng.standard_normal((4, 9, 3))
    assert_allclose(
        frechet_mean(Euclidean(3), points, np.zeros(3)), points.mean(axis=1), atol=1e-15
    )
    for space in (SPDLogEuclidean(3), SPDLogCholesky(3)):
        matrices = wishart(rng, 9, 3, 8)
        mean = frechet_mean(space, matrices, np.eye(3))
        assert residual(space, mean, matrices) <= 1e-13
