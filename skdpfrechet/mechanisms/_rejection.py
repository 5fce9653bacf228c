"""Exact draws by rejection: proposals until enough are kept, and the tangent envelope."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq

from skdpfrechet._numerics import Array

if TYPE_CHECKING:  # its gamma variables come by `collect`
    from skdpfrechet.mechanisms._system_generator import RandomSource

_LARGEST_ROUND = 20_000  # proposals at a time, which bounds the memory


def collect(draw: Callable[[int], Array], count: int) -> Array:
    """Return `count` draws; ``draw(size)`` makes `size` proposals and returns those it keeps."""
    if count == 0:
        return draw(0)
    parts: list[Array] = []
    proposed, kept = 2, 1
    while (missing := count - sum(map(len, parts))) > 0:
        size = missing * proposed // max(kept, 1) + 16
        if parts:  # the first round is never cut, so the usual case is one round
            size = min(size, _LARGEST_ROUND)
        part = draw(size)
        parts.append(part[:missing])
        proposed, kept = size, len(part)
    return np.concatenate(parts)


class TangentEnvelope:
    """Rejection from three tangents of a concave log density: at its mode and on either side.

    Parameters
    ----------
    log_density : callable
        Concave on (0, `end`), up to a constant.
    slope : callable
        Its derivative.
    mode : float
        Where it is largest: in (0, `end`), or 0 if the slope vanishes there.
    end : float
        End of the support, may be infinite.
    """

    def __init__(
        self,
        log_density: Callable[[Array], Array],
        slope: Callable[[float], float],
        mode: float,
        end: float,
    ) -> None:
        self.log_density, self.end = log_density, end
        top = float(log_density(np.array(max(mode, 1e-300))))

        def drop(s: float) -> float:
            return float(log_density(np.array(s))) - top + 1

        points = [mode]
        far = end * (1 - 1e-12)
        if np.isinf(end):
            far = 2 * mode
            while drop(far) >= 0:
                far *= 2
        if drop(far) < 0:
            points.append(float(brentq(drop, max(mode, 1e-300), far)))
        if mode > 0 and drop(mode * 1e-6) < 0:
            points.insert(0, float(brentq(drop, mode * 1e-6, mode)))
        slopes = [0.0 if s == mode else slope(s) for s in points]
        heights = [float(log_density(np.array(max(s, 1e-300)))) for s in points]
        # Knots where neighbouring tangents meet; their slopes decrease, so they do meet.
        knots = [0.0]
        for i in range(len(points) - 1):
            rise = heights[i + 1] - slopes[i + 1] * points[i + 1]
            rise -= heights[i] - slopes[i] * points[i]
            knots.append(rise / (slopes[i] - slopes[i + 1]))
        knots.append(end)
        self.low, self.high = np.array(knots[:-1]), np.array(knots[1:])
        self.slope, self.height = np.array(slopes), np.array(heights)
        self.point = np.array(points)
        # Each piece decays exponentially from its higher end, which never overflows.
        self.anchor = np.where(self.slope > 0, self.high, self.low)
        start = self.height + self.slope * (self.anchor - self.point) - top
        width, rate = self.high - self.low, np.abs(self.slope)
        safe = np.where(rate > 0, rate, 1.0)
        mass = np.exp(start) * np.where(rate > 0, -np.expm1(-safe * width) / safe, width)
        self.share = np.cumsum(mass) / mass.sum()

    def __call__(self, size: int, rng: RandomSource) -> Array:
        """Make `size` proposals and return those that are kept."""
        piece = np.searchsorted(self.share[:-1], rng.random(size))
        slope, width = self.slope[piece], (self.high - self.low)[piece]
        u, rate = rng.random(size), np.abs(slope)
        safe = np.where(rate > 0, rate, 1.0)
        flat = np.where(rate > 0, 0.0, width)  # an infinite piece is never flat
        way = np.where(rate > 0, -np.log1p(u * np.expm1(-safe * width)) / safe, u * flat)
        s = self.anchor[piece] + np.where(slope > 0, -way, way)
        envelope = self.height[piece] + slope * (s - self.point[piece])
        with np.errstate(divide="ignore"):
            log_u = np.log(rng.random(size))
        inside = (s > 0) & (s < self.end)
        density = self.log_density(np.where(inside, s, self.point[-1]))
        return np.asarray(s[inside & (log_u < density - envelope)])
