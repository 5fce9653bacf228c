"""From what the user passes to records that obey the public ball.

No message here depends on the value of a record beyond the documented exceptions: that some record
is not finite or does not lie on the manifold. No message says which one.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from math import inf

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from skdpfrechet import sensitivity
from skdpfrechet._numerics import Array
from skdpfrechet._solvers import Sample, load
from skdpfrechet._validation import check_positive
from skdpfrechet.estimators._groups import check_groups, group_means
from skdpfrechet.manifolds import Hyperbolic, Localization, Manifold, resolve_manifold
from skdpfrechet.manifolds._resolve import point_ndim

SMALLEST_RADIUS, LARGEST_RADIUS = 1e-20, 1e20  # float64 holds their fourth powers, over any mu²
SMALLEST_CURVED_RADIUS = 1e-6  # points are O(1) there: logarithms keep 1e-16 of absolute precision


@dataclass(frozen=True, eq=False)
class BallProblem:
    """Records in the model of a space, moved into the public ball. Lives during `fit` only."""

    manifold: Manifold
    center: Array
    radius: float
    local: Localization
    sample: Sample
    unit: str = "record"

    @property
    def n(self) -> int:
        return self.sample.n


def prepare(estimator, X, radius: float, center, calibration: str, groups=None) -> BallProblem:
    """Validate the records and the ball, move the records into it, and average those of a group."""
    X, epsilon = read_records(estimator, X, reset=True)
    manifold = resolve_manifold(estimator.manifold, X.shape[1:])
    codes = None if groups is None else check_groups(groups, len(X))
    n = len(X) if codes is None else int(codes.max()) + 1
    radius = check_radius(manifold, radius, calibration, n)
    center = check_center(manifold, center)
    X = check_on_manifold(manifold, X, "X", epsilon)
    with np.errstate(all="ignore"):  # no overflow warning may tell that some record is far away
        local = manifold.localize(center)
        check_localization(local, center, radius)
        cap = sensitivity.float_log_cap(local.model, radius, n)
        points = local.model.project_to_ball(local.to_model(X), local.origin, radius, cap)
    if codes is None:
        return BallProblem(manifold, center, radius, local, load(local.model, points))
    points = group_means(local, points, codes, radius)
    return BallProblem(manifold, center, radius, local, load(local.model, points), unit="group")


def read_records(estimator, X, reset: bool) -> tuple[Array, float]:
    """Return X as float64, and the rounding unit of the type it came in."""
    ndim = point_ndim(estimator.manifold)
    if not issparse(X):
        X = real_numbers(X)
        _check_shape(estimator.manifold, np.shape(X), ndim)
    dtype = getattr(X, "dtype", np.dtype(float))
    single = isinstance(dtype, np.dtype) and dtype.kind == "f" and dtype.itemsize < 8
    epsilon = float(np.finfo(dtype).eps) if single else 2.0**-52
    with np.errstate(over="ignore"):  # long doubles beyond float64 become inf, which is refused
        checked = validate_data(
            estimator,
            X,
            dtype=np.float64,
            order="C",
            ensure_2d=ndim == 1,
            allow_nd=ndim == 2,
            ensure_all_finite=False,  # its message is a page long
            reset=reset,
        )
    if not np.isfinite(checked).all():
        raise ValueError("X must contain finite numbers only, got NaN or infinity.")
    if ndim == 2:
        _check_size(estimator, checked.shape[1], reset)
    return checked, epsilon


def _check_size(estimator, size: int, reset: bool) -> None:
    """Do for matrices what scikit-learn does for the columns of vectors, in its words."""
    if reset:
        estimator.n_features_in_ = size
    elif size != estimator.n_features_in_:
        raise ValueError(
            f"X has {size} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )


def _check_shape(manifold: str | Manifold, shape: tuple[int, ...], ndim: int) -> None:
    """scikit-learn's own message for vectors where it expects rows quotes the data."""
    if ndim == 1 and len(shape) < 2:
        hint = " Reshape your data: X.reshape(1, -1) is one sample." if len(shape) == 1 else ""
        raise ValueError(
            f"X must have shape (n_samples, n_features) for manifold={manifold!r}, "
            f"got an array of shape {shape}.{hint}"
        )
    if ndim == 2 and len(shape) != 3:
        raise ValueError(
            f"X must have shape (n_samples, p, p) for manifold={manifold!r}, "
            f"got an array of shape {shape}."
        )
    if ndim == 2 and not shape[1] == shape[2] > 0:
        raise ValueError(
            f"X must contain square matrices for manifold={manifold!r}, "
            f"got matrices of shape {shape[1:]}."
        )


