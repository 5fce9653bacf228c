"""Rational logarithms: log y as a short sum of resolvents 1 / (y + s).

A matrix logarithm then needs a handful of inverses and no eigenvalue iteration: for SPD Y with
spectrum in [e^-ℓ, e^ℓ]

    log Y ≈ Σ_j a_j (Y - s_j I)(Y + s_j I)⁻¹ = (Σ_j a_j) I - Σ_j 2 a_j s_j (Y + s_j I)⁻¹,

in θ = log y and t_j = log s_j the sum of steps θ ≈ Σ_j a_j tanh((θ - t_j) / 2). All a_j are
positive, and the poles and weights are symmetric under t -> -t, as log(1/y) = -log y asks for.

The constants are minimax for each number of poles (about half as many as Gauss-Legendre, that is
Padé, needs at ℓ = 2 and a third at ℓ = 6). They are stored in ``log_nodes.txt``, one line per
number of poles, made by ``tests/benchmarks/make_log_nodes.py``.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from skdpfrechet._numerics import Array

LARGEST_REACH = 7.0
ACCURACIES = ("fast", "full")
_ERRORS = {"fast": 1e-10, "full": 1e-13}


@dataclass(frozen=True)
class LogNodes:
    """All rational logarithms of one accuracy, by increasing reach; row i of the tables is one."""

    reaches: Array  # (k,) ℓ
    limits: Array  # (k,) exp(ℓ)
    counts: Array  # (k,) integers, increasing: number of poles
    constants: Array  # (k,) Σ a_j
    weights: Array  # (k, most) -2 a_j s_j, padded by zeros
    shifts: Array  # (k, most) s_j, padded by ones

    @functools.cached_property
    def tables(self) -> tuple[Array, Array, Array]:
        """Limits, counts and nodes, as the kernels take them.

        A row of the nodes holds the constant and the weights, then a 1 and the shifts, each half
        padded to a multiple of eight. One more row, without poles, stands for what is beyond all.
        """
        rows, most = self.weights.shape
        width = -(-(most + 1) // 8) * 8
        nodes = np.zeros((rows + 1, 2, width))
        nodes[:, 1] = 1.0
        nodes[:rows, 0, 0] = self.constants
        nodes[:rows, 0, 1 : most + 1] = self.weights
        nodes[:rows, 1, 1 : most + 1] = self.shifts
        return self.limits, self.counts, nodes.reshape(rows + 1, -1)


def allowed_error(accuracy: str, reach: float) -> float:
    """Return the uniform error on |θ| ≤ `reach` that the constants keep to."""
    return _ERRORS[accuracy] * min(reach, 1.0)


@functools.cache
def log_nodes(accuracy: str) -> LogNodes:
    """Return the tables for ``"fast"`` (error 1e-10) or ``"full"`` (1e-13)."""
    lines = Path(__file__).with_name("log_nodes.txt").read_text(encoding="ascii").splitlines()
    rows = [line.split()[1:] for line in lines if line.split()[0] == accuracy]
    table = [_unfold([float(x) for x in row]) for row in rows]
    most = max(a.size for _, a, _ in table)
    weights, shifts = np.zeros((len(table), most)), np.ones((len(table), most))
    for i, (_, a, s) in enumerate(table):
        weights[i, : a.size] = -2 * a * s
        shifts[i, : s.size] = s
    reaches = np.array([reach for reach, _, _ in table])
    return LogNodes(
        reaches=reaches,
        limits=np.exp(reaches),
        counts=np.array([a.size for _, a, _ in table]),
        constants=np.array([a.sum() for _, a, _ in table]),
        weights=weights,
        shifts=shifts,
    )


def _unfold(row: list[float]) -> tuple[float, Array, Array]:
    """Return reach, a_j and s_j of a line that holds only the poles with t ≥ 0."""
    reach, a, t = row[0], np.array(row[1::2]), np.array(row[2::2])
    mirrored = t > 0
    a, t = np.concatenate([a[mirrored], a]), np.concatenate([-t[mirrored], t])
    return reach, a, np.exp(t)
