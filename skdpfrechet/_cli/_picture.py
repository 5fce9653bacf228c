"""Pictures of a region as SVG: plain shapes and text, from released and public numbers only."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import ceil, cos, degrees, floor, inf, isinf, log10, pi, radians, sin

import numpy as np

from skdpfrechet._cli._released import Released
from skdpfrechet._numerics import Array
from skdpfrechet.inference import ConfidenceRegion
from skdpfrechet.manifolds import Sphere

WIDTH = 400  # of a picture, in its own units; on paper and screens it is as wide as there is room
LARGEST_RANGES = 144  # entries of a point up to which their ranges are worked out
MOST_BARS = 24
INK, LINE, FILL = "#1a1a1a", "#b8b8b8", "#2b6ca3"


def entry_ranges(region: ConfidenceRegion) -> tuple[Array, Array]:
    """Return the smallest and largest value of each entry of a point in the region, nearly.

    They are attained on the boundary: at the points where the entry grows and falls fastest to
    first order, and at others on a lattice.
    """
    shape, space = region.center.shape, region.manifold
    if isinf(region.critical_value):
        return np.full(shape, -inf), np.full(shape, inf)
    frame = space.from_coords(region.center, np.eye(space.dim))
    gradients = frame.reshape(space.dim, -1).T
    base, start = region.center, np.zeros(space.dim)
    if region.foot is not None:
        base, start = region.foot, space.log_coords(region.foot, region.center)
        gradients = gradients @ space.exp_jacobian(base, space.log(base, region.center))
    steps = gradients @ region.covariance
    slope = np.sqrt(np.maximum((steps * gradients).sum(axis=-1, keepdims=True), 0.0))
    steps = np.sqrt(region.critical_value) * steps / np.where(slope > 0, slope, inf)
    v = space.from_coords(base, start + np.concatenate([steps, -steps]))
    points = [space.exp(base, space.saturate(base, v)), region.boundary(256), region.center[None]]
    together = np.concatenate(points)
    return together.min(axis=0), together.max(axis=0)


def draw(released: Released, low: Array | None, high: Array | None) -> tuple[str, str]:
    """Return a picture of the region, or of the mean alone, and its caption; empty if neither.

    Parameters
    ----------
    released : Released
    low, high : ndarray or None
        From `entry_ranges`, if they were worked out.
    """
    mean = released.mean
    bounded = not isinf(released.region.critical_value)
    if isinstance(released.region.manifold, Sphere) and len(mean) == 3 and bounded:
        return _draw_sphere(released)
    if mean.ndim == 2 and len(mean) > 6:
        return _draw_matrix(mean)
    if low is None or high is None or not (np.isfinite(low).all() and np.isfinite(high).all()):
        return "", ""
    entries = _entries(mean.shape)
    bars = [(_label(i), mean[i], low[i], high[i]) for i in entries[:MOST_BARS]]
    shown = f"The first {MOST_BARS} of {len(entries)} numbers" if len(entries) > MOST_BARS else ""
    return _draw_bars(bars), (
        f"{shown or 'Every number'} of the mean: a dot for the estimate, a bar for the values in "
        "the confidence region."
    )


def _entries(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the indices of the numbers that a point consists of; a matrix is symmetric."""
    return [i for i in np.ndindex(*shape) if len(i) == 1 or i[0] <= i[1]]


def _label(index: tuple[int, ...]) -> str:
    return ", ".join(str(i + 1) for i in index)


def _draw_bars(bars: list[tuple[str, float, float, float]]) -> str:
    left, right, step = 52, WIDTH - 16, 24
    ticks = _ticks(min(bar[2] for bar in bars), max(bar[3] for bar in bars))
    bottom = step * len(bars) + 10

    def x(value: float) -> float:
        return left + (right - left) * (value - ticks[0]) / (ticks[-1] - ticks[0])

    shapes = []
    for tick in ticks:
        colour = INK if tick == 0 else LINE
        shapes.append(_line([(x(tick), 0), (x(tick), bottom)], colour, 1))
        shapes.append(_text(x(tick), bottom + 18, f"{tick:.4g}", "middle"))
    for row, (label, value, low, high) in enumerate(bars):
        y = step * (row + 0.5) + 4
        shapes.append(_text(left - 10, y + 5, label, "end"))
        shapes.append(_line([(x(low), y), (x(high), y)], FILL, 5))
        shapes.append(_dot(x(value), y))
    return _svg(bottom + 28, "The mean and its confidence region, number by number", shapes)


def _ticks(low: float, high: float) -> list[float]:
    """Return four to eight round numbers that enclose a range."""
    span = (high - low) or abs(high) or 1.0
    step = _round_down(span / 3)
    first, last = floor(low / step), ceil(high / step)
    return [k * step for k in range(first, max(last, first + 1) + 1)]


def _round_down(value: float) -> float:
    """Return the largest of 1, 2, 5, 10, 20, ... and their tenths up to a positive value."""
    size = 10.0 ** floor(log10(value))
    return max(factor * size for factor in (1, 2, 5) if factor * size <= value * (1 + 1e-9))