def real_numbers(X):
    """Return X unchanged if it converts to real numbers.

    scikit-learn's own messages for complex and for non-numeric input quote the data.
    """
    converted, problem = None, None
    try:
        converted = np.asarray(X)
        if converted.dtype.kind == "c":
            problem = "complex"
        elif converted.dtype.kind not in "buif":
            with warnings.catch_warnings():
                warnings.simplefilter("error", np.exceptions.ComplexWarning)
                converted = converted.astype(np.float64)
    except np.exceptions.ComplexWarning:
        problem = "complex"
    except (TypeError, ValueError, OverflowError) as error:
        problem = "ragged" if converted is None else type(error).__name__
    # Raised outside the handler: an exception context would carry the original message.
    if problem == "complex":
        raise ValueError(
            "Complex data not supported: X must be real; Hermitian matrices have no space here yet."
        )
    if problem == "ragged":
        raise ValueError("X must be a rectangular array of real numbers.")
    if problem is not None:
        raise (TypeError if problem == "TypeError" else ValueError)(
            "X must contain real numbers only: every argument must be a string or a real number "
            "that converts to float."
        )
    return X if hasattr(X, "iloc") or hasattr(X, "__dataframe__") else converted


def check_on_manifold(manifold: Manifold, points: Array, name: str, epsilon: float) -> Array:
    """Return the points in canonical form; raise if some point is off the manifold."""
    # No overflow warning may tell that some record is huge.
    with np.errstate(all="ignore"):
        for mask, requirement in manifold.violations(points, epsilon):
            if mask.any():
                raise ValueError(f"{name} must contain {requirement}.")
        return manifold.canonical(points)


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
    for mask, requirement in manifold.violations(point.astype(float)):
        if mask.any():
            raise ValueError(
                f"center must be a point of {manifold!r}, which holds {requirement.split(';')[0]}."
            )
    return manifold.canonical(point.astype(float))


def check_localization(local: Localization, center: Array, radius: float) -> None:
    """Raise if float64 cannot work around this public centre."""
    with np.errstate(all="ignore"):
        shift = float(local.model.dist(local.origin, local.to_model(center)))
        scale = np.abs(center).max()
        back = np.abs(local.from_model(local.origin) - center).max()
        rounding = 0.0
        if isinstance(local.model, Hyperbolic):  # the boost cancels: ε·e^{2D}, D the distance
            rounding = 2.0**-52 * float(2 * center[0]) ** 2
        good = max(shift, rounding) <= 1e-6 * radius and back <= 1e-6 * scale
    if not good:  # written so that NaN fails
        raise ValueError(
            "center must be a point around which float64 can compute distances to one millionth of "
            f"the radius, got one too far from the origin or too badly scaled on {local.model!r}."
        )


def check_radius(manifold: Manifold, radius, calibration: str, n: int) -> float:
    """Return the radius if the theory covers it on this space, and float64 can follow."""
    value = check_positive("radius", radius)
    paper = calibration == "paper"
    limit = (sensitivity.radius_limit_paper if paper else sensitivity.radius_limit)(manifold)
    if value >= limit:
        reason = "the printed sensitivity" if paper else "a unique mean"
        raise ValueError(
            f"radius must be below {float(limit)!r}, the curvature limit of {manifold!r} for "
            f"{reason}, got {radius!r}."
        )
    flat = manifold.sectional_curvature_bounds == (0.0, 0.0)
    smallest = SMALLEST_RADIUS if flat else SMALLEST_CURVED_RADIUS
    if not smallest <= value <= LARGEST_RADIUS:
        raise ValueError(
            f"radius must be between {smallest:g} and {LARGEST_RADIUS:g} on {manifold!r}, the "
            f"range that float64 can follow, got {radius!r}."
        )
    float_limit = sensitivity.float_radius_limit(manifold, n)
    if value > float_limit:
        raise ValueError(
            f"radius must be at most {float(float_limit)!r} on {manifold!r} with n_samples={n}, "
            f"beyond which float64 cannot hold the sensitivity, got {radius!r}."
        )
    return value


def check_mu(mu) -> float:
    """Return μ > 0; infinity asks for the exact, non-private result."""
    value = check_positive("mu", mu, allow_inf=True)
    return inf if value == inf else value
