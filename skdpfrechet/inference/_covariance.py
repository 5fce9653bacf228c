"""Covariance and critical value of a private mean: pure functions of released numbers.

All of them broadcast over leading axes, so that a thousand simulated fits cost what their
arithmetic costs. The random draws behind a critical value do not depend on the releases: fits that
share dimension and n share them, and each gets the value that it would get alone.
"""

from __future__ import annotations

from functools import lru_cache
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2

from skdpfrechet._numerics import Array, clip_eigenvalues, eigh, jacobi_ratio, unvecd
from skdpfrechet.manifolds import Manifold

DRAWS, FEWEST_DRAWS = 2000, 500  # the paired quantile errs by about .003, .006 in the level
_ENTRIES = 150_000  # of the simulated matrices: eigendecompositions of so many take 10 ms
NEGLIGIBLE_NOISE = 1e-6  # relative to the trace of the moment: changes the quantile by less
BOOTSTRAP_MAX_DIM = 60  # beyond, 2,000 eigendecompositions cost seconds and change c by < 2%
_BLOCK = 500_000  # entries of simulated matrices at a time: 4 MB in each intermediate array


def error_carrier(hessian: Array, n: int) -> Array:
    """Return B = ``2/√n Λ⁻¹``, with which ``B S Bᵀ`` is the sampling covariance of the mean."""
    try:
        inverse = np.linalg.solve(hessian, np.eye(hessian.shape[-1]))
    except np.linalg.LinAlgError:
        # Beside eigenvalues of 1e16 float64 loses the smallest: they are at least their rounding.
        w, q = eigh(hessian)
        w = np.maximum(w, np.finfo(float).eps * np.abs(w).max(axis=-1, keepdims=True))
        inverse = (q / w[..., None, :]) @ np.swapaxes(q, -1, -2)
    return np.asarray(2 / sqrt(n) * inverse)


def into_chart(model: Manifold, origin: Array, point: Array, carrier: Array) -> Array:
    """Return ``L⁻¹ B``: the same in the chart at m0, L the derivative of exp there.

    Frames of the model are parallel along geodesics from its origin, so L is symmetric and its
    inverse needs no solver, however far the mean is.
    """
    kappa, basis = model.curvature_frame(origin, model.log(origin, point))
    scaled = basis / jacobi_ratio(kappa)[..., None, :]
    return np.asarray(scaled @ np.swapaxes(basis, -1, -2) @ carrier)


def error_covariance(moment: Array, carrier: Array, scale: float) -> Array:
    """Return ``Γ = B S Bᵀ + σ² I``: sampling and noise together."""
    sampling = carrier @ moment @ np.swapaxes(carrier, -1, -2)
    return np.asarray(sampling + scale**2 * np.eye(moment.shape[-1]))


def chi_squared_value(level: float, dim: int) -> float:
    """Return the critical value of a known covariance."""
    return float(chi2.ppf(level, dim))


def repair_moment(
    moment: Array, scale: ArrayLike, moment_range: tuple[ArrayLike, ArrayLike]
) -> Array:
    """Return the noisy second moment, shrunk and clipped to the range it is known to have.

    Parameters
    ----------
    moment : ndarray, shape (..., dim, dim)
    scale : array_like, shape (...)
        Noise scale of the moment in isometric coordinates.
    moment_range : tuple of array_like, shape (...)
        Range of the eigenvalues.

    Returns
    -------
    ndarray, shape (..., dim, dim)

    Notes
    -----
    Noise drives eigenvalues apart: the smallest come out too small, and a region that believes them
    is too short there. With T = (tr M/dim) I, the noise adds ``σ²(dim(dim + 1)/2 - 1)`` to the
    expectation of ``|M - T|²``; M is moved towards T until that much is gone [1]_, and the noise of
    the trace alone remains where it explains all of ``M - T``.

    References
    ----------
    .. [1] O. Ledoit, M. Wolf, "A well-conditioned estimator for large-dimensional covariance
       matrices", J. Multivariate Analysis 88, 2004: the same with the noise of sampling.
    """
    dim = moment.shape[-1]
    round_part = np.trace(moment, axis1=-2, axis2=-1)[..., None, None] / dim * np.eye(dim)
    deviation = moment - round_part
    explained = (dim * (dim + 1) / 2 - 1) * np.square(np.asarray(scale, dtype=float))
    found = (deviation * deviation).sum(axis=(-2, -1))
    share = np.minimum(explained, found) / np.where(found > 0, found, 1.0)
    shrunk = round_part + (1 - share)[..., None, None] * deviation
    return clip_eigenvalues(shrunk, *moment_range)


