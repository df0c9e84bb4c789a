"""Data frames for the description of clusters: names of columns, and rows as input of the clusterer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

from neuralbayes.data.columns import as_frame, is_frame

if TYPE_CHECKING:
    import pandas as pd


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
    from pandas.api.types import is_numeric_dtype

    names = column_names(estimator)
    if not set(names) <= set(frame.columns):
        return None
    if hasattr(estimator, "vectorizer_"):
        return frame
    chosen = frame[names]
    if chosen.shape[1] != len(names) or not all(is_numeric_dtype(dtype) for dtype in chosen.dtypes):
        return None
    values = chosen.to_numpy(dtype=np.float64, na_value=np.nan)
    if not np.isfinite(values).all():
        return None
    return chosen if hasattr(estimator, "feature_names_in_") else values
