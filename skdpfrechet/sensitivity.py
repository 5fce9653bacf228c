"""Every sensitivity of the library, one function each: the one file to audit.

Common to all: neighbouring data sets replace one record by another (replace-one) and the number of
records n is public. All records lie in the closed ball of a public radius r around a public point
m0. "Sensitivity" is the supremum, over neighbouring data sets, of the distance between the two
values of a statistic: the geodesic distance for the mean, the Euclidean (Frobenius) norm for all
else. A statistic with sensitivity Δ released with Gaussian noise of scale Δ/μ is μ-GDP [2]_.

``*_paper`` functions are the constants printed in [1]_; the others are the audited ones that
``calibration="sharp"`` uses.

References
----------
.. [1] Jiang, Chang, Hu, "Differentially private inference framework for Riemannian manifold data",
   arXiv 2605.14762.
.. [2] Dong, Roth, Su, "Gaussian differential privacy", J. R. Stat. Soc. B 84, 2022.
"""

from __future__ import annotations

from math import exp, inf, log, pi, sin, sqrt, tan, tanh

from skdpfrechet.manifolds import FlatManifold, Hyperbolic, Manifold, SPDAffineInvariant, Sphere

__all__ = [
    "MOMENT_CURVE_CONSTANT",
    "distance_histogram",
    "extrinsic_mean",
    "float_log_cap",
    "float_log_error",
    "float_radius_limit",
    "frechet_mean",
    "frechet_mean_paper",
    "hessian",
    "hessian_paper",
    "on_grid",
    "radius_limit",
    "radius_limit_paper",
    "residual_modulus",
    "rounded_curve",
    "rounding",
    "second_moment",
    "second_moment_paper",
    "sphere_chord",
    "spread_paper",
    "squared_distance_range",
    "tangent_mean",
    "tangent_sum",
    "variance",
    "variance_paper",
]

_EPSILON = 2.0**-52
#: φ^(5/2)/2 = 1.665095..., φ the golden ratio; see `variance`.
MOMENT_CURVE_CONSTANT = ((1 + sqrt(5)) / 2) ** 2.5 / 2


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


def residual_modulus(manifold: Manifold, radius: float) -> float:
    """Return c such that a point with residual g lies within g/c of the exact mean.

    The residual is ``|(1/n) Σ log_p X_i|`` at a point p of the ball; a computed mean therefore has
    the sensitivity of the exact one plus ``2g/c`` when g is a public tolerance.

    Notes
    -----
    κ ≤ 0: c = 1, the modulus of convexity of ½ρ². κ > 0: the larger of ``2r√κ cot(2r√κ)`` (modulus
    of convexity, r < π/(4√κ) only) and ``(r' - r)√κ / (2 tan(r'√κ))`` with r' midway between r and
    its limit: p is the exact mean of the data with one more point of weight w in B(m0, r'),
    ``w/(1-w) = g/(r' - r)``, and `frechet_mean` bounds what that point can do (Proposition
    8 of docs/sensitivity_proof.md).
    """
    kappa = _positive_curvature(manifold)
    if kappa == 0:
        return 1.0
    root = sqrt(kappa)
    wider = (radius + radius_limit(manifold)) / 2
    by_extra_point = (wider - radius) * root / (2 * tan(wider * root))
    angle = 2 * radius * root
    return max(angle / tan(angle), by_extra_point) if angle < pi / 2 else by_extra_point


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


