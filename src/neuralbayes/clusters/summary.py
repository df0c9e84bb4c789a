"""What a fitted clusterer keeps of its clusters, to describe them later without the data: means and prototypes."""

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
"""Rows, drawn at random, that a summary is made of: so many, or fewer where they are long, but 200."""

N_PROTOTYPES = 5
N_DIFFERENCES = 6


@dataclass(frozen=True, eq=False)
class Summary:
    """Of clusters.

    Attributes
    ----------
    means : ndarray of shape (n_clusters, n_features)
        Of each column in each cluster, numbers far outside moved to a fence.
    scale : ndarray of shape (n_features,)
        Standard deviation of each column over all rows.
    prototypes : ndarray of int64 and shape (n_clusters, N_PROTOTYPES)
        Numbers of the most typical rows; -1 where there are no more.
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
    """Means and prototypes from a bounded number of rows.

    Parameters
    ----------
    read : callable
        From numbers of rows to the rows: (n, n_features).
    points : callable
        From numbers of rows to where they lie: (n, n_dimensions).
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
    """What tells each cluster from the rest by the means alone, the largest differences first.

    `with_means` tells the means themselves; those of a vectorised table are in no unit that anybody knows.
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
        information = -0.5 * np.log1p(-(correlation**2))  # of a Gaussian about a Gaussian
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
    """A data frame with one row for each cluster; `names` are those of the columns, None for images."""
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
