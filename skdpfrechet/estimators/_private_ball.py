"""The ball itself as a release: a private centre and a private radius.

Two queries are asked in turn, about records of a wide public ball: how far are they from a point
(a noisy histogram of distances, from which radii follow), and where is their middle (a noisy mean
of clipped logarithms, whose noise is proportional to the radius just learnt). Neither needs a
solver. How often, and at what share of μ², is decided by `plan_ball` from public numbers alone;
everything else here is post-processing of noisy answers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, hypot, inf, log, sqrt
from typing import Literal

import numpy as np

from skdpfrechet import sensitivity
from skdpfrechet._numerics import Array, clip_norm
from skdpfrechet._validation import check_open_unit, check_positive
from skdpfrechet.estimators._budget import part
from skdpfrechet.estimators._noise import release_mean_vector
from skdpfrechet.manifolds import Manifold, Sphere
from skdpfrechet.mechanisms import Gaussian, RandomSource
from skdpfrechet.privacy import GDP, Release

# The plan. Each number was tuned to within the flat part of its optimum (docs/private_ball.md).
LARGEST_SHARE = 0.17  # of μ²: 1/√(1 - .17) = 1.098, what a useless purchase costs in noise
_STAGE_SHARE, _RADIUS_SHARE, _LONE_SHARE = 0.01, 0.03, 0.15  # of one histogram, by its use
_FREE_STAGE = 0.008  # share of one centre below which a third one costs next to nothing
_CONTRACTIONS = {2: 0.3, 1: 0.45}  # largest ratio of a centre's error to its clipping radius
_SPHERE_SHARES = (0.05, 0.25)  # of the centre on a sphere, where no outer ball is the alternative

# The histogram: σ/n is about a third of the content of a bin where the records are.
_FINEST, _COARSEST, _DEPTH = log(1.25), log(2.0), log(1000.0)  # ratios of edges; outermost/inner
_EVIDENCE = 3.0  # standard deviations by which a bin must miss the fit to be kept as it is

# The choice of a radius.
_COHERENCE = 0.4  # |Σ excess vectors| / Σ |excess|, a cautious value for data around their middle
_CAUTION = 0.02  # share of the variance of the noise in the excess that counts as excess
_SUBDIVISION = 4  # radii tried per bin
_WIDEST = 0.9  # of the curvature limit, where the sensitivity of the mean is not yet in its pole


@dataclass(frozen=True)
class Step:
    """One query of a plan and its share of the μ² of the fit."""

    query: Literal["distances", "tangent mean", "extrinsic mean"]
    share: float


@dataclass(frozen=True)
class BallPlan:
    """The queries that find a ball, in order. Empty: the public outer ball is the better one."""

    steps: tuple[Step, ...]

    @property
    def share(self) -> float:
        """Share of μ² that the ball costs; the rest is for what is released in it."""
        return sum(step.share for step in self.steps)


@dataclass(frozen=True, eq=False)
class PrivateBall:
    """A ball that was released, or the outer ball if the plan was empty.

    Parameters
    ----------
    center : ndarray, shape point_shape
        In the model space of the records.
    radius : float
    releases : tuple of Release
        What was spent, one row per query.
    """

    center: Array
    radius: float
    releases: tuple[Release, ...]


# --- what the user passes ------------------------------------------------------------------------


def check_outer_radius(manifold: Manifold, outer_radius: object, radius: float | None) -> float:
    """Return the radius of the public ball in which a private one is looked for.

    Parameters
    ----------
    manifold : Manifold
    outer_radius : float or None
        None is the whole sphere; required elsewhere.
    radius : float or None
        The public radius, None if it is to be found.
    """
    if outer_radius is None:
        if manifold.diameter < inf:
            return manifold.diameter
        raise ValueError(
            f"outer_radius must be given on {manifold!r} when the center or the radius is "
            "'private', got None; it is public and may be wide."
        )
    value = check_positive("outer_radius", outer_radius)
    if radius is not None and value < radius:
        raise ValueError(
            f"outer_radius must not be smaller than radius={radius!r}, got {outer_radius!r}."
        )
    return min(value, manifold.diameter)


def check_quantile(quantile: object) -> float | None:
    """Return the share of records that the ball shall hold, None for ``"auto"``."""
    if isinstance(quantile, str):
        if quantile != "auto":
            raise ValueError(
                f"ball_quantile must be 'auto' or a number between 0 and 1, got {quantile!r}."
            )
        return None
    return check_open_unit("ball_quantile", quantile)


def check_share(share: object) -> float | None:
    """Return the share of μ² that the ball may cost, None for ``"auto"``."""
    if isinstance(share, str):
        if share != "auto":
            raise ValueError(
                f"ball_share must be 'auto' or a number between 0 and 1, got {share!r}."
            )
        return None
    return check_open_unit("ball_share", share)


# --- the plan: public numbers only ---------------------------------------------------------------


def plan_ball(
    manifold: Manifold,
    n: int,
    mu: float,
    outer_radius: float,
    *,
    center: bool,
    radius: float | None,
    share: float | None = None,
) -> BallPlan:
    """Return which queries find the ball, from public numbers only.

    Parameters
    ----------
    manifold : Manifold
    n : int
    mu : float
        Budget of the whole fit.
    outer_radius : float
    center : bool
        Whether the centre is to be found.
    radius : float or None
        The public radius, None if it is to be found.
    share : float or None
        Share of μ² to be spent. None: what pays, at most `LARGEST_SHARE`, nothing where the records
        are too few to be located (the outer ball then is the better choice).

    Raises
    ------
    ValueError
        If nothing is to be found, or a centre where neither query for it applies.

    Notes
    -----
    Let R be the outer radius, b = √d/(nμ). The noise in a tangent mean clipped to norm r has length
    2rb/√v at the share v: a recentring contracts the uncertainty by about 2b/√v, and pays only
    where that is small. Two recentrings do where they fit, three where they are nearly free. The
    loss from v plus the loss from a wider ball around a wrong centre is least at v ≈ 2b.
    """
    if not center and radius is not None:
        raise ValueError("center or radius must be private, or there is nothing to find.")
    hadamard = manifold.sectional_curvature_bounds[1] <= 0 and manifold.injectivity_radius == inf
    if center and not hadamard and not isinstance(manifold, Sphere):
        raise ValueError(f"center must be public on {manifold!r}, got 'private'.")
    precision = n * mu
    if not center:
        steps = _lone_histogram(precision, share is not None)
    elif isinstance(manifold, Sphere):
        steps = _sphere_steps(manifold.dim, precision, radius is None)
    else:
        steps = _recentrings(manifold.dim, precision, outer_radius, radius, share)
        if not steps and radius is None:
            steps = _lone_histogram(precision, forced=False)
    if share is not None:
        total = sum(step.share for step in steps)
        steps = tuple(Step(step.query, step.share * share / total) for step in steps)
    return BallPlan(steps)


def _lone_histogram(precision: float, forced: bool) -> tuple[Step, ...]:
    share = min(max(_RADIUS_SHARE, 600 / precision**2), _LONE_SHARE)
    if forced or _log_ratio(precision * sqrt(share)) <= _COARSEST:
        return (Step("distances", share),)
    return ()


def _sphere_steps(dim: int, precision: float, find_radius: bool) -> tuple[Step, ...]:
    low, high = _SPHERE_SHARES
    center = Step("extrinsic mean", min(max(low, 2 * sqrt(dim) / precision), high))
    return (center, *_lone_histogram(precision, forced=False)) if find_radius else (center,)


def _recentrings(
    dim: int, precision: float, outer_radius: float, radius: float | None, share: float | None
) -> tuple[Step, ...]:
    """Return the steps of the largest number of recentrings that pay."""
    budget = LARGEST_SHARE if share is None else share
    unit = sqrt(dim) / precision
    look = min(max(_STAGE_SHARE, 200 / precision**2), 0.1)
    last = max(_RADIUS_SHARE, look)
    for count in (3, 2, 1):
        looks = count * look + last if radius is None else look
        wanted = max(2 * unit, _FREE_STAGE / 8)
        move = min(wanted, (budget - looks) / count)
        if move <= 0 or (count == 3 and (wanted > _FREE_STAGE or move < wanted)):
            continue
        contraction = 2 * unit / sqrt(move)
        if count < 3 and contraction > _CONTRACTIONS[count]:
            continue
        steps = _interleave(count, look, move, last if radius is None else None)
        if radius is None or _pays(contraction, count, outer_radius, radius, steps):
            return steps
    if share is None:
        return ()
    return _interleave(1, 1.0, 4.0, 1.0 if radius is None else None)


def _interleave(count: int, look: float, move: float, last: float | None) -> tuple[Step, ...]:
    first, recentring = Step("distances", look), Step("tangent mean", move)
    if last is None:  # the given radius says how far records are from a good centre
        return (first, *(recentring,) * count)
    return (*(first, recentring) * count, Step("distances", last))


def _pays(
    contraction: float, count: int, outer_radius: float, radius: float, steps: tuple[Step, ...]
) -> bool:
    """Whether a ball of the given radius will be near the records, and less noisy than the outer.

    The centre's error is to be at most half the radius.
    """
    reach = outer_radius
    for _ in range(count):
        error = contraction * reach
        reach = min(outer_radius, radius + 2 * error)
    share = sum(step.share for step in steps)
    return error <= radius / 2 and radius < outer_radius * sqrt(1 - share)


# --- the queries ---------------------------------------------------------------------------------


def find_ball(
    model: Manifold,
    points: Array,
    origin: Array,
    plan: BallPlan,
    *,
    mu: float,
    outer_radius: float,
    radius: float | None,
    quantile: float | None,
    limit: float,
    secure: bool = False,
    rng: RandomSource,
) -> PrivateBall:
    """Release a ball that holds most of the records.

    Parameters
    ----------
    model : Manifold
    points : ndarray, shape (n, *point_shape)
        Records, moved into the outer ball. Only their clipped logarithms and the bins of their
        distances are used, so that no sensitivity relies on the move. On a sphere the zero vector
        is a record that is nowhere: it adds nothing to an extrinsic mean, and is there afterwards.
    origin : ndarray, shape point_shape
        Outer centre, public. Any point where the plan starts with an extrinsic mean.
    plan : BallPlan
    mu : float
        Budget of the whole fit, of which the plan states shares.
    outer_radius : float
    radius : float or None
        The public radius, None if it is to be found.
    quantile : float or None
        Share of the records that a private ball shall hold. None weighs the bias from clipping
        against the noise, see `_Choice.best`.
    limit : float
        Radius below which the sensitivity of the mean holds.
    secure : bool
        Whether noise is float-safe.
    rng : Generator

    Returns
    -------
    PrivateBall
        Its radius is at most `outer_radius` and below `limit`.

    Notes
    -----
    Neighbouring relation: replace-one, n public. Every step is Gaussian at its own μ; they compose
    adaptively to √share · μ (Dong, Roth, Su 2022).
    """
    widest = min(outer_radius, _WIDEST * limit)
    search = _Search(model, points, mu, plan, outer_radius, widest, secure, rng)
    center, reach = origin, outer_radius
    error: float | None = None
    balls: list[_Ball] = []
    rows: list[Release] = []
    for k, step in enumerate(plan.steps):
        if step.query == "extrinsic mean":
            center, row = search.extrinsic_mean(step.share)
            search = search.with_zeros_at(center)
            error = row.noise_scale * sqrt(model.dim)
        elif step.query == "tangent mean":
            if radius is not None and error is not None:
                reach = min(outer_radius, radius + 2 * error)
            center, row = search.tangent_mean(step.share, center, origin, reach, k)
            error = row.noise_scale * sqrt(model.dim)
        else:
            choice, row = search.distances(step.share, center, origin, error, k)
            following = [later.share for later in plan.steps[k + 1 :] if later.query != step.query]
            if following:
                reach, _ = choice.best(part(mu, following[0]), outer_radius)
            value, cost = choice.best(search.mean_mu, search.widest)
            balls.append(_Ball(center, value, cost, choice))
        rows.append(row)
    if radius is not None and plan.steps:
        return PrivateBall(center, radius, tuple(rows))
    if not balls:
        return PrivateBall(center, search.widest, tuple(rows))
    if quantile is not None:
        last = balls[-1]
        value = min(last.choice.quantile(quantile), search.widest)
        return PrivateBall(last.center, value, tuple(rows))
    best = min(balls, key=lambda ball: (ball.cost, ball.radius))
    return PrivateBall(best.center, best.radius, tuple(rows))


@dataclass(frozen=True, eq=False)
class _Ball:
    """A candidate: the best radius around one centre, and the histogram that says so."""

    center: Array
    radius: float
    cost: float
    choice: _Choice


@dataclass(frozen=True, eq=False)
class _Search:
    """The records, and all that is public and stays fixed while they are queried."""

    model: Manifold
    points: Array
    mu: float
    plan: BallPlan
    outer_radius: float
    widest: float
    secure: bool
    rng: RandomSource

    @property
    def n(self) -> int:
        return len(self.points)

    @property
    def mean_mu(self) -> float:
        """Budget of what will be released in the ball."""
        return part(self.mu, 1 - self.plan.share)

    def distances(
        self, share: float, center: Array, origin: Array, error: float | None, order: int
    ) -> tuple[_Choice, Release]:
        """Release the histogram of distances to a public point.

        Every record is in exactly one bin, the last one if its distance is beyond all edges or not
        a number, whatever rounding did: that is all the sensitivity needs.
        """
        mu = part(self.mu, share)
        edges = grid(self.outer_radius, self.n * mu)
        with np.errstate(all="ignore"):
            distances = self.model.dist(center, self.points)
        bins = np.searchsorted(edges, np.where(np.isnan(distances), inf, distances))
        counts = np.bincount(np.minimum(bins, len(edges) - 1), minlength=len(edges)).astype(float)
        scale = sensitivity.distance_histogram()
        if self.secure:
            noise = Gaussian.calibrate_secure(scale, GDP(mu), len(counts))
            scale = noise.grid.sensitivity(scale) if noise.grid is not None else scale
        else:
            noise = Gaussian.calibrate(scale, GDP(mu))
        counts = denoise(noise.release(counts, self.rng), noise.sigma, self.n)
        statistic = f"ball, step {order + 1}: distances"
        row = Release(statistic, mu, scale, noise.sigma, "gaussian", self.secure)
        # Records of the outer ball may be farther than its radius from a centre that was moved.
        shift = 0.0 if self.model.diameter < inf else float(self.model.dist(origin, center))
        farthest = self.outer_radius + shift
        return _Choice(self.model, self.n, counts, edges, farthest, noise.sigma, error), row

    def tangent_mean(
        self, share: float, center: Array, origin: Array, reach: float, order: int
    ) -> tuple[Array, Release]:
        """Release the mean of the logarithms at a public point, clipped to norm `reach`."""
        mu = part(self.mu, share)
        with np.errstate(all="ignore"):
            logs = clip_norm(self.model.log_coords(center, self.points), reach)
        scale = sensitivity.computed_tangent_mean(reach, self.n)
        noisy, scale, sigma = release_mean_vector(logs, reach, scale, mu, self.secure, self.rng)
        # What follows is post-processing: the mean is known to be that short, and to be in the
        # outer ball, within which float64 can follow.
        moved = self.model.exp_coords(center, clip_norm(noisy, reach))
        cap = sensitivity.float_log_cap(self.model, self.outer_radius, self.n)
        inside = self.model.project_to_ball(moved, origin, self.outer_radius, cap)
        row = Release(f"ball, step {order + 1}: centre", mu, scale, sigma, "gaussian", self.secure)
        return inside, row

    def with_zeros_at(self, center: Array) -> _Search:
        """Return the search with the released centre in place of zero vectors."""
        zero = ~self.points.any(axis=-1, keepdims=True)
        return replace(self, points=np.where(zero, center, self.points)) if zero.any() else self

    def extrinsic_mean(self, share: float) -> tuple[Array, Release]:
        """Release the direction of the mean of vectors of length one, or zero."""
        mu = part(self.mu, share)
        points, scale = clip_norm(self.points, 1.0), sensitivity.computed_extrinsic_mean(self.n)
        noisy, scale, sigma = release_mean_vector(points, 1.0, scale, mu, self.secure, self.rng)
        length = float(np.linalg.norm(noisy))
        center = noisy / length if length > 0 else np.eye(len(noisy))[0]
        return center, Release("ball, step 1: centre", mu, scale, sigma, "gaussian", self.secure)


# --- from a noisy histogram to a radius ----------------------------------------------------------


def _log_ratio(precision: float) -> float:
    """Return the logarithm of the ratio of edges at which bins stand out from the noise.

    Distances of records spread over a factor of about 4; a bin of log-width w then holds n w/1.4 of
    them, which should be three times the noise √2/μ.
    """
    return 6.0 / precision


def grid(outer_radius: float, precision: float) -> Array:
    """Return the upper edges of the bins, geometric, from R/1000 up to R.

    `precision` is n times the μ of the histogram: the noisier, the coarser the bins.
    """
    step = min(max(_log_ratio(precision), _FINEST), _COARSEST)
    return np.asarray(outer_radius * np.exp(step * np.arange(-ceil(_DEPTH / step), 1.0)))


def denoise(noisy: Array, scale: float, n: int) -> Array:
    """Return counts that are not negative, add up to n and mostly rise once and fall once.

    Noise of scale √2/μ in every bin would put records where none are, and a few of them far out
    change a radius most. Least squares fit of a unimodal sequence first; bins that miss it by more
    than `_EVIDENCE` standard deviations, such as a cluster of outliers, stay as they are. Then the
    nearest point of the simplex (the total n is public).
    """
    fit = unimodal(noisy)
    fit = np.where(np.abs(noisy - fit) > _EVIDENCE * scale, noisy, fit)
    descending = np.sort(fit)[::-1]
    excess = (np.cumsum(descending) - n) / np.arange(1, len(fit) + 1)
    return np.asarray(np.maximum(fit - excess[descending > excess][-1], 0.0))


def unimodal(x: Array) -> Array:
    """Return the least squares fit to `x` that rises up to some index and falls from there."""
    rising, rising_loss = _rising_prefixes(x)
    falling, falling_loss = _rising_prefixes(x[::-1])
    best = int(np.argmin(rising_loss + falling_loss[::-1]))
    return np.concatenate([rising[best], falling[len(x) - best][::-1]])


def _rising_prefixes(x: Array) -> tuple[list[Array], Array]:
    """Return the non-decreasing fit of each prefix of `x`, and its squared loss.

    Pooling adjacent violators: one pass serves all prefixes, the empty one first.
    """
    fits, losses = [np.zeros(0)], [0.0]
    means: list[float] = []
    sizes: list[int] = []
    for value in x:
        mean, size = float(value), 1
        while means and means[-1] >= mean:
            total = sizes[-1] + size
            mean = (means.pop() * sizes[-1] + mean * size) / total
            sizes.pop()
            size = total
        means.append(mean)
        sizes.append(size)
        fits.append(np.repeat(means, sizes))
        losses.append(float(((x[: len(fits[-1])] - fits[-1]) ** 2).sum()))
    return fits, np.array(losses)


@dataclass(frozen=True, eq=False)
class _Choice:
    """Radii for records whose distances to a centre have the histogram `counts`.

    The last bin reaches up to `farthest`, beyond the last edge.
    """

    model: Manifold
    n: int
    counts: Array
    edges: Array
    farthest: float
    noise: float
    error: float | None

    def quantile(self, share: float) -> float:
        """Return the first edge below which `share` of the records are, the last if none is."""
        crossed = np.cumsum(self.counts) >= share * self.n * (1 - 1e-12)
        return float(self.edges[np.argmax(crossed)] if crossed.any() else self.edges[-1])

    def best(self, mu: float, widest: float) -> tuple[float, float]:
        """Return the radius up to `widest` with the least mean squared error, and that error.

        Notes
        -----
        Clipping to radius r moves the mean of the logarithms by ``|(1/n) Σ e_i u_i|``, e_i the
        excess of a distance over r and u_i its direction: at most T = (1/n) Σ e_i, and about
        ``√(α² T² + (1/n²) Σ e_i²)`` if the directions have coherence α. Around the outer centre
        α = 1, they may all point one way; around a private one α² is `_COHERENCE` squared plus the
        square of its error over the distances. The noise adds d Δ(r)²/μ².
        """
        lower = np.concatenate([[0.0], self.edges[:-1]])
        upper = np.concatenate([self.edges[:-1], [self.farthest]])
        width = upper - lower
        ratio = self.edges[-1] / self.edges[-2]
        tried = self.edges[:, None] * ratio ** (-np.arange(_SUBDIVISION) / _SUBDIVISION)
        radii = np.unique(np.minimum(tried.ravel(), widest))
        # Records lie evenly in their bins.
        over = np.maximum(upper - radii[:, None], 0.0)
        under = np.maximum(lower - radii[:, None], 0.0)
        excess = (over**2 - under**2) / (2 * width)
        squares = (over**3 - under**3) / (3 * width)
        total = excess @ self.counts / self.n
        scatter = squares @ self.counts / self.n**2
        doubt = _CAUTION * self.noise**2 * (excess**2).sum(axis=1) / self.n**2
        scale = np.array([sensitivity.frechet_mean(self.model, float(r), self.n) for r in radii])
        # On a sphere a residual moves the mean by up to tan(r)/r times its length.
        stretch = np.maximum(scale * self.n / (2 * radii), 1.0)
        bias = self._coherence() ** 2 * total**2 + scatter + doubt
        cost = self.model.dim * (scale / mu) ** 2 + stretch**2 * bias
        k = int(np.argmin(cost))
        return float(radii[k]), float(cost[k])

    def _coherence(self) -> float:
        if self.error is None:
            return 1.0
        middle = self.edges * (1 + self.edges[-2] / self.edges[-1]) / 2
        spread = sqrt(float(self.counts @ middle**2) / self.n)
        return min(1.0, hypot(_COHERENCE, self.error / spread))
