"""From what the user passes to points of the manifold, in two steps.

`look` sees the shape and the type of X, which are public, and no value; a fit with a ledger pays
before it goes on. Then `Unread.numbers` converts, and `admit` finds what is no point. No message
here depends on the value of a record beyond the documented exceptions: that some record is not
finite, does not lie on the manifold or is no number. No message says which one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from skdpfrechet._numerics import Array, all_finite
from skdpfrechet.estimators._dask import check_dask, is_dask
from skdpfrechet.manifolds import Manifold
from skdpfrechet.manifolds._resolve import point_ndim

LARGE = 2**25  # numbers of a memory map from which it is read in blocks: 256 MB


@dataclass(frozen=True, eq=False)
class Unread:
    """Records of the right shape, of which no value was looked at.

    `typed` says that they came as numbers of one type, which is public. That of a list, an array of
    objects or a data frame may depend on their values. `large` says that they are better not held
    in memory together.
    """

    data: Any
    typed: bool
    large: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(np.shape(self.data))

    def numbers(self, *, replace: bool = False) -> tuple[Array, float]:
        """Return the records as float64, and the rounding unit of the type they came in.

        A record that does not convert becomes NaN with `replace`, and raises otherwise.
        """
        data = _in_memory(self.data)
        values = _numbers_or_nan(data) if replace and not self.typed else real_numbers(data)
        # One record that changes the type of a list must not change how the others are read.
        dtype: Any = np.dtype(float) if replace and not self.typed else data.dtype
        single = dtype.kind == "f" and dtype.itemsize < 8
        return values, float(np.finfo(dtype).eps) if single else 2.0**-52


@dataclass(frozen=True, eq=False)
class Records:
    """Points of a manifold; `replaced` marks those that were none and became a public one."""

    points: Array
    replaced: Array | None = None


def look(estimator, X, *, reset: bool, blocks: bool = False, grouped: bool = False) -> Unread:
    """Check the shape and the type of X, and set or check the number and names of its columns.

    `blocks` says that the estimator can do without all records in memory, `grouped` that their
    number is not public.
    """
    if issparse(X):
        raise TypeError("X must be a dense array, got a sparse one; X.toarray() makes it dense.")
    ndim = point_ndim(estimator.manifold)
    chunked = is_dask(X)
    if chunked and not blocks:
        raise TypeError(
            f"X must be an array in memory for this method of {type(estimator).__name__}, got a "
            "collection of dask; X.compute() loads it, X.map_blocks applies a method to its chunks."
        )
    is_frame = not chunked and (hasattr(X, "iloc") or hasattr(X, "__dataframe__"))
    is_array = chunked or isinstance(X, np.ndarray)
    large = chunked or (blocks and isinstance(X, np.memmap) and X.size >= LARGE)
    data = check_dask(X) if chunked else X if is_frame else _as_array(X)
    if is_array and data.dtype.kind == "c":
        raise ValueError(_COMPLEX)
    if is_array and data.dtype.kind in _NO_NUMBERS:
        raise TypeError(f"X must hold real numbers, got an array of {data.dtype}.")
    shape = tuple(np.shape(data))
    _check_shape(estimator, shape, ndim, grouped)
    if reset and isinstance(data, np.ndarray):
        # All that scikit-learn does, whose search for names of columns costs more than small fits.
        estimator.n_features_in_ = shape[1]
        vars(estimator).pop("feature_names_in_", None)
    else:
        validate_data(estimator, data, reset=reset, skip_check_array=True, ensure_2d=ndim == 1)
        if ndim == 2:
            _check_size(estimator, shape[1], reset)
    return Unread(data, is_array and data.dtype.kind in "buif", large)


def _as_array(X) -> Array:
    """Return X as an array, of objects where numpy would turn numbers into strings or the like.

    Masked numbers become NaN, whatever the mask of the others.
    """
    if isinstance(X, list | tuple) and any(np.ma.isMaskedArray(record) for record in X):
        X = [_unmasked(record) for record in X]
    X = _unmasked(X)
    if isinstance(X, np.ndarray):
        return np.asarray(X)
    for dtype in (None, object):  # numpy's own messages quote the data
        with suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array = np.asarray(X, dtype=dtype)
            if dtype is None and array.dtype.kind not in "buifc":
                continue
            if dtype is None or not any(map(_is_sequence, array.flat)):
                return array
    raise ValueError("X must be a rectangular array of real numbers.")


def _unmasked(X: Any) -> Any:
    """Return a masked array without its mask, as numbers of the same type where that has NaN."""
    if not np.ma.isMaskedArray(X) or X.dtype.kind in f"c{_NO_NUMBERS}":
        return X
    if X.dtype.kind in "buif":
        kind = X.dtype if X.dtype.kind == "f" else np.dtype(float)
        return np.ma.filled(X.astype(kind), np.nan)
    return np.ma.filled(X.astype(object), None)


def _is_sequence(cell: object) -> bool:
    return isinstance(cell, list | tuple) or (isinstance(cell, np.ndarray) and cell.ndim > 0)


def _in_memory(data) -> Array:
    """Return records of the right shape, a data frame for instance, as an array."""
    if isinstance(data, np.ndarray):
        return np.asarray(data)
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array = np.asarray(data)
        return array.astype(object) if array.dtype.kind in _NO_NUMBERS else array
    raise ValueError("X must contain real numbers only.")  # outside: a context would quote them


def _check_shape(estimator, shape: tuple[int, ...], ndim: int, grouped: bool) -> None:
    """scikit-learn's own message for vectors where it expects rows quotes the data."""
    manifold = estimator.manifold
    shown = str(("n", *shape[1:])).replace("'n'", "n") if grouped and shape else str(shape)
    if len(shape) != ndim + 1:
        wanted = "(n_samples, n_features)" if ndim == 1 else "(n_samples, p, p)"
        hint = ""
        if ndim == len(shape) == 1:
            hint = " Reshape your data: X.reshape(1, -1) is one sample."
        raise ValueError(
            f"X must have shape {wanted} for manifold={manifold!r}, "
            f"got an array of shape {shown}.{hint}"
        )
    if ndim == 2 and not shape[1] == shape[2] > 0:
        raise ValueError(
            f"X must contain square matrices for manifold={manifold!r}, "
            f"got matrices of shape {shape[1:]}."
        )
    for size, kind in zip(shape, ("sample(s)", "feature(s)"), strict=False):
        if size == 0 and grouped:
            raise ValueError(f"X must hold a number of at least one record, got shape {shown}.")
        if size == 0:  # in scikit-learn's words
            raise ValueError(
                f"Found array with 0 {kind} (shape={shape}) while a minimum of 1 is required by "
                f"{type(estimator).__name__}."
            )


