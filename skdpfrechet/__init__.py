"""Differentially private inference on Riemannian manifolds, the scikit-learn way."""

from skdpfrechet.estimators import (
    DPMDM,
    DPFrechetMean,
    DPFrechetVariance,
    DPPrincipalGeodesics,
    audit_pipeline,
)
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
    "DPMDM",
    "GDP",
    "ApproxDP",
    "ConfidenceInterval",
    "ConfidenceRegion",
    "DPFrechetMean",
    "DPFrechetVariance",
    "DPPrincipalGeodesics",
    "PrivacyReport",
    "PureDP",
    "TestResult",
    "audit_pipeline",
    "compose",
    "frechet_anova",
    "one_sample_test",
    "two_sample_test",
    "variance_ratio_interval",
    "variance_test",
]

__version__ = "0.1.0"
