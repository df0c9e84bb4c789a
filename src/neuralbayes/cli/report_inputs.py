"""What ``neuralbayes report`` looks at: a run or a model, with its images or its table."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralbayes.cli.label_summary import shortened
from neuralbayes.cli.runs import DataChoice, data_name, load_encoder, load_fitting

if TYPE_CHECKING:
    from neuralbayes.report.explorer import Samples, Side


@dataclass(frozen=True)
class Asked:
    """What the command line says of the data."""

    data: str | None
    split: str | None
    labels: str | None
    key: str | None
    progress: bool


@dataclass(frozen=True)
class ImageInput:
    """An encoder of images, with the images to look at."""

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
            split = self.images.split
            return clusters_side(
                self.folder, self.encoder, samples, data=self.data, split=split, method=method, watch=watch
            )
        if not isinstance(self.encoder, ImageEncoder):
            return image_model_side(self.folder, self.encoder, samples, method=method, watch=watch)
        return encoder_side(self.folder, self.encoder, samples, own_data=self.own_data, method=method, watch=watch)


@dataclass(frozen=True)
class RowInput:
    """A model of rows, with the table to look at: all of its columns, and what the model is to be given."""

    folder: Path
    estimator: Any
    path: Path
    X: Any  # array of the fitted columns, or a data frame that the model vectorises
    frame: Any  # all columns; None without pandas
    columns: list[str]
    options: list[str]
    class_column: str | None

    @property
    def looks_at(self) -> Any:
        return str(self.path), tuple(self.columns)

    def side(self, n: int, shared: dict[Any, Samples], method: Any, watch: Any) -> Side:
        from neuralbayes.report.explorer import chosen, rows_side

        if self.looks_at not in shared:
            shared[self.looks_at] = self._samples(chosen(len(self.X), n))
        samples = shared[self.looks_at]
        return rows_side(
            self.folder,
            self.estimator,
            self._taken(samples.index),
            samples,
            frame=None if self.frame is None else self.frame.iloc[samples.index],
            classes=self.class_column,
            options=self.options,
            method=method,
            watch=watch,
        )

    def _samples(self, index: Any) -> Samples:
        from neuralbayes.report.explorer import row_samples
        from neuralbayes.report.explorer.samples import vectorized_values

        values, names = self.X[index] if self.frame is not self.X else None, self.columns
        if values is None:
            values, names = vectorized_values(self.estimator.vectorizer_, self.X.iloc[index])
        classes = None if self.class_column is None else self.frame[self.class_column].iloc[index].to_numpy()
        return row_samples(values, str(self.path), names, index, len(self.X), classes)

    def _taken(self, index: Any) -> Any:
        """Some rows as the model takes them."""
        from neuralbayes.cli.label_model import with_names

        if self.frame is self.X:
            return self.X.iloc[index]
        names = getattr(self.estimator, "feature_names_in_", None)
        return self.X[index] if names is None else with_names(self.X[index], [str(name) for name in names])


def open_input(folder: Path, kind: str, asked: Asked) -> ImageInput | RowInput:
    if kind == "results":
        raise ValueError(f"--against must be a run or a model, but {folder} holds results of reproduce")
    if kind == "run":
        return _open_run(folder, asked)
    import neuralbayes

    estimator = neuralbayes.load(folder)
    if asked.data is None:
        raise ValueError(f"a model keeps no data: name them after {folder}, as in `neuralbayes report {folder} DATA`")
    shape = getattr(estimator, "image_shape_", None)
    if shape is not None:
        images = load_fitting(shape, data_name(asked.data), asked.split or "train", progress=asked.progress)
        return ImageInput(folder, estimator, images, data_name(asked.data), None, own_data=False)
    return _open_table(folder, estimator, asked)


def _open_run(folder: Path, asked: Asked) -> ImageInput:
    for option, value in {"--labels": asked.labels, "--key": asked.key}.items():
        if value is not None:
            raise ValueError(f"{option} is for tables, but {folder} is a run on images")
    encoder = load_encoder(folder)
    choice = DataChoice.of(folder)
    if asked.data is None and choice is None:
        raise ValueError(f"{folder} does not say which images it was trained on; name some after it")
    own = choice is not None and (asked.data is None or data_name(asked.data) == choice.data)
    data = choice.data if own and choice is not None else data_name(str(asked.data))
    split = asked.split or (choice.split if own and choice is not None else "train")
    own = own and choice is not None and split == choice.split
    images = load_fitting(encoder.shape, data, split, progress=asked.progress)
    # Named data are taken whole: so two runs that saw different parts of them can be compared.
    limit = choice.limit if own and choice is not None and asked.data is None else None
    return ImageInput(folder, encoder, images, data, limit, own)


def _open_table(folder: Path, estimator: Any, asked: Asked) -> RowInput:
    from neuralbayes.data.table_formats import ARRAY_SUFFIXES
    from neuralbayes.data.table_sources import read_source
    from neuralbayes.data.tables import read_table

    file = Path(str(asked.data))
    key = [] if asked.key is None else ["--key", asked.key]
    vectorizer = getattr(estimator, "vectorizer_", None)
    if vectorizer is not None:
        as_text = [column.name for column in vectorizer.columns_ if column.kind in ("category", "text", "id")]
        source = read_source(file, key=asked.key, as_text=as_text)
        used, known = list(vectorizer.encoders_), vectorizer.feature_names_in_.tolist()
        frame = source.frame
        if not source.named and frame.shape[1] != len(known):
            raise _other_columns(folder, len(known), file, [str(name) for name in frame])
        if not source.named:
            frame = frame.set_axis(known, axis=1)
        absent = [name for name in used if name not in frame]
        if absent:
            raise ValueError(f"{file} has no column {absent[0]!r}, which {folder} was trained on")
        _check_classes(file, frame, asked.labels)
        chosen = [] if set(used) == set(frame) else ["--columns", _as_csv(used)]
        return RowInput(folder, estimator, file, frame, frame, used, [*key, *chosen], asked.labels)
    names = getattr(estimator, "feature_names_in_", None)
    trained_on = None if names is None else [str(name) for name in names]
    table = read_table(file, columns=None if file.suffix.lower() in ARRAY_SUFFIXES else trained_on, key=asked.key)
    if table.X.shape[1] != estimator.n_features_in_:
        raise _other_columns(folder, estimator.n_features_in_, file, table.feature_names)
    every = table.frame if find_spec("pandas") else None
    _check_classes(file, every, asked.labels)
    chosen = ["--columns", _as_csv(table.feature_names)] if table.ignored else []
    return RowInput(folder, estimator, file, table.X, every, table.feature_names, [*key, *chosen], asked.labels)


def _other_columns(folder: Path, n: int, file: Path, names: list[str]) -> ValueError:
    return ValueError(f"{folder} was trained on {n} columns, but {file} gives {len(names)}: {shortened(names)}")


def _check_classes(file: Path, frame: Any, name: str | None) -> None:
    if name is not None and (frame is None or name not in frame):
        known = shortened([] if frame is None else [str(column) for column in frame])
        raise ValueError(f"--labels must be a column of {file}, one of {known}, got {name!r}")


def _as_csv(names: list[str]) -> str:
    """Names as --columns takes them: quotes where they hold commas."""
    line = io.StringIO()
    csv.writer(line).writerow(names)
    return line.getvalue().strip()
