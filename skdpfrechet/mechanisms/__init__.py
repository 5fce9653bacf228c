"""Noise mechanisms: `release` is the only place where private values meet randomness."""

from skdpfrechet.mechanisms._base import Mechanism
from skdpfrechet.mechanisms._gaussian import Gaussian, SymmetricGaussian
from skdpfrechet.mechanisms._grid import Grid
from skdpfrechet.mechanisms._projected_gaussian import ProjectedGaussian
from skdpfrechet.mechanisms._riemannian_gaussian import RiemannianGaussian
from skdpfrechet.mechanisms._riemannian_laplace import RiemannianLaplace
from skdpfrechet.mechanisms._system_generator import RandomSource, SystemGenerator
from skdpfrechet.mechanisms._wrapped_gaussian import WrappedGaussian

__all__ = [
    "Gaussian",
    "Grid",
    "Mechanism",
    "ProjectedGaussian",
    "RandomSource",
    "RiemannianGaussian",
    "RiemannianLaplace",
    "SymmetricGaussian",
    "SystemGenerator",
    "WrappedGaussian",
]
