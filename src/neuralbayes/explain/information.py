"""The information of a column about membership in a cluster: that between the bin of a cell and membership."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, xlogy

from neuralbayes.explain.columns import Column

COARSE = 10
"""Number of bins of a column of numbers to measure information with; finer bins would fit noise."""

LEVEL = 1e-3
"""Significance level of the test that a column has any information about a cluster."""

Array = NDArray[np.float64]


def bin_counts(column: Column, labels: NDArray[np.integer], n_clusters: int) -> NDArray[np.int64]:
    """Number of rows of each cluster in each bin: (n_clusters + 1, n_bins + 1); the last row is for labels of -1."""
    n = column.n_bins + 1
    groups = np.where(labels < 0, n_clusters, labels).astype(np.int64)
    return np.bincount(groups * n + column.bins, minlength=(n_clusters + 1) * n).reshape(n_clusters + 1, n)


def membership_information(hits: NDArray[Any], others: NDArray[Any]) -> Array:
    """Information of bins about membership in nats, corrected for chance; 0 where it is not significant.

    From the number of rows of the cluster, and of the rest, in each bin: (..., n_bins) twice -> (...).

    Examples
    --------
    >>> membership_information(np.array([50, 0]), np.array([0, 50])).round(3)  # log 2, less 1 / 200
    np.float64(0.688)
    >>> membership_information(np.array([[6, 4]]), np.array([[4, 6]]))
    array([0.])
    """
    table = np.stack([hits, others], axis=-2).astype(np.float64)  # (..., 2, n_bins)
    rows, columns = table.sum(axis=-1), table.sum(axis=-2)
    n = np.maximum(rows.sum(axis=-1), 1.0)
    summed = xlogy(table, table).sum(axis=(-1, -2)) - xlogy(rows, rows).sum(axis=-1) - xlogy(columns, columns).sum(-1)
    found = (summed + xlogy(n, n)) / n
    freedom = np.maximum((columns > 0).sum(axis=-1) - 1, 1)
    significant = rows.all(axis=-1) & (2.0 * n * found > chdtri(freedom, LEVEL))
    return np.asarray(np.where(significant, np.maximum(0.0, found - freedom / (2.0 * n)), 0.0))


def column_information(column: Column, labels: NDArray[np.integer], n_clusters: int) -> Array:
    """Information of a column about membership in each cluster, in nats: (n_clusters,)."""
    counts, n = bin_counts(column, labels, n_clusters), column.n_bins
    if column.ordered and n > COARSE:
        inside = counts.sum(axis=0)[:n]
        before = np.cumsum(inside) - inside / 2.0
        coarse = (COARSE * before / max(1, inside.sum())).astype(np.int64)
        counts = np.add.reduceat(counts, [0, *(1 + np.flatnonzero(np.diff(coarse) > 0)), n], axis=1)
    return membership_information(counts[:-1], counts.sum(axis=0) - counts[:-1])
