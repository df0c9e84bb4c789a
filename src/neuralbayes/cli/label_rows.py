"""``neuralbayes label``: cluster the rows of a table with a suitable method."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from neuralbayes.cli.label_columns import chosen_kinds
from neuralbayes.cli.label_outliers import labels_and_typicality
from neuralbayes.cli.label_summary import Labeling

if TYPE_CHECKING:
    import pandas as pd

    from neuralbayes.data.column_kinds import Column
    from neuralbayes.data.table_sources import TableSource
    from neuralbayes.data.tables import Table

Method = Literal["auto", "manifolds", "information"]
Missing = Literal["impute", "mask", "drop"]

WHOLE_SHARE = 0.5
"""Minimum fraction of rows without missing numbers for searching manifolds."""

FEW_ROWS = 20
"""Minimum number of rows for a certificate."""


@dataclass(frozen=True)
class Training:
    """Options for clustering rows.

    Attributes
    ----------
    method : str
    settings : dict
        Parameters of both clusterers.
    kinds : dict of str to str
        Kinds of columns, by name.
    missing : {"impute", "mask", "drop"}
        "drop" fits only rows without missing cells.
    standardize : bool or None
        None means automatic: features of `neuralbayes embed` already share a unit.
    reject : float or None
        Rows with at most this typicality get the label -1.
    """

    method: Method
    settings: dict[str, Any]
    kinds: dict[str, str]
    missing: Missing | None = None
    standardize: bool | None = None
    reject: float | None = None


@dataclass(frozen=True)
class OpenedRows:
    """A table and the options for clustering it; `columns` are shown before the work."""

    source: TableSource
    columns: list[Column]
    training: Training
    table: Any = None  # the numbers of an array without column names

    @property
    def n_rows(self) -> int:
        """Number of rows of the table."""
        return len(self.source.data)

    def train(self) -> Labeling:
        """Cluster the rows."""
        if self.table is None:
            return train_on_frame(self.source, self.columns, self.training)
        return replace(train_on_array(self.table, self.training), columns=self.columns)


def opened_rows(file: Path, reading: dict[str, Any], names: list[str] | None, training: Training) -> OpenedRows:
    """Read a table and recognise its columns.

    Parameters
    ----------
    file : Path
    reading : dict
        Arguments of `read_source`.
    names : list of str or None
        The selected columns.
    training : Training
    """
    from neuralbayes.data.column_kinds import Column, recognize
    from neuralbayes.data.table_sources import read_source
    from neuralbayes.data.tables import chosen_columns, table_of_array

    source = read_source(file, **reading)
    if not source.named:
        if not (training.kinds or training.missing) and all_finite(source.data):
            table = table_of_array(source, names)
            columns = [Column(name, "number", "a column of an array") for name in table.feature_names]
            columns += [Column(name, "ignored", reason) for name, reason in table.ignored.items()]
            return OpenedRows(source, columns, training, table)
        source = replace(source, data=source.frame)
    if names is not None:
        chosen_columns(source.path, source.frame.columns.tolist(), names)
    training = replace(training, kinds=chosen_kinds(source.frame, names, training.kinds))
    return OpenedRows(source, recognize(source.frame, training.kinds), training)


def all_finite(array: Any) -> bool:
    """Whether an array has no NaN and no infinity. Arrays without numbers are reported elsewhere."""
    import numpy as np

    return array.dtype.kind != "f" or bool(np.isfinite(array.sum(dtype=np.float64)))


def train_on_array(table: Any, training: Training) -> Labeling:
    """Certify manifolds in rows of numbers, or cluster the rows."""
    import neuralbayes
    from neuralbayes.plot.plane import standardizes

    X = table.X
    estimator: Any = None
    if training.method != "information":
        labeler = neuralbayes.ManifoldLabeler(standardize=bool(training.standardize), **training.settings)
        estimator = _fitted_if_certified(labeler, X, must=training.method == "manifolds")
    if estimator is None:
        estimator = neuralbayes.InformationClusterer(**training.settings).fit(X)
    scaled = standardizes(estimator)
    labels, typicality = labels_and_typicality(estimator, X, estimator.labels_, training.reject)
    return Labeling(
        estimator, table, labels, estimator.predict_proba(X), trained=True, scaled=scaled, typicality=typicality
    )


def train_on_frame(source: TableSource, columns: list[Column], training: Training) -> Labeling:
    """Certify manifolds in the numbers of a table, or cluster its rows by all columns."""
    import neuralbayes
    from neuralbayes.data.written import feature_columns

    frame = source.frame
    used = [column.name for column in columns if column.used]
    standardize = training.standardize
    if standardize is None:
        standardize = not (used and feature_columns(frame) >= set(used))
    estimator: Any = None
    if not used:
        if training.settings["n_clusters"] != "auto" or training.reject is not None:
            raise ValueError(
                f"all rows of {source.path} are equal in the columns that can be used, so they are one cluster without "
                "outliers; --as COLUMN=KIND uses a column that was left out"
            )
        vectorizer = neuralbayes.TableVectorizer(kinds=training.kinds)
        estimator = neuralbayes.ManifoldLabeler(1, vectorizer=vectorizer).fit(frame)
    elif training.method != "information":
        estimator = _certified(frame, columns, training, standardize)
    if estimator is None:
        vectorizer = neuralbayes.TableVectorizer(
            kinds=training.kinds, missing="mask" if training.missing == "mask" else "impute", standardize=standardize
        )
        rows = frame
        if training.missing == "drop":
            rows = frame[frame[used].notna().all(axis=1)]
            _check_rows(len(rows), len(frame), source)
        estimator = neuralbayes.InformationClusterer(vectorizer=vectorizer, **training.settings)
        estimator.fit(rows)
    proba = estimator.predict_proba(frame)
    table, scaled = drawn_table(source, estimator.vectorizer_)
    labels, typicality = labels_and_typicality(estimator, frame, proba.argmax(axis=1), training.reject)
    return Labeling(
        estimator, table, labels, proba, trained=True, columns=columns, scaled=scaled, typicality=typicality
    )


def drawn_table(source: TableSource, vectorizer: Any) -> tuple[Table, bool]:
    """The rows for a picture, and whether to scale them.

    Plain numbers are not changed, so that the picture shows their units.
    """
    from neuralbayes.data.column_cells import as_numbers
    from neuralbayes.data.tables import Table

    ignored = {column.name: column.reason for column in vectorizer.columns_ if not column.used}
    names = [column.name for column in vectorizer.columns_ if column.used]
    frame = source.frame
    if names and all(encoder.kind == "number" for encoder in vectorizer.encoders_.values()):
        import numpy as np

        X = np.column_stack([as_numbers(frame[name])[0] for name in names])
        if np.isfinite(X).all():
            return Table(source, X, names, ignored), bool(vectorizer.standardize)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # already reported by the prediction
        X = vectorizer.transform(frame)
    return Table(source, X, [str(name) for name in vectorizer.get_feature_names_out()], ignored), False


def _certified(frame: pd.DataFrame, columns: list[Column], training: Training, standardize: bool) -> Any:
    """A labeler whose manifolds are all certified; None if there is none and another method may be used."""
    import neuralbayes

    must = training.method == "manifolds"
    numbers = [column.name for column in columns if column.kind == "number" and _is_continuous(frame[column.name])]
    if must and not numbers:
        raise ValueError(
            "--method manifolds needs a column of numbers in which rows can have gaps; --method information takes any"
        )
    whole = frame[frame[numbers].notna().all(axis=1)] if numbers else frame.head(0)
    if not must and (len(whole) < FEW_ROWS or len(whole) < WHOLE_SHARE * len(frame)):
        return None
    others = {column.name: "ignore" for column in columns if column.name not in numbers}
    vectorizer = neuralbayes.TableVectorizer(kinds=training.kinds | others, standardize=standardize)
    labeler = neuralbayes.ManifoldLabeler(vectorizer=vectorizer, **training.settings)
    fitted = _fitted_if_certified(labeler, whole, must=must)
    if fitted is not None and len(whole) < len(frame):
        message = f"{len(frame) - len(whole):,} rows with missing numbers were labelled, but not trained on."
        warnings.warn(message, stacklevel=2)
    return fitted


def _fitted_if_certified(labeler: Any, X: Any, *, must: bool) -> Any:
    """The fitted labeler; None if not all manifolds are certified, unless it is required."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        labeler.fit(X)
    if not must and not (labeler.n_clusters_ > 1 and labeler.disjoint_.all()):
        return None  # the other method makes its warning irrelevant
    for warning in caught:
        warnings.warn(warning.message, stacklevel=2)
    return labeler


def _is_continuous(values: pd.Series[Any]) -> bool:
    """Whether gaps between the numbers of a column are meaningful."""
    import numpy as np

    from neuralbayes.data.column_cells import as_numbers
    from neuralbayes.data.columns import ATOM, why_not_continuous

    numbers, _ = as_numbers(values.iloc[:: max(1, len(values) // 20_000)])
    numbers = numbers[np.isfinite(numbers)]
    return len(numbers) > 1 and why_not_continuous(numbers) in (None, ATOM)


def _check_rows(n_rows: int, n_all: int, source: TableSource) -> None:
    """Report the rows left out by --missing drop; at least two must remain."""
    if n_rows < 2:
        raise ValueError(
            f"{source.path} has {n_rows} of {n_all:,} rows without missing cells, too few for --missing drop; "
            "--missing impute takes all"
        )
    if n_rows < n_all:
        message = f"{n_all - n_rows:,} rows with missing cells were labelled, but not trained on."
        warnings.warn(message, stacklevel=2)
