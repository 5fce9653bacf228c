"""What one run released, and its description as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from math import isinf
from typing import Any

from skdpfrechet._numerics import Array
from skdpfrechet.inference import ConfidenceInterval, ConfidenceRegion
from skdpfrechet.privacy import PrivacyReport

SCHEMA = "skdpfrechet-release/2"
SHOWN_DELTA = 1e-5


@dataclass(frozen=True, eq=False)
class Released:
    """A private mean and, perhaps, variance: releases and public numbers only.

    `header_lines` of the file were read as names; None if it is no table of text.
    """

    date: str
    version: str
    n: int
    center: Array
    radius: float
    region: ConfidenceRegion
    privacy: PrivacyReport
    variance: float | None = None
    interval: ConfidenceInterval | None = None
    header_lines: int | None = None

    @property
    def mean(self) -> Array:
        """The released mean."""
        return self.region.center

    @property
    def mu(self) -> float:
        """What the release cost."""
        return self.privacy.total.mu

    @property
    def epsilon(self) -> float:
        """The ε that belongs to δ = `SHOWN_DELTA`."""
        return self.privacy.epsilon(SHOWN_DELTA)

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold: no NaN, and the string "inf" for infinity."""
        region = self.region.to_dict()
        spread = None
        if self.variance is not None and self.interval is not None:
            spread = {
                "estimate": self.variance,
                "interval": [_json_number(bound) for bound in self.interval],
            }
        return {
            "schema": SCHEMA,
            "skdpfrechet_version": self.version,
            "date": self.date,
            "manifold": region["manifold"],
            "n": self.n,
            "header_lines": self.header_lines,
            "unit": self.privacy.unit.to_dict(),
            "mu": self.mu,
            "epsilon": {"epsilon": _json_number(self.epsilon), "delta": SHOWN_DELTA},
            "confidence_level": region["confidence_level"],
            "ball": {"center": self.center.tolist(), "radius": self.radius},
            "mean": self.mean.tolist(),
            "region": region,
            "variance": spread,
            "privacy": self.privacy.to_dict(),
        }


def _json_number(value: float) -> float | str:
    return "inf" if isinf(value) else float(value)