def float_log_error(manifold: Manifold, radius: float, n: int) -> float:
    """Return a bound on the error of the mean of n computed logarithms within the ball.

    Notes
    -----
    n rounding errors of the running sum, n·ε·r, plus the error of one logarithm. Means of blocks,
    weighted and added, keep to that: a term passes at most n - 1 additions and three more
    roundings, each of ε/2. SPD, affine-invariant: `float_log_cap`. Hyperbolic: the boost of a point
    at distance r from m0 by another such point cancels to (d + 1)·ε·e^{2r}. Sphere: directions near
    the antipode lose ε·tan r. Flat: the subtraction is one more term of the sum.
    """
    running_sum = n * _EPSILON * radius
    if isinstance(manifold, SPDAffineInvariant):
        reach = min(radius, float_log_cap(manifold, radius, n))
        return 4 * manifold.size * _EPSILON * exp(4 * reach) + running_sum
    if isinstance(manifold, Hyperbolic):
        return (manifold.dim + 1) * _EPSILON * exp(2 * radius) + running_sum
    if isinstance(manifold, Sphere):
        return 8 * _EPSILON * (1 + tan(radius)) + running_sum
    _require_known(manifold)
    return running_sum


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


def sphere_chord(distance: float) -> float:
    """Return the Euclidean length ``2 sin(Δ/2)`` of a chord of the unit sphere.

    The sensitivity in R^{d+1} of a point of S^d that moves by at most the geodesic `distance`.
    """
    return 2 * sin(min(distance, pi) / 2)


def extrinsic_mean(n: int) -> float:
    """Return the sensitivity 2/n of ``(1/n) Σ X_i`` in R^{d+1} for records on the unit sphere.

    Notes
    -----
    Replace-one, n public; no ball is needed: unit vectors are at most 2 apart. Attained.
    """
    return 2 / n


def rounding(entries: int, step: float) -> float:
    """Return how far a vector moves when its entries are rounded to multiples of `step`.

    Notes
    -----
    √k·step/2 for k entries, in the Euclidean norm. A thousandth of it is added, which covers what
    float64 did to the vector before as long as its entries are below 2^40 steps.
    """
    return 0.5005 * sqrt(entries) * step


def on_grid(sensitivity: float, entries: int, step: float) -> float:
    """Return the sensitivity of a statistic whose entries are rounded to multiples of `step`.

    Notes
    -----
    Replace-one, n public, as for the statistic itself: each of the two values moves by at most
    `rounding`. A few units of the last place are added for the rounding of this very number.
    """
    return (sensitivity + 2 * rounding(entries, step)) * (1 + 4 * _EPSILON)


def rounded_curve(sensitivity: float, fine: float, coarse: float) -> float:
    """Return the sensitivity of ``Σ (y, c y²)`` with y rounded to two grids, one for each sum.

    Parameters
    ----------
    sensitivity : float
        Of the sum of points on the curve, y in a range that rounding does not leave.
    fine, coarse : float
        Steps of the two grids.

    Notes
    -----
    Replace-one, n public. With y rounded to the coarse grid in both coordinates the point would be
    on the curve. The first is off by less than ``fine + coarse``, for each of the two values.
    """
    return (sensitivity + 2 * (fine + coarse)) * (1 + 4 * _EPSILON)


# --- the private ball ----------------------------------------------------------------------------


def tangent_sum(radius: float, rounding: float) -> float:
    """Return the sensitivity ``2(r + rounding)`` of Σ v_i, as `tangent_mean` but in exact sums.

    Notes
    -----
    Replace-one, n public. Every v_i was clipped to norm r and then rounded to a grid, which moves
    it by at most `rounding`; sums of multiples of a step are exact.
    """
    return 2 * (radius + rounding)


def tangent_mean(radius: float, n: int) -> float:
    """Return the sensitivity of ``(1/n) Σ v_i``, v_i logarithms at a public point clipped to r.

    Parameters
    ----------
    radius : float
        Norm to which every v_i is clipped.
    n : int

    Returns
    -------
    float
        ``2r/n``, and ``2 n ε r`` for the rounding of the two running sums, ε the machine epsilon.

    Notes
    -----
    Replace-one, n public. Only the norms matter: one vector of length at most r is exchanged for
    another. It holds on every manifold, at every base point that is public or released before, and
    however wrong a computed logarithm is. Attained by opposite vectors of length r.
    """
    return 2 * radius / n + 2 * n * _EPSILON * radius


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
