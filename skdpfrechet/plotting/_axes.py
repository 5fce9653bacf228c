"""Axes to draw on, and colours, dashes and markers that are told apart in grey and by everyone."""

from __future__ import annotations

from itertools import cycle, islice
from typing import Any, NamedTuple

GREY = "0.45"


class Style(NamedTuple):
    """How one region or curve is drawn."""

    color: str
    linestyle: Any
    marker: str


_STYLES = (  # the colours of Okabe and Ito
    Style("#0072B2", "-", "o"),
    Style("#E69F00", "--", "s"),
    Style("#009E73", "-.", "^"),
    Style("#CC79A7", ":", "D"),
    Style("#D55E00", (0, (8, 2)), "v"),
    Style("#56B4E9", (0, (4, 1, 1, 1, 1, 1)), "P"),
)


def open_axes(ax: Any, caller: str, *, solid: bool = False) -> Any:
    """Return `ax`, or new axes if it is None, three-dimensional ones if `solid`."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError(
            f"{caller} requires matplotlib; install it with pip install 'skdpfrechet[plot]'."
        ) from None
    if ax is None:
        kwargs = {"projection": "3d"} if solid else {}
        return plt.subplots(layout="constrained", subplot_kw=kwargs)[1]
    wanted = "3d" if solid else "rectilinear"
    if ax.name != wanted:
        raise ValueError(f"ax must have the projection {wanted!r} for {caller}, got {ax.name!r}.")
    return ax


def next_styles(ax: Any, n: int) -> list[Style]:
    """Return `n` styles, after those that the labelled artists of `ax` have taken."""
    taken = len(ax.get_legend_handles_labels()[1])
    return list(islice(cycle(_STYLES), taken, taken + n))
