"""``neuralbayes report`` on clusters of pictures and texts by features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralbayes.cli.features_option import (
    ImageFeatures,
    features_file,
    features_of_file,
    image_features,
    load_fitting_features,
)
from neuralbayes.cli.image_size import parsed_size
from neuralbayes.cli.label_texts import text_features, text_network, texts_of
from neuralbayes.cli.outputs import beside
from neuralbayes.cli.runs import data_name

if TYPE_CHECKING:
    from neuralbayes.data.sources import Images, ImageSource
    from neuralbayes.data.table_sources import TableSource
    from neuralbayes.features.networks import Network
    from neuralbayes.report.explorer import Samples, Side

SHOWN_SIDE = 128
"""Maximum side length of a shown picture in pixels, whatever the size of the network."""


@dataclass(frozen=True)
class PictureInput:
    """A model of features of pictures, with the pictures to show."""

    folder: Path
    estimator: Any
    images: Images
    features: ImageFeatures
    data: str
    limit: int | None

    @property
    def looks_at(self) -> Any:
        return self.data, self.images.split, self.limit, tuple(self.images.source.shape)

    def side(self, n: int, shared: dict[Any, Samples], method: Any, watch: Any) -> Side:
        from neuralbayes.report.explorer import clusters_side, image_samples

        images, features = self.images, self.features
        if self.looks_at not in shared:
            name = f"{self.data}, {images.split}"
            shared[self.looks_at] = image_samples(images, name, n, self.limit, _reduced(images.source))
        samples = shared[self.looks_at]
        watch(f"features of {len(samples):,} images by {features.name}")
        X = features.rows(images, self.limit, index=samples.index, verbose=False)
        options = [] if images.split == "train" else ["--split", images.split]
        options += [] if self.limit is None else ["--limit", str(self.limit)]
        options += ["--features", features.name]
        options += [] if features.size is None else ["--size", "x".join(map(str, features.size))]
        return clusters_side(
            self.folder,
            self.estimator,
            samples,
            data=self.data,
            X=X,
            by=f"the features of {features.name}",
            options=options,
            method=method,
            watch=watch,
        )


@dataclass(frozen=True)
class TextInput:
    """A model of texts, by features of a network or by character n-grams, with their table."""

    folder: Path
    estimator: Any
    source: TableSource
    text: str
    features: str | None
    network: Network | None
    kept: Path
    options: Sequence[str]
    classes: Any

    @property
    def looks_at(self) -> Any:
        return str(self.source.path), self.text

    def side(self, n: int, shared: dict[Any, Samples], method: Any, watch: Any) -> Side:
        from neuralbayes.report.explorer import chosen, clusters_side, text_samples

        n_rows = len(self.source.data)
        if self.looks_at not in shared:
            texts = texts_of(self.source, self.text)
            path = str(self.source.path)
            shared[self.looks_at] = text_samples(texts, path, self.text, chosen(n_rows, n), self.classes)
        samples = shared[self.looks_at]
        by = f"the letters in {self.text}" if self.features is None else f"the features of {self.features}"
        if self.network is not None:
            watch(f"features of {len(samples):,} texts by {self.features}")
            X: Any = text_features(self.network, samples.texts or [], self.kept, verbose=False)
        elif self.features is not None:
            X = features_of_file(Path(self.features), n_rows, f"rows of {self.source.path}")[samples.index]
        else:
            X = self.source.frame.iloc[samples.index]
        options = [*self.options, "--text", self.text]
        options += [] if self.features is None else ["--features", self.features]
        return clusters_side(
            self.folder,
            self.estimator,
            samples,
            data=str(self.source.path),
            X=X,
            by=by,
            options=options,
            method=method,
            watch=watch,
        )


def open_pictures(
    folder: Path,
    data: str,
    *,
    features: str,
    size: str | None,
    split: str,
    limit: int | None,
    page: Path,
    verbose: bool,
) -> PictureInput:
    """Read pictures with features. The network is loaded and checked against the model first."""
    from neuralbayes.data.catalog import is_name

    found = image_features(features, parsed_size(size), page)
    estimator = load_fitting_features(folder, features, found.network)
    labels = Path(f"{data}-labels.csv") if is_name(data) else beside(Path(data), "-labels", ".csv")
    found = replace(found, kept=_kept(labels, folder, found.network, page))
    images = found.load(data, split, verbose=verbose)
    return PictureInput(folder, estimator, images, found, data_name(data), limit)


def open_texts(
    folder: Path,
    source: TableSource,
    *,
    text: str,
    features: str | None,
    page: Path,
    options: Sequence[str],
    classes: Any,
) -> TextInput:
    """Read texts with features, or without if the model uses character n-grams."""
    from neuralbayes.data.tables import chosen_columns

    network = text_network(features, text)
    estimator = load_fitting_features(folder, features, network)
    chosen_columns(source.path, [str(name) for name in source.frame], [text])
    if features is None and only_text(estimator) != text:
        fitted = ", ".join(getattr(getattr(estimator, "vectorizer_", None), "encoders_", ()))
        raise ValueError(f"{folder} was not fitted to the texts in {text!r}, but to the columns {fitted}")
    kept = _kept(beside(Path(source.path), "-labels"), folder, network, page)
    return TextInput(folder, estimator, source, text, features, network, kept, options, classes)


def only_text(estimator: Any) -> str | None:
    """The column of a model of texts, if it was fitted to a single column of text."""
    encoders = getattr(getattr(estimator, "vectorizer_", None), "encoders_", {})
    if len(encoders) != 1:
        return None
    ((name, encoder),) = encoders.items()
    return str(name) if encoder.kind == "text" else None


def features_table(folder: Path, source: TableSource, features: str) -> tuple[Any, Any]:
    """The model and a table with the features from a file, one row per row of the table."""
    from neuralbayes.data.tables import Table

    text_network(features, None)  # refuses a network, which would have no input
    estimator = load_fitting_features(folder, features, None)
    X = features_of_file(Path(features), len(source.data), f"rows of {source.path}")
    return estimator, Table(source, X, [f"f_{j}" for j in range(X.shape[1])], {})


def _kept(labels: Path, model: Path, network: Network | None, page: Path) -> Path:
    """The cache of features: next to the labels or the model if it exists, otherwise next to the page."""
    from neuralbayes.features.kept import keeps

    places = [features_file(labels), *sorted(model.resolve().parent.glob("*-features.safetensors"))]
    return next((path for path in places if network is not None and keeps(path, network)), features_file(page))


def _reduced(source: ImageSource) -> ImageSource:
    """The images in the size for a page."""
    from neuralbayes.data.sources import CHANNELS, FittedSource

    height, width, channels = source.shape
    reduction = max(height, width) / SHOWN_SIDE
    if reduction <= 1 or channels not in CHANNELS:
        return source
    return FittedSource(source, (math.ceil(height / reduction), math.ceil(width / reduction)), channels)
