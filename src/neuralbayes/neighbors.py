"""The nearest neighbours of points: the one search that the whole library uses."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from neuralbayes.training.progress import progress

Array = NDArray[Any]

BLOCK = 4000
"""Points whose neighbours are searched at once."""


def nearest_neighbors(
    points: Array,
    n_neighbors: int,
    *,
    queries: Array | None = None,
    n_queries: int | None = None,
    verbose: bool = False,
) -> tuple[Array, NDArray[np.int64]]:
    """The nearest of `points` to each query, or to each of the points themselves.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_dimensions)
    n_neighbors : int
        At most ``n_points - 1`` neighbours where the points themselves are the queries.
    queries : ndarray of shape (n_queries, n_dimensions), optional
        By default the points, none of which is a neighbour of itself.
    n_queries : int, optional
        Only the first so many points are queries.
    verbose : bool, default=False
        Show progress.

    Returns
    -------
    distances : ndarray of shape (n_queries, n_neighbors), ascending
    neighbors : ndarray of shape (n_queries, n_neighbors)
        Indices into `points`.

    Examples
    --------
    >>> distances, neighbors = nearest_neighbors(np.array([[0.0], [1.0], [3.0]]), 1)
    >>> distances.ravel(), neighbors.ravel()
    (array([1., 1., 2.]), array([1, 0, 1]))
    """
    index = NearestNeighbors(n_neighbors=n_neighbors).fit(points)
    if queries is not None:
        distances, neighbors = index.kneighbors(queries)
        return distances, neighbors
    n_queries = len(points) if n_queries is None else min(n_queries, len(points))
    distances = np.empty((n_queries, n_neighbors), points.dtype)
    neighbors = np.empty((n_queries, n_neighbors), np.int64)
    starts = range(0, n_queries, BLOCK)
    with progress(len(starts), description="neighbours", enabled=verbose) as display:
        for start in starts:
            block = slice(start, min(start + BLOCK, n_queries))
            distance, near = index.kneighbors(points[block], n_neighbors + 1)
            # Each point is its own nearest neighbour, unless others coincide with it: leave one out.
            own = near == np.arange(start, start + len(near))[:, None]
            own[~own.any(axis=1), -1] = True
            distances[block] = distance[~own].reshape(-1, n_neighbors)
            neighbors[block] = near[~own].reshape(-1, n_neighbors)
            display.advance(samples=len(near))
    return distances, neighbors
