"""Summary of clusters, to describe them later without the data: means and prototypes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from neuralbayes.clusters.differences import LEAST_SD, Difference, cluster_names, number_difference, within_fences
from neuralbayes.clusters.prototypes import rank_members, some
from neuralbayes.data.table_formats import import_pandas

if TYPE_CHECKING:
    import pandas as pd

MAX_ROWS, MAX_NUMBERS = 10_000, 2**24
"""Maximum numbers of rows, drawn at random, and of values in them, to make a summary of; at least 200 rows."""

N_PROTOTYPES = 5
N_DIFFERENCES = 6


@dataclass(frozen=True, eq=False)
class Summary:
    """Means and prototypes of clusters.

    Attributes
    ----------
    means : ndarray of shape (n_clusters, n_features)
        Mean of each column in each cluster, with outliers clipped.
    scale : ndarray of shape (n_features,)
        Standard deviation of each column over all rows.
    prototypes : ndarray of int64 and shape (n_clusters, N_PROTOTYPES)
        Numbers of the most typical rows, padded with -1.
    """

    means: NDArray[np.float64]
    scale: NDArray[np.float64]
    prototypes: NDArray[np.int64]


def summarize(
    read: Callable[[NDArray[np.int64]], NDArray[Any]],
    points: Callable[[NDArray[np.int64]], NDArray[Any]],
    labels: NDArray[np.integer],
    n_clusters: int,
    n_features: int,
) -> Summary:
    """Compute means and prototypes from a bounded number of rows.

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
    prototypes = np.full((n_clusters, N_PROTOTYPES), -1, np.int64)
    for k, ranked in enumerate(rank_members(points(rows), own, n_clusters)):
        prototypes[k, : len(ranked)] = rows[ranked[:N_PROTOTYPES]]
    return Summary(means, values.std(axis=0), prototypes)


def summary_differences(
    summary: Summary, sizes: NDArray[np.integer], names: Sequence[str], *, with_means: bool = True
) -> list[list[Difference]]:
    """Differences of each cluster from the rest in the means, the most informative first.

    `with_means` includes the means themselves. Leave them out for a vectorised table, whose units mean nothing to a
    reader.
    """
    total = sizes.sum()
    sums = summary.means * sizes[:, None]
    scale = np.where(summary.scale > 0, summary.scale, np.inf)
    found: list[list[Difference]] = []
    for k, size in enumerate(sizes):
        if not 0 < size < total:
            found.append([])
            continue
        rest = (sums.sum(axis=0) - sums[k]) / (total - size)
        effect = (summary.means[k] - rest) / scale
        share = size / total
        correlation = np.minimum(np.abs(effect) * np.sqrt(share * (1.0 - share)), 1.0 - 1e-9)
        information = -0.5 * np.log1p(-(correlation**2))  # mutual information of two Gaussians
        best = [j for j in np.argsort(-information, kind="stable")[:N_DIFFERENCES] if abs(effect[j]) >= LEAST_SD]
        means = [(float(summary.means[k, j]), float(rest[j])) if with_means else None for j in best]
        found.append(
            [
                number_difference(names[j], float(effect[j]), pair, float(information[j]))
                for j, pair in zip(best, means, strict=True)
            ]
        )
    return found


def summary_frame(
    summary: Summary, labels: NDArray[np.integer], names: Sequence[str] | None, *, with_means: bool = True
) -> pd.DataFrame:
    """Return a data frame with one row per cluster; `names` are the names of the columns, None for images."""
    pandas = import_pandas()
    sizes = np.bincount(labels[labels >= 0], minlength=len(summary.prototypes))
    shares = sizes / max(1, len(labels))
    columns: dict[str, Any] = {"size": sizes, "share": shares}
    if names is not None:
        found = summary_differences(summary, sizes, names, with_means=with_means)
        entropies = [float(entr(share) + entr(1.0 - share)) for share in shares]
        columns = {"name": cluster_names(found, entropies), **columns}
        columns["differences"] = ["; ".join(one.words for one in cluster) for cluster in found]
    columns["prototypes"] = [[row for row in rows if row >= 0] for rows in summary.prototypes.tolist()]
    frame: pd.DataFrame = pandas.DataFrame(columns, index=pandas.RangeIndex(len(sizes), name="cluster"))
    return frame
