"""``neuralbayes label --model``: label a table with a saved model, in parts that several processes share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralbayes.cli.label_summary import Labeling, shortened
from neuralbayes.distributed.launch import Share

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from neuralbayes.data.tables import Table
    from neuralbayes.parts import Parts

PART_ROWS = 131_072
"""Rows of a part."""


@dataclass(frozen=True)
class ModelOrder:
    """What was asked for: a model, a table, the columns of it, and where the labels go."""

    model: Path
    file: Path
    columns: list[str] | None
    key: str | None
    out: Path

    @property
    def folder(self) -> Path:
        """Where the parts go."""
        from neuralbayes.parts import parts_folder

        return parts_folder(self.out)

    def to_dict(self) -> dict[str, Any]:
        """All that determines the labels, as JSON can hold it."""
        from neuralbayes.parts import contents, file_stamp

        return {
            "command": "label",
            "model": contents(self.model / "model.json"),  # which holds the digest of the weights
            "table": str(self.file.absolute()),
            "file": file_stamp(self.file),
            "columns": self.columns,
            "key": self.key,
        }


def label_with_model(order: ModelOrder, share: Share, *, force: bool) -> tuple[Labeling, Parts | None]:
    """Label a table, alone or as process 0 of several; the parts are to be removed when the labels are written."""
    import numpy as np

    from neuralbayes.parts import announced

    with announced(order.folder, share):
        estimator, table, X = _opened(order)
        parts = _begin(order, estimator, X, share, force=force)
    few = X[:1]
    proba_like = estimator.predict_proba(few)
    labels = np.empty(len(X), estimator.predict(few).dtype)
    proba = np.empty((len(X), proba_like.shape[1]), proba_like.dtype)
    if parts is not None:
        _fill(parts, estimator, X)
    for rows, array in [(slice(None), _result(estimator, X))] if parts is None else parts:
        labels[rows], proba[rows] = array[:, 0], array[:, 1:]
    return Labeling(estimator, table, labels, proba, trained=False), parts


def help_label(order: ModelOrder, share: Share) -> None:
    """Compute the share of another process than process 0."""
    from neuralbayes.parts import join

    parts = join(order.folder, order.to_dict(), order.out, share)
    if parts is not None:
        estimator, _, X = _opened(order)
        _fill(parts, estimator, X)


def with_names(table: Table, names: list[str]) -> Any:
    """The features as a DataFrame, by which an estimator learns and checks their names."""
    from neuralbayes.data.table_formats import import_pandas

    return import_pandas().DataFrame(table.X, columns=names, copy=False)


def _begin(order: ModelOrder, estimator: Any, X: Any, share: Share, *, force: bool) -> Parts | None:
    """Begin the parts, or go on with them; a single one by a single process needs no file."""
    from neuralbayes.parts import begin

    part_rows = PART_ROWS
    if share.world == 1 and len(X) <= part_rows:
        return None
    return begin(
        order.folder,
        order.to_dict(),
        n_rows=len(X),
        part_rows=part_rows,
        like=_result(estimator, X[:1]),
        share=share,
        force=force,
    )


def _fill(parts: Parts, estimator: Any, X: Any) -> None:
    for _ in parts.fill(lambda rows: _result(estimator, X[rows])):
        pass


def _result(estimator: Any, X: Any) -> NDArray[Any]:
    """Labels and probabilities beside each other in double, which holds either exactly: (n, 1 + n_states)."""
    import numpy as np
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # several may round otherwise, and the output is not to depend on their number
        return np.column_stack([estimator.predict(X), estimator.predict_proba(X)]).astype(np.float64, copy=False)


def _opened(order: ModelOrder) -> tuple[Any, Table, Any]:
    """The model, the table, and the columns of it that the model was trained on."""
    import neuralbayes
    from neuralbayes.data.table_formats import ARRAY_SUFFIXES
    from neuralbayes.data.tables import read_table

    model, names = order.model, order.columns
    estimator = neuralbayes.load(model)
    if not isinstance(estimator, neuralbayes.ManifoldLabeler | neuralbayes.InformationClusterer):
        raise ValueError(f"{model} must hold a clusterer, got {type(estimator).__name__}")
    trained_on = getattr(estimator, "feature_names_in_", None)
    expected = None if trained_on is None else [str(name) for name in trained_on]
    if expected is not None and order.file.suffix.lower() not in ARRAY_SUFFIXES:
        if names is not None and names != expected:
            raise ValueError(f"{model} was trained on the columns {shortened(expected)}; leave --columns out")
        names = expected
    try:
        table = read_table(order.file, columns=names, key=order.key)
    except ValueError as error:
        if expected is None:
            raise
        raise ValueError(f"{error} ({model} was trained on the columns {shortened(expected)})") from error
    if table.X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"{model} was trained on {estimator.n_features_in_} columns, but {order.file} gives {table.X.shape[1]}: "
            f"{shortened(table.feature_names)}; choose the right ones with --columns"
        )
    return estimator, table, table.X if expected is None else with_names(table, expected)
