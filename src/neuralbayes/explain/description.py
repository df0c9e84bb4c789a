"""Describe clusters: size, a name that was checked, differences from the rest, a rule, typical and borderline rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neuralbayes.data.columns import as_frame, written_columns
from neuralbayes.explain.claims import Claim, check_claims, differences
from neuralbayes.explain.columns import Cells, as_cells, row_names
from neuralbayes.explain.names import name_clusters
from neuralbayes.explain.phrases import key_phrases, phrase_names
from neuralbayes.explain.prototypes import MAX_RANKED, at_most, borderline_members, points_of, rank_members
from neuralbayes.explain.rules import Rule, find_rules

if TYPE_CHECKING:
    import pandas as pd

MAX_ROWS = 200_000
"""Maximum number of rows, drawn at random, that a description reads; sizes count all rows."""

N_ROWS, N_DIFFERENCES = 5, 6
"""Number of typical rows, and of borderline rows, and maximum number of differences, per cluster."""


@dataclass(frozen=True, eq=False)
class ClusterDescription:
    """Description of one cluster.

    Attributes
    ----------
    name : str
        Different from the names of other clusters.
    claims : list of Claim
        What the name says, the strongest first. For texts, all key phrases, of which the first are the name.
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
    """Descriptions of all clusters, the columns of the `rows` that were read, and the names of all rows, if any."""

    clusters: list[ClusterDescription]
    columns: list[Cells]
    rows: NDArray[np.intp]
    row_names: list[str] | None

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with one row per cluster."""
        import pandas as pd

        names = self.row_names
        records = []
        for one in self.clusters:
            plain = {name: getattr(one, name) for name in ("cluster", "name", "size", "share")}
            texts = {name: "; ".join(map(str, getattr(one, name))) for name in ("claims", "differences")}
            rule = {"rule": str(one.rule or ""), "precision": one.precision, "recall": one.recall}
            members = {"typical": one.typical.tolist(), "borderline": one.borderline.tolist()}
            if names is not None:
                members = {kind: [names[i] for i in rows] for kind, rows in members.items()}
            records.append(plain | texts | rule | members)
        return pd.DataFrame(records).set_index("cluster") if records else pd.DataFrame()


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
) -> Description:
    """Describe clusters by all columns of a table, or by their texts.

    Parameters
    ----------
    table : DataFrame or array-like of shape (n_rows, n_columns), or None
        Columns that this library wrote into a table (labels, probabilities) are skipped. None for texts only.
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
    k = int(every.max(initial=-1)) + 1 if n_clusters is None else n_clusters
    for name, given in (("labels", every), ("texts", texts), ("proba", proba), ("points", points)):
        if given is not None and len(given) != n_rows:
            raise ValueError(f"`{name}` must have one entry for each of {n_rows:,} rows, got {len(given):,}")
    if not ((every >= -1) & (every < k)).all():
        raise ValueError(f"`labels` must be from -1 to {k - 1}, got {every.min()} to {every.max()}")
    if proba is not None and proba.shape != (n_rows, k):
        raise ValueError(f"`proba` must have shape ({n_rows}, {k}), got {proba.shape}")

    rng = np.random.default_rng(0)
    rows = at_most(np.arange(n_rows), MAX_ROWS, rng)
    own = every[rows]
    found = [] if frame is None else as_cells(frame.iloc[rows])
    skipped = set(left_out) if frame is None else {*written_columns(frame), *left_out}
    columns = [column for column in found if column.name not in skipped]

    checked = check_claims(columns, own, k)
    told = differences(checked, N_DIFFERENCES)
    if texts is None:
        named = name_clusters(checked)
        for i, (_, claims) in enumerate(named):  # what the name says comes first, then claims about other columns
            said = {claim.condition.column for claim in claims if claim.condition}
            others = [one for one in told[i] if one.condition and one.condition.column not in said]
            told[i] = [*claims, *others][:N_DIFFERENCES]
    else:
        phrases = key_phrases([texts[i] if isinstance(texts[i], str) else "" for i in rows], own, k)
        named = list(zip(phrase_names(phrases), phrases, strict=True))
    rules = find_rules([column for column in columns if column.name in fitted] or columns, own, k)
    drawn = np.concatenate([at_most(np.flatnonzero(own == i), MAX_RANKED, rng) for i in range(k)] or [rows[:0]])
    where = points_of([column.take(drawn) for column in columns]) if points is None else points[rows[drawn]]
    typical = rank_members(where, own[drawn], k) if where.shape[1] else [drawn[:0]] * k
    close = [drawn[:0]] * k if proba is None else borderline_members(proba[rows], own, N_ROWS)

    sizes = np.bincount(every[every >= 0], minlength=k)
    clusters = [
        ClusterDescription(
            i,
            *named[i],
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
