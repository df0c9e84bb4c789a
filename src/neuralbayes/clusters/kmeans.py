"""k-means from random starts and, for many clusters, from a hierarchy of small cells, merged by Ward's criterion."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from neuralbayes.clusters.known import NO_HINTS, UNKNOWN, Hints, Labels

Array = NDArray[np.floating]

FEW_CLUSTERS = 12
"""Number of clusters up to which random starts suffice."""

CELLS_PER_CLUSTER = 4
LEAST_CELLS = 300

N_STARTS = 10
"""Number of random starts, fewer if they cost more than `MULTIPLICATIONS`."""

MULTIPLICATIONS = 5e9

MANY_POINTS = 25_000
"""Number of points above which cells are fitted to a sample."""

POINTS_PER_CELL = 20
"""Number of points of that sample per cell."""

MAX_ROUNDS = 50
"""Maximum number of rounds of k-means with hints."""


def kmeans(points: Array, n_clusters: int, rng: np.random.RandomState, hints: Hints = NO_HINTS) -> NDArray[np.int64]:
    """Labels (n,) of the k-means with the lowest sum of squares, from random starts and, if clusters are many, from
    Ward's.

    With many clusters, Ward's are close to the best of very many random starts. Labels respect the hints: points of a
    known class get the cluster of its number. There are fewer labels if there are fewer distinct points.
    """
    weight = hints.weight
    affordable = int(MULTIPLICATIONS / (30 * n_clusters * points.size))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct points than clusters
        fits = []
        if n_clusters > FEW_CLUSTERS or not affordable:
            start = _ward_start(points, n_clusters, rng, weight)
            fits.append(KMeans(len(start), init=start, n_init=1, max_iter=50).fit(points, sample_weight=weight))
        if affordable:
            random = KMeans(n_clusters, n_init=min(N_STARTS, affordable), max_iter=50, random_state=rng)
            fits.append(random.fit(points, sample_weight=weight))
    best = min(fits, key=lambda fitted: fitted.inertia_)
    return _constrained(points, np.asarray(best.labels_, dtype=np.int64), n_clusters, hints)


def _ward_start(
    points: Array, n_clusters: int, rng: np.random.RandomState, weight: NDArray[np.float64] | None
) -> Array:
    """Means of Ward's clusters of small cells: (at most n_clusters, n_dimensions)."""
    _, centers, sizes = cells(points, max(LEAST_CELLS, CELLS_PER_CLUSTER * n_clusters), rng, weight)
    merged = fcluster(ward(centers, sizes), min(n_clusters, len(centers)), "maxclust") - 1
    start = np.zeros((merged.max() + 1, points.shape[1]))
    np.add.at(start, merged, centers * sizes[:, None])
    return (start / np.bincount(merged, weights=sizes)[:, None]).astype(points.dtype)


def _constrained(points: Array, labels: Labels, n_clusters: int, hints: Hints) -> Labels:
    """Continue k-means from `labels` under the hints, or from the means of known classes if that ends better.

    Points without hints may go to any cluster, and clusters without a known class may hold any points.
    """
    if not hints.constrain:
        return labels
    weight = np.ones(len(points)) if hints.weight is None else hints.weight
    starts = [hints.match(labels, n_clusters)]
    if hints.known is not None and len(hints.classes):
        means = np.stack([points[hints.known == c].mean(axis=0) for c in hints.classes])
        nearest = hints.classes[_squares(points, means).argmin(axis=1)]
        free = ~np.isin(starts[0], hints.classes)  # keep clusters that are not a known class
        starts.append(np.where(free | (hints.known != UNKNOWN), starts[0], nearest))
    best, least = labels, np.inf
    for start in starts:
        current, total = start, np.inf
        for _ in range(MAX_ROUNDS):
            sizes = np.bincount(current, weights=weight, minlength=n_clusters)
            centers = np.zeros((n_clusters, points.shape[1]))
            np.add.at(centers, current, points * weight[:, None])
            centers /= np.maximum(sizes, 1e-300)[:, None]
            cost = _squares(points, centers)
            cost[:, sizes == 0.0] = np.inf
            cost[:, [c for c in hints.classes if sizes[c] == 0.0]] = cost.max(where=np.isfinite(cost), initial=0.0)
            following = hints.assign(cost)
            total = float(weight @ np.take_along_axis(cost, following[:, None], 1)[:, 0])
            if np.array_equal(following, current):
                break
            current = following
        if total < least:
            best, least = current, total
    return best


