r"""The merges of small states as a hierarchy: a linkage matrix in SciPy's format, to cut, order and draw.

The height of a merge of two clusters is

.. math:: h = \log \frac{r_{\max}}{\max(r, 0.01)}, \qquad r = \frac{p(z, z')}{p(z) \, p(z')},

with r as in :mod:`neuralbayes.clusters.merging` and :math:`r_{\max}` the largest r of all merges. It is the logarithm
of how many times less often the two clusters are neighbours than the closest pair. Clusters that are neighbours as
often as by chance have the height :math:`\log r_{\max}`. All pairs below a hundredth of chance share the largest
height. Heights never decrease: if a merge would be higher than a later one, because it created a closer pair or because
its state has no mass, it gets the height of the later one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list

Array = NDArray[np.float64]

APART = 0.01
"""Lower bound of ratios: differences between pairs that are hardly ever neighbours do not matter."""


def neighbor_heights(ratios: Array) -> Array:
    """Heights of merges from p(z, z') / p(z) p(z'): (n_merges,) -> (n_merges,), not yet monotone.

    Examples
    --------
    >>> neighbor_heights(np.array([8.0, 4.0, 1.0, 0.0])) / np.log(2.0)
    array([0.        , 1.        , 3.        , 9.64385619])
    """
    if ratios.ndim != 1 or not np.isfinite(ratios).all() or (ratios < 0.0).any():
        raise ValueError("`ratios` must be finite and not negative, of shape (n_merges,)")
    logarithms = np.log(np.maximum(ratios, APART))
    return np.asarray(logarithms.max(initial=np.log(APART)) - logarithms, dtype=np.float64)


def linkage_from_merges(pairs: NDArray[np.integer], heights: Array) -> Array:
    """A linkage matrix, as :func:`scipy.cluster.hierarchy.linkage` returns it, from merges in their order.

    Parameters
    ----------
    pairs : ndarray of shape (n_states - 1, 2)
        The two clusters merged in each step, each named by its first state, as in
        :class:`neuralbayes.clusters.merging.Merging`; the result keeps the name of the first.
    heights : ndarray of shape (n_states - 1,)
        Finite heights; a height above a later one is lowered to it.

    Returns
    -------
    ndarray of shape (n_states - 1, 4)
        For each merge the two clusters, the height and the number of states. Merge i creates the cluster
        n_states + i.

    Examples
    --------
    >>> linkage_from_merges(np.array([[1, 3], [0, 2], [0, 1]]), np.array([0.0, 2.0, 1.5]))
    array([[1. , 3. , 0. , 2. ],
           [0. , 2. , 1.5, 2. ],
           [4. , 5. , 1.5, 4. ]])
    """
    if pairs.ndim != 2 or pairs.shape[1] != 2 or heights.shape != pairs.shape[:1]:
        raise ValueError(
            f"`pairs` and `heights` must have shapes (n_merges, 2) and (n_merges,), got {pairs.shape}, {heights.shape}"
        )
    if not np.isfinite(heights).all():
        raise ValueError("`heights` must be finite, got NaN or infinity")
    n_states = len(pairs) + 1
    names = {state: (state, 1) for state in range(n_states)}  # number in the matrix, number of states
    linkage = np.empty((len(pairs), 4))
    for i, (kept, merged) in enumerate(pairs.tolist()):
        if kept == merged or kept not in names or merged not in names:
            raise ValueError(f"`pairs` must name two different clusters in each step, got {[kept, merged]} in step {i}")
        (first, n_first), (second, n_second) = names[kept], names.pop(merged)
        linkage[i] = min(first, second), max(first, second), 0.0, n_first + n_second
        names[kept] = (n_states + i, n_first + n_second)
    linkage[:, 2] = np.minimum.accumulate(heights[::-1])[::-1]
    return linkage


def check_linkage(linkage: Array) -> None:
    """Raise an error unless each cluster is created before it is merged, once, and heights never decrease."""
    if linkage.ndim != 2 or linkage.shape[1] != 4 or not np.isfinite(linkage).all():
        raise ValueError(f"`linkage` must be finite, of shape (n_states - 1, 4), got shape {linkage.shape}")
    n_states = len(linkage) + 1
    merged = np.sort(linkage[:, :2].ravel())
    made_before = (linkage[:, :2].max(axis=1) < n_states + np.arange(n_states - 1)).all()
    if not made_before or not np.array_equal(merged, np.arange(2 * n_states - 2)):
        raise ValueError("`linkage` must merge each cluster once, after it was made")
    if (linkage[:, 2] < 0.0).any() or (np.diff(linkage[:, 2]) < 0.0).any():
        raise ValueError("heights of `linkage` must not be negative or decrease")
    sizes = np.ones(2 * n_states - 1)
    for i, (first, second) in enumerate(linkage[:, :2].astype(np.int64)):
        sizes[n_states + i] = sizes[first] + sizes[second]
    if not np.array_equal(sizes[n_states:], linkage[:, 3]):
        raise ValueError("the last column of `linkage` must be the numbers of states")


def cut(linkage: Array, n_clusters: int) -> NDArray[np.int64]:
    """Cut the hierarchy into `n_clusters` clusters of states.

    Merges are applied in their order, so equal heights do no harm, unlike in SciPy's `fcluster`.

    Parameters
    ----------
    linkage : ndarray of shape (n_states - 1, 4)
    n_clusters : int
        From 1 to n_states.

    Returns
    -------
    ndarray of shape (n_states,)
        Cluster of each state, numbered from 0 in the order of the first state of each cluster.

    Examples
    --------
    >>> linkage = linkage_from_merges(np.array([[1, 3], [0, 2], [0, 1]]), np.array([0.0, 1.0, 2.0]))
    >>> cut(linkage, 3), cut(linkage, 2)
    (array([0, 1, 2, 1]), array([0, 1, 0, 1]))
    """
    _, first, inverse = np.unique(_merged_into(linkage, n_clusters), return_index=True, return_inverse=True)
    rank = np.empty(n_clusters, np.int64)
    rank[np.argsort(first)] = np.arange(n_clusters)
    return rank[inverse]


def cut_as_made(linkage: Array, n_clusters: int) -> NDArray[np.int64]:
    """Like :func:`cut`, with clusters in the order of their creation: single states first, the last merge last.

    Examples
    --------
    >>> linkage = linkage_from_merges(np.array([[1, 3], [0, 2], [0, 1]]), np.array([0.0, 1.0, 2.0]))
    >>> cut_as_made(linkage, 3), cut_as_made(linkage, 2)
    (array([0, 2, 1, 2]), array([1, 0, 1, 0]))
    """
    return np.unique(_merged_into(linkage, n_clusters), return_inverse=True)[1]


def _merged_into(linkage: Array, n_clusters: int) -> NDArray[np.int64]:
    """Number in the matrix of each state's cluster when `n_clusters` are left: (n_states,)."""
    n_states = len(linkage) + 1
    if not 1 <= n_clusters <= n_states:
        raise ValueError(f"`n_clusters` must be from 1 to {n_states}, got {n_clusters!r}")
    parent = np.arange(2 * n_states - 1)
    n_merges = n_states - n_clusters
    parent[linkage[:n_merges, :2].astype(np.int64)] = n_states + np.arange(n_merges)[:, None]
    for cluster in range(n_states + n_merges - 1, -1, -1):  # start at the last: parents know their root
        parent[cluster] = parent[parent[cluster]]
    return parent[:n_states]


