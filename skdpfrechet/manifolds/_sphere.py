"""The unit sphere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import pi

import numpy as np

from skdpfrechet import _kernels
from skdpfrechet._numerics import Array, angle_between, clip_norm, householder
from skdpfrechet._validation import check_positive_integer
from skdpfrechet.manifolds._base import (
    Manifold,
    constant_curvature_frame,
    constant_curvature_mean_hessian,
)

UNIT_NORM_TOLERANCE = 1e-5  # accepts directions stored in float32


@dataclass(frozen=True)
class Sphere(Manifold):
    """The unit sphere S^d in R^(d+1), curvature 1.

    Parameters
    ----------
    dim : int
        Dimension d ≥ 1; points are unit vectors of length d + 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpfrechet.manifolds import Sphere
    >>> sphere = Sphere(2)
    >>> north, east = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])
    >>> float(sphere.dist(north, east) / np.pi)
    0.5
    """

    dim: int

    def __post_init__(self) -> None:
        check_positive_integer("dim", self.dim)

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self.dim + 1,)

    @property
    def sectional_curvature_bounds(self) -> tuple[float, float]:
        return (0.0, 0.0) if self.dim == 1 else (1.0, 1.0)

    @property
    def injectivity_radius(self) -> float:
        return pi

    @property
    def diameter(self) -> float:
        return pi

    def exp(self, p: Array, v: Array) -> Array:
        s = np.linalg.norm(v, axis=-1, keepdims=True)
        q = np.cos(s) * p + np.sinc(s / pi) * v
        return np.asarray(q / np.linalg.norm(q, axis=-1, keepdims=True))

    def log(self, p: Array, q: Array) -> Array:
        # Close to p the direction comes from q - p, close to -p from q + p: neither cancels.
        side = np.where((p * q).sum(axis=-1, keepdims=True) < 0, -1.0, 1.0)
        w = q - side * p
        w = w - (p * w).sum(axis=-1, keepdims=True) * p
        length = np.linalg.norm(w, axis=-1, keepdims=True)
        s = angle_between(p, q)[..., None]
        log = np.where(length > 0, s / np.where(length > 0, length, 1.0), 0.0) * w
        antipode = (length == 0) & (side < 0)
        if antipode.any():  # it has no direction: one is as good as another, at distance π
            log = np.where(antipode, pi * self.from_coords(p, np.eye(self.dim)[0]), log)
        return np.asarray(log)

    def inner(self, p: Array, u: Array, v: Array) -> Array:
        return np.asarray((u * v).sum(axis=-1))

    def norm(self, p: Array, v: Array) -> Array:
        return np.asarray(np.linalg.norm(v, axis=-1))

    def dist(self, p: Array, q: Array) -> Array:
        return angle_between(p, q)

    def transport(self, p: Array, q: Array, v: Array) -> Array:
        # The rotation in the plane of p and q; |p + q|²/2 = 1 + <p, q> without cancellation.
        total = p + q
        scale = (total * total).sum(axis=-1, keepdims=True) / 2
        along = (q * v).sum(axis=-1, keepdims=True) / np.where(scale > 0, scale, 1.0)
        return np.asarray(v - along * total)

    def coords(self, p: Array, v: Array) -> Array:
        h, beta = householder(p)
        reflected = v - (beta * (h * v).sum(axis=-1))[..., None] * h
        return np.asarray(reflected[..., 1:])

    def from_coords(self, p: Array, c: Array) -> Array:
        h, beta = householder(p)
        along = beta * (h[..., 1:] * c).sum(axis=-1)
        padded = np.concatenate([np.zeros((*c.shape[:-1], 1)), c], axis=-1)
        return np.asarray(padded - along[..., None] * h)

    def curvature_frame(self, p: Array, v: Array) -> tuple[Array, Array]:
        return constant_curvature_frame(1.0, self.coords(p, v))

    def mean_squared_distance_hessian(self, p: Array, c: Array) -> Array:
        return constant_curvature_mean_hessian(1.0, c)

    def project_to_ball(
        self, points: Array, center: Array, radius: float, log_cap: float = np.inf
    ) -> Array:
        with np.errstate(all="ignore"):
            # No angle is needed to see that a point is well inside, and most are.
            cosine = points @ center
            far = ~((cosine >= np.cos(radius) + 1e-9) & (cosine <= 1 + 1e-6))
            if not far.any():
                return points
            suspects = points[far]
            s = angle_between(center, suspects)
            v = self.log(center, suspects)
            length = np.linalg.norm(v, axis=-1, keepdims=True)
        # The antipode of the centre has no direction: it goes to one fixed boundary point.
        fixed = self.from_coords(center, np.eye(self.dim)[0])
        unit = np.where(length > 0, v / np.where(length > 0, length, 1.0), fixed)
        boundary = np.cos(radius) * center + np.sin(radius) * unit
        result = points.copy()
        result[far] = np.where((s <= radius)[..., None], suspects, boundary)  # NaN moves too
        return result

    def violations(self, points: Array, epsilon: float = 2.0**-52) -> Iterator[tuple[Array, str]]:
        norm = _norms(points)
        yield norm == 0, "directions of non-zero length; a zero vector has no direction"
        yield (
            ~(np.abs(norm - 1) <= UNIT_NORM_TOLERANCE),
            "unit vectors; divide each row by its norm first",
        )

    def canonical(self, points: Array) -> Array:
        unit = np.abs(_norms(points) - 1) <= 4 * np.finfo(float).eps
        if points.ndim == 2 and unit.all():
            return points
        divided = np.asarray(points / np.linalg.norm(points, axis=-1, keepdims=True))
        # What becomes of a record must not depend on the others.
        return np.where(unit[:, None], points, divided) if points.ndim == 2 else divided

    def saturate(self, p: Array, v: Array) -> Array:
        return clip_norm(v, 1e8)  # cos of a larger angle has no correct digits


def _norms(points: Array) -> Array:
    if points.ndim == 2 and _kernels.compiled():
        from skdpfrechet._kernels._norms import row_norms

        return row_norms(points, _kernels.n_threads())
    return np.asarray(np.linalg.norm(points, axis=-1))
