"""The pictures of regions: each draws on given axes and returns what it has drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import pi
from typing import Any

import numpy as np

from skdpfrechet._numerics import Array
from skdpfrechet.inference import ConfidenceRegion
from skdpfrechet.manifolds import (
    Euclidean,
    Manifold,
    SPDAffineInvariant,
    SPDLogCholesky,
    SPDLogEuclidean,
    Sphere,
)
from skdpfrechet.plotting import _maps
from skdpfrechet.plotting._axes import GREY, Style

_SPD = (SPDAffineInvariant, SPDLogCholesky, SPDLogEuclidean)
_RINGS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60)  # degrees


@dataclass(frozen=True)
class Scene:
    """What to draw: regions of one manifold, in their styles."""

    regions: list[ConfidenceRegion]
    styles: list[Style]
    labels: list[str]
    coordinates: tuple[int, int]
    view: Array | None
    n_points: int

    @property
    def manifold(self) -> Manifold:
        """The manifold of the regions."""
        return self.regions[0].manifold

    @property
    def viewpoint(self) -> Array:
        """The point of the sphere that is looked at: the middle of the means, if there is one."""
        if self.view is not None:
            return self.view
        middle = np.mean([region.center for region in self.regions], axis=0)
        length = np.linalg.norm(middle)
        return np.asarray(middle / length) if length > 0.1 else self.regions[0].center


@dataclass(frozen=True)
class Drawn:
    """Artists, one of each per region."""

    centers: list[Any]
    boundaries: list[Any]


def draw_lambert(ax: Any, scene: Scene) -> Drawn:
    """Draw regions of S² in Lambert's projection, with rings of equal distance from the view."""
    view, sphere = scene.viewpoint, scene.manifold
    edges = [_maps.edge_of(region, scene.n_points) for region in scene.regions]
    points = np.concatenate([*edges, [region.center for region in scene.regions]])
    whole = np.isnan(points).any()
    _rings(ax, pi if whole else float(sphere.dist(view, points).max()))
    boundaries = []
    for region, edge, style in zip(scene.regions, edges, scene.styles, strict=True):
        curve = _maps.lambert(np.concatenate([edge, edge[:1]]), view)
        # A region that holds the antipode of the view lies outside its curve.
        if not np.isnan(edge).any() and not region.contains(-view):
            ax.fill(*curve.T, color=style.color, alpha=0.2, linewidth=0)
        boundaries += ax.plot(*curve.T, color=style.color, linestyle=style.linestyle)
    centers = [_maps.lambert(region.center, view) for region in scene.regions]
    ax.set_aspect("equal")
    ax.set_axis_off()
    return Drawn(_mark(ax, scene, centers), boundaries)


def _rings(ax: Any, reach: float) -> None:
    """Draw rings at round distances, the last one at `reach` or beyond."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2, foreground="white")]
    degrees = np.degrees(reach)
    step = next(ring for ring in _RINGS if degrees <= 4 * ring)
    outer = min(max(int(np.ceil(degrees / step)), 1), int(180 // step))
    angle = np.linspace(0, 2 * pi, 200)
    for k in range(1, outer + 1):
        radius = 2 * np.sin(np.radians(k * step) / 2)
        colour = "0.7" if k == outer else "0.88"
        ax.plot(radius * np.cos(angle), radius * np.sin(angle), color=colour, lw=0.8, zorder=0)
        place, name = radius * np.sqrt(0.5), f"{k * step:g}°"
        ax.text(place, place, name, color=GREY, size="small", zorder=2.5, path_effects=halo)
    for turn in np.arange(8) * pi / 4:
        spoke = radius * np.array([np.cos(turn), np.sin(turn)])
        ax.plot([0, spoke[0]], [0, spoke[1]], color="0.88", lw=0.8, zorder=0)


def draw_sphere(ax: Any, scene: Scene) -> Drawn:
    """Draw regions of S² on the sphere in space."""
    ax.computed_zorder = False  # else a marker may hide behind the surface around it
    angle, height = np.linspace(0, 2 * pi, 37), np.linspace(0, pi, 37)[:, None]
    globe = (
        np.sin(height) * np.cos(angle),
        np.sin(height) * np.sin(angle),
        np.cos(height + 0 * angle),
    )
    ax.plot_surface(*globe, color="0.8", alpha=0.15, linewidth=0, shade=False, zorder=0)
    ax.plot_wireframe(*globe, rstride=6, cstride=3, color="0.7", linewidth=0.5, zorder=0)
    for name, axis in zip("xyz", np.eye(3), strict=True):
        ax.plot(*np.outer(axis, (1, 1.15)), color=GREY, linewidth=1, zorder=0)
        ax.text(*(1.22 * axis), name, color=GREY, ha="center", va="center")
    boundaries = []
    for region, style in zip(scene.regions, scene.styles, strict=True):
        edge = _maps.edge_of(region, scene.n_points)
        if not np.isnan(edge).any():
            filled = np.moveaxis(_maps.patch(region, edge), -1, 0)
            ax.plot_surface(*filled, color=style.color, alpha=0.3, lw=0, shade=False, zorder=1)
        curve = np.concatenate([edge, edge[:1]]).T
        boundaries += ax.plot(*curve, color=style.color, linestyle=style.linestyle, zorder=2)
    x, y, z = scene.viewpoint
    up, turn = np.degrees([np.arctan2(z, np.hypot(x, y)), np.arctan2(y, x)])
    ax.view_init(elev=min(up + 15, 85), azim=turn - 20)  # not straight on: it would look flat
    ax.set(xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1))
    ax.set_box_aspect((1, 1, 1), zoom=1.3)
    ax.set_axis_off()
    return Drawn(_mark(ax, scene, [region.center for region in scene.regions]), boundaries)


def draw_cone(ax: Any, scene: Scene) -> Drawn:
    """Draw regions of SPD(2) as bodies in the cone of positive definite matrices."""
    from matplotlib.ticker import MaxNLocator

    ax.computed_zorder = False
    surfaces = [_maps.cone(region.boundary(scene.n_points)) for region in scene.regions]
    top = 1.1 * max(float(surface[:, 2].max()) for surface in surfaces)
    angle = np.linspace(0, 2 * pi, 37)
    height = np.linspace(0, top, 6)[:, None]
    shell = (height * np.cos(angle), height * np.sin(angle), height + 0 * angle)
    ax.plot_wireframe(*shell, rstride=1, cstride=3, color="0.7", linewidth=0.6, zorder=0)
    faces = _maps.triangles(scene.n_points)
    boundaries = []
    for surface, style in zip(surfaces, scene.styles, strict=True):
        larger = sum(
            np.ptp(other, axis=0).max() > np.ptp(surface, axis=0).max() for other in surfaces
        )
        boundaries.append(
            ax.plot_trisurf(
                *surface.T,
                triangles=faces,
                color=style.color,
                alpha=0.4,
                linewidth=0,
                zorder=1 + larger / len(surfaces),  # small ones on top
            )
        )
    ax.set(xlabel="(a − c)/2", ylabel="b", zlabel="(a + c)/2")
    ax.set(xlim=(-top, top), ylim=(-top, top), zlim=(0, top))
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        axis.set_major_locator(MaxNLocator(4))
    ax.set_box_aspect((2, 2, 1), zoom=1.1)
    ax.view_init(elev=15)
    return Drawn(_mark(ax, scene, [_maps.cone(r.center) for r in scene.regions]), boundaries)


def draw_ellipses(ax: Any, scene: Scene) -> Drawn:
    """Draw means of SPD(p) as ellipses, behind each those of matrices on its region's boundary."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgb

    axes = _maps.principal_axes(scene.regions[0].center, scene.coordinates)
    centers, boundaries = [], []
    for region, style, label in zip(scene.regions, scene.styles, scene.labels, strict=True):
        spread = _maps.outlines(region.boundary(scene.n_points), axes, 100)
        lines = LineCollection(list(spread), colors=style.color, linewidths=0.5, alpha=0.15)
        boundaries.append(ax.add_collection(lines))
        mean = _maps.outlines(region.center, axes, 200)
        dark = [0.6 * part for part in to_rgb(style.color)]
        centers += ax.plot(
            *mean.T, color=dark, linestyle=style.linestyle, lw=2, zorder=3, label=label
        )
    for set_label, k in ((ax.set_xlabel, 0), (ax.set_ylabel, 1)):
        set_label(f"principal axis {scene.coordinates[k]}")
    ax.set_aspect("equal")
    ax.autoscale_view()
    return Drawn(centers, boundaries)


