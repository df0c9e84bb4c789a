"""How the axes of all pictures look."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def quiet_frame(ax: Axes) -> None:
    """Grey axes at the left and below, and faint horizontal lines behind the data."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color("#999999")
    ax.tick_params(color="#999999", labelcolor="#555555", labelsize=8)
    ax.grid(axis="y", color="#eeeeee", zorder=0)
    ax.set_axisbelow(True)
