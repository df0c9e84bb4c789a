"""The columns of a table as explanations see them: cells in bins, whether numbers, categories or missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.columns import named_as_code, why_not_continuous

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["number", "date", "category", "text"]

N_BINS = 64
"""Bins of a column of numbers: a threshold lies at most 1 / 128 of the rows from where it should."""

N_LEVELS = 50
"""Values of a category that are told apart, the commonest; others are one."""

OTHERS = "other values"

MANY = 0.5
"""Share of different values among the cells from which a column of text is one of names rather than of categories."""


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : str
    kind : {"number", "date", "category", "text"}
        Text has too many different values to say anything of a cluster: it can only name rows.
    values : ndarray of float64 and shape (n_rows,)
        Numbers, or dates in seconds since 1970, NaN where missing; empty for others.
    bins : ndarray of int64 and shape (n_rows,)
        The bin of each cell; the last bin is that of missing cells, whether there are any or not.
    levels : list of str
        What the bins of a category hold, the commonest first; empty for others.
    edges : ndarray of float64 and shape (n_bins - 1,)
        Numbers and dates above ``edges[i]`` are in a bin beyond the i-th.
    """

    name: str
    kind: Kind
    values: NDArray[np.float64]
    bins: NDArray[np.int64]
    levels: list[str]
    edges: NDArray[np.float64]

    @property
    def n_bins(self) -> int:
        """Bins of cells that are not missing."""
        return len(self.levels) if self.kind == "category" else 0 if self.kind == "text" else len(self.edges) + 1

    @property
    def ordered(self) -> bool:
        """Whether bins have an order."""
        return self.kind in ("number", "date")

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which cells are missing."""
        return np.asarray(self.bins == self.n_bins)

    def take(self, rows: NDArray[np.intp]) -> Column:
        """The same column with some of the rows; bins stay what they are."""
        values = self.values[rows] if self.ordered else self.values
        return Column(self.name, self.kind, values, self.bins[rows], self.levels, self.edges)


def as_columns(frame: pd.DataFrame) -> list[Column]:
    """All columns of a DataFrame.

    Examples
    --------
    >>> import pandas as pd
    >>> mass, island = as_columns(pd.DataFrame({"mass": [3.5, None, 4.0], "island": ["Dream", "Dream", "Biscoe"]}))
    >>> mass.kind, mass.edges, mass.bins, mass.missing
    ('number', array([3.5]), array([0, 2, 1]), array([False,  True, False]))
    >>> island.kind, island.levels, island.bins
    ('category', ['Dream', 'Biscoe'], array([0, 0, 1]))
    """
    return [as_column(str(name), frame.iloc[:, i]) for i, name in enumerate(frame.columns)]


def as_column(name: str, cells: pd.Series[Any]) -> Column:
    """One column; codes by their name, and numbers of which there are at most two, are a category."""
    from pandas.api.types import is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype, is_timedelta64_dtype

    dtype = cells.dtype
    if is_datetime64_any_dtype(dtype):
        seconds = cells.dt.tz_convert(None) if getattr(dtype, "tz", None) is not None else cells
        values = (seconds - np.datetime64("1970-01-01")).dt.total_seconds().to_numpy(dtype=np.float64, na_value=np.nan)
        return _ordered(name, "date", np.asarray(values, np.float64))
    if is_timedelta64_dtype(dtype):
        seconds = cells.dt.total_seconds()
        return _ordered(name, "number", np.asarray(seconds.to_numpy(dtype=np.float64, na_value=np.nan), np.float64))
    if is_numeric_dtype(dtype) and not is_bool_dtype(dtype) and dtype.kind != "c":
        values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
        present = values[np.isfinite(values)]
        reason = why_not_continuous(present) if len(present) else "constant"
        if reason == "counts the rows":
            return _text_column(name, len(values))
        if reason not in ("constant", "two values") and not named_as_code(name):
            return _ordered(name, "number", np.where(np.isfinite(values), values, np.nan))
    return _category(name, cells)


def number_column(name: str, values: NDArray[Any]) -> Column:
    """A column of numbers that are no Series."""
    return _ordered(name, "number", np.where(np.isfinite(values), values, np.nan).astype(np.float64))


def _ordered(name: str, kind: Kind, values: NDArray[np.float64]) -> Column:
    present = np.isfinite(values)
    distinct = np.unique(values[present])
    if len(distinct) > N_BINS:
        shares = np.arange(1, N_BINS) / N_BINS
        edges = np.unique(np.quantile(values[present], shares, method="inverted_cdf"))
        edges = edges[edges < distinct[-1]]
    else:
        edges = distinct[:-1]
    bins = np.where(present, np.searchsorted(edges, values, side="left"), len(edges) + 1)
    return Column(name, kind, values, bins.astype(np.int64), [], edges)


def _category(name: str, cells: pd.Series[Any]) -> Column:
    import pandas as pd

    places = np.flatnonzero(cells.notna().to_numpy(dtype=bool))
    text = np.array([_text(value) for value in cells.iloc[places]], dtype=object)
    kept = text != ""
    places = places[kept]
    codes, found = pd.factorize(text[kept])
    counts = np.bincount(codes, minlength=len(found))
    nothing = np.empty(0)
    if len(found) > max(20, MANY * len(codes)):
        return _text_column(name, len(cells))
    order = np.argsort(-counts, kind="stable")
    levels = [str(found[i]) for i in order[:N_LEVELS]]
    rank = np.empty(len(order), np.int64)
    rank[order] = np.minimum(np.arange(len(order)), N_LEVELS)
    if len(found) > N_LEVELS:
        levels.append(OTHERS)
    bins = np.full(len(cells), len(levels), np.int64)
    bins[places] = rank[codes]
    return Column(name, "category", nothing, bins, levels, nothing)


def _text_column(name: str, n_rows: int) -> Column:
    return Column(name, "text", np.empty(0), np.zeros(n_rows, np.int64), [], np.empty(0))


def _text(value: Any) -> str:
    """A cell in letters: 3.0 is 3; nothing at the ends."""
    return f"{value:g}" if isinstance(value, float | np.floating) else str(value).strip()


def row_names(frame: pd.DataFrame, columns: Sequence[Column]) -> list[str] | None:
    """What names the rows: an index of its own, a column of ids by its name, else the first column of names; or None.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"height": [1.5, 1.8], "id": ["a7", "b2"]})
    >>> row_names(frame, as_columns(frame))
    ['a7', 'b2']
    """
    import pandas as pd

    if not isinstance(frame.index, pd.RangeIndex) and frame.index.is_unique and frame.index.nlevels == 1:
        return [str(name) for name in frame.index]
    by_name = [i for i, column in enumerate(columns) if named_as_code(column.name) and _different(frame.iloc[:, i])]
    by_text = [i for i, column in enumerate(columns) if column.kind == "text"]
    for i in [*by_name, *by_text][:1]:
        return [
            "" if missing else str(cell)
            for cell, missing in zip(frame.iloc[:, i], frame.iloc[:, i].isna(), strict=True)
        ]
    return None


def _different(cells: pd.Series[Any]) -> bool:
    """Whether all cells are there and differ, as ids do."""
    return bool(cells.notna().all() and cells.is_unique)
