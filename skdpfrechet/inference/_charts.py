"""Means of several regions and their covariances in one chart, so that they can be subtracted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import chi2

from skdpfrechet._numerics import Array, symmetrize
from skdpfrechet.inference._region import ConfidenceRegion
from skdpfrechet.manifolds import Manifold


def stretch(region: ConfidenceRegion) -> float:
    """Return by how much the region multiplies its covariance beyond the χ² quantile."""
    return region.critical_value / float(chi2.ppf(region.confidence_level, region.manifold.dim))


def common_chart(regions: Sequence[ConfidenceRegion]) -> tuple[Array, Array]:
    """Return the centres, shape (k, dim), and their stretched covariances in one chart.

    The chart at a foot of wrapped Gaussian noise if there is one, of the widest region if there are
    several; else the tangent space at an average of the centres, reached by parallel transport.
    With two centres any point of their geodesic gives the same quadratic form.
    """
    manifold = regions[0].manifold
    points = np.stack([region.center for region in regions])
    factors = np.array([stretch(region) for region in regions])
    sizes = factors * [region.effective_radius**2 for region in regions]
    charted = [i for i, region in enumerate(regions) if region.foot is not None]
    if charted:
        foot = regions[max(charted, key=lambda i: sizes[i])].foot
        assert foot is not None
        covariances = [_covariance_in_chart(region, foot) for region in regions]
        where = manifold.log_coords(foot, points)
    else:
        base = _average(manifold, points, sizes)
        covariances = [_transported(region, base) for region in regions]
        where = manifold.log_coords(base, points)
    return where, factors[:, None, None] * np.stack(covariances)


def _covariance_in_chart(region: ConfidenceRegion, foot: Array) -> Array:
    if region.foot is not None and np.array_equal(region.foot, foot):
        return region.covariance
    manifold = region.manifold
    jacobian = manifold.exp_jacobian(foot, manifold.log(foot, region.center))
    half = np.linalg.solve(jacobian, region.covariance_at_center)
    return symmetrize(np.linalg.solve(jacobian, half.T))


def _transported(region: ConfidenceRegion, base: Array) -> Array:
    manifold, center = region.manifold, region.center
    axis = -len(manifold.point_shape) - 1
    start, end = np.expand_dims(center, axis), np.expand_dims(base, axis)
    carried = manifold.coords(end, manifold.transport(start, end, manifold.frame(center)))
    return symmetrize(carried.T @ region.covariance_at_center @ carried)


def _average(manifold: Manifold, points: Array, sizes: Array) -> Array:
    """Return the Fréchet mean of points weighted by 1/sizes, on the geodesic if there are two.

    Where the iteration has not converged, after 50 steps, its last point serves as well: it only
    has to be near.
    """
    floor = max(1e-12 * float(sizes.max()), np.finfo(float).tiny)
    weights = 1 / np.maximum(sizes, floor)
    weights = weights / weights.sum()
    base: Array = points[int(np.argmax(weights))]
    for _ in range(50):
        step = weights @ manifold.log_coords(base, points)
        base = manifold.exp_coords(base, step)
        if np.linalg.norm(step) < 1e-13:
            break
    return base
