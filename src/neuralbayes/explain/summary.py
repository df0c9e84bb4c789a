"""Summary of clusters that a model keeps, to describe them later without the data: means and typical rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.table_formats import import_pandas
from neuralbayes.explain.columns import within_fences
from neuralbayes.explain.differences import LEAST_SD, Difference, number_difference
from neuralbayes.explain.numerals import short_number
from neuralbayes.explain.prototypes import rank_members, some

if TYPE_CHECKING:
    import pandas as pd

MAX_ROWS, MAX_NUMBERS = 10_000, 2**24
"""Maximum numbers of rows, drawn at random, and of values in them, to make a summary of; at least 200 rows."""

N_TYPICAL, N_DIFFERENCES = 5, 6
"""Number of typical rows, and maximum number of differences, per cluster."""


@dataclass(frozen=True, eq=False)
class Summary:
    """Means and typical rows of clusters.

    Attributes
    ----------
    means : ndarray of shape (n_clusters, n_features)
        Mean of each column in each cluster, with outliers clipped.
    scale : ndarray of shape (n_features,)
        Standard deviation of each column over all rows.
    typical : ndarray of int64 and shape (n_clusters, N_TYPICAL)
        Numbers of the most typical rows, padded with -1.
    """

    means: NDArray[np.float64]
    scale: NDArray[np.float64]
    typical: NDArray[np.int64]


def summarize(
    read: Callable[[NDArray[np.int64]], NDArray[Any]],
    points: Callable[[NDArray[np.int64]], NDArray[Any]],
    labels: NDArray[np.integer],
    n_clusters: int,
    n_features: int,
) -> Summary:
    """Compute means and typical rows from a bounded number of rows.

    Parameters
    ----------
    read : callable
        Maps row numbers to rows: (n, n_features).
    points : callable
        Maps row numbers to coordinates: (n, n_dimensions).
    labels : ndarray of shape (n_rows,)
    n_clusters, n_features : int
    """
    n = max(200, min(MAX_ROWS, MAX_NUMBERS // max(1, n_features)))
    rows = some(np.arange(len(labels)), n, np.random.default_rng(0)).astype(np.int64)
    own = labels[rows]
    values = np.asarray(read(rows), dtype=np.float64)
    values = within_fences(values) if values.shape[1] else values
    overall = values.mean(axis=0)
    means = np.stack([values[own == k].mean(axis=0) if (own == k).any() else overall for k in range(n_clusters)])
    typical = np.full((n_clusters, N_TYPICAL), -1, np.int64)
    for k, ranked in enumerate(rank_members(points(rows), own, n_clusters)):
        typical[k, : len(ranked)] = rows[ranked[:N_TYPICAL]]
    return Summary(means, values.std(axis=0), typical)


def summary_frame(
    summary: Summary, labels: NDArray[np.integer], names: Sequence[str] | None, *, with_means: bool = True
) -> pd.DataFrame:
    """Return a data frame with one row per cluster; clusters have no names, which would need rows to be checked on.

    Parameters
    ----------
    summary : Summary
    labels : ndarray of shape (n_rows,)
    names : sequence of str, or None
        Names of the columns; None for images.
    with_means : bool
        Whether to show the means. They mean nothing to a reader of a vectorised table, whose columns have other units.
    """
    sizes = np.bincount(labels[labels >= 0], minlength=len(summary.typical))
    columns: dict[str, Any] = {"size": sizes, "share": sizes / max(1, len(labels))}
    if names is not None:
        found = [_differences(summary, sizes, k, names, with_means) for k in range(len(sizes))]
        columns["differences"] = ["; ".join(one.words for one in cluster) for cluster in found]
    columns["typical"] = [[row for row in rows if row >= 0] for rows in summary.typical.tolist()]
    pandas = import_pandas()
    frame: pd.DataFrame = pandas.DataFrame(columns, index=pandas.RangeIndex(len(sizes), name="cluster"))
    return frame


def _differences(
    summary: Summary, sizes: NDArray[np.integer], k: int, names: Sequence[str], with_means: bool
) -> list[Difference]:
    """Differences of cluster k from the rest in the means, the most informative first."""
    size, total = sizes[k], sizes.sum()
    if not 0 < size < total:
        return []
    rest = np.average(np.delete(summary.means, k, axis=0), axis=0, weights=np.delete(sizes, k))
    effect = (summary.means[k] - rest) / np.where(summary.scale > 0, summary.scale, np.inf)
    share = size / total
    correlation = np.minimum(np.abs(effect) * np.sqrt(share * (1.0 - share)), 1.0 - 1e-9)
    information = -0.5 * np.log1p(-(correlation**2))  # mutual information of two Gaussians
    found = []
    for j in np.argsort(-information, kind="stable")[:N_DIFFERENCES]:
        if abs(effect[j]) >= LEAST_SD:
            means = (short_number(summary.means[k, j]), short_number(rest[j])) if with_means else None
            found.append(number_difference(names[j], float(effect[j]), float(information[j]), means))
    return found
