"""Contestants that take turns, so that whatever else the machine does meets them all alike."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import perf_counter

import numpy as np

TURN = 5e-3  # seconds: a turn begins with cold caches, so it is not over after one short run


def clock(
    run: Callable[[], object], now: Callable[[], float] = perf_counter
) -> Callable[[], float]:
    """Return a function that times one turn: as many runs as last a few milliseconds."""
    number = 1

    def timed() -> float:
        nonlocal number
        start = now()
        for _ in range(number):
            run()
        seconds = (now() - start) / number
        if number == 1:
            number = max(1, int(TURN / seconds))
        return seconds

    return timed


def medians(contestants: dict[str, Callable[[], float]], budget: float) -> dict[str, float]:
    """Return the median seconds of each contestant, run in turn until `budget` seconds are spent.

    The garbage collector waits meanwhile, as in timeit.
    """
    first = {name: run() for name, run in contestants.items()}
    if sum(first.values()) < 10:  # the first runs compile, which matters little beyond
        first = {name: run() for name, run in contestants.items()}
    rounds = int(np.clip(budget / max(sum(first.values()), 1e-9), 3, 31))
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, run in contestants.items():
                seconds[name].append(run())
    finally:
        gc.enable()
    return {name: float(np.median(times)) for name, times in seconds.items()}
