"""Untrusted Parquet files. The unpacked size is checked before anything is unpacked.

A few kilobytes of Parquet can contain gigabytes: pages are compressed, and a long text in a dictionary can occur in
every row. The sizes in the footer may be wrong, while the decoder relies on the headers of the pages. So the latter are
added up; pyarrow does not expose them, so they are read here. Text that may be too long in all rows is first read as a
dictionary.
"""

from __future__ import annotations

import math
import mmap
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from neuralbayes.system.bounds import MAX_COLUMNS, MAX_PACKED_BYTES, MAX_PARQUET_RATIO

OBJECT_BYTES = 64
"""Overhead of a cell that pandas may convert to a Python object."""

BATCH_BYTES = 2**26
"""Text decoded at a time if it cannot be read as a dictionary."""

BYTE_ARRAY = 6  # physical type of values with variable length
DICTIONARY_PAGE = 2
VALUES = {0: (5, 1, 2), 3: (8, 1, 4)}
"""Fields of page headers, by page type: the data header, and in it the number of values and the encoding."""

DELTA_BYTE_ARRAY = 7
"""The encoding in which values share prefixes with the previous one."""
IN_DICTIONARY = (0, 2, 8)
"""The encodings that pyarrow can read as a dictionary."""


class RefusedError(ValueError):
    """Raised for an intact file that exceeds a limit."""


def is_parquet_folder(path: Path) -> bool:
    """Whether `path` is a folder with Parquet files."""
    return path.is_dir() and bool(parquet_files(path))


def parquet_files(path: Path) -> list[Path]:
    """The Parquet files at `path`, sorted by name; files that start with a dot or an underscore are ignored."""
    return sorted(file for file in path.glob("*.parquet") if file.name[0] not in "._") if path.is_dir() else [path]


def read_groups(path: Path, groups: Sequence[int] | None = None, columns: Sequence[str] | None = None) -> Any:
    """Read a Parquet file, or some row groups and columns, as a pyarrow Table. Errors of pyarrow are passed on.

    Raises
    ------
    RefusedError
        If a column is nested, or the data unpack to more than the larger of `MAX_PACKED_BYTES` and `MAX_PARQUET_RATIO`
        times its size in the file.
    """
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        metadata, schema = file.metadata, file.schema_arrow
        check_columns(path, schema, metadata.num_columns)
        names = schema.names if columns is None else [name for name in schema.names if name in set(columns)]
        chosen = list(range(metadata.num_row_groups)) if groups is None else list(groups)
        size = _unpacked(path, schema, chosen, names, whole=groups is None)
    texts = [name for name in names if _is_text(schema.field(name).type)] if size.in_dictionaries else None
    with ParquetFile(path, read_dictionary=texts, metadata=metadata) as file:
        most = size.n_bytes + sum(_most_text(file, size))
        if not size.in_dictionaries:
            table = _in_batches(path, file, size, chosen, names)
        elif most > size.limit:
            table = file.read_row_groups(chosen, names)
            parts = (part for column in table.columns for part in column.chunks)
            check_size(path, size.n_bytes + sum(map(_text_bytes, parts)), size.limit)
    if size.in_dictionaries and most <= size.limit:
        with ParquetFile(path, metadata=metadata) as file:  # several times as fast as with dictionaries
            table = file.read_row_groups(chosen, names)
    table.validate(full=True)  # otherwise invalid UTF-8 would be found only on access
    return _expanded(table, schema)


def _most_text(file: Any, size: _Size) -> Iterator[float]:
    """Upper bounds of the text in dictionary-encoded cells, from the longest entry."""
    import pyarrow.compute as pc

    for g, entries in size.dictionaries.items() if size.in_dictionaries else ():
        (batch,) = islice(file.iter_batches(1, row_groups=[g], columns=list(entries)), 1)  # with a complete dictionary
        for name, n_entries in entries.items():
            words = getattr(batch.column(name), "dictionary", ())
            longest = pc.max(pc.binary_length(words)).as_py() if len(words) == n_entries else math.inf
            yield size.rows[g] * (longest or 0)


