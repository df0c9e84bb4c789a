"""Votes of simple methods about the clusters, and their consensus.

No method is right on all data, and without labels one cannot know which one is right. What several of them agree on is
right more often than any of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from neuralbayes.clusters.kmeans import kmeans
from neuralbayes.clusters.known import NO_HINTS, Hints
from neuralbayes.clusters.mixture import fit_mixture
from neuralbayes.clusters.space import Space
from neuralbayes.neighbors import nearest_neighbors

Labels = NDArray[np.int64]
Array = NDArray[np.float64]

GRAPH_NEIGHBORS, SMOOTH_NEIGHBORS = 30, 15
"""Number of nearest embeddings that the graph connects, and that embeddings are averaged with."""

SPECTRAL_ROWS = 12_000
"""Number of embeddings above which few eigenvectors of the graph of 30 neighbours say less than wider averages."""


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


def embedding_votes(
    unit: NDArray[np.floating], n_clusters: int, rng: np.random.RandomState, hints: Hints
) -> list[Labels]:
    """Three votes: k-means of the embeddings, of the embeddings averaged with their neighbours, and of their graph.

    For many embeddings, wider averages replace the graph.

    Parameters
    ----------
    unit : ndarray of shape (n_rows, n_columns)
        Rows of unit length.
    n_clusters : int
    rng : RandomState
    hints : Hints
    """
    _, near = nearest_neighbors(unit, min(GRAPH_NEIGHBORS, len(unit) - 1))
    third = spectral_coordinates(near, n_clusters) if len(unit) <= SPECTRAL_ROWS else _smoothed(unit, near)
    spaces = (unit, _smoothed(unit, near[:, :SMOOTH_NEIGHBORS]), third)
    return [kmeans(points, n_clusters, rng, hints) for points in spaces]


def _smoothed(unit: NDArray[np.floating], near: Labels) -> NDArray[np.floating]:
    """Embeddings half replaced by the mean of their neighbours, twice, of unit length: (n_rows, n_columns)."""
    graph, smooth = _graph(near), unit
    for _ in range(2):
        smooth = 0.5 * smooth + 0.5 * (graph @ smooth)
    smooth = smooth / np.linalg.norm(smooth, axis=1, keepdims=True).clip(1e-12)
    return np.asarray(smooth, dtype=unit.dtype)


def _graph(near: Labels) -> sp.csr_array:
    """Graph of neighbours in either direction, with rows that sum to 1: (n_rows, n_neighbors) -> (n_rows, n_rows)."""
    n, k = near.shape
    directed = sp.csr_array((np.ones(n * k), near.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    union = ((directed + directed.T) > 0).astype(np.float32)
    return sp.diags_array(1.0 / union.sum(axis=1)) @ union


def spectral_coordinates(near: Labels, n_clusters: int) -> NDArray[np.float32]:
    """Coordinates, of unit length, of the graph that weights neighbours by the neighbours they share: (n_rows, K)."""
    n, k = near.shape
    graph = sp.csr_array((np.ones(n * k, np.float32), near.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    closed = (graph + sp.eye_array(n, dtype=np.float32)).tocsr()
    weights = (closed @ closed.T).multiply((graph + graph.T) > 0)
    degree = sp.diags_array(1.0 / np.sqrt(weights.sum(axis=1).clip(1e-12)))
    laplacian = (degree @ weights @ degree).astype(np.float64)
    if n_clusters >= n - 1:  # eigsh needs fewer vectors than rows
        vectors = np.linalg.eigh(laplacian.toarray())[1][:, -n_clusters:]
    else:
        start = np.random.RandomState(0).uniform(0.5, 1.0, n)
        _, vectors = scipy.sparse.linalg.eigsh(laplacian, n_clusters, which="LA", v0=start, tol=1e-4)
    unit: NDArray[np.float32] = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-12)).astype(
        np.float32
    )
    return unit


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
    one_hot = sp.hstack([_one_hot(labels) for labels in partitions], format="csr")
    one_hot = one_hot[:, one_hot.sum(axis=0) > 0]
    weighted = one_hot if weight is None else sp.diags_array(weight) @ one_hot
    degree = sp.diags_array(1.0 / np.sqrt(one_hot @ weighted.sum(axis=0)))
    scaled = degree @ one_hot
    values, vectors = np.linalg.eigh((scaled.T @ (degree @ weighted)).toarray())
    values, vectors = values[-n_dimensions:], vectors[:, -n_dimensions:]
    coordinates = scaled @ (vectors / np.sqrt(values.clip(1e-9)))
    length = np.linalg.norm(coordinates, axis=1, keepdims=True)
    unit: Array = coordinates / length.clip(1e-12)
    return unit


def _one_hot(labels: Labels) -> sp.csr_array:
    """One-hot labels as a sparse matrix, with one entry per row: (n_rows, n_labels)."""
    n = len(labels)
    return sp.csr_array((np.ones(n), labels, np.arange(n + 1)), shape=(n, labels.max() + 1))


def matched_shares(
    partitions: Sequence[Labels], reference: Labels, n_clusters: int, weight: Array | None = None
) -> Array:
    """Share of the partitions that put each row into each cluster of `reference`, after matching their clusters.

    Examples
    --------
    >>> matched_shares([np.array([1, 1, 0]), np.array([0, 1, 1])], np.array([0, 0, 1]), 2)
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]])
    """
    result = np.zeros((len(reference), n_clusters))
    target = np.eye(n_clusters)[reference]
    weighted = target if weight is None else target * weight[:, None]
    for labels in partitions:
        one_hot = np.eye(n_clusters)[labels]
        rows, columns = linear_sum_assignment(one_hot.T @ weighted, maximize=True)
        result[:, columns] += one_hot[:, rows]
    return result / len(partitions)
