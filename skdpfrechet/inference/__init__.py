"""Post-processing of releases: regions, intervals, tests. Nothing here sees a record."""

from skdpfrechet.inference._hessian import hessian_range, mean_hessian_bound
from skdpfrechet.inference._interval import ConfidenceInterval
from skdpfrechet.inference._mean import MeanInference, MeanRelease
from skdpfrechet.inference._region import ConfidenceRegion
from skdpfrechet.inference._tests import (
    TestResult,
    frechet_anova,
    one_sample_test,
    two_sample_test,
)
from skdpfrechet.inference._variance import (
    VarianceRelease,
    noise_bias,
    squared_distance_spread,
    variance_interval,
)
from skdpfrechet.inference._variance_tests import variance_ratio_interval, variance_test

__all__ = [
    "ConfidenceInterval",
    "ConfidenceRegion",
    "MeanInference",
    "MeanRelease",
    "TestResult",
    "VarianceRelease",
    "frechet_anova",
    "hessian_range",
    "mean_hessian_bound",
    "noise_bias",
    "one_sample_test",
    "squared_distance_spread",
    "two_sample_test",
    "variance_interval",
    "variance_ratio_interval",
    "variance_test",
]
