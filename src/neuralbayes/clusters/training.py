"""Train a network to states, and then to the clusters that they were merged into."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from neuralbayes.clusters.anchors import Anchors, Held
from neuralbayes.clusters.known import NO_HINTS, Hints
from neuralbayes.clusters.smooth_step import Step, imitation_step, smooth_step
from neuralbayes.features.tables import even_batches
from neuralbayes.gradients.passes import frozen_buffers
from neuralbayes.networks.encoders import mlp
from neuralbayes.networks.states import MergedStates, WithStates
from neuralbayes.objectives import MIM, Objective
from neuralbayes.training import Batches, Callback, StopOnNaN, TrainingState, cosine, train

Fetch = Callable[[Tensor], Tensor]
"""Maps indices to samples in the form that the network takes."""

LEAST_STATES, MOST_STATES = 4, 8
"""Default range of states per cluster. With four, a cluster with a fiftieth of the samples may get no state."""

SAMPLES_PER_STATE = 100
"""Number of samples per state, within the range of states per cluster."""

BATCH_SIZE = 250

NEARLY_EQUAL = 1.5
"""Largest ratio of cluster sizes that count as equal."""


@dataclass(frozen=True)
class ClusterOptions:
    """Options of a fit; :class:`neuralbayes.InformationClusterer` documents the options that it shares.

    Attributes
    ----------
    n_clusters : int or None
        None chooses the number from the data, up to `max_clusters`.
    max_iter : int
        Number of steps, half of them for the states and half for the clusters.
    n_states, max_clusters, n_init, n_neighbors, n_hidden, max_samples : int
    standardize, verbose : bool
    objective : Objective, optional
        Minimised together with the change under the worst step; by default MIM-v1 with the weight `prior` of H(z).
    n_dimensions : int
        Maximum number of principal components. Further directions carry noise, which the worst step would follow.
    radius : float
        Length of the worst step in units of the distance to the farthest of the neighbours.
    small_step : float
        Length of the trial step that finds the worst direction, in units of the radius.
    information, prior : float
        IMSAT's lambda and mu: the weight of the information, and the weight of H(z) in it.
    head : float
        Initial scale of the last layer.
    batch_size : int
    learning_rate : float
        Initial learning rate of Adam, which decays to 0 along half a cosine.
    hints : Hints
        Hints about the training samples.
    """

    n_clusters: int | None
    n_states: int
    max_iter: int
    max_clusters: int = 20
    n_init: int = 1
    n_neighbors: int = 15
    n_hidden: int = 512
    max_samples: int = 60_000
    standardize: bool = False
    verbose: bool = False
    objective: Objective | None = None
    n_dimensions: int = 64
    radius: float = 0.4
    small_step: float = 4.0
    information: float = 0.1
    prior: float = 4.0
    head: float = 1e-4
    batch_size: int = BATCH_SIZE
    learning_rate: float = 2e-3
    hints: Hints = NO_HINTS


@dataclass
class Trained:
    """Mean loss of a network over the last tenth of the steps, and over each tenth."""

    objective: float
    loss_curve: list[float]
    n_iter: int

    def then(self, other: Trained) -> Trained:
        """Append another training."""
        return Trained(other.objective, self.loss_curve + other.loss_curve, self.n_iter + other.n_iter)


def default_states(n_clusters: int, n_samples: int) -> int:
    """Default number of states.

    Examples
    --------
    >>> default_states(10, 1437), default_states(10, 7000), default_states(10, 60_000)
    (40, 70, 80)
    """
    return int(np.clip(n_samples // SAMPLES_PER_STATE, LEAST_STATES * n_clusters, MOST_STATES * n_clusters))


def default_steps(n_samples: int) -> int:
    """Default number of training steps: a hundred epochs, but at least 2000 and at most 6000 steps.

    Examples
    --------
    >>> default_steps(1437), default_steps(10_000), default_steps(60_000)
    (2000, 4000, 6000)
    """
    return int(np.clip(100 * n_samples // BATCH_SIZE, 2000, 6000))


def default_objective(options: ClusterOptions, sizes: Tensor | None = None) -> Objective:
    """MIM-v1 with a target p(z) proportional to `sizes` (n_states,), or uniform without them."""
    if sizes is not None:
        sizes = sizes.clamp_min(1e-4)
        sizes = sizes / sizes.sum()
    return MIM(options.prior - 1.0, version=1, target_prior=sizes)


def target_sizes(sizes: Tensor) -> Tensor | None:
    """Sizes of merged states (n_clusters,) as a target for p(z), or None if they are nearly equal.

    If sizes are nearly equal, a uniform p(z) is the better target, since it corrects samples that merging left in a
    wrong cluster. If they are not, it splits large clusters and joins small ones.

    Examples
    --------
    >>> target_sizes(torch.tensor([0.26, 0.26, 0.23, 0.25]))
    >>> target_sizes(torch.tensor([0.70, 0.20, 0.10]))
    tensor([0.7000, 0.2000, 0.1000])
    """
    return None if sizes.max() <= NEARLY_EQUAL * sizes.min() else sizes


def state_mlp(n_dimensions: int, n_hidden: int, n_states: int) -> nn.Sequential:
    """Make a network for coordinates: two hidden layers with batch normalisation."""
    return mlp((n_dimensions, n_hidden, n_hidden, n_states), batch_norm=True)


def state_network(body: nn.Module | None, fetch: Fetch, n_dimensions: int, options: ClusterOptions) -> nn.Module:
    """Make a network whose states are almost equally probable for every sample."""
    network: nn.Module
    if body is None:
        network = state_mlp(n_dimensions, options.n_hidden, options.n_states)
        head: Any = network[-1]
    else:
        body = copy.deepcopy(body).train()
        with torch.no_grad(), frozen_buffers(body):
            n_features = body(fetch(torch.arange(2))).flatten(1).shape[1]
        network = WithStates(body, n_features, options.n_states)
        head = network.head
        nn.init.zeros_(head.bias)
    with torch.no_grad():
        head.weight.mul_(options.head)
    return network


class _Losses(Callback):
    """Records the loss of each step."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def on_step_end(self, state: TrainingState, metrics: Mapping[str, float]) -> None:
        self.values.append(metrics["loss"])


