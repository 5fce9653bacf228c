"""scikit-learn estimators: the only layer that sees records and a mechanism together."""

from skdpfrechet.estimators._mdm import DPMDM
from skdpfrechet.estimators._mean import DPFrechetMean
from skdpfrechet.estimators._pipeline_audit import PipelineAudit, StepAudit, audit_pipeline
from skdpfrechet.estimators._principal_geodesics import DPPrincipalGeodesics
from skdpfrechet.estimators._variance import DPFrechetVariance

__all__ = [
    "DPMDM",
    "DPFrechetMean",
    "DPFrechetVariance",
    "DPPrincipalGeodesics",
    "PipelineAudit",
    "StepAudit",
    "audit_pipeline",
]
