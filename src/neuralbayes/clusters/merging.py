r"""Merge small states into few clusters if they are neighbours more often than by chance.

The states of a point x and a neighbour x' have the joint distribution :math:`p(z, z') = E[L(x) L(x')^T]`. For images,
x' is x itself, moved a little (:mod:`neuralbayes.clusters.moved`): it shows the same thing, while the nearest image
may show another. Each step merges the two clusters with the largest ratio

.. math:: \frac{p(z, z')}{p(z) \, p(z')}.

Because it is a ratio, it does not favour large clusters over small ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def neighbor_joint(p_zx: NDArray[np.floating], neighbors: NDArray[np.integer], weight: Array | None = None) -> Array:
    """p(z, z') of the states of a point and one of its neighbours, in either order.

    Parameters
    ----------
    p_zx : ndarray of shape (n_points, n_states)
        p(z|x) of each point.
    neighbors : ndarray of shape (n_points, n_neighbors)
        Indices of the neighbours of each point.
    weight : ndarray of shape (n_points,), optional
        Weight of each point.

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
    # One neighbour at a time; all at once would take n_neighbors times the memory of the posteriors.
    return versions_joint(p_zx, (p_zx[column] for column in neighbors.T), weight)


def versions_joint(p_zx: NDArray[np.floating], versions: Iterable[NDArray[np.floating]], weight: Array | None) -> Array:
    """p(z, z') of the states of a point and another version of it, symmetric.

    Parameters
    ----------
    p_zx : ndarray of shape (n_points, n_states)
        p(z|x) of each point.
    versions : iterable of ndarray of shape (n_points, n_states)
        p(z|x) of one version of each point, such as an image moved a little.
    weight : ndarray of shape (n_points,), optional
        Weight of each point.

    Returns
    -------
    ndarray of shape (n_states, n_states), with sum 1.

    Examples
    --------
    >>> p_zx = np.eye(2)[[0, 0, 1, 1]]
    >>> versions_joint(p_zx, [p_zx, p_zx[[0, 2, 2, 3]]], None)
    array([[0.375 , 0.0625],
           [0.0625, 0.5   ]])
    """
    own = p_zx if weight is None else p_zx * weight[:, None]
    joint = sum((own.T @ other for other in versions), start=np.zeros((p_zx.shape[1], p_zx.shape[1])))
    symmetric: Array = (joint + joint.T) / (2.0 * joint.sum())
    return symmetric


def mean_of_neighbors(values: NDArray[Any], neighbors: NDArray[np.integer]) -> NDArray[Any]:
    """Mean of the neighbours' values for each point: (n_points, m), (n_points, n_neighbors) -> (n_points, m).

    Examples
    --------
    >>> mean_of_neighbors(np.array([[0.0], [2.0], [6.0]]), np.array([[1, 2], [0, 2], [0, 1]]))
    array([[4.],
           [3.],
           [1.]])
    """
    total = np.zeros_like(values)
    for column in neighbors.T:
        total += values[column]
    mean: NDArray[Any] = total / values.dtype.type(neighbors.shape[1])
    return mean


@dataclass(frozen=True)
class Merging:
    """The order in which states were merged.

    Attributes
    ----------
    pairs : ndarray of shape (n_states - 1, 2)
        The two clusters merged in each step, each named by its first state; the result keeps the name of the first.
    ratios : ndarray of shape (n_states - 1,)
        p(z, z') / p(z) p(z') of the two; 1 if one of them has no mass.
    """

    pairs: NDArray[np.int64]
    ratios: Array

    @property
    def n_states(self) -> int:
        """Number of states before merging."""
        return len(self.pairs) + 1

    def clusters(self, n_clusters: int) -> NDArray[np.int64]:
        """Cluster of each state, numbered from 0, when `n_clusters` are left: (n_states,)."""
        if not 1 <= n_clusters <= self.n_states:
            raise ValueError(f"`n_clusters` must be from 1 to {self.n_states}, got {n_clusters!r}")
        cluster = np.arange(self.n_states)
        for kept, merged in self.pairs[: self.n_states - n_clusters]:
            cluster[cluster == merged] = kept
        return np.unique(cluster, return_inverse=True)[1]

    def jumps(self) -> Array:
        """Drop in neighbour affinity when K = 2, 3, ... clusters are left.

        Returns
        -------
        ndarray of shape (n_states - 2,)
            The ratio of the merge to K clusters over the ratio of the merge to K - 1, starting at K = 2. It is large
            if the data have K clusters.
        """
        ratios = np.maximum(self.ratios[::-1], np.finfo(float).eps)
        return ratios[1:] / ratios[:-1]

    def standing_out(self, max_clusters: int) -> int:
        """Number of clusters, from 2 to `max_clusters`, at the largest of the `jumps`; 1 if there are no jumps."""
        jumps = self.jumps()[: max_clusters - 1]
        return int(np.argmax(jumps)) + 2 if len(jumps) else 1


def merge_states(joint: Array, kinds: NDArray[np.integer] | None = None) -> Merging:
    """Merge the two clusters that are neighbours most often, relative to chance, until one is left.

    Parameters
    ----------
    joint : ndarray of shape (n_states, n_states)
        p(z, z'), as returned by :func:`neighbor_joint` or :func:`versions_joint`.
    kinds : ndarray of shape (n_states,), optional
        States of the same kind are merged first, states of different kinds last; -1 means unknown.

    Returns
    -------
    Merging

    Examples
    --------
    States 0 and 1 are neighbours of each other as often as of themselves, and so are 2 and 3. The pairs never meet.

    >>> merging = merge_states(np.kron(np.eye(2), np.full((2, 2), 0.125)))
    >>> merging.clusters(2), merging.ratios
    (array([0, 0, 1, 1]), array([2., 2., 0.]))
    """
    joint = joint.astype(np.float64)
    alive = np.ones(len(joint), bool)
    kind = np.full(len(joint), -1) if kinds is None else kinds.astype(np.int64)
    pairs, ratios = [], []
    for _ in range(len(joint) - 1):
        mass = joint.sum(axis=1)
        chance = np.outer(mass, mass)
        # A state without mass has no neighbours: merge it first, with any other.
        ratio = np.divide(joint, chance, out=np.full_like(joint, np.inf), where=chance > 0.0)
        upper = np.triu(np.outer(alive, alive), 1)
        ratio[~upper] = -1.0
        for first in _by_kind(kind) if kinds is not None else ():
            if (first & upper).any():
                upper &= first
                break
        kept, merged = np.unravel_index(np.argmax(np.where(upper, ratio, -1.0)), ratio.shape)
        kind[kept] = max(kind[kept], kind[merged])
        pairs.append((kept, merged))
        ratios.append(ratio[kept, merged] if chance[kept, merged] > 0.0 else 1.0)
        joint[kept] += joint[merged]
        joint[:, kept] += joint[:, merged]
        joint[merged], joint[:, merged], alive[merged] = 0.0, 0.0, False
    return Merging(np.array(pairs, dtype=np.int64).reshape(-1, 2), np.array(ratios))


def _by_kind(kind: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Masks (n_states, n_states) of the pairs to merge first, and of the pairs to merge next."""
    has = kind >= 0
    same = (kind[:, None] == kind) & np.outer(has, has)
    return same, ~np.outer(has, has)
