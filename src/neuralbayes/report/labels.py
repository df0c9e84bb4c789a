"""A picture of labelled rows: two-dimensional data as they are, others by their principal components."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neuralbayes.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito 2008, told apart with every kind of colour vision; its yellow is too pale for points on white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#555555")
MARKERS = "os^DvPX"  # one for each round through the colours
SUFFIXES = (".png", ".svg", ".pdf")
MAX_POINTS = 20_000  # drawn
MAX_PCA_ENTRIES = 10_000_000  # of the matrix that is decomposed: about two seconds
MAX_LEGEND = 14


def plot_labels(
    X: ArrayLike,
    labels: ArrayLike,
    *,
    proba: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw rows as points, coloured by label.

    Rows with one or two features are drawn as they are, others by their first two principal components. Of more than
    20,000 rows a random part is drawn, and the picture says so.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        May be memory-mapped: only the rows that are drawn are read.
    labels : array of int of shape (n_rows,)
    proba : array of shape (n_rows, n_states), optional
        p(z|x); the less certain a row is of its label, the paler its point.
    feature_names : sequence of str, optional
        For the axes.
    title : str, optional
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure that no pyplot window knows of.

    Returns
    -------
    matplotlib Axes
    """
    rows, labels, proba = _checked(X, labels, proba)
    counts = np.bincount(labels, minlength=1 if proba is None else proba.shape[1])
    rng = np.random.default_rng(0)
    # In random order, so that no state covers the others for having the largest number.
    drawn = rng.permutation(len(rows))[:MAX_POINTS]
    points, axis_names, how = _plane(_read(rows, drawn), feature_names, rng)
    if ax is None:
        _, ax = new_picture()
    _scatter(ax, points, labels[drawn], _alpha(labels[drawn], None if proba is None else proba[drawn]))
    _legend(ax, counts)
    part = f"{len(drawn):,} of {len(rows):,} rows" if len(drawn) < len(rows) else f"{len(rows):,} rows"
    _frame(ax, points, axis_names, title, f"{part}{how}{'' if proba is None else '; pale where uncertain'}")
    return ax


def new_picture() -> tuple[Figure, Axes]:
    """An empty figure with one pair of axes, to draw into and give to :func:`save_picture`."""
    _import_matplotlib()
    from matplotlib.figure import Figure  # not pyplot: it would choose a global backend and keep the figure alive
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=(7.2, 5.4), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12))
    return figure, figure.add_subplot()


def save_picture(figure: Figure, path: str | Path) -> None:
    """Write `figure` atomically as .png, .svg or .pdf, by the suffix of `path`; the global backend is left alone."""
    check_picture(path)
    with atomic_write(path) as temporary:
        figure.savefig(temporary, dpi=160, format=Path(path).suffix.lower().removeprefix("."))


def check_picture(path: str | Path) -> None:
    """Raise unless matplotlib is installed and the suffix of `path` is one that it is asked to write."""
    _import_matplotlib()
    if Path(path).suffix.lower() not in SUFFIXES:
        raise ValueError(f"a picture must end in one of {', '.join(SUFFIXES)}, got {str(path)!r}")


def state_color(state: int) -> str:
    """The colour of a state, as in ``#0072B2``; they repeat after the seventh, where the markers change.

    Examples
    --------
    >>> state_color(0) == state_color(7)
    True
    """
    return COLORS[state % len(COLORS)]


def _import_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'neuralbayes[report]'") from error


def _checked(
    X: ArrayLike, labels: ArrayLike, proba: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[np.intp], NDArray[Any] | None]:
    X = X if isinstance(X, np.ndarray) else np.asarray(X)
    labels = np.asarray(labels)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"`X` must have shape (n_rows, n_features), got {X.shape}")
    if labels.shape != X.shape[:1] or labels.dtype.kind not in "iu" or labels.min() < 0:
        raise ValueError(f"`labels` must be {len(X)} non-negative integers, got {labels.dtype} of shape {labels.shape}")
    if proba is not None:
        proba = np.asarray(proba)
        if proba.ndim != 2 or len(proba) != len(X) or proba.shape[1] <= labels.max():
            raise ValueError(
                f"`proba` must have shape ({len(X)}, n_states) with n_states > {labels.max()}, got {proba.shape}"
            )
    return X, labels.astype(np.intp), proba


