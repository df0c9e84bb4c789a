"""Convert tables of any library to pandas data frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


def is_frame(X: Any) -> bool:
    """Whether `X` is a data frame, of pandas or polars."""
    return type(X).__name__ == "DataFrame" and hasattr(X, "columns") and hasattr(X, "dtypes")


def as_frame(X: Any, names: Sequence[str] | None = None) -> pd.DataFrame:
    """Convert `X` to a pandas data frame.

    Parameters
    ----------
    X : DataFrame of pandas or polars, or array-like of shape (n_samples, n_features)
    names : sequence of str, optional
        Names of the columns of an array; by default x0, x1, ...

    Examples
    --------
    >>> as_frame([[1.0, 2.0]]).columns.tolist()
    ['x0', 'x1']
    """
    from neuralbayes.data.table_formats import import_pandas

    pandas = import_pandas()
    frame: pd.DataFrame
    if isinstance(X, pandas.DataFrame):
        frame = X
        return frame
    if is_frame(X):  # polars: pandas gets its columns as NumPy arrays
        frame = pandas.DataFrame({name: pandas.Series(X[name].to_list()) for name in X.columns})
        return frame
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(f"`X` must be a data frame or have shape (n_samples, n_features), got shape {array.shape}")
    if names is not None and len(names) != array.shape[1]:
        raise ValueError(f"`X` must have the {len(names)} columns that were fitted, got {array.shape[1]}")
    given = [f"x{i}" for i in range(array.shape[1])] if names is None else list(names)
    frame = pandas.DataFrame(array, columns=given, copy=False)
    return frame
