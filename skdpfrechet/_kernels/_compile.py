"""How kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba

from skdpfrechet._kernels._vector import FASTMATH

_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",  # a division that may raise is not vectorised
    "nogil": True,
    "fastmath": FASTMATH,
    "no_cfunc_wrapper": True,  # takes an eighth of the time to compile, and nobody calls it
}

_njit: Any = numba.njit  # its stubs do not know all options


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, and keep the code on disk if a folder can be written.

    Elsewhere, on a read-only system without a home say, every process compiles anew.
    """
    compiled = _njit(**_OPTIONS)(function)
    with suppress(RuntimeError):  # numba found no folder
        compiled.enable_caching()
    return compiled


def inner(function: Callable[..., Any]) -> Any:
    """Compile a function that only kernels call: its code becomes part of theirs."""
    return _njit(no_cpython_wrapper=True, **_OPTIONS)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a function whose code is copied to every place that calls it."""
    return _njit(no_cpython_wrapper=True, forceinline=True, **_OPTIONS)(function)
