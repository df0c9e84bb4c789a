"""Columns of a table for explanations: cells of numbers, dates and categories in bins, missing cells in the last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.columns import as_dates, as_numbers, as_words, date_format, named_as_code, recognize

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["number", "date", "category", "text"]

N_BINS = 60
"""Number of bins of a column of numbers; halves, thirds and tenths of the rows begin at the edge of a bin."""

N_LEVELS = 50
"""Number of values of a category that have their own bin, the most common first; all others share one."""

OTHERS = "other values"

FENCE = 3.0
"""Largest distance from the quartiles, in interquartile ranges. Numbers further out are moved to this distance."""

LARGEST_INTEGER = 1023
"""Number of bits of the largest integer that is read as a number; larger ones overflow a float."""


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : str
    kind : {"number", "date", "category", "text"}
        Text, ids and constants do not describe a cluster; their kind is text, and they can only name rows.
    values : ndarray of float64 and shape (n_rows,)
        Numbers, or dates in seconds since 1970, with NaN for missing cells; empty for other kinds.
    bins : ndarray of int64 and shape (n_rows,)
        The bin of each cell; the last bin is for missing cells, even if there are none.
    levels : list of str
        Value of each bin of a category, the most common first; empty for other kinds.
    edges : ndarray of float64 and shape (n_bins - 1,)
        Numbers and dates above ``edges[i]`` are in a bin after the i-th.
    """

    name: str
    kind: Kind
    values: NDArray[np.float64]
    bins: NDArray[np.int64]
    levels: list[str]
    edges: NDArray[np.float64]

    @property
    def n_bins(self) -> int:
        """Number of bins, not counting the bin of missing cells."""
        return len(self.levels) if self.kind == "category" else 0 if self.kind == "text" else len(self.edges) + 1

    @property
    def ordered(self) -> bool:
        """Whether the bins have an order."""
        return self.kind in ("number", "date")

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which cells are missing."""
        return np.asarray(self.bins == self.n_bins)

    def take(self, rows: NDArray[np.intp]) -> Column:
        """The same column with some of the rows; the bins do not change."""
        values = self.values[rows] if self.ordered else self.values
        return Column(self.name, self.kind, values, self.bins[rows], self.levels, self.edges)


def as_columns(frame: pd.DataFrame) -> list[Column]:
    """All columns of a DataFrame; :func:`neuralbayes.data.columns.recognize` finds their kinds.

    Examples
    --------
    >>> import pandas as pd
    >>> mass, island = as_columns(pd.DataFrame({"mass": [3.5, None, 4.0, 4.5], "island": ["A", "A", "B", "A"]}))
    >>> mass.kind, mass.edges, mass.bins, mass.missing
    ('number', array([3.5, 4. ]), array([0, 3, 1, 2]), array([False,  True, False, False]))
    >>> island.kind, island.levels, island.bins
    ('category', ['A', 'B'], array([0, 0, 1, 0]))
    """
    frame = _without_huge_integers(frame)
    return [_column(column.name, column.kind, frame.iloc[:, i]) for i, column in enumerate(recognize(frame))]


def _without_huge_integers(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with integers that overflow a float as text."""
    for i, dtype in enumerate(frame.dtypes):
        if dtype.kind == "O" and any(map(_huge, frame.iloc[:, i])):
            frame = frame.copy(deep=False)
            frame.isetitem(i, [str(cell) if _huge(cell) else cell for cell in frame.iloc[:, i]])
    return frame


def _huge(cell: Any) -> bool:
    return isinstance(cell, int) and cell.bit_length() > LARGEST_INTEGER


def _column(name: str, kind: str, cells: pd.Series[Any]) -> Column:
    if kind == "number" or (kind == "date" and cells.dtype.kind == "m"):  # spans of time in seconds
        return number_column(name, as_numbers(cells)[0])
    if kind == "date":
        dates = as_dates(cells, date_format(as_words(cells).dropna()) if cells.dtype.kind == "O" else None)
        seconds = dates.astype("datetime64[s]").astype(np.float64)
        return _ordered(name, "date", np.where(np.isnat(dates), np.nan, seconds))
    if kind in ("boolean", "category"):
        return _category(name, as_words(cells))
    return Column(name, "text", np.empty(0), np.zeros(len(cells), np.int64), [], np.empty(0))


