"""Excel workbooks (.xlsx), read with openpyxl. The unpacked size is checked before anything is unpacked."""

from __future__ import annotations

import datetime
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralbayes.data.arrays import DAMAGE
from neuralbayes.data.cells import MISSING, typed
from neuralbayes.data.dialect import check_names, is_number_text
from neuralbayes.data.parquet import RefusedError
from neuralbayes.system.bounds import MAX_COLUMNS, MAX_PACKED_BYTES, MAX_PACKED_RATIO
from neuralbayes.system.files import stamp_of

if TYPE_CHECKING:
    import pandas as pd

MAX_SMALL_BYTES = 2**26
"""Maximum unpacked size of a workbook."""

MAX_CELLS_PER_BYTE = 4
"""Maximum number of cells, including empty ones, per unpacked byte."""


@dataclass(frozen=True)
class WorkbookFile:
    """A sheet of a workbook that can be written back with new columns.

    Attributes
    ----------
    path : Path
    sheet : str
    first_row : int
        The row of the sheet, from 1, with the first row of data.
    header : bool
        Whether the row before it contains the column names.
    stamp : tuple of int
        Size and modification time of the file when it was read.
    """

    path: Path
    sheet: str
    first_row: int
    header: bool
    stamp: tuple[int, int]

    def changed(self) -> bool:
        """Whether the file has changed since it was read."""
        return not self.path.is_file() or stamp_of(self.path) != self.stamp

    def place(self, row: int) -> str:
        """The row of the sheet of a row of data, counted from 0."""
        return f"row {self.first_row + row} of the sheet"

    def write_beside(self, path: Path, kind: str, new: pd.DataFrame) -> bool:
        """Write the workbook with new columns after those of the sheet; formats and formulas are kept."""
        if not self.header:
            return False
        book = _load(self.path)
        sheet = book[self.sheet]
        last = sheet.max_column
        for j, name in enumerate(new, last + 1):
            sheet.cell(self.first_row - 1, j, str(name)).data_type = "s"
            for i, value in enumerate(new[name].tolist()):
                sheet.cell(self.first_row + i, j, value)
        book.save(path)
        return True


def read_workbook(
    path: Path, sheet: str | None, as_text: frozenset[str] = frozenset()
) -> tuple[WorkbookFile, pd.DataFrame]:
    """Read a sheet of a workbook.

    Empty rows and columns around the table are ignored. Formulas have the value that Excel computed last.

    Parameters
    ----------
    path : Path
    sheet : str, optional
        Name of the sheet, or its number from 1; by default the first one.
    as_text : set of str
        Columns to keep as text, even if they contain numbers.
    """
    stamp, size = stamp_of(path), _check_archive(path)
    try:
        with closing(_load(path, read_only=True, data_only=True, keep_links=False)) as book:
            found = _sheet(path, book, sheet)
            title = found.title
            found.reset_dimensions()
            rows = list(_rows(path, found, size))
    except RefusedError:
        raise
    except (*DAMAGE, AttributeError) as error:  # a ParseError of XML is a SyntaxError
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise ValueError(f"{path} is not a valid Excel file ({error}); it may be damaged or cut short") from error
    start, frame, header = _frame(path, rows, as_text)
    return WorkbookFile(path, title, start + header + 1, header, stamp), frame


def write_workbook(path: Path, frame: pd.DataFrame) -> None:
    """Write a DataFrame as the only sheet of a workbook, with text that is never a formula."""
    import pandas
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell

    book = Workbook(write_only=True)
    sheet = book.create_sheet("Sheet1")

    def cell(value: Any) -> Any:
        if not isinstance(value, str):
            return None if pandas.isna(value) else getattr(value, "item", lambda: value)()
        text = WriteOnlyCell(sheet, value)
        text.data_type = "s"
        return text

    sheet.append([cell(str(name)) for name in frame])
    for row in frame.astype(object).itertuples(index=False, name=None):
        sheet.append([cell(value) for value in row])
    book.save(path)


def _load(path: Path, **options: Any) -> Any:
    """Open a workbook, ignoring openpyxl's warnings about its appearance."""
    import openpyxl

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return openpyxl.load_workbook(path, **options)


