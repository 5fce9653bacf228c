"""Symmetric positive definite matrices with three metrics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import exp, log

import numpy as np

from skdpfrechet import _kernels
from skdpfrechet._numerics import (
    Array,
    clip_eigenvalues,
    clip_norm,
    eigh,
    eigvalsh,
    from_eigen,
    identity,
    jacobi_ratio,
    sqrt_pair,
    symmetrize,
    triangle,
    unvecd,
    vecd,
)
from skdpfrechet._validation import check_positive_integer
from skdpfrechet.manifolds._base import Localization, Manifold
from skdpfrechet.manifolds._flat import FlatManifold

ASYMMETRY_TOLERANCE = 1e-8
MAX_LOG_EIGENVALUE = 15.0  # e^{±15}: condition 1e13, still positive definite in float64
_TINY, _EPSILON = np.finfo(float).tiny, np.finfo(float).eps
LARGEST_KERNEL = 64  # rows up to which there are compiled kernels
_HALVINGS = 50  # e^15 / 2^50 = 3e-9: a matrix that is diagonal in all but name


@dataclass(frozen=True)
class _SPD(Manifold):
    """What the three metrics on SPD(p) share: points, their checks, the identity as origin."""

    size: int
    dim: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        size = check_positive_integer("size", self.size)
        object.__setattr__(self, "dim", size * (size + 1) // 2)

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self.size, self.size)

    @property
    def origin(self) -> Array:
        return np.eye(self.size)

    def violations(self, points: Array, epsilon: float = 2.0**-52) -> Iterator[tuple[Array, str]]:
        if not self._exactly_symmetric(points):
            scale = np.abs(points).max(axis=(-1, -2))
            asymmetry = np.abs(points - np.swapaxes(points, -1, -2)).max(axis=(-1, -2))
            tolerance = max(ASYMMETRY_TOLERANCE, 4 * epsilon)
            yield ~(asymmetry <= tolerance * scale), "symmetric matrices"
            points = _symmetric(points)
        yield (
            ~is_positive_definite(points),
            "positive definite matrices; estimate covariances with Covariances('oas') or another "
            "shrinkage, or add a small multiple of the identity",
        )

    def canonical(self, points: Array) -> Array:
        return points if self._exactly_symmetric(points) else _symmetric(points)

    def _exactly_symmetric(self, points: Array) -> bool:
        """Return whether there is nothing to symmetrize, if that is quick to see."""
        if points.ndim == 2:
            return bool((points == points.T).all())
        if not self._has_kernels(points):
            return False
        from skdpfrechet._kernels._cholesky import exactly_symmetric

        return exactly_symmetric(points, _kernels.n_threads())

    def _has_kernels(self, points: Array) -> bool:
        """Return whether compiled kernels take these points."""
        return points.ndim == 3 and 2 <= self.size <= LARGEST_KERNEL and _kernels.compiled()


def _symmetric(points: Array) -> Array:
    """Return matrices without their asymmetry; one that has none stays as it is, bit for bit.

    Half of a denormal number is rounded, so `symmetrize` alone may change it, or make it singular,
    when another record is not symmetric.
    """
    return np.where(points == np.swapaxes(points, -1, -2), points, symmetrize(points))


def is_positive_definite(a: Array) -> Array:
    """Return whether symmetric matrices are positive definite beyond rounding.

    The Cholesky pivots relative to the diagonal are the shares of variance that the earlier
    variables leave unexplained: a test that no rescaling of the variables changes.
    """
    size = a.shape[-1]
    if a.ndim == 3 and _kernels.compiled():
        from skdpfrechet._kernels._cholesky import positive_definite

        return positive_definite(a, _kernels.n_threads())
    diagonal = np.diagonal(a, axis1=-2, axis2=-1)
    positive = np.asarray((diagonal > 0).all(axis=-1) & np.isfinite(a).all(axis=(-1, -2)))
    if not positive.all():
        a = np.where(positive[..., None, None], a, np.eye(size))
        diagonal = np.diagonal(a, axis1=-2, axis2=-1)
    root = np.sqrt(diagonal)
    correlation = a / root[..., :, None] / root[..., None, :]
    pivots = np.diagonal(_cholesky(correlation), axis1=-2, axis2=-1) ** 2
    return np.asarray(positive & (pivots > 4 * size * np.finfo(float).eps).all(axis=-1))


@dataclass(frozen=True)
class SPDAffineInvariant(_SPD):
    """SPD(p) with the affine-invariant metric ``<U, V>_P = tr(P⁻¹ U P⁻¹ V)`` [1]_.

    A Hadamard space with curvature in [-1/2, 0]. The frame at P is ``P^{1/2} E P^{1/2}`` with E
    the isometric basis of symmetric matrices, so normal coordinates agree with
    ``pyriemann.geometry.tangentspace.tangent_space``.

    Parameters
    ----------
    size : int
        Number p of rows.

    References
    ----------
    .. [1] X. Pennec, P. Fillard, N. Ayache, "A Riemannian framework for tensor computing",
       International Journal of Computer Vision 66, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpfrechet.manifolds import SPDAffineInvariant
    >>> space = SPDAffineInvariant(2)
    >>> round(float(space.dist(np.eye(2), np.diag([np.e, 1.0]))), 12)
    1.0
    """

    @property
    def sectional_curvature_bounds(self) -> tuple[float, float]:
        return (0.0, 0.0) if self.size == 1 else (-0.5, 0.0)

    def exp(self, p: Array, v: Array) -> Array:
        root, inverse_root = sqrt_pair(p)
        return _congruence(root, _sym_exp(_congruence(inverse_root, v)))

    def exp_coords(self, p: Array, c: Array) -> Array:
        return _congruence(sqrt_pair(p)[0], _sym_exp(unvecd(c)))

    def log(self, p: Array, q: Array) -> Array:
        root, inverse_root = sqrt_pair(p)
        return _congruence(root, _log_congruence(inverse_root, q))

    def log_coords(self, p: Array, q: Array) -> Array:
        return vecd(_log_congruence(sqrt_pair(p)[1], q))

    def inner(self, p: Array, u: Array, v: Array) -> Array:
        return np.asarray((self.coords(p, u) * self.coords(p, v)).sum(axis=-1))

    def dist(self, p: Array, q: Array) -> Array:
        w = eigvalsh(_congruence(sqrt_pair(p)[1], q))
        return np.asarray(np.linalg.norm(np.log(np.maximum(w, _TINY)), axis=-1))

    def within(self, p: Array, q: Array, radius: float) -> bool:
        if not np.array_equal(p, q):
            # |log(1 + x)| ≤ 2|x| up to ½: no eigenvalues are needed to see that points are close.
            inverse = np.linalg.solve(_cholesky(p), identity(self.size))
            change = np.linalg.norm(inverse) ** 2 * np.linalg.norm(q - p)  # of L⁻¹ q L⁻ᵀ from 1
            if 2 * change <= min(radius, 1.0):
                return True
        return super().within(p, q, radius)

    def transport(self, p: Array, q: Array, v: Array) -> Array:
        root, inverse_root = sqrt_pair(p)
        w, o = eigh(_congruence(inverse_root, q))
        carrier = root @ from_eigen(np.sqrt(np.maximum(w, _TINY)), o) @ inverse_root
        return symmetrize(carrier @ v @ np.swapaxes(carrier, -1, -2))

    def coords(self, p: Array, v: Array) -> Array:
        return vecd(_congruence(sqrt_pair(p)[1], v))

    def from_coords(self, p: Array, c: Array) -> Array:
        return _congruence(sqrt_pair(p)[0], unvecd(c))

    def curvature_frame(self, p: Array, v: Array) -> tuple[Array, Array]:
        w, q = eigh(unvecd(self.coords(p, v)))
        rows, columns = triangle(self.size)
        kappa = -((w[..., rows] - w[..., columns]) ** 2) / 4
        left, right = np.swapaxes(q, -1, -2)[..., rows, :], np.swapaxes(q, -1, -2)[..., columns, :]
        basis = symmetrize(left[..., :, None] * right[..., None, :])
        basis = basis * np.where(rows == columns, 1.0, np.sqrt(2))[:, None, None]
        return kappa, np.swapaxes(vecd(basis), -1, -2)

    def project_to_ball(
        self, points: Array, center: Array, radius: float, log_cap: float = np.inf
    ) -> Array:
        root, inverse_root = sqrt_pair(center)
        with np.errstate(all="ignore"):
            w, q = eigh(_congruence(inverse_root, points))
            logs = np.clip(np.log(np.maximum(w, _TINY)), -log_cap, log_cap)
            moved = clip_norm(logs, radius)
            changed = (moved != np.log(w)).any(axis=-1)
        inside = _congruence(root, from_eigen(np.exp(moved), q))
        return np.where(changed[..., None, None], inside, points)

    def saturate(self, p: Array, v: Array) -> Array:
        w, q = eigh(unvecd(self.coords(p, v)))
        return self.from_coords(p, vecd(from_eigen(_saturated(w), q)))

    def saturated_exp(self, p: Array, c: Array) -> Array:
        w, q = eigh(unvecd(c))
        return _congruence(sqrt_pair(p)[0], from_eigen(np.exp(_saturated(w)), q))

    def localize(self, center: Array) -> Localization:
        scale = float(center[0, 0])
        if (center == scale * identity(self.size)).all():
            # Products with a matrix would cost more than all the rest of a large fit.
            if scale == 1:
                return Localization(self, center, lambda x: x, lambda x: x, carrier=1.0)
            return Localization(
                self, np.eye(self.size), lambda x: x / scale, lambda x: x * scale, carrier=1 / scale
            )
        root, inverse_root = sqrt_pair(center)

        def to_model(points: Array) -> Array:
            with np.errstate(all="ignore"):
                return _congruence(inverse_root, points)

        def from_model(points: Array) -> Array:
            return _congruence(root, points)

        return Localization(self, np.eye(self.size), to_model, from_model, carrier=inverse_root)


@dataclass(frozen=True)
class SPDLogEuclidean(_SPD, FlatManifold):
    """SPD(p) with the log-Euclidean metric: the Frobenius metric of matrix logarithms.

    Parameters
    ----------
    size : int
        Number p of rows.

    References
    ----------
    .. [1] V. Arsigny et al., "Geometric means in a novel vector space structure on symmetric
       positive-definite matrices", SIAM J. Matrix Anal. Appl. 29, 2007.
    """

    def chart(self, points: Array) -> Array:
        return vecd(_sym_log(points))

    def chart_many(self, points: Array) -> Array:
        if self._has_kernels(points):
            from skdpfrechet._kernels import _spd

            identity = np.eye(self.size)[None]
            packed = _spd.pack(points[None])
            return np.asarray(_spd.logs(packed, identity, _kernels.n_threads())[0])
        return self.chart(points)

    def chart_inverse(self, x: Array) -> Array:
        w, q = eigh(unvecd(x))
        # Post-processing of absurdly noisy releases: keep the condition number within float64.
        middle = np.clip((w[..., -1:] + w[..., :1]) / 2, -600, 600)
        w = np.clip(w, middle - MAX_LOG_EIGENVALUE, middle + MAX_LOG_EIGENVALUE)
        return from_eigen(np.exp(w), q)

    def coords(self, p: Array, v: Array) -> Array:
        slopes, q = _exp_slopes(p)
        return vecd(_in_basis(q, _in_basis(np.swapaxes(q, -1, -2), v) / slopes))

    def from_coords(self, p: Array, c: Array) -> Array:
        slopes, q = _exp_slopes(p)
        return symmetrize(_in_basis(q, _in_basis(np.swapaxes(q, -1, -2), unvecd(c)) * slopes))


@dataclass(frozen=True)
class SPDLogCholesky(_SPD, FlatManifold):
    """SPD(p) with the log-Cholesky metric: the Euclidean metric of the Cholesky factor, its
    diagonal on the log scale.

    Coordinates are stored in the order of ``numpy.triu_indices`` of the transposed factor.

    Parameters
    ----------
    size : int
        Number p of rows.

    References
    ----------
    .. [1] Z. Lin, "Riemannian geometry of symmetric positive definite matrices via Cholesky
       decomposition", SIAM J. Matrix Anal. Appl. 40, 2019.
    """

    def chart(self, points: Array) -> Array:
        x = self._chart(points)
        lost = np.asarray(np.isnan(x).any(axis=-1) & np.isfinite(points).all(axis=(-2, -1)))
        if lost.any():
            # Positive definite by other roundings: several small pivots make the next inaccurate.
            largest = np.abs(points[lost]).max(axis=(-2, -1), keepdims=True)
            shape, floor = points[lost] / np.maximum(largest, _TINY), 1e3 * self.size * _EPSILON
            almost = (eigvalsh(shape)[..., :1] > -floor) & (largest[..., 0] > 0)
            repaired = self._chart(largest * clip_eigenvalues(shape, floor, np.inf))
            x[lost] = np.where(almost, repaired, np.nan)
        return x

    def _chart(self, points: Array) -> Array:
        if self._has_kernels(points):
            from skdpfrechet._kernels._cholesky import log_cholesky_chart

            return log_cholesky_chart(points, _kernels.n_threads())
        factor = _cholesky(points)
        return self._pack(factor, np.log(np.diagonal(factor, axis1=-2, axis2=-1)))

    def chart_inverse(self, x: Array) -> Array:
        factor = self._unpack(x)
        diagonal = np.diagonal(factor, axis1=-2, axis2=-1)
        middle = np.clip((diagonal.max(axis=-1) + diagonal.min(axis=-1)) / 2, -300, 300)[..., None]
        half = MAX_LOG_EIGENVALUE / 2
        diagonal = np.exp(np.clip(diagonal, middle - half, middle + half))
        # Rows so long that the diagonal drowns in rounding would make a singular matrix.
        below = clip_norm(np.tril(factor, -1), exp(MAX_LOG_EIGENVALUE) * diagonal)
        points = self._product(below, diagonal)
        for _ in range(_HALVINGS):
            # More than records must meet: one small pivot makes the next ones inaccurate.
            root = np.sqrt(np.diagonal(points, axis1=-2, axis2=-1))
            smallest = eigvalsh(points / root[..., :, None] / root[..., None, :])[..., 0]
            singular = ~(smallest > 1e3 * self.size * np.finfo(float).eps)
            if not singular.any():
                break
            below = np.where(singular[..., None, None], below / 2, below)
            points = self._product(below, diagonal)
        return points

    def coords(self, p: Array, v: Array) -> Array:
        factor = np.linalg.cholesky(p)
        inner = np.linalg.solve(factor, np.swapaxes(np.linalg.solve(factor, v), -1, -2))
        half = np.tril(inner, -1) + _diagonal_part(inner) / 2
        differential = factor @ half
        return self._pack(differential, np.diagonal(half, axis1=-2, axis2=-1))

    def from_coords(self, p: Array, c: Array) -> Array:
        factor = np.linalg.cholesky(p)
        change = self._unpack(c)
        diagonal = np.diagonal(change, axis1=-2, axis2=-1) * np.diagonal(factor, axis1=-2, axis2=-1)
        change = self._replace_diagonal(change, diagonal)
        return np.asarray(2 * symmetrize(change @ np.swapaxes(factor, -1, -2)))

    def _pack(self, lower: Array, diagonal: Array) -> Array:
        rows, columns = triangle(self.size)
        out = np.array(np.broadcast_to(lower[..., columns, rows], (*lower.shape[:-2], self.dim)))
        out[..., rows == columns] = diagonal
        return out

    def _unpack(self, c: Array) -> Array:
        rows, columns = triangle(self.size)
        lower = np.zeros((*c.shape[:-1], self.size, self.size))
        lower[..., columns, rows] = c
        return lower

    def _product(self, lower: Array, diagonal: Array) -> Array:
        factor = self._replace_diagonal(lower, diagonal)
        return symmetrize(factor @ np.swapaxes(factor, -1, -2))

    def _replace_diagonal(self, lower: Array, diagonal: Array) -> Array:
        return np.asarray(np.tril(lower, -1) + diagonal[..., None, :] * np.eye(self.size))


def _congruence(a: Array, x: Array) -> Array:
    """Return ``a x aᵀ``, exactly symmetric, for symmetric x."""
    if a is identity(a.shape[-1]):  # as `sqrt_pair` returns it
        return symmetrize(x)
    return symmetrize(a @ x @ a.swapaxes(-1, -2))


def _cholesky(a: Array) -> Array:
    """Batched Cholesky factors, NaN where a matrix has none."""
    try:
        return np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        factors = np.full(a.shape, np.nan)
        for index in np.ndindex(a.shape[:-2]):
            try:
                factors[index] = np.linalg.cholesky(a[index])
            except np.linalg.LinAlgError:
                continue
        return factors


def _in_basis(q: Array, x: Array) -> Array:
    return np.asarray(q @ x @ np.swapaxes(q, -1, -2))


def _diagonal_part(a: Array) -> Array:
    return np.asarray(a * np.eye(a.shape[-1]))


def _log_congruence(a: Array, x: Array) -> Array:
    """Return ``log(a x aᵀ)``, also where that product is beyond float64 but x is not."""
    product = _congruence(a, x)
    if np.isfinite(product).all():
        return _sym_log(product)
    beyond = ~np.isfinite(product).all(axis=(-2, -1), keepdims=True) & np.isfinite(x)
    result = _sym_log(_congruence(a, np.where(beyond, x * 2.0**-500, x)))
    return np.asarray(result + np.where(beyond, 500 * log(2), 0.0) * np.eye(x.shape[-1]))


def _sym_log(a: Array) -> Array:
    w, q = eigh(a)
    logs = np.log(np.maximum(w, _TINY))
    if np.isinf(w).any():  # entries may be finite where these are not
        beyond = np.asarray(np.isinf(w).any(axis=-1, keepdims=True))
        w, q = eigh(np.where(beyond[..., None], a / 256, a))
        logs = np.log(np.maximum(w, _TINY)) + np.where(beyond, log(256), 0.0)
    return from_eigen(logs, q)


def _saturated(w: Array) -> Array:
    return np.minimum(np.maximum(w, -MAX_LOG_EIGENVALUE), MAX_LOG_EIGENVALUE)


def _sym_exp(a: Array) -> Array:
    w, q = eigh(a)
    return from_eigen(np.exp(np.clip(w, log(_TINY), -log(_TINY))), q)


def _exp_slopes(p: Array) -> tuple[Array, Array]:
    """Divided differences of exp at the log-eigenvalues of `p` (Daleckii-Krein), eigenvectors."""
    w, q = eigh(p)
    logs = np.log(w)
    gap = (logs[..., :, None] - logs[..., None, :]) / 2
    middle = np.sqrt(w[..., :, None]) * np.sqrt(w[..., None, :])
    return middle * jacobi_ratio(-gap * gap), q