def leaf_order(linkage: Array) -> NDArray[np.int64]:
    """Order the states so that no two branches of a drawing cross: (n_states,).

    Examples
    --------
    >>> leaf_order(linkage_from_merges(np.array([[1, 3], [0, 2], [0, 1]]), np.array([0.0, 1.0, 2.0])))
    array([1, 3, 0, 2])
    """
    order = leaves_list(linkage) if len(linkage) else np.zeros(1)
    return np.asarray(order, dtype=np.int64)


def truncate(linkage: Array, n_leaves: int) -> tuple[Array, NDArray[np.int64]]:
    """Keep the upper part of a hierarchy: its last merges, between `n_leaves` clusters.

    Parameters
    ----------
    linkage : ndarray of shape (n_states - 1, 4)
    n_leaves : int
        From 1 to n_states.

    Returns
    -------
    ndarray of shape (n_leaves - 1, 4)
        Linkage matrix whose last column counts leaves.
    ndarray of shape (n_states,)
        The leaf of each state, as in :func:`cut`.

    Examples
    --------
    >>> linkage = linkage_from_merges(np.array([[1, 3], [0, 2], [0, 1]]), np.array([0.0, 1.0, 2.0]))
    >>> truncate(linkage, 3)
    (array([[0., 2., 1., 2.],
           [1., 3., 2., 3.]]), array([0, 1, 2, 1]))
    """
    leaf = cut(linkage, n_leaves)
    n_states = len(linkage) + 1
    n_merges = n_states - n_leaves
    number = np.r_[leaf, np.zeros(n_states - 1, np.int64)]  # number in the upper part of each cluster of the whole
    counts = np.r_[np.ones(n_leaves), np.zeros(n_leaves - 1)]
    upper = np.empty((n_leaves - 1, 4))
    for i, row in enumerate(linkage):
        first, second = np.sort(number[row[:2].astype(np.int64)])
        if i < n_merges:
            number[n_states + i] = first  # both are in one leaf
            continue
        number[n_states + i] = n_leaves + i - n_merges
        counts[number[n_states + i]] = counts[first] + counts[second]
        upper[i - n_merges] = first, second, row[2], counts[first] + counts[second]
    return upper, leaf
