"""Base class of all displays: their axes, and how a notebook shows them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from neuralbayes.plot.style import new_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Display:
    """A display that a notebook shows at the end of a cell.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    ax_: Axes
    figure_: Figure

    def _begin(self, ax: Axes | None, size: tuple[float, float] | None = None) -> Axes:
        """The axes to draw into: `ax`, or those of a new figure outside pyplot, with a size in inches."""
        if ax is not None:
            self.ax_, self.figure_ = ax, ax.figure.figure
            return ax
        self.figure_, self.ax_ = new_picture()
        if size is not None:
            self.figure_.set_size_inches(*size)
        return self.ax_

    def _repr_png_(self) -> bytes | None:
        """PNG for IPython; None before drawing, and if pyplot shows the figure."""
        figure = getattr(self, "figure_", None)
        if figure is None or figure.canvas.manager is not None:
            return None
        png = io.BytesIO()
        figure.savefig(png, format="png")
        return png.getvalue()
