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

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from neuralbayes.clusters.calibration import calibrated_temperature
from neuralbayes.clusters.consensus import agree
from neuralbayes.clusters.fit import Clusters, separation_of
from neuralbayes.clusters.known import Hints, least_number
from neuralbayes.clusters.merging import merge_states, neighbor_joint
from neuralbayes.clusters.number_of_clusters import choose_number
from neuralbayes.clusters.points import BLOCK, Read
from neuralbayes.clusters.space import Space, make_space, thinned
from neuralbayes.clusters.starts import base_partitions
from neuralbayes.clusters.taught import taught_votes
from neuralbayes.clusters.training import ClusterOptions, Trained, state_network, train_from_votes
from neuralbayes.features.tables import SMALL
from neuralbayes.networks.states import StateNetwork, WithStates
from neuralbayes.system.devices import device_of, torch_device, working_copy
from neuralbayes.training.inference import in_blocks

FEW = 20_000
"""Number of rows up to which one thread is as fast as several, which would wait for each other."""


def consensus_steps(n_samples: int, batch_size: int) -> int:
    """Default number of training steps: 16 epochs, but at least 360 and at most 600 steps.

    Examples
    --------
    >>> consensus_steps(150, 250), consensus_steps(7000, 250), consensus_steps(60_000, 600)
    (360, 448, 600)
    """
    return int(np.clip(16 * n_samples // batch_size, 360, 600))


def consensus_width(n_dimensions: int, n_clusters: int) -> int:
    """Default number of units of a hidden layer.

    Examples
    --------
    >>> consensus_width(4, 3), consensus_width(64, 150)
    (128, 300)
    """
    return int(np.clip(2 * max(n_dimensions, n_clusters), 128, 512))


def fit_from_consensus(
    read: Read, n_samples: int, body: nn.Module | None, options: ClusterOptions, rng: np.random.RandomState
) -> Clusters:
    """Divide the rows by several methods, and train a network on their consensus.

    Parameters
    ----------
    read : callable
    n_samples : int
    body : nn.Module, optional
        Your network, which is copied. It takes the normalised rows of `read`. By default an MLP on the rows in units
        of their noise.
    options : ClusterOptions
        0 for `max_iter` or `n_hidden` selects the default.
    rng : RandomState

    Returns
    -------
    Clusters
    """
    auto = options.n_clusters is None
    with threadpool_limits(1 if n_samples < FEW else None):
        chosen = options.hints.draw(n_samples, options.max_samples, rng)
        hints = options.hints.of(chosen)
        space = make_space(
            read,
            chosen,
            options.n_dimensions,
            options.n_neighbors,
            rng,
            standardize=options.standardize,
            verbose=options.verbose,
            weight=hints.weight,
        )
        selection: dict[str, list[float]] = {}
        n_clusters = options.n_clusters
        if n_clusters is None:
            n_clusters, selection = choose_number(thinned(space, hints), options.max_clusters)
            n_clusters = max(n_clusters, least_number(hints, None))
        shares = torch.ones(len(chosen), 1)
        if n_clusters > 1:
            shares = _voted(space, n_clusters, rng, hints)
    n_dimensions = space.points.shape[1]
    batch_size = max(options.batch_size, 4 * n_clusters)
    options = replace(
        options,
        n_clusters=n_clusters,
        n_states=n_clusters,
        n_hidden=options.n_hidden or consensus_width(n_dimensions, n_clusters),
        max_iter=options.max_iter or consensus_steps(len(chosen), batch_size),
        hints=options.hints.of(chosen),
    )
    frame = StateNetwork(space.center, space.basis @ space.noise.double(), nn.Identity(), torch.eye(n_clusters))
    if body is not None:
        frame = StateNetwork(space.center, space.factors, nn.Identity(), torch.eye(n_clusters))
    radius = torch.from_numpy(options.radius * space.distances[:, -1]).float()

    def fetch(indices: Tensor) -> Tensor:
        return space.denoised[indices] if body is None else frame.normalize(read(chosen[indices.numpy()]))

    n_products = batch_size * (n_dimensions + options.n_hidden + n_clusters) * options.n_hidden
    best: tuple[nn.Module, Trained, Trained] | None = None
    for _ in range(options.n_init):
        with (
            torch.random.fork_rng(),
            threadpool_limits(1 if body is None and n_products < SMALL else None),
        ):
            torch.manual_seed(int(rng.randint(2**31 - 1)))
            network = state_network(body, fetch, n_dimensions, options)
            if n_clusters > 1:
                first, second = train_from_votes(network, fetch, radius, shares, options)
            else:
                network.eval()
                first = second = Trained(0.0, [], 0)
        if best is None or second.objective < best[2].objective:
            best = network, first, second
    network, first, second = best  # type: ignore[misc]
    computing = working_copy(network, torch_device())
    place = device_of(computing)
    logits = torch.from_numpy(
        in_blocks(lambda rows: computing(fetch(torch.from_numpy(rows)).to(place)), len(chosen), block=BLOCK)
    )
    pool = options.hints.pool()
    rows = slice(None) if pool is None else pool
    floor = space.noise.T @ space.floor @ space.noise
    cooled = calibrated_temperature(logits[rows], space.denoised[rows], floor, shares[rows])
    divide_logits(network, cooled)
    p_zx = (logits / cooled).softmax(dim=1).numpy()
    weight = options.hints.weight
    joint = neighbor_joint(p_zx, space.neighbors, weight)
    membership = torch.eye(n_clusters)
    if auto and not len(options.hints.classes):
        membership = without_empty(p_zx, joint)
    return Clusters(
        StateNetwork(frame.center, frame.basis, network, membership),
        n_dimensions=n_dimensions,
        joint=joint,
        merging=merge_states(joint),
        separation=separation_of(p_zx @ membership.numpy(), space.neighbors, weight),
        objective=second.objective,
        loss_curve=first.loss_curve + second.loss_curve,
        n_iter=first.n_iter + second.n_iter,
        n_iter_start=first.n_iter,
        n_hidden=options.n_hidden,
        selection=selection,
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
