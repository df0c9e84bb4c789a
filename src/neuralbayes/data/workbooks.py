"""Tables in Excel workbooks (.xlsx), with openpyxl; what they unpack to is bounded before anything is unpacked."""

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
"""What a workbook may unpack to, whatever its size."""

MAX_CELLS_PER_BYTE = 4
"""Cells of a workbook, empty ones among them, per byte of what it unpacks to."""


@dataclass(frozen=True)
class WorkbookFile:
    """A sheet of a workbook, and how to write it again with new columns.

    Attributes
    ----------
    path : Path
    sheet : str
    first_row : int
        The row of the sheet, from 1, that holds the first row of data.
    header : bool
        Whether the row in front of it holds the names of the columns.
    stamp : tuple of int
        The size and time of the file when it was read.
    """

    path: Path
    sheet: str
    first_row: int
    header: bool
    stamp: tuple[int, int]

    def changed(self) -> bool:
        """Whether the file is another one than was read."""
        return not self.path.is_file() or stamp_of(self.path) != self.stamp

    def place(self, row: int) -> str:
        """Where a row of data, counted from 0, is in the sheet."""
        return f"row {self.first_row + row} of the sheet"

    def write_beside(self, path: Path, kind: str, new: pd.DataFrame) -> bool:
        """Write the workbook again with new columns behind those of the sheet: formats and formulas stay."""
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
    """The table in a sheet of a workbook, and the sheet.

    Empty rows and columns around the table are left out. Of formulas there is the value that Excel computed last.

    Parameters
    ----------
    path : Path
    sheet : str, optional
        Its name, or its number from 1; by default the first one.
    as_text : set of str
        Columns of text that stay text, also if they hold numbers.
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
    """Write a DataFrame as the only sheet of a workbook; no text becomes a formula."""
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
    """A workbook; what openpyxl warns of is about the looks of it."""
    import openpyxl

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return openpyxl.load_workbook(path, **options)


def _check_archive(path: Path) -> int:
    """The bytes that a workbook unpacks to, if they are not too many."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            names = {member.filename for member in members}
            for member in members:
                if member.filename.endswith((".xml", ".rels")):
                    with archive.open(member) as stream:
                        if b"<!DOCTYPE" in stream.read(1024):  # Excel writes none; entities unpack to anything
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
    """The rows of values; the text in them is bounded too, for one text may stand in many cells."""
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
    """The row with which the table begins, from 0, its columns, and whether that row holds their names."""
    import pandas

    used = [i for i, row in enumerate(rows) if any(value is not None for value in row)]
    if not used:
        raise RefusedError(f"{path} is empty: the sheet has no cells; choose another by `sheet`")
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
    """A column: of numbers, truth values or dates if all of its cells are, else as cells of a text file are."""
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
