r"""The information of a column about clusters, and the evidence of a cell.

The cells of a column are in bins b. The information of the column about cluster z is the mutual information between the
bin and membership in z. The evidence of one cell for z against z' is :math:`\log p(b \mid z) - \log p(b \mid z')`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy
from scipy.stats import chi2

from neuralbayes.clusters.cells import Column

COARSE = 10
"""Number of bins of a column of numbers to measure information with; finer bins would fit noise."""

LEVEL = 1e-3
"""Significance level of the test that a column has any information about a cluster."""

Array = NDArray[np.float64]


def bin_counts(column: Column, labels: NDArray[np.integer], n_clusters: int) -> NDArray[np.int64]:
    """Number of rows of each cluster in each coarse bin, missing cells in the last: (n_clusters, n_coarse + 1)."""
    coarse = coarse_bins(column)
    n = int(coarse.max()) + 1
    inside = labels >= 0
    places = labels[inside].astype(np.int64) * n + coarse[column.bins[inside]]
    return np.bincount(places, minlength=n_clusters * n).reshape(n_clusters, n)


def coarse_bins(column: Column) -> NDArray[np.int64]:
    """The coarse bin of each bin: (n_bins + 1,); coarse bins of numbers hold about a tenth of the rows each."""
    n = column.n_bins
    if not column.ordered or n <= COARSE:
        return np.arange(n + 1)
    counts = np.bincount(column.bins, minlength=n + 1)[:n]
    before = np.cumsum(counts) - counts / 2.0
    coarse = np.unique((COARSE * before / max(1, counts.sum())).astype(np.int64), return_inverse=True)[1]
    return np.append(coarse, coarse.max() + 1)


def membership_information(hits: NDArray[np.int64], others: NDArray[np.int64]) -> float:
    """Information of the bins about membership in nats, corrected for chance; 0 if it is not significant.

    Parameters
    ----------
    hits, others : ndarray of shape (n_bins,)
        Number of rows of the cluster, and of the rest, in each bin.

    Examples
    --------
    >>> membership_information(np.array([50, 0]), np.array([0, 50])).__round__(3)  # log 2, less 1 / 200
    0.688
    >>> membership_information(np.array([6, 4]), np.array([4, 6]))
    0.0
    """
    table = np.stack([hits, others]).astype(np.float64)
    n = table.sum()
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    if not rows.all() or (columns > 0).sum() < 2:
        return 0.0
    found = (xlogy(table, table).sum() - xlogy(rows, rows).sum() - xlogy(columns, columns).sum() + xlogy(n, n)) / n
    freedom = (columns > 0).sum() - 1
    if 2.0 * n * found <= chi2.isf(LEVEL, freedom):
        return 0.0
    return max(0.0, float(found - freedom / (2.0 * n)))


def column_information(column: Column, labels: NDArray[np.integer], n_clusters: int) -> Array:
    """Information of a column about membership in each cluster, in nats: (n_clusters,)."""
    counts = bin_counts(column, labels, n_clusters)
    total = counts.sum(axis=0)
    return np.array([membership_information(own, total - own) for own in counts])


def row_evidence(columns: Sequence[Column], labels: NDArray[np.integer], n_clusters: int) -> list[Array]:
    """log p(b|z) for each column, smoothed by one extra row per cluster: arrays of shape (n_clusters, n_bins + 1)."""
    found = []
    for column in columns:
        counts = bin_counts(column, labels, n_clusters)
        share = counts.sum(axis=0) / max(1, counts.sum())
        smooth = (counts + share) / (counts.sum(axis=1, keepdims=True) + 1.0)
        with np.errstate(divide="ignore"):
            logs = np.log(smooth)
        found.append(np.where(np.isfinite(logs), logs, 0.0)[:, coarse_bins(column)])
    return found