def _draw_matrix(mean: Array) -> tuple[str, str]:
    side = WIDTH / len(mean)
    largest = float(np.abs(mean).max())
    shapes = [
        f'<rect x="{side * j:.2f}" y="{side * i:.2f}" width="{side + 0.05:.2f}" '
        f'height="{side + 0.05:.2f}" fill="{shade(float(mean[i, j]) / largest)}"/>'
        for i, j in np.ndindex(*mean.shape)
    ]
    caption = (
        "The mean as a map of its numbers, row by row: white is 0, the darkest blue "
        f"{largest:.4g}, the darkest red {-largest:.4g}."
    )
    return _svg(WIDTH, "The mean as a map of its numbers", shapes), caption


def shade(value: float) -> str:
    """Return a light colour for a number in [-1, 1]: red, white, blue."""
    end = np.array([107, 174, 214]) if value > 0 else np.array([244, 150, 120])
    red, green, blue = np.round(255 + min(abs(value), 1.0) * (end - 255)).astype(int)
    return f"#{red:02x}{green:02x}{blue:02x}"


def _draw_sphere(released: Released) -> tuple[str, str]:
    """Draw the ball, and the region once more close up."""
    reach = released.region.manifold.dist(released.mean, released.region.boundary(180)).max()
    overview = _View(released.center, released.radius)
    close_up = _View(released.mean, min(max(float(reach), 1e-6), 1.5))
    pictures = [
        _draw_globe(released, overview, "The ball and the region on the sphere", _grid(overview)),
        _draw_globe(released, close_up, "The region close up", _scale_bar(close_up)),
    ]
    caption = (
        "The sphere, seen from above the center of the ball and close up: a dot for the estimate, "
        "blue for the confidence region, a dashed line around the ball in which records were kept. "
        "The third axis points to the north; grey lines are those of latitude and longitude, every "
        f"{overview.step} degrees."
    )
    return "\n".join(pictures), caption


def _draw_globe(released: Released, view: _View, title: str, shapes: list[str]) -> str:
    sphere, angle = Sphere(2), 2 * pi * np.arange(180) / 180
    circle = released.radius * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    ball = sphere.exp(released.center, sphere.from_coords(released.center, circle))
    edge = f'fill="none" stroke="{INK}" stroke-dasharray="6 5"'
    outline = _path(view.place(released.region.boundary(180)))
    shapes = [
        *shapes,
        f'<path d="{_path(view.place(ball))}Z" {edge}/>',
        f'<path d="{outline}Z" fill="{FILL}" fill-opacity=".35" stroke="{FILL}"/>',
        _dot(*view.place(released.mean)),
    ]
    return _svg(WIDTH, title, shapes)


@dataclass(frozen=True, eq=False)
class _View:
    """Lambert's projection, which keeps areas, of the sphere as seen from above a point.

    `extent` is the angle that takes most of half the picture.
    """

    pole: Array
    extent: float

    @property
    def step(self) -> int:
        """Degrees between lines of latitude."""
        return 30 if degrees(self.extent) > 30 else 10

    @property
    def scale(self) -> float:
        """Units of the picture for a radian in its middle."""
        return 0.42 * WIDTH / (2 * sin(self.extent / 2))

    def place(self, points: Array) -> Array:
        """Return where points of the sphere are in the picture, the third axis upwards."""
        up = np.array([0.0, 0.0, 1.0]) - self.pole[2] * self.pole
        if np.linalg.norm(up) < 1e-6:
            up = np.array([0.0, 1.0, 0.0]) - self.pole[1] * self.pole
        up /= np.linalg.norm(up)
        flat = np.stack([points @ np.cross(up, self.pole), -(points @ up)], axis=-1)
        stretch = np.sqrt(2 / np.maximum(1 + points @ self.pole, 1e-9))[..., None]
        return np.asarray(WIDTH / 2 + self.scale * stretch * flat)


def _grid(view: _View) -> list[str]:
    """Return the lines of latitude and longitude that a view shows."""
    around, upwards = np.radians(np.arange(0, 361, 3)), np.radians(np.arange(-90, 91, 3))
    levels = np.radians(np.arange(view.step - 90, 90, view.step))
    lines = [(around, np.full(len(around), level)) for level in levels]
    turns = np.radians(np.arange(0, 360, view.step))
    lines += [(np.full(len(upwards), turn), upwards) for turn in turns]
    shapes = []
    for turn, height in lines:
        x, y = np.cos(turn) * np.cos(height), np.sin(turn) * np.cos(height)
        points = np.stack([x, y, np.sin(height)], axis=-1)
        seen = points @ view.pole > cos(min(1.7 * view.extent, 3.0))
        edges = np.flatnonzero(np.diff(np.concatenate([[False], seen, [False]])))
        for first, last in zip(edges[::2], edges[1::2], strict=True):
            if last - first > 1:
                shapes.append(_line(view.place(points[first:last]), LINE, 1))
    return shapes


def _scale_bar(view: _View) -> list[str]:
    angle = _round_down(degrees(view.extent) / 2)
    left, y = 20.0, WIDTH - 20.0
    right = left + view.scale * radians(angle)
    return [
        _line([(left, y), (right, y)], INK, 3),
        _text(left, y - 8, f"{angle:g} degrees", "start"),
    ]


def _svg(height: float, title: str, shapes: list[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(title)}">\n'
        + "\n".join(shapes)
        + "\n</svg>"
    )


def _path(points: object) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in np.asarray(points))


def _line(points: object, colour: str, width: float) -> str:
    return f'<path d="{_path(points)}" fill="none" stroke="{colour}" stroke-width="{width:g}"/>'


def _dot(x: float, y: float) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{INK}"/>'


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{INK}">{escape(words)}</text>'
    )
