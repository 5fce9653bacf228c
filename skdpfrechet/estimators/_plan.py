"""What a fit decides before it reads the value of any record, and the records once they are read.

Parameters, the shape of X and the number of groups are public. They decide what the fit costs and
whether it is possible at all, so this comes first, then the ledger is charged, then records are
read.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from skdpfrechet import sensitivity
from skdpfrechet._numerics import Array
from skdpfrechet._solvers import Sample
from skdpfrechet._validation import check_positive
from skdpfrechet.estimators._ball import (
    PublicBall,
    Settled,
    WantedBall,
    left,
    read_ball,
    settle,
)
from skdpfrechet.estimators._ball import enter as enter_public
from skdpfrechet.estimators._blocks import Reader, read_blocks
from skdpfrechet.estimators._budget import SMALLEST_MU, part
from skdpfrechet.estimators._dask import is_dask
from skdpfrechet.estimators._groups import check_groups, check_unit
from skdpfrechet.estimators._mechanisms import make_generator, rebuild, resolve_mechanism
from skdpfrechet.estimators._noise import exact_noise, resolve_noise
from skdpfrechet.estimators._records import Records, Unread, admit
from skdpfrechet.inference._hessian import hessian_range
from skdpfrechet.manifolds import Localization, Manifold, resolve_manifold
from skdpfrechet.mechanisms import RandomSource
from skdpfrechet.privacy import Release, Unit
from skdpfrechet.privacy._ledger import Payment, Reused, charge
from skdpfrechet.privacy._units import RECORD

LARGEST_MU = 1e20  # its square and its multiples by n stay far from overflow


@dataclass(frozen=True, eq=False)
class FitPlan:
    """All that a fit of `mu` knows before it reads a record. Lives during `fit` only.

    `shares` are of what the ball leaves; `rng` has drawn nothing yet.
    """

    manifold: Manifold
    ball: PublicBall | WantedBall
    codes: Array | None
    n: int
    mu: float
    level: float | None
    mechanism: str
    secure: bool
    shares: dict[str, float]
    rng: RandomSource
    void_reason: str | None
    unit: Unit = RECORD

    @property
    def statistics(self) -> list[str]:
        """What the fit will release."""
        ball = ["ball"] if self.ball.share > 0 else []
        return ball + [name.replace("_", " ") for name in self.shares]


@dataclass(frozen=True, eq=False)
class BallProblem:
    """Records in the model of a space, moved into the ball. Lives during `fit` only.

    `mu` is what remains for the fit after the `releases` that found the ball; `secure` says that
    noise is float-safe.
    """

    manifold: Manifold
    center: Array
    radius: float
    local: Localization
    sample: Sample
    mu: float
    secure: bool = False
    releases: tuple[Release, ...] = ()
    unit: Unit = RECORD
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Number of records, or of groups."""
        return self.sample.n


def plan_fit(estimator, shape: tuple[int, ...], groups) -> FitPlan:
    """Validate the parameters of an estimator against the shape of its records."""
    level, mu = estimator._check_choices(), check_mu(estimator.mu)
    rng, void_reason = make_generator(estimator.random_state)
    manifold = resolve_manifold(estimator.manifold, shape[1:])
    unit = check_unit(estimator, groups)
    codes = None if groups is None else check_groups(groups, shape[0])
    n = shape[0] if codes is None else int(codes.max()) + 1
    ball = read_ball(estimator, manifold, n, mu)
    remaining = left(mu, ball)
    shares = estimator._shares(remaining, n)
    for share in shares.values():
        part(remaining, share)
    exact = exact_noise(estimator.noise, estimator.calibration, mu)
    mechanism = resolve_mechanism(estimator.mechanism, manifold, exact)
    # A fit that releases no mean has noise on numbers only, which may always be float-safe.
    noisy = mechanism if "mean" in shares else "wrapped-gaussian"
    secure = resolve_noise(estimator.noise, noisy, estimator.calibration, mu)
    _ask_space(ball.outermost, n, mechanism, shares)
    return FitPlan(
        manifold=manifold,
        ball=ball,
        codes=codes,
        n=n,
        mu=mu,
        level=level,
        mechanism=mechanism,
        secure=secure,
        shares=shares,
        rng=rng,
        void_reason=void_reason,
        unit=unit,
    )


