"""Missing cells as the other cells of their row foretell them, were all rows Gaussian."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[np.float64]

MOST_COLUMNS = 256
"""Up to so many columns their covariance is estimated; of more, missing cells get the mean."""

FIT_ROWS = 4000
"""Rows, evenly spaced, that the covariance is estimated from."""

N_STEPS = 12
"""Steps of expectation maximisation."""

RIDGE = 0.05
"""Share of the covariance that is replaced by its diagonal."""

BLOCK_ELEMENTS = 2**22
"""Numbers in the matrices that are inverted at once."""


@dataclass(frozen=True, eq=False)
class GaussianFill:
    """Mean (n_columns,) and covariance (n_columns, n_columns) of rows; diagonal where columns are many."""

    mean: Array
    covariance: Array

    @classmethod
    def fit(cls, X: Array) -> GaussianFill:
        """Estimate both from rows (n, d) with NaN for missing cells, by expectation maximisation."""
        missing = np.isnan(X)
        known = (~missing).sum(axis=0).clip(1)
        mean = np.where(missing, 0.0, X).sum(axis=0) / known
        variance = np.square(np.where(missing, 0.0, X - mean)).sum(axis=0) / known
        n_columns = X.shape[1]
        if n_columns > MOST_COLUMNS:
            return cls(mean, np.zeros((n_columns, 0)))
        some = X[:: max(1, len(X) // FIT_ROWS)]
        fill = cls(mean, np.diag(variance + 1e-9))
        for _ in range(N_STEPS if missing.any() else 1):
            filled, spread = fill._expected(some)
            mean = filled.mean(axis=0)
            covariance = (filled - mean).T @ (filled - mean) / len(filled) + spread / len(filled)
            diagonal = np.diag(np.diag(covariance) + 1e-9)
            fill = cls(mean, (1.0 - RIDGE) * covariance + RIDGE * diagonal)
        return fill

    def fill(self, X: Array) -> Array:
        """The rows (n, d) with missing cells as the others foretell them."""
        if not np.isnan(X).any():
            return X
        if not self.covariance.size:
            return np.where(np.isnan(X), self.mean, X)
        return self._expected(X)[0]

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]], n_columns: int) -> GaussianFill:
        """From arrays that were saved, checked: those of `n_columns`."""
        mean, covariance = arrays["mean"], arrays["covariance"]
        wide = n_columns if n_columns <= MOST_COLUMNS else 0
        for name, array, shape in (("mean", mean, (n_columns,)), ("covariance", covariance, (n_columns, wide))):
            if array.dtype != np.float64 or array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"{name!r} must be finite float64 of shape {shape}, got {array.dtype} {array.shape}")
        return cls(mean, covariance)

    def _expected(self, X: Array) -> tuple[Array, Array]:
        """The filled rows, and the sum over rows of the covariance of what was filled in."""
        missing = np.isnan(X)
        result, spread = X.copy(), np.zeros_like(self.covariance)
        holes = np.flatnonzero(missing.any(axis=1))
        if not len(holes):
            return result, spread
        patterns, which, counts = np.unique(missing[holes], axis=0, return_inverse=True, return_counts=True)
        which = which.ravel()
        order = np.argsort(which, kind="stable")
        ends = np.cumsum(counts)
        covariance, block = torch.from_numpy(self.covariance), max(1, BLOCK_ELEMENTS // self.covariance.size)
        for start in range(0, len(patterns), block):
            part = torch.from_numpy(patterns[start : start + block])
            weights = _regression(covariance, part)
            stop = min(start + block, len(patterns))
            inside = order[(ends[start - 1] if start else 0) : ends[stop - 1]]
            rows = holes[inside]
            deviation = torch.from_numpy(np.where(missing[rows], 0.0, X[rows] - self.mean))
            for some in np.array_split(np.arange(len(rows)), -(-len(rows) // block)):
                chosen = weights[torch.from_numpy(which[inside[some]] - start)]
                expected = (chosen @ deviation[some, :, None]).squeeze(2).numpy() + self.mean
                result[rows[some]] = np.where(missing[rows[some]], expected, X[rows[some]])
            hidden = part.double()
            left = (covariance - weights @ covariance) * hidden[:, :, None] * hidden[:, None, :]
            spread += torch.einsum("p,pij->ij", torch.from_numpy(counts[start:stop]).double(), left).numpy()
        return result, spread


def _regression(covariance: Tensor, missing: Tensor) -> Tensor:
    """Weights (n_patterns, d, d) by which known cells foretell the missing ones of each pattern (n_patterns, d)."""
    known = (~missing).double()
    between = covariance * known[:, :, None] * known[:, None, :] + torch.diag_embed(1.0 - known)
    solved = torch.linalg.solve(between, covariance * known[:, :, None])  # S_oo^-1 S_o., zero where missing
    return solved.mT