def draw_tangent(ax: Any, scene: Scene) -> Drawn:
    """Draw the outlines of regions in two coordinates of one chart."""
    centers, curves = _maps.tangent_ellipses(scene.regions, scene.coordinates, scene.n_points)
    boundaries = []
    for curve, style in zip(curves, scene.styles, strict=True):
        ax.fill(*curve.T, color=style.color, alpha=0.2, linewidth=0)
        boundaries += ax.plot(*curve.T, color=style.color, linestyle=style.linestyle)
    if isinstance(scene.manifold, Euclidean):
        chart = ""
    elif any(region.foot is not None for region in scene.regions):
        chart = " at the public centre"
    else:
        chart = " at the mean"
    for set_label, k in ((ax.set_xlabel, 0), (ax.set_ylabel, 1)):
        set_label(f"coordinate {scene.coordinates[k]}{chart}")
    ax.set_aspect("equal", adjustable="datalim")
    return Drawn(_mark(ax, scene, list(centers)), boundaries)


def _mark(ax: Any, scene: Scene, places: list[Array]) -> list[Any]:
    """Mark the released means; their entries in the legend show the dashes of the boundary."""
    return [
        ax.plot(
            *place[:, None],
            color=style.color,
            marker=style.marker,
            linestyle=style.linestyle,
            markeredgecolor="black",
            zorder=3,
            label=label,
        )[0]
        for place, style, label in zip(places, scene.styles, scene.labels, strict=True)
    ]


@dataclass(frozen=True)
class Picture:
    """A kind of picture, the manifolds that it is for, and whether it needs axes in space."""

    draw: Callable[[Any, Scene], Drawn]
    suits: Callable[[Manifold], bool]
    requirement: str
    solid: bool = False


def _is_globe(manifold: Manifold) -> bool:
    return manifold == Sphere(2)


PICTURES = {
    "lambert": Picture(draw_lambert, _is_globe, "the sphere S²"),
    "sphere": Picture(draw_sphere, _is_globe, "the sphere S²", solid=True),
    "cone": Picture(
        draw_cone,
        lambda manifold: isinstance(manifold, _SPD) and manifold.size == 2,
        "SPD matrices of 2 rows",
        solid=True,
    ),
    "ellipses": Picture(
        draw_ellipses,
        lambda manifold: isinstance(manifold, _SPD) and manifold.size >= 2,
        "SPD matrices of 2 rows or more",
    ),
    "tangent": Picture(
        draw_tangent, lambda manifold: manifold.dim >= 2, "a manifold of dimension 2 or more"
    ),
}


def automatic_kind(manifold: Manifold) -> str:
    """Return the kind of picture that suits a manifold best."""
    if _is_globe(manifold):
        return "lambert"
    if isinstance(manifold, _SPD) and manifold.size in (2, 3):
        return "cone" if manifold.size == 2 else "ellipses"
    return "tangent"
