"""Describe clusters: size, a name that was checked, differences from the rest, a rule, typical and borderline rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neuralbayes.data.columns import as_frame, written_columns
from neuralbayes.explain.claims import Claim, check_claims, differences
from neuralbayes.explain.columns import Column, as_columns, row_names
from neuralbayes.explain.names import name_clusters
from neuralbayes.explain.phrases import key_phrases, phrase_names
from neuralbayes.explain.prototypes import MAX_RANKED, borderline_members, points_of, rank_members, some
from neuralbayes.explain.rules import Rule, find_rules

if TYPE_CHECKING:
    import pandas as pd

MAX_ROWS = 200_000
"""Maximum number of rows, drawn at random, that a description reads; sizes count all rows."""

N_ROWS = 5
"""Number of typical rows, and of borderline rows, per cluster."""

N_DIFFERENCES = 6
"""Maximum number of differences per cluster."""


@dataclass(frozen=True, eq=False)
class ClusterDescription:
    """Description of one cluster.

    Attributes
    ----------
    cluster : int
    name : str
        Proposed name, different from the names of other clusters.
    claims : list of Claim
        What the name says, the strongest first, with the shares of rows of which it is true. For texts, all key
        phrases, of which the first are the name.
    size : int
        Number of rows.
    share : float
        Share of all rows.
    differences : list of Claim
        Differences from the rest: the claims of the name, then other columns, the most informative first.
    rule : Rule or None
        None if the cluster has no rows or all rows, or if no column varies.
    typical, borderline : ndarray of int
        Row numbers, counted from 0, of the most typical rows and of rows that are nearly in another cluster.
    """

    cluster: int
    name: str
    claims: list[Claim]
    size: int
    share: float
    differences: list[Claim]
    rule: Rule | None
    typical: NDArray[np.intp]
    borderline: NDArray[np.intp]

    @property
    def precision(self) -> float:
        """Share of the rows that satisfy the rule that are in the cluster; NaN without a rule."""
        return np.nan if self.rule is None else self.rule.precision

    @property
    def recall(self) -> float:
        """Share of the rows in the cluster that satisfy the rule; NaN without a rule."""
        return np.nan if self.rule is None else self.rule.recall


@dataclass(frozen=True, eq=False)
class Description:
    """Descriptions of all clusters, with the columns and the names of rows.

    Attributes
    ----------
    clusters : list of ClusterDescription
    columns : list of Column
        Columns of the table, for the rows in `rows`.
    rows : ndarray of int
        Numbers of the rows that were read.
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

        records = [
            {
                "cluster": found.cluster,
                "name": found.name,
                "size": found.size,
                "share": found.share,
                "claims": "; ".join(map(str, found.claims)),
                "differences": "; ".join(map(str, found.differences)),
                "rule": "" if found.rule is None else str(found.rule),
                "precision": found.precision,
                "recall": found.recall,
                "typical": self._named(found.typical),
                "borderline": self._named(found.borderline),
            }
            for found in self.clusters
        ]
        return pd.DataFrame(records).set_index("cluster") if records else pd.DataFrame()

    def _named(self, rows: NDArray[np.intp]) -> list[Any]:
        return rows.tolist() if self.row_names is None else [self.row_names[i] for i in rows]


