"""Differentially private inference on Riemannian manifolds, the scikit-learn way."""

from skdpfrechet.estimators import DPFrechetMean, DPFrechetVariance
from skdpfrechet.inference import ConfidenceInterval, ConfidenceRegion
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
    "compose",
]

__version__ = "0.1.0"
