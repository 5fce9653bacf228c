"""Small dense matrices inside kernels: plain loops, where LAPACK's calls would cost more."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from skdpfrechet._kernels._compile import inner, kernel, short_loops


def specialize(function: Any, name: str, **bindings: Any) -> Callable[..., Any]:
    """Return a copy of a Python function under another name, with some of its globals bound.

    numba calls a kernel that is a global of the caller directly, and caches the caller on disk by
    file and name; a kernel passed as an argument or held in a closure would allow neither.
    """
    code = function.__code__.replace(co_name=name, co_qualname=name)
    return FunctionType(code, function.__globals__ | bindings, name)


@inner
def multiply(a, b, out):
    """Write the product of two square matrices to `out`."""
    short_loops()
    size = len(a)
    for i in range(size):
        for j in range(size):
            out[i, j] = 0.0
        for k in range(size):
            x = a[i, k]
            for j in range(size):
                out[i, j] += x * b[k, j]


@kernel
def cholesky(a, out):
    """Write the lower Cholesky factor of `a` to `out`; False where it has none."""
    short_loops()
    size = len(a)
    for i in range(size):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s -= out[i, k] * out[j, k]
            if i > j:
                out[i, j] = s / out[j, j]
            elif s > 0.0:
                out[i, i] = np.sqrt(s)
            else:  # NaN included
                return False
        for j in range(i + 1, size):
            out[i, j] = 0.0
    return True


@kernel
def invert_lower(a, out):
    """Write the inverse of a lower triangular matrix to `out`."""
    short_loops()
    size = len(a)
    for j in range(size):
        for i in range(j):
            out[i, j] = 0.0
        out[j, j] = 1.0 / a[j, j]
        for i in range(j + 1, size):
            s = 0.0
            for k in range(j, i):
                s -= a[i, k] * out[k, j]
            out[i, j] = s / a[i, i]


@kernel
def dot(a, b):
    """Return the inner product of two matrices."""
    short_loops()
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += a[i, j] * b[i, j]
    return total


# Array expressions and slices would do as well, but numba takes seconds to compile each of them.


@kernel
def copy(a, out):
    """Write `a` to `out`, both of two axes."""
    short_loops()
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = a[i, j]


@kernel
def add(out, factor, a):
    """Add ``factor * a`` to `out`, both of two axes."""
    short_loops()
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] += factor * a[i, j]


@kernel
def scale(out, factor):
    """Multiply `out`, of two axes, by a number."""
    short_loops()
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] *= factor


@kernel
def copy_vector(a, out):
    """Write `a` to `out`, both of one axis."""
    short_loops()
    for i in range(len(a)):
        out[i] = a[i]
