"""How the budget of a fit is split over its releases."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isclose, sqrt

from skdpfrechet._validation import check_open_unit

SMALLEST_MU = 1e-10  # of one release; its noise is 1e10 times the sensitivity
_ROUNDED_DOWN = 1 - 2.0**-46  # more than rounding adds to the sum of a hundred shares, in all


def mean_shares(
    mu: float, n: int, calibration: str, split: Mapping[str, float] | None, region: bool
) -> dict[str, float]:
    """Return the share of μ² of each release of `DPFrechetMean`.

    The audited split gives the second moment 12%, or 35% where nμ < 150 and μ ≥ 1: there the noise
    in the second moment, not in the mean, sets the size of the region.
    """
    if not region:
        return _resolve({"mean": 1.0}, split)
    if calibration == "paper":
        return _resolve(dict.fromkeys(("mean", "second_moment", "hessian"), 1 / 3), split)
    share = 0.35 if n * mu < 150 and mu >= 1 else 0.12
    return _resolve({"mean": 1 - share, "second_moment": share}, split)


def variance_shares(
    calibration: str, split: Mapping[str, float] | None, region: bool, reused: bool
) -> dict[str, float]:
    """Return the share of μ² of each release of `DPFrechetVariance`.

    The audited split gives the mean a quarter; a reused mean costs this fit nothing.
    """
    names = ["mean", "variance"] if not reused else ["variance"]
    if calibration == "paper":
        names += ["spread"] if region else []
        return _resolve(dict.fromkeys(names, 1 / len(names)), split)
    return _resolve({"variance": 1.0} if reused else {"mean": 0.25, "variance": 0.75}, split)


def part(mu: float, share: float) -> float:
    """Return the μ of a release that gets `share` of μ², rounded down.

    Shares that sum to 1 in float64 sum to at most 1 + k·2^-52 in exact arithmetic, k their number,
    and the root and the product err by 2^-52. The factor takes more than that off, so that the sum
    of μ² over the parts of a fit never exceeds its own μ². A part that is the whole stays whole.
    """
    if mu == inf:
        return mu
    value = mu if share == 1 else mu * sqrt(share) * _ROUNDED_DOWN
    if value < SMALLEST_MU:
        raise ValueError(
            f"mu must give every release at least {SMALLEST_MU:g}, below which float64 cannot "
            f"follow the noise, got mu={mu!r} with a share of {share!r}."
        )
    return value


def _resolve(default: dict[str, float], split: Mapping[str, float] | None) -> dict[str, float]:
    if split is None:
        return default
    if not isinstance(split, Mapping):
        raise TypeError(f"budget_split must be a dict or None, got {type(split).__name__}.")
    if len(default) == 1:
        name = next(iter(default))
        raise ValueError(
            f"budget_split must be None when the whole budget goes to the {name}, got {split!r}."
        )
    if set(split) != set(default):
        raise ValueError(f"budget_split must have the keys {sorted(default)}, got {split!r}.")
    shares = {name: check_open_unit(f"budget_split[{name!r}]", split[name]) for name in default}
    if not isclose(sum(shares.values()), 1.0, rel_tol=1e-9):
        raise ValueError(f"budget_split must sum to 1, got {split!r}.")
    total = sum(shares.values())
    return {name: share / total for name, share in shares.items()}