def describe(
    table: Any,
    labels: ArrayLike,
    *,
    n_clusters: int | None = None,
    proba: NDArray[Any] | None = None,
    points: NDArray[Any] | None = None,
    texts: Sequence[str] | None = None,
    fitted: Collection[str] = (),
    left_out: Collection[str] = (),
    max_rows: int = MAX_ROWS,
    random_state: int = 0,
) -> Description:
    """Describe clusters by all columns of a table, or by their texts.

    Parameters
    ----------
    table : DataFrame or array-like of shape (n_rows, n_columns), or None
        Numbers, text, booleans, dates; cells may be missing. Columns that this library wrote into a table (labels,
        probabilities) are skipped. None if there are only texts.
    labels : array-like of int and shape (n_rows,)
        From 0 to n_clusters - 1; -1 for rows that are in no cluster.
    n_clusters : int, optional
        By default one more than the largest label.
    proba : ndarray of shape (n_rows, n_clusters), optional
        Probabilities; without them, no borderline rows are found.
    points : ndarray of shape (n_rows, n_dimensions), optional
        Coordinates of the rows, for the typical rows. By default the standardised columns.
    texts : sequence of str, optional
        A text for each row; anything but a string counts as missing. Clusters are then named by their key phrases.
    fitted : collection of str
        The columns that clusters were fitted to. Rules use these columns if the table has any, otherwise all.
    left_out : collection of str
        Columns to skip, such as true classes.
    max_rows : int, default=200_000
        Maximum number of rows to read, drawn at random; sizes count all rows.
    random_state : int, default=0

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"mass": [3.1, 3.4, 3.9, 5.2, 5.4, 5.8] * 10, "sex": ["f", "m"] * 30})
    >>> for found in describe(frame, frame["mass"] > 4.5).clusters:
    ...     print(found.name, found.size, found.rule, sep="; ")
    lower mass; 30; mass ≤ 5
    higher mass; 30; mass > 5
    """
    every = np.asarray(labels)
    if every.dtype.kind not in "iub" and every.size:
        raise TypeError(f"`labels` must be integers, got {every.dtype}")
    every = every.astype(np.int64)
    if table is None and texts is None:
        raise ValueError("`table` must be a data frame or an array unless `texts` are given, got None")
    frame = None if table is None else as_frame(table)
    n_rows = len(texts or ()) if frame is None else len(frame)
    if every.shape != (n_rows,) or (texts is not None and len(texts) != n_rows):
        raise ValueError(f"`labels` and `texts` must have one entry for each of {n_rows:,} rows, got {every.shape}")
    k = int(every.max(initial=-1)) + 1 if n_clusters is None else n_clusters
    if not ((every >= -1) & (every < k)).all():
        raise ValueError(f"`labels` must be from -1 to {k - 1}, got {every.min()} to {every.max()}")
    if proba is not None and proba.shape != (n_rows, k):
        raise ValueError(f"`proba` must have shape ({n_rows}, {k}), got {proba.shape}")
    if points is not None and points.shape[:1] != (n_rows,):
        raise ValueError(f"`points` must have shape ({n_rows}, n_dimensions), got {points.shape}")

    rng = np.random.default_rng(random_state)
    rows = some(np.arange(n_rows), max_rows, rng)
    own = every[rows]
    found = [] if frame is None else as_columns(frame.iloc[rows])
    skipped = set(left_out) if frame is None else {*written_columns(frame), *left_out}
    columns = [column for column in found if column.name not in skipped]

    checked = check_claims(columns, own, k, random_state=random_state)
    if texts is None:
        named = name_clusters(checked, random_state=random_state)
    else:
        read = [texts[i] if isinstance(texts[i], str) else "" for i in rows]
        phrases = key_phrases(read, own, k, random_state=random_state)
        named = list(zip(phrase_names(phrases), phrases, strict=True))
    told = differences(checked, N_DIFFERENCES)
    if texts is None:  # what the name says comes first
        told = [_together(claims, others)[:N_DIFFERENCES] for (_, claims), others in zip(named, told, strict=True)]
    rules = find_rules(
        [column for column in columns if column.name in fitted] or columns, own, k, random_state=random_state
    )
    drawn = np.concatenate([some(np.flatnonzero(own == i), MAX_RANKED, rng) for i in range(k)] or [rows[:0]])
    where = points_of([column.take(drawn) for column in columns]) if points is None else points[rows[drawn]]
    typical = rank_members(where, own[drawn], k) if where.shape[1] else [drawn[:0]] * k
    close = [drawn[:0]] * k if proba is None else borderline_members(proba[rows], own, N_ROWS, k)

    sizes = np.bincount(every[every >= 0], minlength=k)
    clusters = [
        ClusterDescription(
            cluster=i,
            name=named[i][0],
            claims=named[i][1],
            size=int(sizes[i]),
            share=float(sizes[i] / max(1, n_rows)),
            differences=told[i],
            rule=rules[i],
            typical=rows[drawn[typical[i][:N_ROWS]]],
            borderline=rows[close[i]],
        )
        for i in range(k)
    ]
    return Description(clusters, columns, rows, None if frame is None else row_names(frame, found))


def _together(claims: list[Claim], others: list[Claim]) -> list[Claim]:
    """The claims, then the other claims about columns that were not mentioned."""
    mentioned = {claim.condition.column for claim in claims if claim.condition is not None}
    return [*claims, *(one for one in others if one.condition is not None and one.condition.column not in mentioned)]
