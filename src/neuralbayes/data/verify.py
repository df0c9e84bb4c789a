"""Verify data sets: shapes, counts and, if known, SHA-256."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.layout import Arrays


@dataclass(frozen=True)
class Part:
    """Expected properties of one part (train, test, unlabeled) of a data set.

    Parameters
    ----------
    n : int
        Number of images.
    images_sha256, labels_sha256 : str, optional
        SHA-256 of the decoded arrays, see :func:`sha256`.
    per_class : int, optional
        Number of images per class, if it is the same for all classes.
    labeled : bool, default=True
    """

    n: int
    images_sha256: str | None = None
    labels_sha256: str | None = None
    per_class: int | None = None
    labeled: bool = True


def sha256(array: NDArray[np.generic]) -> str:
    """SHA-256 of the values of an array in C order and little-endian, on any computer.

    The order of the samples matters: every data set has an official order, which all sources keep, and experiments on
    "the first 10,000" images depend on it.

    Examples
    --------
    >>> sha256(np.zeros(3, np.uint8))[:16]
    '709e80c88487a241'
    """
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return hashlib.sha256(little.data.cast("B")).hexdigest()


def expected_digests(parts: Mapping[str, Part]) -> dict[str, str | None]:
    """SHA-256 by array name; None if unknown."""
    digests: dict[str, str | None] = {}
    for name, part in parts.items():
        digests[f"{name}_images"] = part.images_sha256
        if part.labeled:
            digests[f"{name}_labels"] = part.labels_sha256
    return digests


def check_structure(arrays: Arrays, parts: Mapping[str, Part], shape: tuple[int, int, int], n_classes: int) -> None:
    """Raise a ValueError unless all arrays exist with the right shapes, types, label ranges and class counts."""
    if set(arrays) != set(expected_digests(parts)):
        raise ValueError(f"it must hold the arrays {sorted(expected_digests(parts))}, got {sorted(arrays)}")
    for name, part in parts.items():
        images = arrays[f"{name}_images"]
        if images.dtype != np.uint8 or images.shape != (part.n, *shape):
            raise ValueError(f"{name} images must be uint8 of {(part.n, *shape)}, got {images.dtype} of {images.shape}")
        if part.labeled:
            _check_labels(arrays[f"{name}_labels"], name, part, n_classes)


def _check_labels(labels: NDArray[np.generic], name: str, part: Part, n_classes: int) -> None:
    if labels.dtype != np.int64 or labels.shape != (part.n,):
        raise ValueError(f"{name} labels must be int64 of {(part.n,)}, got {labels.dtype} of {labels.shape}")
    values = labels.astype(np.int64)
    if values.min() < 0 or values.max() >= n_classes:
        raise ValueError(f"{name} labels must be 0 to {n_classes - 1}, got {values.min()} to {values.max()}")
    counts = np.bincount(values, minlength=n_classes)
    if part.per_class is not None and (counts != part.per_class).any():
        low, high = counts.min(), counts.max()
        raise ValueError(f"{name} must have {part.per_class} images of each class, got {low} to {high}")


def check_digests(arrays: Arrays, parts: Mapping[str, Part]) -> dict[str, str]:
    """SHA-256 of every array; raises a ValueError that names the first unexpected one."""
    digests = {name: sha256(array) for name, array in arrays.items()}
    for name, expected in expected_digests(parts).items():
        if expected is not None and digests[name] != expected:
            raise ValueError(f"SHA-256 of {name} must be {expected}, got {digests[name]}: damaged, or other data")
    return digests
