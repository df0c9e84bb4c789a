"""Nearest neighbours, for the whole library."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import KDTree, NearestNeighbors

from neuralbayes.training.progress import progress

Array = NDArray[Any]

BLOCK = 4000  # points per search
FEW_DIMENSIONS = 15  # dimensions up to which trees are faster than all distances


def nearest_neighbors(
    points: Array,
    n_neighbors: int,
    *,
    queries: Array | None = None,
    n_queries: int | None = None,
    verbose: bool = False,
) -> tuple[Array, NDArray[np.int64]]:
    """Ascending distances to the nearest of `points` (n_points, n_dimensions), and their indices: (n_queries, k) each.

    Queries are the points themselves, or the first `n_queries` of them, and no point is its own neighbour, unless other
    `queries` are given.

    Examples
    --------
    >>> distances, neighbors = nearest_neighbors(np.array([[0.0], [1.0], [3.0]]), 1)
    >>> distances.ravel(), neighbors.ravel()
    (array([1., 1., 2.]), array([1, 0, 1]))
    """
    search: Any
    if points.shape[1] <= FEW_DIMENSIONS and n_neighbors < len(points) // 2:
        # What NearestNeighbors does here, without checks that take a third of the time for a thousand points.
        search = KDTree(points, leaf_size=30).query
    else:
        search = NearestNeighbors(n_neighbors=n_neighbors).fit(points).kneighbors
    if queries is not None:
        return search(queries, n_neighbors)  # type: ignore[no-any-return]
    n_queries = len(points) if n_queries is None else min(n_queries, len(points))
    distances = np.empty((n_queries, n_neighbors), points.dtype)
    neighbors = np.empty((n_queries, n_neighbors), np.int64)
    starts = range(0, n_queries, BLOCK)
    with progress(len(starts), description="neighbours", enabled=verbose) as display:
        for start in starts:
            block = slice(start, min(start + BLOCK, n_queries))
            distance, near = search(points[block], n_neighbors + 1)
            # Each point is its own nearest neighbour, unless others coincide with it: drop one.
            own = near == np.arange(start, start + len(near))[:, None]
            own[~own.any(axis=1), -1] = True
            distances[block] = distance[~own].reshape(-1, n_neighbors)
            neighbors[block] = near[~own].reshape(-1, n_neighbors)
            display.advance(samples=len(near))
    return distances, neighbors
