"""Float-safe Gaussian noise: a public grid, a statistic rounded to it, exact noise in its steps."""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp, ldexp, prod, sqrt

import numpy as np

from skdpfrechet import sensitivity as sensitivities
from skdpfrechet._numerics import Array
from skdpfrechet._validation import check_positive, check_positive_integer
from skdpfrechet.mechanisms._base import gaussian_scale
from skdpfrechet.mechanisms._rounded_gaussian import require_flint, rounded_gaussian
from skdpfrechet.mechanisms._system_generator import RandomSource
from skdpfrechet.privacy import GDP, ApproxDP

_FINENESS = 2.0**-20  # of the step, against the sensitivity and the noise
_SMALLEST_STEP = 2.0**-960  # multiples of it are exact in float64
_LARGEST_COUNT = 2.0**62  # of steps, so that int64 holds a statistic and its noise


@dataclass(frozen=True)
class Grid:
    """Multiples of a public power of two, the only values that a float-safe release takes.

    Parameters
    ----------
    step : float
        A power of two.
    entries : int
        Number of entries of one private value, for a symmetric matrix those of both triangles.

    Notes
    -----
    The value v is rounded to ``k·step``, k integers, and ``(k + M)·step`` is released, M with
    exactly the law of ``round(σZ/step)``. Since k is an integer, ``k + round(σZ/step)`` is
    ``round(k + σZ/step)``: post-processing of the Gaussian mechanism in real numbers, at the
    rounded value. So μ = Δ'/σ holds as it stands, Δ' the sensitivity of the rounded value
    (`skdpfrechet.sensitivity.on_grid`). What floating-point noise betrays, which of two close
    values can have led to an output at all [1]_, is not there to be seen: every multiple of the
    step can follow from every value, with the probabilities of the theorem.

    References
    ----------
    .. [1] I. Mironov, "On significance of the least significant bits for differential privacy",
       CCS 2012.

    Examples
    --------
    >>> from skdpfrechet.mechanisms import Grid
    >>> 0.5 < Grid(step=2.0**-21, entries=2).sensitivity(0.5) < 0.500001
    True
    """

    step: float
    entries: int

    def __post_init__(self) -> None:
        check_positive("step", self.step)
        check_positive_integer("entries", self.entries)
        if frexp(self.step)[0] != 0.5 or self.step < _SMALLEST_STEP:
            raise ValueError(f"step must be a power of two from 2^-960 on, got {self.step!r}.")

    def sensitivity(self, sensitivity: float) -> float:
        """Return the sensitivity of the rounded value from that of the value."""
        return sensitivities.on_grid(sensitivity, self.entries, self.step)

    def add_noise(self, value: Array, sigma: Array | float, rng: RandomSource) -> Array:
        """Round `value` and add exact noise of scale `sigma`, one for all entries or one each."""
        scaled = np.rint(np.asarray(value) / self.step)
        within = np.minimum(np.maximum(scaled, -_LARGEST_COUNT), _LARGEST_COUNT)
        count = np.where(np.isnan(within), 0.0, within).astype(np.int64)
        count = count + rounded_gaussian(sigma / self.step, count.shape, rng)
        return np.asarray(count.astype(float) * self.step)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise unless a value of this shape has `entries` entries."""
        if prod(shape) != self.entries:
            raise ValueError(
                f"center must have {self.entries} entries, for which its noise was calibrated, "
                f"got shape {shape}."
            )


def add_gaussian(value: Array, sigma: float, grid: Grid | None, rng: RandomSource) -> Array:
    """Return `value` with Gaussian noise on every entry, on the grid if there is one."""
    if grid is not None:
        return grid.add_noise(value, sigma, rng)
    return np.asarray(value + sigma * rng.standard_normal(np.shape(value)))


def gaussian_grid(
    sensitivity: float, guarantee: GDP | ApproxDP, entries: int
) -> tuple[float, Grid | None]:
    """Return σ and the grid of float-safe noise that gives `guarantee`; no grid without noise.

    The step is the largest power of two for which rounding adds at most 2^-20 of the sensitivity
    and which is at most 2^-20 σ: public numbers.
    """
    require_flint()  # fails here rather than after records were looked at
    sigma = gaussian_scale(sensitivity, guarantee)
    if sigma == 0:
        return sigma, None
    largest = _FINENESS * min(sensitivity / sqrt(entries), sigma)
    grid = Grid(max(ldexp(1.0, frexp(largest)[1] - 1), _SMALLEST_STEP), entries)
    return gaussian_scale(grid.sensitivity(sensitivity), guarantee), grid
