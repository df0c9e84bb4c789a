"""Coordinates for typicality: principal components, projected to the unit sphere if rows are embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuralbayes.clusters.points import Array, Read, blocks, span
from neuralbayes.clusters.typicality import Typicality, split_rows
from neuralbayes.networks.states import StateNetwork

EQUAL = 0.01
"""Rows have equal lengths up to this deviation from the median, in units of the spread of rows about their mean."""


@dataclass(frozen=True)
class Coordinates:
    """Maps samples to points whose Euclidean distances are meaningful.

    Attributes
    ----------
    components : ndarray of shape (n_features, n_dimensions) or None
        Principal components of the normalised features; None if the network already takes principal components.
    length : float
        Length of all rows if it is the same, as for embeddings, which are compared by their angles. Points then have
        unit length, and one more coordinate for the deviation of the row's length. 0 if rows have different lengths.
    """

    components: Array | None
    length: float

    @classmethod
    def fit(
        cls, read: Read, rows: NDArray[np.int64], network: StateNetwork, n_dimensions: int, rng: np.random.RandomState
    ) -> Self:
        """Fit to some rows; `n_dimensions` is the maximum number of components."""
        components = None
        if network.basis.ndim == 1:
            normalized = span(lambda indices: network.normalize(read(indices)), rows, n_dimensions, False, rng)
            components = normalized[2].numpy()
        lengths, total, squares = [], torch.zeros(()), 0.0
        for x in blocks(read, rows, verbose=False):
            flat = network.rows(x).flatten(1).double()
            lengths.append(flat.norm(dim=1))
            total = total + (flat - network.center).sum(dim=0)
            squares += float((flat - network.center).square().sum())
        length = torch.cat(lengths)
        spread = max(0.0, squares / len(rows) - float((total / len(rows)).square().sum())) ** 0.5
        median = float(length.median())
        equal = bool((length - median).abs().max() <= EQUAL * spread)
        return cls(components, median if equal else 0.0)

    def __call__(self, network: StateNetwork, x: Tensor) -> NDArray[np.float64]:
        """Compute the points: (n, ...) -> (n, n_points_dimensions); numbers too large for the network are clipped."""
        largest = torch.finfo(torch.float32).max
        points: NDArray[np.float64] = network.normalize(x).flatten(1).clamp(-largest, largest).double().numpy()
        if self.components is not None:
            points = points @ self.components
        if not self.length:
            return points
        lengths = network.rows(x).flatten(1).double().norm(dim=1).numpy()
        return self.of_inputs(points, lengths / self.length - 1.0)

    def of_inputs(self, points: Array, other: Array | None = None) -> NDArray[np.float64]:
        """Points from the inputs of an "mlp" and the relative deviation of each row's length: (n, d) -> (n, ...)."""
        points = points.astype(np.float64)
        if not self.length:
            return points
        own = np.linalg.norm(points, axis=1, keepdims=True)
        lengths = np.zeros((len(points), 1)) if other is None else other[:, None]
        return np.hstack([points / np.maximum(own, np.finfo(float).tiny), lengths])


def fit_typicality(
    read: Read, seen: NDArray[np.bool_], network: StateNetwork, n_dimensions: int, rng: np.random.RandomState
) -> tuple[Coordinates, Typicality]:
    """Fit coordinates and typicality to a bounded number of samples.

    Parameters
    ----------
    read : callable
    seen : ndarray of bool of shape (n_samples,)
        Whether the network was trained on a sample.
    network : StateNetwork
    n_dimensions : int
        Maximum number of principal components.
    rng : RandomState
    """
    reference, calibration = split_rows(seen, rng)
    coordinates = Coordinates.fit(read, reference, network, n_dimensions, rng)
    near, held_out = (
        np.concatenate([coordinates(network, x) for x in blocks(read, rows, verbose=False)] or [np.empty((0, 0))])
        for rows in (reference, calibration)
    )
    return coordinates, Typicality.fit(near, held_out.reshape(-1, near.shape[1]))
