"""Update clusters with new rows: old clusters keep their numbers and rows, new groups get new numbers.

A reservoir, a random sample of all rows so far, represents the old rows. The network must keep its p(z|x) for them. It
learns which new rows belong to a new group (:mod:`~neuralbayes.clusters.new_groups`), and continues with the objective
on old and new rows.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from neuralbayes.clusters.calibration import temperature
from neuralbayes.clusters.from_consensus import divide_logits
from neuralbayes.clusters.merging import Merging, merge_states, neighbor_joint, separation
from neuralbayes.clusters.points import BLOCK
from neuralbayes.clusters.training import RADIUS, Anchors, Trained, seeded, train_from_votes
from neuralbayes.neighbors import nearest_neighbors
from neuralbayes.networks.states import MergedStates, StateNetwork
from neuralbayes.objectives import Objective
from neuralbayes.training.inference import in_blocks

Array = NDArray[np.floating]
Labels = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Update:
    """An updated network, with the merges and the separation of its clusters."""

    network: StateNetwork
    merging: Merging
    separation: NDArray[np.float64]
    trained: Trained


def update_clusters(
    network: StateNetwork,
    old: Array,
    new: Array,
    groups: Labels,
    *,
    max_iter: int | None,
    n_neighbors: int,
    n_hidden: int,
    objective: Objective | None,
    rng: np.random.RandomState,
    verbose: bool,
) -> Update:
    """Train a copy of a network on old and new rows.

    Parameters
    ----------
    network : StateNetwork
        A network whose inner network is an MLP on coordinates.
    old, new : ndarray of shape (n_old, n_dimensions), (n_new, n_dimensions)
        Rows, as inputs of the MLP.
    groups : ndarray of shape (n_new,)
        The new group of each new row, or -1 if it is in no new group.
    max_iter, n_neighbors, n_hidden, objective
    rng : RandomState

    Returns
    -------
    Update
    """
    grown = _grown(network, int(groups.max(initial=-1)) + 1)
    n_clusters = grown.membership.shape[1]
    points = torch.from_numpy(np.concatenate([old, new]).astype(np.float32))
    target = torch.zeros(len(points), n_clusters)
    target[:, : network.membership.shape[1]] = _cluster_posteriors(network, points)
    n_old, in_group = len(old), np.flatnonzero(groups >= 0)
    target[n_old + in_group] = torch.eye(n_clusters)[groups[in_group] + network.membership.shape[1]]
    held_rows = torch.from_numpy(np.concatenate([np.arange(n_old), n_old + in_group]))
    nowhere = torch.empty(0, 2, dtype=torch.int64)
    anchors = Anchors(held_rows, target[held_rows], nowhere, nowhere)
    distances, neighbors = nearest_neighbors(points.numpy(), min(n_neighbors, len(points) - 1))
    radius = torch.from_numpy(RADIUS * distances[:, -1]).float()

    def fetch(indices: Tensor) -> Tensor:
        return points[indices]

    trained = Trained(0.0, [], 0)
    n_products = max(250, 4 * n_clusters) * (points.shape[1] + n_hidden + n_clusters) * n_hidden
    if n_clusters > 1:
        with seeded(rng, n_products):
            grown.requires_grad_(True)
            clusters = MergedStates(grown.network, grown.membership)
            trained = train_from_votes(
                clusters,
                fetch,
                radius,
                target,
                steps=max_iter,
                objective=objective,
                anchors=anchors,
                verbose=verbose,
            )
    grown.eval().requires_grad_(False)
    if len(grown.membership) == n_clusters:  # one state per cluster, as from a consensus: restore the calibration
        logits = _logits(grown.network, points) @ grown.membership
        divide_logits(grown.network, temperature(logits[held_rows], target[held_rows]))
    p_states = _logits(grown.network, points).softmax(dim=1)
    joint = neighbor_joint(p_states.numpy(), neighbors)
    return Update(
        grown,
        merge_states(joint, grown.membership.argmax(dim=1).numpy()),
        separation((p_states @ grown.membership).numpy(), neighbors),
        trained,
    )


@torch.no_grad()
def _grown(network: StateNetwork, n_more: int) -> StateNetwork:
    """Copy a network and add clusters, each with one untrained state."""
    grown = copy.deepcopy(network)
    if not n_more:
        return grown
    head = grown.network[-1]  # type: ignore[index]
    n_states, n_clusters = grown.membership.shape
    wider = nn.Linear(head.in_features, n_states + n_more)
    wider.weight.zero_()
    wider.bias.fill_(float(head.bias.min()))
    wider.weight[:n_states], wider.bias[:n_states] = head.weight, head.bias
    grown.network[-1] = wider  # type: ignore[operator]
    membership = torch.zeros(n_states + n_more, n_clusters + n_more)
    membership[:n_states, :n_clusters] = grown.membership
    membership[n_states:, n_clusters:] = torch.eye(n_more)
    grown.membership = membership
    return grown


def _logits(network: nn.Module, points: Tensor) -> Tensor:
    return torch.from_numpy(in_blocks(lambda rows: network(points[torch.from_numpy(rows)]), len(points), block=BLOCK))


def _cluster_posteriors(network: StateNetwork, points: Tensor) -> Tensor:
    return _logits(network.network, points).softmax(dim=1) @ network.membership
