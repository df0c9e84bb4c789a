"""Tables as text: which mark separates their cells, which columns are codes, and the cells as they stand there."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralbayes.system.bounds import MAX_COLUMNS

if TYPE_CHECKING:
    import pandas as pd

MARKS = (",", ";", "\t", "|")
SAMPLE_BYTES = 2**18
BLOCK_BYTES = 2**22
CHUNK_ROWS = 50_000
CODE = "a code with leading zeros"
"""Why a column of digits such as 02750 is no feature."""

DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
DECIMAL_POINT = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")


@dataclass(frozen=True)
class TextFile:
    """A table of text, and how to read its cells again.

    Attributes
    ----------
    path : Path
    separator, decimal : str
        The marks between cells and in numbers.
    names : list of str or None
        Column names where the file has none.
    stamp : tuple of int
        Its size and time when it was read.
    """

    path: Path
    separator: str
    decimal: str
    names: list[str] | None
    stamp: tuple[int, int]

    def frame(self) -> pd.DataFrame:
        """The table, numbers as numbers."""
        import pandas

        frame: pd.DataFrame = pandas.read_csv(self.path, decimal=self.decimal, low_memory=False, **self._options)
        return frame

    def cells(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """The cells of all or some columns as they stand in the file, some rows at a time."""
        import pandas

        options: dict[str, Any] = {"dtype": str, "na_filter": False, "chunksize": CHUNK_ROWS, "usecols": columns}
        with pandas.read_csv(self.path, **options, **self._options) as chunks:
            yield from chunks

    def changed(self) -> bool:
        """Whether the file is another one than was read."""
        return not self.path.is_file() or _stamp(self.path) != self.stamp

    @property
    def _options(self) -> dict[str, Any]:
        header = 0 if self.names is None else None
        return {"sep": self.separator, "header": header, "names": self.names, "index_col": False}


def open_text(path: Path, separator: str) -> TextFile:
    """Look at the beginning of a file; `separator` is what its suffix stands for.

    Raises
    ------
    ValueError
        It has more columns than a table can have, or is empty.
    """
    stamp = _stamp(path)
    with open(path, "rb") as file:
        sample = file.read(SAMPLE_BYTES).decode("utf-8-sig", errors="replace")
    records = {mark: _records(sample, mark, cut=stamp[0] > SAMPLE_BYTES) for mark in MARKS}
    separator = _separator(records, separator)
    _check_columns(path, separator)
    if not records[separator]:
        raise ValueError(f"{path} is empty: it has no columns")
    first, *others = records[separator]
    cells = [cell.strip() for cell in chain(first, *others)]
    with_comma = separator != "," and any(map(DECIMAL_COMMA.fullmatch, cells))
    decimal = "," if with_comma and not any(map(DECIMAL_POINT.fullmatch, cells)) else "."
    # DataFrames without column names are written with the header 0, 1, 2, ...
    headerless = all(is_number(cell.replace(decimal, ".")) for cell in first) and first != [
        *map(str, range(len(first)))
    ]
    return TextFile(path, separator, decimal, [f"x{i}" for i in range(len(first))] if headerless else None, stamp)


def read_text(path: Path, separator: str) -> tuple[TextFile, pd.DataFrame, dict[str, pd.Series[Any]]]:
    """The table of a text file, and those of its columns that are codes as they stand there.

    Columns are x0, x1, ... if the first line holds numbers instead of names.
    """
    import pandas

    try:
        with warnings.catch_warnings():
            # pandas would drop the fields that no header stands above
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            file = open_text(path, separator)
            frame = file.frame()
            return file, frame, _codes(file, frame)
    except pandas.errors.EmptyDataError as error:
        raise ValueError(f"{path} is empty: it has no columns") from error
    except pandas.errors.ParserWarning as error:
        raise ValueError(f"{path} has rows with more fields than the first line has") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text ({error}); save it as UTF-8") from error
    except pandas.errors.ParserError as error:
        raise ValueError(f"{path} cannot be read as a table ({error})") from error


def is_number(value: Any) -> bool:
    """Whether `float` takes `value`."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _records(sample: str, mark: str, *, cut: bool) -> list[list[str]]:
    """The rows of the beginning of a file, the last left out where it may be cut short; none if it cannot be read."""
    try:
        rows = [row for row in csv.reader(io.StringIO(sample, newline=""), delimiter=mark) if row]
    except csv.Error:
        return [sample.splitlines()[0].split(mark)] if sample.strip() else []
    return rows[:-1] if cut and len(rows) > 1 else rows


def _separator(records: dict[str, list[list[str]]], expected: str) -> str:
    """The mark that divides every row into as many cells, more than one; `expected` where it does or none does."""
    dividing = [
        mark for mark, rows in records.items() if rows and len(rows[0]) > 1 and len({len(row) for row in rows}) == 1
    ]
    if expected in dividing:
        # Rows of 1,5;2,5 are divided by either mark: the comma is in numbers where it is in nothing else.
        for other in dividing:
            cells = [cell.strip() for row in records[other] for cell in row if "," in cell]
            if expected == "," and other != "," and cells and all(map(DECIMAL_COMMA.fullmatch, cells)):
                return other
        return expected
    return dividing[0] if dividing else expected


def _check_columns(path: Path, separator: str) -> None:
    """Raise if the first line has more cells than a table can have columns."""
    count, begun = 1, False
    with open(path, "rb") as file:
        while block := file.read(BLOCK_BYTES):
            line, *rest = (block if begun else block.lstrip(b"\r\n")).splitlines() or [b""]
            begun |= bool(line)
            count += line.count(separator.encode())
            if count > MAX_COLUMNS:
                raise ValueError(f"{path} must have at most {MAX_COLUMNS} columns, got more in its first line")
            if rest:
                return


def _codes(file: TextFile, frame: pd.DataFrame) -> dict[str, pd.Series[Any]]:
    """The columns that were read as numbers, and have a cell of digits with a 0 in front."""
    import pandas

    numeric = [str(name) for name in frame if frame[name].dtype.kind in "iuf"]
    if not numeric or not _has_leading_zeros(file):
        return {}
    found: set[str] = set()
    for cells in file.cells(numeric):
        found |= {name for name in numeric if cells[name].str.fullmatch(r"0\d+").any()}
    if not found:
        return {}
    whole = pandas.concat(file.cells(sorted(found)), ignore_index=True)
    return {name: whole[name].where(whole[name] != "", None) for name in numeric if name in found}


def _has_leading_zeros(file: TextFile) -> bool:
    """Whether there is a cell that begins with a 0 and another digit: most files have none, and are read once."""
    begins, digit = np.zeros(256, bool), np.zeros(256, bool)
    begins[list(f'{file.separator}\n\r"'.encode())] = True
    digit[list(b"0123456789")] = True
    end = b"\n"
    with open(file.path, "rb") as stream:
        while block := stream.read(BLOCK_BYTES):
            data = np.frombuffer(end + block, np.uint8)
            if (begins[data[:-2]] & (data[1:-1] == ord("0")) & digit[data[2:]]).any():
                return True
            end = block[-2:]
    return False
