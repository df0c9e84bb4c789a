"""The cells of each column in bins, missing ones in the last, and what the bins tell about membership in a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, xlogy

from neuralbayes.data.columns import as_dates, as_numbers, as_words, date_format, named_as_code, recognize

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["number", "date", "category", "text"]

N_BINS = 60
"""Number of bins of a column of numbers; halves, thirds and tenths of the rows begin at the edge of a bin."""

COARSE = 10
"""Number of bins of a column of numbers to measure information with; finer bins would fit noise."""

N_LEVELS = 50
"""Number of values of a category that have their own bin, the most common first; all others share one."""

OTHERS = "other values"

FENCE = 3.0
"""Largest distance from the quartiles, in interquartile ranges. Numbers further out are moved to this distance."""

LEVEL = 1e-3
"""Significance level of the test that a column has any information about a cluster."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of one column of a table, in bins.

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

    def take(self, rows: NDArray[np.intp]) -> Cells:
        """The cells of some rows; the bins do not change."""
        return replace(self, values=self.values[rows] if self.ordered else self.values, bins=self.bins[rows])


def as_cells(frame: pd.DataFrame) -> list[Cells]:
    """The cells of all columns; :func:`neuralbayes.data.columns.recognize` finds their kinds.

    Examples
    --------
    >>> import pandas as pd
    >>> mass, island = as_cells(pd.DataFrame({"mass": [3.5, None, 4.0, 4.5], "island": ["A", "A", "B", "A"]}))
    >>> mass.kind, mass.edges, mass.bins, mass.missing
    ('number', array([3.5, 4. ]), array([0, 3, 1, 2]), array([False,  True, False, False]))
    >>> island.kind, island.levels, island.bins
    ('category', ['A', 'B'], array([0, 0, 1, 0]))
    """
    for i, dtype in enumerate(frame.dtypes):
        if dtype.kind == "O" and any(map(_is_huge, frame.iloc[:, i])):
            frame = frame.copy(deep=False)
            frame.isetitem(i, [str(cell) if _is_huge(cell) else cell for cell in frame.iloc[:, i]])
    return [_cells(column.name, column.kind, frame.iloc[:, i]) for i, column in enumerate(recognize(frame))]


def _is_huge(cell: Any) -> bool:
    """Whether an integer overflows a float."""
    return isinstance(cell, int) and cell.bit_length() > 1023


def _cells(name: str, kind: str, cells: pd.Series[Any]) -> Cells:
    if kind == "number" or (kind == "date" and cells.dtype.kind == "m"):  # spans of time in seconds
        return _ordered(name, "number", as_numbers(cells)[0])
    if kind == "date":
        dates = as_dates(cells, date_format(as_words(cells).dropna()) if cells.dtype.kind == "O" else None)
        seconds = dates.astype("datetime64[s]").astype(np.float64)
        return _ordered(name, "date", np.where(np.isnat(dates), np.nan, seconds))
    if kind in ("boolean", "category"):
        return _category(name, as_words(cells))
    return Cells(name, "text", np.empty(0), np.zeros(len(cells), np.int64), [], np.empty(0))


def _ordered(name: str, kind: Kind, values: NDArray[np.float64]) -> Cells:
    present = np.isfinite(values)
    ascending = np.sort(values[present])
    distinct = ascending[np.append(True, np.diff(ascending) > 0)] if len(ascending) else ascending
    edges = distinct[:-1]
    if len(distinct) > N_BINS:
        ends = np.ceil(np.arange(1, N_BINS) * len(ascending) / N_BINS).astype(np.intp) - 1
        edges = np.unique(ascending[ends])
        edges = edges[edges < distinct[-1]]
    bins = np.where(present, np.searchsorted(edges, values, side="left"), len(edges) + 1)
    return Cells(name, kind, values, bins.astype(np.int64), [], edges)


def _category(name: str, words: pd.Series[Any]) -> Cells:
    import pandas as pd

    codes, found = pd.factorize(words)
    order = np.argsort(-np.bincount(codes[codes >= 0], minlength=len(found)), kind="stable")
    levels = [str(found[i]) for i in order[:N_LEVELS]] + ([OTHERS] if len(found) > N_LEVELS else [])
    rank = np.full(len(found) + 1, len(levels), np.int64)  # -1 points to the last, the bin of missing cells
    rank[order] = np.minimum(np.arange(len(found)), N_LEVELS)
    return Cells(name, "category", np.empty(0), rank[codes], levels, np.empty(0))


def row_names(frame: pd.DataFrame, columns: Sequence[Cells]) -> list[str] | None:
    """Names of the rows: from the index, a column named like an id, or the first column of names; None without any.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"height": [1.5, 1.8], "id": ["a7", "b2"]})
    >>> row_names(frame, as_cells(frame))
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
    return bool(cells.notna().mean() >= 0.9 and cells.map(str).nunique() >= 0.5 * len(cells))


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


def bin_counts(cells: Cells, labels: NDArray[np.integer], n_clusters: int) -> NDArray[np.int64]:
    """Number of rows of each cluster in each bin: (n_clusters + 1, n_bins + 1); the last row is for labels of -1."""
    n = cells.n_bins + 1
    groups = np.where(labels < 0, n_clusters, labels).astype(np.int64)
    return np.bincount(groups * n + cells.bins, minlength=(n_clusters + 1) * n).reshape(n_clusters + 1, n)


def membership_information(hits: NDArray[Any], others: NDArray[Any]) -> NDArray[np.float64]:
    """Information of bins about membership in nats, corrected for chance; 0 where it is not significant.

    From the number of rows of the cluster, and of the rest, in each bin: (..., n_bins) twice -> (...).

    Examples
    --------
    >>> membership_information(np.array([50, 0]), np.array([0, 50])).round(3)  # log 2, less 1 / 200
    np.float64(0.688)
    >>> membership_information(np.array([[6, 4]]), np.array([[4, 6]]))
    array([0.])
    """
    table = np.stack([hits, others], axis=-2).astype(np.float64)  # (..., 2, n_bins)
    rows, columns = table.sum(axis=-1), table.sum(axis=-2)
    n = np.maximum(rows.sum(axis=-1), 1.0)
    summed = xlogy(table, table).sum(axis=(-1, -2)) - xlogy(rows, rows).sum(axis=-1) - xlogy(columns, columns).sum(-1)
    found = (summed + xlogy(n, n)) / n
    freedom = np.maximum((columns > 0).sum(axis=-1) - 1, 1)
    significant = rows.all(axis=-1) & (2.0 * n * found > chdtri(freedom, LEVEL))
    return np.asarray(np.where(significant, np.maximum(0.0, found - freedom / (2.0 * n)), 0.0))


def column_information(cells: Cells, labels: NDArray[np.integer], n_clusters: int) -> NDArray[np.float64]:
    """Information of a column about membership in each cluster, in nats: (n_clusters,)."""
    counts, n = bin_counts(cells, labels, n_clusters), cells.n_bins
    if cells.ordered and n > COARSE:
        inside = counts.sum(axis=0)[:n]
        before = np.cumsum(inside) - inside / 2.0
        coarse = (COARSE * before / max(1, inside.sum())).astype(np.int64)
        counts = np.add.reduceat(counts, [0, *(1 + np.flatnonzero(np.diff(coarse) > 0)), n], axis=1)
    return membership_information(counts[:-1], counts.sum(axis=0) - counts[:-1])
