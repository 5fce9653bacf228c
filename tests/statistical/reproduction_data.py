"""Sections 6.1 and 6.2 of the paper on the data that can be had, over repeated releases.

One release is one draw of noise, so every figure is an average over releases of the same published
data. Seeds are fixed for the sake of the page: nothing here is to be imitated on private records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf, log10, pi

import numpy as np
from joblib import Parallel, delayed

from skdpfrechet import GDP, DPFrechetMean, sensitivity, two_sample_test
from skdpfrechet._numerics import householder
from skdpfrechet._solvers import frechet_mean
from skdpfrechet.datasets import (
    load_occupational_judgements,
    load_oct_descriptors,
    load_pneumonia_descriptors,
)
from skdpfrechet.manifolds import Sphere
from skdpfrechet.mechanisms import Gaussian

OCT_BUDGETS = (0.1, 1.0, 2.0, inf)
JUDGEMENT_BUDGETS = (1.0, 2.0)
CENTER_SHARE = 0.25
PAPER_RADIUS = pi / 8
WHOLE = 1.5  # a ball that moves next to no judgement
SPHERE = Sphere(2)

Bar = Callable[[Iterable, int, str], Iterable]


def _repeat(function, argument_lists, n_jobs: int, bar: Bar, label: str) -> list:
    """Call the function on every list of arguments, spread over processes."""
    calls = (delayed(function)(*arguments) for arguments in argument_lists)
    parts = Parallel(n_jobs=n_jobs, return_as="generator")(calls)
    return list(bar(parts, len(argument_lists), label))


# --- section 6.1: images -------------------------------------------------------------------------


def _oct_release(mu: float, recipe: str, seed: int) -> tuple[float, ...]:
    """Distortion, effective radius, extreme eigenvalues and log volume of one release."""
    data = load_oct_descriptors()
    public = {"manifold": data.manifold, "center": data.center, "radius": data.radius}
    exact = DPFrechetMean(**public, mu=inf, confidence_level=None).fit(data.data)
    fit = DPFrechetMean(**public, mu=mu, calibration=recipe, random_state=seed).fit(data.data)
    region = fit.confidence_region_
    distortion = float(fit.manifold_.dist(exact.mean_, fit.mean_))
    largest, smallest = region.eigenvalues[[0, -1]].tolist()
    return distortion, region.effective_radius, largest, smallest, log10(region.volume)


def oct_lines(releases: int, n_jobs: int, bar: Bar) -> list[str]:
    rows = [(mu, recipe) for recipe in ("paper", "sharp") for mu in OCT_BUDGETS]
    calls = [
        (mu, recipe, seed) for mu, recipe in rows for seed in range(1 if mu == inf else releases)
    ]
    results = dict(zip(calls, _repeat(_oct_release, calls, n_jobs, bar, "6.1, OCT"), strict=True))
    lines = [
        "| recipe | μ | distortion | effective radius | largest eigenvalue | smallest eigenvalue "
        "| ratio | log₁₀ volume |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for mu, recipe in rows:
        values = np.array([v for call, v in results.items() if call[:2] == (mu, recipe)])
        distortion, radius, largest, smallest, log_volume = values.T
        columns = (
            recipe,
            "no privacy" if mu == inf else f"{mu:g}",
            "0" if mu == inf else _average(distortion),
            _average(radius),
            _average(largest),
            _average(smallest),
            _average(largest / smallest),
            _average(log_volume, digits=2),
        )
        lines.append(f"| {' | '.join(columns)} |")
    return lines


def _classes_release(mu: float, seed: int) -> tuple[float, float]:
    """Distance between the released means of the two classes, and the p value of their test."""
    data = load_pneumonia_descriptors()
    public = {"manifold": data.manifold, "center": data.center, "radius": data.radius}
    fits = [
        DPFrechetMean(**public, mu=mu, random_state=2 * seed + label).fit(
            data.data[data.target == label]
        )
        for label in (0, 1)
    ]
    distance = float(fits[0].manifold_.dist(fits[0].mean_, fits[1].mean_))
    return distance, two_sample_test(*fits).pvalue


def class_lines(releases: int, n_jobs: int, bar: Bar) -> list[str]:
    calls = [(mu, seed) for mu in OCT_BUDGETS for seed in range(1 if mu == inf else releases)]
    results = _repeat(_classes_release, calls, n_jobs, bar, "6.1, X-rays")
    lines = ["| μ | distance of the class means | p < .05 | median p |", "|---|---|---|---|"]
    for mu in OCT_BUDGETS:
        values = np.array([v for (m, _), v in zip(calls, results, strict=True) if m == mu])
        distance, pvalue = values.T
        columns = (
            "no privacy" if mu == inf else f"{mu:g}",
            _average(distance),
            _average((pvalue < 0.05).astype(float), digits=2),
            f"{np.median(pvalue):.2g}",
        )
        lines.append(f"| {' | '.join(columns)} |")
    return lines


# --- section 6.2: judgements ---------------------------------------------------------------------


def _judgement_release(criterion: str, mu: float, seed: int) -> tuple[float, ...]:
    """Error and size, in degrees, of the private release and of the paper's variant."""
    X = load_occupational_judgements(criterion=criterion)
    rng = np.random.default_rng([seed, 1])
    noise = Gaussian.calibrate(sensitivity.extrinsic_mean(len(X.data)), GDP(mu * CENTER_SHARE**0.5))
    bought = _direction(noise.release(X.data.mean(axis=0), rng))
    rest = mu * (1 - CENTER_SHARE) ** 0.5
    private = DPFrechetMean("sphere", center=bought, radius=X.radius, mu=rest, random_state=seed)
    everything = DPFrechetMean(
        "sphere", center=_direction(X.data.mean(axis=0)), radius=WHOLE, mu=inf
    )
    truth = everything.fit(X.data).mean_
    void = DPFrechetMean(
        "sphere",
        center=truth,  # the fault: a centre read from the records
        radius=PAPER_RADIUS,
        mu=mu,
        calibration="paper",
        random_state=seed,
    )
    figures = []
    for fit in (private.fit(X.data), void.fit(X.data)):
        size = np.sqrt(fit.confidence_region_.volume / pi)
        figures += [fit.manifold_.dist(fit.mean_, truth), size]
    return tuple(np.degrees(figures).tolist())