def _ask_space(ball: PublicBall, n: int, mechanism: str, shares: dict[str, float]) -> None:
    """Ask the space for all that the fit will want of it: where it has no answer, nothing is paid.

    Which radius is asked for does not matter.
    """
    model, radius = ball.local.model, min(ball.radius, 1.0)
    sensitivity.float_log_cap(model, radius, n)
    sensitivity.float_log_error(model, radius, n)
    if "mean" in shares:  # raises where no theorem covers the mechanism
        rebuild(mechanism, model, ball.local.origin, 1.0)
    if "second_moment" in shares:
        hessian_range(model, radius)
    if "hessian" in shares:
        sensitivity.hessian_paper(model, radius, n)


def check_blocks(estimator, plan: FitPlan, unread: Unread) -> None:
    """Raise if the fit needs records in memory that are not to be held there."""
    if is_dask(unread.data) and not _fits_blocks(estimator, plan):
        raise ValueError(
            "X must be in memory for a private ball, groups or calibration='paper', got a dask "
            "array; X.compute() loads it."
        )


def _fits_blocks(estimator, plan: FitPlan) -> bool:
    public = isinstance(plan.ball, PublicBall) and plan.codes is None
    return public and estimator.calibration == "sharp"


def pay(
    estimator, mu: float, unit: Unit, statistics: list[str], reused: Reused | None = None
) -> Payment:
    """Charge the estimator's ledger for the fit, if it has one.

    Nothing that comes before may depend on the value of a record.
    """
    description = f"{type(estimator).__name__}: {', '.join(statistics)}"
    return charge(estimator.ledger, mu, unit, estimator.random_state, description, reused)


def read_into_ball(estimator, plan: FitPlan, unread: Unread) -> BallProblem:
    """Read the records, and do what `enter` does with them.

    Records too large for memory are not read here, but by every pass of the fit.
    """
    if unread.large and _fits_blocks(estimator, plan):
        ball = plan.ball.outermost
        replace = estimator.invalid == "replace"
        reader = Reader(plan.manifold, ball, plan.n, replace, unread.typed)
        blocks = read_blocks(reader, unread)
        return _problem(plan, Settled(ball.center, ball.radius, ball.local, blocks))
    return enter(estimator, plan, *unread.numbers(replace=estimator.invalid == "replace"))


def enter(estimator, plan: FitPlan, points: Array, epsilon: float) -> BallProblem:
    """Move what was read into the ball, which is released here if it is to be found.

    What is no point raises or is replaced, as the estimator wants it; on their way into a public
    ball most records are checked in passing. A group of records becomes one point. `epsilon` is the
    rounding unit of the type that the records came in.
    """
    if isinstance(plan.ball, PublicBall):

        def admit_some(some: Array) -> Array:
            return _admit(estimator, plan, some, epsilon).points

        return _problem(plan, enter_public(plan.ball, points, plan.codes, plan.n, admit_some))
    settled = settle(
        plan.ball,
        plan.manifold,
        _admit(estimator, plan, points, epsilon),
        plan.codes,
        plan.n,
        plan.mu,
        estimator.calibration,
        plan.secure,
        plan.rng,
    )
    return _problem(plan, settled)


def _admit(estimator, plan: FitPlan, points: Array, epsilon: float) -> Records:
    substitute = plan.ball.outermost.center if estimator.invalid == "replace" else None
    return admit(plan.manifold, points, epsilon, substitute)


def _problem(plan: FitPlan, settled: Settled) -> BallProblem:
    return BallProblem(
        manifold=plan.manifold,
        center=settled.center,
        radius=settled.radius,
        local=settled.local,
        sample=settled.sample,
        mu=left(plan.mu, plan.ball),
        secure=plan.secure,
        releases=settled.releases,
        notes=settled.notes,
        unit=plan.unit,
    )


def check_mu(mu) -> float:
    """Return μ > 0; infinity asks for the exact, non-private result."""
    value = check_positive("mu", mu, allow_inf=True)
    if value < inf and not SMALLEST_MU <= value <= LARGEST_MU:
        raise ValueError(
            f"mu must be from {SMALLEST_MU:g} to {LARGEST_MU:g}, the range that float64 can "
            f"follow, or infinite, got {mu!r}."
        )
    return value
