"""Records that are read block by block, anew for every statistic, and never held together.

Blocks go through the checks and into the ball of the fit as records in memory do. Which block a
record is in says nothing about how it is treated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skdpfrechet._numerics import Array
from skdpfrechet._solvers import Blocks, Sample, Statistic, Total
from skdpfrechet.estimators import _dask
from skdpfrechet.estimators._ball import PublicBall, enter
from skdpfrechet.estimators._records import Unread, admit
from skdpfrechet.manifolds import Manifold

BLOCK = 2**20  # numbers of a memory map that are read at a time: 8 MB


@dataclass(frozen=True, eq=False)
class Reader:
    """How a block becomes a sample in the ball: public numbers, which go to wherever blocks are.

    `n` counts all records, `typed` is that of `Unread`.
    """

    manifold: Manifold
    ball: PublicBall
    n: int
    replace: bool
    typed: bool

    def __call__(self, data: Any) -> Sample:
        points, epsilon = Unread(data, self.typed).numbers(replace=self.replace)
        substitute = self.ball.center if self.replace else None

        def admit_some(some: Array) -> Array:
            return admit(self.manifold, some, epsilon, substitute).points

        return enter(self.ball, points, None, self.n, admit_some).sample


def read_blocks(reader: Reader, unread: Unread) -> Blocks:
    """Return the records as a sample of which nothing was read yet."""
    chunked = _dask.is_dask(unread.data)
    total = _dask.total(unread.data, reader) if chunked else _sliced(unread.data, reader)
    return Blocks(reader.ball.local.model, reader.n, total)


def _sliced(data: Array, reader: Reader) -> Total:
    step = max(1, BLOCK // max(1, int(np.prod(data.shape[1:]))))

    def total(statistic: Statistic) -> tuple[Array, ...]:
        sums: tuple[Array, ...] | None = None
        for start in range(0, len(data), step):
            values = statistic(reader(data[start : start + step]))
            sums = values if sums is None else _dask.add(sums, values)
        assert sums is not None  # there is a record
        return sums

    return total
