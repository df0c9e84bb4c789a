"""The samples of a page: a random subset of the data, with their pictures or values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.path_text import readable
from neuralbayes.data.sources import Images, ImageSource

MAX_CLASSES = 1000

MAX_COLUMNS = 40
"""Maximum number of table columns on the page."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples of some data.

    Attributes
    ----------
    data : str
        The name of the data.
    noun : str
        Word for a sample: image, row or text.
    n_all : int
        Number of samples in the data.
    index : ndarray of int64 and shape (n,)
        Indices of these samples in the data, ascending.
    pictures : ndarray of uint8 and shape (n, H, W, C), or None
    names : list of str, or None
        Files of the pictures.
    values : ndarray of float64 and shape (n, d), or None
        Values of a table.
    columns : list of str
        Their names.
    texts : list of str, or None
        The texts, if the page shows one column of a table; its name is the only one in `columns`.
    classes : ndarray of int64 and shape (n,), or None
        True classes, from 0.
    class_names : list of str
        Their names.
    """

    data: str
    noun: str
    n_all: int
    index: NDArray[np.int64]
    pictures: NDArray[np.uint8] | None = None
    names: list[str] | None = None
    values: NDArray[np.float64] | None = None
    columns: Sequence[str] = ()
    texts: list[str] | None = None
    classes: NDArray[np.int64] | None = None
    class_names: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.index)


def chosen(n_all: int, n: int) -> NDArray[np.int64]:
    """Select `n` of `n_all` samples, or all, reproducibly and in ascending order."""
    if n >= n_all:
        return np.arange(n_all)
    return np.sort(np.random.default_rng(0).choice(n_all, n, replace=False)).astype(np.int64)


def image_samples(
    images: Images, data: str, n: int, limit: int | None = None, shown: ImageSource | None = None
) -> Samples:
    """At most `n` of the first `limit` images; `shown` are the same images in the size for the page."""
    n_all = len(images) if limit is None else min(limit, len(images))
    index = chosen(n_all, n)
    paths: Sequence[Path] | None = getattr(images.source, "paths", None)
    classes, class_names = (None, []) if images.labels is None else _classes(images.labels[index], images.class_names)
    return Samples(
        data=data,
        noun="image",
        n_all=n_all,
        index=index,
        pictures=(shown or images.source).read(index),
        names=None if paths is None else [readable(paths[i].name) for i in index],
        classes=classes,
        class_names=class_names,
    )


def row_samples(
    X: NDArray[Any], data: str, columns: Sequence[str], index: NDArray[np.int64], labels: NDArray[Any] | None = None
) -> Samples:
    """The rows `index` of a table, with the column of true classes, if there is one."""
    classes, class_names = _class_column(labels, index)
    return Samples(
        data=data,
        noun="row",
        n_all=len(X),
        index=index,
        values=np.asarray(X[index], dtype=np.float64),
        columns=list(columns),
        classes=classes,
        class_names=class_names,
    )


def text_samples(
    texts: Sequence[str], data: str, column: str, index: NDArray[np.int64], labels: NDArray[Any] | None = None
) -> Samples:
    """The rows `index` of a column of texts, with the column of true classes."""
    classes, class_names = _class_column(labels, index)
    return Samples(
        data=data,
        noun="text",
        n_all=len(texts),
        index=index,
        columns=[column],
        texts=[texts[i] for i in index.tolist()],
        classes=classes,
        class_names=class_names,
    )


def telling_columns(values: NDArray[np.float64], states: NDArray[np.intp]) -> NDArray[np.intp]:
    """The columns in which the states differ most, at most 40, in the order of the table.

    Examples
    --------
    >>> values = np.random.default_rng(0).normal(size=(50, 60))
    >>> values[:25, 7] += 9.0
    >>> 7 in telling_columns(values, np.repeat([0, 1], 25))
    True
    """
    d = values.shape[1]
    if d <= MAX_COLUMNS:
        return np.arange(d)
    scaled = standardized(values)
    counts = np.bincount(states)
    spread = np.zeros(d)
    for k in np.flatnonzero(counts):
        spread += counts[k] * scaled[states == k].mean(axis=0) ** 2
    return np.sort(np.argsort(-spread, kind="stable")[:MAX_COLUMNS])


def standardized(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Differences from the mean of each column in standard deviations; 0 for constant columns."""
    std = values.std(axis=0)
    scaled: NDArray[np.float64] = (values - values.mean(axis=0)) / np.where(std > 0, std, 1.0)
    return scaled


def _class_column(labels: NDArray[Any] | None, index: NDArray[np.int64]) -> tuple[NDArray[np.int64] | None, list[str]]:
    """The classes of some rows, from 0, with their names; None without a column of classes."""
    if labels is None:
        return None, []
    found, inverse = np.unique(np.array([str(value) for value in labels[index]]), return_inverse=True)
    if len(found) > MAX_CLASSES:
        raise ValueError(f"true classes must be at most {MAX_CLASSES:,}, got {len(found):,} different values")
    return inverse.astype(np.int64), found.tolist()


def _classes(labels: NDArray[np.int64], names: Sequence[str] | None) -> tuple[NDArray[np.int64] | None, list[str]]:
    """Labels from 0 with their names; None if an image has no label (a negative one)."""
    if labels.min(initial=0) < 0:
        return None, []
    n = int(labels.max(initial=0)) + 1
    given = list(names or [])
    return labels.astype(np.int64), [given[k] if k < len(given) else str(k) for k in range(max(n, len(given)))]
