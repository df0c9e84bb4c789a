"""The consensus of several partitions, and the share of them that agrees about each row."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from neuralbayes.clusters.known import NO_HINTS, Hints
from neuralbayes.clusters.kmeans import kmeans

Labels = NDArray[np.int64]
Array = NDArray[np.float64]


def agree(partitions: list[Labels], n_clusters: int, rng: np.random.RandomState, hints: Hints = NO_HINTS) -> Array:
    """Share of the partitions that put each row into each cluster of their consensus: (n_rows, n_clusters).

    Rows with hints give their whole vote to the cluster that the hints allow.
    """
    consensus = kmeans(co_association(partitions, n_clusters, hints.weight), n_clusters, rng, hints)
    shares = votes(partitions, consensus, n_clusters, hints.weight)
    shares[hints.rows] = np.eye(n_clusters)[hints.assign(-shares)[hints.rows]]
    return shares


def co_association(partitions: list[Labels], n_dimensions: int, weight: Array | None = None) -> Array:
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


def votes(partitions: list[Labels], reference: Labels, n_clusters: int, weight: Array | None = None) -> Array:
    """Share of the partitions that put each row into each cluster of `reference`, after matching their clusters.

    Examples
    --------
    >>> votes([np.array([1, 1, 0]), np.array([0, 1, 1])], np.array([0, 0, 1]), 2)
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
