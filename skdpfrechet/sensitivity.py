"""Every sensitivity of the library, one function each: the one file to audit.

Common to all: neighbouring data sets replace one record by another (replace-one) and the number of
records n is public. All records lie in the closed ball of a public radius r around a public point
m0. "Sensitivity" is the supremum, over neighbouring data sets, of the distance between the two
values of a statistic: the geodesic distance for the mean, the Euclidean (Frobenius) norm for all
else. A statistic with sensitivity Δ released with Gaussian noise of scale Δ/μ is μ-GDP [2]_.

Functions named after a statistic are theorems about real numbers. ``computed_*`` bound the same
statistic as float64 computes it, ``rounded_*`` its exact sum over rounded records; these are what
estimators call, and they are rounded up. Nothing outside adds to a sensitivity.

``*_paper`` functions are the constants printed in [1]_; the others are the audited ones that
``calibration="sharp"`` uses.

References
----------
.. [1] Jiang, Chang, Hu, "Differentially private inference framework for Riemannian manifold data",
   arXiv 2605.14762.
.. [2] Dong, Roth, Su, "Gaussian differential privacy", J. R. Stat. Soc. B 84, 2022.
"""

from __future__ import annotations

from math import ceil, exp, inf, log, log1p, pi, sin, sqrt, tan, tanh

from skdpfrechet.manifolds import (
    FlatManifold,
    Hyperbolic,
    Manifold,
    SPDAffineInvariant,
    SPDLogCholesky,
    SPDLogEuclidean,
    Sphere,
)

__all__ = [
    "MOMENT_CURVE_CONSTANT",
    "MOST_PASSES",
    "ball_diameter",
    "certified",
    "computed_extrinsic_mean",
    "computed_mean",
    "computed_paper",
    "computed_second_moment",
    "computed_tangent_mean",
    "computed_variance",
    "coordinates_slack",
    "descent_step",
    "distance_histogram",
    "distance_to_mean",
    "extrinsic_mean",
    "float_log_cap",
    "float_log_error",
    "float_radius_limit",
    "frechet_mean",
    "frechet_mean_paper",
    "hessian",
    "hessian_paper",
    "in_float64",
    "log_error",
    "map_error",
    "map_error_limit",
    "mean_passes",
    "mean_slack",
    "mean_tolerance",
    "on_grid",
    "radius_limit",
    "radius_limit_paper",
    "rounded_curve",
    "rounded_second_moment",
    "rounded_tangent_sum",
    "rounding",
    "running_sum",
    "second_moment",
    "second_moment_paper",
    "sphere_chord",
    "spread_paper",
    "squared_distance_range",
    "tangent_mean",
    "unproved",
    "variance",
    "variance_paper",
]

_EPSILON = 2.0**-52
#: Passes over the records up to which a sensitivity rests on a descent that takes so many. None
#: ever did; on the sphere a hundred thousand records then cost a quarter of an hour.
MOST_PASSES = 10**6
#: Factor for what float64 does to these formulas and to the norm of a clipped vector of up to 2^16
#: entries: each is a few units of 2^-52 per operation, and the factor is 2^16 such units.
_ROOM = 1 + 2.0**-36
#: φ^(5/2)/2 = 1.665095..., φ the golden ratio, rounded down; see `variance`.
MOMENT_CURVE_CONSTANT = ((1 + sqrt(5)) / 2) ** 2.5 / 2 * (1 - 8 * _EPSILON)


# --- admissible radii ---------------------------------------------------------------------------


def radius_limit(manifold: Manifold) -> float:
    """Return the radius below which the Fréchet mean is unique and `frechet_mean` holds.

    Half the smaller of the injectivity radius and π/√κ, the radius of the largest regular geodesic
    ball [1]_; infinite on Hadamard spaces. The bound is strict.

    References
    ----------
    .. [1] B. Afsari, "Riemannian L^p center of mass: existence, uniqueness, and convexity",
       Proc. Amer. Math. Soc. 139, 2011.
    """
    kappa = manifold.sectional_curvature_bounds[1]
    return min(manifold.injectivity_radius, pi / sqrt(kappa) if kappa > 0 else inf) / 2


def radius_limit_paper(manifold: Manifold) -> float:
    """Return the radius below which `frechet_mean_paper` holds: π/(4√κ) where κ > 0."""
    kappa = manifold.sectional_curvature_bounds[1]
    return min(radius_limit(manifold), pi / (4 * sqrt(kappa)) if kappa > 0 else inf)


