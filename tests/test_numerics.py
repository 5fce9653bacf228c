"""Special ratios against mpmath, closed-form eigenvalues against LAPACK, clips and isometries."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from pyriemann.geometry.tangentspace import unupper, upper

from skdpfrechet._numerics import (
    angle_between,
    clip_eigenvalues,
    clip_norm,
    eigh,
    eigvalsh,
    from_eigen,
    hessian_deficit,
    hessian_ratio,
    householder,
    jacobi_ratio,
    sqrt_pair,
    symmetrize,
    triangular_root,
    unvecd,
    vecd,
    x_coth,
    x_over_tan,
)

EPS = np.finfo(float).eps
moderate = settings(max_examples=60, deadline=None)


# --- special ratios ------------------------------------------------------------------------------


def exact_ratio(k):
    """√k cot √k, or √-k coth √-k."""
    if k == 0:
        return mpmath.mpf(1)
    x = mpmath.sqrt(abs(k))
    return x * mpmath.cot(x) if k > 0 else x * mpmath.coth(x)


def exact_deficit(k):
    # Below 1e-60 the next term of the series, k/45, is beyond 60 digits.
    return mpmath.mpf(1) / 3 if abs(k) < 1e-60 else (1 - exact_ratio(k)) / k


def exact_jacobi(k):
    if k == 0:
        return mpmath.mpf(1)
    x = mpmath.sqrt(abs(k))
    return mpmath.sin(x) / x if k > 0 else mpmath.sinh(x) / x


RATIOS = [
    pytest.param(hessian_deficit, exact_deficit, id="deficit"),
    pytest.param(hessian_ratio, exact_ratio, id="hessian"),
    pytest.param(jacobi_ratio, exact_jacobi, id="jacobi"),
]
tiny = st.floats(-300, -6).map(lambda e: 10.0**e)
small = st.floats(-6, -1).map(lambda e: 10.0**e)  # where quotients lose digits
ordinary = st.floats(0.01, 100.0)
large = st.floats(2, 5.3).map(lambda e: 10.0**e)
sizes = st.one_of(tiny, small, ordinary, large)


@pytest.mark.parametrize(("ratio", "exact"), RATIOS)
@moderate
@given(size=sizes, sign=st.sampled_from([-1.0, 1.0]))
@example(size=0.0, sign=1.0)
@example(size=5e-324, sign=-1.0)
@example(size=0.0625, sign=1.0)
@example(size=0.0625, sign=-1.0)
@example(size=np.nextafter(0.0625, 0), sign=1.0)
@example(size=2.4674, sign=1.0)  # next to the zero of x cot x
@example(size=9.8696, sign=1.0)  # next to its pole, and to the zero of sin x
def test_ratios_match_mpmath(ratio, exact, size, sign):
    k = sign * size
    with mpmath.workdps(400 if size < 1e-6 else 60):
        expected = exact(mpmath.mpf(k))
        # The root √k and the argument of the function are rounded: next to zeros and poles that
        # alone costs the condition number |k f'(k) / f(k)|; elsewhere it is at most √|k|.
        step = mpmath.mpf(size) * mpmath.mpf(10) ** -20
        condition = abs((exact(k + step) - exact(k - step)) / expected / 2) * mpmath.mpf(10) ** 20
        error = abs(mpmath.mpf(float(ratio(k))) / expected - 1)
        assert error <= 1e-13 + 4 * EPS * condition


@pytest.mark.parametrize(("ratio", "exact"), RATIOS)
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_ratios_do_not_jump_where_the_series_ends(ratio, exact, sign):
    below, above = sign * np.nextafter(0.0625, 0), sign * 0.0625
    # The functions have slopes below 1/2, so neighbouring floats differ by rounding alone.
    assert abs(ratio(below) - ratio(above)) <= 1e-13 * abs(ratio(above))


def test_ratios_of_x_are_the_ratios_of_x_squared():
    x = np.array([0.0, 1e-9, 0.2, 1.0, 1.5, 3.0])
    assert_allclose(x_over_tan(x[1:]), x[1:] / np.tan(x[1:]), rtol=1e-13)
    assert_allclose(x_coth(x[1:]), x[1:] / np.tanh(x[1:]), rtol=1e-13)
    assert x_over_tan(0.0) == x_coth(0.0) == 1.0


def test_ratios_grow_without_a_warning():
    assert jacobi_ratio(-1e7) == np.inf
    assert_allclose(hessian_ratio(-1e12), 1e6, rtol=1e-13)
    assert_allclose(hessian_deficit(-1e12), (1e6 - 1) / 1e12, rtol=1e-13)


@pytest.mark.parametrize("ratio", [hessian_deficit, hessian_ratio, jacobi_ratio])
def test_ratios_are_elementwise(ratio):
    k = np.linspace(-20, 9, 24).reshape(2, 3, 4)
    looped = np.array([ratio(x) for x in k.ravel()]).reshape(k.shape)
    assert_array_equal(ratio(k), looped)


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-9, 1e-3, 1.0, 3.0, np.pi - 1e-9, np.pi])
def test_angle_keeps_its_digits_near_0_and_pi(angle):
    p = np.array([1.0, 0.0])
    # Coordinates near 1 are rounded by eps/2 along the radius, which does not turn the angle.
    assert_allclose(angle_between(p, np.array([np.cos(angle), np.sin(angle)])), angle, atol=4 * EPS)


# --- clip_norm -----------------------------------------------------------------------------------

entries = st.floats(-1e200, 1e200).map(lambda x: x if abs(x) > 1e-250 else 0.0)


def long_norm(v):
    """Norm without overflow."""
    scale = max(np.abs(v).max(), 1e-300)
    return scale * np.linalg.norm(v / scale)


@moderate
@given(v=st.lists(entries, min_size=1, max_size=5).map(np.array), radius=st.floats(1e-250, 1e250))
def test_clip_norm_shortens_along_the_ray(v, radius):
    clipped = clip_norm(v, radius)
    length = long_norm(v)
    assert long_norm(clipped) <= radius * (1 + 4 * EPS)
    if length <= radius * (1 - 4 * EPS):
        assert_array_equal(clipped, v)
    elif length > 0:
        assert_allclose(long_norm(clipped), min(radius, length), rtol=1e-14)
        assert_allclose(clipped / min(radius, length), v / length, atol=1e-14)


@pytest.mark.parametrize("scale", [1e-200, 1e-12, 1.0, 1e200])
def test_clip_norm_does_not_square_extreme_entries(scale):
    v = scale * np.array([3.0, 4.0])
    assert_allclose(clip_norm(v, 1e-3 * scale), scale * np.array([6e-4, 8e-4]), rtol=1e-14)
    assert_array_equal(clip_norm(v, 10 * scale), v)
    assert_array_equal(clip_norm(v, 0.0), [0.0, 0.0])
    assert_array_equal(clip_norm(v, np.inf), v)
    assert_array_equal(clip_norm(np.array([scale, 0.0]), np.inf), [scale, 0.0])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_clip_norm_sends_non_finite_vectors_to_zero(bad):
    v = np.array([[1.0, bad], [3.0, 4.0]])
    assert_allclose(clip_norm(v, 1.0), [[0.0, 0.0], [0.6, 0.8]], rtol=1e-15)
    assert_array_equal(clip_norm(v, np.inf), [[0.0, 0.0], [3.0, 4.0]])


def test_clip_norm_takes_one_radius_per_vector():
    v = np.array([[3.0, 4.0], [3.0, 4.0], [0.0, 0.0]])
    expected = [[0.6, 0.8], [3.0, 4.0], [0.0, 0.0]]
    assert_allclose(clip_norm(v, np.array([1.0, 7.0, 0.0])), expected, rtol=1e-15)


# --- symmetric matrices --------------------------------------------------------------------------


def check_eigen(a):
    """The definition, and LAPACK's eigenvalues to rounding relative to the norm."""
    w, q = eigh(a)
    size = a.shape[-1]
    tolerance = 16 * size * EPS * np.abs(a).max() + 1e-320  # a few subnormal steps
    assert (np.diff(w, axis=-1) >= 0).all()
    eye = np.broadcast_to(np.eye(a.shape[-1]), a.shape)
    assert_allclose(q @ np.swapaxes(q, -1, -2), eye, atol=16 * EPS)
    assert_allclose(w, np.linalg.eigvalsh(a), rtol=0, atol=tolerance)
    assert_allclose(a @ q, q * w[..., None, :], rtol=0, atol=tolerance)


