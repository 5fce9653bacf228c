"""Post-processing of releases: confidence regions and intervals. Nothing here sees a record."""

from skdpfrechet.inference._hessian import hessian_range, mean_hessian_bound
from skdpfrechet.inference._interval import ConfidenceInterval
from skdpfrechet.inference._mean import MeanInference, MeanRelease
from skdpfrechet.inference._region import ConfidenceRegion
from skdpfrechet.inference._variance import noise_bias, squared_distance_spread, variance_interval

__all__ = [
    "ConfidenceInterval",
    "ConfidenceRegion",
    "MeanInference",
    "MeanRelease",
    "hessian_range",
    "mean_hessian_bound",
    "noise_bias",
    "squared_distance_spread",
    "variance_interval",
]
