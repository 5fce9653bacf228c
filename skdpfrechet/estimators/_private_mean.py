"""Release of the Fréchet mean of records in a ball."""

from __future__ import annotations

from math import inf

import numpy as np

from skdpfrechet import sensitivity
from skdpfrechet._numerics import Array
from skdpfrechet._solvers import frechet_mean, point_of_ball
from skdpfrechet.estimators._mechanisms import calibrate
from skdpfrechet.estimators._plan import BallProblem
from skdpfrechet.inference import MeanRelease
from skdpfrechet.mechanisms import RandomSource
from skdpfrechet.privacy import GDP, Release

_HALVINGS = 60
_ROUND_TRIP = 1e-3  # of the radius: how far a point may move on its way to the user and back


def release_mean(
    problem: BallProblem,
    mu: float,
    fit_mu: float,
    mechanism: str,
    calibration: str,
    rng: RandomSource,
    void_reason: str | None,
    receipt: str | None = None,
) -> tuple[MeanRelease, Array, Release]:
    """Return the release, the released point in the model, and its row of the report.

    `mu` is the budget of the point, `fit_mu` that of the fit it belongs to: whoever reuses the
    point accounts for the whole fit, since its region is public as well; `receipt` is that of the
    ledger that paid for it, if one did.
    """
    local = problem.local
    paper = calibration == "paper"
    scale = sensitivity.computed_mean(local.model, problem.radius, problem.n, paper=paper)
    tolerance = sensitivity.mean_tolerance(local.model, problem.radius, problem.n)
    noise = calibrate(mechanism, local.model, local.origin, scale, GDP(mu), problem.secure)
    if mu == inf:
        computed = frechet_mean(
            local.model,
            problem.sample,
            local.origin,
            radius=problem.radius,
            accept=max(1e-7 * problem.radius, tolerance),
        )
    else:
        certified = sensitivity.certified(local.model, problem.radius, problem.n, paper=paper)
        computed = point_of_ball(
            problem.sample,
            local.origin,
            radius=problem.radius,
            log_cap=sensitivity.float_log_cap(local.model, problem.radius, problem.n),
            tolerance=tolerance,
            passes=sensitivity.MOST_PASSES if certified else 0,
        )
    point = noise.release(computed, rng)
    if mu < inf:
        point = _representable(problem, point)
    release = MeanRelease(
        manifold=problem.manifold,
        point=local.from_model(point),
        foot=problem.center,
        scale=noise.sigma,
        mechanism=mechanism,
        guarantee=GDP(fit_mu),
        void_reason=void_reason,
        unit=problem.unit,
        float_safe=problem.secure,
        receipt=receipt,
    )
    scale = noise.effective_sensitivity(scale)
    return release, point, Release("mean", mu, scale, noise.sigma, mechanism, problem.secure)


def mean_notes(problem: BallProblem, calibration: str) -> tuple[str, ...]:
    """Return what the report must say of the mean's sensitivity, from public numbers only."""
    model, radius, n = problem.local.model, problem.radius, problem.n
    if problem.mu == inf or not sensitivity.unproved(
        model, radius, n, paper=calibration == "paper"
    ):
        return ()
    return (
        f"the mean's sensitivity is the diameter of the ball: at radius={radius:.6g} no descent of "
        f"{sensitivity.MOST_PASSES:,} passes is proved to come near enough for a smaller one",
    )


def _representable(problem: BallProblem, point: Array) -> Array:
    """Return a released point, drawn towards the centre until float64 can hold it for the user.

    Post-processing: of the point and of public numbers. With a badly scaled centre, or noise far
    beyond the ball, a point of the model may have no counterpart in the space.
    """
    local, tolerance = problem.local, _ROUND_TRIP * problem.radius
    with np.errstate(all="ignore"):
        for _ in range(_HALVINGS):
            public = local.from_model(point)
            try:
                returns = local.model.within(point, local.to_model(public), tolerance)
                if returns and problem.manifold.contains(public):
                    break
            except np.linalg.LinAlgError:
                pass
            shorter = local.model.log_coords(local.origin, point) / 2
            point = local.model.exp_coords(local.origin, shorter)
    return point