def _direction(v: np.ndarray) -> np.ndarray:
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def judgement_lines(releases: int, n_jobs: int, bar: Bar) -> list[str]:
    criteria = load_occupational_judgements().criteria
    calls = [
        (name, mu, seed)
        for mu in JUDGEMENT_BUDGETS
        for name in criteria
        for seed in range(releases)
    ]
    results = _repeat(_judgement_release, calls, n_jobs, bar, "6.2")
    lines = [
        "| criterion | μ | private: error | private: size | data-centred (NOT private): error "
        "| data-centred (NOT private): size |",
        "|---|---|---|---|---|---|",
    ]
    for name in criteria:
        for mu in JUDGEMENT_BUDGETS:
            values = [v for c, v in zip(calls, results, strict=True) if c[:2] == (name, mu)]
            columns = (name, f"{mu:g}", *(_average(column) for column in np.transpose(values)))
            lines.append(f"| {' | '.join(columns)} |")
    return lines


def data_centred_sensitivity(X: np.ndarray, radius: float, directions: int = 150) -> float:
    """Largest n·ρ found between the means of X and of a neighbour, each in a ball of its own.

    A lower bound of the sensitivity: each record in turn is replaced by each point of a Fibonacci
    lattice.
    """
    n = len(X)
    index = np.arange(directions) + 0.5
    height, turn = 1 - 2 * index / directions, pi * (1 + 5**0.5) * index
    ring = np.sqrt(1 - height**2)
    lattice = np.stack([ring * np.cos(turn), ring * np.sin(turn), height], axis=1)
    neighbours = np.broadcast_to(X, (n, directions, *X.shape)).copy()
    neighbours[np.arange(n), :, np.arange(n)] = lattice
    every = np.concatenate([X[None], neighbours.reshape(-1, *X.shape)])
    centers = _ball_means(every, _direction(every.mean(axis=1)), WHOLE)
    means = _ball_means(every, centers, radius)
    return n * float(SPHERE.dist(means[0], means[1:]).max())


def _ball_means(samples: np.ndarray, centers: np.ndarray, radius: float) -> np.ndarray:
    """Means of samples, each moved into the ball around its own centre.

    The solver starts all problems at one point, so each is reflected to have its centre there.
    """
    pole = np.eye(samples.shape[-1])[0]
    h, beta = householder(centers)
    sign = np.where(centers[:, :1] < 0, 1.0, -1.0)  # the reflection takes the pole to ∓centre

    def reflect(points, h, beta):
        return points - (beta * (points * h).sum(axis=-1))[..., None] * h

    local = sign[:, None] * reflect(samples, h[:, None], beta[:, None])
    local = SPHERE.project_to_ball(local, pole, radius)
    means = frechet_mean(SPHERE, local, pole, radius=radius, tolerance=1e-10)
    return reflect(sign * means, h, beta)


def sensitivity_lines() -> list[str]:
    claimed = 48 * sensitivity.frechet_mean_paper(SPHERE, PAPER_RADIUS, 48)
    lines = ["| criterion | claimed n·sensitivity | found |", "|---|---|---|"]
    for name in load_occupational_judgements().criteria:
        X = load_occupational_judgements(criterion=name).data
        found = data_centred_sensitivity(X, PAPER_RADIUS)
        lines.append(f"| {name} | {claimed:.2f} | {found:.2f} |")
    return lines


def _average(values: np.ndarray, digits: int | None = None) -> str:
    """Average and its Monte Carlo standard error; a single value stands alone."""
    values = np.asarray(values)
    if len(values) == 1:
        return f"{values[0]:.3g}" if digits is None else f"{values[0]:.{digits}f}"
    mean, error = values.mean(), values.std(ddof=1) / np.sqrt(len(values))
    if digits is None:
        digits = max(0, int(np.ceil(-np.log10(error)))) if error > 0 else 3
    return f"{mean:.{digits}f} ± {error:.{digits}f}"