unit_entries = st.floats(-1, 1)


@moderate
@given(entries=st.tuples(unit_entries, unit_entries, unit_entries), power=st.integers(-150, 150))
def test_eigh_of_2x2_matrices(entries, power):
    top, off, bottom = entries
    check_eigen(10.0**power * np.array([[top, off], [off, bottom]]))


SPECIAL = {
    "zero": [[0.0, 0.0], [0.0, 0.0]],
    "diagonal": [[2.0, 0.0], [0.0, -3.0]],
    "diagonal descending": [[5.0, 0.0], [0.0, 1.0]],
    "repeated": [[4.0, 0.0], [0.0, 4.0]],
    "repeated negative": [[-4.0, -0.0], [-0.0, -4.0]],
    "nearly repeated": [[1.0, 1e-17], [1e-17, 1.0]],
    "tiny off-diagonal": [[1.0, 1e-200], [1e-200, 2.0]],
    "ill-conditioned": [[1.0, 1 - 1e-12], [1 - 1e-12, 1.0]],
    "singular": [[1.0, 2.0], [2.0, 4.0]],
    "negative definite": [[-2.0, 1.0], [1.0, -3.0]],
    "zero trace": [[3.0, 4.0], [4.0, -3.0]],
    "zero diagonal": [[0.0, -1.0], [-1.0, 0.0]],
}


