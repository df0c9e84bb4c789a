"""Data frames that a fitted clusterer describes: the names of columns, and the rows as it takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

from neuralbayes.data.table_formats import import_pandas

if TYPE_CHECKING:
    import pandas as pd


def column_names(estimator: BaseEstimator) -> list[str]:
    """Names of the fitted columns; x0, x1, ... where they have none."""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"x{j}" for j in range(estimator.n_features_in_)] if names is None else [str(name) for name in names]


def as_frame(estimator: BaseEstimator, X: Any) -> pd.DataFrame:
    """`X` as a DataFrame; columns of an array have the names of those that were fitted, where it has as many."""
    pandas = import_pandas()
    if hasattr(X, "to_pandas"):  # polars, pyarrow
        X = X.to_pandas()
    if not isinstance(X, pandas.DataFrame):
        array = np.asarray(X)
        if array.ndim != 2:
            raise ValueError(f"`X` must have shape (n_samples, n_columns), got {array.shape}")
        names = column_names(estimator)
        if len(names) != array.shape[1]:
            names = [f"x{j}" for j in range(array.shape[1])]
        X = pandas.DataFrame(array, columns=names)
    frame: pd.DataFrame = X
    if not len(frame):
        raise ValueError("`X` must have at least one row, got none")
    return frame


def fitted_columns(estimator: BaseEstimator, frame: pd.DataFrame) -> Any:
    """The fitted columns of `frame` as the estimator takes them, or None where some are missing or not complete."""
    from pandas.api.types import is_numeric_dtype

    vectorizer = getattr(estimator, "vectorizer_", None)
    if vectorizer is not None:
        return frame if set(vectorizer.encoders_) <= set(map(str, frame.columns)) else None
    names = column_names(estimator)
    if not set(names) <= set(map(str, frame.columns)):
        return None
    chosen = frame.set_axis([str(name) for name in frame.columns], axis=1)[names]
    if chosen.shape[1] != len(names) or not all(is_numeric_dtype(dtype) for dtype in chosen.dtypes):
        return None
    values = chosen.to_numpy(dtype=np.float64, na_value=np.nan)
    if not np.isfinite(values).all():
        return None
    return chosen if hasattr(estimator, "feature_names_in_") else values
