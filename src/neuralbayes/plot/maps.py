"""Labelled rows as points in the plane, with the regions of the states in the background."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neuralbayes.plot.display import Display
from neuralbayes.plot.plane import Plane, plane, standardizes
from neuralbayes.plot.regions import Regions
from neuralbayes.plot.style import COLORS, MARKERS, current_theme, literal, state_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_LEGEND = 14


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
    regions : Regions, optional
        p(z|x) over the plane, for rows with two features.
    standardize : bool, default=False
        Standardise the features before the principal components, as an estimator with ``standardize=True`` does. One or
        two features are always drawn in their own units.
    max_points : int, default=20000

    Attributes
    ----------
    points : ndarray of shape (n_drawn, 2)
    labels : ndarray of shape (n_drawn,)
        States of the points.
    counts : ndarray of shape (n_states,)
        Rows in each state, drawn or not.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

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
        regions: Regions | None = None,
        standardize: bool = False,
        max_points: int = 20_000,
    ) -> None:
        rows, states, posteriors = _checked(X, labels, proba)
        if regions is not None and rows.shape[1] != 2:
            raise ValueError(f"`regions` must belong to rows with two features, got {rows.shape[1]}")
        self.n_rows = len(rows)
        self.counts = np.bincount(states, minlength=1 if posteriors is None else posteriors.shape[1])
        rng = np.random.default_rng(0)
        # In random order, so that no state systematically covers the others.
        drawn = rng.permutation(len(rows))[:max_points]
        self.plane: Plane = plane(_read(rows, drawn), feature_names, rng, standardize=standardize)
        self.labels = states[drawn]
        self.regions = regions
        self._has_proba = posteriors is not None
        self._alpha = _alpha(self.labels, None if posteriors is None else posteriors[drawn])

    @property
    def points(self) -> NDArray[np.float64]:
        """The points that are drawn, (n_drawn, 2)."""
        return self.plane.points

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        regions: bool = True,
        title: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw rows with the labels of an estimator.

        Parameters
        ----------
        estimator : fitted estimator with `predict_proba`, such as :class:`neuralbayes.ManifoldLabeler`
        X : array-like or DataFrame of shape (n_rows, n_features)
        regions : bool, default=True
            Whether to draw p(z|x) over the plane, if there are two features.
        title : str, optional
        ax : matplotlib Axes, optional

        Examples
        --------
        >>> import neuralbayes as nb
        >>> from neuralbayes.data.toys import make_moons
        >>> X, _ = make_moons(300, random_state=0)
        >>> labeler = nb.ManifoldLabeler(n_clusters=2, n_init=2, random_state=0).fit(X)
        >>> nb.plot.StateMapDisplay.from_estimator(labeler, X).regions.p_zx.shape
        (160, 160, 2)
        """
        proba = np.asarray(estimator.predict_proba(X))
        names = getattr(estimator, "feature_names_in_", None)
        rows = np.asarray(X)
        found = None
        if regions and rows.ndim == 2 and rows.shape[1] == 2:
            found = Regions.of(lambda grid: estimator.predict_proba(_like(X, grid)), rows)
        return cls(
            rows,
            proba.argmax(axis=1),
            proba=proba,
            feature_names=names,
            regions=found,
            standardize=standardizes(estimator),
        ).plot(ax=ax, title=title)

    def plot(self, *, ax: Axes | None = None, title: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default the axes of a new figure outside pyplot.
        title : str, optional

        Returns
        -------
        self
        """
        ax = self._begin(ax, self._size())
        if self.regions is not None:
            image = self.regions.image(self.points)
            ax.imshow(image, extent=self.regions.extent, origin="lower", aspect="auto", zorder=1)
        _scatter(ax, self.points, self.labels, self._alpha)
        _legend(ax, self.counts)
        n = len(self.points)
        part = f"{n:,} of {self.n_rows:,} rows" if n < self.n_rows else f"{n:,} rows"
        pale = "; pale where uncertain" if self._has_proba else ""
        if self._equal_units():
            ax.set_aspect("equal", adjustable="box")
        _frame(ax, self.plane, title, f"{part}{self.plane.how}{pale}")
        return self

    def _equal_units(self) -> bool:
        """Whether both axes have the same scale. With very different extents, the picture would be a line."""
        extent = np.ptp(self.points, axis=0)
        return bool(self.plane.axis_names[1]) and bool(extent.min() > extent.max() / 8)

    def _size(self) -> tuple[float, float] | None:
        """Size of a new figure in inches: no higher than the scale or the legend requires."""
        if not self._equal_units():
            return None
        width, height = np.ptp(self.points, axis=0)
        return 7.2, float(np.clip(1.4 + 4.8 * height / width, 3.4, 5.4))


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
    """The rows `drawn`, read from a memory-mapped file in file order."""
    order = np.argsort(drawn)
    picked = np.empty((len(drawn), rows.shape[1]))
    picked[order] = rows[drawn[order]]
    return picked


def _like(X: Any, grid: NDArray[np.float64]) -> Any:
    """The grid in the form of `X`, with the same column names, if it has any."""
    return type(X)(grid, columns=X.columns) if hasattr(X, "columns") else grid


def _alpha(labels: NDArray[np.intp], proba: NDArray[Any] | None) -> NDArray[np.float64]:
    """Opacity of each point: from 0.15 for a guess to 0.85 for a certain label."""
    if proba is None or proba.shape[1] == 1:
        return np.full(len(labels), 0.85)
    chance = 1.0 / proba.shape[1]
    certainty = (proba[np.arange(len(labels)), labels] - chance) / (1.0 - chance)
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
    """Draw one legend entry per cluster with its share of all rows; only the largest if there are too many."""
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
            label=f"cluster {k}: {100 * counts[k] / counts.sum():.1f} %",
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


def _frame(ax: Axes, drawn: Plane, title: str | None, caption: str) -> None:
    colors = current_theme()
    ax.set_xlabel(literal(drawn.axis_names[0]))
    ax.set_ylabel(literal(drawn.axis_names[1]))
    if not drawn.axis_names[1]:
        ax.set_yticks([])
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(colors.line)
    ax.tick_params(color=colors.line, labelcolor=colors.muted)
    ax.grid(color=colors.grid, zorder=0)
    ax.set_axisbelow(True)
    ax.set_title(caption, loc="left", fontsize=9, color=colors.muted)
    if title is not None:
        ax.annotate(
            literal(title),
            (0, 1),
            (0, 24),
            xycoords="axes fraction",
            textcoords="offset points",
            fontsize=13,
            weight="bold",
        )
