"""Lower bounds of the mean Hessian of ρ² that cost no privacy."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
from numpy.typing import ArrayLike

from skdpfrechet._numerics import (
    Array,
    clip_eigenvalues,
    hessian_deficit,
    symmetrize,
    unvecd,
    x_coth,
    x_over_tan,
)
from skdpfrechet.manifolds import FlatManifold, Hyperbolic, Manifold, SPDAffineInvariant, Sphere


def mean_hessian_bound(manifold: Manifold, moment: Array, reach: ArrayLike, radius: float) -> Array:
    """Return a matrix below the mean Hessian of ρ², linear in the second moment.

    Parameters
    ----------
    manifold : Manifold
    moment : ndarray, shape (..., dim, dim)
        Uncentred second moment S of the logarithms, in an orthonormal frame.
    reach : array_like, shape (...)
        R, an upper bound of the norms of the logarithms.
    radius : float
        r, the radius of the ball that holds the records.

    Returns
    -------
    ndarray, shape (..., dim, dim)
        Eigenvalues floored at ``2r cot r`` on spheres, true at the mean of any data in the ball,
        and at 2 where the curvature is not positive.

    Notes
    -----
    An eigenvalue of a record's Hessian is ``2 x cot x`` or ``2 x coth x``, and ``(1 - x cot x)/x²``
    grows while ``(x coth x - 1)/x²`` falls with x: replacing the ratio by its value at R bounds the
    Hessian by an expression quadratic in the logarithm, whose mean is linear in S. On a sphere the
    mean lies in the ball, so no record is farther than 2r from it and R is capped there.
    """
    twice = 2 * np.eye(manifold.dim)
    if isinstance(manifold, FlatManifold) or manifold.dim == 1:
        return np.array(np.broadcast_to(twice, moment.shape))
    reach = np.asarray(reach, dtype=float)[..., None, None]
    if isinstance(manifold, Sphere):
        deficit = hessian_deficit(np.minimum(reach, 2 * radius) ** 2)
        bound = twice - 2 * deficit * _transverse(moment)
        return clip_eigenvalues(bound, 2 * float(x_over_tan(radius)), 2.0)
    if isinstance(manifold, Hyperbolic):
        bound = twice + 2 * hessian_deficit(-(reach**2)) * _transverse(moment)
    elif isinstance(manifold, SPDAffineInvariant):
        bound = twice + hessian_deficit(-(reach**2) / 2) / 2 * mean_squared_adjoint(moment)
    else:
        raise ValueError(f"No bound of the mean Hessian is known on {manifold!r}.")
    return clip_eigenvalues(bound, 2.0, inf)


def hessian_range(manifold: Manifold, radius: float) -> tuple[float, float]:
    """Return the range of the Hessian's eigenvalues over records within `radius` of the point."""
    if isinstance(manifold, FlatManifold) or manifold.dim == 1:
        return 2.0, 2.0
    if isinstance(manifold, Sphere):
        return 2 * float(x_over_tan(radius)), 2.0
    if isinstance(manifold, Hyperbolic):
        return 2.0, 2 * float(x_coth(radius))
    if isinstance(manifold, SPDAffineInvariant):
        return 2.0, 2 * float(x_coth(radius / sqrt(2)))
    raise ValueError(f"The range of the Hessian is not known on {manifold!r}.")


def _transverse(moment: Array) -> Array:
    trace = np.trace(moment, axis1=-2, axis2=-1)[..., None, None]
    return np.asarray(trace * np.eye(moment.shape[-1]) - moment)


def mean_squared_adjoint(moment: Array) -> Array:
    """Return E ad_V² in isometric coordinates, ``ad_V² U = V²U - 2VUV + UV²``, from E V ⊗ V.

    Parameters
    ----------
    moment : ndarray, shape (..., dim, dim)
        Second moment of the coordinates (`vecd`) of V, dim = p(p+1)/2.

    Returns
    -------
    ndarray, shape (..., dim, dim)
    """
    batch, dim = moment.shape[:-2], moment.shape[-1]
    basis = unvecd(np.eye(dim))
    p = basis.shape[-1]
    flat = basis.reshape(dim, p * p)
    four = (flat.T @ (moment @ flat)).reshape(*batch, p, p, p, p)  # E V_ij V_kl
    square = np.einsum("...ijjl->...il", four)  # E V²
    identity = np.eye(p)
    # The operator on all p x p matrices, entry (ij, kl) the coefficient of U_kl in row ij.
    operator = np.einsum("...ik,jl->...ijkl", square, identity)
    operator += np.einsum("ik,...jl->...ijkl", identity, square)
    operator -= 2 * np.einsum("...ikjl->...ijkl", four)
    return symmetrize(flat @ operator.reshape(*batch, p * p, p * p) @ flat.T)