# --- the Fréchet mean ---------------------------------------------------------------------------


def frechet_mean(manifold: Manifold, radius: float, n: int) -> float:
    """Return the sensitivity of the exact Fréchet mean.

    Parameters
    ----------
    manifold : Manifold
    radius : float
        Below `radius_limit`.
    n : int

    Returns
    -------
    float
        ``2r/n`` on Hadamard spaces and in dimension 1; ``min(2r, 2 tan(r√κ)/(√κ n))`` where the
        curvature is bounded by κ > 0.

    Notes
    -----
    Neighbouring relation: replace-one, n public. Assumption: all records in B(m0, r), r below the
    limit. Attained in the first two cases by two records at opposite ends of a diameter. For κ > 0
    shift the weight 1/n from the old record to the new one: the mean p moves with velocity
    ``H⁻¹ (log_p x' - log_p x)/n``, H the mean Hessian of ½ρ². With a the distance of p from m0 and
    ``cos(r_a √κ) = cos(r √κ)/cos(a √κ)``, ``H ≥ r_a√κ cot(r_a√κ)`` and the diameter of
    ``log_p B(m0, r)`` times ``tan(r_a√κ)/(r_a√κ)`` is at most ``2 tan(r√κ)/√κ``: Propositions 5 and
    7 of docs/sensitivity_proof.md. The factor is the smallest that serves all n on a sphere. The
    mean of any data set lies in the ball, hence the cap 2r.
    """
    kappa = _positive_curvature(manifold)
    if kappa == 0:
        return 2 * radius / n
    _check_below(radius, radius_limit(manifold))
    root = sqrt(kappa)
    return min(2 * radius, 2 * tan(radius * root) / (root * n))


def frechet_mean_paper(manifold: Manifold, radius: float, n: int) -> float:
    """Return the printed sensitivity of the Fréchet mean: ``2(tan(2r√κ)/√κ - r)/n`` for κ > 0.

    Notes
    -----
    Replace-one, n public, records in B(m0, r), r < π/(4√κ). Reimherr, Bharath, Soto, "Differential
    privacy over Riemannian manifolds", NeurIPS 2021, Theorem 2; never smaller than
    `frechet_mean`.
    """
    kappa = _positive_curvature(manifold)
    if kappa == 0:
        return 2 * radius / n
    _check_below(radius, radius_limit_paper(manifold))
    root = sqrt(kappa)
    return 2 * (tan(2 * radius * root) / root - radius) / n


def _check_below(radius: float, limit: float) -> None:
    """Refuse a radius from which on a formula turns small, or negative, instead of infinite."""
    if not radius < limit:
        raise ValueError(f"radius must be below {limit!r}, got {radius!r}.")


def distance_to_mean(manifold: Manifold, radius: float, residual: float) -> float:
    """Return how far from the exact mean a point of the ball with a given residual can be.

    Parameters
    ----------
    manifold : Manifold
    radius : float
    residual : float
        ``g = |(1/n) Σ log_p X_i|`` at the point p, or a bound of it.

    Returns
    -------
    float
        g where κ ≤ 0; elsewhere ``-log(1 - g√κ tan(r√κ))/(rκ)``, close to ``g tan(r√κ)/(r√κ)``, and
        infinite for ``g ≥ cot(r√κ)/√κ``.

    Notes
    -----
    κ ≤ 0: ½ρ² is convex with modulus 1. κ > 0: at every point of the ball with residual γ the mean
    Hessian of ½ρ² is at least ``r√κ cot(r√κ) (1 - γ√κ tan(r√κ))``, and the gradient flow from p
    ends at the mean: Lemma 8 and Proposition 9 of docs/sensitivity_proof.md. The factor of small g
    is the smallest.
    """
    kappa = _positive_curvature(manifold)
    if kappa == 0:
        return residual
    root = sqrt(kappa)
    share = residual * root * tan(radius * root)
    return -log1p(-share) / (radius * kappa) if share < 1 else inf


