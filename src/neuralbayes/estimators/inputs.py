"""What estimators are given: rows as checked arrays, images as sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from neuralbayes.data.sources import Images, ImageSource, as_source

Rows = Images | ImageSource | ArrayLike
"""What estimators take: rows of numbers, or images."""

LARGEST = 1e150


def as_rows(estimator: BaseEstimator, X: Any, *, reset: bool) -> NDArray[Any]:
    """`X` as a finite float32 or float64 array of shape (n_samples, n_features), which `estimator` notes or expects.

    At least two rows are asked for where they are fitted (`reset`).
    """
    checked: NDArray[Any] = validate_data(
        estimator, _numpy(X), reset=reset, dtype=[np.float64, np.float32], ensure_min_samples=2 if reset else 1
    )
    largest = max(-float(checked.min()), float(checked.max()))
    if largest > LARGEST:
        raise ValueError(f"`X` must have values of at most {LARGEST:g}, whose squares can be added, got {largest:g}")
    return checked


def as_images(X: Any) -> ImageSource | None:
    """`X` as a source of images where it is one, or an array of three or four dimensions; else None: it has rows."""
    if isinstance(X, ImageSource):
        return X
    return as_source(_numpy(X)) if getattr(X, "ndim", 2) in (3, 4) else None


def as_fitted(estimator: BaseEstimator, X: Any, image_shape: Sequence[int] | None) -> NDArray[Any] | ImageSource:
    """`X` as rows where `image_shape` is None, else as images; of the kind that `estimator` was fitted to."""
    images = as_images(X)
    if (images is None) != (image_shape is None):
        fitted, got = ("images", "rows") if images is None else ("rows", "images")
        raise ValueError(f"X must be {fitted}, as in fit, got {got}")
    if images is not None and list(images.shape) != list(image_shape or ()):
        raise ValueError(f"X must be images of shape {tuple(image_shape or ())}, as in fit, got {images.shape}")
    return as_rows(estimator, X, reset=False) if images is None else images


def _numpy(X: Any) -> Any:
    """A tensor as an array, everything else as it is; NumPy knows no bfloat16."""
    if not isinstance(X, torch.Tensor):
        return X
    return X.detach().cpu().numpy() if X.dtype != torch.bfloat16 else X.detach().cpu().float().numpy()
