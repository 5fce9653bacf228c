"""Validation of a public centre and a public radius."""

from __future__ import annotations

import numpy as np

from skdpfrechet import sensitivity
from skdpfrechet._numerics import Array
from skdpfrechet._validation import check_positive
from skdpfrechet.manifolds import Hyperbolic, Localization, Manifold

SMALLEST_RADIUS, LARGEST_RADIUS = 1e-20, 1e20  # float64 holds their fourth powers, over any mu²
SMALLEST_CURVED_RADIUS = 1e-6  # points are O(1) there: logarithms keep 1e-16 of absolute precision


def check_center(manifold: Manifold, center) -> Array:
    """Return the public centre as a point of the manifold, its origin for None."""
    if center is None:
        if manifold.origin is None:
            raise ValueError(
                f"center must be given on {manifold!r}, which has no natural origin, got None; "
                "use a direction known without the data, never the sample mean."
            )
        return manifold.origin
    try:
        point = np.asarray(center)
    except ValueError:
        raise ValueError("center must be a rectangular array of real numbers.") from None
    if point.dtype.kind not in "buif":
        raise TypeError(f"center must be an array of real numbers, got {type(center).__name__}.")
    if point.shape != manifold.point_shape:
        raise ValueError(
            f"center must have shape {manifold.point_shape} on {manifold!r}, got {point.shape}."
        )
    if not np.isfinite(point).all():
        raise ValueError("center must be finite, got NaN or infinity.")
    with np.errstate(all="ignore"):
        for mask, requirement in manifold.violations(point.astype(float)):
            if mask.any():
                raise ValueError(
                    f"center must be a point of {manifold!r}, which holds "
                    f"{requirement.split(';')[0]}."
                )
        return manifold.canonical(point.astype(float))


def check_localization(local: Localization, center: Array, radius: float) -> None:
    """Raise if float64 cannot work around this public centre."""
    with np.errstate(all="ignore"):
        tolerance = 1e-6 * radius
        good = local.model.within(local.origin, local.to_model(center), tolerance)
        scale = np.abs(center).max()
        back = np.abs(local.from_model(local.origin) - center).max()
        good = good and bool(back <= 1e-6 * scale)
        if isinstance(local.model, Hyperbolic):  # the boost cancels: ε·e^{2D}, D the distance
            good = good and 2.0**-52 * float(2 * center[0]) ** 2 <= tolerance
    if not good:  # written so that NaN fails
        raise ValueError(
            "center must be a point around which float64 can compute distances to one millionth of "
            f"the radius, got one too far from the origin or too badly scaled on {local.model!r}."
        )


def check_radius(
    manifold: Manifold, radius, calibration: str, n: int, name: str = "radius"
) -> float:
    """Return the radius if the theory covers it on this space, and float64 can follow."""
    value = check_positive(name, radius)
    paper = calibration == "paper"
    limit = radius_limit(manifold, calibration)
    if value >= limit:
        reason = "the printed sensitivity" if paper else "a unique mean"
        raise ValueError(
            f"{name} must be below {float(limit)!r}, the curvature limit of {manifold!r} for "
            f"{reason}, got {radius!r}."
        )
    flat = manifold.sectional_curvature_bounds == (0.0, 0.0)
    smallest = SMALLEST_RADIUS if flat else SMALLEST_CURVED_RADIUS
    if not smallest <= value <= LARGEST_RADIUS:
        raise ValueError(
            f"{name} must be between {smallest:g} and {LARGEST_RADIUS:g} on {manifold!r}, the "
            f"range that float64 can follow, got {radius!r}."
        )
    float_limit = sensitivity.float_radius_limit(manifold, n)
    if value > float_limit:
        raise ValueError(
            f"{name} must be at most {float(float_limit)!r} on {manifold!r} with n_samples={n}, "
            f"beyond which float64 cannot hold the sensitivity, got {radius!r}."
        )
    return value


def radius_limit(manifold: Manifold, calibration: str) -> float:
    """Return the radius below which the sensitivity of the recipe holds."""
    if calibration == "paper":
        return sensitivity.radius_limit_paper(manifold)
    return sensitivity.radius_limit(manifold)