def float_log_cap(manifold: Manifold, radius: float, n: int) -> float:
    """Return the public bound L on log-eigenvalues relative to m0 that keeps float64 logs honest.

    Notes
    -----
    The set ``{e^-L m0 ≤ X ≤ e^L m0}`` is geodesically convex, so every whitened matrix has
    condition at most e^{4L} and its computed logarithm an error of at most 4·p·ε·e^{4L}, ε the
    machine epsilon, as long as that is small (the factor 4 is measured: searches against 50 digits
    reach 1.2). L is chosen from public numbers such that this is one hundredth of the sensitivity
    2r/n, and at most 1/10: beyond it the smallest eigenvalue may round to a negative number, whose
    logarithm errs by hundreds. It binds only when r > L. Infinite on other spaces.
    """
    if not isinstance(manifold, SPDAffineInvariant):
        _require_known(manifold)
        return inf
    error = min(2 * radius / n / 100, 0.1)
    return max(0.25 * log(error / (4 * manifold.size * _EPSILON)), 1.0)


def log_error(manifold: Manifold, radius: float, n: int) -> float:
    """Return a bound on the error of one computed logarithm between two points of the ball.

    It also bounds how far a point that was moved into the ball may lie outside, and the error of
    the coordinates of a point at m0.

    Notes
    -----
    SPD, affine-invariant: `float_log_cap`. Hyperbolic: the boost of a point at distance r from m0
    by another such point cancels to (d + 1)·ε·e^{2r}. Sphere: directions near the antipode lose
    ε·tan r. Flat: one subtraction.
    """
    if isinstance(manifold, SPDAffineInvariant):
        reach = min(radius, float_log_cap(manifold, radius, n))
        return 4 * manifold.size * _EPSILON * exp(4 * reach)
    if isinstance(manifold, Hyperbolic):
        return (manifold.dim + 1) * _EPSILON * exp(2 * radius)
    if isinstance(manifold, Sphere):
        return 8 * _EPSILON * (1 + tan(radius))
    _require_known(manifold)
    return 2 * _EPSILON * radius


def running_sum(reach: float, n: int) -> float:
    """Return a bound n·ε·R on the error of a mean of n terms of norm at most R in float64.

    Notes
    -----
    Means of blocks, weighted and added, keep to that: a term passes at most n - 1 additions and
    three more roundings, each of ε/2.
    """
    return n * _EPSILON * reach


def float_log_error(manifold: Manifold, radius: float, n: int) -> float:
    """Return a bound on the error of the mean of n computed logarithms within the ball."""
    return log_error(manifold, radius, n) + running_sum(radius, n)


def float_radius_limit(manifold: Manifold, n: int) -> float:
    """Return the radius up to which one logarithm errs by less than a hundredth of 2r/n.

    Finite on hyperbolic space only; SPD matrices are clipped by `float_log_cap` instead.
    """
    if not isinstance(manifold, Hyperbolic):
        _require_known(manifold)
        return inf
    limit = 1.0
    for _ in range(60):  # fixed point of r = ½ log(2r / (100 n (d+1) ε)), a contraction for r > 1
        limit = max(0.5 * log(2 * limit / (100 * n * (manifold.dim + 1) * _EPSILON)), 1.0)
    return limit


def map_error(manifold: Manifold, condition: float, length: float = 1.0) -> float:
    """Return how far float64 moves a record near a public centre on its way into the model there.

    It is no part of a sensitivity: what the map makes of a record depends on that record and the
    centre alone, and the model point, whatever it is, is moved into the ball. It is a bias of what
    is estimated, so centres with too much of it are refused (`map_error_limit`).

    Parameters
    ----------
    manifold : Manifold
        The space of the centre, not its model.
    condition : float
        Of the centre: largest over smallest eigenvalue of a matrix, e^{2D} at distance D from the
        origin of hyperbolic space.
    length : float
        Root of the largest eigenvalue; the log-Cholesky metric is not invariant to scale.

    Notes
    -----
    Whitening and eigenvalues lose p·ε times the condition number of p × p matrices, and so does the
    Cholesky factor, in units of its length. The factor 4 is measured: searches against 50 digits
    reach 2.3 where the condition number is 1, and 1 elsewhere. Compiled kernels add 1e-12 to
    matrix logarithms. The boost of hyperbolic space cancels to (d + 1)·ε·e^{2D}. A record far from
    the centre has a condition number larger by up to e^{√2 r}, and its own entries, rounded to
    float64, determine it no better than that. Spheres are not mapped; a shift is as exact as the
    record.
    """
    if isinstance(manifold, SPDAffineInvariant):
        return 4 * manifold.size * _EPSILON * condition
    if isinstance(manifold, SPDLogEuclidean):
        return 4 * manifold.size * _EPSILON * condition + 1e-12
    if isinstance(manifold, SPDLogCholesky):
        return 4 * manifold.size * _EPSILON * condition * max(length, 1.0)
    if isinstance(manifold, Hyperbolic):
        return (manifold.dim + 1) * _EPSILON * condition
    return 0.0


