"""Riemannian Laplace noise on SPD(p) with the affine-invariant metric.

The noise is ``V = O diag(x) Oᵀ`` with O uniform on the orthogonal matrices and, for x ascending,

    density of x ∝ exp(-|x|/λ) ∏_{i<j} sinh((x_j - x_i)/2).

The product grows like ``exp(<g, x>)``, ``g_j = j - (p+1)/2``, so the density is integrable if and
only if 1/λ > |g| = √(p (p² - 1)/12).
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import lru_cache
from math import ceil, exp, inf, lgamma, log, log10, pi, sqrt, tanh

import numpy as np
from scipy.optimize import brentq

from skdpfrechet._numerics import Array, eigh, from_eigen, sqrt_pair, symmetrize, unvecd
from skdpfrechet.mechanisms._laplace_radius import log_flat_integral, log_unit_area
from skdpfrechet.mechanisms._rejection import TangentEnvelope, collect
from skdpfrechet.mechanisms._system_generator import RandomSource

MAX_SIZE = 10
_CONDITION = 30.0  # log of the condition number that float64 still represents
_LARGEST_LOG = 600.0
# Share of the limit of λ at which the second of the two proposals starts to be kept more often;
# the better one keeps at least .67, .40, .18, .06, .010 of its draws for p = 2, ..., 6.
_SWITCH = {2: 0.62, 3: 0.76, 4: 0.805, 5: 0.825, 6: 0.836}
_SHARE = 0.75  # beyond this share of the limit and p = 6, too few draws of either are kept


def growth(size: int) -> float:
    """Return |g|, the exponential rate at which volume grows."""
    return sqrt(size * (size**2 - 1) / 12)


def largest_scale(size: int) -> float:
    """Return the scale below which the noise can be drawn, infinite for p = 1."""
    if size == 1:
        return inf
    return (1.0 if size in _SWITCH else _SHARE) / growth(size)


# --- draws -------------------------------------------------------------------------------------


def sample_spd_noise(size: int, scale: float, count: int, rng: RandomSource) -> Array:
    """Draw `count` matrices V, exactly."""
    if size == 1:
        return rng.laplace(scale=scale, size=(count, 1, 1))
    if scale * growth(size) < _SWITCH.get(size, _SHARE):
        propose = _FlatDirections(size, scale)
        return collect(lambda number: propose(number, rng), count)
    return collect(lambda number: _propose_drift(size, scale, number, rng), count)


class _FlatDirections:
    """Proposals with a direction uniform among the symmetric matrices, kept while λ is small.

    With a_ij = |x_i - x_j|/2 and b = s κ, s = |x|, κ = 1/√(2(p-1)), the ratio of the volume to the
    flat one is ``∏ sinh(a_ij)/a_ij ≤ (sinh(b)/b)^m``, m = p(p-1)/2: ``log(sinh(√t)/√t)`` is
    concave and the m numbers a_ij² have a mean of at most b². So the length is drawn with density
    ``s^{p-1} sinh^m(κ s) exp(-s/λ)``, log-concave and integrable for 1/λ > m κ.
    """

    def __init__(self, size: int, scale: float) -> None:
        pairs = size * (size - 1) // 2
        rate = 1 / sqrt(2 * (size - 1))
        self.size, self.rate, self.pairs = size, rate, pairs

        def log_density(s: Array) -> Array:
            bound = np.log(s) + _log_sinh_ratio(rate * s)  # log sinh(κ s) up to a constant
            return np.asarray((size - 1) * np.log(s) + pairs * bound - s / scale)

        def slope(s: float) -> float:
            return (size - 1) / s + pairs * rate / tanh(rate * s) - 1 / scale

        # 1/x < coth x < 1 + 1/x
        low = scale * (size - 1 + pairs)
        mode = float(brentq(slope, low * (1 - 1e-12), low / (1 - scale * pairs * rate) * 1.000001))
        self.length = TangentEnvelope(log_density, slope, mode, inf)

    def __call__(self, number: int, rng: RandomSource) -> Array:
        s = self.length(number, rng)
        z = rng.standard_normal((len(s), self.size * (self.size + 1) // 2))
        v = unvecd(z * (s / np.linalg.norm(z, axis=-1))[:, None])
        x, _ = eigh(v)
        i, j = np.triu_indices(self.size, 1)
        volume = _log_sinh_ratio((x[:, j] - x[:, i]) / 2).sum(axis=-1)
        bound = self.pairs * _log_sinh_ratio(self.rate * s)
        return np.asarray(v[rng.random(len(s)) < np.exp(volume - bound)])


def _propose_drift(size: int, scale: float, number: int, rng: RandomSource) -> Array:
    """Make `number` proposals for λ close to its limit and return those that are kept.

    For x ascending the density is ``exp(-|x|/λ + <g, x>) ∏_{i<j} (1 - exp(x_i - x_j))``. The first
    factor is a multivariate hyperbolic law: x = W g + √W z, z standard normal, W of the law
    Gamma((p+1)/2) with rate (1/λ² - |g|²)/2. It is kept with probability the product, if ascending.
    """
    drift = np.arange(size) - (size - 1) / 2
    w = rng.gamma((size + 1) / 2, size=number) / _mixing_rate(size, scale)
    x = w[:, None] * drift + np.sqrt(w)[:, None] * rng.standard_normal((number, size))
    i, j = np.triu_indices(size, 1)
    keep = (np.diff(x) > 0).all(axis=-1)
    x = x[keep]
    share = np.prod(-np.expm1(x[:, i] - x[:, j]), axis=-1)
    x = x[rng.random(len(x)) < share]
    _, q = eigh(unvecd(rng.standard_normal((len(x), size * (size + 1) // 2))))
    return from_eigen(x, q)


def _mixing_rate(size: int, scale: float) -> float:
    c = growth(size)
    return (1 / scale - c) * (1 / scale + c) / 2


def _log_sinh_ratio(x: Array) -> Array:
    """Return ``log(sinh(x)/x)`` for x ≥ 0."""
    safe = np.where(x > 0, x, 1.0)
    return np.where(x > 0, safe + np.log(-np.expm1(-2 * safe) / (2 * safe)), 0.0)


def add_spd_noise(center: Array, v: Array) -> Array:
    """Return ``η^{1/2} exp(V) η^{1/2}``, made representable in float64.

    Eigenvalues below e^{-30} of the largest are raised to it, and the largest is kept below
    e^{600}: functions of the release alone, hence post-processing.
    """
    x, q = eigh(v)
    top = x[..., -1:]
    root, _ = sqrt_pair(center)
    w, o = eigh(symmetrize(root @ from_eigen(np.exp(x - top), q) @ root))
    logs = np.log(np.maximum(w, exp(-_CONDITION) * w[..., -1:])) + top
    logs = logs + np.clip(logs[..., -1:], -_LARGEST_LOG, _LARGEST_LOG) - logs[..., -1:]
    return from_eigen(np.exp(logs), o)


# --- the normaliser ----------------------------------------------------------------------------


@lru_cache(maxsize=256)
def log_spd_integral(size: int, scale: float) -> float:
    """Return the log of the integral of exp(-ρ/λ) over SPD(p).

    ``exp(-α|x|) = ∫ α (2πw)^{-1/2} exp(-|x|²/2w - α²w/2) dw`` turns it into a mixture over w of
    integrals of Riemannian Gaussians, each a Pfaffian, by de Bruijn's formula. The integral over w
    is the trapezoidal rule in log w.
    """
    dim = size * (size + 1) // 2
    flat = log_unit_area(dim) + log_flat_integral(dim, scale)
    if size == 1 or scale * dim * sqrt(size) < 1e-4:
        # E log ∏ sinh(a)/a ≈ E Σ a²/6 = p E|V - tr V/p|²/24, up to its square.
        return flat + size * (dim - 1) * (dim + 1) * scale**2 / 24
    rate = _mixing_rate(size, scale)
    step = 0.35 / sqrt(dim / 2)
    log_w = np.arange(log(1 / rate) - 80 / (size + 1), log((dim / 2 + 60) / rate), step)
    logs = [_log_pfaffian(size, exp(u / 2) / 2) - rate * exp(u) + (size + 1) / 2 * u for u in log_w]
    top = max(logs)
    mixture = top + log(step * float(np.exp(np.array(logs) - top).sum()))
    # Volume = K ∏|x_i - x_j| dx dO on ascending x; K from the Gaussian integral and Mehta's.
    mehta = sum(lgamma(1 + j / 2) - lgamma(1.5) for j in range(1, size + 1))
    log_k = (dim - size) / 2 * log(2 * pi) + lgamma(size + 1) - mehta
    return log_k + (size - 1) / 2 * log(2 * pi) - log(scale) + mixture


def _log_pfaffian(size: int, z: float) -> float:
    """Return the log Pfaffian of ``[erf((k - j) z)]``, bordered by ones if p is odd.

    This is the share of the draws of `_propose_drift` that are kept at w = 4z². It is of order
    z^m, m = p(p-1)/2, out of terms of order z^{p/2}: hence the decimal digits.
    """
    order = size + size % 2
    pairs = size * (size - 1) // 2
    digits = 40 + ceil(pairs * max(1.0, 1 - log10(z)))
    with localcontext() as context:
        context.prec = digits
        values = [_decimal_erf(k * Decimal(z), digits) for k in range(size)]
        a = [
            [values[k - j] if k < size else Decimal(1) for k in range(j + 1, order)]
            for j in range(order)
        ]  # a[j][k - j - 1]: above the diagonal
        total = 0.0
        # Leading minors are Pfaffians of the same kind and positive: no pivoting.
        while a:
            pivot, first, second = a[0][0], a[0][1:], a[1]
            total += float(pivot.ln())
            a = [
                [
                    entry + (second[j] * first[j + 1 + i] - first[j] * second[j + 1 + i]) / pivot
                    for i, entry in enumerate(row)
                ]
                for j, row in enumerate(a[2:])
            ]
        return total


_ROOT_PI = Decimal("1.77245385090551602729816748334114518279754945612238712821380779")


def _decimal_erf(x: Decimal, digits: int) -> Decimal:
    """Return erf(x), x ≥ 0, as ``2/√π exp(-x²) Σ 2^n x^{2n+1}/(2n+1)!!``.

    The error of √π is a factor common to all x and does not matter beyond its sixty digits.
    """
    if x > 12:  # 1 - erf(12) = 1e-64
        return Decimal(1)
    total = term = x
    n = 0
    while term > total.scaleb(-digits):
        n += 1
        term *= 2 * x * x / (2 * n + 1)
        total += term
    return 2 * total * (-x * x).exp() / _ROOT_PI
