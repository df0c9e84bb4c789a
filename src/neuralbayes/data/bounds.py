"""Bounds of memory for files of tables: a few kilobytes of a hostile or careless file can unpack to gigabytes.

There are four: the size of the file; the sizes that archives, Parquet footers and Arrow buffers declare; the bytes that
come out of a decompressor; and the cells of the record batches that were read. All count towards one `Budget`.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from neuralbayes.system.limits import free_memory

SMALL, RATIO = 2**30, 100
"""Files may unpack to `SMALL` bytes or to `RATIO` times their size. Meaningful tables compress less."""

MAX_COLUMNS = 100_000
"""Maximum number of columns. pandas takes seconds for so many, and a kilobyte for each."""

BLOCK_BYTES = 2**24

CELL_BYTES = 12
"""Memory of a cell of a text or JSON table beside its characters."""

FRAMES = (0xFD2FB528, 0x184D2204)
"""The first bytes of data compressed with zstd and LZ4."""


class Budget:
    """The memory that one table may take.

    Parameters
    ----------
    name : str
        The file, for messages.
    size : int
        Its size in bytes.
    limit : int, optional
        Most bytes; by default half of the free memory, as data frames are copied, and at most the larger of `SMALL` and
        `RATIO` times the size.
    """

    def __init__(self, name: str, size: int, limit: int | None = None) -> None:
        free = free_memory()
        most = max(SMALL, RATIO * size)
        self.name = name
        self.limit = limit if limit is not None else most if free is None else min(most, free // 2)
        self.taken = 0
        self.check(size)

    def check(self, n_bytes: int) -> None:
        """Raise a MemoryError if `n_bytes` more than so far were too many."""
        if self.taken + n_bytes > self.limit:
            raise MemoryError(
                f"{self.name} takes more than {self.limit / 2**30:.2g} GB of memory as a table. Use part of its rows, "
                "or leave out columns of long text; if you trust its source, read it with a larger `max_bytes`"
            )

    def take(self, n_bytes: int) -> None:
        """Count `n_bytes`; raises a MemoryError if that is too many."""
        self.check(n_bytes)
        self.taken += n_bytes

    def check_columns(self, n_columns: int) -> None:
        if n_columns > MAX_COLUMNS:
            raise ValueError(f"{self.name} must have at most {MAX_COLUMNS} columns, got {n_columns}")


def read_within(opened: AbstractContextManager[BinaryIO], budget: Budget) -> bytes:
    """All bytes of a stream, which may decompress while it is read."""
    content = io.BytesIO()
    with opened as stream:
        while block := stream.read(BLOCK_BYTES):
            budget.take(len(block))
            content.write(block)
    return content.getvalue()


def declared_in_zip(path: Path) -> int:
    """Unpacked size of the members of an archive."""
    with zipfile.ZipFile(path) as archive:
        return sum(member.file_size for member in archive.infolist())


def declared_in_arrow(content: Any) -> int:
    """Unpacked size of the compressed buffers of an Arrow file, each of which follows its unpacked length."""
    words = np.frombuffer(content, "<u4", len(content) // 4)
    starts = 2 * np.flatnonzero(np.isin(words[2::2], FRAMES))  # buffers are aligned to eight bytes
    lengths = words[starts].astype(np.int64) + (words[starts + 1].astype(np.int64) << 32)
    return int(lengths[(lengths >= 0) & (lengths < 2**48)].sum())  # others belong to words that look like a frame


def batches_within(batches: Iterable[Any], budget: Budget) -> Iterator[Any]:
    """The record batches, as long as their cells are within the budget."""
    for batch in batches:
        budget.take(sum(map(unpacked_bytes, batch.columns)))
        yield batch


def unpacked_bytes(cells: Any) -> int:
    """Bytes of an Arrow array. Text that cells share, in a dictionary or in views, counts for each of them."""
    import pyarrow.compute as pc
    from pyarrow import types

    if types.is_dictionary(cells.type) and not types.is_primitive(cells.type.value_type):
        return (pc.sum(pc.binary_length(cells.dictionary).take(cells.indices)).as_py() or 0) + cells.indices.nbytes
    if types.is_string_view(cells.type) or types.is_binary_view(cells.type):
        views = np.frombuffer(cells.buffers()[1] or b"", np.int32).reshape(-1, 4)  # that begin with a length
        return int(views[cells.offset : cells.offset + len(cells), 0].sum(dtype=np.int64)) + 16 * len(cells)
    return int(cells.nbytes)


def parquet_batches(path: Path, budget: Budget) -> tuple[Any, list[Any]]:
    """The schema and the record batches of a Parquet file."""
    import pyarrow.compute as pc
    from pyarrow import types
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        schema, groups = file.schema_arrow, range(file.metadata.num_row_groups)
        budget.check(sum(file.metadata.row_group(group).total_byte_size for group in groups))
    texts = [field.name for field in schema if types.is_string(field.type) or types.is_binary(field.type)]
    longest = 1
    with ParquetFile(path, read_dictionary=texts) as file:
        for group in groups if texts else ():  # the first row of a group comes with all words of its dictionary
            for cells in (
                next(file.iter_batches(1, [group], texts)).columns if file.metadata.row_group(group).num_rows else ()
            ):
                words = cells.dictionary if types.is_dictionary(cells.type) else cells
                longest = max(longest, pc.max(pc.binary_length(words)).as_py() or 0)
    with ParquetFile(path) as file:
        rows = min(max(1, BLOCK_BYTES // longest), 2**16)
        return schema, list(batches_within(file.iter_batches(rows), budget))
