"""Clusters of a table explained: size, name, what tells each from the rest, a rule, prototypes, borderline rows."""

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
"""Rows, drawn at random, that clusters are described by; sizes are those of all."""

N_ROWS = 5
"""Prototypes, and borderline rows, of a cluster."""

N_DIFFERENCES = 6
"""Differences of a cluster, at most."""


@dataclass(frozen=True, eq=False)
class ClusterDescription:
    """One cluster.

    Attributes
    ----------
    cluster : int
    size : int
        Its rows.
    share : float
        Of all rows.
    name : str
        Proposed, different from those of other clusters.
    differences : list of Difference
        From the rest, the most telling first.
    rule : Rule or None
        None where it has no rows, or all, or where no column tells it from the rest.
    prototypes, borderline : ndarray of int
        Rows by their number from 0: the most typical, and those that are nearly in another cluster.
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
    """All clusters, with the columns that describe them and the names of rows.

    Attributes
    ----------
    clusters : list of ClusterDescription
    columns : list of Column
        Of the rows in `rows`.
    rows : ndarray of int
        Which rows of the table these are.
    row_names : list of str, or None
        Of all rows of the table; None where they have only numbers.
    """

    clusters: list[ClusterDescription]
    columns: list[Column]
    rows: NDArray[np.intp]
    row_names: list[str] | None

    def to_frame(self) -> pd.DataFrame:
        """A data frame with one row for each cluster."""
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
    """What tells each cluster from the rest, the most telling first, and a name for each."""
    found = [differences(column, labels, n_clusters) for column in columns]
    ranked = [
        sorted((one for column in found for one in column[k]), key=lambda one: -one.information)[:N_DIFFERENCES]
        for k in range(n_clusters)
    ]
    shares = np.bincount(labels[labels >= 0], minlength=n_clusters) / max(1, len(labels))
    return ranked, cluster_names(ranked, [float(entr(share) + entr(1.0 - share)) for share in shares])


def name_clusters(frame: pd.DataFrame, labels: NDArray[np.integer], n_clusters: int) -> list[tuple[str, str]]:
    """The name and the main difference of each cluster, from at most 20,000 rows: a summary that costs little."""
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
        Numbers, text, booleans, dates; cells may be missing. What this library wrote into a table (labels,
        probabilities) does not count.
    labels : ndarray of shape (n_rows,)
        From 0 to n_clusters - 1; -1 for rows that are in no cluster.
    n_clusters : int
    p_zx : ndarray of shape (n_rows, n_clusters), optional
        Probabilities, without which there are no borderline rows.
    points : ndarray of shape (n_rows, n_dimensions), optional
        Where the rows lie, for the prototypes. By default by the columns, standardised.
    fitted : collection of str
        The columns that clusters were fitted to. Rules are made of these, where the frame has any, else of all.
    left_out : collection of str
        Columns that do not count, such as true classes.

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
