"""The neighbourhood graph of a sample, and a random walk along its edges."""

from __future__ import annotations

import copy
from typing import Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

from neuralbayes.neighbors import nearest_neighbors

Array = NDArray[np.float64]


class NeighborGraph:
    """Symmetric graph of the k nearest neighbours of points (n_points, n_dimensions).

    An edge of length d has weight exp(-2 d^2 / s^2), where s is the smaller distance of its ends to their k-th
    neighbours: an edge that is short for an isolated point may lead out of the manifold of a dense region. With few
    points, k is a sixtieth of their number, but at least 10.
    """

    def __init__(self, points: Array, n_neighbors: int) -> None:
        n = len(points)
        k = min(n_neighbors, max(10, n // 60), n - 1)
        distance, index = nearest_neighbors(points, k)
        self.points, self.distance, self.index = points, distance, index
        reach = distance[:, -1].clip(np.finfo(float).tiny ** 0.5)
        weight = np.exp(-2.0 * (distance / np.minimum(reach[:, None], reach[index])) ** 2)
        weight[weight < 0.05] = 0.0  # a single long edge can lead a long walk out of a manifold
        order = np.argsort(index, axis=1)  # in the order of the columns of a sparse matrix
        weight, index = (np.take_along_axis(values, order, axis=1).ravel() for values in (weight, index))
        one_way = sp.csr_matrix((weight, index, np.arange(0, n * k + 1, k)), shape=(n, n))
        self.spacing = float(np.median(reach))
        self.n_neighbors = k
        self._weigh(one_way.maximum(one_way.T))

    def _weigh(self, weight: sp.csr_matrix) -> None:
        self.weight = weight.tocsr()
        self.degree: Array = np.asarray(self.weight.sum(axis=1)).ravel() + 1e-9

    def laplacian(self) -> sp.csr_matrix:
        """Degrees minus weights: its quadratic form is the weighted sum of squared differences over the edges."""
        return sp.diags(self.degree, format="csr") - self.weight

    def cut(self, part: NDArray[np.int64]) -> Self:
        """Return a copy without edges between parts: (n_points,)."""
        edges = self.weight.tocoo()
        inside = part[edges.row] == part[edges.col]
        return self.joined(sp.csr_matrix((-edges.data * ~inside, (edges.row, edges.col)), edges.shape))

    def joined(self, edges: sp.csr_matrix) -> Self:
        """Return a copy with more edges, given as a symmetric matrix of their weights."""
        graph = copy.copy(self)
        graph._weigh(self.weight + edges)
        return graph


class RandomWalk:
    """Random walk along the edges of a graph that stops after `length` steps on average."""

    def __init__(self, graph: NeighborGraph, length: float) -> None:
        self.graph = graph
        self._stop = 1.0 / length
        laplacian = sp.diags(graph.degree * (1.0 + self._stop)) - graph.weight
        # A dominant diagonal needs no pivots, and this order keeps the factors sparse.
        self._solver = splu(
            laplacian.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
        )

    def __call__(self, values: Array) -> Array:
        """Mean of `values` at the points where the walk from each point stops: (n_points, ...) -> (n_points, ...)."""
        flat = values.reshape(len(values), -1)
        walked: Array = self._solver.solve(self._stop * self.graph.degree[:, None] * flat).reshape(values.shape)
        return walked

    def territories(self, n_states: int, rng: np.random.RandomState) -> Array:
        """Divide the points between walks from seeds, each of which is the point that earlier walks visit least.

        Returns the share of each seed's walk in the visits to each point: (n_points, n_states).
        """
        degree = self.graph.degree
        settled = degree >= np.quantile(degree, 0.2)  # an outlier as a seed would be a territory by itself
        visits = np.zeros((len(degree), n_states))
        seed = rng.choice(np.flatnonzero(settled))
        for k in range(n_states):
            start = np.zeros(len(degree))
            start[seed] = 1.0 / degree[seed]
            visits[:, k] = self(start).clip(0.0)
            reached = np.where(settled, visits[:, : k + 1].max(axis=1), np.inf)
            seed = int(np.argmin(reached + 1e-12 * rng.uniform(size=len(degree))))
        total = visits.sum(axis=1, keepdims=True)
        shares: Array = np.divide(visits, total, out=np.zeros_like(visits), where=total > 1e-12 * total.max())
        return shares