@pytest.mark.parametrize("matrix", SPECIAL.values(), ids=SPECIAL.keys())
def test_eigh_of_special_2x2_matrices(matrix):
    check_eigen(np.array(matrix))


@pytest.mark.parametrize("scale", [1e-280, 1e-12, 1.0, 1e300])
def test_eigh_of_2x2_keeps_small_eigenvalues_of_diagonal_matrices_exact(scale):
    w, _ = eigh(np.diag([scale, 1e-20 * scale]))
    assert_allclose(w, [1e-20 * scale, scale], rtol=4 * EPS)


def test_eigh_of_2x2_small_eigenvalue_is_the_determinant_over_the_large_one():
    # det = 1 - (1-δ)² = δ(2-δ) and λ_max = 2 - δ, so the smallest eigenvalue is δ = 2^-40 exactly.
    delta = 2.0**-40
    w, _ = eigh(np.array([[1.0, 1 - delta], [1 - delta, 1.0]]))
    assert_allclose(w, [delta, 2 - delta], rtol=0, atol=2 * EPS)


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_eigh_is_batched(size):
    a = symmetrize(np.random.default_rng(0).standard_normal((3, 4, size, size)))
    check_eigen(a)
    w, q = eigh(a)
    assert_array_equal(w[1, 2], eigh(a[1, 2])[0])
    assert_array_equal(q[1, 2], eigh(a[1, 2])[1])


@pytest.mark.parametrize("size", [1, 2, 3, 6])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_eigh_marks_non_finite_matrices_alone(size, bad):
    a = symmetrize(np.random.default_rng(1).standard_normal((5, size, size)))
    clean, _ = eigh(a)
    a[2, -1, 0] = a[2, 0, -1] = bad
    w, q = eigh(a)
    others = [0, 1, 3, 4]
    assert np.isnan(w[2]).all()
    assert np.isfinite(q).all()
    assert_array_equal(w[others], clean[others])


