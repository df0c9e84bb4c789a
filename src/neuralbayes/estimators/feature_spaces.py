"""Several feature spaces side by side, with equal weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


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
    for number, space in enumerate(_checked(spaces)):
        variance = float(space.var(axis=0, dtype=np.float64).sum())
        if not np.isfinite(variance) or variance <= 0.0:
            raise ValueError(
                f"`features[{number}]` must be finite and have rows that differ, got variance {variance:g}"
            )
        scales.append(variance**-0.5)
    return scales


def stack_spaces(spaces: Any, scales: Sequence[float]) -> Array:
    """Scale and join feature spaces: (n, d_1), (n, d_2), ... -> (n, d_1 + d_2 + ...)."""
    checked = _checked(spaces)
    if len(checked) != len(scales):
        raise ValueError(f"X must have {len(scales)} feature spaces, as in fit, got {len(checked)}")
    return np.hstack([np.asarray(space, np.float32) * scale for space, scale in zip(checked, scales, strict=True)])


def _checked(spaces: Any) -> list[Array]:
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