def _check_archive(path: Path) -> int:
    """The unpacked size of a workbook; raises if it is too large."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            names = {member.filename for member in members}
            for member in members:
                if member.filename.endswith((".xml", ".rels")):
                    with archive.open(member) as stream:
                        if b"<!DOCTYPE" in stream.read(
                            1024
                        ):  # Excel writes no entities, and they can expand to anything
                            raise RefusedError(f"{path} must not hold an XML document type, got one")
    except DAMAGE as error:
        if isinstance(error, RefusedError) or (isinstance(error, OSError) and error.filename is not None):
            raise
        raise ValueError(f"{path} is not a valid Excel file ({error}); it may be damaged or cut short") from error
    if "xl/workbook.xml" not in names:
        raise ValueError(f"{path} is not a valid Excel file: it is an archive without a workbook")
    size = sum(member.file_size for member in members)
    limit = min(MAX_PACKED_BYTES, max(MAX_SMALL_BYTES, MAX_PACKED_RATIO * path.stat().st_size))
    if size > limit:
        raise RefusedError(
            f"{path} unpacks to {size} bytes, which must be at most {limit}; save the sheet as .csv or .parquet"
        )
    return size


def _sheet(path: Path, book: Any, sheet: str | None) -> Any:
    sheets = book.worksheets
    if not sheets:
        raise RefusedError(f"{path} has no sheet with cells")
    if sheet is None:
        return sheets[0]
    for found in sheets:
        if found.title == sheet:
            return found
    if sheet.isdecimal() and 1 <= int(sheet) <= len(sheets):
        return sheets[int(sheet) - 1]
    names = ", ".join(repr(found.title) for found in sheets[:20])
    raise RefusedError(f"{path} has no sheet {sheet!r}; `sheet` must be one of {names}, or a number of at least 1")


def _rows(path: Path, sheet: Any, size: int) -> Iterator[tuple[Any, ...]]:
    """The rows of values, with a limit on text, since one text may occur in many cells."""
    n_cells, n_text = 0, 0
    for row in sheet.iter_rows(values_only=True):
        n_cells += max(1, len(row))
        n_text += sum(len(value) for value in row if isinstance(value, str))
        if n_cells > MAX_CELLS_PER_BYTE * size or len(row) > MAX_COLUMNS or n_text > MAX_PACKED_BYTES:
            raise RefusedError(
                f"{path} asks for more cells than it has bytes for: cells far away from the table, or long text in "
                "many cells; save the sheet as .csv"
            )
        yield row


def _frame(path: Path, rows: list[tuple[Any, ...]], as_text: frozenset[str]) -> tuple[int, pd.DataFrame, bool]:
    """The first row of the table, from 0, its columns, and whether that row contains their names."""
    import pandas

    used = [i for i, row in enumerate(rows) if any(value is not None for value in row)]
    if not used:
        raise RefusedError(f"{path} is empty: the sheet has no cells; choose another with `sheet`")
    rows = rows[used[0] : used[-1] + 1]
    width = max(map(len, rows))
    columns = [[row[j] if j < len(row) else None for row in rows] for j in range(width)]
    columns = [column for column in columns if any(value is not None for value in column)]
    first = [column[0] for column in columns]
    header = not all(_is_number(value) for value in first)
    names = [f"Unnamed: {j}" if name is None else str(name).strip() for j, name in enumerate(first)]
    names = names if header else [f"x{j}" for j in range(len(columns))]
    check_names(path, names)
    series = {
        name: _series(column[1:] if header else column, text=name in as_text)
        for name, column in zip(names, columns, strict=True)
    }
    return used[0], pandas.DataFrame(series), header


def _series(values: list[Any], *, text: bool) -> Any:
    """A column of numbers, booleans or dates if all of its cells are; otherwise as in a text file."""
    import pandas
    import pyarrow

    values = [None if isinstance(value, str) and value.strip() in MISSING else value for value in values]
    kinds = {type(value) for value in values if value is not None}
    if kinds and kinds <= {int, float}:
        whole = kinds == {int} and None not in values
        return pandas.Series(values, dtype="int64" if whole else "float64")
    if kinds == {bool}:
        return pandas.Series(values, dtype="boolean" if None in values else "bool")
    if kinds and kinds <= {datetime.datetime, datetime.date}:
        return pandas.to_datetime(pandas.Series(values))
    cells = ["" if value is None else str(value) for value in values]
    return typed(pyarrow.chunked_array([cells], pyarrow.string()), text=text or kinds != {str})


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) or (isinstance(value, str) and is_number_text(value))
