"""Checks of the fitted attributes of a saved estimator. Any other value in a file is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

Check = Callable[[Any], bool]
"""Whether an attribute may have this value."""


def count(value: Any) -> bool:
    """A non-negative integer that is small enough for a size."""
    return type(value) is int and 0 <= value < 2**63


def counts(value: Any) -> bool:
    """A non-empty list of such integers."""
    return isinstance(value, list) and bool(value) and all(map(count, value))


def number(value: Any) -> bool:
    """A finite number."""
    return type(value) in (int, float) and math.isfinite(value)


def numbers(value: Any) -> bool:
    """A list of finite numbers."""
    return isinstance(value, list) and all(map(number, value))


def columns(value: Any) -> bool:
    """A mapping from names to lists of equal length, of finite numbers and None."""
    return (
        isinstance(value, dict)
        and all(isinstance(c, list) and all(v is None or number(v) for v in c) for c in value.values())
        and len({len(c) for c in value.values()}) <= 1
    )


def shape_or_none(value: Any) -> bool:
    """[H, W, C] of images, or None."""
    return value is None or (counts(value) and len(value) == 3)


def names(value: Any) -> bool:
    """An array of text."""
    return isinstance(value, np.ndarray) and value.ndim == 1 and all(isinstance(name, str) for name in value)


def one_of(*words: str) -> Check:
    """A check for one of several words."""
    return lambda value: isinstance(value, str) and value in words


def array(kind: str, n_dimensions: int | None = None) -> Check:
    """A check for arrays of a NumPy kind, such as "f", and a number of dimensions."""

    def check(value: Any) -> bool:
        right = isinstance(value, np.ndarray) and value.dtype.kind == kind
        return right and n_dimensions in (None, value.ndim)

    return check


def check_features(estimator: BaseEstimator) -> None:
    """Raise a ValueError unless the shape of images and the names of columns fit the number of features."""
    if estimator.image_shape_ is not None and math.prod(estimator.image_shape_) != estimator.n_features_in_:
        raise ValueError(f"'n_features_in_' must be those of {estimator.image_shape_}, got {estimator.n_features_in_}")
    if len(getattr(estimator, "feature_names_in_", ())) not in (0, estimator.n_features_in_):
        raise ValueError(f"'feature_names_in_' must name {estimator.n_features_in_} columns")
