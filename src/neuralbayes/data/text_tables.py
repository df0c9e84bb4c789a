"""Text tables: read with any separator, and written back byte for byte."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralbayes.data.cells import Decimal, frame_of_cells
from neuralbayes.data.dialect import Dialect, find_dialect, is_text, named_mark
from neuralbayes.data.packed import packing, packing_writer
from neuralbayes.data.records import body, cells_of, is_open, lines, records
from neuralbayes.data.text_streams import (
    count_quotes,
    guess_again,
    guess_encoding,
    known_encoding,
    open_text,
    text_sample,
    undecodable_line,
)
from neuralbayes.system.files import stamp_of

if TYPE_CHECKING:
    import pandas as pd

ROWS_AT_ONCE = 50_000
BLOCK_BYTES, MAX_BLOCK_BYTES = 2**20, 2**30
"""Size of the text parsed at a time; a row must fit into it."""


@dataclass(frozen=True)
class TextFile:
    """A text table whose raw rows can be read again.

    Attributes
    ----------
    path : Path
    encoding : str
    dialect : Dialect
    quoted : bool
        Whether it contains quotes.
    stamp : tuple of int
        Size and modification time of the file when it was read.
    decimal : "." or ","
        Decimal mark of its numbers.
    """

    path: Path
    encoding: str
    dialect: Dialect
    quoted: bool
    stamp: tuple[int, int]
    decimal: Decimal = "."

    def changed(self) -> bool:
        """Whether the file has changed since it was read."""
        return not self.path.is_file() or stamp_of(self.path) != self.stamp

    def records(self) -> Iterator[bytes]:
        """The raw rows of data in UTF-8, including blank lines."""
        with closing(open_text(self.path, self.encoding)) as stream:
            stream.read(self.dialect.start)
            found = lines(stream)
            yield from records(found, self.dialect.separator) if self.quoted else found

    def rows(self) -> Iterator[tuple[int, bytes]]:
        """The rows of data without blank lines, with the numbers of their first lines."""
        line = self.dialect.line
        for record in self.records():
            if not self._is_blank(record):
                yield line, record
            line += len(record.splitlines())

    def place(self, row: int) -> str:
        """The number of the first line of a row, counted from 0."""
        return next((f"line {line}" for line, _ in islice(self.rows(), row, None)), "at the end")

    def cells(self) -> Any:
        """All cells as text, a pyarrow Table."""
        import pyarrow
        from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, read_csv

        names, block = self.dialect.names, BLOCK_BYTES
        while True:
            try:
                with self._arrow_stream() as stream:
                    return read_csv(
                        stream,
                        ReadOptions(column_names=names, block_size=block),
                        ParseOptions(delimiter=self.dialect.separator, newlines_in_values=self.quoted),
                        ConvertOptions(column_types=dict.fromkeys(names, pyarrow.string())),
                    )
            except pyarrow.ArrowInvalid as error:
                if "Empty CSV file" in str(error):
                    return pyarrow.table({name: pyarrow.array([], pyarrow.string()) for name in names})
                if "straddling" not in str(error) or block >= MAX_BLOCK_BYTES:
                    raise
                block *= 8

    def write_beside(self, path: Path, kind: str, new: pd.DataFrame) -> bool:
        """Write the file with new columns after its own. Nothing else changes.

        A file without column names gets a header.

        Parameters
        ----------
        path : Path
        kind : str
            Compression of the output: a compression suffix, or "".
        new : DataFrame
            New columns, with as many rows as the file.

        Returns
        -------
        bool
            False if the rows do not match, because the quotes are ambiguous.
        """
        mark = self.dialect.separator
        with closing(open_text(self.path, self.encoding)) as stream:
            before = stream.read(self.dialect.start)
        front, header = before[: self.dialect.begin], before[self.dialect.begin :]
        first = header or next(self.records(), b"")
        names = list(map(str, new)) if header else [*self.dialect.names, *map(str, new)]
        line = body(header) + (mark if header else "").encode() + _line(names, mark).encode() + (_end(first) or b"\n")
        rows = self.records()
        with packing_writer(path, kind) as file:
            file.write(self._encoded(front + line))
            for start in range(0, len(new), ROWS_AT_ONCE):
                text = new.iloc[start : start + ROWS_AT_ONCE].to_csv(
                    None, sep=mark, decimal=self.decimal, index=False, header=False, lineterminator="\n"
                )
                cells = text.encode().splitlines()
                written = list(self._joined(rows, cells))
                if len(written) < len(cells):
                    return False
                file.write(self._encoded(b"".join(written)))
            rest = list(rows)  # blank lines
            file.write(self._encoded(b"".join(rest)))
        return all(map(self._is_blank, rest))

    def _joined(self, rows: Iterator[bytes], cells: list[bytes]) -> Iterator[bytes]:
        """The next rows with their new cells, and the blank lines before them."""
        mark = self.dialect.separator.encode()
        for cell in cells:
            blank = b""
            for record in rows:
                if not self._is_blank(record):
                    yield blank + body(record) + mark + cell + _end(record)
                    break
                blank += record

    def _is_blank(self, record: bytes) -> bool:
        return not (record.strip() if self.dialect.separator == " " else body(record))

    def _encoded(self, text: bytes) -> bytes:
        return text if self.encoding == "utf-8" else text.decode().encode(self.encoding)

    def _arrow_stream(self) -> Any:
        """The rows of data, for pyarrow."""
        import pyarrow

        if self.dialect.separator == " ":
            return pyarrow.BufferReader(self._without_runs())
        if self.encoding == "utf-8" and not packing(self.path):
            file = pyarrow.OSFile(str(self.path))
            file.seek(self.dialect.start)
            return file
        stream = open_text(self.path, self.encoding)
        stream.read(self.dialect.start)
        return pyarrow.PythonFile(stream, mode="r")

    def _without_runs(self) -> bytes:
        """The rows of data, with runs of blanks replaced by one."""
        if not self.quoted:
            return b"\n".join(b" ".join(record.split()) for record in self.records())
        return "\n".join(_line(cells_of(record, " "), " ") for _, record in self.rows()).encode()


def read_text(
    path: Path,
    expected: str,
    *,
    sep: str | None = None,
    decimal: Decimal | None = None,
    encoding: str | None = None,
    as_text: frozenset[str] = frozenset(),
) -> tuple[TextFile, pd.DataFrame]:
    """Read a text file.

    Parameters
    ----------
    path : Path
        May be compressed.
    expected : str
        Separator that the suffix suggests.
    sep, decimal, encoding : str, optional
        Known properties; the others are detected.
    as_text : set of str
        Columns to keep as text.

    Raises
    ------
    ValueError
        If the file is not a text table, or its rows have different numbers of cells.
    """
    stamp = stamp_of(path)
    found = guess_encoding(path) if encoding is None else known_encoding(path, encoding)
    try:
        try:
            file, cells = _read_as(path, found, expected, sep, stamp)
        except UnicodeDecodeError:
            if encoding is not None or found != "utf-8":
                raise
            found = guess_again(path)
            file, cells = _read_as(path, found, expected, sep, stamp)
    except UnicodeDecodeError as error:
        line = undecodable_line(path, found)
        where = error.reason if line is None else f"line {line} holds other bytes"
        raise ValueError(f"{path} is not {found} text: {where}; give its encoding with `encoding`") from error
    columns = dict(zip(cells.column_names, cells.columns, strict=True))
    del cells
    frame, mark = frame_of_cells(columns, decimal, file.dialect.separator, as_text)
    return replace(file, decimal=mark), frame


def _read_as(path: Path, encoding: str, expected: str, sep: str | None, stamp: tuple[int, int]) -> tuple[TextFile, Any]:
    """The file and its cells; raises a UnicodeDecodeError if it has another encoding."""
    import pyarrow

    sample, whole = text_sample(path, encoding)
    if not is_text(sample):
        raise ValueError(f"{path} is not a text file: it holds control characters; its suffix may be wrong")
    dialect = find_dialect(path, sample, expected, None if sep is None else named_mark(sep), whole=whole)
    sample[: dialect.start].decode()
    quotes = count_quotes(path, encoding)
    file = TextFile(path, encoding, dialect, quotes > 0, stamp)
    if quotes % 2:
        _check_quotes(file)
    try:
        return file, file.cells()
    except pyarrow.ArrowInvalid as error:
        if "UTF8" in str(error):
            raise UnicodeDecodeError("utf-8", b"?", 0, 1, "invalid bytes") from error
        _check_widths(file)
        raise ValueError(f"{path} cannot be read as a table ({error})") from error


def _check_quotes(file: TextFile) -> None:
    """Raise if a quoted cell is not closed."""
    for row, (line, record) in enumerate(file.rows(), 1):
        if is_open(record, file.dialect.separator.encode()):
            raise ValueError(f"{file.path}: a quoted cell in row {row} (line {line}) never ends; close the quote")


def _check_widths(file: TextFile) -> None:
    """Raise an error that names the first row with a wrong number of cells."""
    mark, width = file.dialect.separator, len(file.dialect.names)
    for row, (line, record) in enumerate(file.rows(), 1):
        cells = cells_of(record, mark)
        if len(cells) != width:
            first = "header" if file.dialect.header else "first row"
            by = {"\t": "tabs", " ": "blanks"}.get(mark, repr(mark))
            raise ValueError(
                f"{file.path}: row {row} (line {line}) has {len(cells)} {'cell' if len(cells) == 1 else 'cells'}, but "
                f"the {first} has {width}, separated by {by}; put cells that contain the separator into quotes, or "
                "choose another separator with `sep`"
            )


def _line(cells: list[str], separator: str) -> str:
    """Format cells as a line of text without a line ending."""
    line = io.StringIO()
    csv.writer(line, delimiter=separator, lineterminator="").writerow(cells)
    return line.getvalue()


def _end(record: bytes) -> bytes:
    """The line ending of a record."""
    return record[len(body(record)) :]
