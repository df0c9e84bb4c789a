"""Table files with all their columns. Features are selected elsewhere."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.arrow_files import read_arrow
from neuralbayes.data.cells import Decimal
from neuralbayes.data.dialect import check_names
from neuralbayes.data.json_lines import read_json_lines
from neuralbayes.data.parquet import parquet_files, read_groups
from neuralbayes.data.table_formats import (
    ARRAY_SUFFIXES,
    ARROW_SUFFIXES,
    JSON_SUFFIXES,
    SEPARATORS,
    arrow_errors,
    check_contents,
    check_format,
    import_pandas,
    read_npy,
    read_npz,
    table_suffix,
)
from neuralbayes.data.text_tables import read_text
from neuralbayes.data.workbooks import read_workbook
from neuralbayes.data.written import with_attributes
from neuralbayes.system.limits import free_memory

if TYPE_CHECKING:
    import pandas as pd


class Original(Protocol):
    """A file whose rows can be written back unchanged, with new columns after them."""

    @property
    def path(self) -> Path: ...

    def changed(self) -> bool: ...

    def place(self, row: int) -> str: ...

    def write_beside(self, path: Path, kind: str, new: pd.DataFrame) -> bool: ...


@dataclass(frozen=True)
class TableSource:
    """A table with all columns, as read from a file.

    Attributes
    ----------
    path : Path
    data : DataFrame or array
        The array of an NPY file is memory-mapped.
    original : Original or None
        The original file, if its rows can be written back unchanged: text, JSON lines, Excel.
    first_row : int
        Index of the first row in the file, from 0, if this is a part of a file.
    """

    path: Path
    data: pd.DataFrame | NDArray[Any]
    original: Original | None = None
    first_row: int = 0

    @property
    def named(self) -> bool:
        """Whether the columns have names in the file."""
        return not isinstance(self.data, np.ndarray)

    @property
    def frame(self) -> pd.DataFrame:
        """All columns, used or not, with unique names of type str.

        Numbers are int64, or float64 with NaN for missing cells (Int64 with NA if float64 would round them). Booleans
        are bool, or boolean with NA. Text is str (object in pandas 2), and `isna` is true for missing cells. A column
        of a text file is numeric only if all of its cells are numbers or missing. Digits with leading zeros ("02750")
        are codes and stay text. Dates are text if the file format has no dates; Parquet, Arrow and Excel keep the types
        of dates and categories. No column is left out, and missing cells are allowed.
        """
        if not isinstance(self.data, np.ndarray):
            return self.data
        frame: pd.DataFrame = import_pandas().DataFrame(self.data, columns=generated_names(self.data), copy=False)
        return frame

    def place(self, row: int) -> str:
        """The position of a row for messages; `row` counts from 0 in this part, the message from 1."""
        found = f"row {self.first_row + row + 1}"
        if self.original is None or self.original.changed():
            return f"{found} (rows of data are counted from 1)"
        return f"{found} ({self.original.place(row)})"


def read_source(
    path: str | Path,
    *,
    key: str | None = None,
    sheet: str | None = None,
    sep: str | None = None,
    decimal: Decimal | None = None,
    encoding: str | None = None,
    as_text: Collection[str] = (),
) -> TableSource:
    """Read all columns of a file, whose suffix determines the format. See :func:`neuralbayes.data.tables.read_table`.

    Parameters
    ----------
    path : path
    key, sheet, sep, decimal, encoding : str, optional
        As in :func:`neuralbayes.data.tables.read_table`.
    as_text : collection of str
        Columns of a text or Excel file to keep as text, even if they look like numbers.
    """
    path = Path(path)
    if not path.exists():
        table_suffix(path)
        raise FileNotFoundError(f"{path} does not exist")
    folder = path.is_dir() and bool(parquet_files(path))
    if not (folder or path.is_file()):
        raise IsADirectoryError(f"{path} is a folder, not a file of a table or a folder of .parquet files")
    suffix = ".parquet" if folder else table_suffix(path)
    texts = {"sep": sep, "decimal": decimal, "encoding": encoding}
    _check_options(path, suffix, {"key": key, "sheet": sheet, **texts})
    if decimal not in (None, ".", ","):
        raise ValueError(f"`decimal` must be . or a comma, got {decimal!r}")
    if suffix in ARRAY_SUFFIXES:
        _check_not_empty(path)
        return _not_empty(TableSource(path, read_npy(path) if suffix == ".npy" else read_npz(path, key)))
    check_format(path if not folder else "folder.parquet")
    for file in parquet_files(path) if folder else [path]:
        _check_not_empty(file)
        check_contents(file)
    _check_memory(path)
    original: Original | None = None
    if suffix in SEPARATORS:
        original, frame = read_text(
            path, SEPARATORS[suffix], sep=sep, decimal=decimal, encoding=encoding, as_text=frozenset(as_text)
        )
    elif suffix in JSON_SUFFIXES:
        original, frame = read_json_lines(path)
    elif suffix == ".xlsx":
        original, frame = read_workbook(path, sheet, frozenset(as_text))
    elif suffix in ARROW_SUFFIXES:
        with arrow_errors(path, "Arrow"):
            frame = read_arrow(path)
    else:
        frame = _read_parquet(path)
    return _not_empty(TableSource(path, _named(path, frame), original))


def generated_names(array: NDArray[Any]) -> list[str]:
    """x0, x1, ... for the columns of an array."""
    return [f"x{i}" for i in range(array.shape[1])]


def _read_parquet(path: Path) -> pd.DataFrame:
    frames: list[pd.DataFrame] = []
    for file in parquet_files(path):
        with arrow_errors(file):
            groups = read_groups(file)
            frame: pd.DataFrame = with_attributes(groups.to_pandas(), groups.schema.metadata)
        if frames and list(frame) != list(frames[0]):
            raise ValueError(f"{file} has other columns than the files before it, or in another order")
        frames.append(frame)
    if len(frames) == 1:
        return frames[0]
    joined: pd.DataFrame = import_pandas().concat(frames, ignore_index=True)
    return joined


def _named(path: Path, frame: pd.DataFrame) -> pd.DataFrame:
    """`frame` with names of type str, which must be unique."""
    names = [str(name) for name in frame.columns]
    check_names(path, names)
    return frame.set_axis(names, axis=1)


def _check_options(path: Path, suffix: str, given: dict[str, str | None]) -> None:
    """Raise if an option does not apply to the format."""
    right = {"key": ("names an array of a .npz file", {".npz"}), "sheet": ("names a sheet of an .xlsx file", {".xlsx"})}
    of_text = ("is for text files", set(SEPARATORS))
    for name, value in given.items():
        what, suffixes = right.get(name, of_text)
        if value is not None and suffix not in suffixes:
            raise ValueError(f"`{name}` {what}, but {path} is a {suffix} file")


def _not_empty(source: TableSource) -> TableSource:
    """Return `source`; raises if it has no rows or no columns."""
    shape = source.data.shape
    if 0 in shape[:2]:
        raise ValueError(f"{source.path} is empty: it has {shape[0]} rows and {shape[1]} columns")
    return source


def _check_not_empty(path: Path) -> None:
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty")


def _check_memory(path: Path) -> None:
    """Raise if a file is larger than the available memory."""
    size, free = path.stat().st_size, free_memory()
    if free is not None and size > free:
        raise MemoryError(
            f"{path} has {size / 2**30:.1f} GB, and {free / 2**30:.1f} GB of memory are free; use part of its rows, or "
            "write it as Parquet and label it with a saved model, which reads it in blocks"
        )
