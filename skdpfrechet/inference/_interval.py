"""Confidence intervals."""

from __future__ import annotations

from typing import NamedTuple


class ConfidenceInterval(NamedTuple):
    """A confidence interval for a number; unpacks like a tuple.

    Parameters
    ----------
    low, high : float
        End points.

    Examples
    --------
    >>> from skdpfrechet.inference import ConfidenceInterval
    >>> low, high = ConfidenceInterval(0.5, 2.0)
    >>> high - low
    1.5
    """

    low: float
    high: float
