"""Guarantees, their exact conversions and composition, and the report of what a fit spent.

Knows nothing of manifolds, data or estimators. Neighbours replace one record.
"""

from skdpfrechet.privacy._composition import compose
from skdpfrechet.privacy._conversions import gdp_delta, gdp_epsilon, gdp_mu, gdp_rho
from skdpfrechet.privacy._guarantees import GDP, ApproxDP, PureDP
from skdpfrechet.privacy._report import PrivacyReport, Release

__all__ = [
    "GDP",
    "ApproxDP",
    "PrivacyReport",
    "PureDP",
    "Release",
    "compose",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_mu",
    "gdp_rho",
]
