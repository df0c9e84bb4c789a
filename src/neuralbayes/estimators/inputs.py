"""Inputs of estimators: rows as checked arrays, images as sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.validation import validate_data
from torch import Tensor

from neuralbayes.data.sources import Images, ImageSource
from neuralbayes.estimators.vectorized import vectorized

Rows = Images | ImageSource | ArrayLike
"""Inputs of estimators: rows of numbers, or images."""

LARGEST = 1e150

NUMBERS = 2**18
"""Numbers per check; they stay in the cache of a core for the second pass."""

HALF_EXPONENT = 0x7C00
"""Exponent bits of a float16, which are all set in NaN and infinity."""

BLOCK = 2000
"""Rows per check of lengths."""


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Sparse rows, read as sparse tensors."""

    matrix: sp.csr_array

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the numbers."""
        dtype: np.dtype[Any] = self.matrix.dtype
        return dtype

    def read(self, indices: slice | NDArray[np.int64]) -> Tensor:
        """The rows at some indices: (m, n_features)."""
        some = self.matrix[indices].tocoo()
        places = torch.from_numpy(np.stack([some.row, some.col]).astype(np.int64))
        return torch.sparse_coo_tensor(
            places, torch.from_numpy(some.data), some.shape, is_coalesced=True, check_invariants=True
        )


def as_rows(estimator: BaseEstimator, X: Any, *, reset: bool) -> NDArray[Any]:
    """Validate `X` as a finite floating-point array of shape (n_samples, n_features), and record or check its columns.

    The floating-point type is kept. A memory-mapped array is not copied, but checked one block at a time. `fit`
    (`reset`) requires at least two rows. Data frames are converted to numbers if the estimator has a vectorizer.
    """
    numbers = vectorized(estimator, _numpy(X), reset=reset)
    checked: NDArray[Any] = validate_data(
        estimator,
        numbers,
        reset=reset,
        dtype=[np.float64, np.float32, np.float16],
        ensure_all_finite=False,  # below, in one pass
        ensure_min_samples=2 if reset else 1,
    )
    _check_values(estimator, checked)
    return checked


def as_any_rows(estimator: BaseEstimator, X: Any, *, reset: bool) -> NDArray[Any] | SparseRows:
    """Like `as_rows`, but also accepts sparse rows if the tags of the estimator allow them."""
    if not (sp.issparse(X) and get_tags(estimator).input_tags.sparse):
        return as_rows(estimator, X, reset=reset)
    checked = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,
        ensure_min_samples=2 if reset else 1,
    )
    matrix = sp.csr_array(checked)
    _check_values(estimator, matrix.data[:, None])
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # do not change the caller's matrix
        matrix.sum_duplicates()
    return SparseRows(matrix)


def check_directions(rows: NDArray[Any] | SparseRows) -> None:
    """Raise a ValueError that names the first row of zeros, because it has no direction."""
    for start in range(0, len(rows), BLOCK):
        if isinstance(rows, SparseRows):
            some = abs(rows.matrix[start : start + BLOCK]).sum(axis=1) > 0.0
        else:
            some = rows[start : start + BLOCK].any(axis=1)
        if not some.all():
            raise ValueError(
                f"X must have no row of zeros with metric='cosine', got row {start + int(some.argmin())}: it has no "
                "direction. Drop such rows, or use metric='euclidean'"
            )


def as_images(X: Any, shape: Sequence[int] | None = None) -> ImageSource | None:
    """`X` as a source of images, resized to the given shape (H, W, C) if they are read from files; None for rows."""
    if isinstance(X, ImageSource):
        return X
    if getattr(X, "ndim", 0) == 2:
        return None
    from neuralbayes.data.given import images_given  # images need Pillow, rows do not

    return images_given(X, shape)


def as_fitted(
    estimator: BaseEstimator, X: Any, image_shape: Sequence[int] | None
) -> NDArray[Any] | SparseRows | ImageSource:
    """`X` as rows if `image_shape` is None, otherwise as images, matching the fit of `estimator`."""
    images = as_images(X, image_shape)
    if (images is None) != (image_shape is None):
        fitted, got = ("images", "rows") if images is None else ("rows", "images")
        raise ValueError(f"X must be {fitted}, as in fit, got {got}")
    if images is not None and list(images.shape) != list(image_shape or ()):
        raise ValueError(f"X must be images of shape {tuple(image_shape or ())}, as in fit, got {images.shape}")
    return as_any_rows(estimator, X, reset=False) if images is None else images


def _check_values(estimator: BaseEstimator, values: NDArray[Any]) -> None:
    """Raise a ValueError if a value is missing, infinite or too large to be squared."""
    step = max(1, NUMBERS // max(1, values.shape[1]))
    for start in range(0, len(values), step):
        block = values[start : start + step]
        if block.dtype == np.float16 and (block.view(np.uint16) & HALF_EXPONENT).max() < HALF_EXPONENT:
            continue  # finite and small; NumPy has no fast minimum for float16
        largest = max(-float(block.min()), float(block.max()))
        if not largest <= LARGEST:  # `not`: NaN fails every comparison
            assert_all_finite(block, input_name="X", estimator_name=type(estimator).__name__)
            raise ValueError(
                f"`X` must have values of at most {LARGEST:g}, whose squares can be added, got {largest:g}"
            )


def _numpy(X: Any) -> Any:
    """Convert a tensor to an array, and leave everything else unchanged. NumPy has no bfloat16."""
    if not isinstance(X, torch.Tensor):
        return X
    return X.detach().cpu().numpy() if X.dtype != torch.bfloat16 else X.detach().cpu().float().numpy()
