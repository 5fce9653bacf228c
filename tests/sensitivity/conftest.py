"""The adversary: a search over pairs of neighbouring data sets, shared by this directory.

Candidates are arrays ``(batch, n + 1, dim)`` of coordinates in a ball around the public centre: the
first n rows are one data set, the last n its neighbour, so row 0 is exchanged for row n.
"""

from __future__ import annotations

import numpy as np
import pytest

from skdpfrechet._numerics import clip_norm
from skdpfrechet._solvers import frechet_mean
from skdpfrechet.manifolds import Sphere

ROUNDING = 1e-9  # the only excess over a bound that is forgiven, relative
SHARP = 0.95  # share of an attained bound that a search must reach


class Adversary:
    """Batched evolution: random and structured starts, heavy-tailed moves, survival of the best."""

    def __init__(self, seed: int = 20260516) -> None:
        self.rng = np.random.default_rng(seed)

    @staticmethod
    def center(manifold):
        """The public m0."""
        return np.eye(manifold.dim + 1)[-1] if isinstance(manifold, Sphere) else manifold.origin

    def points(self, manifold, c):
        return manifold.exp_coords(self.center(manifold), c)

    def gap_of_means(self, manifold, radius, tolerance=1e-13, accept=1e-12):
        """The objective: distance between the means of neighbours, as the library computes them."""
        center = self.center(manifold)

        def objective(c):
            points = self.points(manifold, c)
            both = np.stack([points[:, :-1], points[:, 1:]])
            p, q = frechet_mean(
                manifold, both, center, radius=radius, tolerance=tolerance, accept=accept
            )
            return manifold.dist(p, q)

        return objective

    def at_the_mean(self, manifold, radius, c):
        """Mean p of the rows between the first and the last, and the logarithms of all rows."""
        points, center = self.points(manifold, c), self.center(manifold)
        p = frechet_mean(
            manifold, points[:, 1:-1], center, radius=radius, tolerance=1e-13, accept=1e-12
        )
        return p, manifold.log_coords(p[:, None], points)

    def starts(self, batch, rows, dim, radius):
        """Boundary points; a quarter is interior, a quarter structured (exchange, two atoms)."""
        c = self.rng.standard_normal((batch, rows, dim))
        c *= radius / np.linalg.norm(c, axis=-1, keepdims=True)
        quarter = batch // 4
        c[:quarter] *= self.rng.uniform(size=(quarter, rows, 1)) ** (1 / dim)
        exchange = c[quarter : 2 * quarter]
        exchange[:, 0], exchange[:, -1] = radius * np.eye(dim)[0], -radius * np.eye(dim)[0]
        if rows > 2:
            # The others sit on two atoms: at a right angle to the exchange, or anywhere.
            sign = np.where(np.arange(rows - 2) % 2 == 0, 1.0, -1.0)[:, None]
            exchange[: quarter // 2, 1:-1] = radius * sign * np.eye(dim)[-1]
            anywhere = exchange[quarter // 2 :]
            anywhere[:, 1:-1] = np.where(sign > 0, anywhere[:, 1:2], anywhere[:, -2:-1])
        return c

    def moves(self, c, scale):
        """Move all, one, all but the exchanged ones jointly, or the exchanged ones; or shrink."""
        batch, rows, _ = c.shape
        noise = self.rng.standard_normal(c.shape)
        common = np.ones((rows, 1))
        common[[0, -1]] = 0.0
        one = np.eye(rows)[self.rng.integers(rows, size=batch)][..., None]
        sizes = scale * 10.0 ** self.rng.uniform(-2.5, 0.3, (batch, 1, 1))
        alone, joint, exchange = noise * one, noise[:, :1] * common, noise * (1 - common)
        shrunk = -c * self.rng.uniform(size=(batch, rows, 1))
        choices = np.stack([*(sizes * np.stack([noise, alone, joint, exchange])), shrunk])
        return c + choices[self.rng.integers(5, size=batch), np.arange(batch)]

    def maximise(self, objective, rows, dim, radius, *, batch=80, rounds=36):
        """Return the largest value of `objective` found over rows in the ball."""
        c = clip_norm(self.starts(batch, rows, dim, radius), radius)
        value = np.array(objective(c))
        quarter = batch // 4
        for k in range(rounds):
            candidate = clip_norm(self.moves(c, radius), radius)
            v = objective(candidate)
            better = v > value
            c, value = np.where(better[:, None, None], candidate, c), np.where(better, v, value)
            if k % 6 == 5:  # the best quarter replaces the worst
                order = np.argsort(-value)
                c[order[-quarter:]] = c[order[:quarter]]
                value[order[-quarter:]] = value[order[:quarter]]
        return float(value.max())


@pytest.fixture
def adversary():
    return Adversary()


@pytest.fixture
def check():
    return lambda *args, **kwargs: check_bound(*args, **kwargs)


def check_bound(found: float, bound: float, *, sharp: bool = False) -> None:
    """Assert that `found` is never above `bound` and, where that is called sharp, near it."""
    assert found <= bound * (1 + ROUNDING)
    if sharp:
        assert found >= SHARP * bound
