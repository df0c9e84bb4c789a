"""The space in which rows are compared: principal components, rounding of columns, and the metric of the noise."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuralbayes.clusters.known import Hints
from neuralbayes.clusters.points import Read, blocks, span
from neuralbayes.neighbors import nearest_neighbors

N_NEAR = 5
"""Number of nearest rows whose differences count as noise."""

NOISE_ROWS = 2000
"""Maximum number of rows, drawn at random, to estimate the noise from."""

ROUNDING_ROWS = 5000
"""Maximum number of rows, drawn at random, to estimate the rounding of columns from."""

SHRINKAGE = 0.3
"""Weight of the identity in the covariance of the noise."""


@dataclass(frozen=True)
class Space:
    """Rows in two metrics, with neighbours.

    Attributes
    ----------
    center : Tensor of shape (n_features,), double
    basis : Tensor of shape (n_features, n_dimensions), double
        Maps centred rows to `points`.
    factors : Tensor of shape (n_features,), double
        Factor of each column in `basis`.
    points : Tensor of shape (n_rows, n_dimensions)
        Rows in their original metric.
    floor : Tensor of shape (n_dimensions, n_dimensions)
        Covariance of the rounding of the columns, a lower bound for the covariance of a cluster.
    noise : Tensor of shape (n_dimensions, n_dimensions)
        Maps `points` to `denoised`: ``denoised = points @ noise``.
    denoised : Tensor of shape (n_rows, n_dimensions)
        Rows in units of the noise.
    distances, neighbors : ndarray of shape (n_rows, n_neighbors)
        Distances to the nearest neighbours in `denoised`, and their indices.
    """

    center: Tensor
    basis: Tensor
    factors: Tensor
    points: Tensor
    floor: Tensor
    noise: Tensor
    denoised: Tensor
    distances: NDArray[np.float32]
    neighbors: NDArray[np.int64]


def make_space(
    read: Read,
    chosen: NDArray[np.int64],
    n_dimensions: int,
    n_neighbors: int,
    rng: np.random.RandomState,
    *,
    standardize: bool = False,
    verbose: bool = False,
    weight: NDArray[np.float64] | None = None,
) -> Space:
    """Make the space for the rows at the indices `chosen`.

    Parameters
    ----------
    read : callable
        Maps indices to rows (m, n_features).
    chosen : ndarray of int, ascending
    n_dimensions : int
        Maximum number of principal components. Fewer columns are kept as they are, so diagonal covariances make sense.
    n_neighbors : int
    rng : RandomState
    standardize, verbose : bool
    weight : ndarray of shape (len(chosen),), optional
        Weight of each row; neighbours are found without weights.

    Returns
    -------
    Space
    """
    center, scale, components = span(read, chosen, n_dimensions, standardize, rng, weight)
    basis = scale.diag() if len(center) <= n_dimensions else scale[:, None] * components
    points = torch.cat([((x.flatten(1).double() - center) @ basis).float() for x in blocks(read, chosen, verbose)])
    some = read(np.sort(rng.permutation(chosen)[:ROUNDING_ROWS])).flatten(1).double().numpy()
    floor = (basis.T @ (torch.from_numpy(rounding_variance(some))[:, None] * basis)).float()
    order = rng.permutation(len(points))
    metric = metric_of_neighbors(points[order], floor, weight=None if weight is None else weight[order])
    denoised = points @ metric
    n_neighbors = min(n_neighbors, len(points) - 1)
    distances, neighbors = nearest_neighbors(denoised.numpy(), n_neighbors, verbose=verbose)
    return Space(center, basis, scale, points, floor, metric, denoised, distances, neighbors)


def thinned(space: Space, hints: Hints) -> Space:
    """Draw rows in proportion to their weights, each at most once; keeps all rows if weights are equal.

    The largest 5% of the weights are clipped, so a single large weight does not leave only a few rows.
    """
    if hints.weight is None:
        return space
    share = hints.weight / np.quantile(hints.weight, 0.95)
    kept = np.flatnonzero(np.random.RandomState(0).uniform(size=len(share)) < share)  # the same for all seeds
    if len(kept) == len(share) or len(kept) < 2:
        return space
    denoised = space.denoised[kept]
    distances, neighbors = nearest_neighbors(denoised.numpy(), min(space.neighbors.shape[1], len(kept) - 1))
    return replace(space, points=space.points[kept], denoised=denoised, distances=distances, neighbors=neighbors)


def rounding_variance(rows: NDArray[np.floating]) -> NDArray[np.float64]:
    """Variance of the rounding of each column: (n_rows, n_features) -> (n_features,).

    Each value represents the interval up to halfway to its neighbours. A column with two values is all rounding; a
    column of measurements has almost no rounding.

    Examples
    --------
    >>> rounding_variance(np.array([[0.0], [1.0], [1.0], [0.0]])) * 12
    array([1.])
    """
    result = np.zeros(rows.shape[1])
    for j, column in enumerate(rows.T):
        values, counts = np.unique(column, return_counts=True)
        if len(values) > 1:
            gaps = np.diff(values.astype(np.float64))
            width = np.concatenate([gaps[:1], (gaps[1:] + gaps[:-1]) / 2.0, gaps[-1:]])
            result[j] = counts @ np.square(width) / (12.0 * counts.sum())
    return result


def metric_of_neighbors(points: Tensor, floor: Tensor, weight: NDArray[np.float64] | None = None) -> Tensor:
    """Compute the :func:`noise_metric` of nearest neighbours, then again with the neighbours in this metric.

    Parameters
    ----------
    points : Tensor of shape (n, n_dimensions), in random order
        The first `NOISE_ROWS` of them are compared with their neighbours.
    floor : Tensor of shape (n_dimensions, n_dimensions)
        Covariance of the rounding.
    weight : ndarray of shape (n,), optional

    Returns
    -------
    Tensor of shape (n_dimensions, n_dimensions)
    """
    metric = torch.eye(points.shape[1])
    n_near = min(N_NEAR, len(points) - 1)
    for _ in range(2):
        _, near = nearest_neighbors((points @ metric).numpy(), n_near, n_queries=NOISE_ROWS)
        first = None if weight is None else torch.from_numpy(weight[: len(near)])
        metric = noise_metric(points, torch.from_numpy(near), floor, weight=first)
    return metric


def noise_metric(
    points: Tensor, neighbors: Tensor, floor: Tensor, shrinkage: float = SHRINKAGE, weight: Tensor | None = None
) -> Tensor:
    """Compute a matrix that makes the differences between neighbours equally large in all directions.

    The covariance of these differences estimates the covariance within clusters, without knowing the clusters (Art,
    Gnanadesikan and Kettenring 1982).

    Parameters
    ----------
    points : Tensor of shape (n, n_dimensions)
    neighbors : Tensor of shape (m, n_neighbors)
        Indices of the neighbours of the first m points.
    floor : Tensor of shape (n_dimensions, n_dimensions)
        Covariance to add to the covariance of the noise.
    shrinkage : float
        Weight of the identity in the covariance.
    weight : Tensor of shape (m,), double, optional
        Weight of the differences of each of the first m points.

    Returns
    -------
    Tensor of shape (n_dimensions, n_dimensions)
    """
    n_dimensions = points.shape[1]
    noise = floor.double() * (2 * neighbors.shape[1])
    for column in neighbors.T:
        difference = (points[: len(column)] - points[column]).double()
        if weight is None:
            noise = noise + difference.T @ difference / len(column)
        else:
            noise = noise + difference.T @ (weight[:, None] * difference) / weight.sum()
    noise = noise * (n_dimensions / noise.trace().clamp_min(1e-300))
    noise = (1.0 - shrinkage) * noise + shrinkage * torch.eye(n_dimensions, dtype=torch.double)
    values, vectors = torch.linalg.eigh(noise)
    metric: Tensor = (vectors / values.clamp_min(1e-9).sqrt()).float()
    return metric
