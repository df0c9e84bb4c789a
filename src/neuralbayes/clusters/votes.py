"""Votes of simple methods about the clusters, k-means, Gaussian mixtures and a graph, and their consensus.

No method is right on all data, and without labels one cannot know which one is right. What several of them agree on is
right more often than any of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from neuralbayes.clusters.known import NO_HINTS, UNKNOWN, Hints, numbered_by_class
from neuralbayes.clusters.posterior import Quadratic
from neuralbayes.clusters.space import Space
from neuralbayes.neighbors import nearest_neighbors

Labels = NDArray[np.int64]
Array = NDArray[np.float64]
Points = NDArray[np.floating]

GRAPH_NEIGHBORS, SMOOTH_NEIGHBORS = 30, 15  # nearest embeddings that the graph connects, and to average with
SPECTRAL_ROWS = 12_000  # embeddings above which few eigenvectors of the graph say less than wider averages
FEW_CLUSTERS = 12  # number of clusters up to which random starts suffice
MICRO_PER_CLUSTER, LEAST_MICRO = 4, 300
N_STARTS, MULTIPLICATIONS = 10, 5e9  # random starts, fewer if they cost more
MANY_POINTS, POINTS_PER_MICRO = 25_000, 20  # points above which microclusters are fitted to a sample, and its size
MAX_ROUNDS = 50  # of k-means with hints
N_STEPS, TOLERANCE = 60, 1e-4  # maximum of steps, and increase of the mean log-likelihood below which a fit ends


def table_votes(spaces: Iterable[Space], n_clusters: int, rng: np.random.RandomState, hints: Hints) -> list[Labels]:
    """Two votes in each space: Gaussian mixtures that start from k-means of the rows and of the rows in units of noise.

    k-means finds round clusters of equal size; the mixtures correct their shapes.
    """
    votes = []
    for space in spaces:
        for points in (space.denoised, space.points):
            start = np.eye(n_clusters)[kmeans(points, n_clusters, rng, hints)]
            votes.append(fit_mixture(space.points, start, space.floor, hints)[1].argmax(axis=1))
    return votes


def embedding_votes(unit: Points, n_clusters: int, rng: np.random.RandomState, hints: Hints) -> list[Labels]:
    """Three votes: k-means of unit rows, of rows averaged with their neighbours, and of their graph.

    For many rows, wider averages replace the graph.
    """
    _, near = nearest_neighbors(unit, min(GRAPH_NEIGHBORS, len(unit) - 1))
    third = spectral_coordinates(near, n_clusters) if len(unit) <= SPECTRAL_ROWS else _smoothed(unit, near)
    spaces = (unit, _smoothed(unit, near[:, :SMOOTH_NEIGHBORS]), third)
    return [kmeans(points, n_clusters, rng, hints) for points in spaces]


def _smoothed(unit: Points, near: Labels) -> Points:
    """Embeddings half replaced by the mean of their neighbours in either direction, twice, of unit length."""
    graph = _neighbors_of(near)
    union = ((graph + graph.T) > 0).astype(np.float32)
    average, smooth = sp.diags_array(1.0 / union.sum(axis=1)) @ union, unit
    for _ in range(2):
        smooth = 0.5 * smooth + 0.5 * (average @ smooth)
    return np.asarray(_unit(smooth), dtype=unit.dtype)


def _neighbors_of(near: Labels) -> sp.csr_array:
    """1 for the neighbours of each row: (n_rows, n_neighbors) -> (n_rows, n_rows)."""
    n, k = near.shape
    return sp.csr_array((np.ones(n * k, np.float32), near.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))


def _unit(rows: Points) -> Points:
    """Rows divided by their lengths."""
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(1e-12))


def spectral_coordinates(near: Labels, n_clusters: int) -> NDArray[np.float32]:
    """Coordinates, of unit length, of the graph that weights neighbours by the neighbours they share: (n_rows, K)."""
    n, graph = len(near), _neighbors_of(near)
    closed = (graph + sp.eye_array(n, dtype=np.float32)).tocsr()
    weights = (closed @ closed.T).multiply((graph + graph.T) > 0)
    degree = sp.diags_array(1.0 / np.sqrt(weights.sum(axis=1).clip(1e-12)))
    laplacian = (degree @ weights @ degree).astype(np.float64)
    if n_clusters >= n - 1:  # eigsh needs fewer vectors than rows
        vectors = np.linalg.eigh(laplacian.toarray())[1][:, -n_clusters:]
    else:
        start = np.random.RandomState(0).uniform(0.5, 1.0, n)
        _, vectors = scipy.sparse.linalg.eigsh(laplacian, n_clusters, which="LA", v0=start, tol=1e-4)
    return _unit(vectors).astype(np.float32)


def agree(
    partitions: Sequence[Labels], n_clusters: int, rng: np.random.RandomState, hints: Hints = NO_HINTS
) -> tuple[Labels, Array]:
    """The consensus of the partitions (n_rows,), and the share of them that put each row into each of its clusters.

    Rows with hints give their whole vote to the cluster that the hints allow.
    """
    together = kmeans(co_association(partitions, n_clusters, hints.weight), n_clusters, rng, hints)
    shares = matched_shares(partitions, together, n_clusters, hints.weight)
    shares[hints.rows] = np.eye(n_clusters)[hints.assign(-shares)[hints.rows]]
    consensus = shares.argmax(axis=1)
    for k in np.setdiff1d(together, consensus):  # no cluster may vanish
        consensus[together == k] = k
    return consensus, shares


def co_association(partitions: Sequence[Labels], n_dimensions: int, weight: Array | None = None) -> Array:
    """Spectral coordinates (n_rows, n_dimensions), of unit length, of the co-association matrix.

    The matrix counts how many partitions put two rows into one cluster. It is Z Z^T with one-hot rows Z, so its
    eigenvectors follow from the eigenvectors of the small Z^T Z, at a cost linear in the number of rows. A row of
    weight 2 counts as two.
    """
    n = len(partitions[0])
    one_hot = sp.hstack(
        [sp.csr_array((np.ones(n), p, np.arange(n + 1)), shape=(n, p.max() + 1)) for p in partitions], format="csr"
    )
    one_hot = one_hot[:, one_hot.sum(axis=0) > 0]
    weighted = one_hot if weight is None else sp.diags_array(weight) @ one_hot
    degree = sp.diags_array(1.0 / np.sqrt(one_hot @ weighted.sum(axis=0)))
    scaled = degree @ one_hot
    values, vectors = np.linalg.eigh((scaled.T @ (degree @ weighted)).toarray())
    values, vectors = values[-n_dimensions:], vectors[:, -n_dimensions:]
    return _unit(scaled @ (vectors / np.sqrt(values.clip(1e-9)))).astype(np.float64, copy=False)


def matched_shares(
    partitions: Sequence[Labels], reference: Labels, n_clusters: int, weight: Array | None = None
) -> Array:
    """Share of the partitions that put each row into each cluster of `reference`, after matching their clusters."""
    result = np.zeros((len(reference), n_clusters))
    target = np.eye(n_clusters)[reference]
    weighted = target if weight is None else target * weight[:, None]
    for labels in partitions:
        one_hot = np.eye(n_clusters)[labels]
        rows, columns = linear_sum_assignment(one_hot.T @ weighted, maximize=True)
        result[:, columns] += one_hot[:, rows]
    return result / len(partitions)


def kmeans(points: Points, n_clusters: int, rng: np.random.RandomState, hints: Hints = NO_HINTS) -> NDArray[np.int64]:
    """Labels (n,) by k-means from random starts and, for many clusters, from Ward's clusters; fewer for equal points.

    Labels respect the hints: points of a known class get the cluster of its number.
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
    points: Points, n_clusters: int, rng: np.random.RandomState, weight: NDArray[np.float64] | None
) -> Points:
    """Means of microclusters merged by Ward's criterion: (at most n_clusters, n_dimensions)."""
    centers, sizes = microclusters(points, max(LEAST_MICRO, MICRO_PER_CLUSTER * n_clusters), rng, weight)
    merged = fcluster(ward(centers, sizes), min(n_clusters, len(centers)), "maxclust") - 1
    start = np.zeros((merged.max() + 1, points.shape[1]))
    np.add.at(start, merged, centers * sizes[:, None])
    return (start / np.bincount(merged, weights=sizes)[:, None]).astype(points.dtype)


