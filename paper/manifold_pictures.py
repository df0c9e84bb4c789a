"""Manifolds in the plane: points coloured by state on the map of p(z|x), as in the paper's figure 4."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from neuralbayes.plot.maps import Regions
from neuralbayes.plot.style import new_picture, state_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Panel:
    """One set of points with its states.

    Attributes
    ----------
    title, caption : str
    certified : bool
        Whether the states are certified as disjoint, which sets the colour of the caption.
    points : ndarray of shape (n, 2)
    labels : ndarray of int and shape (n,)
    extent : tuple of four floats
        Left, right, bottom and top of the map.
    decision_map : ndarray of shape (rows, columns, n_states)
        p(z|x) on a grid, from the bottom up.
    """

    title: str
    caption: str
    certified: bool
    points: NDArray[np.float64]
    labels: NDArray[np.int64]
    extent: tuple[float, float, float, float]
    decision_map: NDArray[np.float64]


def draw_manifolds(panels: Sequence[Panel], columns: int | None = None) -> Figure:
    """Draw all panels, `columns` per row, by default in one row."""
    if not panels:
        raise ValueError("`panels` must not be empty")
    figure, first = new_picture()
    first.remove()
    columns = columns or len(panels)
    rows = -(-len(panels) // columns)
    figure.set_size_inches(2.1 * columns, 2.6 * rows)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel, ax in zip(panels, axes, strict=False):
        plot_manifolds(panel, ax)
    for ax in axes[len(panels) :]:
        ax.remove()
    return figure


def plot_manifolds(panel: Panel, ax: Axes) -> None:
    """Draw one panel into axes, in a frame with its title and caption."""
    plot_points(panel, ax)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_color("#cccccc")
    ax.set_title(panel.title, fontsize=11, weight="bold", color="#222222", pad=6)
    ax.set_xlabel(panel.caption, fontsize=9, color="#00664d" if panel.certified else "#a34700", labelpad=5)


def plot_points(panel: Panel, ax: Axes) -> None:
    """Draw the points of one panel on its map."""
    n_states = panel.decision_map.shape[2]
    image = Regions(panel.extent, panel.decision_map).image(panel.points)
    ax.imshow(image, extent=panel.extent, origin="lower", interpolation="bilinear", zorder=1)
    for k in range(n_states):
        x, y = panel.points[panel.labels == k].T
        ax.scatter(x, y, s=4.5, color=state_color(k), linewidths=0, rasterized=True, zorder=2)
