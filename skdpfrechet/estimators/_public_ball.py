"""Validation of a public centre and a public radius."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np

from skdpfrechet import sensitivity
from skdpfrechet._numerics import Array, eigvalsh
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


def check_localization(
    manifold: Manifold, local: Localization, center: Array, radius: float, n: int, private: bool
) -> None:
    """Raise if float64 cannot work around this public centre.

    `private` says that there will be noise, of which the error of the map into the model must be
    no more than a small part.
    """
    with np.errstate(all="ignore"):
        condition, length = _condition(manifold, center)
        limit = sensitivity.map_error_limit(radius, n, private)
        error = sensitivity.map_error(manifold, condition, length)
        good = local.model.within(local.origin, local.to_model(center), 1e-6 * radius)
        scale = np.abs(center).max()
        back = np.abs(local.from_model(local.origin) - center).max()
        good = good and bool(back <= 1e-6 * scale)
    if not error <= limit:  # written so that NaN fails
        raise ValueError(
            f"center must be a point near which float64 moves records by at most {limit:.2g} on "
            f"{manifold!r}, a millionth of the radius and, for a private fit, a hundredth of 2 "
            f"radius/n, got {error:.2g} from a condition number of {condition:.2g}."
        )
    if not good:
        raise ValueError(
            "center must be a point around which float64 can compute distances to one millionth of "
            f"the radius, got one too far from the origin or too badly scaled on {local.model!r}."
        )


def _condition(manifold: Manifold, center: Array) -> tuple[float, float]:
    """Return condition number and length of a centre, as `sensitivity.map_error` takes them."""
    if isinstance(manifold, Hyperbolic):
        return float(2 * center[0]) ** 2, 1.0
    if center.ndim < 2:
        return 1.0, 1.0
    eigenvalues = eigvalsh(center)
    smallest, largest = float(eigenvalues[0]), float(eigenvalues[-1])
    return largest / smallest if smallest > 0 else inf, sqrt(max(largest, 0.0))


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
