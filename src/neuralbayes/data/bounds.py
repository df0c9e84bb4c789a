"""Bounds of memory for files of tables: a few kilobytes of a hostile or careless file can unpack to gigabytes.

There are four: the size of the file; the sizes that archives, Parquet footers and Arrow buffers declare; the bytes that
come out of a decompressor; and the cells of the record batches that were read. All count towards one `Budget`.
"""

from __future__ import annotations

import io
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from neuralbayes.system.limits import free_memory

SMALL, RATIO = 2**30, 100  # files may unpack to so many bytes, or times their size; meaningful tables compress less
MAX_COLUMNS = 100_000  # pandas takes seconds for so many, and a kilobyte for each
BLOCK_BYTES = 2**24  # read at a time
CELL_BYTES = 12  # memory of a cell of a text or JSON table beside its characters
COLUMN_BYTES = 12_000  # memory of a column of a text table beside its cells


class Budget:
    """The memory that the table of file `name`, of `size` bytes, may take.

    Half of the free memory, as data frames are copied, and at most the larger of `SMALL` and `RATIO` times the size.
    """

    def __init__(self, name: str, size: int) -> None:
        free, most = free_memory(), max(SMALL, RATIO * size)
        self.name, self.taken, self.limit = name, 0, most if free is None else min(most, free // 2)
        self.check(size)

    def check(self, n_bytes: int) -> None:
        """Raise a MemoryError if `n_bytes` more than so far were too many."""
        if self.taken + n_bytes > self.limit:
            raise MemoryError(
                f"{self.name} takes more than {self.limit / 2**30:.2g} GB of memory as a table. Use part of its rows, "
                "or leave out columns of long text; if you trust its source, pass it as a data frame of pandas"
            )

    def take(self, n_bytes: int) -> None:
        self.check(n_bytes)
        self.taken += n_bytes

    def check_names(self, names: Sequence[str]) -> None:
        """Raise a ValueError if there are too many columns, or two of one name."""
        if len(names) > MAX_COLUMNS:
            raise ValueError(f"{self.name} must have at most {MAX_COLUMNS} columns, got {len(names)}")
        repeated = next((name for name, count in Counter(names).items() if count > 1), None)
        if repeated is not None:
            raise ValueError(f"{self.name} has more than one column {repeated!r}; column names must differ, rename one")

    def check_schema(self, schema: Any) -> None:
        """Raise a ValueError if an Arrow schema has too many or nested columns, or two of one name."""
        from pyarrow import types

        self.check_names(schema.names)
        for field in schema:
            kind = getattr(field.type, "storage_type", field.type)
            if types.is_nested(kind.value_type if types.is_dictionary(kind) else kind):
                raise ValueError(
                    f"column {field.name!r} of {self.name} must hold single values, got {field.type}; leave it out, or "
                    "make a column of each of its parts"
                )


def read_within(stream: Any, budget: Budget) -> bytes:
    """All bytes of a stream, which may decompress while it is read."""
    content = io.BytesIO()
    while block := stream.read(BLOCK_BYTES):
        budget.take(len(block))
        content.write(block)
    return content.getvalue()


def declared_in_zip(path: Path) -> int:
    """Unpacked size of the members of an archive."""
    with zipfile.ZipFile(path) as archive:
        return sum(member.file_size for member in archive.infolist())


def declared_in_arrow(content: Any) -> int:
    """Unpacked size of the compressed buffers of an Arrow file: the eight bytes before each frame of zstd or LZ4."""
    words = np.frombuffer(content, "<u4", len(content) // 4)
    starts = 2 * np.flatnonzero(np.isin(words[2::2], [0xFD2FB528, 0x184D2204]))  # buffers are aligned to eight bytes
    lengths = words[starts].astype(np.int64) + (words[starts + 1].astype(np.int64) << 32)
    return int(lengths[(lengths >= 0) & (lengths < 2**48)].sum())  # others belong to data that look like a frame


def batches_within(batches: Iterable[Any], budget: Budget) -> Iterator[Any]:
    for batch in batches:
        budget.take(sum(map(unpacked_bytes, batch.columns)))
        yield batch


def unpacked_bytes(cells: Any) -> int:
    """Bytes of an Arrow array. Text that cells share, in a dictionary or in views, counts for each of them."""
    import pyarrow.compute as pc
    from pyarrow import types

    if types.is_dictionary(cells.type) and not types.is_primitive(cells.type.value_type):
        shared = pc.sum(pc.binary_length(cells.dictionary).take(cells.indices)).as_py()
        return int(shared or 0) + int(cells.indices.nbytes)
    if types.is_string_view(cells.type) or types.is_binary_view(cells.type):
        views = np.frombuffer(cells.buffers()[1] or b"", np.int32).reshape(-1, 4)  # that begin with a length
        return int(views[cells.offset : cells.offset + len(cells), 0].sum(dtype=np.int64)) + 16 * len(cells)
    return int(cells.nbytes)


def parquet_batches(path: Path, budget: Budget) -> tuple[Any, list[Any]]:
    """The schema and the record batches of a Parquet file."""
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        schema, metadata = file.schema_arrow, file.metadata
        budget.check_schema(schema)
        budget.check(sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups)))
        rows = min(max(1, BLOCK_BYTES // _longest_text(path, schema, metadata.num_row_groups)), 2**16)
        return schema, list(batches_within(file.iter_batches(rows), budget))


def _longest_text(path: Path, schema: Any, n_groups: int) -> int:
    """Length of the longest text that many rows of a Parquet file may share, at least 1."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow.parquet import ParquetFile

    kinds = (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view())
    texts = [field.name for field in schema if field.type in kinds]
    longest = max([field.type.byte_width for field in schema if pa.types.is_fixed_size_binary(field.type)], default=1)
    try:
        with ParquetFile(path, read_dictionary=texts) as file:
            for group, name in product(range(n_groups), texts):
                for batch in file.iter_batches(1024, [group], [name]):
                    words = getattr(batch.column(0), "dictionary", batch.column(0)).cast(pa.large_binary())
                    longest = max(longest, pc.max(pc.binary_length(words)).as_py() or 0)
                    if len(words):  # the dictionary of the group is complete
                        break
    except OSError as error:
        if "Not yet implemented" not in str(error):
            raise
        return max(longest, BLOCK_BYTES // 64)  # texts in an encoding in which they may share their beginnings
    return longest
