"""`DPFrechetMean` and `DPFrechetVariance` on many data sets at once.

The same queries in the same order as in the estimators, with the same sensitivities, mechanisms and
post-processing, over a leading axis of replications. test_reproduction.py holds them to the
estimators digit by digit.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, lgamma, log, pi

import numpy as np

from skdpfrechet import sensitivity
from skdpfrechet._numerics import clip_eigenvalues, clip_norm, symmetrize, unvecd, vecd
from skdpfrechet._solvers import frechet_mean, second_moment
from skdpfrechet.estimators._budget import mean_shares, part, variance_shares
from skdpfrechet.estimators._mechanisms import calibrate, resolve_mechanism
from skdpfrechet.inference import hessian_range, mean_hessian_bound
from skdpfrechet.inference._covariance import (
    chi_squared_value,
    critical_value,
    error_carrier,
    error_covariance,
    into_chart,
    repair_moment,
)
from skdpfrechet.inference._variance import interval_ends, noise_moments, spread_from_moments
from skdpfrechet.manifolds import Localization, Manifold, Sphere
from skdpfrechet.mechanisms import Gaussian, SymmetricGaussian
from skdpfrechet.privacy import GDP

LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Samples:
    """R data sets in the model of a space, shape (R, n, *point_shape), and their Fréchet means.

    Their fits are those of ``noise="float"``.
    """

    manifold: Manifold
    radius: float
    local: Localization
    points: np.ndarray
    certified_mean: np.ndarray  # to the residual that the sensitivity allows for
    exact_mean: np.ndarray  # to rounding, for μ = ∞

    @property
    def n(self) -> int:
        return self.points.shape[1]

    @classmethod
    def make(cls, manifold: Manifold, center: np.ndarray, radius: float, X: np.ndarray) -> Samples:
        """Move the records into the ball and solve for the means, once for all that follows."""
        local = manifold.localize(center)
        model, origin = local.model, local.origin
        cap = sensitivity.float_log_cap(model, radius, X.shape[1])
        X = local.to_model(manifold.canonical(X))
        points = model.project_to_ball(X, origin, radius, cap)
        tolerance = sensitivity.mean_tolerance(model, radius, X.shape[1])
        accept = max(1e-7 * radius, tolerance)
        certified = frechet_mean(model, points, origin, radius=radius, tolerance=tolerance)
        exact = frechet_mean(model, points, origin, radius=radius, tolerance=0.0, accept=accept)
        return cls(manifold, radius, local, points, certified, exact)

    def release_mean(self, mu, calibration, rng):
        """Return the mechanism and the released means for the budget `mu` of one query."""
        paper = calibration == "paper"
        scale = sensitivity.computed_mean(self.local.model, self.radius, self.n, paper=paper)
        name = resolve_mechanism("auto", self.manifold, exact=False)
        mechanism = calibrate(name, self.local.model, self.local.origin, scale, GDP(mu))
        return mechanism, mechanism.release(
            self.exact_mean if mu == inf else self.certified_mean, rng
        )


@dataclass(frozen=True, eq=False)
class MeanFits:
    """Regions of R fits: in the chart at m0 under wrapped noise, else at the released means."""

    local: Localization
    points: np.ndarray
    covariance: np.ndarray
    critical_value: np.ndarray
    in_chart: bool

    def distance(self, truth: np.ndarray) -> np.ndarray:
        return self.local.model.dist(self.points, self.local.to_model(truth))

    def covers(self, truth: np.ndarray) -> np.ndarray:
        model, origin = self.local.model, self.local.origin
        truth = self.local.to_model(truth)
        if self.in_chart:
            w = model.log_coords(origin, truth) - model.log_coords(origin, self.points)
        else:
            w = model.log_coords(self.points, truth)
        statistic = (w * np.linalg.solve(self.covariance, w[..., None])[..., 0]).sum(axis=-1)
        return statistic <= self.critical_value

    def volume(self) -> np.ndarray:
        model, dim = self.local.model, self.local.model.dim
        unit_ball = dim / 2 * log(pi) - lgamma(dim / 2 + 1)
        _, log_det = np.linalg.slogdet(self.covariance)
        log_volume = unit_ball + dim / 2 * np.log(self.critical_value) + log_det / 2
        if self.in_chart:
            velocity = model.log(self.local.origin, self.points)
            log_volume += model.log_volume_density(self.local.origin, velocity)
        return np.exp(log_volume)


def fit_means(samples: Samples, mu: float, calibration: str, rng) -> MeanFits:
    """Fit `DPFrechetMean` to every data set; `rng` goes to `Mechanism.release` and nowhere else."""
    model, origin, n = samples.local.model, samples.local.origin, samples.n
    shares = mean_shares(mu, n, calibration, None, region=True)
    mechanism, points = samples.release_mean(part(mu, shares["mean"]), calibration, rng)
    spread = _spread_paper if calibration == "paper" else _spread
    moment, hessian, moment_scale, moment_range = spread(samples, points, mu, shares, rng)
    in_chart = mu < inf and not isinstance(model, Sphere)
    carrier = error_carrier(hessian, n)
    if in_chart:
        carrier = into_chart(model, origin, points, carrier)
    covariance = symmetrize(error_covariance(moment, carrier, mechanism.sigma))
    if calibration == "paper":
        value = np.full(len(points), chi_squared_value(LEVEL, model.dim))
    else:
        value = critical_value(
            moment,
            carrier,
            n=n,
            scale=mechanism.sigma,
            moment_scale=moment_scale,
            moment_range=moment_range,
            level=LEVEL,
        )
    return MeanFits(samples.local, points, covariance, value, in_chart)


def _spread(samples, points, mu, shares, rng):
    """Release the uncentred second moments; the Hessians follow from them."""
    model, origin, n, radius = samples.local.model, samples.local.origin, samples.n, samples.radius
    distance = model.dist(origin, points)
    reach = np.minimum(radius + distance, model.diameter)
    if isinstance(model, Sphere):
        logs = _logs(model, points, samples.points, np.zeros((1, model.dim)), reach[:, None])
    else:
        middle = clip_norm(model.log_coords(points, origin), distance)
        logs = _logs(model, points, samples.points, middle[:, None], radius)
    budget = GDP(part(mu, shares["second_moment"]))
    scale = _scales(lambda d: sensitivity.second_moment(model, radius, d, n), distance, budget)
    released = unvecd(_release(vecd(second_moment(logs)), scale, rng))  # as `SymmetricGaussian`
    moment_range = scale, np.maximum(reach**2, scale)
    moment = repair_moment(released, scale, moment_range)
    if mu == inf:
        hessian = model.mean_squared_distance_hessian(points, logs)
    else:
        hessian = mean_hessian_bound(model, moment, reach, radius)
    return moment, hessian, scale, moment_range


def _spread_paper(samples, points, mu, shares, rng):
    """Release the centred covariances and the mean Hessians of logarithms cut to norm r."""
    model, n, radius = samples.local.model, samples.n, samples.radius
    logs = _logs(model, points, samples.points, np.zeros(model.dim), radius)
    centred = logs - logs.mean(axis=1, keepdims=True)
    moment = symmetrize(np.swapaxes(centred, -1, -2) @ centred / (n - 1))
    hessian = model.mean_squared_distance_hessian(points, logs)
    scale = sensitivity.second_moment_paper(radius, n)
    noise = SymmetricGaussian.calibrate(scale, GDP(part(mu, shares["second_moment"])))
    moment = clip_eigenvalues(noise.release(moment, rng), 0.0, radius**2)
    scale = sensitivity.hessian_paper(model, radius, n)
    noise = SymmetricGaussian.calibrate(scale, GDP(part(mu, shares["hessian"])))
    hessian = noise.release(hessian, rng)
    if mu < inf:
        hessian = clip_eigenvalues(hessian, *hessian_range(model, radius))
    return moment, hessian, None, None


@dataclass(frozen=True, eq=False)
class VarianceFits:
    """Released variances and their intervals, shape (R,) each."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


