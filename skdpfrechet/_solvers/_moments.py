"""Second moments of the records in normal coordinates at a base point.

The sensitivities of everything computed from these coordinates rest on their range alone, so the
range is enforced on the coordinates themselves, whatever rounding did before.

The exact sums are for float-safe releases. Records are rounded to integers, small enough for every
sum of theirs to stay below 2^53, where float64 adds and multiplies integers without error in any
order. So the error of a sum does not grow with n, and a record changes its own term alone.
"""

from __future__ import annotations

from math import frexp, ldexp

import numpy as np

from skdpfrechet._numerics import Array, clip_norm
from skdpfrechet.manifolds import Manifold

_SMALLEST_STEP = 2.0**-480  # its square is a float64, and so are multiples of that


def local_coordinates(
    manifold: Manifold, base: Array, points: Array, middle: Array, radius: float
) -> Array:
    """Return normal coordinates of `points` at `base`, forced into a ball.

    Parameters
    ----------
    manifold : Manifold
    base : ndarray, shape point_shape
    points : ndarray, shape (n, *point_shape)
    middle : ndarray, shape (dim,)
        Centre of the ball in the tangent space: ``log_coords(base, m0)`` on Hadamard spaces, whose
        logarithms do not stretch, 0 elsewhere.
    radius : float
        Radius of the ball.

    Returns
    -------
    ndarray, shape (n, dim)
        Every row within `radius` of `middle`; a logarithm that is not finite becomes `middle`.
    """
    with np.errstate(all="ignore"):
        c = manifold.log_coords(base, points)
        return np.asarray(middle + clip_norm(c - middle, radius))


def second_moment(c: Array) -> Array:
    """Return the uncentred second moment ``(1/n) Σ c cᵀ`` over the axis -2."""
    return np.asarray(np.swapaxes(c, -1, -2) @ c / c.shape[-2])


def exact_step(reach: float, n: int, power: int) -> float:
    """Return the least power of two h such that n terms ``(x/h)^power`` are summed exactly.

    For |x| ≤ `reach`, rounded to integers: ``n (reach/h + 1)^power ≤ 2^52``.
    """
    largest = (2.0**52 / n) ** (1 / power) - 1
    return max(ldexp(1.0, frexp(reach / largest)[1]), _SMALLEST_STEP)


def exact_sum(c: Array, step: float) -> Array:
    """Return ``Σ c`` over the axis -2 of coordinates rounded to multiples of `step`."""
    return np.asarray(np.rint(c / step).sum(axis=-2) * step)


def exact_second_moment_sum(c: Array, step: float) -> Array:
    """Return ``Σ c cᵀ`` over the axis -2 of coordinates rounded to multiples of `step`."""
    counts = np.rint(c / step)
    return np.asarray(np.swapaxes(counts, -1, -2) @ counts * step**2)


def exact_moment_sums(y: Array, half: float, fine: float, coarse: float) -> tuple[float, float]:
    """Return ``Σ y`` and ``Σ y²``, y rounded within ±half to multiples of `fine` and of `coarse`.

    What is rounded twice is the same to less than ``fine + coarse``.
    """
    counts, squares = _counts(y, half, fine), _counts(y, half, coarse) ** 2
    return float(counts.sum() * fine), float(squares.sum() * coarse**2)


def _counts(y: Array, half: float, step: float) -> Array:
    largest = half // step
    return np.clip(np.rint(y / step), -largest, largest)
