"""Displays of releases, in scikit-learn's style; matplotlib is imported when one is drawn."""

from skdpfrechet.plotting._region_display import ConfidenceRegionDisplay
from skdpfrechet.plotting._utility_display import PrivacyUtilityDisplay

__all__ = ["ConfidenceRegionDisplay", "PrivacyUtilityDisplay"]
