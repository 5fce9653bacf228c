"""Differentially private inference on Riemannian manifolds, the scikit-learn way."""

from skdpfrechet.estimators import DPFrechetMean, DPFrechetVariance
from skdpfrechet.inference import (
    ConfidenceInterval,
    ConfidenceRegion,
    TestResult,
    frechet_anova,
    one_sample_test,
    two_sample_test,
    variance_ratio_interval,
    variance_test,
)
from skdpfrechet.privacy import GDP, ApproxDP, PrivacyReport, PureDP, compose

__all__ = [
    "GDP",
    "ApproxDP",
    "ConfidenceInterval",
    "ConfidenceRegion",
    "DPFrechetMean",
    "DPFrechetVariance",
    "PrivacyReport",
    "PureDP",
    "TestResult",
    "compose",
    "frechet_anova",
    "one_sample_test",
    "two_sample_test",
    "variance_ratio_interval",
    "variance_test",
]

__version__ = "0.1.0"
