"""Parquet files or folders that need not fit into memory, read in blocks of row groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.parquet import parquet_files, read_groups
from neuralbayes.data.table_formats import arrow_errors
from neuralbayes.data.table_sources import TableSource
from neuralbayes.data.table_writing import free_names
from neuralbayes.data.tables import Table, chosen_columns, table_of_frame
from neuralbayes.data.written import parquet_metadata
from neuralbayes.system.files import atomic_write


@dataclass(frozen=True)
class Span:
    """Row groups of a file that are read together, starting at row `first_row`."""

    path: Path
    groups: range
    first_row: int
    n_rows: int


@dataclass(frozen=True)
class ParquetRows:
    """Rows in blocks of whole row groups of one file.

    Attributes
    ----------
    path : Path
        A file, or a folder of files with the same columns.
    columns : list of str
        Columns that are features.
    schema : pyarrow.Schema
    spans : list of Span
        The blocks, in order.
    """

    path: Path
    columns: list[str]
    schema: Any
    spans: list[Span]

    @classmethod
    def open(cls, path: Path, columns: Sequence[str], block_rows: int) -> ParquetRows:
        """Open by reading only the footers.

        Parameters
        ----------
        path : Path
        columns : sequence of str
        block_rows : int
            Row groups are joined up to this many rows; a larger group forms its own block.
        """
        from pyarrow.parquet import ParquetFile

        schema: Any = None
        spans: list[Span] = []
        for file in parquet_files(path):
            with arrow_errors(file), ParquetFile(file) as opened:
                metadata, own = opened.metadata, opened.schema_arrow
                sizes = [metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)]
            schema = own if schema is None else schema
            if not own.equals(schema):
                raise ValueError(f"{file} has other columns than the files before it, or in another order or type")
            first = 0
            for groups in _joined(sizes, block_rows):
                n_rows = sum(sizes[g] for g in groups)
                spans += [Span(file, groups, first, n_rows)] if n_rows else []
                first += n_rows
        if not spans:
            raise ValueError(f"{path} is empty: it has no rows")
        return cls(path, chosen_columns(path, schema.names, columns), schema, spans)

    @property
    def paths(self) -> list[Path]:
        """The files with rows."""
        return list(dict.fromkeys(span.path for span in self.spans))

    def table(self, block: int) -> Table:
        """The features of a block, checked like those of a table in memory."""
        return table_of_frame(self.source(block), self.columns)

    def source(self, block: int) -> TableSource:
        """The features of a block, unchecked."""
        span = self.spans[block]
        with arrow_errors(span.path):
            frame = read_groups(span.path, span.groups, self.columns).replace_schema_metadata(None).to_pandas()
        return TableSource(span.path, frame, first_row=span.first_row)

    def write_beside(self, out: Path, columns: Sequence[str], blocks: Iterable[dict[str, NDArray[Any]]]) -> list[str]:
        """Write all columns and the new ones after them as Parquet, one block at a time.

        Parameters
        ----------
        out : Path
        columns : sequence of str
            Names of the new columns. If a name is taken, all get the same number at the end.
        blocks : iterable of dict of str to ndarray
            The new columns of each block.

        Returns
        -------
        list of str
            Final names of the new columns.
        """
        from pyarrow.parquet import ParquetWriter

        names = free_names(self.schema.names, columns)
        metadata = parquet_metadata("label", names, self.schema.metadata)
        writer: Any = None
        with atomic_write(out) as temporary:
            try:
                for span, block in zip(self.spans, blocks, strict=True):
                    with arrow_errors(span.path):
                        table = read_groups(span.path, span.groups)
                    for name, column in zip(names, columns, strict=True):
                        table = table.append_column(name, [np.ascontiguousarray(block[column])])
                    table = table.replace_schema_metadata(metadata)
                    if writer is None:
                        writer = ParquetWriter(temporary, table.schema)
                    writer.write_table(table, row_group_size=len(table))
            finally:
                if writer is not None:
                    writer.close()
        return names


def _joined(sizes: Sequence[int], most: int) -> Iterator[range]:
    """Join neighbouring row groups up to a maximum number of rows.

    Examples
    --------
    >>> list(_joined([2, 2, 9, 1, 1, 1], 4))
    [range(0, 2), range(2, 3), range(3, 6)]
    """
    start, n_rows = 0, 0
    for g, size in enumerate(sizes):
        if n_rows + size > most and g > start:
            yield range(start, g)
            start, n_rows = g, 0
        n_rows += size
    yield range(start, len(sizes))