def _constrained(points: Points, labels: Labels, n_clusters: int, hints: Hints) -> Labels:
    """Continue k-means from `labels` under the hints, or from the means of known classes if that ends better."""
    if not hints.constrain:
        return labels
    weight = np.ones(len(points)) if hints.weight is None else hints.weight
    of_classes = hints.masses(np.eye(n_clusters)[labels])
    starts = [numbered_by_class(np.arange(n_clusters), n_clusters, of_classes)[labels]]
    if len(hints.classes):
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


def _squares(points: Points, centers: Points) -> NDArray[np.float64]:
    """Squared distances (n_points, n_centers)."""
    lengths = np.square(points).sum(axis=1, dtype=np.float64)[:, None]
    return np.asarray((lengths - 2.0 * (points @ centers.T) + np.square(centers).sum(axis=1)).clip(0.0))


def microclusters(
    points: Points, n_micro: int, rng: np.random.RandomState, weight: Array | None = None
) -> tuple[Array, Array]:
    """Centres (m, d) and (weighted) sizes (m,) of many small, non-empty clusters that points are divided into."""
    if n_micro >= len(points):
        return np.asarray(points, np.float64), np.ones(len(points)) if weight is None else weight
    some = np.arange(len(points))
    if len(points) >= MANY_POINTS:
        some = np.sort(rng.permutation(len(points))[: POINTS_PER_MICRO * n_micro])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = KMeans(n_micro, n_init=1, max_iter=6, random_state=rng)
        fitted.fit(points[some], sample_weight=None if weight is None else weight[some])
        labels = fitted.labels_ if len(some) == len(points) else fitted.predict(points)
    labels = np.unique(labels, return_inverse=True)[1]
    sizes = np.bincount(labels, weights=weight).astype(np.float64)
    centers = np.zeros((len(sizes), points.shape[1]))
    np.add.at(centers, labels, points if weight is None else points * weight[:, None])
    return centers / sizes[:, None], sizes