def _check_size(estimator, size: int, reset: bool) -> None:
    """Do for matrices what scikit-learn does for the columns of vectors, in its words."""
    if reset:
        estimator.n_features_in_ = size
    elif size != estimator.n_features_in_:
        raise ValueError(
            f"X has {size} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )


_NO_NUMBERS = "mMV"  # kinds of type that hold dates, times and structures
_COMPLEX = "Complex data not supported: X must be real; Hermitian matrices have no space here yet."


def real_numbers(X) -> Array:
    """Return X as an array of float64.

    scikit-learn's own messages for complex and for non-numeric input quote the data.
    """
    array = _as_array(X)
    if array.dtype.kind == "c":
        raise ValueError(_COMPLEX)
    try:
        with np.errstate(all="ignore"):  # long doubles beyond float64 become inf
            if array.dtype.kind in "buif":
                return np.asarray(array, dtype=np.float64, order="C")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                warnings.simplefilter("error", np.exceptions.ComplexWarning)
                return array.astype(np.float64, order="C")
    except np.exceptions.ComplexWarning:
        problem = "complex"
    except Exception as error:  # objects may raise anything when they are converted
        problem = type(error).__name__
    # Raised outside the handler: an exception context would carry the original message.
    if problem == "complex":
        raise ValueError(_COMPLEX)
    raise (TypeError if problem == "TypeError" else ValueError)(
        "X must contain real numbers only: every argument must be a string or a real number "
        "that converts to float."
    )


def _numbers_or_nan(data: Array) -> Array:
    """Return X as an array of float64, what does not convert as NaN.

    Cell by cell, so that what one of them holds does not change how another one is read.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if data.dtype.kind in "buif":
            return np.asarray(data, dtype=np.float64, order="C")
        if data.dtype.kind == "c":  # a list with a complex number
            return np.where(data.imag == 0, data.real, np.nan)
        return np.asarray(_NUMBERS(data), dtype=np.float64).reshape(data.shape)


def _number(cell: object) -> float:
    """Return what a cell holds, NaN unless that is one real number."""
    try:
        if isinstance(cell, complex | np.complexfloating):
            return float(cell.real) if cell.imag == 0 else np.nan
        if isinstance(cell, np.datetime64 | np.timedelta64 | np.ma.core.MaskedConstant):
            return np.nan
        return np.nan if _is_sequence(cell) else float(cell)  # type: ignore[arg-type]
    except Exception:  # objects may raise anything; integers may be beyond float64
        return np.nan


_NUMBERS = np.frompyfunc(_number, 1, 1)


def admit(
    manifold: Manifold, points: Array, epsilon: float, substitute: Array | None = None
) -> Records:
    """Return points in canonical form; what is no point raises, or becomes the substitute.

    Parameters
    ----------
    manifold : Manifold
    points : ndarray, shape (n, *point_shape)
    epsilon : float
        Rounding unit of the type in which the points were stored.
    substitute : ndarray, shape point_shape, or None
        A public point of the manifold. Which records it replaces depends on nothing but the record.
    """
    replaced: Array | None = None
    with np.errstate(all="ignore"):  # no overflow warning may tell that some record is huge
        for mask, requirement in _violations(manifold, points, epsilon):
            if substitute is None and mask.any():
                raise ValueError(f"X must contain {requirement}.")
            if mask.any():
                replaced = mask if replaced is None else replaced | mask
        if substitute is not None and replaced is not None:
            rows = replaced.reshape(-1, *(1,) * len(manifold.point_shape))
            points = np.where(rows, substitute, points)
        return Records(manifold.canonical(points), replaced)


def _violations(manifold: Manifold, points: Array, epsilon: float) -> Iterator[tuple[Array, str]]:
    if not all_finite(points):
        finite = np.isfinite(points).all(axis=tuple(range(1, points.ndim)))
        yield np.asarray(~finite), "finite numbers only, got NaN or infinity"
    yield from manifold.violations(points, epsilon)
