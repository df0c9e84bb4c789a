"""Common style of all pictures: colour-blind safe colours, light frames, light and dark themes, new figures and
files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
DEAD_COLOR = "#cc0000"
SUFFIXES = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class Theme:
    """Colours of frames and text, of states, and of sequential maps."""

    ink: str = "#222222"
    muted: str = "#555555"
    line: str = "#999999"
    grid: str = "#eeeeee"
    ground: str = "#ffffff"
    dead: str = DEAD_COLOR
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
    """The current theme: that of the innermost :func:`theme`, or light."""
    return _current.get()


@contextmanager
def theme(name: Literal["light", "dark"], *, transparent: bool = False) -> Iterator[None]:
    """Draw in light or dark colours inside the block.

    Parameters
    ----------
    name : {"light", "dark"}
    transparent : bool, default=False
        Omit the background of new figures, for pages with their own background.

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
    ground = "none" if transparent else chosen.ground
    colors: Any = {
        "text.color": chosen.ink,
        "axes.labelcolor": chosen.ink,
        "axes.edgecolor": chosen.line,
        "axes.facecolor": ground,
        "figure.facecolor": ground,
        "savefig.facecolor": ground,
        "xtick.color": chosen.muted,
        "ytick.color": chosen.muted,
    }
    token = _current.set(chosen)
    try:
        with rc_context(colors):
            yield
    finally:
        _current.reset(token)


def state_color(state: int) -> str:
    """The colour of a state, such as ``#0072B2``. Colours repeat after the seventh, with other markers.

    Examples
    --------
    >>> state_color(0) == state_color(7)
    True
    """
    colors = current_theme().colors
    return colors[state % len(colors)]


def literal(text: str) -> str:
    r"""Escape a user's name, so that matplotlib does not read dollar signs as formulas.

    Examples
    --------
    >>> print(literal("price in $, weight"))
    price in \$, weight
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("$", r"\$")


def problem_of(draw: Callable[[], object]) -> str | None:
    """Call `draw`, and report errors instead of raising them: a failed picture must not lose a result.

    Examples
    --------
    >>> problem_of(lambda: None), problem_of(lambda: 1 / 0)
    (None, 'ZeroDivisionError: division by zero')
    """
    try:
        draw()
    except Exception as error:  # any error of matplotlib, its fonts or the disk
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return None


def new_picture() -> tuple[Figure, Axes]:
    """An empty figure with one pair of axes, for :func:`save_picture`."""
    from matplotlib.figure import Figure  # not pyplot, which would choose a global backend and keep the figure alive
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=(7.2, 5.4), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12))
    return figure, figure.add_subplot()


def save_picture(figure: Figure, path: str | Path) -> None:
    """Write `figure` atomically as .png, .svg or .pdf, by the suffix of `path`, without using a global backend.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> display = nb.plot.StatesDisplay([0.5, 0.3, 0.2]).plot()
    >>> nb.plot.save_picture(display.figure_, "states.png")
    """
    check_picture(path)
    with atomic_write(path) as temporary:
        figure.savefig(temporary, dpi=160, format=Path(path).suffix.lower().removeprefix("."))


def check_picture(path: str | Path) -> None:
    """Raise unless the suffix of `path` is supported."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise ValueError(f"a picture must end in one of {', '.join(SUFFIXES)}, got {str(path)!r}")


def quiet_frame(ax: Axes) -> None:
    """Draw grey axes on the left and at the bottom, and faint horizontal lines behind the data."""
    colors = current_theme()
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(colors.line)
    ax.tick_params(color=colors.line, labelcolor=colors.muted, labelsize=8)
    ax.grid(axis="y", color=colors.grid, zorder=0)
    ax.set_axisbelow(True)
