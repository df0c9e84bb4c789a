r"""The information of a column about clusters, and the evidence of a cell.

The cells of a column are in bins b. The information of the column about cluster z is the mutual information between the
bin and membership in z. The evidence of one cell for z against z' is :math:`\log p(b \mid z) - \log p(b \mid z')`.
"""

from __future__ import annotations

from collections.abc import Sequence
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


def coarse_bins(column: Column, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The coarse bin of each bin: (n_bins + 1,); coarse bins of numbers hold about a tenth of the rows each."""
    n = column.n_bins
    if not column.ordered or n <= COARSE:
        return np.arange(n + 1)
    inside = counts.sum(axis=0)[:n]
    before = np.cumsum(inside) - inside / 2.0
    coarse = np.unique((COARSE * before / max(1, inside.sum())).astype(np.int64), return_inverse=True)[1]
    return np.append(coarse, coarse.max() + 1)


def coarse_counts(column: Column, labels: NDArray[np.integer], n_clusters: int) -> NDArray[np.int64]:
    """Number of rows of each cluster in each coarse bin: (n_clusters + 1, n_coarse + 1)."""
    counts = bin_counts(column, labels, n_clusters)
    coarse = coarse_bins(column, counts)
    return np.add.reduceat(counts, np.flatnonzero(np.append(True, np.diff(coarse) > 0)), axis=1)


def membership_information(hits: NDArray[Any], others: NDArray[Any]) -> Array:
    """Information of bins about membership in nats, corrected for chance; 0 where it is not significant.

    Parameters
    ----------
    hits, others : ndarray of shape (..., n_bins)
        Number of rows of the cluster, and of the rest, in each bin.

    Returns
    -------
    ndarray of shape (...)

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
    counts = coarse_counts(column, labels, n_clusters)
    return membership_information(counts[:-1], counts.sum(axis=0) - counts[:-1])


def row_evidence(columns: Sequence[Column], labels: NDArray[np.integer], n_clusters: int) -> list[Array]:
    """log p(b|z) for each column, smoothed by one extra row per cluster: arrays of shape (n_clusters, n_bins + 1)."""
    found = []
    for column in columns:
        coarse = coarse_bins(column, bin_counts(column, labels, n_clusters))
        counts = coarse_counts(column, labels, n_clusters)[:-1]
        share = counts.sum(axis=0) / max(1, counts.sum())
        smooth = (counts + share) / (counts.sum(axis=1, keepdims=True) + 1.0)
        logs = np.log(np.where(smooth > 0, smooth, 1.0))
        found.append(logs[:, coarse])
    return found
