"""Data frames in estimators: turned into numbers by the vectorizer of an estimator, which keeps it as `vectorizer_`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import HasMethods

VECTORIZER = HasMethods(["fit", "transform", "get_feature_names_out", "state"])
"""What a parameter `vectorizer` must be: a :class:`neuralbayes.TableVectorizer`, which is loaded when it is needed."""


def vectorized(estimator: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """`X` as a data frame of numbers where `estimator` has a vectorizer, or finds one by itself; else as it is.

    Parameters
    ----------
    estimator : estimator
        With a parameter `vectorizer`: a TableVectorizer, None, or "auto", which takes one for data frames that hold
        more than finite numbers.
    X : array-like or DataFrame
    reset : bool
        Whether `X` is fitted, and the vectorizer too.
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
    """Whether all columns of a data frame are numbers, none of them missing."""
    from neuralbayes.data.frames import as_frame

    frame = as_frame(frame)
    numeric = all(getattr(dtype, "kind", "O") in "iufb" for dtype in frame.dtypes)
    return numeric and not bool(np.asarray(frame.isna()).any())
