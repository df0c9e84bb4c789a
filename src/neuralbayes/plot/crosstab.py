"""Cross-tables of two labels of the same samples, such as a confusion matrix, or clusters by class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from neuralbayes.plot.display import Display
from neuralbayes.plot.style import current_theme, literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_NUMBERS = 20  # maximum number of rows and columns with numbers and names


class CrosstabDisplay(Display):
    """A coloured table of counts, in percent of each row or column.

    Parameters
    ----------
    counts : array-like of shape (n_rows, n_columns)
    row_names, column_names : sequence of str, optional
        By default their numbers.
    normalize : {"rows", "columns"}, default="rows"
        Whether rows or columns add up to 100 %.

    Attributes
    ----------
    counts : ndarray of shape (n_rows, n_columns)
    percent : ndarray of shape (n_rows, n_columns)
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import neuralbayes as nb
    >>> display = nb.plot.CrosstabDisplay([[8, 2], [0, 5]], row_names=["cat", "dog"]).plot()
    >>> [text.get_text() for text in display.ax_.texts]
    ['80', '20', '100']
    """

    def __init__(
        self,
        counts: ArrayLike,
        *,
        row_names: Sequence[str] | None = None,
        column_names: Sequence[str] | None = None,
        normalize: Literal["rows", "columns"] = "rows",
    ) -> None:
        if normalize not in ("rows", "columns"):
            raise ValueError(f"`normalize` must be 'rows' or 'columns', got {normalize!r}")
        self.counts = np.asarray(counts, dtype=np.float64)
        if self.counts.ndim != 2 or self.counts.size == 0:
            raise ValueError(f"`counts` must have shape (n_rows, n_columns), got {self.counts.shape}")
        self.row_names = _names("row_names", row_names, self.counts.shape[0])
        self.column_names = _names("column_names", column_names, self.counts.shape[1])
        axis = 1 if normalize == "rows" else 0
        self.percent = 100.0 * self.counts / np.maximum(self.counts.sum(axis=axis, keepdims=True), 1.0)

    @classmethod
    def from_labels(
        cls,
        states: ArrayLike,
        classes: ArrayLike,
        *,
        class_names: Sequence[str] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the classes of the samples in each state, in percent of the state.

        States are sorted by their most common class. Empty states are left out.

        Parameters
        ----------
        states, classes : array-like of int and shape (n_samples,)
            From 0.
        class_names : sequence of str, optional
        ax : matplotlib Axes, optional

        Examples
        --------
        >>> import neuralbayes as nb
        >>> display = nb.plot.CrosstabDisplay.from_labels([1, 1, 0, 2], [0, 0, 1, 1])
        >>> display.column_names, display.counts.astype(int).tolist()
        (['1', '0', '2'], [[2, 0, 0], [0, 1, 1]])
        """
        counts = crosstab(states, classes, n_classes=None if class_names is None else len(class_names)).T
        held = np.flatnonzero(counts.sum(axis=0))
        order = held[np.lexsort((-counts[:, held].max(axis=0), counts[:, held].argmax(axis=0)))]
        names = [str(k) for k in order]
        display = cls(counts[:, order], row_names=class_names, column_names=names, normalize="columns")
        few = len(order) <= MAX_NUMBERS
        label = "state" if few else f"{len(order)} states, ordered by their most common class"
        return display.plot(ax=ax, row_label="class", column_label=label, of="the samples of a state")

    def plot(
        self,
        *,
        ax: Axes | None = None,
        row_label: str = "is",
        column_label: str = "taken for",
        of: str = "the images of a class",
        title: str = "",
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default the axes of a new figure.
        row_label, column_label : str
        of : str
            Reference of 100 %.
        title : str

        Returns
        -------
        self
        """
        ax = self._begin(ax)  # raises a helpful error without matplotlib
        from matplotlib.colors import LinearSegmentedColormap

        n_rows, n_columns = self.counts.shape
        square = n_columns <= 3 * n_rows
        theme = current_theme()
        shades = LinearSegmentedColormap.from_list("shades", theme.shades)
        image = ax.imshow(self.percent, cmap=shades, vmin=0.0, vmax=100.0, aspect="equal" if square else "auto")
        bar = ax.figure.colorbar(image, ax=ax, label=f"% of {of}", shrink=0.8)
        bar.outline.set_visible(False)
        ax.set_xlabel(literal(column_label))
        ax.set_ylabel(literal(row_label))
        ax.set_title(literal(title), loc="left", fontsize=10)
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)
        if n_rows <= MAX_NUMBERS:
            ax.set_yticks(range(n_rows), list(map(literal, self.row_names)))
        if n_columns > MAX_NUMBERS:
            ax.set_xticks([])
            return self
        short = max(map(len, self.column_names)) <= 2
        ax.set_xticks(
            range(n_columns),
            list(map(literal, self.column_names)),
            rotation=0 if short else 45,
            ha="center" if short else "right",
            rotation_mode="anchor",
        )
        for i, j in np.ndindex(n_rows, n_columns):
            if self.percent[i, j] >= 0.5 and n_rows <= MAX_NUMBERS:
                color = theme.ground if self.percent[i, j] > 55 else theme.ink
                ax.text(j, i, f"{self.percent[i, j]:.0f}", ha="center", va="center", fontsize=8, color=color)
        return self


def crosstab(
    states: ArrayLike, classes: ArrayLike, n_states: int | None = None, n_classes: int | None = None
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Count the samples of each class in each state: (n_states, n_classes).

    Examples
    --------
    >>> crosstab([1, 1, 0], [0, 0, 1])
    array([[0, 1],
           [2, 0]])
    """
    rows, columns = np.asarray(states), np.asarray(classes)
    if rows.shape != columns.shape or rows.ndim != 1 or not rows.size:
        raise ValueError(f"`states` and `classes` must be of one length, got shapes {rows.shape} and {columns.shape}")
    for name, values in (("states", rows), ("classes", columns)):
        if values.dtype.kind not in "iu" or values.min() < 0:
            raise ValueError(f"`{name}` must be integers from 0, got {values.dtype} from {values.min()}")
    table = np.zeros((max(n_states or 0, rows.max() + 1), max(n_classes or 0, columns.max() + 1)), dtype=np.int64)
    np.add.at(table, (rows, columns), 1)
    return table


def _names(parameter: str, names: Sequence[str] | None, n: int) -> list[str]:
    if names is None:
        return [str(k) for k in range(n)]
    if len(names) != n:
        raise ValueError(f"`{parameter}` must be {n} names, got {len(names)}")
    return [str(name) for name in names]
