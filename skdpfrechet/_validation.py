"""Checks of scalar parameters: one-sentence errors that name the parameter, the rule and the value.

Values quoted in these errors are public parameters, never data.
"""

from __future__ import annotations

import math
import unicodedata
from numbers import Integral, Real


def check_real(name: str, value: object) -> float:
    """Return `value` as a float; booleans, strings and NaN are refused."""
    # A float is a Real, which takes the abstract class longer to see than all the rest.
    if isinstance(value, bool) or not isinstance(value, float | Real):
        raise TypeError(f"{name} must be a real number, got {value!r}.")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name} must be a number that float64 holds, got a larger one.") from None
    if math.isnan(number):
        raise ValueError(f"{name} must be a number, got {value!r}.")
    return number


def check_positive(name: str, value: object, *, allow_inf: bool = False) -> float:
    """Return `value` as a positive float, finite unless `allow_inf`."""
    number = check_real(name, value)
    if number <= 0:
        raise ValueError(f"{name} must be positive, got {value!r}.")
    if math.isinf(number) and not allow_inf:
        raise ValueError(f"{name} must be finite, got {value!r}.")
    return number


def check_nonnegative(name: str, value: object, *, allow_inf: bool = False) -> float:
    """Return `value` as a float ≥ 0, finite unless `allow_inf`."""
    number = check_real(name, value)
    if number < 0:
        raise ValueError(f"{name} must not be negative, got {value!r}.")
    if math.isinf(number) and not allow_inf:
        raise ValueError(f"{name} must be finite, got {value!r}.")
    return number


def check_open_unit(name: str, value: object) -> float:
    """Return `value` as a float strictly between 0 and 1."""
    number = check_real(name, value)
    if not 0 < number < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value!r}.")
    return number


def check_positive_integer(name: str, value: object) -> int:
    """Return `value` as an int ≥ 1."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}.")
    number = int(value)
    if number < 1:
        raise ValueError(f"{name} must be at least 1, got {value!r}.")
    return number


def check_text(name: str, value: object) -> str:
    """Return a text that prints on one line, in the form where equal looks are equal."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {type(value).__name__}.")
    if not value.strip() or not value.isprintable():
        raise ValueError(f"{name} must be printable and not empty, got {value!r}.")
    return unicodedata.normalize("NFC", value)
