"""`ConfidenceRegionDisplay`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from skdpfrechet._numerics import Array
from skdpfrechet._validation import check_positive_integer
from skdpfrechet.inference import ConfidenceRegion
from skdpfrechet.manifolds import Manifold
from skdpfrechet.plotting._axes import next_styles, open_axes
from skdpfrechet.plotting._pictures import PICTURES, Picture, Scene, automatic_kind


class ConfidenceRegionDisplay:
    """Picture of one or more confidence regions of a mean.

    Everything is computed from released regions, never from records, so a picture costs no budget
    and is as public as the regions themselves. Use `from_estimator` or `from_region` to make one.

    Parameters
    ----------
    regions : list of ConfidenceRegion
        On one manifold.
    labels : list of str, default=None
        One for each region, for the legend. None gives their levels.

    Attributes
    ----------
    centers_ : list of matplotlib Artist
        The released means: markers, or for ``"ellipses"`` outlines.
    boundaries_ : list of matplotlib Artist
        The boundaries: a line, for ``"cone"`` a surface, for ``"ellipses"`` a collection of
        outlines.
    ax_ : matplotlib Axes
        Axes with the picture.
    figure_ : matplotlib Figure
        Figure that holds them.

    See Also
    --------
    PrivacyUtilityDisplay : Size of regions and intervals against the budget.

    Notes
    -----
    The kinds of picture:

    ``"lambert"``
        Regions of the sphere S² in Lambert's azimuthal projection, which keeps areas: regions can
        be compared by eye. Rings show the distance from the point in the middle. Up is towards the
        last axis.
    ``"sphere"``
        The same on the sphere in space; needs axes with ``projection="3d"``.
    ``"cone"``
        Regions of SPD(2) as bodies in the cone of the positive definite matrices [[a, b], [b, c]];
        needs axes with ``projection="3d"``.
    ``"ellipses"``
        For SPD(p). The mean P as the ellipsoid ``xᵀ P⁻¹ x ≤ 1``, whose half axes are standard
        deviations, seen along all but two of the principal axes of the first mean. The thin lines
        are those of `n_points` matrices on the boundary of the region, in fixed directions; beyond
        p = 3 these seldom point to the extremes and show less than the region.
    ``"tangent"``
        For any manifold: the ellipsoid seen along all but two of its coordinates, in the chart at
        the public centre where the noise is a wrapped Gaussian, else in the tangent space at the
        mean (at an average of the means, if there are several). It is the outline of the whole
        region, so all pairs of coordinates hold at once; for one pair alone it is wide. Regions
        that do not share the chart are carried there to first order. In Euclidean space the
        coordinates are those of the points.

    Regions to be compared are drawn by one display: a later one on the same axes would choose a
    view, a chart or principal axes of its own.

    A region of the sphere that reaches farther than the antipode in some direction has no boundary
    there: its line is broken, and it is not filled.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpfrechet import DPFrechetMean
    >>> from skdpfrechet.plotting import ConfidenceRegionDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3)) + [0, 0, 4]
    >>> X /= np.linalg.norm(X, axis=1, keepdims=True)
    >>> mean = DPFrechetMean("sphere", center=[0, 0, 1], radius=1.0).fit(X)
    >>> display = ConfidenceRegionDisplay.from_estimator(mean)
    >>> display.ax_.get_legend_handles_labels()[1]
    ['95 % region, μ = 1']
    """

    def __init__(self, regions: Sequence[ConfidenceRegion], *, labels: Sequence[str] | None = None):
        self.regions = regions
        self.labels = labels

    def plot(
        self,
        *,
        kind: str = "auto",
        ax: Any = None,
        coordinates: tuple[int, int] = (0, 1),
        view: ArrayLike | None = None,
        n_points: int = 200,
    ) -> ConfidenceRegionDisplay:
        """Draw the regions.

        Parameters
        ----------
        kind : {"auto", "lambert", "sphere", "cone", "ellipses", "tangent"}, default="auto"
            Kind of picture, see Notes. ``"auto"`` takes the first that is made for the manifold.
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes a figure.
        coordinates : tuple of int, default=(0, 1)
            Which two coordinates (``"tangent"``) or principal axes (``"ellipses"``) to draw.
        view : array-like of shape (3,), default=None
            The point of the sphere in the middle of the picture. None is the middle of the means.
        n_points : int, default=200
            Number of boundary points to draw by.

        Returns
        -------
        self : ConfidenceRegionDisplay

        Raises
        ------
        ValueError
            If the manifold has no such picture, or a region is not bounded.
        ImportError
            If matplotlib is missing; it is in the extra ``plot``.
        """
        regions = list(self.regions)
        manifold = _common_manifold(regions)
        name, picture = _picture(kind, manifold)
        pair = _check_coordinates(coordinates, _extent(name, manifold))
        viewpoint = None if view is None else _check_view(view, manifold)
        labels = self._labels(regions)
        n_points = check_positive_integer("n_points", n_points)
        ax = open_axes(ax, f"ConfidenceRegionDisplay, kind={name!r}", solid=picture.solid)
        scene = Scene(regions, next_styles(ax, len(regions)), labels, pair, viewpoint, n_points)
        drawn = picture.draw(ax, scene)
        # Asked for by name, "best" does not warn on a slow machine; in space it is slow on any.
        ax.legend(loc="upper left" if picture.solid else "best")
        self.centers_, self.boundaries_ = drawn.centers, drawn.boundaries
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        labels: Sequence[str] | None = None,
        kind: str = "auto",
        ax: Any = None,
        coordinates: tuple[int, int] = (0, 1),
        view: ArrayLike | None = None,
        n_points: int = 200,
    ) -> ConfidenceRegionDisplay:
        """Draw the region of a fitted estimator, or the regions of several.

        Parameters
        ----------
        estimator : DPFrechetMean or list of DPFrechetMean
            Fitted, with a `confidence_level`.
        labels : list of str, default=None
            One for each estimator. None gives the level and the budget.
        kind, ax, coordinates, view, n_points
            As for `plot`.

        Returns
        -------
        display : ConfidenceRegionDisplay

        Raises
        ------
        NotFittedError
            If an estimator is not fitted.
        """
        estimators = list(estimator) if isinstance(estimator, list | tuple) else [estimator]
        regions = [region_of(each) for each in estimators]
        if labels is None:
            labels = [
                f"{_level(region)}, {budget(each)}"
                for region, each in zip(regions, estimators, strict=True)
            ]
        return cls(regions, labels=labels).plot(
            kind=kind, ax=ax, coordinates=coordinates, view=view, n_points=n_points
        )

    @classmethod
    def from_region(
        cls,
        region: ConfidenceRegion | Sequence[ConfidenceRegion],
        *,
        labels: Sequence[str] | None = None,
        kind: str = "auto",
        ax: Any = None,
        coordinates: tuple[int, int] = (0, 1),
        view: ArrayLike | None = None,
        n_points: int = 200,
    ) -> ConfidenceRegionDisplay:
        """Draw a region or several, such as those that ``ConfidenceRegion.from_dict`` reads.

        Parameters
        ----------
        region : ConfidenceRegion or list of ConfidenceRegion
        labels : list of str, default=None
            One for each region. None gives their levels.
        kind, ax, coordinates, view, n_points
            As for `plot`.

        Returns
        -------
        display : ConfidenceRegionDisplay

        Examples
        --------
        >>> import numpy as np
        >>> from skdpfrechet import ConfidenceRegion
        >>> from skdpfrechet.manifolds import SPDAffineInvariant
        >>> from skdpfrechet.plotting import ConfidenceRegionDisplay
        >>> space = SPDAffineInvariant(2)
        >>> regions = [
        ...     ConfidenceRegion(space, scale * np.eye(2), 0.01 * np.eye(3), 7.81, 0.95)
        ...     for scale in (1.0, 2.0)
        ... ]
        >>> display = ConfidenceRegionDisplay.from_region(regions, labels=["before", "after"])
        >>> display.ax_.get_zlabel()
        '(a + c)/2'
        """
        regions = [region] if isinstance(region, ConfidenceRegion) else list(region)
        return cls(regions, labels=labels).plot(
            kind=kind, ax=ax, coordinates=coordinates, view=view, n_points=n_points
        )

    def _labels(self, regions: list[ConfidenceRegion]) -> list[str]:
        if self.labels is None:
            return [_level(region) for region in regions]
        if len(self.labels) != len(regions):
            raise ValueError(
                f"labels must have one entry for each of the {len(regions)} regions, "
                f"got {len(self.labels)}."
            )
        return list(self.labels)


def region_of(estimator: Any) -> ConfidenceRegion:
    """Return the confidence region of a fitted estimator."""
    if not hasattr(type(estimator), "confidence_region_"):
        raise TypeError(
            "estimator must have a confidence_region_, as DPFrechetMean has, "
            f"got {type(estimator).__name__}."
        )
    check_is_fitted(estimator)
    region: ConfidenceRegion = estimator.confidence_region_
    return region


def budget(estimator: Any) -> str:
    """Return what a picture has to say about the privacy of a fit."""
    report = estimator.privacy_
    mu = report.total.mu
    if np.isinf(mu):
        return "NOT private"
    return f"μ = {mu:g}" + ("" if report.void_reason is None else ", void")


def _level(region: ConfidenceRegion) -> str:
    return f"{100 * region.confidence_level:g} % region"


def _common_manifold(regions: list[ConfidenceRegion]) -> Manifold:
    if not regions:
        raise ValueError("regions must hold at least one region, got none.")
    manifold = regions[0].manifold
    for region in regions[1:]:
        if region.manifold != manifold:
            raise ValueError(
                f"regions must lie on one manifold, got {manifold!r} and {region.manifold!r}."
            )
    if any(np.isinf(region.critical_value) for region in regions):
        raise ValueError("regions must be bounded, got one that is the whole space.")
    return manifold


def _picture(kind: str, manifold: Manifold) -> tuple[str, Picture]:
    if kind != "auto" and kind not in PICTURES:
        names = ", ".join(repr(name) for name in ("auto", *PICTURES))
        raise ValueError(f"kind must be one of {names}, got {kind!r}.")
    name = automatic_kind(manifold) if kind == "auto" else kind
    picture = PICTURES[name]
    if not picture.suits(manifold):
        raise ValueError(
            f"regions must lie on {picture.requirement} for kind={name!r}, got {manifold!r}."
        )
    return name, picture


def _extent(kind: str, manifold: Manifold) -> int:
    return manifold.point_shape[0] if kind == "ellipses" else manifold.dim


def _check_coordinates(coordinates: tuple[int, int], n: int) -> tuple[int, int]:
    pair = tuple(coordinates)
    if len(pair) != 2 or len(set(pair)) != 2 or not all(k in range(n) for k in pair):
        raise ValueError(
            f"coordinates must be two different integers from 0 to {n - 1}, got {coordinates!r}."
        )
    return int(pair[0]), int(pair[1])


def _check_view(view: ArrayLike, manifold: Manifold) -> Array:
    point = np.asarray(view, dtype=float)
    if point.shape != manifold.point_shape or not manifold.contains(point):
        raise ValueError(f"view must be a point of {manifold!r}, got {view!r}.")
    return manifold.canonical(point)
