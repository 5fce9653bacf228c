"""The ball of a fit: public, or itself a release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from skdpfrechet import sensitivity
from skdpfrechet._numerics import Array
from skdpfrechet._solvers import Sample, enter_ball, load
from skdpfrechet.estimators._budget import part
from skdpfrechet.estimators._groups import group_means
from skdpfrechet.estimators._private_ball import (
    BallPlan,
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
from skdpfrechet.estimators._records import Records
from skdpfrechet.manifolds import Localization, Manifold, Sphere
from skdpfrechet.mechanisms import RandomSource
from skdpfrechet.privacy import Release

PRIVATE = "private"
NOTHING_BOUGHT = (
    "n, mu, the dimension and outer_radius say that the records are too few to be located: nothing "
    "was spent on the ball, which is the outer one as far as the curvature allows"
)
NOT_USED = "float64 cannot work around the centre that was found: the outer ball was used instead"


def is_private(value: object) -> bool:
    """Return whether a centre or a radius is to be found by the fit."""
    return isinstance(value, str) and value == PRIVATE


@dataclass(frozen=True, eq=False)
class PublicBall:
    """A ball chosen without the records, and the space as seen from its centre."""

    center: Array
    radius: float
    local: Localization

    @property
    def outermost(self) -> PublicBall:
        return self

    @property
    def share(self) -> float:
        return 0.0


@dataclass(frozen=True, eq=False)
class WantedBall:
    """A ball to be found inside a public one; None stands for what is to be found."""

    outermost: PublicBall
    center: Array | None
    radius: float | None
    plan: BallPlan
    quantile: float | None

    @property
    def share(self) -> float:
        """Share of μ² that finding it costs."""
        return self.plan.share


@dataclass(frozen=True, eq=False)
class Settled:
    """Records in a ball that is public by now, and what it cost.

    `sample` lives in the model of `local`; `releases` spent what the plan of the ball says.
    """

    center: Array
    radius: float
    local: Localization
    sample: Sample
    releases: tuple[Release, ...] = ()
    notes: tuple[str, ...] = ()


def read_ball(estimator, manifold: Manifold, n: int, mu: float) -> PublicBall | WantedBall:
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
        return _localize(
            manifold,
            check_center(manifold, center),
            check_radius(manifold, radius, paper, n),
            n,
            mu,
        )
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
    plan = plan_ball(
        manifold,
        n,
        mu,
        outer_radius,
        center=known_center is None,
        radius=known_radius,
        share=check_share(estimator.ball_share),
    )
    for step in plan.steps:
        part(mu, step.share)
    return WantedBall(
        _localize(manifold, outer_center, outer_radius, n, mu),
        known_center,
        known_radius,
        plan,
        check_quantile(estimator.ball_quantile),
    )


def _localize(manifold: Manifold, center: Array, radius: float, n: int, mu: float) -> PublicBall:
    """Return the ball with the model around its centre; raise if float64 cannot work there."""
    with np.errstate(all="ignore"):
        local = manifold.localize(center)
        check_localization(manifold, local, center, radius, n, mu < inf)
    return PublicBall(center, radius, local)


def settle(
    ball: PublicBall | WantedBall,
    manifold: Manifold,
    records: Records,
    codes: Array | None,
    n: int,
    mu: float,
    calibration: str,
    secure: bool,
    rng: RandomSource,
) -> Settled:
    """Find the ball if need be, and move the records, or the means of their groups, into it.

    Replaced records are at the centre of the outermost ball. While a sphere has no centre, they are
    nowhere: such a record, or a group of them, is the zero vector until the centre is found, and
    the centre from then on; beside true records of its group it has no weight.
    """
    if isinstance(ball, PublicBall):
        return enter(ball, records.points, codes, n)
    nowhere = None
    if records.replaced is not None and ball.center is None and isinstance(manifold, Sphere):
        records, codes, nowhere = _without_center(records.points, records.replaced, codes, n)
    wide = enter(ball.outermost, records.points, codes, n)
    found = find_ball(
        wide.local.model,
        _put(wide.sample.points, nowhere, np.zeros(manifold.point_shape)),
        wide.local.origin,
        ball.plan,
        mu=mu,
        outer_radius=ball.outermost.radius,
        radius=ball.radius,
        quantile=ball.quantile,
        limit=radius_limit(manifold, calibration),
        secure=secure,
        rng=rng,
    )
    notes = () if ball.plan.steps else (NOTHING_BOUGHT,)
    if not ball.plan.steps and found.radius == ball.outermost.radius:
        return replace(wide, notes=notes)
    center = wide.local.from_model(found.center) if ball.center is None else ball.center
    points = records.points if codes is None else wide.local.from_model(wide.sample.points)
    try:
        tight = _localize(manifold, center, found.radius, n, mu)
    except ValueError:
        # float64 cannot work around the released centre, which all may know. Never on a sphere.
        if manifold.diameter < inf:
            raise
        return replace(wide, releases=found.releases, notes=(NOT_USED,))
    # Outside the try: which ball it is must not depend on a record.
    inner = enter(tight, _put(points, nowhere, center), None, n)
    return replace(inner, releases=found.releases, notes=notes)


def _without_center(
    points: Array, replaced: Array, codes: Array | None, n: int
) -> tuple[Records, Array | None, Array]:
    """Return the records that count, their groups, and which of n records or groups are nowhere."""
    if codes is None:
        return Records(points), None, replaced
    nowhere = np.ones(n, dtype=bool)
    nowhere[codes[~replaced]] = False
    kept = ~replaced | nowhere[codes]
    return Records(points[kept]), codes[kept], nowhere


def _put(points: Array, rows: Array | None, point: Array) -> Array:
    return points if rows is None else np.where(rows[:, None], point, points)


def enter(
    ball: PublicBall,
    points: Array,
    codes: Array | None,
    n: int,
    admit: Callable[[Array], Array] | None = None,
) -> Settled:
    """Return points, or one point for each group of them, as a sample in a public ball.

    `admit` is that of `enter_ball`: without it all are known to be points.
    """
    local = ball.local
    with np.errstate(all="ignore"):  # no overflow warning may tell that some record is far away
        cap = sensitivity.float_log_cap(local.model, ball.radius, n)
        sample = enter_ball(local, points, ball.radius, cap, admit)
    if codes is not None:
        sample = load(local.model, group_means(local, sample.points, codes, ball.radius))
    return Settled(ball.center, ball.radius, local, sample)


def left(mu: float, ball: PublicBall | WantedBall) -> float:
    """Return the budget that finding the ball leaves."""
    return mu if ball.share == 0 or mu == inf else part(mu, 1 - ball.share)
