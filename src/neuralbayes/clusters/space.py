"""Where rows are compared: principal components, the rounding of columns, and the metric of the noise."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuralbayes.clusters.hints import Hints
from neuralbayes.clusters.points import Read, blocks, span
from neuralbayes.neighbors import nearest_neighbors

N_NEAR = 5
"""Nearest rows whose differences are taken as noise."""

NOISE_ROWS = 2000
"""Rows, drawn at random, whose differences from their nearest rows are looked at."""

ROUNDING_ROWS = 5000
"""Rows, drawn at random, whose values tell how columns are rounded."""

SHRINKAGE = 0.3
"""Share of the identity in the covariance of the noise."""


@dataclass(frozen=True)
class Space:
    """Rows in two metrics, with neighbours.

    Attributes
    ----------
    center : Tensor of shape (n_features,), double
    basis : Tensor of shape (n_features, n_dimensions), double
        From centred rows to `points`.
    factors : Tensor of shape (n_features,), double
        What each column is multiplied by in `basis`.
    points : Tensor of shape (n_rows, n_dimensions)
        Rows in the metric that they came in.
    floor : Tensor of shape (n_dimensions, n_dimensions)
        Covariance of the rounding of the columns: no cluster is thinner.
    noise : Tensor of shape (n_dimensions, n_dimensions)
        ``points @ noise`` are `denoised`.
    denoised : Tensor of shape (n_rows, n_dimensions)
        Rows in units of the noise.
    distances, neighbors : ndarray of shape (n_rows, n_neighbors)
        Of `denoised`.
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
    """The rows at the indices `chosen` as they are to be compared.

    Parameters
    ----------
    read : callable
        From indices to rows (m, n_features).
    chosen : ndarray of int, ascending
    n_dimensions : int
        Most principal components. Fewer columns stay what they are: a diagonal covariance then means something.
    n_neighbors : int
    rng : RandomState
    standardize, verbose : bool
    weight : ndarray of shape (len(chosen),), optional
        How often a row counts, but for being a neighbour.

    Returns
    -------
    Space
    """
    center, scale, components = span(read, chosen, n_dimensions, standardize, rng, weight)
    basis = scale.diag() if len(center) <= n_dimensions else scale[:, None] * components
    points = torch.cat([((x.flatten(1).double() - center) @ basis).float() for x in blocks(read, chosen, verbose)])
    some = read(np.sort(rng.permutation(chosen)[:ROUNDING_ROWS])).flatten(1).double().numpy()
    floor = (basis.T @ (torch.from_numpy(rounding_variance(some))[:, None] * basis)).float()
    order = torch.from_numpy(rng.permutation(len(points)))
    metric = torch.eye(points.shape[1])
    n_near = min(N_NEAR, len(points) - 1)
    for _ in range(2):  # neighbours in the new metric are better ones
        _, near = nearest_neighbors((points @ metric)[order].numpy(), n_near, n_queries=NOISE_ROWS)
        first = None if weight is None else torch.from_numpy(weight)[order[: len(near)]]
        metric = noise_metric(points[order], torch.from_numpy(near), floor, weight=first)
    denoised = points @ metric
    n_neighbors = min(n_neighbors, len(points) - 1)
    distances, neighbors = nearest_neighbors(denoised.numpy(), n_neighbors, verbose=verbose)
    return Space(center, basis, scale, points, floor, metric, denoised, distances, neighbors)


def thinned(space: Space, hints: Hints) -> Space:
    """Rows as if they had been drawn with their weights, each at most once; all where they have equal weights.

    The largest weights, a twentieth of them, count as the least of these: one large weight is not to leave a few rows.
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

    A value stands for everything up to half way to the next ones. A column of two values is all rounding; a column of
    measurements has next to none.

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


def noise_metric(
    points: Tensor, neighbors: Tensor, floor: Tensor, shrinkage: float = SHRINKAGE, weight: Tensor | None = None
) -> Tensor:
    """A matrix that makes the differences between neighbours alike in all directions.

    Their covariance is that within clusters, which need not be known for it (Art, Gnanadesikan and Kettenring 1982).

    Parameters
    ----------
    points : Tensor of shape (n, n_dimensions)
    neighbors : Tensor of shape (m, n_neighbors)
        Of the first m points.
    floor : Tensor of shape (n_dimensions, n_dimensions)
        A covariance that is added to that of the noise.
    shrinkage : float
        Share of the result that is replaced by the identity.
    weight : Tensor of shape (m,), double, optional
        How often the differences of each of the first m points count.

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
