"""Non-private computations on records: the Fréchet mean, and moments at a given base point."""

from skdpfrechet._solvers._blocks import Blocks, Total
from skdpfrechet._solvers._frechet_mean import ConvergenceError, frechet_mean
from skdpfrechet._solvers._moments import (
    exact_moment_sums,
    exact_step,
    exact_sum,
    local_coordinates,
    second_moment,
)
from skdpfrechet._solvers._sample import Sample, Statistic, enter_ball, load

__all__ = [
    "Blocks",
    "ConvergenceError",
    "Sample",
    "Statistic",
    "Total",
    "enter_ball",
    "exact_moment_sums",
    "exact_step",
    "exact_sum",
    "frechet_mean",
    "load",
    "local_coordinates",
    "second_moment",
]
