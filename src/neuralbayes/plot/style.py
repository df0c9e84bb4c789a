"""What all pictures share: colours for colour-blind readers, light and dark themes, quiet frames, figures and files."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from neuralbayes.system.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito 2008, safe for colour-blind readers; without yellow, which is too pale for points on white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#555555")
MARKERS = "os^DvPX"  # one for each cycle through the colours


@dataclass(frozen=True)
class Theme:
    """Colours of frames and text, of states, and of sequential maps."""

    ink: str = "#222222"
    muted: str = "#555555"
    line: str = "#999999"
    grid: str = "#eeeeee"
    ground: str = "#ffffff"
    dead: str = "#cc0000"
    colors: tuple[str, ...] = COLORS
    shades: tuple[str, ...] = ("#f7fbff", "#6baed6", "#08306b")


LIGHT = Theme()
DARK = Theme(
    ink="#e8ebf0",
    muted="#aeb6c2",
    line="#5d6775",
    grid="#2b323c",
    ground="#161b22",
    dead="#ff6b6b",
    colors=(*COLORS[:-1], "#b8bec8"),
    shades=("#1c232c", "#2a6496", "#b3d9f5"),
)
_current: ContextVar[Theme] = ContextVar("theme", default=LIGHT)


def current_theme() -> Theme:
    """That of the innermost :func:`theme`, or light."""
    return _current.get()


@contextmanager
def theme(name: Literal["light", "dark"], *, transparent: bool = False) -> Iterator[None]:
    """Draw in "light" or "dark" colours inside the block; `transparent` without a background, for pages with their own.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> with nb.plot.theme("dark"):
    ...     display = nb.plot.StatesDisplay([0.5, 0.3, 0.2]).plot()
    >>> display.figure_.get_facecolor()[0] < 0.2
    True
    """
    if name not in ("light", "dark"):
        raise ValueError(f"`name` must be 'light' or 'dark', got {name!r}")
    from matplotlib import rc_context

    chosen = DARK if name == "dark" else LIGHT
    colors: dict[Any, str] = dict.fromkeys(("text.color", "axes.labelcolor"), chosen.ink)
    colors |= dict.fromkeys(("xtick.color", "ytick.color"), chosen.muted)
    grounds = ("axes.facecolor", "figure.facecolor", "savefig.facecolor")
    colors |= dict.fromkeys(grounds, "none" if transparent else chosen.ground)
    token = _current.set(chosen)
    try:
        with rc_context({**colors, "axes.edgecolor": chosen.line}):
            yield
    finally:
        _current.reset(token)


def state_color(state: int) -> str:
    """The colour of a state, such as ``#0072B2``. Colours repeat after the seventh, with other markers."""
    return current_theme().colors[state % len(COLORS)]


def literal(text: str) -> str:
    """Escape a user's name, so that matplotlib does not read dollar signs as formulas."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("$", r"\$")


def new_picture(width: float = 7.2, height: float = 5.4) -> tuple[Figure, Axes]:
    """An empty figure of a size in inches with one pair of axes, for :func:`save_picture`."""
    from matplotlib.figure import Figure  # not pyplot, which would choose a global backend and keep the figure alive
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12))
    return figure, figure.add_subplot()


def save_picture(figure: Figure, path: str | Path) -> None:
    """Write `figure` atomically, as .png, .svg or .pdf by the suffix of `path`, without using a global backend.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> nb.plot.save_picture(nb.plot.StatesDisplay([0.5, 0.3, 0.2]).plot().figure_, "states.png")
    """
    with atomic_write(path) as temporary:
        figure.savefig(temporary, dpi=160, format=Path(path).suffix.lower().removeprefix("."))


def quiet_frame(ax: Axes) -> None:
    """Draw grey axes on the left and at the bottom, and faint horizontal lines behind the data."""
    colors = current_theme()
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(colors.line)
    ax.tick_params(color=colors.line, labelcolor=colors.muted, labelsize=8)
    ax.grid(axis="y", color=colors.grid, zorder=0)
    ax.set_axisbelow(True)


class Display:
    """A display that a notebook shows at the end of a cell."""

    ax_: Axes
    figure_: Figure

    def _begin(self, ax: Axes | None, height: float = 5.4) -> Axes:
        """The axes to draw into: `ax`, or those of a new figure outside pyplot, of a height in inches."""
        if ax is None:
            self.figure_, self.ax_ = new_picture(height=height)
        else:
            self.ax_, self.figure_ = ax, ax.figure.figure
        return self.ax_

    def _repr_png_(self) -> bytes | None:
        """PNG for IPython; None before drawing, and if pyplot shows the figure."""
        figure = getattr(self, "figure_", None)
        if figure is None or figure.canvas.manager is not None:
            return None
        png = io.BytesIO()
        figure.savefig(png, format="png")
        return png.getvalue()
