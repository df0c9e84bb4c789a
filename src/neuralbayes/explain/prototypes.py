"""Typical members of a cluster, and borderline members, which are nearly in another.

Members are ranked by their mean distance to the nearer half of their cluster. Probabilities saturate and tie, the mean
distance to all members puts the prototype of a ring into its hole, and a few neighbours would find near-duplicates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances

from neuralbayes.explain.columns import Cells, standardized

MAX_RANKED, MAX_DRAWN = 2_000, 500
"""Maximum number of members to rank, and of members to measure their distances to, per cluster, drawn at random."""


def rank_members(points: NDArray[Any], labels: NDArray[np.integer], n_clusters: int) -> list[NDArray[np.intp]]:
    """Rank the members of each cluster, the most typical first: at most `MAX_RANKED` row numbers for each.

    From points (n_points, n_dimensions) whose distances are meaningful; rows labelled -1 are in no cluster.

    Examples
    --------
    >>> x = np.array([[0.0], [1.0], [2.0], [9.0], [50.0], [52.0]])
    >>> rank_members(x, np.array([0, 0, 0, 0, 1, -1]), 2)
    [array([1, 0, 2, 3]), array([4])]
    """
    rng = np.random.default_rng(0)
    return [_ranked(points, at_most(np.flatnonzero(labels == k), MAX_RANKED, rng), rng) for k in range(n_clusters)]


def at_most(rows: NDArray[np.intp], n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """At most `n` of the rows, ascending."""
    return rows if len(rows) <= n else np.sort(rng.choice(rows, n, replace=False))


def borderline_members(p_zx: NDArray[Any], labels: NDArray[np.integer], n: int) -> list[NDArray[np.intp]]:
    """At most `n` members of each cluster with the smallest margin to the second best cluster, the closest first.

    Examples
    --------
    >>> p_zx = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> [rows.tolist() for rows in borderline_members(p_zx, p_zx.argmax(axis=1), 1)]
    [[2], [1]]
    """
    if p_zx.shape[1] < 2:
        return [np.empty(0, np.intp)]
    second, first = np.partition(p_zx, -2, axis=1)[:, -2:].T
    members = [np.flatnonzero(labels == k) for k in range(p_zx.shape[1])]
    return [rows[np.argsort((first - second)[rows], kind="stable")[:n]] for rows in members]


def points_of(columns: Sequence[Cells]) -> NDArray[np.float32]:
    """Rows as points: numbers in standard deviations, categories one-hot, missing cells at the mean."""
    parts = []
    for column in columns:
        if column.ordered:
            parts.append(np.nan_to_num(standardized(column.values))[:, None].astype(np.float32))
        elif column.kind == "category":
            parts.append(np.eye(len(column.levels) + 1, dtype=np.float32)[column.bins])
    return np.hstack(parts) if parts else np.zeros((len(columns[0].bins) if columns else 0, 0), np.float32)


def _ranked(points: NDArray[Any], members: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.intp]:
    if len(members) < 2:
        return members
    x = np.asarray(points[members], dtype=np.float64)
    drawn = at_most(np.arange(len(x)), MAX_DRAWN, rng)
    n_near = len(drawn) // 2
    # If the row itself was drawn, it is the nearest, at distance 0; one more is taken to make up for it.
    nearest = np.partition(euclidean_distances(x, x[drawn]), n_near, axis=1)[:, : n_near + 1]
    return members[np.argsort(nearest.mean(axis=1), kind="stable")]
