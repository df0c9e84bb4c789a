r"""Small states into few clusters, by what each tells about the states of the neighbours.

A point x and one of its neighbours x' have states with the joint distribution
:math:`p(z, z') = E[L(x) L(x')^T]`. States that belong together have neighbours of the same kinds: to merge them loses
little of I(z; z'). The pair that loses least is merged, again and again; this is the agglomerative information
bottleneck of Slonim and Tishby, "Agglomerative Information Bottleneck", NIPS 1999.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

Array = NDArray[np.float64]


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
    losses : ndarray of shape (n_states - 1,)
        What each step lost of I(z; z') in nats.
    """

    pairs: NDArray[np.int64]
    losses: Array

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
        """How many times as much the step from K clusters to K - 1 loses as the step to K, K = 2, 3, ...

        Returns
        -------
        ndarray of shape (n_states - 2,)
            The first is that of K = 2. A number of clusters that the data have stands out.
        """
        losses = np.maximum(self.losses[::-1], np.finfo(float).eps)
        return losses[:-1] / losses[1:]


def merge_states(joint: Array) -> Merging:
    """Merge the pair of clusters that loses least of I(z; z'), until one is left.

    Parameters
    ----------
    joint : ndarray of shape (n_states, n_states)
        p(z, z'), as :func:`neighbor_joint` makes it.

    Returns
    -------
    Merging

    Examples
    --------
    The neighbours of states 0 and 1 are of the same kinds, and so are those of 2 and 3: within these pairs nothing is
    lost, between them all that is known, log 2.

    >>> joint = np.kron(np.eye(2), [[0.125, 0.125], [0.125, 0.125]])
    >>> merging = merge_states(joint)
    >>> merging.clusters(2), merging.losses.round(3)
    (array([0, 0, 1, 1]), array([0.   , 0.   , 0.693]))
    """
    rows = joint.astype(np.float64)
    alive = np.ones(len(rows), bool)
    cost = np.full(joint.shape, np.inf)
    for i in range(len(rows) - 1):
        cost[i, i + 1 :] = _loss(rows[i], rows[i + 1 :])
    pairs, losses = [], []
    for _ in range(len(rows) - 1):
        kept, merged = np.unravel_index(np.argmin(cost), cost.shape)
        pairs.append((kept, merged))
        losses.append(max(float(cost[kept, merged]), 0.0))
        rows[kept] += rows[merged]
        alive[merged] = False
        cost[merged], cost[:, merged] = np.inf, np.inf
        others = np.flatnonzero(alive & (np.arange(len(rows)) != kept))
        cost[np.minimum(kept, others), np.maximum(kept, others)] = _loss(rows[kept], rows[others])
    return Merging(np.array(pairs, dtype=np.int64).reshape(-1, 2), np.array(losses))


def _loss(row: Array, others: Array) -> Array:
    """What I(z; z') loses where a row of the joint is merged with each of others: (S,), (m, S) -> (m,).

    It is the Jensen-Shannon divergence between the neighbours of the two, weighted by their masses and times their sum.
    """
    mass, masses = row.sum(), others.sum(axis=1, keepdims=True)
    mean = (row + others) / np.maximum(mass + masses, np.finfo(float).tiny)
    loss: Array = (rel_entr(row, mass * mean) + rel_entr(others, masses * mean)).sum(axis=1)
    return loss