def test_eigh_survives_a_failure_of_lapack(monkeypatch):
    a = symmetrize(np.random.default_rng(2).standard_normal((4, 3, 3)))
    lapack = np.linalg.eigh

    def gives_up_on_the_third(x):
        if x.ndim > 2 or np.array_equal(x, a[2]):
            raise np.linalg.LinAlgError
        return lapack(x)

    monkeypatch.setattr(np.linalg, "eigh", gives_up_on_the_third)
    w, q = eigh(a)
    assert_array_equal(np.isnan(w).all(axis=-1), [False, False, True, False])
    assert_allclose(from_eigen(w[0], q[0]), a[0], atol=1e-14)


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_sqrt_pair_multiplies_back(size):
    g = np.random.default_rng(3).standard_normal((10, size, 2 * size))
    a = g @ np.swapaxes(g, -1, -2)
    root, inverse_root = sqrt_pair(a)
    assert_allclose(root @ root, a, atol=1e-13 * np.abs(a).max())
    assert_allclose(root @ inverse_root, np.broadcast_to(np.eye(size), a.shape), atol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_clip_eigenvalues(size):
    a = symmetrize(np.random.default_rng(4).standard_normal((20, size, size)))
    clipped = clip_eigenvalues(a, -0.5, 0.7)
    w = np.linalg.eigvalsh(clipped)
    assert_allclose(w, np.clip(np.linalg.eigvalsh(a), -0.5, 0.7), atol=1e-14)
    assert_array_equal(clipped, np.swapaxes(clipped, -1, -2))
    # Same eigenvectors: the clipped matrix commutes with the original.
    assert_allclose(clipped @ a, a @ clipped, atol=1e-14)
    assert_allclose(clip_eigenvalues(a, -np.inf, np.inf), a, atol=1e-14)
    low = np.linspace(-1, 0, 20)
    looped = np.stack([clip_eigenvalues(x, bound, 1.0) for x, bound in zip(a, low, strict=True)])
    assert_allclose(clip_eigenvalues(a, low, 1.0), looped, atol=1e-15)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_vecd_is_the_isometry_of_pyriemann(size):
    rng = np.random.default_rng(5)
    a = symmetrize(rng.standard_normal((2, 6, size, size)))
    c = vecd(a)
    assert c.shape == (2, 6, size * (size + 1) // 2)
    assert_allclose(np.linalg.norm(c, axis=-1), np.linalg.norm(a, axis=(-1, -2)), rtol=1e-14)
    assert_allclose(c, upper(a), rtol=1e-15)
    assert_allclose(unvecd(c), a, rtol=1e-15)
    assert_allclose(unvecd(c), unupper(c), rtol=1e-15)
    assert triangular_root(c.shape[-1]) == size


def test_triangular_root_inverts_triangular_numbers():
    assert [triangular_root(p * (p + 1) // 2) for p in range(1, 2000)] == list(range(1, 2000))


@moderate
@given(v=st.lists(st.floats(-1, 1), min_size=2, max_size=6).map(np.array))
@example(v=np.array([1.0, 0.0, 0.0]))
@example(v=np.array([-1.0, 0.0, 0.0]))
@example(v=np.array([-1.0, 1e-9, 0.0]))
@example(v=np.array([0.0, 1.0]))
def test_householder_reflects_the_first_axis_to_the_point(v):
    if np.abs(v).max() < 1e-3:
        v = np.eye(len(v))[0]
    p = v / np.linalg.norm(v)
    h, beta = householder(p)
    reflection = np.eye(len(p)) - beta * np.outer(h, h)
    assert_allclose(reflection @ reflection.T, np.eye(len(p)), atol=8 * EPS)
    assert_allclose(np.abs(reflection[:, 0] @ p), 1.0, rtol=8 * EPS)
    assert_allclose(p @ reflection[:, 1:], 0.0, atol=8 * EPS)


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_eigvalsh_gives_the_eigenvalues_of_eigh(size):
    rng = np.random.default_rng(size)
    a = rng.normal(size=(5, size, size))
    a = a + a.swapaxes(1, 2)
    np.testing.assert_allclose(eigvalsh(a), eigh(a)[0], rtol=1e-13, atol=1e-13)
    a[2, 0, 0] = np.nan
    w = eigvalsh(a)
    assert np.isnan(w[2]).all()
    np.testing.assert_array_equal(np.isfinite(np.delete(w, 2, axis=0)), True)


def test_root_of_a_matrix_that_rounding_made_indefinite():
    a = np.array([[1.0, 1.0 + 1e-15, 0.0], [1.0 + 1e-15, 1.0, 0.0], [0.0, 0.0, 3.0]])
    root, inverse = sqrt_pair(a)
    assert_allclose(root @ root, a, atol=1e-14)
    assert np.isfinite(inverse).all()
