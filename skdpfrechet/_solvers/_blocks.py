"""Records in blocks that are never together in one place: every statistic is a sum over blocks.

The iterations are those of records in memory; one evaluation is one pass over the blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from skdpfrechet._kernels._log_nodes import allowed_error
from skdpfrechet._numerics import Array, sqrt_pair
from skdpfrechet._solvers._moments import exact_second_moment_sum
from skdpfrechet._solvers._newton import NewtonProblem
from skdpfrechet._solvers._sample import Sample, Statistic
from skdpfrechet._solvers._spd import descend
from skdpfrechet.manifolds import FlatManifold, Manifold, SPDAffineInvariant

Total = Callable[[Statistic], tuple[Array, ...]]


class Blocks(Sample):
    """One sample, of which only sums over blocks are known.

    Parameters
    ----------
    manifold : Manifold
    n : int
        Number of all records.
    total : callable
        ``total(statistic)`` is the sum of ``statistic(block)`` over all blocks, each a `Sample`, in
        an order that does not depend on who is ready first. A statistic can be pickled.
    """

    def __init__(self, manifold: Manifold, n: int, total: Total) -> None:
        self.manifold = manifold
        self._n = n
        self._total = total

    @property
    def points(self) -> Array:
        """Nobody has them."""
        raise TypeError("Records in blocks are never together in one array.")

    @property
    def n(self) -> int:
        """Number of all records."""
        return self._n

    def total(self, statistic: Statistic) -> tuple[Array, ...]:
        """Return the sums over the records that `statistic` computes for one block."""
        return self._total(statistic)

    def average(self, statistic: Statistic) -> tuple[Array, ...]:
        """Return the means over the records that `statistic` computes for one block."""
        return tuple(value / self.n for value in self.total(partial(_weighted, statistic)))

    def mean(
        self, start: Array, radius: float, tolerance: float, max_iter: int
    ) -> tuple[Array, Array]:
        if isinstance(self.manifold, FlatManifold):
            (mean,) = self.average(_chart_mean)
            return self.manifold.chart_inverse(mean), np.zeros(())
        if isinstance(self.manifold, SPDAffineInvariant):
            # A residual below the error of its own evaluation is not worth a pass.
            error = len(start) ** 0.5 * allowed_error("full", 1.0)
            goal = max(tolerance - error, error)
            mean, residual = self._spd_mean(_log_means, start, goal, max_iter)
            return mean, residual + error
        return self.improve(start, start, radius, tolerance, max_iter)

    def improve(
        self, begin: Array, start: Array, radius: float, tolerance: float, max_iter: int
    ) -> tuple[Array, Array]:
        if isinstance(self.manifold, SPDAffineInvariant):
            return self._spd_mean(_reference_log_means, begin, tolerance, max_iter)
        return _BlocksProblem(self, start, radius).solve(begin, tolerance, max_iter)

    def mean_log(self, base: Array) -> Array:
        return self.average(partial(_mean_log, base))[0]

    def _spd_mean(
        self,
        statistic: Callable[..., tuple[Array, ...]],
        begin: Array,
        tolerance: float,
        max_iter: int,
    ) -> tuple[Array, Array]:
        def evaluate(factor: Array, inverse: Array) -> tuple[Array, ...]:
            return self.average(partial(statistic, factor, inverse))

        return descend(evaluate, *sqrt_pair(begin), tolerance, max_iter)

    def second_moment(self, base: Array, middle: Array, radius: float) -> Array:
        """Return the uncentred second moment of `coordinates`, shape (dim, dim)."""
        return self.average(partial(_second_moment, base, middle, radius))[0]

    def exact_second_moment(
        self, base: Array, middle: Array, radius: float, step: float
    ) -> tuple[Array, Callable[[Array], Array]]:
        """Return what the numpy sample does, in its frame: kernels may be on some machines only."""
        (total,) = self.total(partial(_exact_second_moment, base, middle, radius, step))
        return total, np.asarray


class _BlocksProblem(NewtonProblem):
    def __init__(self, blocks: Blocks, start: Array, radius: float) -> None:
        super().__init__(blocks.manifold, np.empty((0, *start.shape)), start, radius)
        self.blocks = blocks

    def evaluate(self, p: Array) -> tuple[Array, Array, Array]:
        terms = partial(_newton_terms, self.start, self.radius, p)
        gradient, objective, hessian = self.blocks.average(terms)
        return gradient, objective, hessian


# --- statistics of one block, which go to wherever it is ------------------------------------------


def _weighted(statistic: Statistic, sample: Sample) -> tuple[Array, ...]:
    return tuple(sample.n * value for value in statistic(sample))


def _chart_mean(sample: Sample) -> tuple[Array, ...]:
    assert isinstance(sample.manifold, FlatManifold)
    return (sample.manifold.chart(sample.points).mean(axis=0),)


def _log_means(factor: Array, inverse: Array, sample: Sample) -> tuple[Array, ...]:
    return sample.log_means(factor, inverse)


def _reference_log_means(factor: Array, inverse: Array, sample: Sample) -> tuple[Array, ...]:
    return sample.reference().log_means(factor, inverse)


def _mean_log(base: Array, sample: Sample) -> tuple[Array, ...]:
    return (sample.reference().mean_log(base),)


def _newton_terms(start: Array, radius: float, p: Array, sample: Sample) -> tuple[Array, ...]:
    return sample.newton_problem(start, radius).evaluate(p)


def _second_moment(base: Array, middle: Array, radius: float, sample: Sample) -> tuple[Array, ...]:
    return (sample.second_moment(base, middle, radius),)


def _exact_second_moment(
    base: Array, middle: Array, radius: float, step: float, sample: Sample
) -> tuple[Array, ...]:
    return (exact_second_moment_sum(sample.coordinates(base, middle, radius), step),)