def map_error_limit(radius: float, n: int, private: bool = True) -> float:
    """Return the `map_error` up to which a centre serves: a hundredth of 2r/n, a millionth of r.

    Notes
    -----
    If all records nearly agree, the map moves them and their mean in the same direction, and all
    else that a region allows for is proportional to 2r/n. Without noise there is only the spread of
    the records, of which nothing is known, and the millionth alone counts.
    """
    return min(1e-6 * radius, 2 * radius / n / 100) if private else 1e-6 * radius


def mean_tolerance(manifold: Manifold, radius: float, n: int) -> float:
    """Return the residual g at which a computed mean is near enough to the exact one.

    A ten-thousandth of 2r/n, and at least three times `float_log_error`, the error with which a
    residual is known, so that a descent can reach it (`mean_passes`). It is a public number and
    never the residual that was reached.
    """
    error = float_log_error(manifold, radius, n)
    return max(1e-4 * 2 * radius / n, 1e-9 * radius, 3 * error)


def mean_slack(manifold: Manifold, radius: float, n: int) -> float:
    """Return what two means computed to residual g may be farther apart than the exact ones.

    Each of them has an exact residual of at most g + e, with g from `mean_tolerance` and e the
    error of the mean logarithm by which the residual is known (`float_log_error`). So the slack is
    twice the `distance_to_mean` of such a point.
    """
    error = float_log_error(manifold, radius, n)
    tolerance = mean_tolerance(manifold, radius, n)
    return 2 * distance_to_mean(manifold, radius, tolerance + error)


def descent_step(manifold: Manifold, radius: float, n: int) -> float:
    """Return the share of the mean logarithm by which `mean_passes` moves a point of the ball.

    ``1/L``; L = 1 where no curvature is negative. Elsewhere L is the larger of 2 and x coth x,
    x = 3r√|κ|, κ the lower bound of the curvature. Matrices are within `float_log_cap` too, and r
    counts as no larger than that allows.

    Notes
    -----
    κ ≥ 0: logarithms do not stretch distances, so ``f(exp_p v) ≤ f(p) - |E log|² + ½|v - E log|²``
    for the half mean squared distance f, anywhere. κ < 0: a step of at most half the distance 2r to
    the records is at most r long, so they stay within 3r of it, where the Hessian of ½ρ² is at
    most L.
    """
    lowest = manifold.sectional_curvature_bounds[0]
    if lowest >= 0:
        return 1.0
    if isinstance(manifold, SPDAffineInvariant):
        radius = min(radius, sqrt(manifold.size) * float_log_cap(manifold, radius, n))
    x = 3 * radius * sqrt(-lowest)
    return 1 / max(2.0, x / tanh(x))


def mean_passes(manifold: Manifold, radius: float, n: int) -> float:
    """Return a number of passes after which a descent has reached `mean_tolerance`, always.

    The descent starts anywhere in the ball, goes along the mean logarithm times `descent_step` and
    is moved back into the ball, again and again, in float64.

    Returns
    -------
    float
        One pass on flat spaces. With ``A = ln(2r√L/x)``, x = √7 g/6, at most
        ``2 + (32/7) L A`` where κ ≤ 0, and on spheres of curvature κ
        ``2 + (16/7) tan²(r√κ) (4 r²κ + 8 + 2A/(r²κ))``. Infinite elsewhere, and where the tolerance
        says nothing.

    Notes
    -----
    Proposition 11 of docs/sensitivity_proof.md.
    """
    if isinstance(manifold, FlatManifold):
        return 1.0
    tolerance = mean_tolerance(manifold, radius, n)
    kappa, lowest = _positive_curvature(manifold), manifold.sectional_curvature_bounds[0]
    smooth = 1 / descent_step(manifold, radius, n)
    octaves = log(2 * radius * sqrt(smooth) / (sqrt(7) / 6 * tolerance))
    if kappa == 0:
        return float(ceil(2 + 32 / 7 * smooth * max(octaves, 0.0)))
    if lowest < kappa or distance_to_mean(manifold, radius, tolerance) == inf:
        return inf
    angle = radius * sqrt(kappa)
    total = 4 * angle**2 + 8 + 2 * max(octaves, 0.0) / angle**2
    return float(ceil(2 + 16 / 7 * tan(angle) ** 2 * total))


