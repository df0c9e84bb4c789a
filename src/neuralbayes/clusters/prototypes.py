"""The members that show best what a cluster is: prototypes first, outliers last.

Saturated probabilities tie, and the largest logits belong to outliers, so members are ranked by where they lie: by the
mean distance to the nearer half of their cluster. Half, because the mean over all members is pulled by a few far away
and puts the prototype of a ring-shaped cluster into its hole, while a few nearest neighbours find near-duplicates.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances_chunked

MAX_MEMBERS = 1_000
"""Members, drawn at random, that distances within a cluster are taken to."""


def rank_members(
    points: NDArray[Any], labels: NDArray[np.integer], n_clusters: int, rng: np.random.RandomState
) -> list[NDArray[np.int64]]:
    """Members of each cluster, the most typical first.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_dimensions)
        In coordinates whose distances mean something.
    labels : ndarray of shape (n_points,)
        From 0 to n_clusters - 1; rows labelled -1 are members of none.
    n_clusters : int
    rng : RandomState
        Chooses `MAX_MEMBERS` of a larger cluster.

    Returns
    -------
    list of ndarray
        Indices of rows for each cluster; empty for one without members.

    Examples
    --------
    >>> x = np.array([[0.0], [1.0], [2.0], [9.0], [50.0], [52.0]])
    >>> rank_members(x, np.array([0, 0, 0, 0, 1, -1]), 2, np.random.RandomState(0))
    [array([1, 0, 2, 3]), array([4])]
    """
    if points.ndim != 2 or labels.shape != points.shape[:1]:
        raise ValueError(
            "`points` and `labels` must have shapes (n_points, n_dimensions) and (n_points,), "
            f"got {points.shape} and {labels.shape}"
        )
    if len(labels) and not -1 <= labels.min() <= labels.max() < n_clusters:
        raise ValueError(f"`labels` must be from -1 to {n_clusters - 1}, got {labels.min()} to {labels.max()}")
    by_cluster = np.argsort(labels, kind="stable")
    ends = np.searchsorted(labels[by_cluster], np.arange(n_clusters + 1))
    groups = [by_cluster[start:end] for start, end in pairwise(ends)]
    return [_ranked(points, members, rng) for members in groups]


def _ranked(points: NDArray[Any], members: NDArray[np.int64], rng: np.random.RandomState) -> NDArray[np.int64]:
    if len(members) < 2:
        return members
    x = np.asarray(points[members], dtype=np.float64)
    n_near = min(len(x), MAX_MEMBERS) // 2

    def spread(distance: NDArray[np.float64], start: int) -> NDArray[np.float64]:
        # The row itself, at distance 0, is among the first if it was drawn; one more makes up for it.
        nearest: NDArray[np.float64] = np.partition(distance, n_near, axis=1)[:, : n_near + 1].mean(axis=1)
        return nearest

    drawn = x if len(x) <= MAX_MEMBERS else x[rng.permutation(len(x))[:MAX_MEMBERS]]
    parts = pairwise_distances_chunked(x, drawn, reduce_func=spread, working_memory=64)
    return members[np.argsort(np.concatenate(list(parts)), kind="stable")]
