"""Project rows with any number of features to the plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_PCA_ENTRIES = 10_000_000  # elements of the decomposed matrix: about two seconds


@dataclass(frozen=True)
class Plane:
    """Points in the plane, with the names of their axes.

    Attributes
    ----------
    points : ndarray of shape (n, 2)
    axis_names : tuple of two str
        The second is empty if the height has no meaning.
    how : str
        The projection in words, to be appended to a title.
    """

    points: NDArray[np.float64]
    axis_names: tuple[str, str]
    how: str


def standardizes(estimator: Any) -> bool:
    """Whether an estimator of plain numbers brings their columns to one scale."""
    return bool(getattr(estimator, "standardize", getattr(estimator, "kind_", None) == "table"))


def plane(
    rows: NDArray[Any], names: Sequence[str] | None, rng: np.random.Generator, *, standardize: bool = False
) -> Plane:
    """Rows with two features unchanged, with one feature at random heights, others by their first two principal
    components.

    Parameters
    ----------
    rows : array of shape (n, d)
        In random order. If there are very many, only the first are decomposed.
    names : sequence of str, optional
        Names of the features.
    rng : Generator
    standardize : bool, default=False
        Divide each feature by its standard deviation before computing the principal components.

    Examples
    --------
    >>> plane(np.eye(3), None, np.random.default_rng(0)).axis_names[0]
    'principal component 1 (50 % of the variance)'
    """
    rows = np.asarray(rows, dtype=np.float64)
    d = rows.shape[1]
    names = [f"x{i}" for i in range(d)] if names is None else list(names)
    if len(names) != d:
        raise ValueError(f"`feature_names` must be {d} names, one for each feature, got {len(names)}")
    if d == 1:
        heights = rng.uniform(-1, 1, len(rows))
        return Plane(np.column_stack([rows[:, 0], heights]), (names[0], ""), ", height at random")
    if d == 2:
        return Plane(rows, (names[0], names[1]), "")
    if standardize:
        deviation = rows.std(axis=0)
        rows = rows / np.where(deviation > 0.0, deviation, 1.0)
    fitted = rows[: max(1000, MAX_PCA_ENTRIES // d)]
    fitted = np.repeat(fitted, 2, axis=0) if len(fitted) == 1 else fitted  # two directions need two rows
    mean = fitted.mean(axis=0)
    _, singular, directions = np.linalg.svd(fitted - mean, full_matrices=False)
    variance = singular**2 / max(float((singular**2).sum()), np.finfo(float).tiny)
    unit = ", each divided by its standard deviation" if standardize else ""
    axis_names = [f"principal component {i + 1} ({100 * variance[i]:.0f} % of the variance)" for i in range(2)]
    return Plane((rows - mean) @ directions[:2].T, (axis_names[0], axis_names[1]), f", {d} features{unit}")
