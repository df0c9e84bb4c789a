"""Partitions by several simple methods, from which the network starts."""

from __future__ import annotations

from inspect import signature

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg
import torch
from numpy.typing import NDArray

from neuralbayes.clusters.known import NO_HINTS, Hints
from neuralbayes.clusters.kmeans import kmeans
from neuralbayes.clusters.merging import mean_of_neighbors
from neuralbayes.clusters.mixture import Kind, fit_mixture
from neuralbayes.clusters.space import Space
from neuralbayes.neighbors import nearest_neighbors

Labels = NDArray[np.int64]

FEW_ROWS = 5000
"""Maximum number of rows for spectral clustering of a graph."""

UNSEEDED_ROWS = 500
"""Maximum number of rows to compute all eigenvectors of, if `eigsh` has no parameter `rng`, as in scipy 1.14. That
version continues the random numbers of its last call, so the same seed could give different clusters."""

GRAPH_NEIGHBORS = 30
"""Number of neighbours of each row in the graph."""

ROWS_PER_PARAMETER = 3
"""Minimum number of rows per dimension and cluster for each cluster to have its own covariance."""


def base_partitions(
    space: Space, n_clusters: int, rng: np.random.RandomState, hints: Hints = NO_HINTS
) -> dict[str, Labels]:
    """Cluster the rows with several methods.

    Gaussian mixtures, which start from k-means in the metric of the noise, detect the shape of clusters. Spectral
    clustering of a graph detects connected clusters. With more than `FEW_ROWS` rows, a graph would cost too much, so
    k-means of the rows, and of the rows averaged with their neighbours, are used instead.

    Returns
    -------
    dict of str to ndarray of shape (n_rows,)
        Labels by the name of the method.
    """
    n_rows, n_dimensions = space.points.shape
    start = kmeans(space.denoised.numpy(), n_clusters, rng, hints)  # start of the mixtures, not returned
    kinds: list[Kind] = ["tied"]
    if n_rows >= ROWS_PER_PARAMETER * n_dimensions * n_clusters:
        kinds += ["diagonal", "full"]
    first = torch.from_numpy(start)
    result: dict[str, Labels] = {
        kind: fit_mixture(space.points, first, n_clusters, kind, space.floor, hints=hints).argmax(dim=1).numpy()
        for kind in kinds
    }
    if n_rows <= FEW_ROWS:
        return {**result, "graph": spectral(space, n_clusters, rng, hints)}
    points = space.points.numpy()
    smoothed = (points + mean_of_neighbors(points, space.neighbors)) / 2.0
    return {
        **result,
        "points": kmeans(points, n_clusters, rng, hints),
        "smoothed": kmeans(smoothed, n_clusters, rng, hints),
    }


def spectral(space: Space, n_clusters: int, rng: np.random.RandomState, hints: Hints = NO_HINTS) -> Labels:
    """Spectral clustering of the graph of shared neighbours, in the metric of the noise: labels (n_rows,)."""
    n = len(space.points)
    _, near = nearest_neighbors(space.denoised.numpy(), min(GRAPH_NEIGHBORS, n - 1))
    k = near.shape[1]
    graph = sp.csr_matrix((np.ones(n * k), near.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    closed = graph + sp.eye(n)
    weights = (closed @ closed.T).multiply((graph + graph.T) > 0)
    degree = sp.diags(1.0 / np.sqrt(np.asarray(weights.sum(axis=1)).ravel().clip(1e-12)))
    laplacian = degree @ weights @ degree
    # If the graph has several components, the start is already an eigenvector, and `eigsh` draws a random one instead.
    seeded = {"rng": 0} if "rng" in signature(scipy.sparse.linalg.eigsh).parameters else {}
    if n_clusters >= n - 1 or (not seeded and n <= UNSEEDED_ROWS):  # eigsh needs fewer vectors than rows
        vectors = np.linalg.eigh(laplacian.toarray())[1][:, -n_clusters:]
    else:
        start = np.ones(n) if seeded else np.random.RandomState(0).uniform(0.5, 1.0, n)
        _, vectors = scipy.sparse.linalg.eigsh(laplacian, n_clusters, which="LA", v0=start, tol=1e-4, **seeded)
    rows = torch.nn.functional.normalize(torch.from_numpy(vectors.copy()).float(), dim=1)
    return kmeans(rows.numpy(), n_clusters, rng, hints)
