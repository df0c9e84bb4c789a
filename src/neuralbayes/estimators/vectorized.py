"""Data frames in estimators: the vectorizer of an estimator, `vectorizer_`, converts them to numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import HasMethods

VECTORIZER = HasMethods(["fit", "transform", "get_feature_names_out", "state"])
"""Constraint of the parameter `vectorizer`: a :class:`neuralbayes.TableVectorizer`, which is imported when needed."""


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
    from neuralbayes.data.frames import as_frame, is_frame

    if reset:
        vectorizer = getattr(estimator, "vectorizer", None)
        if vectorizer == "auto":
            from neuralbayes.estimators.table_vectorizer import TableVectorizer

            vectorizer = TableVectorizer() if is_frame(X) and not _holds_numbers(X) else None
        if vectorizer is not None:
            estimator.vectorizer_ = clone(vectorizer).fit(X)
    fitted = getattr(estimator, "vectorizer_", None)
    if fitted is None:
        return X
    if not is_frame(X):
        raise ValueError(f"`X` must be a data frame with the columns that were fitted, got {type(X).__name__}")
    return as_frame(fitted.transform(X), fitted.get_feature_names_out().tolist())


def _holds_numbers(frame: Any) -> bool:
    """Whether all columns of a data frame are numbers without missing cells."""
    from neuralbayes.data.frames import as_frame

    frame = as_frame(frame)
    numeric = all(getattr(dtype, "kind", "O") in "iufb" for dtype in frame.dtypes)
    return numeric and not bool(np.asarray(frame.isna()).any())
