"""Inputs of ``neuralbayes report``: a run or a model, with its images or its table."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralbayes.cli.features_option import load_fitting_features
from neuralbayes.cli.report_features import (
    PictureInput,
    TextInput,
    features_table,
    only_text,
    open_pictures,
    open_texts,
)
from neuralbayes.cli.runs import DataChoice, data_name, load_encoder, load_fitting

if TYPE_CHECKING:
    from neuralbayes.report.explorer import Samples, Side


@dataclass(frozen=True)
class Asked:
    """Options about the data."""

    data: str | None
    split: str | None
    labels: str | None
    text: str | None
    features: str | None
    size: str | None
    limit: int | None
    page: Path  # features are cached next to it
    reading: dict[str, str | None]  # arguments of read_table
    progress: bool


@dataclass(frozen=True)
class ImageInput:
    """An encoder of images, with the images to show."""

    folder: Path
    encoder: Any  # ImageEncoder, or an estimator of images
    images: Any
    data: str
    limit: int | None
    own_data: bool

    @property
    def looks_at(self) -> Any:
        return self.data, self.images.split, self.limit, tuple(self.images.source.shape)

    def side(self, n: int, shared: dict[Any, Samples], method: Any, watch: Any) -> Side:
        from neuralbayes.estimators import InformationClusterer
        from neuralbayes.features.encoder import ImageEncoder
        from neuralbayes.report.explorer import clusters_side, encoder_side, image_model_side, image_samples

        if self.looks_at not in shared:
            shared[self.looks_at] = image_samples(self.images, f"{self.data}, {self.images.split}", n, self.limit)
        samples = shared[self.looks_at]
        if isinstance(self.encoder, InformationClusterer):
            split = [] if self.images.split == "train" else ["--split", self.images.split]
            limit = [] if self.limit is None else ["--limit", str(self.limit)]
            return clusters_side(
                self.folder,
                self.encoder,
                samples,
                data=self.data,
                options=[*split, *limit],
                method=method,
                watch=watch,
            )
        if not isinstance(self.encoder, ImageEncoder):
            return image_model_side(self.folder, self.encoder, samples, method=method, watch=watch)
        return encoder_side(self.folder, self.encoder, samples, own_data=self.own_data, method=method, watch=watch)


@dataclass(frozen=True)
class RowInput:
    """A model of rows, with the table to show."""

    folder: Path
    estimator: Any
    table: Any
    reading: dict[str, str | None]
    classes: Any
    class_column: str | None
    features: str | None = None

    @property
    def looks_at(self) -> Any:
        return str(self.table.path), tuple(self.table.feature_names)

    def side(self, n: int, shared: dict[Any, Samples], method: Any, watch: Any) -> Side:
        from neuralbayes.cli.label_model import with_names
        from neuralbayes.report.explorer import chosen, row_samples, rows_side

        table = self.table
        if self.looks_at not in shared:
            index = chosen(len(table.X), n)
            shared[self.looks_at] = row_samples(table.X, str(table.path), table.feature_names, index, self.classes)
        samples = shared[self.looks_at]
        X: Any = table.X[samples.index]
        names = getattr(self.estimator, "feature_names_in_", None)
        options = reading_options(self.reading)
        if self.features is not None:
            options += ["--features", self.features]
        elif hasattr(self.estimator, "vectorizer_"):
            X = table.frame.iloc[samples.index]
            used = list(self.estimator.vectorizer_.encoders_)
            options += ["--columns", _as_csv(used)] if set(used) != set(table.frame) else []
            options += table_options(self.estimator.vectorizer_)
        else:
            X = X if names is None else with_names(X, [str(name) for name in names])
            options += ["--columns", _as_csv(table.feature_names)] if table.ignored else []
            fixed = table.named and self.estimator.get_params().get("standardize") is False
            options += ["--no-standardize"] if fixed else []
        frame = table.frame.iloc[samples.index]
        return rows_side(
            self.folder,
            self.estimator,
            X,
            samples,
            frame=frame,
            classes=self.class_column,
            options=options,
            method=method,
            watch=watch,
        )


def open_input(folder: Path, kind: str, asked: Asked) -> ImageInput | RowInput | PictureInput | TextInput:
    """Open a folder with the requested data."""
    if kind == "run":
        return _open_run(folder, asked)
    import neuralbayes

    if asked.data is None:
        raise ValueError(f"a model keeps no data: name them after {folder}, as in `neuralbayes report {folder} DATA`")
    if asked.features is None and asked.size is not None:
        raise ValueError("--size is for pictures with --features; other models know the size of their images")
    if asked.features is not None and _are_images(asked):
        return open_pictures(
            folder,
            asked.data,
            features=asked.features,
            size=asked.size,
            split=asked.split or "train",
            limit=asked.limit,
            page=asked.page,
            verbose=asked.progress,
        )
    estimator = neuralbayes.load(folder)
    shape = getattr(estimator, "image_shape_", None)
    if shape is not None:
        images = load_fitting(shape, data_name(asked.data), asked.split or "train", progress=asked.progress)
        return ImageInput(folder, estimator, images, data_name(asked.data), asked.limit, own_data=False)
    for option, value in {"--split": asked.split, "--limit": asked.limit, "--size": asked.size}.items():
        if value is not None:
            raise ValueError(f"{option} is for images, but {asked.data} is a table")
    text = asked.text or (only_text(estimator) if asked.features is None else None)
    if text is not None or asked.features is not None or hasattr(estimator, "features_from_"):
        return _open_by_features(folder, text, asked)
    return _open_table(folder, estimator, asked)


def _are_images(asked: Asked) -> bool:
    from neuralbayes.data.images import holds_images
    from neuralbayes.data.parquet import is_parquet_folder

    file = Path(str(asked.data))
    if asked.reading["key"] is not None or is_parquet_folder(file) or not holds_images(file):
        return False
    for option, value in {"--text": asked.text, "--labels": asked.labels}.items():
        if value is not None:
            raise ValueError(f"{option} is for tables, but {asked.data} holds images")
    return True


def _open_by_features(folder: Path, text: str | None, asked: Asked) -> TextInput | RowInput:
    """A table with a column of texts, or with features in a file."""
    from neuralbayes.data.table_sources import read_source

    reading: dict[str, Any] = asked.reading
    if asked.features is None and text is None:
        load_fitting_features(folder, None, None)  # reports what is missing
    source = read_source(Path(str(asked.data)), **reading)
    if text is None:
        estimator, table = features_table(folder, source, str(asked.features))
        return RowInput(folder, estimator, table, reading, _classes(table, asked), asked.labels, asked.features)
    return open_texts(
        folder,
        source,
        text=text,
        features=asked.features,
        page=asked.page,
        options=reading_options(reading),
        classes=_classes(source, asked),
    )


def _open_run(folder: Path, asked: Asked) -> ImageInput:
    from neuralbayes.system.devices import torch_device

    for option, value in {"--features": asked.features, "--size": asked.size}.items():
        if value is not None:
            raise ValueError(f"{option} is for models, but {folder} is a run, which has its own features")
    for option, value in (
        {"--labels": asked.labels, "--text": asked.text} | {f"--{name}": value for name, value in asked.reading.items()}
    ).items():
        if value is not None:
            raise ValueError(f"{option} is for tables, but {folder} is a run on images")
    encoder = load_encoder(folder).to(torch_device())
    choice = DataChoice.of(folder)
    if asked.data is None and choice is None:
        raise ValueError(
            f"{folder} does not say which images it was trained on; add their folder or file to the command"
        )
    own = choice is not None and (asked.data is None or data_name(asked.data) == choice.data)
    data = choice.data if own and choice is not None else data_name(str(asked.data))
    split = asked.split or (choice.split if own and choice is not None else "train")
    own = own and choice is not None and split == choice.split
    images = load_fitting(encoder.shape, data, split, progress=asked.progress)
    # Named data are used as a whole, so that runs on different parts can be compared.
    limit = choice.limit if own and choice is not None and asked.data is None else None
    limit = limit if asked.limit is None else asked.limit
    return ImageInput(folder, encoder, images, data, limit, own)


def _open_table(folder: Path, estimator: Any, asked: Asked) -> RowInput:
    from neuralbayes.cli.label_summary import shortened
    from neuralbayes.data.table_formats import ARRAY_SUFFIXES
    from neuralbayes.data.tables import read_table

    file = Path(str(asked.data))
    names = getattr(estimator, "feature_names_in_", None)
    trained_on = None if names is None else [str(name) for name in names]
    reading: dict[str, Any] = asked.reading
    if hasattr(estimator, "vectorizer_"):
        from neuralbayes.cli.label_rows import drawn_table
        from neuralbayes.data.table_sources import read_source

        source = read_source(file, **reading)
        _check_columns(folder, estimator.vectorizer_, file, [str(name) for name in source.frame], named=source.named)
        table, _ = drawn_table(source, estimator.vectorizer_)
        return RowInput(folder, estimator, table, reading, _classes(table, asked), asked.labels)
    columns: Any = None if file.suffix.lower() in ARRAY_SUFFIXES else trained_on
    table = read_table(file, columns=columns, **reading)
    if table.X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"{folder} was trained on {estimator.n_features_in_} columns, but {file} gives {table.X.shape[1]}: "
            f"{shortened(table.feature_names)}"
        )
    return RowInput(folder, estimator, table, reading, _classes(table, asked), asked.labels)


def _check_columns(folder: Path, vectorizer: Any, file: Path, names: list[str], *, named: bool) -> None:
    """Raise unless a table has the columns of the vectorizer of a model."""
    from neuralbayes.cli.label_summary import shortened

    known = len(vectorizer.feature_names_in_)
    if not named and len(names) != known:
        raise ValueError(f"{folder} was trained on {known} columns, but {file} gives {len(names)}: {shortened(names)}")
    absent = [name for name in vectorizer.encoders_ if name not in names]
    if named and absent:
        raise ValueError(
            f"{file} has no column {absent[0]!r}, which {folder} was trained on; its columns are {shortened(names)}"
        )


def _classes(table: Any, asked: Asked) -> Any:
    """The column of true classes, if given."""
    from neuralbayes.cli.label_summary import shortened

    if asked.labels is None:
        return None
    columns = table.frame
    if asked.labels not in columns:
        known = shortened([str(name) for name in columns])
        raise ValueError(f"--labels must be a column of {asked.data}, one of {known}, got {asked.labels!r}")
    return columns[asked.labels].to_numpy()


def table_options(vectorizer: Any) -> list[str]:
    """The options of `label` for the vectorizer of a model."""
    options = [word for name, kind in (vectorizer.kinds or {}).items() for word in ("--as", f"{name}={kind}")]
    options += ["--missing", "mask"] if vectorizer.missing == "mask" else []
    return options + ([] if vectorizer.standardize else ["--no-standardize"])


def reading_options(reading: Mapping[str, str | None]) -> list[str]:
    """The options for reading a table, as on a command line.

    Examples
    --------
    >>> reading_options({"key": None, "sep": ";"})
    ['--sep', ';']
    """
    return [word for name, value in reading.items() if value is not None for word in (f"--{name}", value)]


def _as_csv(names: list[str]) -> str:
    """Format names for --columns, with quotes if they contain commas."""
    line = io.StringIO()
    csv.writer(line).writerow(names)
    return line.getvalue().strip()
