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

from skdpfrechet._numerics import Array
from skdpfrechet._solvers import Sample
from skdpfrechet._validation import check_positive
from skdpfrechet.estimators._ball import left, read_ball, settle
from skdpfrechet.estimators._budget import SMALLEST_MU
from skdpfrechet.estimators._groups import check_groups
from skdpfrechet.manifolds import Localization, Manifold, resolve_manifold
from skdpfrechet.manifolds._resolve import point_ndim
from skdpfrechet.privacy import Release

LARGEST_MU = 1e20  # its square and its multiples by n stay far from overflow


@dataclass(frozen=True, eq=False)
class BallProblem:
    """Records in the model of a space, moved into the ball. Lives during `fit` only.

    `mu` is what remains for the fit after the `releases` that found the ball.
    """

    manifold: Manifold
    center: Array
    radius: float
    local: Localization
    sample: Sample
    mu: float
    releases: tuple[Release, ...] = ()
    unit: str = "record"
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        return self.sample.n


def prepare(estimator, X, groups, mu: float, rng: np.random.Generator) -> BallProblem:
    """Validate the records and the ball, and move the records into it.

    A group of records becomes one point. A ball that is to be found is released here.
    """
    X, epsilon = read_records(estimator, X, reset=True)
    manifold = resolve_manifold(estimator.manifold, X.shape[1:])
    codes = None if groups is None else check_groups(groups, len(X))
    n = len(X) if codes is None else int(codes.max()) + 1
    ball = read_ball(estimator, manifold, n)
    X = check_on_manifold(manifold, X, "X", epsilon)
    settled = settle(ball, manifold, X, codes, n, mu, estimator.calibration, rng)
    return BallProblem(
        manifold=manifold,
        center=settled.center,
        radius=settled.radius,
        local=settled.local,
        sample=settled.sample,
        mu=left(mu, settled),
        releases=settled.releases,
        notes=settled.notes,
        unit="record" if codes is None else "group",
    )


def read_records(estimator, X, reset: bool) -> tuple[Array, float]:
    """Return X as float64, and the rounding unit of the type it came in."""
    ndim = point_ndim(estimator.manifold)
    if not issparse(X):
        X = real_numbers(X)
        _check_shape(estimator.manifold, np.shape(X), ndim)
        if hasattr(X, "iloc") and np.shape(X)[1] == 0:  # scikit-learn stumbles over such a frame
            raise ValueError(
                f"Found array with 0 feature(s) (shape={np.shape(X)}) while a minimum of 1 is "
                f"required by {type(estimator).__name__}."
            )
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


def check_mu(mu) -> float:
    """Return μ > 0; infinity asks for the exact, non-private result."""
    value = check_positive("mu", mu, allow_inf=True)
    if value < inf and not SMALLEST_MU <= value <= LARGEST_MU:
        raise ValueError(
            f"mu must be from {SMALLEST_MU:g} to {LARGEST_MU:g}, the range that float64 can "
            f"follow, or infinite, got {mu!r}."
        )
    return value