def coordinates_slack(manifold: Manifold, radius: float, n: int) -> float:
    """Return what noise adds to the sensitivity by being added to computed coordinates.

    Twice `log_error`: the coordinates at m0 of each of two points err by that, and so does the
    point of a sphere in its surrounding space.
    """
    return 2 * log_error(manifold, radius, n)


def ball_diameter(manifold: Manifold, radius: float, n: int) -> float:
    """Return the largest distance of two points that were moved into the ball.

    ``2(r + e)``, e from `log_error`, at most the diameter of the space: points are moved into the
    ball up to rounding.
    """
    return min(2 * (radius + log_error(manifold, radius, n)), manifold.diameter)


def computed_mean(manifold: Manifold, radius: float, n: int, *, paper: bool = False) -> float:
    """Return the sensitivity of the mean as it is computed, in the coordinates that get noise.

    Parameters
    ----------
    manifold : Manifold
    radius : float
    n : int
    paper : bool
        Whether the mean's own share is `frechet_mean_paper` instead of `frechet_mean`.

    Returns
    -------
    float
        The smaller of the sensitivity of the exact mean plus `mean_slack`, if it is `certified`,
        and `ball_diameter`; plus `coordinates_slack`. Rounded up.

    Notes
    -----
    Replace-one, n public. Assumption: the computed mean is a point of the ball, whatever happened
    in the solver, and where it is `certified` the solver goes on for `mean_passes`. The records are
    in the ball up to `log_error`, so the exact mean is that of a ball wider by as much.
    """
    _check_below(radius, radius_limit_paper(manifold) if paper else radius_limit(manifold))
    sensitivity = ball_diameter(manifold, radius, n)
    if certified(manifold, radius, n, paper=paper):
        sensitivity = _certified_mean(manifold, radius, n, paper)
    return (sensitivity + coordinates_slack(manifold, radius, n)) * _ROOM


def certified(manifold: Manifold, radius: float, n: int, *, paper: bool = False) -> bool:
    """Return whether `computed_mean` relies on `mean_tolerance`, which then is always reached."""
    return _is_proved(manifold, radius, n) and _is_useful(manifold, radius, n, paper)


def unproved(manifold: Manifold, radius: float, n: int, *, paper: bool = False) -> bool:
    """Return whether `computed_mean` is the diameter of the ball only for want of a proof.

    A residual of `mean_tolerance` would do better, but to reach it may take more than `MOST_PASSES`
    for all that is proved.
    """
    return not _is_proved(manifold, radius, n) and _is_useful(manifold, radius, n, paper)


def _is_proved(manifold: Manifold, radius: float, n: int) -> bool:
    wider = radius + log_error(manifold, radius, n)
    return wider < radius_limit(manifold) and mean_passes(manifold, wider, n) <= MOST_PASSES


def _is_useful(manifold: Manifold, radius: float, n: int, paper: bool) -> bool:
    diameter = ball_diameter(manifold, radius, n)
    return _certified_mean(manifold, radius, n, paper) < diameter


def _certified_mean(manifold: Manifold, radius: float, n: int, paper: bool) -> float:
    """Return the sensitivity of a mean with the residual `mean_tolerance`."""
    wider = radius + log_error(manifold, radius, n)
    if not wider < (radius_limit_paper(manifold) if paper else radius_limit(manifold)):
        return inf
    exact = (frechet_mean_paper if paper else frechet_mean)(manifold, wider, n)
    return exact + mean_slack(manifold, wider, n)


def sphere_chord(distance: float) -> float:
    """Return the Euclidean length ``2 sin(Δ/2)`` of a chord of the unit sphere.

    The sensitivity in R^{d+1} of a point of S^d that moves by at most the geodesic `distance`.
    Rounded up, and never above 2.
    """
    return min(2 * sin(min(distance, pi) / 2) * (1 + 4 * _EPSILON), 2.0)


def extrinsic_mean(n: int) -> float:
    """Return the sensitivity 2/n of ``(1/n) Σ X_i`` in R^{d+1} for records on the unit sphere.

    Notes
    -----
    Replace-one, n public; no ball is needed: unit vectors are at most 2 apart. Attained.
    """
    return 2 / n


