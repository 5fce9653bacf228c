"""Guarantees, their exact conversions and composition, the report of a fit, the ledger of many.

Knows nothing of manifolds, data or estimators. Neighbours replace one unit: a record, a group of
a named partition, or either by one of the same class.
"""

from skdpfrechet.privacy._composition import compose
from skdpfrechet.privacy._conversions import gdp_delta, gdp_epsilon, gdp_mu, gdp_rho
from skdpfrechet.privacy._guarantees import GDP, ApproxDP, PureDP
from skdpfrechet.privacy._ledger import PrivacyLedger
from skdpfrechet.privacy._ledger_report import LedgerReport, PrivacyBudgetError
from skdpfrechet.privacy._ledger_store import PrivacyLedgerError
from skdpfrechet.privacy._report import PrivacyReport, Release
from skdpfrechet.privacy._units import Group, Record, SameClass, Unit, as_unit

__all__ = [
    "GDP",
    "ApproxDP",
    "Group",
    "LedgerReport",
    "PrivacyBudgetError",
    "PrivacyLedger",
    "PrivacyLedgerError",
    "PrivacyReport",
    "PureDP",
    "Record",
    "Release",
    "SameClass",
    "Unit",
    "as_unit",
    "compose",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_mu",
    "gdp_rho",
]
