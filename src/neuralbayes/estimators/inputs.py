"""Inputs of estimators: rows as checked arrays, images as sources, features and hints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import validate_data

from neuralbayes.data.columns import as_frame, is_frame
from neuralbayes.data.sources import ImageSource

Rows = ImageSource | ArrayLike
"""Inputs of estimators: rows of numbers, or images."""

Samples: TypeAlias = NDArray[Any] | sp.csr_array | ImageSource
"""Checked inputs."""

VECTORIZER = HasMethods(["fit", "transform", "get_feature_names_out", "state"])
"""Constraint of the parameter `vectorizer`: a :class:`neuralbayes.TableVectorizer`, which is imported when needed."""

LARGEST = 1e150

NUMBERS = 2**18
"""Numbers per check; they stay in the cache of a core for the second pass."""

HALF_EXPONENT = 0x7C00
"""Exponent bits of a float16, which are all set in NaN and infinity."""

BLOCK = 2000
"""Rows per check of lengths."""


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


def as_any_rows(estimator: BaseEstimator, X: Any, *, reset: bool) -> NDArray[Any] | sp.csr_array:
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
    return matrix


def check_directions(rows: NDArray[Any] | sp.csr_array) -> None:
    """Raise a ValueError that names the first row of zeros, because it has no direction."""
    for start in range(0, n_rows(rows), BLOCK):
        block = rows[start : start + BLOCK]
        some = abs(block).sum(axis=1) > 0.0 if sp.issparse(block) else block.any(axis=1)
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
    from neuralbayes.data.images import images_given

    return images_given(X, shape)


def as_fitted(estimator: BaseEstimator, X: Any, image_shape: Sequence[int] | None) -> Samples:
    """`X` as rows if `image_shape` is None, otherwise as images, matching the fit of `estimator`."""
    images = as_images(X, image_shape)
    if (images is None) != (image_shape is None):
        fitted, got = ("images", "rows") if images is None else ("rows", "images")
        raise ValueError(f"X must be {fitted}, as in fit, got {got}")
    if images is not None and list(images.shape) != list(image_shape or ()):
        raise ValueError(f"X must be images of shape {tuple(image_shape or ())}, as in fit, got {images.shape}")
    return as_any_rows(estimator, X, reset=False) if images is None else images


def n_rows(samples: Samples) -> int:
    """Number of samples; sparse matrices have no length."""
    return int(samples.shape[0]) if isinstance(samples, np.ndarray | sp.csr_array) else len(samples)


def read(samples: Samples, indices: NDArray[np.int64]) -> Any:
    """The samples at some indices, which need not fit into memory together: rows, or images (n, C, H, W) in [0, 1]."""
    if not isinstance(samples, np.ndarray | sp.csr_array):
        return np.moveaxis(samples.read(indices), 3, 1).astype(np.float32) / np.float32(255.0)
    consecutive = len(indices) > 0 and bool((np.diff(indices) == 1).all())
    rows = samples[slice(int(indices[0]), int(indices[-1]) + 1) if consecutive else indices]
    if sp.issparse(rows):
        return rows
    rows = np.array(rows)  # copy: a mapped file must not be written to
    return rows.astype(np.float32) if rows.dtype == np.float16 else rows


def vectorized(estimator: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """`X` as a data frame of numbers if `estimator` has or needs a vectorizer; otherwise `X` itself.

    Parameters
    ----------
    estimator : estimator
        With a parameter `vectorizer`: a TableVectorizer, None, or "auto", which creates one for data frames that
        contain more than finite numbers.
    X : array-like or DataFrame
    reset : bool
        Whether to fit the vectorizer to `X`.
    """
    if reset:
        vectorizer = getattr(estimator, "vectorizer", None)
        if vectorizer == "auto":
            vectorizer = None
            if is_frame(X) and not _holds_numbers(X):
                from neuralbayes.data.vectorizer import TableVectorizer

                vectorizer = TableVectorizer()
        if vectorizer is not None:
            estimator.vectorizer_ = clone(vectorizer).fit(X)
    fitted = getattr(estimator, "vectorizer_", None)
    if fitted is None:
        return X
    if not is_frame(X):
        raise ValueError(f"`X` must be a data frame with the columns that were fitted, got {type(X).__name__}")
    return as_frame(fitted.transform(X), fitted.get_feature_names_out().tolist())


def features_for(X: Any, features: Any) -> tuple[Any, list[float] | None]:
    """Features that replace `X`, with several spaces joined, and their scales."""
    scales = None
    if isinstance(features, list | tuple) and not np.isscalar(features[0]) and np.ndim(features[0]) == 2:
        scales = space_scales(features)
        features = stack_spaces(features, scales)
    if not isinstance(X, str) and hasattr(X, "__len__") and len(X) != len(features):
        raise ValueError(f"`features` must have a row for each of {len(X)} samples, got {len(features)} rows")
    return features, scales


def space_scales(spaces: Sequence[Any]) -> list[float]:
    """Factors that scale each feature space to a total variance of 1.

    Examples
    --------
    >>> space_scales([np.array([[0.0, 1.0], [2.0, 1.0]]), np.array([[10.0], [-10.0]])])
    [1.0, 0.1]
    """
    scales = []
    for number, space in enumerate(_checked_spaces(spaces)):
        variance = float(space.var(axis=0, dtype=np.float64).sum())
        if not np.isfinite(variance) or variance <= 0.0:
            raise ValueError(
                f"`features[{number}]` must be finite and have rows that differ, got variance {variance:g}"
            )
        scales.append(variance**-0.5)
    return scales


def stack_spaces(spaces: Any, scales: Sequence[float]) -> NDArray[np.float32]:
    """Scale and join feature spaces: (n, d_1), (n, d_2), ... -> (n, d_1 + d_2 + ...)."""
    checked = _checked_spaces(spaces)
    if len(checked) != len(scales):
        raise ValueError(f"X must have {len(scales)} feature spaces, as in fit, got {len(checked)}")
    return np.hstack([np.asarray(space, np.float32) * scale for space, scale in zip(checked, scales, strict=True)])


def _checked_spaces(spaces: Any) -> list[NDArray[Any]]:
    if not isinstance(spaces, list | tuple):
        raise TypeError(f"feature spaces must be a list of arrays (n_samples, n_features), got {type(spaces).__name__}")
    arrays = [np.asarray(space) for space in spaces]
    for number, array in enumerate(arrays):
        if array.ndim != 2 or len(array) != len(arrays[0]):
            raise ValueError(
                f"`features[{number}]` must have shape ({len(arrays[0])}, n_features), with as many rows as the first, "
                f"got {array.shape}"
            )
    return arrays


def _holds_numbers(frame: Any) -> bool:
    """Whether all columns of a data frame are numbers without missing cells."""
    frame = as_frame(frame)
    numeric = all(getattr(dtype, "kind", "O") in "iufb" for dtype in frame.dtypes)
    return numeric and not bool(np.asarray(frame.isna()).any())


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
    if not type(X).__module__.startswith("torch") or not hasattr(X, "detach"):
        return X
    X = X.detach().cpu()
    return X.float().numpy() if "bfloat16" in str(X.dtype) else X.numpy()