def number_column(name: str, values: NDArray[Any]) -> Column:
    """Make a column of an array of numbers."""
    return _ordered(name, "number", np.where(np.isfinite(values), values, np.nan).astype(np.float64))


def _ordered(name: str, kind: Kind, values: NDArray[np.float64]) -> Column:
    present = np.isfinite(values)
    ascending = np.sort(values[present])
    distinct = ascending[np.append(True, np.diff(ascending) > 0)] if len(ascending) else ascending
    edges = distinct[:-1]
    if len(distinct) > N_BINS:
        ends = np.ceil(np.arange(1, N_BINS) * len(ascending) / N_BINS).astype(np.intp) - 1
        edges = np.unique(ascending[ends])
        edges = edges[edges < distinct[-1]]
    bins = np.where(present, np.searchsorted(edges, values, side="left"), len(edges) + 1)
    return Column(name, kind, values, bins.astype(np.int64), [], edges)


def _category(name: str, words: pd.Series[Any]) -> Column:
    import pandas as pd

    codes, found = pd.factorize(words)
    order = np.argsort(-np.bincount(codes[codes >= 0], minlength=len(found)), kind="stable")
    levels = [str(found[i]) for i in order[:N_LEVELS]] + ([OTHERS] if len(found) > N_LEVELS else [])
    rank = np.full(len(found) + 1, len(levels), np.int64)  # -1 points to the last, the bin of missing cells
    rank[order] = np.minimum(np.arange(len(found)), N_LEVELS)
    return Column(name, "category", np.empty(0), rank[codes], levels, np.empty(0))


def row_names(frame: pd.DataFrame, columns: Sequence[Column]) -> list[str] | None:
    """Names of the rows: from the index, a column named like an id, or the first column of names; None without any.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"height": [1.5, 1.8], "id": ["a7", "b2"]})
    >>> row_names(frame, as_columns(frame))
    ['a7', 'b2']
    """
    index = frame.index
    own = index.name is not None or index.dtype.kind not in "iu"  # otherwise it holds row numbers
    if own and index.nlevels == 1 and index.is_unique:
        return [str(name) for name in index]
    text = [i for i, column in enumerate(columns) if column.kind == "text" and _names_rows(frame.iloc[:, i])]
    by_name = [i for i in text if named_as_code(columns[i].name)]
    if not text:
        return None
    cells = frame.iloc[:, (by_name or text)[0]]
    return ["" if missing else str(cell) for cell, missing in zip(cells, cells.isna(), strict=True)]


def _names_rows(cells: pd.Series[Any]) -> bool:
    """Whether nearly all cells are present, and most of them differ."""
    return bool(cells.notna().mean() >= 0.9 and cells.astype(str).nunique() >= 0.5 * len(cells))


def standardized(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Clip outliers, subtract the mean and divide by the standard deviation: (n_rows,) -> (n_rows,); NaNs stay.

    Examples
    --------
    >>> standardized(np.array([1.0, 2.0, 3.0, 4.0, 1e9])).round(1)  # the last one counts as 10
    array([-0.9, -0.6, -0.3,  0. ,  1.9])
    """
    present = values[np.isfinite(values)]
    if not len(present):
        return np.zeros(len(values))
    size = float(np.abs(present).max()) or 1.0  # sums of numbers near 1e308 would overflow
    least, first, third, most = np.quantile(present / size, [0.01, 0.25, 0.75, 0.99])
    if third > first:  # otherwise at least half of the values are equal, and outer quantiles are the fences
        least, most = first - FENCE * (third - first), third + FENCE * (third - first)
    inside = (values / size).clip(least, most)
    return np.asarray((inside - np.nanmean(inside)) / (float(np.nanstd(inside)) or 1.0))