def computed_extrinsic_mean(n: int) -> float:
    """Return the sensitivity of `extrinsic_mean` as float64 sums it."""
    return in_float64(extrinsic_mean(n), 1.0, n)


# --- what float64 adds, and what grids add --------------------------------------------------------


def in_float64(sensitivity: float, reach: float, n: int) -> float:
    """Return the sensitivity of a mean of n terms of norm at most `reach` as float64 sums it.

    Notes
    -----
    Replace-one, n public. Each of the two running sums errs by at most `running_sum`.
    """
    return (sensitivity + 2 * running_sum(reach, n)) * _ROOM


def computed_paper(sensitivity: float, n: int) -> float:
    """Return one of the printed sensitivities of a mean of n terms as float64 sums it.

    As `in_float64`: n times each of them is an upper bound of the norm of a term.
    """
    return in_float64(sensitivity, n * sensitivity, n)


def rounding(entries: int, step: float) -> float:
    """Return how far a vector moves when its entries are rounded to multiples of `step`.

    √k·step/2 for k entries, in the Euclidean norm.
    """
    return 0.5 * sqrt(entries) * step


def on_grid(sensitivity: float, entries: int, step: float) -> float:
    """Return the sensitivity of a statistic whose entries are rounded to multiples of `step`.

    Notes
    -----
    Replace-one, n public, as for the statistic itself: each of the two values moves by at most
    `rounding`.
    """
    return (sensitivity + 2 * rounding(entries, step)) * _ROOM


# --- the private ball ----------------------------------------------------------------------------


def tangent_mean(radius: float, n: int) -> float:
    """Return the sensitivity 2r/n of ``(1/n) Σ v_i``, v_i logarithms clipped to norm r.

    Notes
    -----
    Replace-one, n public. Only the norms matter: one vector of length at most r is exchanged for
    another. It holds on every manifold, at every base point that is public or released before, and
    however wrong a computed logarithm is. Attained by opposite vectors of length r.
    """
    return 2 * radius / n


def computed_tangent_mean(radius: float, n: int) -> float:
    """Return the sensitivity of `tangent_mean` as float64 sums it."""
    return in_float64(tangent_mean(radius, n), radius, n)


def rounded_tangent_sum(radius: float, entries: int, step: float) -> float:
    """Return the sensitivity of Σ v_i, as `tangent_mean` but in exact sums of rounded vectors.

    ``2(r + rounding)``: every v_i was clipped to norm r and its entries then rounded to multiples
    of `step`, whose sums are exact.
    """
    return 2 * (radius + rounding(entries, step)) * _ROOM


def distance_histogram() -> float:
    """Return the sensitivity √2 of the counts of records in disjoint bins of their distance.

    Notes
    -----
    Replace-one, n public. The distances are to a public or released point. Every record is in
    exactly one bin, so that a replaced one leaves a bin and enters another: attained whenever these
    differ. (The cumulative counts of k bins would have √(k - 1).)
    """
    return sqrt(2)


# --- moments at the released mean ----------------------------------------------------------------


def second_moment(
    manifold: Manifold, radius: float, distance: float, n: int, rounding: float = 0.0
) -> float:
    """Return the sensitivity of the uncentred second moment ``(1/n) Σ V Vᵀ`` at a released point.

    Parameters
    ----------
    manifold : Manifold
    radius : float
    distance : float
        D, the distance of the released point from m0; public once the point is released.
    n : int
    rounding : float
        How far each V may have left its ball when it was rounded (`rounding`); it adds to the
        radius, on Hadamard and flat spaces to r and elsewhere to R.

    Returns
    -------
    float
        Frobenius norm. ``√2 R²/n`` with R = r + D capped at the diameter; ``R²/n`` in dimension 1.
        On Hadamard and flat spaces of dimension d > 1 the smaller ``s/n``:
        ``s = 2√2 max_θ (D + r cos θ) r sin θ`` for D ≤ r/√3, ``2(r² + D²)`` for r/√3 ≤ D ≤ r and
        ``4 r D`` for D ≥ r.

    Notes
    -----
    Replace-one, n public. V are logarithms at the released point. Two positive semidefinite
    matrices of trace at most R² are at most √2 R² apart (attained by orthogonal directions, D = 0).
    On a Hadamard space the logarithm does not stretch, so the V lie in a flat ball of radius r
    whose centre has norm D; the code clips them to that ball, which makes the bound hold for
    whatever floats come in. Of two rank-one matrices in that ball the farthest apart are placed
    symmetrically to the line through 0 and the centre; the three cases are where the maximum of
    ``|v vᵀ - w wᵀ|`` sits.
    """
    reach = min(radius + distance, manifold.diameter) + rounding
    radius += rounding
    hadamard = manifold.sectional_curvature_bounds[1] <= 0 and manifold.injectivity_radius == inf
    if manifold.dim == 1:
        return (reach**2 - max(distance - radius, 0.0) ** 2 if hadamard else reach**2) / n
    if not hadamard:
        return sqrt(2) * reach**2 / n
    if distance >= radius:
        return 4 * radius * distance / n
    if distance >= radius / sqrt(3):
        return 2 * (radius**2 + distance**2) / n
    cosine = (sqrt(distance**2 + 8 * radius**2) - distance) / (4 * radius)
    sine = sqrt(1 - cosine**2)
    return 2 * sqrt(2) * (distance + radius * cosine) * radius * sine / n


