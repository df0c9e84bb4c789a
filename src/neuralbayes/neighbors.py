"""Nearest neighbours, for the whole library.

In few dimensions, trees are fast. For many points in more dimensions, a matrix product in float32 gives all distances,
and the nearest candidates are measured again in float64. This is faster than scikit-learn's search in float64 and just
as exact: if rounding might have hidden a neighbour, scikit-learn's search is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.neighbors import KDTree, NearestNeighbors

from neuralbayes.training.progress import progress

Array = NDArray[Any]

BLOCK = 4000
"""Points per search."""

FEW_DIMENSIONS = 15
"""Maximum number of dimensions for which scikit-learn uses trees."""

MANY_POINTS = 10_000
"""Minimum number of points for matrix products, in more dimensions."""

QUERIES = 256
"""Queries per matrix product."""

GROUP = 64
"""Points per block; only the nearest blocks are searched."""

SPARE = 8
"""Additional candidates that are measured again, since float32 may change their order."""


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
        Number of neighbours; at most ``n_points - 1`` if the points themselves are the queries.
    queries : ndarray of shape (n_queries, n_dimensions), optional
        By default the points themselves; no point is its own neighbour.
    n_queries : int, optional
        Use only the first `n_queries` points as queries.
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
    search = _search(points, n_neighbors)
    if queries is not None:
        return search(queries, n_neighbors)
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


def _search(points: Array, n_neighbors: int) -> Callable[[Array, int], tuple[Array, NDArray[np.int64]]]:
    """The fastest exact search among the points: from queries and a number of neighbours to distances and indices."""
    n, n_dimensions = points.shape
    if n >= MANY_POINTS and n_dimensions > FEW_DIMENSIONS and n_neighbors <= n // 100:
        return Products(points).kneighbors
    if n_dimensions <= FEW_DIMENSIONS and n_neighbors < n // 2:
        # What NearestNeighbors does here, without checks that take a third of the time for a thousand points.
        query: Callable[[Array, int], tuple[Array, NDArray[np.int64]]] = KDTree(points, leaf_size=30).query
        return query
    index: Any = NearestNeighbors(n_neighbors=n_neighbors).fit(points)
    return index.kneighbors  # type: ignore[no-any-return]


class Products:
    """Exact search with matrix products in float32.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_dimensions)

    Notes
    -----
    The squared distance of a query x is :math:`|x|^2 + (|y|^2 - 2 x \\cdot y)`, and a matrix product gives the second
    part for all points y. The k smallest of n numbers lie in the k blocks with the smallest minima, so only few numbers
    have to be sorted. The error of a product of d terms is at most about :math:`d \\epsilon (|x| + |y|)^2`: no
    discarded point can be nearer than the last candidate by more than that.
    """

    def __init__(self, points: Array) -> None:
        self._points = torch.from_numpy(np.ascontiguousarray(points))
        n, n_dimensions = self._points.shape
        self._center = self._points.mean(dim=0, dtype=torch.float64)
        centered = (self._points - self._center).float()  # short rows have small errors
        squares = centered.double().square().sum(dim=1)
        n_padded = -(-n // GROUP) * GROUP
        self._table = torch.zeros(n_dimensions + 1, n_padded)
        self._table[:-1, :n] = centered.T
        self._table[-1] = torch.inf
        self._table[-1, :n] = squares
        self._longest = float(squares.max().sqrt())
        self._epsilon = (n_dimensions + 4) * torch.finfo(torch.float32).eps

    def kneighbors(self, queries: Array, n_neighbors: int) -> tuple[Array, NDArray[np.int64]]:
        """Distances in double, ascending, and indices: (n_queries, n_neighbors) each."""
        distances = np.empty((len(queries), n_neighbors))
        neighbors = np.empty((len(queries), n_neighbors), np.int64)
        proven = np.empty(len(queries), bool)
        for start in range(0, len(queries), QUERIES):
            block = slice(start, start + QUERIES)
            some = torch.from_numpy(np.array(queries[block]))
            distances[block], neighbors[block], proven[block] = self._search(some, n_neighbors)
        if not proven.all():
            exact = NearestNeighbors(n_neighbors=n_neighbors).fit(self._points.double().numpy())
            distances[~proven], neighbors[~proven] = exact.kneighbors(queries[~proven].astype(np.float64))
        return distances, neighbors

    def _search(self, queries: torch.Tensor, n_neighbors: int) -> tuple[Array, Array, Array]:
        """Distances, indices, and whether they are certain to be the nearest."""
        x = (queries - self._center).float()
        n_candidates = n_neighbors + SPARE
        partial = torch.cat([-2.0 * x, torch.ones(len(x), 1)], dim=1) @ self._table
        groups = partial.view(len(x), -1, GROUP).amin(dim=2)
        nearest = groups.topk(min(n_candidates, groups.shape[1]), dim=1, largest=False, sorted=False).indices
        inside = (nearest[:, :, None] * GROUP + torch.arange(GROUP)).flatten(1)
        values, places = partial.gather(1, inside).topk(n_candidates, dim=1, largest=False)
        candidates = inside.gather(1, places).clamp_max(len(self._points) - 1)
        squared = (self._points[candidates].double() - queries[:, None].double()).square().sum(dim=2)
        squared, order = squared.sort(dim=1, stable=True)
        length = x.double().norm(dim=1)
        certain = values[:, -1].double() + length.square() - self._epsilon * (length + self._longest).square()
        proven = squared[:, n_neighbors - 1] <= certain
        found = candidates.gather(1, order)[:, :n_neighbors]
        return squared[:, :n_neighbors].sqrt().numpy(), found.numpy(), proven.numpy()
