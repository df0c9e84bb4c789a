"""``neuralbayes label --text``: cluster texts by the features of a network, or by their character n-grams."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralbayes.cli.features_option import (
    features_file,
    features_name,
    features_of_file,
    is_file,
    load_fitting_features,
)
from neuralbayes.cli.label_outliers import labels_and_typicality
from neuralbayes.cli.label_summary import Labeling

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from neuralbayes.data.column_kinds import Column
    from neuralbayes.data.table_sources import TableSource
    from neuralbayes.features.networks import Network


@dataclass(frozen=True)
class OpenedTexts:
    """A table, its column of texts, and the features for clustering.

    Attributes
    ----------
    source : TableSource
    text : str or None
        The column; None if features from a file represent whole rows.
    features : str or None
        A network or a file.
    network : Network or None
    kept : Path
        Cache of the features of a network.
    model : Path or None
        Folder of a model to label with.
    settings : dict
        Parameters of the clusterer.
    reject : float or None
        Rows with at most this typicality get the label -1.
    verbose : bool
    """

    source: TableSource
    text: str | None
    features: str | None
    network: Network | None
    kept: Path
    model: Path | None
    settings: dict[str, Any]
    reject: float | None
    verbose: bool

    @property
    def n_rows(self) -> int:
        """Number of rows of the table."""
        return len(self.source.data)

    @property
    def columns(self) -> list[Column]:
        """Use of each column."""
        from neuralbayes.data.column_kinds import Column

        by = "by the letters in it" if self.features is None else f"by the features of {self.features}"
        return [
            Column(name, "text", by) if name == self.text else Column(name, "ignored", "not chosen")
            for name in map(str, self.source.frame)
        ]

    def train(self) -> Labeling:
        """Cluster the texts, or label them with the model."""
        import neuralbayes

        X, names = self._rows()
        if self.model is not None:
            estimator = load_fitting_features(self.model, self.features, self.network)
        else:
            estimator = neuralbayes.InformationClusterer(**self.settings, **self._vectorizer(), verbose=self.verbose)
            estimator.fit(X)
            if self.features is not None:
                estimator.features_from_ = features_name(self.features, self.network)
        proba = estimator.predict_proba(X)
        labels, typicality = labels_and_typicality(estimator, X, proba.argmax(axis=1), self.reject)
        from neuralbayes.data.tables import Table

        points = X if self.features is not None else estimator.vectorizer_.transform(X)
        names = names or [str(name) for name in estimator.vectorizer_.get_feature_names_out()]
        ignored = {column.name: column.reason for column in self.columns if not column.used}
        return Labeling(
            estimator,
            Table(self.source, points, names, ignored),
            labels,
            proba,
            trained=self.model is None,
            columns=self.columns,
            told=None if self.text is None else self._told(labels, proba.shape[1]),
            typicality=typicality,
        )

    def _rows(self) -> tuple[Any, list[str]]:
        """The data to cluster, and the names of its columns if these are features."""
        if self.features is None:
            return self.source.frame, []
        found = self._features()
        return found, [f"f_{j}" for j in range(found.shape[1])]

    def _features(self) -> NDArray[Any]:
        if self.network is None:
            return features_of_file(Path(str(self.features)), self.n_rows, f"rows of {self.source.path}")
        n_missing = int(self.source.frame[self.text].isna().sum())
        if n_missing:
            warnings.warn(f"{n_missing:,} rows have no text; they are labelled like empty texts.", stacklevel=2)
        return text_features(self.network, texts_of(self.source, self.text), self.kept, verbose=self.verbose)

    def _vectorizer(self) -> dict[str, Any]:
        if self.features is not None:
            return {}
        import neuralbayes

        kinds = {name: "text" if name == self.text else "ignore" for name in map(str, self.source.frame)}
        return {"vectorizer": neuralbayes.TableVectorizer(kinds=kinds)}

    def _told(self, labels: NDArray[Any], n_clusters: int) -> list[tuple[str, str]]:
        """A name for each cluster, and its words."""
        from neuralbayes.explain.phrases import key_phrases, phrase_names

        phrases = key_phrases(texts_of(self.source, self.text), labels, n_clusters)
        told = []
        for name, own in zip(phrase_names(phrases), phrases, strict=True):
            others = [claim.words for claim in own if claim.words not in name]
            told.append((name, f"also {', '.join(others)}" if others else ""))
        return told


def opened_texts(
    file: Path,
    reading: dict[str, Any],
    text: str | None,
    features: str | None,
    *,
    out: Path,
    model: Path | None,
    settings: dict[str, Any],
    reject: float | None,
    verbose: bool,
) -> OpenedTexts:
    """Read a table with texts. The network is loaded first, so that a wrong name fails early.

    Parameters
    ----------
    file : Path
    reading : dict
        Arguments of `read_source`.
    text : str or None
        The column of texts; may be None if `features` is a file.
    features : str or None
    out : Path
        Output file; features are cached next to it.
    model : Path or None
    settings : dict
    reject : float or None
    verbose : bool
    """
    from neuralbayes.data.table_sources import read_source
    from neuralbayes.data.tables import chosen_columns

    network = text_network(features, text)
    source = read_source(file, **reading)
    if text is not None:
        chosen_columns(source.path, [str(name) for name in source.frame], [text])
    return OpenedTexts(source, text, features, network, features_file(out), model, settings, reject, verbose)


def text_network(features: str | None, text: str | None) -> Network | None:
    """The network that ``--features`` names; None for a file, which must exist, and without features."""
    if features is None:
        return None
    if is_file(features):
        if not Path(features).is_file():
            raise FileNotFoundError(f"--features must be a .npy file that exists, or a network, got {features!r}")
        return None
    if text is None:
        raise ValueError(f"--features {features} needs --text COLUMN, the column with the texts")
    from neuralbayes.features.networks import load_network

    return load_network(features, "texts")


def texts_of(source: TableSource, text: str | None) -> list[str]:
    """The texts in a column; empty if missing."""
    column = source.frame[text]
    return [str(cell) for cell in column.astype(object).where(column.notna(), "")]


def text_features(network: Network, texts: Sequence[str], kept: Path, *, verbose: bool) -> NDArray[Any]:
    """The features of texts, cached in a file: (n, n_features)."""
    from neuralbayes.features.kept import kept_features

    return kept_features(network, texts, kept, verbose=verbose)
