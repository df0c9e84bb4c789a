"""Separation of states after averaging p(z|x) along a random walk between neighbours.

A walk cannot leave a manifold that is disjoint from the others, so the Jensen-Shannon divergence between its state and
the rest stays at log 2. A cut through a connected set is blurred, and the divergence falls.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
import scipy.stats
import torch
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from neuralbayes.bayes import LOG_2, js_divergence
from neuralbayes.manifolds.graph import Array, NeighborGraph, RandomWalk
from neuralbayes.neighbors import nearest_neighbors

WALK_LENGTH = 2000.0  # mean number of steps: enough to go around a ring of 2,000 points with 15 neighbours

CERTIFIED = 0.9
"""Minimum separation of a disjoint state, as a share of log 2. Disjoint toys keep 0.98, connected ones below 0.5."""

N_NULL, LEVEL = 5, 0.01
"""Number of Gaussian samples for the null, and the probability that the best division of connected rows exceeds it."""


def separation(walk: RandomWalk, p_zx: Array, judged: NDArray[np.int64] | None = None) -> Array:
    """JS divergence in nats of each state and the rest after the walk; 0 for a state with hardly any of the rows."""
    rows = np.arange(len(p_zx)) if judged is None else judged
    walked = torch.from_numpy(walk(p_zx)[rows])
    n, n_states = p_zx.shape
    alive = p_zx[rows].mean(axis=0) * n >= min(walk.graph.n_neighbors, n / (20 * n_states))
    values: Array = js_divergence(walked).numpy() * alive
    return values


def separation_of_parts(part: NDArray[np.int64], p_zx: Array) -> Array:
    """JS divergence in nats between each state and the rest after a walk that is lost within its part (n,)."""
    member = np.eye(part.max() + 1)[part]
    mean = member.T @ p_zx / member.sum(axis=0)[:, None].clip(1.0)
    values: Array = js_divergence(torch.from_numpy(mean[part])).numpy()
    return values


def settled(walk: RandomWalk) -> RandomWalk:
    """Join components of the graph that are smaller than a neighbourhood to the nearest larger one."""
    graph = walk.graph
    _, component = connected_components(graph.weight)
    sizes = np.bincount(component)
    small = (sizes[component] <= graph.n_neighbors) & (component != sizes.argmax())
    if not small.any():
        return walk
    distance, nearest = nearest_neighbors(graph.points[~small], 1, queries=graph.points[small])
    order = np.lexsort((distance[:, 0], component[small]))
    _, first = np.unique(component[small][order], return_index=True)
    source = np.flatnonzero(small)[order[first]]
    target = np.flatnonzero(~small)[nearest[order[first], 0]]
    edges = sp.csr_matrix((np.ones(len(source)), (source, target)), shape=graph.weight.shape)
    return RandomWalk(graph.joined(edges + edges.T), WALK_LENGTH)


def walk_between(points: Array, n_neighbors: int) -> RandomWalk:
    """Make the settled walk between neighbouring points."""
    return settled(RandomWalk(NeighborGraph(points, n_neighbors), WALK_LENGTH))


def null_separation(points: Array, n_states: int, n_neighbors: int, rng: np.random.RandomState) -> float:
    """Separation in nats that the best division of connected rows exceeds with probability `LEVEL`.

    Draw `N_NULL` samples from a Gaussian with the size and the covariance of `points`, which are in their principal
    axes, and divide each between walks from distant seeds. The result is the end of a normal prediction interval.
    """
    deviation = points.std(axis=0)
    values = []
    for _ in range(N_NULL):
        sample = rng.standard_normal(points.shape) * deviation
        walk = walk_between(sample, n_neighbors)
        territory = walk.territories(n_states, rng).argmax(axis=1)
        values.append(separation(walk, np.eye(n_states)[territory]).max())
    return prediction_bound(values)


def prediction_bound(values: Sequence[float]) -> float:
    """Bound that one more normally distributed value exceeds with probability `LEVEL`."""
    n = len(values)
    quantile = scipy.stats.t.ppf(1.0 - LEVEL, n - 1)
    return float(np.mean(values) + quantile * np.std(values, ddof=1) * np.sqrt(1.0 + 1.0 / n))


def is_certified(separation: Array, null: float) -> NDArray[np.bool_]:
    """Which states are disjoint from the rest: (n_states,)."""
    return np.asarray(separation >= max(CERTIFIED * LOG_2, null))
