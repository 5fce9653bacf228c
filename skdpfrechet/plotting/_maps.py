"""From points of a manifold and regions to coordinates that can be drawn."""

from __future__ import annotations

from functools import cache
from math import pi

import numpy as np
from scipy.spatial import ConvexHull
from scipy.stats import chi2

from skdpfrechet._numerics import Array, eigh
from skdpfrechet.inference import ConfidenceRegion
from skdpfrechet.inference._charts import common_chart
from skdpfrechet.manifolds import Euclidean


def edge_of(region: ConfidenceRegion, n: int) -> Array:
    """Return `n` points of the boundary, NaN in directions in which the region has none.

    In a direction in which the ellipsoid reaches beyond the injectivity radius of a sphere, the
    region covers the whole great circle and ends nowhere.
    """
    edge = region.boundary(n)
    widest = np.sqrt(region.critical_value * region.eigenvalues[0])
    if widest < region.manifold.injectivity_radius:
        return edge
    inside = region.statistic(edge) < region.critical_value * (1 - 1e-6)
    return np.where(inside[:, None], np.nan, edge)


def compass(view: Array) -> tuple[Array, Array]:
    """Return right and up for someone who looks at `view` from outside the sphere S².

    Up is towards the last axis, towards the second for a view along the last.
    """
    pole = np.array([0.0, 0.0, 1.0] if abs(view[2]) < 0.999 else [0.0, 1.0, 0.0])
    north = pole - (pole @ view) * view
    north = north / np.linalg.norm(north)
    return np.cross(north, view), north


def lambert(points: Array, view: Array) -> Array:
    """Return Lambert's azimuthal equal-area projection, `view` at the origin, shape (..., 2).

    A point at the angle t from `view` lies ``2 sin(t/2)`` from the origin, the antipode anywhere on
    the circle of radius 2.

    References
    ----------
    .. [1] K. V. Mardia, P. E. Jupp, "Directional Statistics", Wiley, 2000, section 9.1.
    """
    flat = np.stack([points @ axis for axis in compass(view)], axis=-1)
    gap = np.linalg.norm(points + view, axis=-1)  # 2 cos(t/2), where |flat| = sin t
    return np.asarray(flat * (2 / np.maximum(gap, 1e-15))[..., None])


def patch(region: ConfidenceRegion, edge: Array, layers: int = 12) -> Array:
    """Return points that fill a region of a surface, (layers, n + 1, *point_shape), closed."""
    space, center = region.manifold, region.center
    c = space.log_coords(center, np.concatenate([edge, edge[:1]]))
    return space.exp_coords(center, np.linspace(0, 1, layers)[:, None, None] * c)


def cone(points: Array) -> Array:
    """Return ``((a - c)/2, b, (a + c)/2)`` of the 2 x 2 matrices [[a, b], [b, c]].

    The positive definite ones fill the circular cone around the last axis: its angle is right.
    """
    a, b, c = points[..., 0, 0], points[..., 0, 1], points[..., 1, 1]
    return np.stack([(a - c) / 2, b, (a + c) / 2], axis=-1)


@cache
def triangles(n: int) -> Array:
    """Return triangles that join the `n` boundary points of any region of dimension 3.

    Those points are images of one lattice on the sphere, of which these are the facets of the hull,
    each counter-clockwise from outside: light and shade depend on it.
    """
    lattice = ConfidenceRegion(Euclidean(3), np.zeros(3), np.eye(3), 1.0, 0.5).boundary(n)
    hull: Array = ConvexHull(lattice).simplices
    inward = np.linalg.det(lattice[hull]) < 0
    hull[inward] = hull[inward][:, ::-1]
    return hull


def principal_axes(matrix: Array, coordinates: tuple[int, int]) -> Array:
    """Return two of the eigenvectors of `matrix`, the largest eigenvalue first, shape (p, 2)."""
    axes = eigh(matrix)[1][:, ::-1]
    largest = np.abs(axes).argmax(axis=0)
    signs = np.sign(axes[largest, np.arange(len(axes))])  # else the sign is left to LAPACK
    return np.asarray((axes * signs)[:, list(coordinates)])


def outlines(matrices: Array, axes: Array, n: int) -> Array:
    """Return the outlines of ``xᵀ P⁻¹ x ≤ 1`` seen along all but two `axes`, (..., n, 2)."""
    return ellipses(axes.T @ matrices @ axes, n)


def ellipses(matrices: Array, n: int) -> Array:
    """Return `n` points of ``xᵀ A⁻¹ x = 1`` for 2 x 2 matrices A ≥ 0, shape (..., n, 2)."""
    angle = np.linspace(0, 2 * pi, n)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    values, vectors = eigh(matrices)
    scaled = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    return np.asarray(circle @ np.swapaxes(scaled, -1, -2))


def tangent_ellipses(
    regions: list[ConfidenceRegion], coordinates: tuple[int, int], n: int
) -> tuple[Array, Array]:
    """Return centres, shape (k, 2), and outlines, (k, n, 2), of regions in one chart.

    The outline is that of the whole ellipsoid seen along all other coordinates. The chart is that
    of `common_chart`; in Euclidean space the coordinates are those of the points themselves.
    """
    where, covariances = common_chart(regions)
    space, pair = regions[0].manifold, list(coordinates)
    if isinstance(space, Euclidean):
        where = np.stack([region.center for region in regions])
    levels = np.array([region.confidence_level for region in regions])
    quantiles = chi2.ppf(levels, space.dim)  # the covariances of `common_chart` are stretched to it
    blocks = quantiles[:, None, None] * covariances[:, pair][:, :, pair]
    centers = where[:, pair]
    return centers, centers[:, None] + ellipses(blocks, n)
