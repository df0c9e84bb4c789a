"""Inputs of estimators: rows as checked arrays, images as sources, features, and the frames that describe them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.validation import validate_data

from neuralbayes.data.columns import as_frame, is_frame
from neuralbayes.data.sources import ImageSource

if TYPE_CHECKING:
    import pandas as pd

Rows = ImageSource | ArrayLike  # inputs of estimators: rows of numbers, or images
Samples: TypeAlias = NDArray[Any] | sp.csr_array | ImageSource  # checked inputs

LARGEST = 1e150  # of a value, whose squares can then be added
NUMBERS = 2**18  # values per check, which stay in the cache of a core for the second pass
BLOCK = 2000  # rows per check of lengths
HALF_EXPONENT = 0x7C00  # exponent bits of a float16, which are all set in NaN and infinity


def as_rows(estimator: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """Validate `X` as finite floating-point rows (n_samples, n_features), and record or check its columns.

    The floating-point type is kept, and a memory-mapped array is not copied. `fit` (`reset`) requires two rows.
    Rows are a csr_array if `X` is sparse and the tags of the estimator allow it, else an ndarray.
    """
    sparse = sp.issparse(X) and get_tags(estimator).input_tags.sparse
    checked = validate_data(
        estimator,
        X if sparse else vectorized(estimator, _numpy(X), reset=reset),
        reset=reset,
        accept_sparse="csr" if sparse else False,
        dtype=[np.float64, np.float32] if sparse else [np.float64, np.float32, np.float16],
        ensure_all_finite=False,  # below, in one pass
        ensure_min_samples=2 if reset else 1,
    )
    if not sparse:
        _check_values(estimator, checked)
        return checked
    matrix = sp.csr_array(checked)
    _check_values(estimator, matrix.data[:, None])
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # do not change the caller's matrix
        matrix.sum_duplicates()
    return matrix


def check_directions(rows: Any) -> None:
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
    samples: Samples = as_rows(estimator, X, reset=False) if images is None else images
    return samples


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
    """`X` as a data frame of numbers if `estimator` has or, with `reset`, needs a vectorizer; else `X`.

    The parameter "auto" makes one for data frames that contain more than finite numbers.
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
        features, scales = stack_spaces(features)
    if not isinstance(X, str) and hasattr(X, "__len__") and len(X) != len(features):
        raise ValueError(f"`features` must have a row for each of {len(X)} samples, got {len(features)} rows")
    return features, scales


def stack_spaces(spaces: Any, scales: list[float] | None = None) -> tuple[NDArray[np.float32], list[float]]:
    """Scale and join feature spaces: (n, d_1), (n, d_2), ... -> (n, d_1 + d_2 + ...), and their scales.

    By default, each space is scaled to a total variance of 1.

    Examples
    --------
    >>> stack_spaces([np.array([[0.0, 1.0], [2.0, 1.0]]), np.array([[10.0], [-10.0]])])[1]
    [1.0, 0.1]
    """
    if not isinstance(spaces, list | tuple):
        raise TypeError(f"feature spaces must be a list of arrays (n_samples, n_features), got {type(spaces).__name__}")
    arrays = [np.asarray(space) for space in spaces]
    for number, array in enumerate(arrays):
        if array.ndim != 2 or len(array) != len(arrays[0]):
            raise ValueError(
                f"`features[{number}]` must have shape ({len(arrays[0])}, n_features), with as many rows as the first, "
                f"got {array.shape}"
            )
    if scales is None:
        variances = [float(array.var(axis=0, dtype=np.float64).sum()) for array in arrays]
        for number, variance in enumerate(variances):
            if not 0.0 < variance < np.inf:
                raise ValueError(f"`features[{number}]` must be finite and have rows that differ, got {variance=:g}")
        scales = [variance**-0.5 for variance in variances]
    if len(arrays) != len(scales):
        raise ValueError(f"X must have {len(scales)} feature spaces, as in fit, got {len(arrays)}")
    return np.hstack([array.astype(np.float32) * scale for array, scale in zip(arrays, scales, strict=True)]), scales


def column_names(estimator: BaseEstimator) -> list[str]:
    """Names of the fitted columns, or of the columns of the table if it was vectorised; x0, x1, ... without names."""
    vectorizer = getattr(estimator, "vectorizer_", None)
    names = getattr(estimator, "feature_names_in_", None) if vectorizer is None else list(vectorizer.encoders_)
    return [f"x{j}" for j in range(estimator.n_features_in_)] if names is None else [str(name) for name in names]


def named_frame(estimator: BaseEstimator, X: Any) -> pd.DataFrame:
    """`X` as a DataFrame; an array gets the names of the fitted columns if it has as many."""
    if not is_frame(X):
        X = np.asarray(X)
    names = column_names(estimator)
    frame = as_frame(X, names if np.ndim(X) == 2 and np.shape(X)[1] == len(names) else None)
    if not len(frame):
        raise ValueError("`X` must have at least one row, got none")
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def fitted_columns(estimator: BaseEstimator, frame: pd.DataFrame) -> Any:
    """The fitted columns of `frame` as input of the estimator; None if some are missing or incomplete."""
    names = column_names(estimator)
    if not set(names) <= set(frame.columns):
        return None
    if hasattr(estimator, "vectorizer_"):
        return frame
    chosen = frame[names]
    if chosen.shape[1] != len(names) or not _holds_numbers(chosen):
        return None
    values = chosen.to_numpy(dtype=np.float64)
    if not np.isfinite(values).all():
        return None
    return chosen if hasattr(estimator, "feature_names_in_") else values


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
