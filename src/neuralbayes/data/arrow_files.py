"""Arrow files (.arrow, .feather). The unpacked size is checked before anything is unpacked.

A compressed buffer starts with its unpacked size, and the reader allocates that much. pyarrow does not expose the
buffers, so the necessary header fields are read here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralbayes.data.parquet import check_columns, check_size
from neuralbayes.data.written import with_attributes
from neuralbayes.system.bounds import MAX_PACKED_BYTES, MAX_PARQUET_RATIO

if TYPE_CHECKING:
    import pandas as pd

MAGIC = b"ARROW1"
DICTIONARY_BATCH, RECORD_BATCH = 2, 3
"""Types of messages with buffers."""

CELL_BYTES = 8
"""Minimum memory of a cell, even if the file has no bytes for it."""


def read_arrow(path: Path) -> pd.DataFrame:
    """The table of an Arrow file or stream. Errors of pyarrow are passed on.

    Raises
    ------
    RefusedError
        If a column is nested, or the table unpacks to more than the larger of `MAX_PACKED_BYTES` and
        `MAX_PARQUET_RATIO` times the size of the file.
    """
    import pyarrow
    from pyarrow import ipc

    limit = max(MAX_PACKED_BYTES, MAX_PARQUET_RATIO * path.stat().st_size)
    size = 0
    with pyarrow.memory_map(str(path)) as file:
        is_file = file.read(len(MAGIC)) == MAGIC
        file.seek(8 if is_file else 0)
        schema = None
        for message in _messages(file):
            if schema is None:
                schema = ipc.read_schema(message)
                check_columns(path, schema, len(schema))
                continue
            n_rows, n_bytes = _unpacked(message)
            size += max(n_bytes, n_rows * len(schema) * CELL_BYTES)
            check_size(path, size, limit)
        file.seek(0)
        with (ipc.open_file if is_file else ipc.open_stream)(file) as reader:
            table = reader.read_all()
        table.validate(full=True)
        frame: pd.DataFrame = _without_views(path, table, size, limit).to_pandas()
        return with_attributes(frame, table.schema.metadata)


def _messages(file: Any) -> Iterator[Any]:
    """The messages in file order, up to the end mark."""
    from pyarrow import ipc

    while True:
        try:
            message = ipc.read_message(file)
        except EOFError:
            return
        yield message


def _unpacked(message: Any) -> tuple[int, int]:
    """Number of rows of a batch, and the unpacked size of its buffers."""
    header = message.metadata.to_pybytes()
    root = _Flat(header, struct.unpack_from("<I", header)[0])
    kind = root.number(1, "B")
    if kind not in (DICTIONARY_BATCH, RECORD_BATCH):
        return 0, 0
    batch = root.table(2)
    if kind == DICTIONARY_BATCH:
        batch = batch.table(1)
    n_rows, n_bytes, body = batch.number(0, "q"), 0, message.body
    packed = batch.at(3) is not None
    for offset, length in batch.structs(2, "<qq"):
        if not 0 <= offset <= offset + length <= len(body):
            raise ValueError("a buffer is not within its message")
        unpacked = struct.unpack("<q", body.slice(offset, 8).to_pybytes())[0] if packed and length >= 8 else -1
        n_bytes += length if unpacked < 0 else unpacked  # -1 marks an uncompressed buffer
    return max(0, n_rows), n_bytes


class _Flat:
    """A table of a FlatBuffer: its fields by number.

    Parameters
    ----------
    data : bytes
    start : int
        Offset of the table.
    """

    def __init__(self, data: bytes, start: int) -> None:
        self._data, self._start = data, start
        self._fields = start - struct.unpack_from("<i", data, start)[0]
        if not 0 <= self._fields < len(data):
            raise ValueError("a header begins outside of its message")

    def at(self, field: int) -> int | None:
        """Offset of a field; None if it has its default."""
        length: int = struct.unpack_from("<H", self._data, self._fields)[0]
        if 4 + 2 * field >= length:
            return None
        offset: int = struct.unpack_from("<H", self._data, self._fields + 4 + 2 * field)[0]
        return self._start + offset if offset else None

    def number(self, field: int, kind: str) -> int:
        at = self.at(field)
        return 0 if at is None else int(struct.unpack_from(f"<{kind}", self._data, at)[0])

    def table(self, field: int) -> _Flat:
        at = self.at(field)
        if at is None:
            raise ValueError("a header lacks a part")
        return _Flat(self._data, at + struct.unpack_from("<I", self._data, at)[0])

    def structs(self, field: int, kind: str) -> Iterator[tuple[Any, ...]]:
        at = self.at(field)
        if at is None:
            return
        at += struct.unpack_from("<I", self._data, at)[0]
        (length,) = struct.unpack_from("<I", self._data, at)
        for i in range(length):
            yield struct.unpack_from(kind, self._data, at + 4 + i * struct.calcsize(kind))


def _without_views(path: Path, table: Any, size: int, limit: int) -> Any:
    """Give each cell of `table` its own text instead of shared text, within a limit."""
    import numpy as np
    import pyarrow
    from pyarrow import types

    for i, field in enumerate(table.schema):
        if not (types.is_string_view(field.type) or types.is_binary_view(field.type)):
            continue
        for chunk in table.column(i).chunks:
            views = np.frombuffer(chunk.buffers()[1] or b"", np.int32).reshape(-1, 4)  # check the length of text first
            size += int(views[chunk.offset : chunk.offset + len(chunk), 0].sum(dtype=np.int64))
            check_size(path, size, limit)
        kind = pyarrow.large_string() if types.is_string_view(field.type) else pyarrow.large_binary()
        table = table.set_column(i, field.with_type(kind), table.column(i).cast(kind))
    return table