def fit_variances(samples: Samples, mu: float, calibration: str, rng) -> VarianceFits:
    """Fit `DPFrechetVariance` to every data set."""
    model, origin, n, radius = samples.local.model, samples.local.origin, samples.n, samples.radius
    shares = variance_shares(calibration, None, True, False)
    mechanism, points = samples.release_mean(part(mu, shares["mean"]), calibration, rng)
    base = model.project_to_ball(points, origin, radius)
    distance = np.minimum(model.dist(origin, base), radius)
    ranges = [sensitivity.squared_distance_range(radius, d) for d in distance.tolist()]
    low, high = np.transpose(ranges)
    y = model.dist(_beside_records(model, base), samples.points) ** 2
    y = np.clip(y, low[:, None], high[:, None])
    if calibration == "paper":
        center, error = _variance_paper(y, high, radius, mu, shares, rng)
        value, freedom = center, inf
    else:
        budget = GDP(part(mu, shares["variance"]))
        scale = _scales(lambda d: sensitivity.variance(radius, d, n), distance, budget)
        if mu == inf:
            mean, spread, bias, bias_variance = y.mean(axis=1), y.var(axis=1), 0.0, 0.0
        else:
            mean, spread = _two_moments(y, low, high, scale, rng)
            bias, bias_variance = noise_moments(model, origin, radius, mechanism, base)
        value, center = mean - bias, (mean - bias) * n / (n - 1)
        sampling = spread / (n - 1)
        total = sampling + scale**2 + bias_variance
        error = np.sqrt(total) * n / (n - 1)
        freedom = (n - 1) * (total / sampling) ** 2
    ends = interval_ends(center, error, LEVEL, high, freedom)
    return VarianceFits(np.clip(value, 0.0, high), *ends)


def _two_moments(y, low, high, scale, rng):
    """Release mean and spread of the squared distances by one query on the moment curve."""
    middle, half = (low + high) / 2, (high - low) / 2
    curvature = sensitivity.MOMENT_CURVE_CONSTANT / half
    offset = y - middle[:, None]
    curve = np.stack([offset.mean(axis=1), curvature * (offset**2).mean(axis=1)], axis=1)
    released = _release(curve, scale, rng)
    mean = middle + released[:, 0]
    return mean, spread_from_moments(mean, released[:, 1] / curvature, scale, low, high)


def _variance_paper(y, high, radius, mu, shares, rng):
    n = y.shape[1]
    budget = GDP(part(mu, shares["variance"]))
    noise = Gaussian.calibrate(sensitivity.variance_paper(radius, n), budget)
    mean = noise.release(y.mean(axis=1, keepdims=True), rng)[:, 0]
    budget = GDP(part(mu, shares["spread"]))
    spread_noise = Gaussian.calibrate(sensitivity.spread_paper(radius, n), budget)
    spread = spread_noise.release(y.var(axis=1, keepdims=True), rng)[:, 0]
    return mean, np.sqrt(np.clip(spread, 0.0, high**2 / 4) / n + noise.sigma**2)


def _beside_records(model: Manifold, points: np.ndarray) -> np.ndarray:
    return np.expand_dims(points, axis=1)


def _logs(model, points, records, middle, radius):
    """Normal coordinates of the records at the released points, forced into a ball."""
    return middle + clip_norm(
        model.log_coords(_beside_records(model, points), records) - middle, radius
    )


def _scales(sensitivity_at, distance, guarantee):
    """Noise scale of each replication, whose sensitivity depends on its released mean."""
    return np.array(
        [Gaussian.calibrate(sensitivity_at(d), guarantee).sigma for d in distance.tolist()]
    )


def _release(value, scale, rng):
    """Release vectors with a noise scale each: that many times the noise of scale 1."""
    return value + scale[:, None] * Gaussian(1.0).release(np.zeros_like(value), rng)