def computed_second_moment(manifold: Manifold, radius: float, distance: float, n: int) -> float:
    """Return the sensitivity of `second_moment` as float64 sums it."""
    reach = min(radius + distance, manifold.diameter)
    return in_float64(second_moment(manifold, radius, distance, n), reach**2, n)


def rounded_second_moment(manifold: Manifold, radius: float, distance: float, step: float) -> float:
    """Return the sensitivity of Σ V Vᵀ, as `second_moment` but in exact sums of rounded vectors.

    The entries of every V were rounded to multiples of `step`.
    """
    moved = rounding(manifold.dim, step)
    return second_moment(manifold, radius, distance, 1, moved) * _ROOM


def second_moment_paper(radius: float, n: int) -> float:
    """Return ``4r²/n`` for the centred covariance of logarithms truncated to norm r.

    Notes
    -----
    Replace-one, n public. Attained for the centred covariance with divisor n; the printed recipe
    divides by n - 1, whose factor n/(n - 1) is covered because the exact constant for the divisor
    n is ``4r²(n - 1)/n²``.
    """
    return 4 * radius**2 / n


def hessian(manifold: Manifold, reach: float, n: int) -> float:
    """Return the sensitivity of the mean Hessian of ρ² at a released point.

    Parameters
    ----------
    manifold : Manifold
    reach : float
        R, an upper bound of the distances from the released point to the records.
    n : int

    Notes
    -----
    Replace-one, n public. With ``g(R) = |1 - R cot R|`` or ``R coth R - 1``: the bound is
    ``2 g(R) √max(d - 1, 2)/n`` in constant curvature ±1 (0 in dimension 1). Affine-invariant
    SPD(p): ``H - 2I`` is positive semidefinite, with eigenvalues ``2(x coth x - 1)``, x half a gap
    of the log-eigenvalues, and ``Σ x² ≤ p R²/4``; since ``(x coth x - 1)²/x²`` grows with
    x ≤ ℓ = R/√2, its norm is at most ``√(2p) g(ℓ)`` and the sensitivity √2 times that over n (exact
    for p = 2). The shipped recipes never release the Hessian: it is bounded by the second moment,
    which is released anyway.
    """
    if isinstance(manifold, FlatManifold) or manifold.dim == 1:
        return 0.0
    if isinstance(manifold, Sphere):
        return 2 * (1 - reach / tan(reach)) * sqrt(max(manifold.dim - 1, 2)) / n
    if isinstance(manifold, Hyperbolic):
        return 2 * (reach / tanh(reach) - 1) * sqrt(max(manifold.dim - 1, 2)) / n
    if isinstance(manifold, SPDAffineInvariant):
        half = reach / sqrt(2)
        return 2 * sqrt(manifold.size) * (half / tanh(half) - 1) / n
    raise ValueError(f"The Hessian's sensitivity is not known on {manifold!r}.")


