"""Second moments of the records in normal coordinates at a base point.

The sensitivities of everything computed from these coordinates rest on their range alone, so the
range is enforced on the coordinates themselves, whatever rounding did before.
"""

from __future__ import annotations

import numpy as np

from skdpfrechet._numerics import Array, clip_norm
from skdpfrechet.manifolds import Manifold


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
