"""``neuralbayes label --model``: label a table with a saved model, in blocks that workers share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralbayes.cli.label_summary import Labeling, shortened

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from neuralbayes.data.parquet_rows import ParquetRows
    from neuralbayes.data.tables import Table
    from neuralbayes.distributed.blocks import Blocks
    from neuralbayes.distributed.workers import Workers

BLOCK_ROWS = 131_072
"""Rows of a block."""

DRAWN, DRAWN_BLOCKS = 20_000, 20
"""Of rows that are not in memory: how many are drawn, and from how many blocks."""


@dataclass(frozen=True)
class ModelOrder:
    """What was asked for: a model, a table, the columns of it, and where the labels go."""

    model: Path
    file: Path
    columns: list[str] | None
    reading: dict[str, Any]  # how the file is to be read, arguments of read_table
    out: Path

    def begin(self, files: list[Path], sizes: list[int], *, force: bool) -> Blocks:
        """Begin the blocks of the labels, or go on with them."""
        from neuralbayes.distributed.blocks import Blocks, digest, stamps

        job = {
            "command": "label",
            "model": digest([(self.model / "model.json").read_bytes()]),  # which holds the digest of the weights
            "table": str(self.file.absolute()),
            "file": stamps(files),
            "columns": self.columns,
            "reading": self.reading,
        }
        return Blocks.begin(self.out, job, sizes, force=force)


def label_with_model(order: ModelOrder, workers: Workers, *, force: bool) -> Labeling:
    """Label a table; the blocks of the result are to be removed when it is written."""
    import numpy as np

    from neuralbayes.distributed.blocks import cut

    estimator, names = _model(order)
    rows, table = _opened(order, estimator, names)
    X = _named(table, names)  # of rows that are not in memory, those of the first block
    if rows is None:
        parts = cut(len(X), BLOCK_ROWS)
        blocks = order.begin([order.file], [part.stop - part.start for part in parts], force=force)
        filling = blocks.fill(workers, label_block, estimator, lambda i: X[parts[i]])
    else:
        blocks = order.begin(rows.paths, [span.n_rows for span in rows.spans], force=force)
        filling = blocks.fill(workers, label_block, estimator, lambda i: _named(rows.table(i), names))
    for _ in filling:
        pass
    few = estimator.predict_proba(X[:1])
    if rows is not None:
        return _sampled(estimator, rows, blocks, few)
    labels, proba = np.empty(len(X), np.int64), np.empty((len(X), few.shape[1]), few.dtype)
    for part, array in zip(parts, blocks, strict=True):
        labels[part], proba[part] = array[:, 0], array[:, 1:]
    return Labeling(estimator, table, labels, proba, trained=False, blocks=blocks)


def label_block(estimator: Any, X: Any) -> NDArray[Any]:
    """Labels and probabilities beside each other in double, which holds either exactly: (n, 1 + n_states)."""
    import numpy as np
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # several may round otherwise, and the output is not to depend on their number
        return np.column_stack([estimator.predict(X), estimator.predict_proba(X)]).astype(np.float64, copy=False)


def write_rows(path: Path, labeling: Labeling, rows: ParquetRows, blocks: Blocks) -> list[str]:
    """Write rows that are not in memory with their labels, block by block; gives the names of the new columns."""
    import numpy as np

    p = [f"p_{k}" for k in range(labeling.proba.shape[1])]
    new = (
        {
            "label": array[:, 0].astype(np.int64),
            **dict(zip(p, array[:, 1:].T.astype(labeling.proba.dtype), strict=True)),
        }
        for array in blocks
    )
    return rows.write_beside(path, ["label", *p], new)


def with_names(X: NDArray[Any], names: list[str]) -> Any:
    """The features as a DataFrame, by which an estimator learns and checks their names."""
    from neuralbayes.data.table_formats import import_pandas

    return import_pandas().DataFrame(X, columns=names, copy=False)


def _named(table: Table, names: list[str] | None) -> Any:
    return table.X if names is None else with_names(table.X, names)


def _model(order: ModelOrder) -> tuple[Any, list[str] | None]:
    """The model, and the names of the columns that it was trained on, where it knows them."""
    import neuralbayes

    estimator = neuralbayes.load(order.model)
    if not isinstance(estimator, neuralbayes.ManifoldLabeler | neuralbayes.InformationClusterer):
        raise ValueError(f"{order.model} must hold a clusterer, got {type(estimator).__name__}")
    names = getattr(estimator, "feature_names_in_", None)
    return estimator, None if names is None else [str(name) for name in names]


def _opened(order: ModelOrder, estimator: Any, trained_on: list[str] | None) -> tuple[ParquetRows | None, Table]:
    """What the model was trained on: of all rows, or Parquet rows to be read later and the first block of them."""
    from neuralbayes.data.parquet_rows import ParquetRows
    from neuralbayes.data.table_formats import ARRAY_SUFFIXES
    from neuralbayes.data.tables import read_table

    names, rows = order.columns, None
    if trained_on is not None and order.file.suffix.lower() not in ARRAY_SUFFIXES:
        if names is not None and names != trained_on:
            raise ValueError(f"{order.model} was trained on the columns {shortened(trained_on)}; leave --columns out")
        names = trained_on
    if order.file.is_dir() and (names is None or order.out.suffix.lower() != ".parquet"):
        what = "--columns, for the model knows no names" if names is None else "an --out that ends in .parquet"
        raise ValueError(f"{order.file} is a folder of Parquet files, which needs {what}")
    try:
        if names is not None and order.out.suffix.lower() == ".parquet" and _is_parquet(order.file):
            rows = ParquetRows.open(order.file, names, BLOCK_ROWS)
            table = rows.table(0)
        else:
            table = read_table(order.file, columns=names, **order.reading)
    except ValueError as error:
        if trained_on is None:
            raise
        raise ValueError(f"{error} ({order.model} was trained on the columns {shortened(trained_on)})") from error
    if table.X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"{order.model} was trained on {estimator.n_features_in_} columns, but {order.file} gives "
            f"{table.X.shape[1]}: {shortened(table.feature_names)}; choose the right ones with --columns"
        )
    return rows, table


def _is_parquet(file: Path) -> bool:
    return file.is_dir() or (file.suffix.lower() == ".parquet" and file.is_file() and file.stat().st_size > 0)


def _sampled(estimator: Any, rows: ParquetRows, blocks: Blocks, like: NDArray[Any]) -> Labeling:
    """Count the labels of rows that are not in memory, and take some of them for the picture."""
    import numpy as np

    from neuralbayes.data.table_sources import TableSource
    from neuralbayes.data.tables import Table

    n_blocks = len(blocks.sizes)
    chosen = set(np.linspace(0, n_blocks - 1, min(n_blocks, DRAWN_BLOCKS)).astype(int))
    counts = np.zeros(like.shape[1], np.int64)
    X, found = [], []
    for i, array in enumerate(blocks):
        counts += np.bincount(array[:, 0].astype(np.int64), minlength=len(counts))
        if i in chosen:
            picked = np.unique(np.linspace(0, len(array) - 1, DRAWN // len(chosen)).astype(int))
            X.append(rows.table(i).X[picked])
            found.append(array[picked])
    labels, proba = np.split(np.concatenate(found), [1], axis=1)
    ignored = {name: "not chosen" for name in rows.schema.names if name not in set(rows.columns)}
    sample = with_names(np.concatenate(X), rows.columns)
    table = Table(TableSource(rows.path, sample), np.concatenate(X), rows.columns, ignored)
    return Labeling(
        estimator, table, labels[:, 0].astype(np.int64), proba.astype(like.dtype), False, counts, blocks, rows
    )
