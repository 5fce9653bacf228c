"""The Fréchet mean behind one function; which iteration runs depends on the space."""

from __future__ import annotations

import numpy as np

from skdpfrechet._numerics import Array
from skdpfrechet._solvers._sample import Sample, load
from skdpfrechet.manifolds import Manifold


class ConvergenceError(RuntimeError):
    """The Fréchet mean missed its certificate, so nothing may be released."""


def frechet_mean(
    manifold: Manifold,
    points: Array | Sample,
    start: Array,
    *,
    radius: float = np.inf,
    tolerance: float = 0.0,
    accept: float | None = None,
    max_iter: int = 200,
) -> Array:
    """Return the Fréchet mean of each sample.

    Parameters
    ----------
    manifold : Manifold
    points : ndarray, shape (..., n, *point_shape), or Sample
        Records inside the closed ball of `radius` around `start`.
    start : ndarray, shape point_shape
        Public centre m0: the iteration starts there, never at a record.
    radius : float
        Where the curvature is positive every iterate stays in this ball, the only region in which
        a small residual implies that the mean is near.
    tolerance : float
        Stop when the residual ``|(1/n) Σ log_p X_i|`` is at most this; 0 means that the iteration
        goes on until rounding stops it.
    accept : float or None
        Largest residual that is accepted in the end, `tolerance` by default.
    max_iter : int
        Number of passes over the data after which the iteration gives up.

    Returns
    -------
    ndarray, shape (..., *point_shape)
        The computed mean. Neither the residual nor the number of passes is returned: both depend
        on the records.

    Raises
    ------
    ConvergenceError
        If some residual stays above `accept`. The message names no residual.

    Notes
    -----
    On Hadamard spaces the half mean squared distance is strongly convex with modulus 1 (Sturm
    2003), so both iterations converge from anywhere. On a sphere a ball of radius r < π/2 contains
    exactly one critical point, the mean, and unit-step descent from its centre converges to it
    (Afsari, Tron, Vidal 2013); Newton's method only accelerates that.

    References
    ----------
    .. [1] K.-T. Sturm, "Probability measures on metric spaces of nonpositive curvature",
       Contemp. Math. 338, 2003.
    .. [2] B. Afsari, R. Tron, R. Vidal, "On the convergence of gradient descent for finding the
       Riemannian center of mass", SIAM J. Control Optim. 51, 2013.
    """
    sample = points if isinstance(points, Sample) else load(manifold, points)
    accept = tolerance if accept is None else accept
    mean, residual = sample.mean(start, radius, tolerance, accept, max_iter)
    # Written so that NaN fails.
    if not np.all(residual <= accept):
        raise ConvergenceError(
            "The Fréchet mean did not reach the residual that its privacy certificate requires; "
            "nothing was released."
        )
    return mean
