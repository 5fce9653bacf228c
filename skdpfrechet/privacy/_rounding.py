"""Exact numbers rounded to float64 in a direction, which the nearest float may miss by half an ulp.

Guarantees are compared and added as fractions: whether a bound holds is then no matter of rounding.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, isinf, nextafter


def float_up(exact: Fraction) -> float:
    """Return the smallest float that is at least `exact`, infinite beyond all of them."""
    try:
        nearest = float(exact)
    except OverflowError:
        return inf if exact > 0 else nextafter(-inf, 0)
    return nearest if nearest >= exact else nextafter(nearest, inf)


def quotient_up(dividend: float, divisor: float) -> float:
    """Return the smallest float that is at least ``dividend / divisor`` of finite numbers."""
    return float_up(Fraction(dividend) / Fraction(divisor))


def half_square_up(value: float) -> float:
    """Return the smallest float that is at least ``value² / 2``."""
    return inf if isinf(value) else float_up(Fraction(value) ** 2 / 2)
