"""Tables of numbers: the checked features of a file, together with all its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.cells import Decimal
from neuralbayes.data.table_sources import TableSource, generated_names, read_source
from neuralbayes.data.written import written_columns

if TYPE_CHECKING:
    import pandas as pd

CODE = "a code with leading zeros"
"""Why a column of digits such as 02750 is not a feature."""


@dataclass(frozen=True)
class Table:
    """A table of numbers, with its source for writing new columns next to the original ones.

    Attributes
    ----------
    source : TableSource
        The original table with all columns.
    X : array of shape (n_rows, n_features), float32 or float64, finite
        An NPY file of such numbers is memory-mapped.
    feature_names : list of str
        Names of the columns of `X`; x0, x1, ... if the file has no names.
    ignored : dict of str to str
        The columns that are not in `X`, with reasons.
    """

    source: TableSource
    X: NDArray[np.floating[Any]]
    feature_names: list[str]
    ignored: dict[str, str]

    @property
    def path(self) -> Path:
        """The file."""
        return self.source.path

    @property
    def named(self) -> bool:
        """Whether the names come from the file."""
        return self.source.named

    @property
    def frame(self) -> pd.DataFrame:
        """All columns of the input, used or not; see :attr:`TableSource.frame`."""
        return self.source.frame


def read_table(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    key: str | None = None,
    sheet: str | None = None,
    sep: str | None = None,
    decimal: Decimal | None = None,
    encoding: str | None = None,
) -> Table:
    """Read the numeric columns of a file, whose suffix determines the format.

    Parameters
    ----------
    path : path of a .csv, .tsv, .txt, .jsonl, .ndjson, .parquet, .arrow, .feather, .xlsx, .npy or .npz file
        Or a folder of .parquet files with the same columns. Text and JSON lines may be compressed: .csv.gz, .csv.zst,
        .csv.bz2, .csv.xz. For text, the separator, encoding, decimal and thousands marks, quotes, lines before the
        header and missing cells (NA, N/A, null, -, ?) are detected. If the first line consists of numbers, it is data,
        and the columns are x0, x1, ...
    columns : sequence of str, optional
        The columns to use, in this order. By default all numeric columns, except row counters (such as a saved index),
        and classes, labels and probabilities that this library has written.
    key : str, optional
        Array of a .npz file to read, if there are several.
    sheet : str, optional
        Name of a sheet of an Excel file, or its number from 1; by default the first one.
    sep : str, optional
        Separator of a text file, or "tab" or "space".
    decimal : "." or ",", optional
        Decimal mark of a text file.
    encoding : str, optional
        Encoding of a text file, such as "cp1252".

    Raises
    ------
    ValueError
        If the file is empty or damaged, has no numbers, or has NaN or infinity in a used column.
    ImportError
        If a required package is not installed.
    """
    source = read_source(path, key=key, sheet=sheet, sep=sep, decimal=decimal, encoding=encoding)
    return table_of_frame(source, columns) if source.named else table_of_array(source, columns)


def table_of_array(source: TableSource, columns: Sequence[str] | None) -> Table:
    """The numbers of a table without names; parameters as in :func:`read_table`."""
    path, array = source.path, np.asanyarray(source.data)
    if array.dtype.names is not None or array.dtype.kind not in "biuf":
        raise ValueError(f"{path} must hold real numbers, got an array of dtype {array.dtype}")
    if array.ndim != 2:
        hint = (
            "reshape it: array.reshape(-1, 1) for one feature"
            if array.ndim == 1
            else "reshape it to one row per sample"
        )
        raise ValueError(f"{path} must hold a 2-D array (n_rows, n_features), got shape {array.shape}; {hint}")
    every = generated_names(array)
    names = chosen_columns(path, every, columns) if columns is not None else every
    X = array if names == every else array[:, [int(name.removeprefix("x")) for name in names]]
    X = X.astype(_float_dtype(X.dtype), copy=False)
    _check_finite(source, X, names)
    return Table(source, X, names, _left_out(every, names))


def table_of_frame(source: TableSource, columns: Sequence[str] | None) -> Table:
    """The numeric columns of a table with names; parameters as in :func:`read_table`."""
    path, frame = source.path, source.frame
    every = [str(name) for name in frame]
    if columns is None:
        written = written_columns(frame)
        why_not = {n: written.get(n) or _not_numeric(source, n) or _index_like(frame[n]) for n in every}
        ignored = {name: reason for name, reason in why_not.items() if reason}
        names = [name for name in every if name not in ignored]
        if not names:
            reasons = "; ".join(f"{name!r}: {reason}" for name, reason in list(ignored.items())[:5])
            raise ValueError(f"{path} has no numeric column to use ({reasons})")
    else:
        names = chosen_columns(path, every, columns)
        for name in names:
            reason = _not_numeric(source, name)
            if reason == CODE:
                frame = frame.assign(**{name: frame[name].astype("float64")})
            elif reason:
                raise ValueError(f"column {name!r} of {path} is not numeric: {reason}")
        ignored = _left_out(every, names)
    dtypes = [getattr(dtype, "numpy_dtype", dtype) for dtype in frame[names].dtypes]
    X = frame[names].to_numpy(dtype=_float_dtype(*dtypes), na_value=np.nan)
    _check_finite(source, X, names)
    return Table(source, X, names, ignored)


def chosen_columns(path: Path, available: list[str], columns: Sequence[str]) -> list[str]:
    """`columns` as a list; each must exist and be listed once."""
    if not columns:
        raise ValueError("`columns` must name at least one column")
    if len(set(columns)) < len(columns):
        raise ValueError(f"`columns` must differ, got {', '.join(map(repr, columns))}")
    if missing := set(columns) - set(available):
        shown = ", ".join(map(repr, available[:12])) + (", ..." if len(available) > 12 else "")
        raise ValueError(f"{path} has no column {', '.join(map(repr, sorted(missing)))}; its columns are {shown}")
    return list(columns)


def _left_out(every: list[str], names: list[str]) -> dict[str, str]:
    used = set(names)
    return {name: "not chosen" for name in every if name not in used}


def _not_numeric(source: TableSource, name: str) -> str | None:
    """Why a column cannot be a feature, or None if it can."""
    from pandas.api.types import is_complex_dtype, is_numeric_dtype, is_object_dtype, is_string_dtype

    column = source.frame[name]
    if column.isna().all():
        return "empty"
    if is_numeric_dtype(column.dtype) and not is_complex_dtype(column.dtype):
        return None
    if not (is_string_dtype(column.dtype) or is_object_dtype(column.dtype)):
        return str(column.dtype)
    present = column[column.notna().to_numpy()]
    numbers = present.map(_is_number).to_numpy(dtype=bool)
    if 2 * numbers.sum() <= len(numbers):
        return "text"
    if numbers.all():
        if present.astype(str).str.fullmatch(r"0\d+").any():
            return CODE
        return f"numbers stored as {type(present.iloc[0]).__name__}"
    # A single typo turns a column of numbers into text: report its position.
    row = int(np.flatnonzero(column.notna().to_numpy())[np.argmin(numbers)])
    return f"{source.place(row)} holds {column.iloc[row]!r}"


def _index_like(column: pd.Series[Any]) -> str | None:
    """The reason for ignoring a row counter; with fewer than ten rows, it may be a coincidence."""
    if len(column) < 10 or column.dtype.kind not in "iu":
        return None
    counted = np.arange(len(column)) + int(column.iloc[0])
    return "counts the rows" if column.iloc[0] in (0, 1) and np.array_equal(column.to_numpy(), counted) else None


def _check_finite(source: TableSource, X: NDArray[np.floating[Any]], names: Sequence[str]) -> None:
    """Raise if `X` contains NaN or infinity, with the position. Works in blocks, since `X` may be larger than
    memory."""
    counts = np.zeros(X.shape[1], dtype=np.int64)
    first = np.zeros(X.shape[1], dtype=np.int64)
    step = max(1, 2**22 // X.shape[1])
    for start in range(0, len(X), step):
        bad = ~np.isfinite(X[start : start + step])
        if bad.any():
            first = np.where(counts > 0, first, start + bad.argmax(axis=0))
            counts += bad.sum(axis=0)
    columns = np.flatnonzero(counts)
    if len(columns):
        found = "; ".join(
            f"column {names[k]!r}: {counts[k]} {'value' if counts[k] == 1 else 'values'}, the first in "
            f"{source.place(int(first[k]))}"
            for k in columns[:5]
        )
        more = f"; and {len(columns) - 5} more columns" if len(columns) > 5 else ""
        raise ValueError(
            f"{source.path} contains NaN (an empty cell) or infinity, in {found}{more}. Fill or remove these rows, or "
            "choose other columns with `columns`"
        )


def _float_dtype(*dtypes: np.dtype[Any]) -> np.dtype[np.floating[Any]]:
    """float32 if it can represent all values of these dtypes, otherwise float64; in native byte order."""
    widest = np.result_type(np.float32, *dtypes)
    return np.dtype(np.float32) if widest == np.float32 else np.dtype(np.float64)


def _is_number(value: Any) -> bool:
    """Whether `float` accepts `value`."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
