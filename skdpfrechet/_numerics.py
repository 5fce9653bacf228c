"""Stable special ratios, symmetric-matrix functions and angles shared by all layers.

Curvature enters every formula through ``k``, an eigenvalue of ``R(., v)v``: the sectional
curvature times the squared length of ``v``. Written in ``k``, the trigonometric (k > 0) and the
hyperbolic (k < 0) cases are one analytic function, so each ratio below is a single function too.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from math import pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]  # float64, except for boolean masks

# 2 zeta(2j) / pi^(2j), j = 1..8: the power series of (1 - sqrt(k) cot sqrt(k)) / k.
_DEFICIT_SERIES = (
    1 / 3,
    1 / 45,
    2 / 945,
    1 / 4725,
    2 / 93555,
    1382 / 638512875,
    4 / 18243225,
    3617 / 162820783125,
)
_SERIES_LIMIT = 0.0625  # |k| below which eight terms reach 1e-18 and the quotient loses digits


def hessian_deficit(k: ArrayLike) -> Array:
    """Return ``(1 - √k cot √k) / k``, continued to ``(√-k coth √-k - 1) / -k`` for k < 0."""
    k = np.asarray(k, dtype=float)
    near = np.abs(k) < _SERIES_LIMIT
    series = np.polynomial.polynomial.polyval(np.where(near, k, 0.0), _DEFICIT_SERIES)
    safe = np.where(near, 1.0, k)
    x = np.sqrt(np.abs(safe))
    ratio = np.where(safe > 0, x / np.tan(x), x / np.tanh(x))
    return np.where(near, series, (1 - ratio) / safe)


def hessian_ratio(k: ArrayLike) -> Array:
    """Return ``√k cot √k`` (k ≥ 0) or ``√-k coth √-k`` (k < 0): an eigenvalue of Hess ½ρ²."""
    k = np.asarray(k, dtype=float)
    return np.asarray(1 - k * hessian_deficit(k))


def jacobi_ratio(k: ArrayLike) -> Array:
    """Return ``sin √k / √k`` (k ≥ 0) or ``sinh √-k / √-k`` (k < 0): a singular value of D exp."""
    k = np.asarray(k, dtype=float)
    x = np.sqrt(np.abs(k))
    with np.errstate(over="ignore"):
        sines = np.where(k > 0, np.sinc(x / pi), np.sinh(x) / np.where(x > 0, x, 1.0))
    return np.where(x > 0, sines, 1.0)


def x_over_tan(x: ArrayLike) -> Array:
    """Return ``x / tan x``, 1 at 0."""
    x = np.asarray(x, dtype=float)
    return hessian_ratio(x * x)


def x_coth(x: ArrayLike) -> Array:
    """Return ``x coth x``, 1 at 0."""
    x = np.asarray(x, dtype=float)
    return hessian_ratio(-x * x)


def all_finite(a: Array) -> bool:
    """Return whether no entry is NaN or infinite, from a single sum wherever that is finite."""
    with np.errstate(all="ignore"):
        return bool(np.isfinite(a.sum()) or np.isfinite(a).all())


def angle_between(p: Array, q: Array) -> Array:
    """Return the angle between unit vectors along the last axis, exact near 0 and near π."""
    difference = np.linalg.norm(p - q, axis=-1)
    return np.asarray(2 * np.arctan2(difference, np.linalg.norm(p + q, axis=-1)))


def clip_norm(vectors: Array, radius: ArrayLike) -> Array:
    """Shorten `vectors` (last axis) to norm at most `radius`; non-finite vectors become 0."""
    radius = np.asarray(radius, dtype=float)
    finite = np.isfinite(vectors).all(axis=-1, keepdims=True)
    vectors = np.where(finite, vectors, 0.0)
    # Scaling by the largest entry first: squares of 1e200 overflow although the entries do not.
    scale = np.abs(vectors).max(axis=-1, keepdims=True, initial=0.0)
    unit = vectors / np.where(scale > 0, scale, 1.0)
    unit_norm = np.linalg.norm(unit, axis=-1, keepdims=True)
    with np.errstate(over="ignore"):
        outside = unit_norm * scale > radius[..., None]
    factor = np.where(outside, radius[..., None], 0.0) / np.where(scale > 0, unit_norm, 1.0)
    return np.where(outside, unit * factor, vectors)


# --- symmetric matrices ------------------------------------------------------------------------


def symmetrize(a: Array) -> Array:
    """Return the symmetric part of the last two axes."""
    half = a / 2  # halved first: a sum may overflow
    return np.asarray(half + half.swapaxes(-1, -2))


def eigh(a: Array) -> tuple[Array, Array]:
    """Eigenvalues (ascending) and eigenvectors of symmetric matrices, batched.

    2 x 2 matrices take a closed form, several times faster than LAPACK's loop over them. Matrices
    that are not finite, or on which LAPACK gives up, get NaN eigenvalues instead of an exception:
    one bad record must never stop, or speak about, the others.
    """
    size = a.shape[-1]
    if size == 1:
        return np.where(np.isfinite(a[..., 0]), a[..., 0], np.nan), np.ones_like(a)
    safe = a
    if not np.isfinite(a).all():
        finite = np.asarray(np.isfinite(a).all(axis=(-1, -2)))
        safe = np.where(finite[..., None, None], a, np.eye(size))
    if size == 2:
        w, q = _eigh_2x2(safe)
    else:
        try:
            w, q = np.linalg.eigh(safe)
        except np.linalg.LinAlgError:
            w, q = _eigh_one_by_one(safe)
    if safe is not a:
        w = np.where(finite[..., None], w, np.nan)
    return w, q


def eigvalsh(a: Array) -> Array:
    """Eigenvalues (ascending) of symmetric matrices, as `eigh` but without the vectors."""
    if a.shape[-1] <= 2:
        return eigh(a)[0]
    # Not `eigh` where one matrix is bad: its eigenvalues of the others have other last bits.
    finite = np.asarray(np.isfinite(a).all(axis=(-1, -2)))
    safe = a if finite.all() else np.where(finite[..., None, None], a, np.eye(a.shape[-1]))
    try:
        w = np.linalg.eigvalsh(safe)
    except np.linalg.LinAlgError:
        w = np.full(a.shape[:-1], np.nan)
        for index in np.ndindex(a.shape[:-2]):
            with suppress(np.linalg.LinAlgError):
                w[index] = np.linalg.eigvalsh(safe[index])
    return np.where(finite[..., None], w, np.nan)


def _eigh_2x2(a: Array) -> tuple[Array, Array]:
    top, off, bottom = a[..., 0, 0], a[..., 1, 0], a[..., 1, 1]
    half_gap = (top - bottom) / 2
    spread = np.hypot(half_gap, off)
    middle = (top + bottom) / 2
    # The eigenvalue of smaller modulus comes from the determinant: middle - spread cancels.
    outer = middle + np.where(middle < 0, -spread, spread)
    divisor = np.where(outer != 0, outer, 1.0)
    inner = (top / divisor) * bottom - (off / divisor) * off  # products of entries may overflow
    w, q = np.empty(a.shape[:-1]), np.empty(a.shape)
    w[..., 0], w[..., 1] = inner, outer
    w.sort(axis=-1)
    angle = np.arctan2(off, half_gap) / 2  # direction of the larger eigenvalue
    q[..., 0, 1] = q[..., 1, 0] = np.cos(angle)
    q[..., 1, 1] = np.sin(angle)
    q[..., 0, 0] = -q[..., 1, 1]
    return w, q


def _eigh_one_by_one(a: Array) -> tuple[Array, Array]:
    flat = a.reshape(-1, *a.shape[-2:])
    w = np.full(flat.shape[:-1], np.nan)
    q = np.broadcast_to(np.eye(a.shape[-1]), flat.shape).copy()
    for i, matrix in enumerate(flat):
        try:
            w[i], q[i] = np.linalg.eigh(matrix)
        except np.linalg.LinAlgError:
            continue
    return w.reshape(a.shape[:-1]), q.reshape(a.shape)


def from_eigen(w: Array, q: Array) -> Array:
    """Return ``q diag(w) qᵀ``, exactly symmetric."""
    return symmetrize((q * w[..., None, :]) @ q.swapaxes(-1, -2))


def sqrt_pair(a: Array) -> tuple[Array, Array]:
    """Return the square root and the inverse square root of SPD matrices.

    Those of a single identity are `identity` itself: most calls of a fit with few records.
    """
    if a.ndim == 2 and (a == identity(len(a))).all():
        return identity(len(a)), identity(len(a))
    w, q = eigh(a)
    if (w <= 0).any():  # of a positive definite matrix: lost in the rounding of the largest
        w = np.where(w <= 0, np.finfo(float).eps * w[..., -1:], w)
    root = np.sqrt(w)
    return from_eigen(root, q), from_eigen(1 / root, q)


def clip_eigenvalues(a: Array, low: ArrayLike, high: ArrayLike) -> Array:
    """Return `a` with its eigenvalues clipped to [`low`, `high`] (batched bounds allowed)."""
    w, q = eigh(a)
    low, high = np.asarray(low)[..., None], np.asarray(high)[..., None]
    return from_eigen(np.clip(w, low, high), q)


@cache
def identity(size: int) -> Array:
    """Return the identity matrix, made once and read-only."""
    eye = np.eye(size)
    eye.flags.writeable = False
    return eye


@cache
def triangle(size: int) -> tuple[Array, Array]:
    """Return ``numpy.triu_indices(size)``, made once: small fits spend their time on it."""
    return np.triu_indices(size)


@cache
def _vecd_layout(size: int) -> tuple[Array, Array, Array]:
    """Return where `vecd` finds its entries in the flat matrix, their scales, and the way back."""
    rows, columns = triangle(size)
    back = np.empty((size, size), dtype=np.intp)
    back[rows, columns] = back[columns, rows] = np.arange(rows.size)
    return rows * size + columns, np.where(rows == columns, 1.0, sqrt(2)), back


def vecd(a: Array) -> Array:
    """Isometric coordinates of symmetric matrices: upper triangle, off-diagonal times √2.

    The order is that of ``numpy.triu_indices``, as in ``pyriemann.geometry.tangentspace.upper``.
    """
    *batch, size, _ = a.shape
    upper, scales, _ = _vecd_layout(size)
    return np.asarray(a.reshape(*batch, size * size).take(upper, axis=-1) * scales)


def unvecd(c: Array) -> Array:
    """Inverse of `vecd`."""
    _, scales, back = _vecd_layout(triangular_root(c.shape[-1]))
    return np.asarray((c / scales).take(back, axis=-1))


def triangular_root(dim: int) -> int:
    """Return the p with p(p+1)/2 = `dim`."""
    return int((sqrt(8 * dim + 1) - 1) / 2 + 0.5)


def householder(p: Array) -> tuple[Array, Array]:
    """Reflection data ``(h, beta)`` with ``(I - beta h hᵀ) e_0 = ∓p`` for unit `p` (last axis).

    The columns 1, 2, ... of the reflection are an orthonormal basis of the complement of `p`.
    """
    h = p.copy()
    h[..., 0] += np.where(p[..., 0] < 0, -1.0, 1.0)
    return h, np.asarray(1 / (1 + np.abs(p[..., 0])))
