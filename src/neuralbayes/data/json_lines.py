"""Tables in JSON lines: one object per line, with the columns as keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralbayes.data.cells import series_of
from neuralbayes.data.packed import packing_writer
from neuralbayes.data.parquet import RefusedError
from neuralbayes.data.records import body, lines
from neuralbayes.data.text_streams import open_text
from neuralbayes.system.bounds import MAX_COLUMNS, MAX_PACKED_BYTES, MAX_PACKED_RATIO
from neuralbayes.system.files import stamp_of

if TYPE_CHECKING:
    import pandas as pd

ROWS_AT_ONCE = 50_000
CELL_BYTES = 8
"""Minimum memory of a cell, even if a line lacks its key."""


@dataclass(frozen=True)
class JsonLines:
    """A file of JSON lines whose lines can be written back unchanged.

    Attributes
    ----------
    path : Path
    stamp : tuple of int
        Size and modification time of the file when it was read.
    """

    path: Path
    stamp: tuple[int, int]

    def changed(self) -> bool:
        """Whether the file has changed since it was read."""
        return not self.path.is_file() or stamp_of(self.path) != self.stamp

    def place(self, row: int) -> str:
        """The line number of a row, counted from 0."""
        with closing(open_text(self.path)) as stream:
            return next((f"line {number}" for number, _ in islice(_numbered(lines(stream)), row, None)), "at the end")

    def write_beside(self, path: Path, kind: str, new: pd.DataFrame) -> bool:
        """Write the file with new keys at the end of each object, like :meth:`TextFile.write_beside`."""
        with closing(open_text(self.path)) as stream, packing_writer(path, kind) as file:
            rows = lines(stream)
            for start in range(0, len(new), ROWS_AT_ONCE):
                for line in _objects(new.iloc[start : start + ROWS_AT_ONCE]):
                    file.write(_beside(rows, line))
            file.write(b"".join(rows))
        return True


def read_json_lines(path: Path) -> tuple[JsonLines, pd.DataFrame]:
    """Read a file of JSON lines, compressed or not. Dates stay text, because JSON has no dates.

    Raises
    ------
    ValueError
        If a line is not an object, or a column contains objects, arrays or values of different types.
    """
    import pandas

    file = JsonLines(path, stamp_of(path))
    limit = max(MAX_PACKED_BYTES, MAX_PACKED_RATIO * path.stat().st_size)
    columns: dict[str, _Column] = {}
    n_rows = 0
    for rows in _blocks(path):
        names = dict.fromkeys(name for _, row in rows for name in row)
        n_columns = len(columns.keys() | names.keys())
        if n_columns > MAX_COLUMNS or CELL_BYTES * n_columns * (n_rows + len(rows)) > limit:
            raise RefusedError(f"{path} has {n_columns} different keys, too many for the columns of a table")
        for name in names:
            if name not in columns:
                columns[name] = _Column(path, name, n_rows)
        for column in columns.values():
            column.add(rows)
        n_rows += len(rows)
    return file, pandas.DataFrame({name: column.series() for name, column in columns.items()}, copy=False)


class _Column:
    """The values of a key, collected in blocks of rows."""

    def __init__(self, path: Path, name: str, n_missing: int) -> None:
        import pyarrow

        self.path, self.name = path, name
        self.kind: type | None = None
        self.chunks: list[Any] = [pyarrow.nulls(n_missing)]

    def add(self, rows: list[tuple[int, dict[str, Any]]]) -> None:
        """Add the values of more rows, with their line numbers."""
        import pyarrow

        values = [row.get(self.name) for _, row in rows]
        kinds = {type(value) for value in values} - {type(None)}
        for kind in kinds:
            plain = float if kind is int else kind
            self.kind = self.kind or plain
            if plain is not self.kind or plain not in (str, bool, float):
                raise self._refused(
                    *next((line, row[self.name]) for line, row in rows if type(row.get(self.name)) is kind)
                )
        if not kinds:
            self.chunks.append(pyarrow.nulls(len(values)))
        elif self.kind is not float:
            self.chunks.append(pyarrow.array(values, pyarrow.string() if self.kind is str else pyarrow.bool_()))
        elif kinds == {int} and all(value is None or abs(value) < 2**63 for value in values):
            self.chunks.append(pyarrow.array(values, pyarrow.int64()))
        else:
            self.chunks.append(pyarrow.array([None if value is None else float(value) for value in values], "float64"))

    def series(self) -> pd.Series[Any]:
        """All values, with the types of :attr:`TableSource.frame`."""
        import pandas
        import pyarrow

        kinds = {chunk.type for chunk in self.chunks} - {pyarrow.null()}
        kind = pyarrow.float64() if len(kinds) != 1 else kinds.pop()
        whole = pyarrow.chunked_array([chunk.cast(kind, safe=False) for chunk in self.chunks])
        return series_of(whole, pandas.BooleanDtype() if whole.null_count and pyarrow.types.is_boolean(kind) else None)

    def _refused(self, line: int, value: Any) -> RefusedError:
        shown = f"column {self.name!r} of {self.path}"
        if isinstance(value, list | dict):
            return RefusedError(
                f"{shown} must hold single values, got {type(value).__name__} in line {line}; leave it out, or make a "
                "column of each of its parts"
            )
        return RefusedError(
            f"{shown} holds {value!r} in line {line}, but another kind of value before; write all of its values as "
            "text, or all as numbers"
        )


def write_json_lines(path: Path, kind: str, frame: pd.DataFrame) -> None:
    """Write a DataFrame as JSON lines; `kind` is the compression."""
    with packing_writer(path, kind) as file:
        for start in range(0, len(frame), ROWS_AT_ONCE):
            file.write(b"".join(line + b"\n" for line in _objects(frame.iloc[start : start + ROWS_AT_ONCE])))


def _objects(frame: pd.DataFrame) -> Iterator[bytes]:
    """The rows as JSON objects; missing cells are null, dates text."""
    names = [str(name) for name in frame]
    plain = frame.astype(object).where(frame.notna(), None)
    for row in plain.itertuples(index=False, name=None):
        yield json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, default=str).encode()


def _blocks(path: Path) -> Iterator[list[tuple[int, dict[str, Any]]]]:
    """The objects of a file with their line numbers, in blocks."""
    with closing(open_text(path)) as stream:
        numbered = _numbered(lines(stream))
        while block := [(number, _object(path, number, line)) for number, line in islice(numbered, ROWS_AT_ONCE)]:
            yield block


def _object(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", error)
        raise ValueError(f"{path}: line {number} is not a JSON object ({reason})") from error
    if not isinstance(row, dict):
        raise ValueError(f"{path}: line {number} must hold a JSON object, got {type(row).__name__}")
    return row


def _numbered(found: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
    return ((number, line) for number, line in enumerate(found, 1) if line.strip())


def _beside(rows: Iterator[bytes], new: bytes) -> bytes:
    """The next object with the new keys, and the blank lines before it."""
    blank = b""
    for line in rows:
        if line.strip():
            own = body(line).rstrip()
            end = line[len(own) :]
            inside = own[:-1].rstrip()
            comma = b"" if inside.endswith(b"{") else b", "
            return blank + inside + comma + new[1:] + end
        blank += line
    return blank
