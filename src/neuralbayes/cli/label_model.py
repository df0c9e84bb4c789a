"""``neuralbayes label --model``: label a table with a saved model."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralbayes.cli.label_outliers import check_typical, labels_and_typicality
from neuralbayes.cli.label_summary import Labeling, shortened

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from neuralbayes.data.column_kinds import Column
    from neuralbayes.data.parquet_rows import ParquetRows
    from neuralbayes.data.table_sources import TableSource
    from neuralbayes.data.tables import Table

BLOCK_ROWS = 131_072
"""Rows per block."""

DRAWN, DRAWN_BLOCKS = 20_000, 20
"""Number of rows and blocks sampled from data that are not in memory."""


@dataclass(frozen=True)
class ModelOrder:
    """The request: a model, a table, its columns, the output, and the level of ``--reject``."""

    model: Path
    file: Path
    columns: list[str] | None
    reading: dict[str, Any]  # arguments of read_table
    out: Path
    reject: float | None = None


def label_with_model(order: ModelOrder) -> Labeling:
    """Label a table. Of Parquet rows, only one block is in memory at a time."""
    import numpy as np

    opened = _opened(order)
    check_typical(opened.estimator, order.reject)
    estimator, rows, X = opened.estimator, opened.rows, opened.taken(opened.table)
    starts = range(0, len(X) if rows is None else len(rows.spans), BLOCK_ROWS if rows is None else 1)
    blocks = []
    for i in starts:
        some = X[i : i + BLOCK_ROWS] if rows is None else opened.block(rows, i)
        blocks.append(label_block(estimator, opened.noted(some), order.reject))
    for words in opened.vectorizer.complaints(opened.odd) if opened.vectorizer is not None else ():
        warnings.warn(words, stacklevel=2)
    few = estimator.predict_proba(X[:1])
    if rows is not None:
        return _sampled(opened, rows, blocks, few)
    labels, proba, typicality = np.split(np.concatenate(blocks), [1, 1 + few.shape[1]], axis=1)
    table, scaled = opened.drawn(opened.table)
    return Labeling(
        estimator,
        table,
        labels[:, 0].astype(np.int64),
        proba.astype(few.dtype),
        trained=False,
        columns=opened.columns(opened.table.source.frame.columns.tolist()),
        scaled=scaled,
        typicality=typicality[:, 0] if typicality.size else None,
    )


def label_block(estimator: Any, X: Any, reject: float | None = None) -> NDArray[Any]:
    """Labels, probabilities and, to reject outliers, the typicality, side by side: (n, 1 + n_states) or one more.

    float64 represents all of them exactly.
    """
    import numpy as np

    # Unexpected cells are counted where the blocks are read.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        proba = estimator.predict_proba(X)
        labels, typicality = labels_and_typicality(estimator, X, proba.argmax(axis=1), reject)
        return np.column_stack([labels, proba, *([] if typicality is None else [typicality])])


def write_rows(path: Path, labeling: Labeling, rows: ParquetRows, blocks: list[NDArray[Any]]) -> list[str]:
    """Write rows that are not in memory with their labels, in blocks; returns the names of the new columns."""
    import numpy as np

    from neuralbayes.data.written import TYPICALITY

    n = labeling.proba.shape[1]
    p = [f"p_{k}" for k in range(n)]
    typical = [] if labeling.typicality is None else [TYPICALITY]
    new = (
        {
            "label": array[:, 0].astype(np.int64),
            **dict(zip(p, array[:, 1 : 1 + n].T.astype(labeling.proba.dtype), strict=True)),
            **dict(zip(typical, array[:, 1 + n :].T, strict=True)),
        }
        for array in blocks
    )
    return rows.write_beside(path, ["label", *p, *typical], new)


def with_names(X: NDArray[Any], names: list[str]) -> Any:
    """The features as a DataFrame, so that an estimator checks their names."""
    from neuralbayes.data.table_formats import import_pandas

    return import_pandas().DataFrame(X, columns=names, copy=False)


@dataclass
class Opened:
    """A model and the table to label.

    Attributes
    ----------
    estimator : estimator
    names : list of str or None
        The training columns, if known.
    rows : ParquetRows or None
        Rows that are not in memory.
    table : Table
        All rows, or the first block of rows that are not in memory; unconverted if the model has a vectorizer.
    odd : dict
        Cells that differ from those in training, in the blocks read so far.
    """

    estimator: Any
    names: list[str] | None
    rows: ParquetRows | None
    table: Any
    odd: dict[str, tuple[int, str]] = field(default_factory=dict)

    @property
    def vectorizer(self) -> Any:
        """The vectorizer; None if the model expects numbers."""
        return getattr(self.estimator, "vectorizer_", None)

    def block(self, rows: ParquetRows, i: int) -> Any:
        """The rows of a block as input of the model."""
        return rows.source(i).frame if self.vectorizer is not None else self.taken(rows.table(i))

    def noted(self, X: Any) -> Any:
        """Count the unexpected cells of `X`, and return it."""
        if self.vectorizer is not None:
            from neuralbayes.data.vectorizer import joined

            self.odd = joined(self.odd, self.vectorizer.odd_cells(X))
        return X

    def drawn(self, table: Table) -> tuple[Table, bool]:
        """The table for the picture, and whether to scale its columns."""
        if self.vectorizer is None:
            from neuralbayes.plot.plane import standardizes

            return table, standardizes(self.estimator)
        from neuralbayes.cli.label_rows import drawn_table

        return drawn_table(table.source, self.vectorizer)

    def columns(self, every: list[str]) -> list[Column]:
        """The columns of the file; those of the model are used."""
        from neuralbayes.data.column_kinds import Column

        used = set(self.table.feature_names if self.names is None else self.names)
        kinds = {} if self.vectorizer is None else {column.name: column for column in self.vectorizer.columns_}
        other = "not a column of the model" if self.names is not None else "not chosen"
        return [
            kinds.get(name, Column(name, "number", "as in training"))
            if name in used
            else Column(name, "ignored", kinds[name].reason if name in kinds else other)
            for name in every
        ]

    def taken(self, table: Table) -> Any:
        """The rows of a table as input of the model."""
        if self.vectorizer is not None:
            return table.source.frame[self.names]
        return table.X if self.names is None else with_names(table.X, self.names)


def _opened(order: ModelOrder) -> Opened:
    """The model and all rows of the table, or Parquet rows to read later and their first block."""
    import neuralbayes
    from neuralbayes.data.parquet_rows import ParquetRows
    from neuralbayes.data.table_formats import ARRAY_SUFFIXES
    from neuralbayes.data.table_sources import read_source
    from neuralbayes.data.tables import chosen_columns, read_table

    estimator = neuralbayes.load(order.model)
    if not isinstance(estimator, neuralbayes.ManifoldLabeler | neuralbayes.InformationClusterer):
        raise ValueError(f"{order.model} must hold a clusterer, got {type(estimator).__name__}")
    vectorizer = getattr(estimator, "vectorizer_", None)
    trained_on = getattr(estimator, "feature_names_in_", None) if vectorizer is None else list(vectorizer.encoders_)
    trained_on = None if trained_on is None else [str(name) for name in trained_on]
    names, rows = order.columns, None
    if trained_on is not None and (vectorizer is not None or order.file.suffix.lower() not in ARRAY_SUFFIXES):
        if names is not None and names != trained_on:
            raise ValueError(f"{order.model} was trained on the columns {shortened(trained_on)}; leave --columns out")
        names = trained_on
    if order.file.is_dir() and (names is None or order.out.suffix.lower() != ".parquet"):
        what = "--columns, because the model has no column names" if names is None else "an --out that ends in .parquet"
        raise ValueError(f"{order.file} is a folder of Parquet files, which needs {what}")
    try:
        if names and order.out.suffix.lower() == ".parquet" and _is_parquet(order.file):
            rows = ParquetRows.open(order.file, names, BLOCK_ROWS)
            table = rows.table(0) if vectorizer is None else unread_table(rows.source(0), names)
        elif vectorizer is not None:
            source = read_source(order.file, **order.reading)
            if not source.named and names and source.data.shape[1] == len(names):
                source = replace(source, data=source.frame.set_axis(names, axis=1))
            elif not source.named:
                raise ValueError(
                    f"{order.file} has {source.data.shape[1]} columns without names, not {len(names or [])}"
                )
            if names:
                chosen_columns(order.file, source.frame.columns.tolist(), names)
            table = unread_table(source, names or [])
        else:
            table = read_table(order.file, columns=names, **order.reading)
    except ValueError as error:
        if trained_on is None:
            raise
        hint = "; add missing columns, if necessary with empty cells" if "has no column" in str(error) else ""
        raise ValueError(f"{error} ({order.model} was trained on the columns {shortened(trained_on)}{hint})") from error
    if vectorizer is None and table.X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"{order.model} was trained on {estimator.n_features_in_} columns, but {order.file} gives "
            f"{table.X.shape[1]}: {shortened(table.feature_names)}; choose the right ones with --columns"
        )
    return Opened(estimator, trained_on, rows, table)


def unread_table(source: TableSource, names: list[str]) -> Table:
    """A table whose columns are not yet converted to numbers."""
    import numpy as np

    from neuralbayes.data.tables import Table

    return Table(source, np.zeros((0, 0)), names, {})


def _is_parquet(file: Path) -> bool:
    return file.is_dir() or (file.suffix.lower() == ".parquet" and file.is_file() and file.stat().st_size > 0)


def _sampled(opened: Opened, rows: ParquetRows, blocks: list[NDArray[Any]], like: NDArray[Any]) -> Labeling:
    """Count the labels of rows that are not in memory, and sample some rows for the picture."""
    import numpy as np

    from neuralbayes.data.table_formats import import_pandas
    from neuralbayes.data.table_sources import TableSource

    n_blocks = len(blocks)
    chosen = set(np.linspace(0, n_blocks - 1, min(n_blocks, DRAWN_BLOCKS)).astype(int))
    n = like.shape[1]
    counts = np.zeros(1 + n, np.int64)
    X, found = [], []
    for i, array in enumerate(blocks):
        counts += np.bincount(array[:, 0].astype(np.int64) + 1, minlength=len(counts))
        if i in chosen:
            picked = np.unique(np.linspace(0, len(array) - 1, DRAWN // len(chosen)).astype(int))
            X.append(rows.source(i).frame.iloc[picked])
            found.append(array[picked])
    labels, proba, typicality = np.split(np.concatenate(found), [1, 1 + n], axis=1)
    frame = import_pandas().concat(X, ignore_index=True)
    source = TableSource(rows.path, frame)
    unread = unread_table(source, rows.columns)
    table, scaled = opened.drawn(
        unread if opened.vectorizer is not None else replace(unread, X=frame.to_numpy(np.float64))
    )
    return Labeling(
        opened.estimator,
        table,
        labels[:, 0].astype(np.int64),
        proba.astype(like.dtype),
        trained=False,
        counts=counts,
        blocks=blocks,
        rows=rows,
        columns=opened.columns(list(rows.schema.names)),
        scaled=scaled,
        typicality=typicality[:, 0] if typicality.size else None,
    )
