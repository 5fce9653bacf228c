"""Release of the Fréchet mean of records in a ball."""

from __future__ import annotations

from math import inf

import numpy as np

from skdpfrechet import sensitivity
from skdpfrechet._numerics import Array
from skdpfrechet._solvers import frechet_mean
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
    scale, tolerance = mean_sensitivity(problem, calibration)
    noise = calibrate(mechanism, local.model, local.origin, scale, GDP(mu), problem.secure)
    exact = frechet_mean(
        local.model,
        problem.sample,
        local.origin,
        radius=problem.radius,
        tolerance=0.0 if mu == inf else tolerance,
        accept=max(1e-7 * problem.radius, tolerance) if mu == inf else tolerance,
    )
    point = noise.release(exact, rng)
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
        receipt=receipt,
    )
    if mechanism == "projected-gaussian":
        scale = sensitivity.sphere_chord(scale)  # its noise is added in the ambient space
    grid = getattr(noise, "grid", None)
    if grid is not None:
        scale = grid.sensitivity(scale)
    return release, point, Release("mean", mu, scale, noise.sigma, mechanism)


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


def mean_sensitivity(problem: BallProblem, calibration: str) -> tuple[float, float]:
    """Return the sensitivity of the computed mean and the residual tolerance it relies on.

    Both from public numbers. The tolerance g never is the residual that was reached: the computed
    mean is within (g + e)/c of the exact one, e the rounding error of the mean logarithm.
    """
    model, radius, n = problem.local.model, problem.radius, problem.n
    error = sensitivity.float_log_error(model, radius, n)
    tolerance = max(1e-4 * 2 * radius / n, 1e-9 * radius, error)
    exact = (
        sensitivity.frechet_mean_paper if calibration == "paper" else sensitivity.frechet_mean
    )(model, radius, n)
    slack = 2 * (tolerance + error) / sensitivity.residual_modulus(model, radius)
    if problem.secure:
        slack += 2 * error  # of the coordinates in which the noise is added
    return min(exact + slack, model.diameter), tolerance