def ward(centers: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Merge microclusters (n_micro, n_dimensions) by the smallest increase of the sum of squares: a linkage as SciPy's.

    `sizes` are their numbers of points, which SciPy's ``linkage`` does not take.
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


def fit_mixture(x: Array, p_zx: Array, floor: Array, hints: Hints = NO_HINTS) -> tuple[Quadratic, Array]:
    """Fit a mixture by expectation maximisation: its posterior, and p(z|x) of the rows (n_rows, n_clusters).

    From rows (n_rows, n_dimensions), the shares of each in each cluster to start from, and the covariance of the
    rounding of the columns, which every covariance includes. A row of weight 2 counts as two. Rows with hints belong
    entirely to the most probable cluster that the hints allow.
    """
    previous = -np.inf
    for _ in range(N_STEPS):
        posterior = maximize(x, p_zx, floor, hints.weight)
        log_joint = posterior.logits(x)
        log_density = logsumexp(log_joint, axis=1)
        p_zx = np.exp(log_joint - log_density[:, None])
        if hints.constrain:
            p_zx[hints.rows] = np.eye(p_zx.shape[1])[hints.assign(-log_joint)[hints.rows]]
        value = float(np.average(log_density, weights=hints.weight))
        if value - previous < TOLERANCE:
            break
        previous = value
    return posterior, p_zx


def maximize(x: Array, p_zx: Array, floor: Array, weight: Array | None = None) -> Quadratic:
    """The posterior of a mixture with the weights, means and covariances of the shares `p_zx`; see `fit_mixture`."""
    n_rows, d = x.shape
    p = p_zx if weight is None else weight[:, None] * p_zx
    counts = p.sum(axis=0) + 1e-6
    centers = (p.T @ x) / counts[:, None]
    second = x.T @ (x if weight is None else weight[:, None] * x)
    pooled = (second - (centers.T * counts) @ centers) / (n_rows if weight is None else weight.sum()) + floor
    pooled = 0.95 * pooled + 0.05 * np.diag(np.diag(pooled))
    pooled += (1e-5 * np.trace(pooled) / d + 1e-12) * np.eye(d)
    own = counts / (counts + d)  # weight of a cluster's own covariance
    offsets, roots = np.log((counts + 1.0) / (counts + 1.0).sum()), np.empty((len(counts), d, d))
    for k, center in enumerate(centers):
        members = np.flatnonzero(p[:, k] > 1e-9)  # the others would only cost time
        difference = x[members] - center
        covariance = (difference.T * p[members, k]) @ difference / counts[k] + floor
        factor = np.linalg.cholesky(own[k] * covariance + (1.0 - own[k]) * pooled)
        roots[k] = np.linalg.inv(factor)
        offsets[k] -= np.log(np.diag(factor)).sum()
    return Quadratic(offsets, centers, roots)
