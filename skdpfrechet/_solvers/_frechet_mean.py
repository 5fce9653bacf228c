"""The Fréchet mean behind one function; which iteration runs depends on the space."""

from __future__ import annotations

import numpy as np

from skdpfrechet import sensitivity
from skdpfrechet._numerics import Array
from skdpfrechet._solvers._sample import Sample, load
from skdpfrechet.exceptions import ConvergenceError
from skdpfrechet.manifolds import FlatManifold, Manifold

_PASSES = 2000  # of the descent, where nothing is promised
_ATTEMPT = 30  # passes of the fast iteration between two of the descent


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
        Number of passes over the data after which the fast iteration gives up.

    Returns
    -------
    ndarray, shape (..., *point_shape)
        The computed mean. Neither the residual nor the number of passes is returned: both depend
        on the records.

    Raises
    ------
    ConvergenceError
        If some residual stays above `accept`. The message names no residual.
    """
    sample = points if isinstance(points, Sample) else load(manifold, points)
    accept = tolerance if accept is None else accept
    mean, residual = sample.mean(start, radius, tolerance, max_iter)
    mean, residual = np.array(mean), np.array(residual)
    for index in map(tuple, np.argwhere(~(residual <= accept))):  # written so that NaN fails
        one = sample.one(index)
        mean[index], residual[index] = descend_in_ball(
            one, _start_of(mean[index], residual[index], start), start, radius, accept, _PASSES
        )
    if not np.all(residual <= accept):
        raise ConvergenceError(
            "The Fréchet mean did not reach the residual that was asked for; nothing was released."
        )
    return mean


def point_of_ball(
    sample: Sample,
    start: Array,
    *,
    radius: float,
    log_cap: float,
    tolerance: float,
    accept: float | None = None,
    passes: int,
) -> Array:
    """Return a point of the ball near the Fréchet mean of one sample, whatever the records.

    Parameters
    ----------
    sample : Sample
        Valid records of the ball.
    start : ndarray, shape point_shape
        Public centre m0 of the ball.
    radius, log_cap : float
        As for `Manifold.project_to_ball`, which the point has been through.
    tolerance, accept : float
        As for `frechet_mean`.
    passes : int
        Number of passes of the descent that follows if the fast iteration fails. `mean_passes` of
        them reach `mean_tolerance`, always; with 0 the best point so far is returned.

    Notes
    -----
    The fast iterations stop where they make no progress. The descent has no such rule: it is the
    one of Proposition 11 in docs/sensitivity_proof.md.
    """
    manifold, accept = sample.manifold, tolerance if accept is None else accept
    mean, residual = sample.mean(start, radius, tolerance, 200)
    point = _start_of(mean, residual, start)
    moved = manifold.project_to_ball(point, start, radius, log_cap)
    if passes == 0 or isinstance(manifold, FlatManifold):
        return moved
    if residual <= accept and np.array_equal(moved, mean):
        return moved
    return descend_in_ball(sample, moved, start, radius, accept, passes, log_cap)[0]


def descend_in_ball(
    sample: Sample,
    begin: Array,
    start: Array,
    radius: float,
    tolerance: float,
    passes: int,
    log_cap: float = np.inf,
) -> tuple[Array, float]:
    """Return the best point that the descent from `begin` meets, and its residual.

    Where the descent has come after 1, 2, 4, ... passes the fast iteration gets another chance; if
    it fails, the descent goes on as if nothing had happened.
    """
    sample, manifold = sample.reference(), sample.manifold
    step = sensitivity.descent_step(manifold, radius, sample.n)

    def inside(p: Array) -> Array:
        return manifold.project_to_ball(p, start, radius, log_cap)

    p = best = begin
    least, attempt = np.inf, 1
    for i in range(passes):
        log = sample.mean_log(p)
        residual = float(np.linalg.norm(log))
        if residual < least:
            best, least = p, residual
        if least <= tolerance or not np.isfinite(residual):
            break
        if i + 1 == attempt:
            attempt *= 2
            found = sample.improve(p, start, radius, tolerance, _ATTEMPT)[0]
            moved = inside(found) if np.isfinite(found).all() else p
            residual = float(np.linalg.norm(sample.mean_log(moved)))
            if residual <= tolerance:
                return moved, residual
        p = inside(manifold.exp_coords(p, step * log))
    return best, least


def _start_of(point: Array, residual: Array, start: Array) -> Array:
    """Return a point that some iteration ended at, or `start` if it ended nowhere."""
    return point if np.isfinite(residual) and np.isfinite(point).all() else start
