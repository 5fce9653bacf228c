"""How kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba
from numba import extending, types

from skdpfrechet._kernels._vector import FASTMATH

_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",  # a division that may raise is not vectorised
    "nogil": True,
    "fastmath": FASTMATH,
    "no_cfunc_wrapper": True,  # takes an eighth of the time to compile, and nobody calls it
}

_njit: Any = numba.njit  # its stubs do not know all options
_intrinsic: Any = extending.intrinsic


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


@_intrinsic
def short_loops(typing_context):
    """Ask for short code of the calling function: its loops are short, copies of them not faster.

    To vectorise and unroll such loops takes LLVM longer than everything else.
    """

    def codegen(context, builder, signature, args):
        builder.function.attributes.add("optsize")
        return context.get_dummy_value()

    return types.void(), codegen
