"""Data for benchmarks/field.py: images and tables with known classes, which are only used for scores."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from paper.packaged_data import load
from sklearn import datasets
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

Array = NDArray[Any]

N_COMPONENTS = 64
RAREST = 0.1
"""Share of the rarest class to keep in the imbalanced set. The shares of the classes decrease linearly from 1."""


@dataclass(frozen=True)
class Data:
    """Samples to cluster and samples to score; the same rows for a table.

    Attributes
    ----------
    train, test : ndarray
        Images (n, H, W, C) in uint8, or rows (n, n_features).
    train_classes, test_classes : ndarray of shape (n,)
    """

    train: Array
    train_classes: Array
    test: Array
    test_classes: Array

    @property
    def n_clusters(self) -> int:
        return int(self.train_classes.max()) + 1

    @property
    def scored(self) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Train and test, each with its classes."""
        return (self.train, self.train_classes), (self.test, self.test_classes)

    @property
    def is_images(self) -> bool:
        return self.train.ndim == 4

    @cached_property
    def rows(self) -> tuple[Array, Array]:
        """Train and test as rows: pixels in [0, 1], or columns of unit variance."""
        if self.is_images:
            return tuple(x.reshape(len(x), -1) / np.float32(255) for x in (self.train, self.test))  # type: ignore[return-value]
        scaler = StandardScaler().fit(self.train)
        return scaler.transform(self.train), scaler.transform(self.test)

    @cached_property
    def coordinates(self) -> tuple[Array, Array]:
        """Input of the peers: principal components of images, as many as ours, or columns of unit variance."""
        if not self.is_images:
            return self.rows
        pca = PCA(N_COMPONENTS, random_state=0).fit(self.rows[0])
        return pca.transform(self.rows[0]), pca.transform(self.rows[1])


def _images(name: str) -> Data:
    data = load(name)
    train, test = data.train, data.test
    return Data(train.images, np.asarray(train.labels), test.images, np.asarray(test.labels))


def _imbalanced(name: str) -> Data:
    """Keep a smaller share of each class than of the one before, down to a tenth, in train and test."""
    data = _images(name)
    rng = np.random.default_rng(0)
    share = np.linspace(1.0, RAREST, data.n_clusters)
    train = rng.random(len(data.train)) < share[data.train_classes]
    test = rng.random(len(data.test)) < share[data.test_classes]
    return Data(data.train[train], data.train_classes[train], data.test[test], data.test_classes[test])


def _table(X: Any, classes: Any) -> Data:
    rows, codes = np.asarray(X, dtype=np.float64), pd.factorize(np.asarray(classes))[0]
    return Data(rows, codes, rows, codes)


def _river(file: str, column: str) -> Data:
    """Read a table from a file of the package river."""
    spec = find_spec("river")
    if spec is None or spec.origin is None:
        raise ImportError("this table is part of river: pip install 'neuralbayes[bench]'")
    path = Path(spec.origin).parent / "datasets" / file
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as stream:
            frame = pd.read_csv(stream)
    else:
        frame = pd.read_csv(path)
    return _table(frame.drop(columns=column), frame[column])


IMAGES: dict[str, Callable[[], Data]] = {
    "MNIST": lambda: _images("mnist"),
    "MNIST 1:10": lambda: _imbalanced("mnist"),
    "Fashion-MNIST": lambda: _images("fashion-mnist"),
    "Fashion-MNIST 1:10": lambda: _imbalanced("fashion-mnist"),
}
TABLES: dict[str, Callable[[], Data]] = {
    "iris": lambda: _table(*datasets.load_iris(return_X_y=True)),
    "wine": lambda: _table(*datasets.load_wine(return_X_y=True)),
    "breast cancer": lambda: _table(*datasets.load_breast_cancer(return_X_y=True)),
    "digits": lambda: _table(*datasets.load_digits(return_X_y=True)),
    "image segments": lambda: _river("segment.csv.zip", "category"),
    "phishing": lambda: _river("phishing.csv.gz", "is_phishing"),
}
"""Tables by name. Four come with scikit-learn, which has no others with classes, and two with river."""