def hessian_paper(manifold: Manifold, radius: float, n: int) -> float:
    """Return the printed ``2 B_H/n``, ``B_H = sup |H|_F`` over records within r of the mean.

    Notes
    -----
    Replace-one, n public. B_H = 2√d where the curvature is not negative,
    ``2√(m + m(m-1)/2 (ℓ coth ℓ)² + m(m-1)/2)`` with ℓ = r/√2 on SPD(m) and
    ``2√(1 + (d-1)(r coth r)²)`` on hyperbolic space.
    """
    if isinstance(manifold, SPDAffineInvariant) and manifold.size > 1:
        m, half = manifold.size, radius / sqrt(2)
        pairs = m * (m - 1) / 2
        bound = 2 * sqrt(m + pairs * (half / tanh(half)) ** 2 + pairs)
    elif isinstance(manifold, Hyperbolic) and manifold.dim > 1:
        bound = 2 * sqrt(1 + (manifold.dim - 1) * (radius / tanh(radius)) ** 2)
    else:
        _require_known(manifold)  # B_H is that of flat space where the curvature is not negative
        bound = 2 * sqrt(manifold.dim)
    return 2 * bound / n


# --- the Fréchet variance ------------------------------------------------------------------------


def squared_distance_range(radius: float, distance: float) -> tuple[float, float]:
    """Return the public range of ρ²(p, X_i) for a point p at `distance` from m0.

    By the triangle inequality, ``[max(D - r, 0)², (D + r)²]``.
    """
    return max(distance - radius, 0.0) ** 2, (distance + radius) ** 2


def variance(radius: float, distance: float, n: int) -> float:
    """Return the sensitivity W/n of the mean squared distance to a released point of the ball.

    W is the width of `squared_distance_range`.

    Notes
    -----
    Replace-one, n public. The released point must be fixed before the records are looked at again:
    a mean released before, projected to the ball. The code clips every squared distance to the
    range. The same number is the sensitivity of the whole moment curve: with y centred at the
    middle of its range, h = W/2 and ``c h ≤ MOMENT_CURVE_CONSTANT``, the curve
    ``(y, c y²), |y| ≤ h`` has Euclidean diameter 2h. (The chord between y and z has squared length
    ``(y - z)² (1 + c²(y + z)²)``; with u = y - z, ``|y + z| ≤ 2h - u``, and
    ``u²(1 + c²(2h - u)²)`` exceeds 4h² for some u exactly when ``(ch)² > φ⁵/4``, φ the golden
    ratio.) So one query releases the first and the second moment at the price of the first.
    """
    low, high = squared_distance_range(radius, distance)
    return (high - low) / n


def computed_variance(radius: float, distance: float, n: int) -> float:
    """Return the sensitivity of `variance`, or of its moment curve, as float64 sums it."""
    _, high = squared_distance_range(radius, distance)
    return in_float64(variance(radius, distance, n), 2 * high, n)


def rounded_curve(radius: float, distance: float, fine: float, coarse: float) -> float:
    """Return the sensitivity of ``Σ (y, c y²)`` with y rounded to two grids, one for each sum.

    Parameters
    ----------
    radius, distance : float
        As for `variance`; rounding does not leave the range of y.
    fine, coarse : float
        Steps of the two grids.

    Notes
    -----
    Replace-one, n public; sums are exact. With y rounded to the coarse grid in both coordinates the
    point would be on the curve, of diameter W. The first is off by less than ``fine + coarse``, for
    each of the two values.
    """
    return (variance(radius, distance, 1) + 2 * (fine + coarse)) * _ROOM


def variance_paper(radius: float, n: int) -> float:
    """Return the printed ``4r²/n`` of the mean squared distance.

    Notes
    -----
    Replace-one, n public. True only when the released mean lies in the ball, which the printed
    recipe does not ensure; ours projects it there.
    """
    return 4 * radius**2 / n


def spread_paper(radius: float, n: int) -> float:
    """Return the printed ``16 r⁴/n`` of the empirical variance of the squared distances.

    Notes
    -----
    Replace-one, n public, released mean in the ball (squared distances in [0, 4r²]).
    """
    return 16 * radius**4 / n


def _require_known(manifold: Manifold) -> None:
    """Raise on spaces of which nobody measured how their formulas err in float64."""
    if not isinstance(manifold, FlatManifold | Hyperbolic | SPDAffineInvariant | Sphere):
        raise ValueError(
            "manifold must be one whose rounding errors and Hessians are known: a flat or "
            f"hyperbolic space, affine-invariant SPD matrices or a sphere, got {manifold!r}."
        )


def _positive_curvature(manifold: Manifold) -> float:
    """Return the upper curvature bound, 0 where the formulas of flat space apply."""
    return max(manifold.sectional_curvature_bounds[1], 0.0) if manifold.dim > 1 else 0.0
