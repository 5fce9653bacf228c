"""The only file that knows dask, which is imported when X comes from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from skdpfrechet._numerics import Array
from skdpfrechet._solvers import Sample, Statistic, Total

_FAN_IN = 8  # partial sums that are added at a time


def is_dask(X: object) -> bool:
    """Return whether X is a collection of dask, without importing it."""
    return any(kind.__module__.split(".")[0] in ("dask", "dask_expr") for kind in type(X).__mro__)


def check_dask(X: Any) -> Any:
    """Return X, a dask array of known shape, with every record in one chunk."""
    import dask.array as da

    if not isinstance(X, da.Array):
        raise TypeError(
            "X must be an array, in memory or of dask, got another collection of dask; "
            "X.to_dask_array(lengths=True) makes an array of a data frame."
        )
    if any(np.isnan(size) for size in X.shape):
        raise ValueError(
            "X must have chunks of known size, as n is public and needed before records are read; "
            "X.compute_chunk_sizes() finds them."
        )
    return X.rechunk(dict.fromkeys(range(1, X.ndim), -1))


def total(X: Any, read: Callable[[Any], Sample]) -> Total:
    """Return what sums a statistic over the chunks of X, computed where dask computes them."""
    from dask.delayed import delayed

    counts = X.chunks[0]
    chunks = [
        (chunk, (count, *X.shape[1:]))
        for chunk, count in zip(X.to_delayed().ravel(), counts, strict=True)
        if count > 0
    ]

    def sums(statistic: Statistic) -> tuple[Array, ...]:
        parts = [
            delayed(partial(_summary, read, statistic, shape), pure=False)(chunk)
            for chunk, shape in chunks
        ]
        while len(parts) > 1:  # a tree of public shape: results do not depend on who is first
            parts = [
                delayed(_sum, pure=False)(parts[i : i + _FAN_IN])
                for i in range(0, len(parts), _FAN_IN)
            ]
        result = parts[0].compute()
        if isinstance(result, Exception):
            raise result
        return tuple(result)

    return sums


def add(a: Sequence[Array], b: Sequence[Array]) -> tuple[Array, ...]:
    """Return the sums of two results of a statistic."""
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _summary(
    read: Callable[[Any], Sample], statistic: Statistic, shape: tuple[int, ...], chunk: Any
) -> tuple[Array, ...] | Exception:
    """Return the statistic of a chunk, or an error as a value.

    An error that were raised would make a worker print its chunk to its log.
    """
    try:
        if np.shape(chunk) != shape:
            return ValueError("X must have chunks of the shapes that it declares.")
        return statistic(read(chunk))
    except Exception as error:
        return error.with_traceback(None)


def _sum(
    parts: Sequence[tuple[Array, ...] | Exception],
) -> tuple[Array, ...] | Exception:
    result: tuple[Array, ...] | None = None
    for part in parts:
        if isinstance(part, Exception):
            return part
        result = part if result is None else add(result, part)
    assert result is not None
    return result
