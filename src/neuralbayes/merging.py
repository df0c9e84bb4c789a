r"""Small states into few clusters: those whose neighbours are of the same states.

A point x and one of its neighbours x' have states with the joint distribution :math:`p(z, z') = E[L(x) L(x')^T]`. A
cluster is worth knowing for what it tells about the state of a neighbour, :math:`I(c; z')`. To merge clusters a and b
loses

.. math:: \Delta I = \sum_{z'} p(a, z') \log \frac{p(z' \mid a)}{p(z' \mid a \cup b)}
    + p(b, z') \log \frac{p(z' \mid b)}{p(z' \mid a \cup b)}

(the agglomerative information bottleneck of Slonim and Tishby 1999), and the pair is merged that has the least
:math:`\Delta I / (p(a) + p(b))^{1/4}`, again and again. By :math:`\Delta I` alone small clusters would go first,
whatever they are; without any weight of size, a few odd points would be kept as a cluster. The exponent is between.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

Array = NDArray[np.float64]

SIZE = 0.25
"""Power of the size of a pair that what it loses is divided by."""


def neighbor_joint(p_zx: NDArray[np.floating], neighbors: NDArray[np.integer]) -> Array:
    """p(z, z') of the states of a point and of one of its neighbours, either of which may come first.

    Parameters
    ----------
    p_zx : ndarray of shape (n_points, n_states)
        p(z|x) of each point.
    neighbors : ndarray of shape (n_points, n_neighbors)
        Indices of the neighbours of each point.

    Returns
    -------
    ndarray of shape (n_states, n_states), symmetric, with sum 1.

    Examples
    --------
    >>> neighbor_joint(np.eye(3)[[0, 0, 1, 2]], np.array([[1], [0], [3], [2]]))
    array([[0.5 , 0.  , 0.  ],
           [0.  , 0.  , 0.25],
           [0.  , 0.25, 0.  ]])
    """
    joint: Array = np.zeros((p_zx.shape[1], p_zx.shape[1]))
    for column in neighbors.T:  # one at a time: all at once would be n_neighbors times the posteriors
        joint += p_zx.T @ p_zx[column]
    symmetric: Array = (joint + joint.T) / (2.0 * joint.sum())
    return symmetric


@dataclass(frozen=True)
class Merging:
    """The order in which states were merged.

    Attributes
    ----------
    pairs : ndarray of shape (n_states - 1, 2)
        The two clusters, each named by its first state, that became one in each step; the name of the first stays.
    costs : ndarray of shape (n_states - 1,)
        What each step lost, as the module defines it; 0 where one of the two has no mass.
    """

    pairs: NDArray[np.int64]
    costs: Array

    @property
    def n_states(self) -> int:
        """How many there were at first."""
        return len(self.pairs) + 1

    def clusters(self, n_clusters: int) -> NDArray[np.int64]:
        """The cluster of each state, from 0 on, when `n_clusters` are left: (n_states,)."""
        if not 1 <= n_clusters <= self.n_states:
            raise ValueError(f"`n_clusters` must be from 1 to {self.n_states}, got {n_clusters!r}")
        cluster = np.arange(self.n_states)
        for kept, merged in self.pairs[: self.n_states - n_clusters]:
            cluster[cluster == merged] = kept
        return np.unique(cluster, return_inverse=True)[1]

    def jumps(self) -> Array:
        """How many times as much the next step would lose as the last one did, when K = 2, 3, ... clusters are left.

        Returns
        -------
        ndarray of shape (n_states - 2,)
            The cost of the step to K - 1 clusters over that of the step to K; the first is that of K = 2. A number of
            clusters that the data have stands out.
        """
        costs = np.maximum(self.costs[::-1], np.finfo(float).eps)
        return costs[:-1] / costs[1:]

    def standing_out(self, max_clusters: int) -> int:
        """The number of clusters, from 2 to `max_clusters`, with the largest of the `jumps`; 1 where there is none."""
        jumps = self.jumps()[: max_clusters - 1]
        return int(np.argmax(jumps)) + 2 if len(jumps) else 1


def merge_states(joint: Array) -> Merging:
    """Merge the two clusters that lose least by it, until one is left.

    Parameters
    ----------
    joint : ndarray of shape (n_states, n_states)
        p(z, z'), as :func:`neighbor_joint` makes it.

    Returns
    -------
    Merging

    Examples
    --------
    States 0 and 1 have the same neighbours, and so have 2 and 3; between these pairs there is nothing, and to merge
    them loses log 2.

    >>> merging = merge_states(np.kron(np.eye(2), np.full((2, 2), 0.125)))
    >>> merging.clusters(2), merging.costs.round(3)
    (array([0, 0, 1, 1]), array([0.   , 0.   , 0.693]))
    """
    rows = joint.astype(np.float64)  # p(cluster, z') in the row of the first state of a cluster
    cost = np.full(rows.shape, np.inf)
    left = np.arange(len(rows))
    for state in left:
        cost[state, state + 1 :] = _lost(rows[state], rows[state + 1 :])
    pairs, costs = [], []
    while len(left) > 1:
        kept, merged = np.unravel_index(np.argmin(cost), cost.shape)
        pairs.append((kept, merged))
        costs.append(cost[kept, merged])
        rows[kept] += rows[merged]
        cost[merged], cost[:, merged] = np.inf, np.inf
        left = left[left != merged]
        others = left[left != kept]
        cost[np.minimum(kept, others), np.maximum(kept, others)] = _lost(rows[kept], rows[others])
    return Merging(np.array(pairs, dtype=np.int64).reshape(-1, 2), np.array(costs))


def _lost(row: Array, others: Array) -> Array:
    """What a cluster with p(cluster, z') as in `row` and each of the others lose by being merged: (n_others,)."""
    both = row + others
    size, other_sizes, sizes = row.sum(), others.sum(axis=1), both.sum(axis=1)
    entropies = xlogy(row, row).sum() + xlogy(others, others).sum(axis=1) - xlogy(both, both).sum(axis=1)
    lost = entropies - xlogy(size, size) - xlogy(other_sizes, other_sizes) + xlogy(sizes, sizes)
    lost = np.where((size > 0.0) & (other_sizes > 0.0), np.maximum(lost, 0.0), 0.0)
    cost: Array = np.divide(lost, sizes**SIZE, out=np.zeros_like(lost), where=sizes > 0.0)
    return cost
