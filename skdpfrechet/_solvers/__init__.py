"""Non-private computations on records: the Fréchet mean, and moments at a given base point."""

from skdpfrechet._solvers._frechet_mean import ConvergenceError, frechet_mean
from skdpfrechet._solvers._moments import local_coordinates, second_moment

__all__ = ["ConvergenceError", "frechet_mean", "local_coordinates", "second_moment"]
