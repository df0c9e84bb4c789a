"""Impute missing cells from the other cells of their row, with a Gaussian model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MOST_COLUMNS = 128  # for the covariance; with more, missing cells get the mean
N_STEPS = 8  # of expectation maximisation
FIT_ROWS, FIT_PRODUCTS = 4000, 5e8  # maximum number of evenly spaced rows, and of multiplications in a step
RIDGE = 0.05  # shrinkage of the covariance towards its diagonal
BLOCK_ELEMENTS = 2**22  # of the matrices inverted at a time


@dataclass(frozen=True, eq=False)
class GaussianFill:
    """Mean (n_columns,) and covariance (n_columns, n_columns) of rows; diagonal if there are many columns."""

    mean: Array
    covariance: Array

    @classmethod
    def fit(cls, X: Array) -> GaussianFill:
        """Estimate mean and covariance from rows (n, d) with NaN for missing cells, by expectation maximisation."""
        missing = np.isnan(X)
        known = (~missing).sum(axis=0).clip(1)
        mean = np.where(missing, 0.0, X).sum(axis=0) / known
        variance = np.square(np.where(missing, 0.0, X - mean)).sum(axis=0) / known
        n_columns = X.shape[1]
        if n_columns > MOST_COLUMNS:
            return cls(mean, np.zeros((n_columns, 0)))
        n_rows = int(min(FIT_ROWS, FIT_PRODUCTS / n_columns**3))
        some = X[:: max(1, len(X) // max(n_rows, 4 * n_columns))]
        fill = cls(mean, np.diag(variance + 1e-9))
        for _ in range(N_STEPS if missing.any() else 1):
            filled, spread = fill._expected(some, learn=True)
            mean = filled.mean(axis=0)
            covariance = (filled - mean).T @ (filled - mean) / len(filled) + spread / len(filled)
            diagonal = np.diag(np.diag(covariance) + 1e-9)
            fill = cls(mean, (1.0 - RIDGE) * covariance + RIDGE * diagonal)
        return fill

    def fill(self, X: Array) -> Array:
        """Fill the missing cells of rows (n, d) with their conditional means."""
        if not np.isnan(X).any():
            return X
        if not self.covariance.size:
            return np.where(np.isnan(X), self.mean, X)
        return self._expected(X)[0]

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]], n_columns: int) -> GaussianFill:
        """Restore from saved arrays for `n_columns` columns, with checks."""
        mean, covariance = arrays["mean"], arrays["covariance"]
        wide = n_columns if n_columns <= MOST_COLUMNS else 0
        for name, array, shape in (("mean", mean, (n_columns,)), ("covariance", covariance, (n_columns, wide))):
            if array.dtype != np.float64 or array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"{name!r} must be finite float64 of shape {shape}, got {array.dtype} {array.shape}")
        return cls(mean, covariance)

    def _expected(self, X: Array, *, learn: bool = False) -> tuple[Array, Array]:
        """The filled rows and, for learning, the summed conditional covariance of the filled cells."""
        missing = np.isnan(X)
        result, spread = X.copy(), np.zeros_like(self.covariance)
        holes = np.flatnonzero(missing.any(axis=1))
        patterns, which, counts = np.unique(missing[holes], axis=0, return_inverse=True, return_counts=True)
        order = np.argsort(which.ravel(), kind="stable")
        rows, pattern = holes[order], which.ravel()[order]
        covariance, block = self.covariance, max(1, BLOCK_ELEMENTS // self.covariance.size)
        deviation = np.where(missing[rows], 0.0, X[rows] - self.mean)
        for start in range(0, len(rows), block):
            part = slice(start, start + block)
            first, last = pattern[part][0], pattern[part][-1] + 1
            between = _of_known(covariance, patterns[first:last])[pattern[part] - first]
            expected = (covariance @ np.linalg.solve(between, deviation[part, :, None]))[:, :, 0] + self.mean
            result[rows[part]] = np.where(missing[rows[part]], expected, X[rows[part]])
        for start in range(0, len(patterns) if learn else 0, block):
            hidden = patterns[start : start + block]
            known = np.where(hidden[:, :, None], 0.0, covariance)
            left = covariance - known.transpose(0, 2, 1) @ np.linalg.solve(_of_known(covariance, hidden), known)
            left = left * (hidden[:, :, None] & hidden[:, None, :])
            spread += np.einsum("p,pij->ij", counts[start : start + block].astype(np.float64), left)
        return result, spread


def _of_known(covariance: Array, missing: NDArray[np.bool_]) -> Array:
    """Covariance of the known cells of each pattern, with the identity for missing cells: (n_patterns, d, d)."""
    hidden = missing[:, :, None] | missing[:, None, :]
    return np.where(hidden, 0.0, covariance) + missing[:, :, None] * np.eye(len(covariance))
