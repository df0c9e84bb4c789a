"""Tables in and out: CSV, TSV, Parquet, NPY and NPZ, checked on the way in and never unpickled."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.columns import ATOM, is_whole, named_as_code, why_not_continuous
from neuralbayes.data.table_formats import (
    ARRAY_SUFFIXES,
    SEPARATORS,
    import_pandas,
    import_pyarrow,
    read_npy,
    read_npz,
    read_parquet,
    table_suffix,
)
from neuralbayes.data.text_tables import CODE, TextFile, is_number, read_text
from neuralbayes.data.written import feature_columns, marked, written_columns
from neuralbayes.system.files import atomic_write

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Table:
    """A table of numbers, and what is needed to write its own columns back beside new ones.

    Attributes
    ----------
    path : Path
    X : array of shape (n_rows, n_features), float32 or float64, finite
        A NPY file of such numbers is memory-mapped, not loaded.
    feature_names : list of str
        One for each column of `X`; x0, x1, ... where the file has no names.
    named : bool
        Whether the names are the file's own.
    ignored : dict of str to str
        The columns that are not in `X`, and why.
    source : DataFrame or array
        The input as it was, all columns.
    text : TextFile or None
        Where the cells of a CSV or TSV file can be read again as they stand there.
    """

    path: Path
    X: NDArray[np.floating[Any]]
    feature_names: list[str]
    named: bool
    ignored: dict[str, str]
    source: pd.DataFrame | NDArray[Any]
    text: TextFile | None = None

    def own_columns(self) -> pd.DataFrame:
        """All columns of the input, used or not."""
        if not isinstance(self.source, np.ndarray):
            return self.source
        frame: pd.DataFrame = import_pandas().DataFrame(self.source, columns=_generated_names(self.source))
        return frame


def read_table(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    key: str | None = None,
    keep: Collection[str] | Literal["all"] = "all",
) -> Table:
    """Read the numeric columns of a file; its suffix says which format it has.

    Parameters
    ----------
    path : path of a .csv, .tsv, .parquet, .npy or .npz file
        Text files may lack a header: a first line of numbers is data, and the columns are x0, x1, ... Their cells may
        be separated by a comma, a semicolon, a tab or a bar, and numbers have a decimal comma unless that separates.
    columns : sequence of str, optional
        The columns to use, in this order. By default all numeric ones, except whole numbers that only count the
        rows (an index that was written along), and what this library wrote beside features: classes, labels and
        probabilities.
    key : str, optional
        Which array of a .npz file to read, where it holds several.
    keep : collection of str or "all", default="all"
        Where `columns` are not given: the columns of a text or Parquet file that are used although their values have
        gaps by nature (constants, ids, codes, two or few values). Others of this kind are left out.

    Raises
    ------
    ValueError
        If the file is empty or damaged, holds no numbers, or holds NaN or infinity in a column that is used.
    ImportError
        If pandas or pyarrow, which CSV and Parquet need, is not installed.
    """
    path = Path(path)
    suffix = table_suffix(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    if not path.is_file():
        raise IsADirectoryError(f"{path} is not a file")
    if key is not None and suffix != ".npz":
        raise ValueError(f"`key` names an array of a .npz file, but {path} is a {suffix} file")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty")
    if suffix in ARRAY_SUFFIXES:
        array = read_npy(path) if suffix == ".npy" else read_npz(path, key)
        return _table_of_array(path, array, columns)
    if suffix == ".parquet":
        return table_of_frame(path, read_parquet(path), columns, keep)
    import_pandas()
    text, frame, codes = read_text(path, SEPARATORS[suffix])
    table = table_of_frame(path, frame, columns, keep, codes)
    return replace(table, source=frame.assign(**codes), text=text)


def write_table(path: str | Path, columns: Mapping[str, NDArray[Any]], *, beside: Table | None = None) -> list[str]:
    """Write arrays as a table, atomically; the suffix of `path` chooses the format.

    Parameters
    ----------
    path : path of a .csv, .tsv, .parquet, .npy or .npz file
    columns : mapping of names to arrays of shape (n_rows,) or (n_rows, n)
        In CSV, TSV and Parquet a two-dimensional array ``p`` becomes the columns p_0, p_1, ...; in NPZ each array
        is kept under its name; NPY holds a single array.
    beside : Table, optional
        In CSV, TSV and Parquet its own columns come first; from one text file to another cell by cell as they were,
        and with the same separator where both are CSV. Where a new name is taken, all new names get the same
        number at the end: label_1, p_0_1, p_1_1.

    Returns
    -------
    list of str
        The names under which the new arrays were written; empty for NPY, which has none.
    """
    suffix = table_suffix(path)
    if suffix == ".npy" and len(columns) != 1:
        raise ValueError(f"a .npy file holds one array, got {len(columns)} for {path}; a .npz file holds several")
    if suffix in ARRAY_SUFFIXES:
        with atomic_write(path) as temporary, open(temporary, "wb") as file:
            if suffix == ".npy":
                np.save(file, next(iter(columns.values())), allow_pickle=False)
                return []
            for name, array in columns.items():  # numpy before 2.2 takes `allow_pickle` for the name of an array
                if array.dtype.hasobject:
                    raise ValueError(f"`columns` must not hold Python objects, which would be pickled, got {name!r}")
            np.savez(file, **columns)  # type: ignore[arg-type]
            return list(columns)
    frame, names = _joined(beside, columns)
    with atomic_write(path) as temporary:
        if beside is not None and beside.text is not None and suffix in SEPARATORS and not beside.text.changed():
            separator = beside.text.separator if suffix == ".csv" else SEPARATORS[suffix]
            _write_cells(temporary, beside.text, frame[names], separator)
        elif suffix == ".parquet":
            import_pyarrow()
            frame.to_parquet(temporary, engine="pyarrow")
        else:
            # A Parquet file can have an index that is more than the row number: it must not get lost.
            plain = isinstance(frame.index, import_pandas().RangeIndex)
            frame.to_csv(temporary, sep=SEPARATORS[suffix], index=not plain)
    return names


def _write_cells(path: Path, text: TextFile, new: pd.DataFrame, separator: str) -> None:
    """Write the cells of a text file as they stand there, and new columns beside them, some rows at a time."""
    start = 0
    with open(path, "w", encoding="utf-8", newline="") as file:
        for cells in text.cells():
            added = new.iloc[start : start + len(cells)].set_axis(cells.index)
            joined = import_pandas().concat([cells, added], axis=1)
            joined.to_csv(file, sep=separator, decimal=text.decimal, index=False, header=start == 0)
            start += len(cells)


def _table_of_array(path: Path, array: NDArray[Any], columns: Sequence[str] | None) -> Table:
    if array.dtype.names is not None or array.dtype.kind not in "biuf":
        raise ValueError(f"{path} must hold real numbers, got an array of dtype {array.dtype}")
    if array.ndim != 2:
        hint = (
            "reshape it: array.reshape(-1, 1) for one feature" if array.ndim == 1 else "reshape it to one row a sample"
        )
        raise ValueError(f"{path} must hold a 2-D array (n_rows, n_features), got shape {array.shape}; {hint}")
    _check_not_empty(path, array.shape)
    every = _generated_names(array)
    names = chosen_columns(path, every, columns) if columns is not None else every
    X = array if names == every else array[:, [int(name.removeprefix("x")) for name in names]]
    X = X.astype(_float_dtype(X.dtype), copy=False)
    _check_finite(path, X, names)
    return Table(path, X, names, False, _left_out(every, names), array)


def table_of_frame(
    path: Path,
    frame: pd.DataFrame,
    columns: Sequence[str] | None,
    keep: Collection[str] | Literal["all"] = "all",
    codes: Collection[str] = (),
    *,
    first_row: int = 0,
) -> Table:
    """The numeric columns of a DataFrame that was read from `path`.

    Parameters
    ----------
    path : Path
    frame : DataFrame
    columns, keep
        As in :func:`read_table`.
    codes : collection of str
        Columns whose cells are codes, whatever they look like.
    first_row : int, default=0
        The number of the first row in the file, for messages.
    """
    _check_not_empty(path, frame.shape)
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise ValueError(f"{path} has more than one column {repeated[0]!r}; column names must differ")
    every = [str(name) for name in frame]
    if columns is None:
        written = written_columns(frame)
        why_not = {n: written.get(n) or _not_numeric(frame[n]) or _index_like(frame[n]) for n in every}
        why_not |= dict.fromkeys(codes, CODE)
        if keep != "all":
            chosen_columns(path, every, list(keep) or every)
            kept = {*keep, *feature_columns(frame)}
            why_not |= {n: _gaps_by_nature(frame[n]) for n in every if not why_not[n] and n not in kept}
        ignored = {name: reason for name, reason in why_not.items() if reason}
        names = [name for name in every if name not in ignored]
        if not names:
            reasons = "; ".join(f"{name!r}: {reason}" for name, reason in list(ignored.items())[:5])
            hint = "" if keep == "all" else "; keep some of them, or all, by `keep`"
            raise ValueError(f"{path} has no numeric column to use ({reasons}){hint}")
    else:
        names = chosen_columns(path, every, columns)
        for name in names:
            if reason := _not_numeric(frame[name]):
                raise ValueError(f"column {name!r} of {path} is not numeric: {reason}")
        ignored = _left_out(every, names)
    dtypes = [getattr(dtype, "numpy_dtype", dtype) for dtype in frame[names].dtypes]
    X = frame[names].to_numpy(dtype=_float_dtype(*dtypes), na_value=np.nan)
    _check_finite(path, X, names, first_row)
    return Table(path, X, names, True, ignored, frame)


def _joined(beside: Table | None, columns: Mapping[str, NDArray[Any]]) -> tuple[pd.DataFrame, list[str]]:
    """The own columns of `beside` with the new ones after them, and the names that these got."""
    pandas = import_pandas()
    own = None if beside is None else beside.own_columns()
    new: dict[str, NDArray[Any]] = {}
    for name, values in columns.items():
        new |= {f"{name}_{k}": values[:, k] for k in range(values.shape[1])} if values.ndim == 2 else {name: values}
    if own is None:
        return pandas.DataFrame(new), list(new)
    names = free_names(own.columns, new)
    added = pandas.DataFrame(dict(zip(names, new.values(), strict=True)), index=own.index)
    joined = pandas.concat([own, added], axis=1)
    joined.attrs = marked(own.attrs, "label", names)
    return joined, names


def free_names(taken: Iterable[str], names: Iterable[str]) -> list[str]:
    """New names for columns; where one of them is taken all get the same number at the end.

    Examples
    --------
    >>> free_names(["label", "a"], ["label", "p_0"])
    ['label_1', 'p_0_1']
    """
    own, new, number = set(taken), list(names), 0
    while own & {f"{name}_{number}" if number else name for name in new}:
        number += 1
    return [f"{name}_{number}" if number else name for name in new]


def chosen_columns(path: Path, available: list[str], columns: Sequence[str]) -> list[str]:
    """`columns` as a list, if each is there and there once."""
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


def _not_numeric(column: pd.Series[Any]) -> str | None:
    """Why a column cannot be a feature, or None if it can."""
    from pandas.api.types import is_complex_dtype, is_numeric_dtype, is_object_dtype, is_string_dtype

    if column.isna().all():
        return "empty"
    if is_numeric_dtype(column.dtype) and not is_complex_dtype(column.dtype):
        return None
    if not (is_string_dtype(column.dtype) or is_object_dtype(column.dtype)):
        return str(column.dtype)
    present = column[column.notna().to_numpy()]
    numbers = present.map(is_number).to_numpy(dtype=bool)
    if 2 * numbers.sum() <= len(numbers):
        return "text"
    if numbers.all():
        return f"numbers stored as {type(present.iloc[0]).__name__}"
    # A single typing error turns a column of numbers into text: name the place.
    row = int(np.flatnonzero(column.notna().to_numpy())[np.argmin(numbers)])
    return f"{_row(row)} holds {column.iloc[row]!r}"


def _index_like(column: pd.Series[Any]) -> str | None:
    """Say so of whole numbers that only count the rows; under ten rows that may be chance."""
    if len(column) < 10 or column.dtype.kind not in "iu":
        return None
    counted = np.arange(len(column)) + int(column.iloc[0])
    return "counts the rows" if column.iloc[0] in (0, 1) and np.array_equal(column.to_numpy(), counted) else None


def _gaps_by_nature(column: pd.Series[Any]) -> str | None:
    """Why gaps between the numbers of a column say nothing about the rows; from some 20,000 of them."""
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)[:: max(1, len(column) // 20_000)]
    values = values[np.isfinite(values)]
    if len(values) < 2:
        return None
    if named_as_code(str(column.name)) and is_whole(values[:, None]).all():
        return "an id or code by its name"
    reason = why_not_continuous(values)
    return None if reason == ATOM else reason


def _check_not_empty(path: Path, shape: tuple[int, ...]) -> None:
    if 0 in shape[:2]:
        raise ValueError(f"{path} is empty: it has {shape[0]} rows and {shape[1]} columns")


def _check_finite(path: Path, X: NDArray[np.floating[Any]], names: Sequence[str], first_row: int = 0) -> None:
    """Raise if `X` holds NaN or infinity, saying where; in blocks, since `X` may be larger than the memory."""
    counts = np.zeros(X.shape[1], dtype=np.int64)
    first = np.zeros(X.shape[1], dtype=np.int64)
    step = max(1, 2**22 // X.shape[1])
    for start in range(0, len(X), step):
        bad = ~np.isfinite(X[start : start + step])
        if bad.any():
            first = np.where(counts > 0, first, first_row + start + bad.argmax(axis=0))
            counts += bad.sum(axis=0)
    columns = np.flatnonzero(counts)
    if len(columns):
        found = "; ".join(
            f"column {names[k]!r}: {counts[k]} {'value' if counts[k] == 1 else 'values'}, the first in {_row(first[k])}"
            for k in columns[:5]
        )
        more = f"; and {len(columns) - 5} more columns" if len(columns) > 5 else ""
        raise ValueError(
            f"{path} contains NaN (an empty cell) or infinity, in {found}{more}. Fill or remove these rows, or choose "
            "other columns with `columns`"
        )


def _float_dtype(*dtypes: np.dtype[Any]) -> np.dtype[np.floating[Any]]:
    """float32 where it holds every value of these dtypes, else float64; in the machine's byte order."""
    widest = np.result_type(np.float32, *dtypes)
    return np.dtype(np.float32) if widest == np.float32 else np.dtype(np.float64)


def _generated_names(array: NDArray[Any]) -> list[str]:
    return [f"x{i}" for i in range(array.shape[1])]


def _row(index: int) -> str:
    return f"row {index + 1} (rows of data are counted from 1)"
