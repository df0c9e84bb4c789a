"""Other rules for merging states into clusters, to compare with neuralbayes.clusters.merging."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr
from sklearn.cluster import SpectralClustering

Array = NDArray[Any]


def merged_by(cost: Callable[[Array, Array, int, int], float], joint: Array, n_clusters: int) -> Array:
    """Merge the pair with the lowest cost until `n_clusters` are left; returns the cluster of each state.

    `cost` takes p(cluster, state'), p(cluster, cluster') and the indices of two clusters.
    """
    rows, both = joint.copy(), joint.copy()
    members = [[state] for state in range(len(joint))]
    while len(members) > n_clusters:
        pairs = [(i, j) for j in range(len(members)) for i in range(j)]
        i, j = min(pairs, key=lambda pair: cost(rows, both, *pair))
        rows[i] += rows[j]
        both[i] += both[j]
        both[:, i] += both[:, j]
        rows, both = np.delete(rows, j, axis=0), np.delete(np.delete(both, j, axis=0), j, axis=1)
        members[i] += members.pop(j)
    labels = np.empty(len(joint), np.int64)
    for cluster, states in enumerate(members):
        labels[states] = cluster
    return labels


def lost_information(rows: Array, both: Array, i: int, j: int) -> float:
    """Decrease of I(cluster; state of a neighbour), as in the agglomerative information bottleneck."""
    merged = rows[i] + rows[j]
    expected = [merged * (row.sum() / merged.sum()) for row in (rows[i], rows[j])]
    return float(rel_entr(rows[i], expected[0]).sum() + rel_entr(rows[j], expected[1]).sum())


def share_of_smaller(rows: Array, both: Array, i: int, j: int) -> float:
    """Negative share of the smaller cluster's neighbours that belong to the larger one."""
    return -float(both[i, j] / max(min(rows[i].sum(), rows[j].sum()), np.finfo(float).tiny))


def spectral(joint: Array, n_clusters: int) -> Array:
    labels: Array = SpectralClustering(n_clusters, affinity="precomputed", random_state=0).fit_predict(joint)
    return labels


MERGINGS: dict[str, Callable[[Array, int], Array]] = {
    "least information lost": lambda joint, n: merged_by(lost_information, joint, n),
    "largest share of the smaller's neighbours": lambda joint, n: merged_by(share_of_smaller, joint, n),
    "spectral clustering of the states": spectral,
}