def _squares(points: Array, centers: Array) -> NDArray[np.float64]:
    """Squared distances (n_points, n_centers)."""
    result: NDArray[np.float64] = (
        np.square(points).sum(axis=1, dtype=np.float64)[:, None]
        - 2.0 * (points @ centers.T)
        + np.square(centers).sum(axis=1)
    )
    return result.clip(0.0)


def cells(
    points: Array, n_cells: int, rng: np.random.RandomState, weight: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Divide points into many small non-empty cells: cell of each point (n,), centres (m, d) and sizes (m,).

    With weights, sizes are sums of weights and centres are weighted means.
    """
    if n_cells >= len(points):
        sizes = np.ones(len(points)) if weight is None else weight.astype(np.float64)
        return np.arange(len(points)), np.asarray(points, np.float64), sizes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = KMeans(n_cells, n_init=1, max_iter=6, random_state=rng)
        if len(points) < MANY_POINTS:
            labels = fitted.fit(points, sample_weight=weight).labels_
        else:
            some = np.sort(rng.permutation(len(points))[: POINTS_PER_CELL * n_cells])
            labels = fitted.fit(points[some], sample_weight=None if weight is None else weight[some]).predict(points)
    labels = np.unique(labels, return_inverse=True)[1]
    sizes = np.bincount(labels, weights=weight).astype(np.float64)
    centers = np.zeros((len(sizes), points.shape[1]))
    np.add.at(centers, labels, points if weight is None else points * weight[:, None])
    return labels, centers / sizes[:, None], sizes


def ward(centers: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Merge cells by the smallest increase of the sum of squares, like SciPy's ``linkage`` for points.

    Parameters
    ----------
    centers : ndarray of shape (n_cells, n_dimensions)
    sizes : ndarray of shape (n_cells,)
        Number of points in each cell, which SciPy does not accept.

    Returns
    -------
    ndarray of shape (n_cells - 1, 4)
        The two clusters (new ones are numbered from n_cells); sqrt(2 x increase); the number of cells.

    Examples
    --------
    >>> from scipy.cluster.hierarchy import linkage
    >>> x = np.random.RandomState(0).normal(size=(30, 3))
    >>> np.allclose(ward(x, np.ones(30)), linkage(x, "ward"))
    True
    """
    c, n = centers.copy(), sizes.copy()
    m = len(c)
    names, leaves, tree = np.arange(m), np.ones(m), np.empty((m - 1, 4))
    squares = np.square(c).sum(axis=1)
    cost = (squares[:, None] + squares - 2.0 * c @ c.T).clip(0.0) * (n[:, None] * n / (n[:, None] + n))
    np.fill_diagonal(cost, np.inf)
    nearest = cost.argmin(axis=1)
    least = cost[np.arange(m), nearest]
    alive = np.ones(m, bool)
    for step in range(m - 1):
        i = int(least.argmin())
        i, j = sorted((i, int(nearest[i])))
        tree[step] = (*sorted((names[i], names[j])), np.sqrt(2.0 * cost[i, j]), leaves[i] + leaves[j])
        c[i] = (n[i] * c[i] + n[j] * c[j]) / (n[i] + n[j])
        n[i] += n[j]
        leaves[i] += leaves[j]
        names[i], alive[j] = m + step, False
        cost[j], cost[:, j], least[j] = np.inf, np.inf, np.inf
        fresh = np.square(c - c[i]).sum(axis=1) * n * n[i] / (n + n[i])
        fresh[~alive] = fresh[i] = np.inf
        cost[i] = cost[:, i] = fresh
        stale = alive & ((nearest == i) | (nearest == j))
        stale[i] = True
        for k in np.flatnonzero(stale):
            nearest[k] = cost[k].argmin()
            least[k] = cost[k, nearest[k]]
        closer = alive & (fresh < least)
        nearest[closer], least[closer] = i, fresh[closer]
    return tree
