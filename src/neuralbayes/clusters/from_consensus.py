"""Find clusters of rows: teach a network the consensus of simple methods, then improve it with the objective.

1. Measure distances in units of the noise (:mod:`~neuralbayes.clusters.space`), so directions along which all clusters
   are wide do not hide the clusters.
2. Divide the rows by mixtures and a graph (:mod:`~neuralbayes.clusters.starts`), and let them vote
   (:mod:`~neuralbayes.clusters.consensus`). No method is right on all tables, and without labels we cannot know which
   one is right; their consensus is right more often.
3. Train a network on the votes, then with the objective: maximise information, while p(z|x) must not change under the
   worst small step. The resulting clusters are better than the votes, and the network labels new rows too.
4. Divide the logits by the temperature at which p(z|x) agrees best with how far clusters overlap
   (:mod:`~neuralbayes.clusters.calibration`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from neuralbayes.clusters.calibration import calibrated_temperature
from neuralbayes.clusters.consensus import agree
from neuralbayes.clusters.known import Hints, least_number
from neuralbayes.clusters.merging import Merging, merge_states, neighbor_joint, separation
from neuralbayes.clusters.number_of_clusters import choose_number
from neuralbayes.clusters.points import BLOCK, Read
from neuralbayes.clusters.space import Space, make_space, thinned
from neuralbayes.clusters.starts import base_partitions
from neuralbayes.clusters.taught import taught_votes
from neuralbayes.clusters.training import RADIUS, Trained, consensus_width, seeded, state_network, train_from_votes
from neuralbayes.networks.states import StateNetwork, WithStates
from neuralbayes.objectives import Objective
from neuralbayes.system.devices import device_of, torch_device, working_copy
from neuralbayes.training.inference import in_blocks

FEW = 20_000
"""Number of rows up to which one thread is as fast as several, which would wait for each other."""


@dataclass(frozen=True, eq=False)
class RowsFit:
    """A network with its clusters, how near they are to each other, and how it was trained."""

    network: StateNetwork
    merging: Merging
    separation: NDArray[np.float64]
    trained: Trained
    n_dimensions: int
    selection: dict[str, list[float]]


def fit_from_consensus(
    read: Read,
    n_samples: int,
    n_clusters: int | None,
    *,
    body: nn.Module | None,
    n_hidden: int | None,
    max_iter: int | None,
    max_samples: int,
    max_clusters: int,
    n_neighbors: int,
    objective: Objective | None,
    standardize: bool,
    hints: Hints,
    rng: np.random.RandomState,
    verbose: bool,
) -> RowsFit:
    """Divide the rows by several methods, and train a network on their consensus."""
    auto = n_clusters is None
    with threadpool_limits(1 if n_samples < FEW else None):
        chosen = hints.draw(n_samples, max_samples, rng)
        hints = hints.of(chosen)
        weight = hints.weight
        space = make_space(read, chosen, 64, n_neighbors, rng, standardize=standardize, verbose=verbose, weight=weight)
        selection: dict[str, list[float]] = {}
        if n_clusters is None:
            n_clusters, selection = choose_number(thinned(space, hints), max_clusters)
            n_clusters = max(n_clusters, least_number(hints, None))
        shares = torch.ones(len(chosen), 1)
        if n_clusters > 1:
            shares = _voted(space, n_clusters, rng, hints)
    n_dimensions = space.points.shape[1]
    width = n_hidden or consensus_width(n_dimensions, n_clusters)
    frame = StateNetwork(space.center, space.basis @ space.noise.double(), nn.Identity(), torch.eye(n_clusters))
    if body is not None:
        frame = StateNetwork(space.center, space.factors, nn.Identity(), torch.eye(n_clusters))
    radius = torch.from_numpy(RADIUS * space.distances[:, -1]).float()

    def fetch(indices: Tensor) -> Tensor:
        return space.denoised[indices] if body is None else frame.normalize(read(chosen[indices.numpy()]))

    n_products = max(250, 4 * n_clusters) * (n_dimensions + width + n_clusters) * width
    with seeded(rng, n_products if body is None else np.inf):
        network = state_network(body, fetch(torch.arange(2)), n_clusters, width)
        trained = Trained(0.0, [], 0)
        if n_clusters > 1:
            trained = train_from_votes(
                network, fetch, radius, shares, steps=max_iter, objective=objective, hints=hints, verbose=verbose
            )
    network.eval()
    computing = working_copy(network, torch_device())
    place = device_of(computing)
    logits = torch.from_numpy(
        in_blocks(lambda rows: computing(fetch(torch.from_numpy(rows)).to(place)), len(chosen), block=BLOCK)
    )
    pool = hints.pool()
    rows = slice(None) if pool is None else pool
    floor = space.noise.T @ space.floor @ space.noise
    cooled = calibrated_temperature(logits[rows], space.denoised[rows], floor, shares[rows])
    divide_logits(network, cooled)
    p_zx = (logits / cooled).softmax(dim=1).numpy()
    joint = neighbor_joint(p_zx, space.neighbors, weight)
    membership = torch.eye(n_clusters)
    if auto and not len(hints.classes):
        membership = without_empty(p_zx, joint)
    return RowsFit(
        StateNetwork(frame.center, frame.basis, network, membership),
        merge_states(joint),
        separation(p_zx @ membership.numpy(), space.neighbors, weight),
        trained,
        n_dimensions,
        selection,
    )


def _voted(space: Space, n_clusters: int, rng: np.random.RandomState, hints: Hints) -> Tensor:
    """Share of the votes for each cluster: (n_rows, n_clusters)."""
    partitions = base_partitions(space, n_clusters, rng, hints)
    shares = agree(list(partitions.values()), n_clusters, rng, hints)
    if len(hints.classes):
        free = base_partitions(space, n_clusters, rng, Hints(hints.weight))
        shares = taught_votes(shares, list(free.values()), space, hints)
    return torch.from_numpy(shares).float()


def without_empty(p_zx: NDArray[np.floating], joint: NDArray[np.floating]) -> Tensor:
    """Membership of states in clusters (n_states, n_clusters), without empty clusters.

    A state without rows joins the state with which it shares most neighbours.

    Examples
    --------
    >>> p_zx = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]])
    >>> without_empty(p_zx, np.array([[0.5, 0.1, 0.0], [0.1, 0.0, 0.2], [0.0, 0.2, 0.5]]))
    tensor([[1., 0.],
            [0., 1.],
            [0., 1.]])
    """
    n_states = p_zx.shape[1]
    filled = np.unique(p_zx.argmax(axis=1))
    cluster = np.searchsorted(filled, np.arange(n_states)).clip(max=len(filled) - 1)
    empty = np.setdiff1d(np.arange(n_states), filled)
    cluster[empty] = joint[np.ix_(empty, filled)].argmax(axis=1)
    return torch.eye(len(filled))[torch.from_numpy(cluster)]


@torch.no_grad()
def divide_logits(network: nn.Module, by: float) -> None:
    """Divide the logits of a network whose last layer is linear."""
    head = network.head if isinstance(network, WithStates) else network[-1]  # type: ignore[index]
    for parameter in head.parameters():
        parameter.div_(by)
