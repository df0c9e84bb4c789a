"""What estimators are given: rows as checked arrays, images as sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, validate_data

from neuralbayes.clusters.hints import Hints, make_hints
from neuralbayes.data.sources import Images, ImageSource
from neuralbayes.estimators.vectorized import vectorized

Rows = Images | ImageSource | ArrayLike
"""What estimators take: rows of numbers, or images."""

LARGEST = 1e150


def as_rows(estimator: BaseEstimator, X: Any, *, reset: bool) -> NDArray[Any]:
    """`X` as a finite float32 or float64 array of shape (n_samples, n_features), which `estimator` notes or expects.

    At least two rows are asked for where they are fitted (`reset`). Data frames are turned into numbers where the
    estimator has a vectorizer.
    """
    numbers = vectorized(estimator, _numpy(X), reset=reset)
    checked: NDArray[Any] = validate_data(
        estimator, numbers, reset=reset, dtype=[np.float64, np.float32], ensure_min_samples=2 if reset else 1
    )
    largest = max(-float(checked.min()), float(checked.max()))
    if largest > LARGEST:
        raise ValueError(f"`X` must have values of at most {LARGEST:g}, whose squares can be added, got {largest:g}")
    return checked


def as_images(X: Any, shape: Sequence[int] | None = None) -> ImageSource | None:
    """`X` as a source of images, of the given shape (H, W, C) where they are read from files; None: it has rows."""
    if isinstance(X, ImageSource):
        return X
    if getattr(X, "ndim", 0) == 2:
        return None
    from neuralbayes.data.given import images_given  # pictures need Pillow, which rows do not

    return images_given(X, shape)


def as_fitted(estimator: BaseEstimator, X: Any, image_shape: Sequence[int] | None) -> NDArray[Any] | ImageSource:
    """`X` as rows where `image_shape` is None, else as images; of the kind that `estimator` was fitted to."""
    images = as_images(X, image_shape)
    if (images is None) != (image_shape is None):
        fitted, got = ("images", "rows") if images is None else ("rows", "images")
        raise ValueError(f"X must be {fitted}, as in fit, got {got}")
    if images is not None and list(images.shape) != list(image_shape or ()):
        raise ValueError(f"X must be images of shape {tuple(image_shape or ())}, as in fit, got {images.shape}")
    return as_rows(estimator, X, reset=False) if images is None else images


def as_hints(
    n_samples: int,
    sample_weight: ArrayLike | None,
    known: ArrayLike | None,
    must_link: ArrayLike | None,
    cannot_link: ArrayLike | None,
) -> tuple[NDArray[np.float64] | None, Hints, NDArray[np.int64]]:
    """Checked weights (n_samples,) or None, hints about the samples of positive weight, and the indices of these."""
    everything = np.arange(n_samples)
    weight = None
    if sample_weight is not None:
        weight = _check_sample_weight(sample_weight, everything[:, None], dtype=np.float64, ensure_non_negative=True)
        everything = np.flatnonzero(weight > 0.0)
        if not len(everything):
            raise ValueError("`sample_weight` must be positive for some samples, got only 0")
    hints = make_hints(n_samples, weight=weight, known=known, must_link=must_link, cannot_link=cannot_link)
    return weight, hints if weight is None else hints.of(everything), everything


def _numpy(X: Any) -> Any:
    """A tensor as an array, everything else as it is; NumPy knows no bfloat16."""
    if not isinstance(X, torch.Tensor):
        return X
    return X.detach().cpu().numpy() if X.dtype != torch.bfloat16 else X.detach().cpu().float().numpy()
