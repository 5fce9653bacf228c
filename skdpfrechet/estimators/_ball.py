"""The ball of a fit: public, or itself a release."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from skdpfrechet import sensitivity
from skdpfrechet._numerics import Array
from skdpfrechet._solvers import Sample, enter_ball, load
from skdpfrechet.estimators._budget import part
from skdpfrechet.estimators._groups import group_means
from skdpfrechet.estimators._private_ball import (
    check_outer_radius,
    check_quantile,
    check_share,
    find_ball,
    plan_ball,
)
from skdpfrechet.estimators._public_ball import (
    check_center,
    check_localization,
    check_radius,
    radius_limit,
)
from skdpfrechet.manifolds import Localization, Manifold, Sphere
from skdpfrechet.privacy import Release

PRIVATE = "private"
NOTHING_BOUGHT = (
    "n, mu, the dimension and outer_radius say that the records are too few to be located: nothing "
    "was spent on the ball, which is the outer one as far as the curvature allows"
)


def is_private(value: object) -> bool:
    """Return whether a centre or a radius is to be found by the fit."""
    return isinstance(value, str) and value == PRIVATE


@dataclass(frozen=True, eq=False)
class PublicBall:
    """A ball chosen without the records."""

    center: Array
    radius: float


@dataclass(frozen=True, eq=False)
class WantedBall:
    """A ball to be found inside a public one; None stands for what is to be found."""

    outer_center: Array
    outer_radius: float
    center: Array | None
    radius: float | None
    share: float | None
    quantile: float | None


@dataclass(frozen=True, eq=False)
class Settled:
    """Records in a ball that is public by now, and what it cost.

    `sample` lives in the model of `local`; `share` is the part of μ² that `releases` spent.
    """

    center: Array
    radius: float
    local: Localization
    sample: Sample
    releases: tuple[Release, ...] = ()
    share: float = 0.0
    notes: tuple[str, ...] = ()


def read_ball(estimator, manifold: Manifold, n: int) -> PublicBall | WantedBall:
    """Validate the parameters of an estimator that say where its records lie."""
    center, radius, paper = estimator.center, estimator.radius, estimator.calibration
    given = {
        "outer_radius": estimator.outer_radius,
        "outer_center": estimator.outer_center,
    }
    if not is_private(center) and not is_private(radius):
        for name, value in given.items():
            if value is not None:
                raise ValueError(
                    f"{name} must be None unless center or radius is 'private', got {value!r}."
                )
        return PublicBall(check_center(manifold, center), check_radius(manifold, radius, paper, n))
    known_radius = None if is_private(radius) else check_radius(manifold, radius, paper, n)
    outer_radius = check_outer_radius(manifold, estimator.outer_radius, known_radius)
    if manifold.diameter == inf:
        check_radius(manifold, outer_radius, paper, n, "outer_radius")
    known_center = None if is_private(center) else check_center(manifold, center)
    if known_center is not None and estimator.outer_center is not None:
        raise ValueError(
            "outer_center must be None unless center is 'private': the outer ball lies around "
            "center."
        )
    if known_center is not None:
        outer_center = known_center
    elif isinstance(manifold, Sphere) and estimator.outer_center is None:
        outer_center = np.eye(manifold.dim + 1)[-1]  # of no consequence: the sphere has no outside
    else:
        outer_center = check_center(manifold, estimator.outer_center)
    return WantedBall(
        outer_center,
        outer_radius,
        known_center,
        known_radius,
        check_share(estimator.ball_share),
        check_quantile(estimator.ball_quantile),
    )


def settle(
    ball: PublicBall | WantedBall,
    manifold: Manifold,
    X: Array,
    codes: Array | None,
    n: int,
    mu: float,
    calibration: str,
    rng: np.random.Generator,
) -> Settled:
    """Find the ball if need be, and move the records, or the means of their groups, into it."""
    if isinstance(ball, PublicBall):
        return _enter(manifold, ball.center, ball.radius, X, codes, n)
    wide = _enter(manifold, ball.outer_center, ball.outer_radius, X, codes, n)
    plan = plan_ball(
        manifold,
        n,
        mu,
        ball.outer_radius,
        center=ball.center is None,
        radius=ball.radius,
        share=ball.share,
    )
    found = find_ball(
        wide.local.model,
        wide.sample.points,
        wide.local.origin,
        plan,
        mu=mu,
        outer_radius=ball.outer_radius,
        radius=ball.radius,
        quantile=ball.quantile,
        limit=radius_limit(manifold, calibration),
        rng=rng,
    )
    notes = () if plan.steps else (NOTHING_BOUGHT,)
    if not plan.steps and found.radius == ball.outer_radius:
        return replace(wide, notes=notes)
    center = wide.local.from_model(found.center) if ball.center is None else ball.center
    points = X if codes is None else wide.local.from_model(wide.sample.points)
    try:
        _localize(manifold, center, found.radius)
    except ValueError:
        # float64 cannot work around the released centre, which all may know. Never on a sphere.
        if manifold.diameter < inf:
            raise
        inner = wide
    else:  # outside the try: which ball it is must not depend on a record
        inner = _enter(manifold, center, found.radius, points, None, n)
    return replace(inner, releases=found.releases, share=plan.share, notes=notes)


def _enter(
    manifold: Manifold, center: Array, radius: float, X: Array, codes: Array | None, n: int
) -> Settled:
    """Move records into a public ball; those of a group become one point there."""
    local = _localize(manifold, center, radius)
    with np.errstate(all="ignore"):  # no overflow warning may tell that some record is far away
        cap = sensitivity.float_log_cap(local.model, radius, n)
        sample = enter_ball(local, X, radius, cap)
    if codes is not None:
        sample = load(local.model, group_means(local, sample.points, codes, radius))
    return Settled(center, radius, local, sample)


def _localize(manifold: Manifold, center: Array, radius: float) -> Localization:
    """Return the model around a public centre; raise if float64 cannot work there."""
    with np.errstate(all="ignore"):
        local = manifold.localize(center)
        check_localization(local, center, radius)
    return local


def left(mu: float, settled: Settled) -> float:
    """Return the budget that finding the ball has left."""
    return mu if settled.share == 0 or mu == inf else part(mu, 1 - settled.share)
