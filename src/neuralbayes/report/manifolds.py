"""Manifolds in the plane: points in the colour of their state on the map of p(z|x), as in the paper's figure 4."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from neuralbayes.report.labels import new_picture, state_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALE = 0.28
"""How much of a state's colour is left in the map, the rest being white."""


FADE = (0.06, 0.14)
"""Distances from the points at which the map begins to fade and has faded, as shares of the picture's width."""


@dataclass(frozen=True)
class Panel:
    """One set of points with its states.

    Attributes
    ----------
    title, caption : str
    certified : bool
        Whether the states are certified disjoint, which the colour of the caption repeats.
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
    """All panels, `columns` in a row, by default in one row.

    Returns
    -------
    matplotlib Figure
        For :func:`neuralbayes.report.labels.save_picture`.
    """
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
    """One panel in the axes given."""
    n_states = panel.decision_map.shape[2]
    image = np.dstack([map_colors(panel.decision_map), _nearness(panel)])
    ax.imshow(image, extent=panel.extent, origin="lower", interpolation="bilinear", zorder=1)
    for k in range(n_states):
        x, y = panel.points[panel.labels == k].T
        ax.scatter(x, y, s=4.5, color=state_color(k), linewidths=0, rasterized=True, zorder=2)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_color("#cccccc")
    ax.set_title(panel.title, fontsize=11, weight="bold", color="#222222", pad=6)
    ax.set_xlabel(panel.caption, fontsize=9, color="#00664d" if panel.certified else "#a34700", labelpad=5)


def map_colors(p_zx: NDArray[np.float64]) -> NDArray[np.float64]:
    """Colours of the states mixed by p(z|x) and made pale: (..., n_states) -> (..., 3).

    Examples
    --------
    >>> map_colors(np.array([1.0, 0.0])).round(2)  # state 0 is #0072B2
    array([0.72, 0.85, 0.92])
    """
    from matplotlib.colors import to_rgb

    colors = np.array([to_rgb(state_color(k)) for k in range(p_zx.shape[-1])])
    mixed: NDArray[np.float64] = 1.0 - PALE * (1.0 - p_zx @ colors)
    return mixed


def _nearness(panel: Panel) -> NDArray[np.float64]:
    """Opacity of the map: 1 at the points, fading where there are none and the network's answer means little."""
    from scipy.spatial import KDTree

    left, right, bottom, top = panel.extent
    n_rows, n_columns = panel.decision_map.shape[:2]
    grid = np.stack(np.meshgrid(np.linspace(left, right, n_columns), np.linspace(bottom, top, n_rows)), axis=-1)
    distance, _ = KDTree(panel.points).query(grid)
    near, far = FADE
    left_to_go = np.clip((far - distance / (right - left)) / (far - near), 0.0, 1.0)
    opacity: NDArray[np.float64] = left_to_go**2 * (3.0 - 2.0 * left_to_go)
    return opacity