def _read(rows: NDArray[Any], drawn: NDArray[np.intp]) -> NDArray[np.float64]:
    """The rows `drawn`, fetched from a memory-mapped file in the order in which they lie there."""
    order = np.argsort(drawn)
    picked = np.empty((len(drawn), rows.shape[1]))
    picked[order] = rows[drawn[order]]
    return picked


def _plane(
    rows: NDArray[np.float64], names: Sequence[str] | None, rng: np.random.Generator
) -> tuple[NDArray[np.float64], tuple[str, str], str]:
    """Points (n, 2) for `rows` (n, d), the names of the two axes, and what was done, in words."""
    d = rows.shape[1]
    names = [f"x{i}" for i in range(d)] if names is None else list(names)
    if len(names) != d:
        raise ValueError(f"`feature_names` must be {d} names, one for each feature, got {len(names)}")
    if d == 1:
        return np.column_stack([rows[:, 0], rng.uniform(-1, 1, len(rows))]), (names[0], ""), ", height at random"
    if d == 2:
        return rows, (names[0], names[1]), ""
    fitted = rows[: max(1000, MAX_PCA_ENTRIES // d)]  # the rows are in random order
    fitted = np.repeat(fitted, 2, axis=0) if len(fitted) == 1 else fitted  # two directions take two rows
    mean = fitted.mean(axis=0)
    _, singular, directions = np.linalg.svd(fitted - mean, full_matrices=False)
    variance = singular**2 / max(float((singular**2).sum()), np.finfo(float).tiny)
    axis_names = [f"principal component {i + 1} ({100 * variance[i]:.0f} % of the variance)" for i in range(2)]
    return (rows - mean) @ directions[:2].T, (axis_names[0], axis_names[1]), f", {d} features"


def _alpha(labels: NDArray[np.intp], proba: NDArray[Any] | None) -> NDArray[np.float64]:
    """Opacity of each point: from 0.15 where the label is a guess to 0.85 where it is certain."""
    if proba is None:
        return np.full(len(labels), 0.85)
    chance = 1.0 / proba.shape[1]
    certainty = (proba[np.arange(len(labels)), labels] - chance) / max(1.0 - chance, chance)
    return np.asarray(0.15 + 0.7 * np.clip(certainty, 0.0, 1.0), dtype=np.float64)


def _scatter(ax: Axes, points: NDArray[np.float64], labels: NDArray[np.intp], alpha: NDArray[np.float64]) -> None:
    from matplotlib.colors import to_rgba_array

    colors = to_rgba_array([state_color(k) for k in range(labels.max() + 1)])[labels]
    colors[:, 3] = alpha
    size = float(np.clip(30_000 / len(points), 4.0, 30.0))
    rounds = labels // len(COLORS) % len(MARKERS)
    for shape in np.unique(rounds):
        x, y = points[rounds == shape].T
        color = colors[rounds == shape]
        ax.scatter(x, y, s=size, c=color, marker=MARKERS[shape], linewidths=0, rasterized=True, zorder=2)


def _legend(ax: Axes, counts: NDArray[np.intp]) -> None:
    """One entry for each state with its share of all rows, the largest if there are too many."""
    from matplotlib.lines import Line2D

    shown = np.sort(np.argsort(-counts, kind="stable")[:MAX_LEGEND])
    handles = [
        Line2D(
            [],
            [],
            linestyle="",
            marker=MARKERS[k // len(COLORS) % len(MARKERS)],
            color=state_color(int(k)),
            markersize=7,
            label=f"state {k}: {100 * counts[k] / counts.sum():.1f} %",
        )
        for k in shown
    ]
    hidden = len(counts) - len(shown)
    ax.legend(
        handles=handles,
        title=f"the largest {MAX_LEGEND} of {len(counts)}" if hidden else None,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        frameon=False,
        handletextpad=0.2,
    )


def _frame(ax: Axes, points: NDArray[np.float64], names: tuple[str, str], title: str | None, caption: str) -> None:
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])
    if not names[1]:
        ax.set_yticks([])
    extent = np.ptp(points, axis=0)
    if names[1] and extent.min() > extent.max() / 8:  # features in very different units would become a line
        ax.set_aspect("equal", adjustable="datalim")
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color("#999999")
    ax.tick_params(color="#999999", labelcolor="#555555")
    ax.grid(color="#eeeeee", zorder=0)
    ax.set_axisbelow(True)
    ax.set_title(caption, loc="left", fontsize=9, color="#555555")
    if title is not None:
        ax.annotate(
            title, (0, 1), (0, 24), xycoords="axes fraction", textcoords="offset points", fontsize=13, weight="bold"
        )