def _in_batches(path: Path, file: Any, size: _Size, groups: list[int], names: list[str]) -> Any:
    """Read the table a few rows at a time, so that too much text is detected early."""
    from pyarrow import Table

    schema = file.schema_arrow.empty_table().select(names).schema
    batches = []
    for batch in file.iter_batches(max(1, BATCH_BYTES // max(1, size.longest_text)), groups, names):
        size.n_bytes += sum(map(_text_bytes, batch.columns))
        check_size(path, size.n_bytes, size.limit)
        batches.append(batch)
    return Table.from_batches(batches, schema)


def _expanded(table: Any, schema: Any) -> Any:
    """Convert columns of `table` that were read as dictionaries back to text."""
    import pyarrow

    for i, name in enumerate(table.column_names):
        field = schema.field(name)
        if _is_text(field.type):
            # 64-bit offsets: a column may contain more than 2 GB of text.
            kind = pyarrow.large_binary() if _is_binary(field.type) else pyarrow.large_string()
            table = table.set_column(i, field.with_type(kind), table.column(i).cast(kind))
    return table


def check_columns(path: Path, schema: Any, n_columns: int) -> None:
    """Raise unless a schema has unique names, not too many columns, and no nested columns."""
    repeated = [name for name, count in Counter(schema.names).items() if count > 1]
    if repeated:  # columns are selected by name
        raise RefusedError(f"{path} has more than one column {repeated[0]!r}; column names must differ")
    if n_columns > MAX_COLUMNS:
        raise RefusedError(f"{path} must have at most {MAX_COLUMNS} columns, got {n_columns}")
    for field in schema:
        if is_nested(field.type):
            raise RefusedError(
                f"column {field.name!r} of {path} must hold single values, got {field.type}; leave it out, or make a "
                "column of each of its parts"
            )


def is_nested(kind: Any) -> bool:
    """Whether cells of this Arrow type contain several values, or share one."""
    from pyarrow import BaseExtensionType, types

    if isinstance(kind, BaseExtensionType):
        return is_nested(kind.storage_type)
    return is_nested(kind.value_type) if types.is_dictionary(kind) else bool(types.is_nested(kind))


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or _is_binary(kind))


def _is_binary(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_binary(kind) or types.is_large_binary(kind))


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(
        types.is_integer(kind) or types.is_floating(kind) or types.is_timestamp(kind) or types.is_duration(kind)
    )


def check_size(path: Path, n_bytes: int, limit: int) -> None:
    """Raise if a file unpacks to more bytes than allowed."""
    if n_bytes > limit:
        raise RefusedError(
            f"{path} unpacks to {n_bytes} bytes or more, which must be at most {limit}; leave out long text, or write "
            "its numbers as .npy"
        )


def _text_bytes(array: Any) -> int:
    """Bytes of text in the cells of an array of text, or of a dictionary of text; 0 for others."""
    import pyarrow.compute as pc
    from pyarrow import types

    if types.is_dictionary(array.type):
        if not _is_text(array.type.value_type):
            return 0
        return pc.sum(pc.binary_length(array.dictionary).take(array.indices)).as_py() or 0
    return 0 if _is_number(array.type) else int(array.nbytes)


@dataclass
class _Size:
    """Unpacked sizes of the pages of a file.

    Attributes
    ----------
    limit : int
        Maximum total size.
    rows : list of int
        Rows of each row group.
    dictionaries : dict of int to dict of str to int
        Text columns with a dictionary and its number of entries, by row group.
    n_bytes : int
        Size of all cells; for text, the size in pages and dictionaries.
    longest_text : int
        Upper bound of the bytes of a text that can occur in many rows.
    in_dictionaries : bool
        Whether all text can be read as dictionaries.
    """

    limit: int
    rows: list[int]
    dictionaries: dict[int, dict[str, int]]
    n_bytes: int = 0
    longest_text: int = 0
    in_dictionaries: bool = True

    def add(self, data: mmap.mmap, g: int, chunk: dict[int, Any], n_rows: int, column: Any, length: int) -> None:
        """Add the pages of a column in one row group, without unpacking them.

        Parameters
        ----------
        data : mmap
            The file.
        g : int
            Index of the row group.
        chunk : dict
            The ColumnMetaData of the format, by field number.
        n_rows : int
        column : Field
            The Arrow field.
        length : int
            Size of a fixed-length value in bytes.
        """
        from pyarrow import types

        if not 0 <= chunk[5] == n_rows:
            raise ValueError(f"a column has {chunk[5]} values in {n_rows} rows")
        at, dictionary_at = chunk[9], chunk.get(11, 0)
        at = dictionary_at if 0 < dictionary_at < at else at
        end = at + chunk[7]
        kind = column.type
        is_text = _is_text(kind.value_type if types.is_dictionary(kind) else kind)
        n_bytes, n_values, repeats, in_dictionary = 0, 0, False, is_text
        while 0 <= at < end and n_values < n_rows:
            header = _Thrift(data, at)
            page = header.struct()
            type_, unpacked, packed, values, encoding = page[1], page[2], page[3], 0, 0
            if type_ in VALUES:
                there, *numbers = VALUES[type_]
                values, encoding = (page[there][number] for number in numbers)
            if not all(0 <= number < 2**31 for number in (unpacked, packed, values)):
                raise ValueError(f"a page has {values} values and {packed} bytes, which unpack to {unpacked}")
            if type_ == DICTIONARY_PAGE and is_text:
                self.dictionaries.setdefault(g, {})[column.name] = page[7][1]
            repeats |= type_ == DICTIONARY_PAGE or encoding == DELTA_BYTE_ARRAY
            in_dictionary &= encoding in IN_DICTIONARY
            n_bytes += unpacked
            n_values += values
            at = header.at + packed
        self.n_bytes += max(n_bytes, n_rows * max(8 if _is_number(kind) else OBJECT_BYTES, length))
        if chunk[1] == BYTE_ARRAY:
            self.in_dictionaries &= in_dictionary
            self.longest_text = max(self.longest_text, n_bytes if repeats else 0)


_footers: dict[tuple[int, ...], dict[int, Any]] = {}
"""The cached footer of the last file: a footer with many row groups takes long to parse."""


def _footer(data: mmap.mmap, status: os.stat_result) -> dict[int, Any]:
    file = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    if file not in _footers:
        _footers.clear()
        start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        _footers[file] = _Thrift(data, start).struct()
    return _footers[file]


def _unpacked(path: Path, schema: Any, groups: list[int], names: list[str], *, whole: bool) -> _Size:
    """Unpacked size of row groups, from the headers; raises as soon as it is too large."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        footer = _footer(data, os.fstat(file.fileno()))
        lengths = [
            element.get(2, 0) for element in footer[2] if 1 in element
        ]  # from the schema; row groups have no type
        packed = len(data) if whole else sum(chunk[3][7] for g in groups for chunk in footer[4][g][1])
        limit = max(MAX_PACKED_BYTES, MAX_PARQUET_RATIO * min(packed, len(data)))
        size = _Size(limit, [group[3] for group in footer[4]], {})
        wanted = set(names)
        for g in groups:
            group = footer[4][g]
            for chunk, column, length in zip(group[1], schema, lengths, strict=True):
                if column.name in wanted:
                    size.add(data, g, chunk[3], group[3], column, length)
                    check_size(path, size.n_bytes, limit)
    return size


class _Thrift:
    """Reads a struct of Thrift's compact protocol: fields by number, without text.

    Parameters
    ----------
    data : mmap
    at : int
        Offset of the struct; after reading, the offset of its end.
    """

    def __init__(self, data: mmap.mmap, at: int) -> None:
        self._data = data
        self.at = at

    def struct(self) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while kind := self._byte():
            number = number + (kind >> 4) if kind >> 4 else self._integer()
            fields[number] = self._value(kind & 15)
        return fields

    def _value(self, kind: int) -> Any:
        match kind:
            case 1 | 2:  # true, false
                return kind == 1
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._integer()
            case 7 | 8:  # a double, text
                length = 8 if kind == 7 else self._varint()
                self.at += length
                return None
            case 9:
                size = self._byte()
                kind, length = size & 15, size >> 4 if size >> 4 < 15 else self._varint()
                # In a list, booleans are bytes, so each item takes at least one.
                return [self._value(3 if kind in (1, 2) else kind) for _ in range(length)]
            case 12:
                return self.struct()
        raise ValueError(f"a header has a field of kind {kind}")

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)  # zigzag: 0, -1, 1, -2, ...

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a header has an integer of more than 64 bits")

    def _byte(self) -> int:
        if self.at < 0:
            raise ValueError("a header begins before the file")
        byte = self._data[self.at]
        self.at += 1
        return byte
