"""Threads over compiled passes, which release the interpreter lock.

Work is cut by its size alone, never by the number of threads, and every piece writes its own part
of the output: results are the same bits for any number of threads.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

Task = Callable[[], None]

_THREAD_SECONDS = 5e-4  # work per thread below which another one does not pay
_SEGMENT = 2**17  # numbers read per segment: a megabyte, .1 to .5 ms


def run(tasks: Sequence[Task], seconds: float, n_jobs: int) -> None:
    """Run independent tasks that together take about `seconds`, in threads if that pays."""
    threads = min(n_jobs, len(tasks), int(seconds / _THREAD_SECONDS))
    if threads < 2:
        for task in tasks:
            task()
        return
    for future in [_pool(threads).submit(task) for task in tasks]:
        future.result()


def split(task: Callable[[int, int], None], segments: int, n_jobs: int) -> list[Task]:
    """Cut the segments into a few ranges per thread."""
    pieces = min(segments, 4 * n_jobs) if n_jobs > 1 else 1
    cuts = [segments * i // pieces for i in range(pieces + 1)]
    return [functools.partial(task, *cut) for cut in itertools.pairwise(cuts)]


def segment_count(numbers: int) -> int:
    """Return how many segments `numbers` numbers are cut into."""
    return max(1, numbers // _SEGMENT)


def run_segments(
    function: Callable[[int, int], None], segments: int, work: int, n_jobs: int
) -> None:
    """Call ``function(first, last)`` on ranges that cover 0, ..., `segments` - 1.

    Parameters
    ----------
    function : callable
        Computes the segments from `first` up to `last`, each independently of the range.
    segments : int
    work : int
        Total cost in numbers read, or as many steps of about a nanosecond.
    """
    run(split(function, segments, n_jobs), 1e-9 * work, n_jobs)


@functools.lru_cache(maxsize=4)
def _pool(threads: int) -> ThreadPoolExecutor:
    """Return a pool that is kept: to start threads costs as much as .1 ms of work."""
    return ThreadPoolExecutor(threads, thread_name_prefix="skdpfrechet")


if hasattr(os, "register_at_fork"):  # a child inherits the pool, but none of its threads
    os.register_at_fork(after_in_child=_pool.cache_clear)