def train_states(
    network: nn.Module, fetch: Fetch, radius: Tensor, options: ClusterOptions, versions: Tensor | None = None
) -> Trained:
    """Train a network to states or clusters, and leave it in evaluation mode.

    Parameters
    ----------
    network : nn.Module
    fetch : callable
        Maps indices to inputs of the network.
    radius : Tensor of shape (n_samples,)
        Length of the worst step of each sample.
    options : ClusterOptions
    versions : Tensor of shape (n_samples, n_versions, n_dimensions), optional
        Samples moved a little, as inputs of the network; the worst step starts from them.

    Returns
    -------
    Trained
    """
    moved = () if versions is None else (versions,)
    objective = options.objective or default_objective(options)
    held = None
    if isinstance(network, MergedStates):  # single states are too many to have known classes
        anchors = Anchors.of(options.hints, network.membership.shape[1])
        held = None if anchors is None else Held(anchors, fetch)
    return _trained(
        network,
        smooth_step(objective, options.information, step=options.small_step, held=held),
        len(radius),
        lambda indices: (fetch(indices), radius[indices], *(x[indices] for x in moved)),
        options,
        "step of the clusters" if isinstance(network, MergedStates) else "step of the states",
    )


def train_from_votes(
    network: nn.Module,
    fetch: Fetch,
    radius: Tensor,
    target: Tensor,
    options: ClusterOptions,
    anchors: Anchors | None = None,
) -> tuple[Trained, Trained]:
    """Train a network on the votes of other methods, then with the objective; leave it in evaluation mode.

    A quarter of the steps train on the votes. By default the target of p(z) is the mean of the votes.

    Parameters
    ----------
    network : nn.Module
    fetch : callable
        Maps indices to inputs of the network.
    radius : Tensor of shape (n_samples,)
        Length of the worst step of each sample.
    target : Tensor of shape (n_samples, n_clusters)
        Share of the votes for each cluster.
    options : ClusterOptions
    anchors : Anchors, optional
        Targets and pairs to respect in all steps; by default from the hints.

    Returns
    -------
    tuple of two Trained
        Training on the votes, and with the objective.
    """
    n_samples, n_clusters = target.shape
    anchors = anchors or Anchors.of(options.hints, n_clusters, target)
    held = None if anchors is None else Held(anchors, fetch)
    n_first = options.max_iter // 4
    sized = replace(options, batch_size=max(options.batch_size, 4 * n_clusters))
    first = _trained(
        network,
        imitation_step(step=options.small_step, held=held),
        n_samples,
        lambda indices: (fetch(indices), radius[indices], target[indices]),
        replace(sized, max_iter=n_first),
        "step of the start",
    )
    objective = options.objective or default_objective(options, options.hints.mean(target))
    second = _trained(
        network,
        smooth_step(objective, options.information, step=options.small_step, held=held),
        n_samples,
        lambda indices: (fetch(indices), radius[indices]),
        replace(sized, max_iter=options.max_iter - n_first),
        "step of the clusters",
    )
    return first, second


def _trained(
    network: nn.Module,
    step: Step,
    n_samples: int,
    fetch: Callable[[Tensor], tuple[Tensor, ...]],
    options: ClusterOptions,
    description: str,
) -> Trained:
    if not options.max_iter:
        return Trained(math.nan, [], 0)
    losses = _Losses()
    pool = options.hints.pool()
    if pool is not None:
        n_samples = len(pool)
    size = even_batches(n_samples, options.batch_size)
    state = train(
        network,
        step,
        Batches(n_samples, size, seed=int(torch.randint(2**31, ())), drop_last=True),
        fetch=fetch if pool is None else lambda indices: fetch(pool[indices]),
        optimizer=torch.optim.Adam(network.parameters(), lr=options.learning_rate),
        schedule=cosine(),
        max_steps=options.max_iter,
        callbacks=(StopOnNaN(), losses),
        verbose=options.verbose,
        description=description,
    )
    network.cpu().eval()
    tenths = np.array_split(losses.values, min(10, len(losses.values)))
    curve = [float(np.mean(tenth)) for tenth in tenths]
    return Trained(curve[-1], curve, state.step)
