r"""Merge small states into few clusters.

The states of a point x and a neighbour x' have the joint distribution :math:`p(z, z') = E[L(x) L(x')^T]`. Each step of
:func:`merge_states` merges the two clusters with the largest ratio

.. math:: \frac{p(z, z')}{p(z) \, p(z')}.

Because it is a ratio, it does not favour large clusters over small ones.

For images, x' is x itself, moved a little (:mod:`neuralbayes.clusters.moved`): it shows the same thing, while the
nearest image may show another. Each step of :func:`merge_versions` merges the two clusters that decrease

.. math:: H(z) - V(z, z'), \qquad V(z, z') = H(z|z') + H(z'|z) = 2 H(z, z') - H(z) - H(z'),

the least. Few clusters have a small entropy H, and clusters that images leave when they are moved have a large
variation of information V (Meila 2007, doi:10.1016/j.jmva.2006.11.013). Unlike the ratio, this does not set a few odd
images apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

Array = NDArray[np.float64]

MARGIN = 0.02
"""Share of the largest H(z) - V(z, z') that fewer clusters may lack."""


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

    def selection(self, max_clusters: int) -> dict[str, list[float]]:
        """The numbers of clusters that `standing_out` compares, and what it compares them by."""
        tried = range(2, min(max_clusters, self.n_states - 1) + 1)
        return {
            "n_clusters": list(tried),
            "ratio": [float(self.ratios[-(n - 1)]) for n in tried],
            "jump": [float(self.jumps()[n - 2]) for n in tried],
        }


@dataclass(frozen=True)
class VersionsMerging(Merging):
    """The order in which states of images were merged.

    Attributes
    ----------
    pairs, ratios
        As in :class:`Merging`.
    information : ndarray of shape (n_states,)
        H(z) - V(z, z') in nats, when 1, 2, ... clusters are left.
    """

    information: Array

    @property
    def most_clusters(self) -> int:
        """Number of clusters with the largest H(z) - V(z, z'). Further clusters would hold a few odd images each."""
        return int(np.argmax(self.information)) + 1

    def standing_out(self, max_clusters: int) -> int:
        """The smallest number, from 2 to `max_clusters`, with nearly the largest H(z) - V(z, z'); 1 if there is none.

        H - V increases up to the number of clusters that images rarely leave when they are moved. It then hardly
        changes for a while, so the position of its maximum is partly chance.
        """
        tried = self.information[1:max_clusters]
        return int(np.argmax(tried >= tried.max() - MARGIN * abs(tried.max()))) + 2 if len(tried) else 1

    def selection(self, max_clusters: int) -> dict[str, list[float]]:
        """The numbers of clusters that `standing_out` compares, and what it compares them by."""
        tried = range(2, min(max_clusters, self.n_states) + 1)
        return {"n_clusters": list(tried), "information": [float(self.information[n - 1]) for n in tried]}


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
        ratio = _ratios(joint, without_mass=np.inf)  # a state without mass has no neighbours: merge it first
        kept, merged = _best_pair(np.where(np.outer(alive, alive), ratio, -np.inf), kind)
        pairs.append((kept, merged))
        ratios.append(ratio[kept, merged] if np.isfinite(ratio[kept, merged]) else 1.0)
        kind[kept] = max(kind[kept], kind[merged])
        _join(joint, kept, merged)
        alive[merged] = False
    return Merging(np.array(pairs, dtype=np.int64).reshape(-1, 2), np.array(ratios))


def merge_versions(joint: Array, kinds: NDArray[np.integer] | None = None) -> VersionsMerging:
    """Merge the two clusters that decrease H(z) - V(z, z') the least, until one is left.

    Takes time proportional to the cube of the number of states.

    Parameters
    ----------
    joint : ndarray of shape (n_states, n_states)
        p(z, z'), as returned by :func:`versions_joint`.
    kinds : ndarray of shape (n_states,), optional
        As in :func:`merge_states`.

    Returns
    -------
    VersionsMerging

    Examples
    --------
    State 2 has a hundredth of the images, and the versions of a tenth of them are in state 1. For states 0 and 1, it is
    a tenth, too.

    >>> joint = np.array([[0.44, 0.05, 0.0], [0.05, 0.449, 0.001], [0.0, 0.001, 0.009]])
    >>> merge_versions(joint).clusters(2), merge_states(joint).clusters(2)
    (array([0, 1, 1]), array([0, 0, 1]))
    """
    joint = joint.astype(np.float64)
    name = np.arange(len(joint))
    kind = np.full(len(joint), -1) if kinds is None else kinds.astype(np.int64)
    pairs, ratios, information = [], [], [_information(joint)]
    sums = sum(map(_of_pairs, joint), start=np.zeros_like(joint))  # (a, b): sum over c of h(J_ac + J_bc)
    while len(joint) > 1:
        kept, merged = _best_pair(-_decrease(joint, sums), kind)
        pairs.append((name[kept], name[merged]))
        ratios.append(_ratios(joint, without_mass=1.0)[kept, merged])
        kind[kept] = max(kind[kept], kind[merged])
        sums -= _of_pairs(joint[kept]) + _of_pairs(joint[merged])
        _join(joint, kept, merged)
        sums += _of_pairs(joint[kept])
        sums[kept] = sums[:, kept] = _h(joint[kept] + joint).sum(axis=1)
        left = np.arange(len(joint)) != merged
        joint, sums, kind, name = joint[np.ix_(left, left)], sums[np.ix_(left, left)], kind[left], name[left]
        information.append(_information(joint))
    return VersionsMerging(
        np.array(pairs, dtype=np.int64).reshape(-1, 2), np.array(ratios), np.array(information[::-1])
    )


def _information(joint: Array) -> float:
    """H(z) - V(z, z') = 3 H(z) - 2 H(z, z')."""
    return float(2.0 * _h(joint).sum() - 3.0 * _h(joint.sum(axis=1)).sum())


def _decrease(joint: Array, sums: Array) -> Array:
    """Decrease of H(z) - V(z, z') = 3 H(z) - 2 H(z, z') if each pair of clusters is merged: (n, n).

    It is 0 for a state without mass. To merge such a state first, minus infinity is returned.
    """
    terms, mass, own = _h(joint), joint.sum(axis=1), np.diag(joint)
    of_rows, of_own, of_mass = terms.sum(axis=1), np.diag(terms), _h(mass)
    # -H(z, z') over the rows and columns of a pair, without counting their four crossings twice
    before = 2.0 * np.add.outer(of_rows, of_rows) - np.add.outer(of_own, of_own) - 2.0 * terms
    after = 2.0 * (sums - _h(own[:, None] + joint) - _h(joint + own)) + _h(np.add.outer(own, own) + 2.0 * joint)
    of_states = _h(np.add.outer(mass, mass)) - np.add.outer(of_mass, of_mass)
    return np.where(np.outer(mass, mass) > 0.0, 3.0 * of_states - 2.0 * (after - before), -np.inf)


def _h(x: Array) -> Array:
    """Return x log x."""
    values: Array = xlogy(x, x)
    return values


def _of_pairs(row: Array) -> Array:
    """Return x log x of the sums of all pairs of entries: (n,) -> (n, n)."""
    return _h(np.add.outer(row, row))


def _ratios(joint: Array, without_mass: float) -> Array:
    """Return p(z, z') / p(z) p(z') of all pairs, and a constant if one of the two has no mass: (n, n)."""
    mass = joint.sum(axis=1)
    chance = np.outer(mass, mass)
    return np.divide(joint, chance, out=np.full_like(joint, without_mass), where=chance > 0.0)


def _join(joint: Array, kept: int, merged: int) -> None:
    """Add the row and the column of a cluster to those of another in place, and set them to 0."""
    joint[kept] += joint[merged]
    joint[:, kept] += joint[:, merged]
    joint[merged], joint[:, merged] = 0.0, 0.0


def _best_pair(score: Array, kind: NDArray[np.int64]) -> tuple[int, int]:
    """Return the pair with the largest score, among pairs of the same kind if there are any; different kinds last."""
    allowed = np.triu(score > -np.inf, 1)
    for first in _by_kind(kind) if (kind >= 0).any() else ():
        if (first & allowed).any():
            allowed &= first
            break
    kept, merged = np.unravel_index(np.argmax(np.where(allowed, score, -np.inf)), score.shape)
    return int(kept), int(merged)


def _by_kind(kind: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Masks (n_states, n_states) of the pairs to merge first, and of the pairs to merge next."""
    has = kind >= 0
    same = (kind[:, None] == kind) & np.outer(has, has)
    return same, ~np.outer(has, has)
