"""Describe clusters of a table: size, name, differences from the rest, a rule, prototypes, borderline rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from neuralbayes.clusters.cells import Column, as_columns, row_names
from neuralbayes.clusters.differences import Difference, cluster_names, differences
from neuralbayes.clusters.prototypes import borderline_members, points_of, rank_members, some
from neuralbayes.clusters.rules import Rule, find_rules
from neuralbayes.data.written import written_columns

if TYPE_CHECKING:
    import pandas as pd

MAX_ROWS = 100_000
"""Maximum number of rows, drawn at random, for descriptions; sizes count all rows."""

N_ROWS = 5
"""Number of prototypes, and of borderline rows, per cluster."""

N_DIFFERENCES = 6
"""Maximum number of differences per cluster."""


@dataclass(frozen=True, eq=False)
class ClusterDescription:
    """Description of one cluster.

    Attributes
    ----------
    cluster : int
    size : int
        Number of rows.
    share : float
        Share of all rows.
    name : str
        Proposed name, different from the names of other clusters.
    differences : list of Difference
        Differences from the rest, the most informative first.
    rule : Rule or None
        None if the cluster has no rows or all rows, or if no column sets it apart from the rest.
    prototypes, borderline : ndarray of int
        Row numbers, counted from 0, of the most typical rows and of rows that are nearly in another cluster.
    """

    cluster: int
    size: int
    share: float
    name: str
    differences: list[Difference]
    rule: Rule | None
    prototypes: NDArray[np.intp]
    borderline: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Description:
    """Descriptions of all clusters, with the columns and the names of rows.

    Attributes
    ----------
    clusters : list of ClusterDescription
    columns : list of Column
        Columns of the table, for the rows in `rows`.
    rows : ndarray of int
        Numbers of the rows that the columns hold.
    row_names : list of str, or None
        Names of all rows of the table; None if they have only numbers.
    """

    clusters: list[ClusterDescription]
    columns: list[Column]
    rows: NDArray[np.intp]
    row_names: list[str] | None

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with one row per cluster."""
        import pandas as pd

        def named(rows: NDArray[np.intp]) -> list[Any]:
            return rows.tolist() if self.row_names is None else [self.row_names[i] for i in rows]

        records = [
            {
                "cluster": found.cluster,
                "name": found.name,
                "size": found.size,
                "share": found.share,
                "differences": "; ".join(one.words for one in found.differences),
                "rule": "" if found.rule is None else str(found.rule),
                "precision": np.nan if found.rule is None else found.rule.precision,
                "recall": np.nan if found.rule is None else found.rule.recall,
                "prototypes": named(found.prototypes),
                "borderline": named(found.borderline),
            }
            for found in self.clusters
        ]
        return pd.DataFrame(records).set_index("cluster")


def named_differences(
    columns: Sequence[Column], labels: NDArray[np.integer], n_clusters: int
) -> tuple[list[list[Difference]], list[str]]:
    """Differences of each cluster from the rest, the most informative first, and a name for each cluster."""
    found = [differences(column, labels, n_clusters) for column in columns]
    ranked = [
        sorted((one for column in found for one in column[k]), key=lambda one: -one.information)[:N_DIFFERENCES]
        for k in range(n_clusters)
    ]
    shares = np.bincount(labels[labels >= 0], minlength=n_clusters) / max(1, len(labels))
    return ranked, cluster_names(ranked, [float(entr(share) + entr(1.0 - share)) for share in shares])


def name_clusters(frame: pd.DataFrame, labels: NDArray[np.integer], n_clusters: int) -> list[tuple[str, str]]:
    """The name and the main difference of each cluster, from at most 20,000 rows: a cheap summary."""
    rows = some(np.arange(len(frame)), MAX_ROWS // 5, np.random.default_rng(0))
    skipped = written_columns(frame)
    columns = [column for column in as_columns(frame.iloc[rows]) if column.name not in skipped]
    ranked, names = named_differences(columns, labels[rows], n_clusters)
    return [(name, found[0].words if found else "") for name, found in zip(names, ranked, strict=True)]


def describe_clusters(
    frame: pd.DataFrame,
    labels: NDArray[np.integer],
    n_clusters: int,
    *,
    p_zx: NDArray[Any] | None = None,
    points: NDArray[Any] | None = None,
    fitted: Collection[str] = (),
    left_out: Collection[str] = (),
) -> Description:
    """Describe the clusters of a table by all of its columns.

    Parameters
    ----------
    frame : DataFrame of shape (n_rows, n_columns)
        Numbers, text, booleans, dates; cells may be missing. Columns that this library wrote into a table (labels,
        probabilities) are skipped.
    labels : ndarray of shape (n_rows,)
        From 0 to n_clusters - 1; -1 for rows that are in no cluster.
    n_clusters : int
    p_zx : ndarray of shape (n_rows, n_clusters), optional
        Probabilities; without them, no borderline rows are found.
    points : ndarray of shape (n_rows, n_dimensions), optional
        Coordinates of the rows, for the prototypes. By default the standardised columns.
    fitted : collection of str
        The columns that clusters were fitted to. Rules use these columns if the frame has any, otherwise all.
    left_out : collection of str
        Columns to skip, such as true classes.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"mass": [3.1, 3.4, 3.9, 5.2, 5.4, 5.8] * 5, "sex": ["f", "m"] * 15})
    >>> labels = (frame["mass"] > 4.5).to_numpy().astype(int)
    >>> for found in describe_clusters(frame, labels, 2).clusters:
    ...     print(found.name, found.size, found.rule, sep="; ")
    low mass; 15; mass ≤ 5
    high mass; 15; mass > 5
    """
    if labels.shape != (len(frame),):
        raise ValueError(f"`labels` must have shape ({len(frame)},), got {labels.shape}")
    sizes = np.bincount(labels[labels >= 0], minlength=n_clusters)
    shares = sizes / max(1, len(labels))
    rows = some(np.arange(len(frame)), MAX_ROWS, np.random.default_rng(0))
    every = as_columns(frame.iloc[rows])
    skipped = {*written_columns(frame), *left_out}
    columns = [column for column in every if column.name not in skipped]
    own = labels[rows]
    ranked, names = named_differences(columns, own, n_clusters)
    rules = find_rules([column for column in columns if column.name in fitted] or columns, own, n_clusters)
    where = points_of(columns) if points is None else points[rows]
    typical = rank_members(where, own, n_clusters)
    nothing = [np.empty(0, np.intp)] * n_clusters
    close = nothing if p_zx is None else borderline_members(p_zx[rows], own, N_ROWS)
    clusters = [
        ClusterDescription(
            k,
            int(sizes[k]),
            float(shares[k]),
            names[k],
            ranked[k],
            rules[k],
            rows[typical[k][:N_ROWS]],
            rows[close[k]],
        )
        for k in range(n_clusters)
    ]
    return Description(clusters, columns, rows, row_names(frame, every))
