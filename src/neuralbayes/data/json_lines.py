"""Tables of JSON lines: an object in each line, its keys the columns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralbayes.data.packed import packing_writer
from neuralbayes.data.parquet import RefusedError, is_nested
from neuralbayes.data.records import body, lines
from neuralbayes.data.text_streams import open_text
from neuralbayes.system.bounds import MAX_COLUMNS

if TYPE_CHECKING:
    import pandas as pd

ROWS_AT_ONCE = 50_000
BLOCK_BYTES, MAX_BLOCK_BYTES = 2**20, 2**30
"""Of text that is parsed at once: a line must fit into it."""


@dataclass(frozen=True)
class JsonLines:
    """A file of JSON lines, and how to write its lines again as they stand there.

    Attributes
    ----------
    path : Path
    stamp : tuple of int
        Its size and time when it was read.
    """

    path: Path
    stamp: tuple[int, int]

    def changed(self) -> bool:
        """Whether the file is another one than was read."""
        return not self.path.is_file() or _stamp(self.path) != self.stamp

    def line_of(self, row: int) -> int:
        """The line of a row of data; rows are counted from 0 and lines from 1."""
        with closing(open_text(self.path)) as stream:
            there = (number for number, line in enumerate(lines(stream), 1) if line.strip())
            return next(number for i, number in enumerate(there) if i == row)

    def write_beside(self, path: Path, kind: str, new: pd.DataFrame) -> bool:
        """Write the file again with new keys at the end of each object; as :meth:`TextFile.write_beside` does."""
        with closing(open_text(self.path)) as stream, packing_writer(path, kind) as file:
            rows = lines(stream)
            for start in range(0, len(new), ROWS_AT_ONCE):
                for line in _objects(new.iloc[start : start + ROWS_AT_ONCE]):
                    file.write(_beside(rows, line))
            file.write(b"".join(rows))
        return True


def read_json_lines(path: Path) -> tuple[JsonLines, pd.DataFrame]:
    """The table of a file of JSON lines, packed or not, and the file.

    Raises
    ------
    ValueError
        A line is no object, or a column holds objects, arrays or different kinds of values.
    """
    file = JsonLines(path, _stamp(path))
    table = _read(path, {})
    import pyarrow

    # JSON has no dates: what looks like one stays text.
    dates = [field.name for field in table.schema if pyarrow.types.is_temporal(field.type)]
    if dates:
        table = _read(path, dict.fromkeys(dates, pyarrow.string())).select(table.column_names)
    if table.num_columns > MAX_COLUMNS:
        raise RefusedError(f"{path} must have at most {MAX_COLUMNS} columns, got {table.num_columns}")
    for field in table.schema:
        if is_nested(field.type):
            raise RefusedError(
                f"column {field.name!r} of {path} must hold single values, got {field.type}; leave it out, or make a "
                "column of each of its parts"
            )
    return file, table.to_pandas()


def write_json_lines(path: Path, kind: str, frame: pd.DataFrame) -> None:
    """Write a DataFrame as JSON lines; `kind` says how it is packed."""
    with packing_writer(path, kind) as file:
        for start in range(0, len(frame), ROWS_AT_ONCE):
            file.write(b"".join(line + b"\n" for line in _objects(frame.iloc[start : start + ROWS_AT_ONCE])))


def _objects(frame: pd.DataFrame) -> Iterator[bytes]:
    """The rows as JSON objects; missing cells are null, dates text."""
    names = [str(name) for name in frame]
    plain = frame.astype(object).where(frame.notna(), None)
    for row in plain.itertuples(index=False, name=None):
        yield json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, default=str).encode()


def _read(path: Path, types: dict[str, Any]) -> Any:
    import pyarrow
    from pyarrow.json import ParseOptions, ReadOptions, read_json

    block = BLOCK_BYTES
    while True:
        with closing(open_text(path)) as stream:
            try:
                return read_json(
                    pyarrow.PythonFile(stream, mode="r"),
                    ReadOptions(block_size=block),
                    ParseOptions(explicit_schema=pyarrow.schema(types.items()) if types else None),
                )
            except pyarrow.ArrowInvalid as error:
                if "straddling" in str(error) and block < MAX_BLOCK_BYTES:
                    block *= 8
                    continue
                _explain(path)
                raise ValueError(f"{path} cannot be read as JSON lines ({error})") from error


def _explain(path: Path) -> None:
    """Raise if a line holds no object, or values of another kind than the lines before it, and say where."""
    kinds: dict[str, type] = {}
    with closing(open_text(path)) as stream:
        for number, line in _numbered(lines(stream)):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                reason = getattr(error, "msg", error)
                raise ValueError(f"{path}: line {number} is not a JSON object ({reason})") from error
            if not isinstance(row, dict):
                raise ValueError(f"{path}: line {number} must hold a JSON object, got {type(row).__name__}")
            for name, value in row.items():
                kind = float if type(value) is int else type(value)
                if value is not None and kinds.setdefault(name, kind) is not kind:
                    raise ValueError(
                        f"{path}: column {name!r} holds {value!r} in line {number}, and another kind of value before; "
                        "write all of its values as text, or all as numbers"
                    )


def _numbered(found: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
    return ((number, line) for number, line in enumerate(found, 1) if line.strip())


def _beside(rows: Iterator[bytes], new: bytes) -> bytes:
    """The next object with those new keys in it, and the blank lines in front of it."""
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


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns
