"""Labelled rows as points in the plane, with p(z|x) over the plane as a pale background, as in the paper's figure 4."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neuralbayes.plot.style import COLORS, MARKERS, Display, current_theme, literal, quiet_frame, state_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_LEGEND = 14
GRID = 160  # points along each side of the background
PALE = 0.28  # opacity of the background near points
FADE = (0.06, 0.14)  # distances from them at which it starts to fade and ends, relative to its width and height


class StateMapDisplay(Display):
    """Rows as points, coloured by state.

    Rows with one or two features are drawn directly, others by their first two principal components. If there are more
    than `max_points` rows, a random subset is drawn, and the title says so.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        May be memory-mapped: only the drawn rows are read.
    labels : array-like of int of shape (n_rows,)
    proba : array-like of shape (n_rows, n_states), optional
        p(z|x). Points with uncertain labels are paler.
    feature_names : sequence of str, optional
        Labels of the axes.
    standardize : bool, default=False
        Divide three or more features by their standard deviations before the principal components.
    max_points : int, default=20000

    Attributes
    ----------
    points : ndarray of shape (n_drawn, 2)

    Examples
    --------
    >>> import numpy as np
    >>> import neuralbayes as nb
    >>> display = nb.plot.StateMapDisplay(np.eye(4, 2), [0, 1, 1, 1]).plot(title="four rows")
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['cluster 0: 25.0 %', 'cluster 1: 75.0 %']
    """

    def __init__(
        self,
        X: ArrayLike,
        labels: ArrayLike,
        *,
        proba: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        standardize: bool = False,
        max_points: int = 20_000,
    ) -> None:
        rows, states = np.asarray(X), np.asarray(labels)
        if rows.ndim != 2 or 0 in rows.shape:
            raise ValueError(f"`X` must have shape (n_rows, n_features), got {rows.shape}")
        if states.shape != rows.shape[:1] or states.dtype.kind not in "iu" or states.min() < 0:
            raise ValueError(f"`labels` must be {len(rows)} integers from 0, got {states.dtype} {states.shape}")
        p_zx = np.ones((len(rows), states.max() + 1)) if proba is None else np.asarray(proba)
        if p_zx.ndim != 2 or len(p_zx) != len(rows) or p_zx.shape[1] <= states.max():
            raise ValueError(f"`proba` must have shape ({len(rows)}, {states.max() + 1} or more), got {p_zx.shape}")
        self.n_rows, n_states = p_zx.shape
        self.counts = np.bincount(states, minlength=n_states)
        # In random order, so that no state systematically covers the others.
        drawn = np.random.default_rng(0).permutation(len(rows))[:max_points]
        self.labels = states[drawn].astype(np.intp)
        self.points, self.axis_names, self._how = _plane(rows[drawn], feature_names, standardize)
        chance = 1.0 / n_states if n_states > 1 else 0.0
        certainty = (p_zx[drawn, self.labels] - chance) / (1.0 - chance)
        self._alpha = 0.15 + 0.7 * np.clip(certainty, 0.0, 1.0)
        self._how += "" if proba is None else "; pale where uncertain"
        self.regions: Regions | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, title: str | None = None, ax: Axes | None = None) -> Self:
        """Draw rows with the labels of a fitted estimator; if there are two features, on p(z|x) over the plane."""
        proba = np.asarray(estimator.predict_proba(X))
        display = cls(
            X,
            proba.argmax(axis=1),
            proba=proba,
            feature_names=getattr(estimator, "feature_names_in_", None),
            standardize=bool(getattr(estimator, "standardize", getattr(estimator, "kind_", None) == "table")),
        )
        if np.shape(X)[1] == 2:
            columns = getattr(X, "columns", None)  # an estimator of a data frame wants its column names
            display.regions = Regions.of(
                lambda grid: estimator.predict_proba(grid if columns is None else type(X)(grid, columns=columns)),
                display.points,
            )
        return display.plot(ax=ax, title=title)

    def plot(self, *, ax: Axes | None = None, title: str | None = None) -> Self:
        """Draw into `ax`, by default into a new figure outside pyplot, with an optional title; returns self."""
        width, height = np.ptp(self.points, axis=0)
        # In equal units, unless one of them means nothing or the picture would be a line.
        equal = bool(self.axis_names[1]) and min(width, height) > max(width, height) / 8
        ax = self._begin(ax, height=float(np.clip(1.4 + 4.8 * height / width, 3.4, 5.4)) if equal else 5.4)
        quiet_frame(ax)
        ax.grid(axis="both", color=current_theme().grid, zorder=0)
        if equal:
            ax.set_aspect("equal", adjustable="datalim")  # "box" would need a second layout
        if self.regions is not None:
            image, extent = self.regions.image(self.points), self.regions.extent
            ax.imshow(image, extent=extent, origin="lower", aspect=ax.get_aspect(), zorder=1)
        self._scatter(ax)
        for k in np.sort(np.argsort(-self.counts, kind="stable")[:MAX_LEGEND]):
            label = f"cluster {k}: {100 * self.counts[k] / self.counts.sum():.1f} %"
            ax.scatter([], [], s=49, color=state_color(k), marker=MARKERS[k // len(COLORS) % len(MARKERS)], label=label)
        heading = f"the largest {MAX_LEGEND} of {len(self.counts)}" if len(self.counts) > MAX_LEGEND else None
        ax.legend(title=heading, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, handletextpad=0.2)
        ax.set(xlabel=literal(self.axis_names[0]), ylabel=literal(self.axis_names[1]))
        if not self.axis_names[1]:
            ax.set_yticks([])
        n = len(self.points)
        part = f"{n:,} of {self.n_rows:,} rows" if n < self.n_rows else f"{n:,} rows"
        caption = part + self._how if title is None else f"{literal(title)}\n{part}{self._how}"
        ax.set_title(caption, loc="left", fontsize=9, color=current_theme().muted)
        return self

    def _scatter(self, ax: Axes) -> None:
        from matplotlib.colors import to_rgba_array

        colors = to_rgba_array([state_color(k) for k in range(len(self.counts))])[self.labels]
        colors[:, 3] = self._alpha
        size = float(np.clip(30_000 / len(self.points), 4.0, 30.0))
        shapes = self.labels // len(COLORS) % len(MARKERS)
        for shape in np.unique(shapes):
            x, y = self.points[shapes == shape].T
            color = colors[shapes == shape]
            ax.scatter(x, y, s=size, c=color, marker=MARKERS[shape], linewidths=0, rasterized=True, zorder=2)


def _plane(
    rows: NDArray[Any], names: Sequence[str] | None, standardize: bool
) -> tuple[NDArray[np.float64], tuple[str, str], str]:
    """Points (n, 2), the names of their axes, and the projection in words."""
    rows = np.asarray(rows, dtype=np.float64)
    n, d = rows.shape
    names = [f"x{i}" for i in range(d)] if names is None else list(names)
    if len(names) != d:
        raise ValueError(f"`feature_names` must be {d} names, one for each feature, got {len(names)}")
    if d == 1:
        heights = np.random.default_rng(0).uniform(-1, 1, n)
        return np.column_stack([rows[:, 0], heights]), (names[0], ""), ", height at random"
    if d == 2:
        return rows, (names[0], names[1]), ""
    if standardize:
        deviation = rows.std(axis=0)
        rows = rows / np.where(deviation > 0.0, deviation, 1.0)
    fitted = rows[: max(1000, 10_000_000 // d)]  # more would take more than about two seconds
    fitted = np.repeat(fitted, 2, axis=0) if n == 1 else fitted  # two directions need two rows
    mean = fitted.mean(axis=0)
    _, singular, directions = np.linalg.svd(fitted - mean, full_matrices=False)
    percent = 100 * singular**2 / max(float((singular**2).sum()), np.finfo(float).tiny)
    first, second = (f"principal component {i + 1} ({percent[i]:.0f} % of the variance)" for i in range(2))
    unit = ", each divided by its standard deviation" if standardize else ""
    return (rows - mean) @ directions[:2].T, (first, second), f", {d} features{unit}"


@dataclass(frozen=True)
class Regions:
    """p(z|x) over the plane: `p_zx` (rows from the bottom up, columns, n_states) within `extent` (left, right, bottom,
    top)."""

    extent: tuple[float, float, float, float]
    p_zx: NDArray[np.float64]

    @classmethod
    def of(cls, predict_proba: Callable[[NDArray[Any]], ArrayLike], points: NDArray[np.float64]) -> Regions:
        """The regions around `points` (n, 2)."""
        low, high = points.min(axis=0), points.max(axis=0)
        margin = FADE[1] / (1.0 - 2.0 * FADE[1])  # so that the background fades before its edge
        room = margin * np.maximum(high - low, 1e-12 + 1e-6 * np.abs(high))
        (left, bottom), (right, top) = (low - room).tolist(), (high + room).tolist()
        grid = np.stack(np.meshgrid(np.linspace(left, right, GRID), np.linspace(bottom, top, GRID)), axis=-1)
        p_zx = np.asarray(predict_proba(grid.reshape(-1, 2)), dtype=np.float64).reshape(GRID, GRID, -1)
        return cls((left, right, bottom, top), p_zx)

    def image(self, points: NDArray[Any]) -> NDArray[np.float64]:
        """The states' colours mixed by p(z|x), fading away from the `points`, where predictions mean little."""
        from matplotlib.colors import to_rgb
        from scipy.spatial import KDTree

        left, right, bottom, top = self.extent
        n_rows, n_columns, n_states = self.p_zx.shape
        grid = np.stack(np.meshgrid(np.linspace(left, right, n_columns), np.linspace(bottom, top, n_rows)), axis=-1)
        size = np.array([right - left, top - bottom])
        distance, _ = KDTree(points / size).query(grid / size)
        left_to_go = np.clip((FADE[1] - distance) / (FADE[1] - FADE[0]), 0.0, 1.0)
        opacity = PALE * left_to_go**2 * (3.0 - 2.0 * left_to_go)
        colors = np.array([to_rgb(state_color(k)) for k in range(n_states)])
        return np.dstack([np.clip(self.p_zx @ colors, 0.0, 1.0), opacity])
