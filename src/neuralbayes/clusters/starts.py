"""Partitions that a network starts from: what simple methods that see different things say."""

from __future__ import annotations

from inspect import signature

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg
import torch
from numpy.typing import NDArray

from neuralbayes.clusters.hints import NO_HINTS, Hints
from neuralbayes.clusters.kmeans import kmeans
from neuralbayes.clusters.merging import mean_of_neighbors
from neuralbayes.clusters.mixture import Kind, fit_mixture
from neuralbayes.clusters.space import Space
from neuralbayes.neighbors import nearest_neighbors

Labels = NDArray[np.int64]

FEW_ROWS = 5000
"""Up to so many rows a graph of them is divided by its eigenvectors."""

UNSEEDED_ROWS = 500
"""Up to so many rows all eigenvectors are computed where `eigsh` takes no `rng`, as in scipy 1.14: it then goes on with
the random numbers of its last call, and the same seed would give other clusters."""

GRAPH_NEIGHBORS = 30
"""Neighbours in that graph."""

ROWS_PER_PARAMETER = 3
"""Rows for each column and cluster from which on clusters get covariances of their own."""


def base_partitions(
    space: Space, n_clusters: int, rng: np.random.RandomState, hints: Hints = NO_HINTS
) -> dict[str, Labels]:
    """Labels (n_rows,) by several methods, by name.

    Mixtures start from k-means in the metric of the noise and see the shape of clusters; a graph sees what is
    connected. Of many rows, for which a graph would cost too much, k-means of the rows, and of the rows drawn towards
    their neighbours, take its place.
    """
    n_rows, n_dimensions = space.points.shape
    start = kmeans(space.denoised.numpy(), n_clusters, rng, hints)  # has no vote: the mixtures speak for it
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
    """Clusters of the graph of shared neighbours, in the metric of the noise."""
    n = len(space.points)
    _, near = nearest_neighbors(space.denoised.numpy(), min(GRAPH_NEIGHBORS, n - 1))
    k = near.shape[1]
    graph = sp.csr_matrix((np.ones(n * k), near.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    closed = graph + sp.eye(n)
    weights = (closed @ closed.T).multiply((graph + graph.T) > 0)
    degree = sp.diags(1.0 / np.sqrt(np.asarray(weights.sum(axis=1)).ravel().clip(1e-12)))
    laplacian = degree @ weights @ degree
    # Where the graph has several parts, the start is an eigenvector, and a random one takes its place.
    seeded = {"rng": 0} if "rng" in signature(scipy.sparse.linalg.eigsh).parameters else {}
    if n_clusters >= n - 1 or (not seeded and n <= UNSEEDED_ROWS):  # eigsh finds fewer vectors than there are rows
        vectors = np.linalg.eigh(laplacian.toarray())[1][:, -n_clusters:]
    else:
        start = np.ones(n) if seeded else np.random.RandomState(0).uniform(0.5, 1.0, n)
        _, vectors = scipy.sparse.linalg.eigsh(laplacian, n_clusters, which="LA", v0=start, tol=1e-4, **seeded)
    rows = torch.nn.functional.normalize(torch.from_numpy(vectors.copy()).float(), dim=1)
    return kmeans(rows.numpy(), n_clusters, rng, hints)