def critical_value(
    moment: Array,
    carrier: Array,
    *,
    n: int,
    scale: float,
    moment_scale: ArrayLike,
    moment_range: tuple[ArrayLike, ArrayLike],
    level: float,
) -> Array:
    """Return the critical value that accounts for the noise in the moment.

    Parameters
    ----------
    moment : ndarray, shape (..., dim, dim)
        Released second moment after `repair_moment`.
    carrier : ndarray, shape (..., dim, dim)
        B of `error_carrier`.
    n : int
    scale : float
        Noise scale of the mean.
    moment_scale : array_like, shape (...)
        Noise scale of the moment in isometric coordinates.
    moment_range : tuple of array_like, shape (...)
        Range that the repair clips eigenvalues to.
    level : float

    Returns
    -------
    ndarray, shape (...)

    Notes
    -----
    Parametric bootstrap around the released values: the error of the mean is drawn from the
    estimated law, the moment from the Wishart law of n Gaussian records plus fresh noise, with
    the same repair, and the statistic is studentised by what came out. Dividing by the quantile
    of the same errors studentised by the truth removes most of the simulation error. The
    generator is seeded: nothing private enters, and a region must not change between two looks.
    """
    batch, dim = moment.shape[:-2], moment.shape[-1]
    quantile = chi_squared_value(level, dim)
    noise = np.broadcast_to(np.asarray(moment_scale, dtype=float), batch).ravel()
    low, high = (np.broadcast_to(end, batch).ravel() for end in moment_range)
    moments, carriers = moment.reshape(-1, dim, dim), carrier.reshape(-1, dim, dim)
    matters = noise > NEGLIGIBLE_NOISE * np.trace(moments, axis1=-2, axis2=-1)
    values = np.full(len(moments), quantile)
    if dim > BOOTSTRAP_MAX_DIM or not matters.any():
        return values.reshape(batch)
    draws = _draw(dim, n)
    step = max(1, _BLOCK // (len(draws[0]) * dim * dim))
    chosen = np.flatnonzero(matters)
    for rows in (chosen[i : i + step] for i in range(0, len(chosen), step)):
        repair = low[rows, None], high[rows, None]
        values[rows] *= _stretch(
            moments[rows], carriers[rows], n, scale, noise[rows], repair, level, draws
        )
    return values.reshape(batch)


@lru_cache(maxsize=2)
def _draw(dim: int, n: int) -> tuple[Array, Array, Array]:
    """Return standardised errors of the mean, Wishart factors and noise of the moment."""
    rng = np.random.default_rng(20260514)
    count = min(max(_ENTRIES // dim**2, FEWEST_DRAWS), DRAWS)
    normal = rng.standard_normal((count, dim))
    factor = _wishart_factors(dim, n, count, rng)
    return normal, factor, rng.standard_normal((count, dim * (dim + 1) // 2))


def _stretch(
    moment: Array,
    carrier: Array,
    n: int,
    scale: float,
    moment_scale: Array,
    moment_range: tuple[Array, Array],
    level: float,
    draws: tuple[Array, Array, Array],
) -> Array:
    """Return by how much noise in the moments, shape (k, dim, dim), stretches the quantile."""
    normal, factor, fresh = draws
    transposed = np.swapaxes(carrier, -1, -2)
    noise = np.eye(moment.shape[-1]) * scale**2
    error = normal @ _root(carrier @ moment @ transposed + noise)
    shaken = _wishart_means(moment, n, factor) + unvecd(moment_scale[:, None, None] * fresh)
    shaken = repair_moment(shaken, moment_scale[:, None], moment_range)
    estimated = carrier[:, None] @ shaken @ transposed[:, None] + noise
    studentised = (error * np.linalg.solve(estimated, error[..., None])[..., 0]).sum(axis=-1)
    oracle = (normal**2).sum(axis=-1)
    return np.asarray(np.quantile(studentised, level, axis=-1) / np.quantile(oracle, level))


def _wishart_factors(dim: int, n: int, count: int, rng: np.random.Generator) -> Array:
    """Draw factors F of n times the second moment about the mean of n standard Gaussian vectors.

    Shape (count, dim, k). Bartlett's triangular factor where the Wishart law has one; where there
    are fewer degrees of freedom than dimensions, the vectors themselves.
    """
    freedom = max(n - 1, 1)
    if freedom < dim:
        return rng.standard_normal((count, dim, freedom))
    factor = np.tril(rng.standard_normal((count, dim, dim)), -1)
    diagonal = np.arange(dim)
    factor[:, diagonal, diagonal] = np.sqrt(rng.chisquare(freedom - diagonal, (count, dim)))
    return factor


def _wishart_means(moment: Array, n: int, factor: Array) -> Array:
    """Return second moments, shape (k, count, dim, dim), of vectors with the given ones."""
    scaled = _root(moment)[:, None] @ factor
    return np.asarray(scaled @ np.swapaxes(scaled, -1, -2) / n)


def _root(a: Array) -> Array:
    """Return symmetric square roots: unlike others they are continuous where eigenvalues tie."""
    w, q = eigh(a)
    return np.asarray((q * np.sqrt(np.maximum(w, 0.0))[..., None, :]) @ np.swapaxes(q, -1, -2))
