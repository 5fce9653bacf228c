"""scikit-learn estimators: the only layer that sees records and a mechanism together."""

from skdpfrechet.estimators._mean import DPFrechetMean
from skdpfrechet.estimators._variance import DPFrechetVariance

__all__ = ["DPFrechetMean", "DPFrechetVariance"]
