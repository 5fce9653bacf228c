"""Compiled passes over many records, used where numba is installed.

Nothing here imports numba: whoever needs a kernel asks `compiled()` first and then imports its
module. The numpy functions of the layers above are the reference and the fallback.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.util import find_spec

__all__ = ["compiled", "kernels", "n_threads", "threads"]

_THREADS: ContextVar[int] = ContextVar("threads", default=1)
_KERNELS: ContextVar[str | None] = ContextVar("kernels", default=None)


def compiled() -> bool:
    """Return whether to use compiled kernels: numba is installed, and nobody said otherwise.

    The environment variable ``SKDPFRECHET_KERNELS=numpy`` turns them off.
    """
    choice = _KERNELS.get() or os.environ.get("SKDPFRECHET_KERNELS", "numba")
    return choice != "numpy" and _numba_installed()


@cache
def _numba_installed() -> bool:
    return find_spec("numba") is not None


@contextmanager
def kernels(name: str) -> Iterator[None]:
    """Use ``"numba"`` (where installed) or ``"numpy"`` inside the block."""
    token = _KERNELS.set(name)
    try:
        yield
    finally:
        _KERNELS.reset(token)


def n_threads() -> int:
    """Return how many threads a pass may use."""
    return _THREADS.get()


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let passes inside the block use up to `count` threads. Results do not depend on it."""
    token = _THREADS.set(count)
    try:
        yield
    finally:
        _THREADS.reset(token)
