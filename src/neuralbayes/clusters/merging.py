r"""Merge small states into few clusters, and keep the order of the merges as a hierarchy.

The states of a point x and a neighbour x' have the joint distribution :math:`p(z, z') = E[L(x) L(x')^T]`. Each step
merges the two clusters with the largest ratio

.. math:: r = \frac{p(z, z')}{p(z) \, p(z')}.

Because it is a ratio, it does not favour large clusters over small ones.

For images, x' is x itself, moved a little: it shows the same thing, while the nearest image may show another. Each step
then merges the two clusters that decrease

.. math:: H(z) - V(z, z'), \qquad V(z, z') = H(z|z') + H(z'|z) = 2 H(z, z') - H(z) - H(z'),

the least. Few clusters have a small entropy H, and clusters that images leave when they are moved have a large
variation of information V (Meila 2007, doi:10.1016/j.jmva.2006.11.013). Unlike the ratio, this does not set a few odd
images apart.

In both hierarchies, the height of a merge is :math:`\log(r_{\max} / \max(r, 0.01))`: how many times less often the two
clusters are neighbours than the closest pair. Heights never decrease: a merge above a later one, because it created a
closer pair or because its state has no mass, gets the height of the later one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import is_monotonic, is_valid_linkage
from scipy.special import xlogy

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
Posteriors = NDArray[np.floating]  # p(z|x): (n_points, n_states)

APART = 0.01  # lower bound of ratios in heights; differences between pairs that hardly ever meet do not matter


def neighbor_joint(p_zx: Posteriors, neighbors: NDArray[np.integer], weight: Array | None = None) -> Array:
    """p(z, z') of the states of a point and one of its neighbours, in either order: (n_states, n_states).

    From p(z|x) of points (n_points, n_states), the neighbours of each (n_points, n_neighbors), and weights (n_points,).
    """
    # One neighbour at a time; all at once would take n_neighbors times the memory of the posteriors.
    return versions_joint(p_zx, (p_zx[column] for column in neighbors.T), weight)


def versions_joint(p_zx: Posteriors, versions: Iterable[Posteriors], weight: Array | None = None) -> Array:
    """As `neighbor_joint`, of the states of a point and other versions of it, such as an image moved a little."""
    own = p_zx if weight is None else p_zx * weight[:, None]
    joint = sum((own.T @ other for other in versions), start=np.zeros((p_zx.shape[1], p_zx.shape[1])))
    symmetric: Array = (joint + joint.T) / (2.0 * joint.sum())
    return symmetric


def separation(p_zx: Posteriors, neighbors: NDArray[np.integer], weight: Array | None = None) -> Array:
    """The `divergence` between each cluster and the rest, with p(z|x) averaged over the neighbours of x."""
    total = np.zeros_like(p_zx)
    for column in neighbors.T:
        total += p_zx[column]
    return divergence(total / p_zx.dtype.type(neighbors.shape[1]), weight)


def divergence(p_zx: Posteriors, weight: Array | None = None) -> Array:
    """Jensen-Shannon divergence in nats between each cluster and the rest, as :func:`neuralbayes.js_divergence`."""
    p_zx = p_zx.astype(np.float64)
    rest = p_zx.sum(axis=1, keepdims=True) - p_zx
    share = np.full(len(p_zx), 1.0 / len(p_zx)) if weight is None else weight / weight.sum()
    mass, of_rest = share @ p_zx, share @ rest
    divided = (mass > 0.0) & (of_rest > 0.0)
    f, g = p_zx / np.where(divided, mass, 1.0), rest / np.where(divided, of_rest, 1.0)
    overlap = 0.5 * share @ ((f + g) * np.log(np.maximum(f + g, 1e-300)) - xlogy(f, f) - xlogy(g, g))  # Theorem 3
    return np.where(divided, (np.log(2.0) - overlap).clip(0.0, np.log(2.0)), 0.0)


@dataclass(frozen=True, eq=False)
class Merging:
    """The order in which states were merged."""

    linkage: Array  # (n_states - 1, 4), as SciPy's: two clusters, height, number of states; merge i makes n_states + i
    ratios: Array  # (n_states - 1,): p(z, z') / p(z) p(z') of the two; 1 if one of them has no mass
    information: Array  # (n_states,): H(z) - V(z, z') in nats, when 1, 2, ... clusters are left


def merge_states(joint: Array, kinds: NDArray[np.integer] | None = None, *, by_information: bool = False) -> Merging:
    """Merge the two clusters with the largest ratio, or that decrease H - V the least, until one is left.

    From p(z, z') of the states (n_states, n_states). States of the same kind (n_states,) are merged first, states of
    different kinds last; -1 is unknown.

    Examples
    --------
    State 2 has a hundredth of the images, and the versions of a tenth of them are in state 1. For states 0 and 1, it is
    a tenth, too.

    >>> joint = np.array([[0.44, 0.05, 0.0], [0.05, 0.449, 0.001], [0.0, 0.001, 0.009]])
    >>> cut(merge_states(joint).linkage, 2), cut(merge_states(joint, by_information=True).linkage, 2)
    (array([0, 0, 1]), array([0, 1, 1]))
    """
    n_states = len(joint)
    joint = joint.astype(np.float64)
    name, size = np.arange(n_states), np.ones(n_states)
    kind = np.full(n_states, -1) if kinds is None else kinds.astype(np.int64)
    linkage, ratios, information = np.zeros((n_states - 1, 4)), np.ones(n_states - 1), np.zeros(n_states)
    sums = sum(map(_of_pairs, joint), start=np.zeros_like(joint)) if by_information else joint
    information[-1] = _information(joint)
    for i in range(n_states - 1):
        chance = np.outer(joint.sum(axis=1), joint.sum(axis=1))  # a state without mass is merged first
        ratio = np.divide(joint, chance, out=np.full_like(joint, np.inf), where=chance > 0.0)
        a, b = _best_pair(-_decrease(joint, sums) if by_information else ratio, kind)
        linkage[i] = min(name[a], name[b]), max(name[a], name[b]), 0.0, size[a] + size[b]
        if np.isfinite(ratio[a, b]):
            ratios[i] = ratio[a, b]
        if by_information:
            sums = sums - _of_pairs(joint[a]) - _of_pairs(joint[b])
        joint[a] += joint[b]
        joint[:, a] += joint[:, b]
        name[a], size[a], kind[a] = n_states + i, size[a] + size[b], max(kind[a], kind[b])
        joint[b], joint[:, b] = 0.0, 0.0
        if by_information:
            sums += _of_pairs(joint[a])
            sums[a] = sums[:, a] = _h(joint[a] + joint).sum(axis=1)
        left = np.arange(len(joint)) != b
        joint, sums = joint[np.ix_(left, left)], sums[np.ix_(left, left)]
        name, size, kind = name[left], size[left], kind[left]
        information[-i - 2] = _information(joint)
    logarithms = np.log(np.maximum(ratios, APART))
    linkage[:, 2] = np.minimum.accumulate((logarithms.max(initial=np.log(APART)) - logarithms)[::-1])[::-1]
    return Merging(linkage, ratios, information)


def _best_pair(score: Array, kind: Labels) -> tuple[int, int]:
    """The pair with the largest score, among pairs of the same kind if there are any; different kinds last."""
    pairs = np.triu(np.ones(score.shape, bool), 1)
    both = np.outer(kind >= 0, kind >= 0)
    choices = (both & (kind[:, None] == kind) & pairs, ~both & pairs, pairs)
    allowed = next(choice for choice in choices if choice.any())
    a, b = np.unravel_index(np.argmax(np.where(allowed, score, -np.inf)), score.shape)
    return int(a), int(b)


def _information(joint: Array) -> float:
    """H(z) - V(z, z') = 3 H(z) - 2 H(z, z')."""
    return float(2.0 * _h(joint).sum() - 3.0 * _h(joint.sum(axis=1)).sum())


def _decrease(joint: Array, sums: Array) -> Array:
    """Decrease of H - V if each pair is merged: (n, n); from the sums of x log x over the summed rows of each pair."""
    terms, mass, own = _h(joint), joint.sum(axis=1), np.diag(joint)
    of_rows, of_own, of_mass = terms.sum(axis=1), np.diag(terms), _h(mass)
    # -H(z, z') over the rows and columns of a pair, without counting their four crossings twice
    before = 2.0 * np.add.outer(of_rows, of_rows) - np.add.outer(of_own, of_own) - 2.0 * terms
    after = 2.0 * (sums - _h(own[:, None] + joint) - _h(joint + own)) + _h(np.add.outer(own, own) + 2.0 * joint)
    of_states = _h(np.add.outer(mass, mass)) - np.add.outer(of_mass, of_mass)
    return np.where(np.outer(mass, mass) > 0.0, 3.0 * of_states - 2.0 * (after - before), -np.inf)


def _h(x: Array) -> Array:
    """x log x."""
    values: Array = xlogy(x, x)
    return values


def _of_pairs(row: Array) -> Array:
    """x log x of the sums of all pairs of entries: (n,) -> (n, n)."""
    return _h(np.add.outer(row, row))


def cut(linkage: Array, n_clusters: int) -> Labels:
    """Cluster of each state when `n_clusters` are left, numbered in the order of their first states: (n_states,).

    Merges are applied in their order, so equal heights do no harm, as they do to SciPy's `cut_tree`.

    Examples
    --------
    >>> linkage = np.array([[1.0, 3.0, 0.0, 2.0], [0.0, 2.0, 1.0, 2.0], [4.0, 5.0, 1.0, 4.0]])
    >>> cut(linkage, 3), cut(linkage, 2)
    (array([0, 1, 2, 1]), array([0, 1, 0, 1]))
    """
    n_states = len(linkage) + 1
    if not 1 <= n_clusters <= n_states:
        raise ValueError(f"`n_clusters` must be from 1 to {n_states}, got {n_clusters!r}")
    cluster = np.arange(2 * n_states - 1)  # in the numbers of the matrix
    for i in range(n_states - n_clusters - 1, -1, -1):
        cluster[linkage[i, :2].astype(np.int64)] = cluster[n_states + i]
    _, first, inverse = np.unique(cluster[:n_states], return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def check_linkage(linkage: Array) -> None:
    """Raise an error unless each cluster is created before it is merged, once, and heights never decrease."""
    if linkage.ndim != 2 or linkage.shape[1] != 4 or not np.isfinite(linkage).all():
        raise ValueError(f"`linkage` must be finite, of shape (n_states - 1, 4), got shape {linkage.shape}")
    once = np.sort(linkage[:, :2], axis=None) == np.arange(2 * len(linkage))  # SciPy does not look at a single merge
    if len(linkage) and not (once.all() and is_valid_linkage(linkage) and is_monotonic(linkage)):
        raise ValueError("`linkage` must merge each cluster once, after it was made, and heights must not decrease")
