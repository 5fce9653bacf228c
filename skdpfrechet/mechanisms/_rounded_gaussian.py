"""Integers with exactly the law of ``round(s Z)``, Z standard normal.

Z is a function of a sign and of a uniform number P on (0, ½): ``|Z| = Q⁻¹(P)`` with the upper tail
``Q(z) = ½ erfc(z/√2)``. P is known by its first bits only, and more are drawn until all
continuations round to the same integer. Nearly always 63 bits and float64 decide that, by Taylor
polynomials of Q⁻¹ with a proven error and by sums and products, which IEEE 754 rounds correctly.
The rest is decided in ball arithmetic (Arb), at whatever precision it takes. No error of a
mathematical library enters.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from math import nextafter
from threading import Lock
from typing import Any

import numpy as np

from skdpfrechet._numerics import Array
from skdpfrechet.mechanisms._system_generator import RandomSource

_OCTAVES = 39  # Taylor polynomials cover P from 2^-40 on
_PIECES = 32  # of an octave
_DEGREE = 8
# Bound on the error of Q⁻¹ in float64. The remainder is below 2^-50, which
# tests/mechanisms/test_rounded_gaussian.py computes; coefficients, Horner's rule, the product with
# s and the rounding of P to 53 bits add a few units of 2^-53 times Q⁻¹ < 8.
_ERROR = 2.0**-44
_FINEST = 2.0**40  # from this s on float64 decides too little to be worth trying
_lock = Lock()


@cache
def has_flint() -> bool:
    """Whether python-flint is installed."""
    return find_spec("flint") is not None


def require_flint() -> Any:
    """Return python-flint, or say which extra installs it."""
    if not has_flint():
        raise ImportError(
            "Float-safe noise requires python-flint: install skdpfrechet with the extra 'secure'."
        )
    import flint

    return flint


def rounded_gaussian(s: Array | float, shape: tuple[int, ...], rng: RandomSource) -> Array:
    """Draw independent ``round(s Z)`` of a given shape.

    Parameters
    ----------
    s : float or ndarray
        Standard deviations in units of the integers, broadcast to `shape`.
    shape : tuple of int
    rng : SystemGenerator or numpy.random.Generator

    Returns
    -------
    ndarray of int64, or of Python integers where some `s` is 2^40 or more
    """
    s = np.full(shape, s, dtype=float).ravel()
    words = np.frombuffer(rng.bytes(8 * s.size), dtype="<u8")
    tail = words & np.uint64(2**63 - 1)  # P is in [tail, tail + 1)/2^64
    if (s >= _FINEST).any():
        size, undecided = np.empty(s.size, dtype=object), np.arange(s.size)
    else:
        p = np.minimum(tail * 2.0**-64, nextafter(0.5, 0))
        covered = np.maximum(p, 2.0 ** (-_OCTAVES - 1))
        x = s * _tail_quantile(covered)
        nearest = np.rint(x)
        # dz = dP/φ(z) ≤ √(π/2) dP/P is what the bits of P that are not drawn can change.
        margin = s * (_ERROR + 2.0**-63 / covered)
        undecided = np.flatnonzero((p < covered) | (np.abs(x - nearest) >= 0.5 - margin))
        size = nearest.astype(np.int64)
    for i in undecided:
        size[i] = _by_ball_arithmetic(float(s[i]), int(tail[i]), rng)
    return np.where(words >> np.uint64(63) == 0, size, -size).reshape(shape)


def _by_ball_arithmetic(s: float, tail: int, rng: RandomSource) -> int:
    """Return ``round(s Q⁻¹(P))`` for P in [tail, tail + 1)/2^64, drawing more bits of P."""
    flint, bits = require_flint(), 64
    while True:
        if tail > 0:
            # The precision belongs to the process. Should someone else lower it meanwhile, the
            # balls get wider and the loop longer, and the answer stays right.
            with _lock, flint.ctx.workprec(bits + 128):
                ends = [
                    (s * _tail_quantile_ball(flint, flint.arb(end) * flint.arb(2) ** -bits) + 0.5)
                    .floor()
                    .unique_fmpz()
                    for end in (tail, tail + 1)
                ]
            if ends[0] is not None and ends[0] == ends[1]:
                return int(ends[0])
        tail = tail << 64 | int.from_bytes(rng.bytes(8), "little")
        bits += 64


def _tail_quantile_ball(flint: Any, p: Any) -> Any:
    return (2 * p).erfcinv() * flint.arb(2).sqrt()


def _tail_quantile(p: Array) -> Array:
    """Return Q⁻¹(p) for p in [2^-40, ½), within less than `_ERROR`."""
    mantissa, exponent = np.frexp(p)  # in [½, 1)
    piece = ((mantissa - 0.5) * (2 * _PIECES)).astype(np.intp)
    t = mantissa - _midpoint(piece)  # exact
    row = (exponent + _OCTAVES) * _PIECES + piece
    coefficients = _taylor_table().take(row, axis=1)
    z = coefficients[_DEGREE]
    for order in range(_DEGREE - 1, -1, -1):
        z = coefficients[order] + t * z
    return np.asarray(z)


def _midpoint(piece: Array | int) -> Any:
    return 0.5 + (piece + 0.5) / (2 * _PIECES)


@cache
def _taylor_table() -> Array:
    """Return the coefficients, one column per piece, in the mantissa about its midpoint."""
    flint = require_flint()
    columns = []
    with _lock, flint.ctx.workprec(128):
        for exponent in range(-_OCTAVES, 0):
            for piece in range(_PIECES):
                p = flint.arb(_midpoint(piece)) * flint.arb(2) ** exponent
                series = taylor_coefficients(p, exponent, _DEGREE)
                columns.append([float(c.mid()) for c in series])
    return np.array(columns).T.copy()


def taylor_coefficients(p: Any, exponent: int, degree: int) -> list[Any]:
    """Return those of ``t ↦ Q⁻¹(p + 2^exponent t)`` as balls, for all points of the ball `p`."""
    flint = require_flint()
    z = _tail_quantile_ball(flint, p)
    # Taylor polynomial of Q about z without its constant, then its inverse
    line = flint.arb_series([z, 1], prec=degree + 1) / flint.arb(2).sqrt()
    rise = (line.erfc() / 2).coeffs()[1:]
    inverse = flint.arb_series([0, *rise], prec=degree + 1).reversion().coeffs()
    scale = flint.arb(2) ** exponent
    return [z, *(c * scale**k for k, c in enumerate(inverse[1:], start=1))]
