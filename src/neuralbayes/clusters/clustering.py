r"""Clusters of images, and of rows that touch: many small states that are informative and smooth, then merged.

1. The data are divided by one number and taken to their principal components. Neighbours are found there.
2. A network with a few times as many states as there are to be clusters maximises the information of its states about
   x (MIM-v1 with alpha = mu - 1) while p(z|x) is kept from changing under the worst small step from each point, a
   fraction of the distance to its neighbours long: the objective of IMSAT (Hu et al. 2017), with more states. With as
   many states as clusters that objective ends in poor local optima, where one state holds halves of two kinds and
   another kind has two states. Small states are pure, and how many share a kind follows from how many points it has.
3. States whose points are neighbours are merged; see :mod:`neuralbayes.clusters.merging`.
4. The network goes on with the same objective over clusters: p(cluster|x) is the sum of p(z|x) over its states. From
   where merging has brought it, the optimum is a good one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from neuralbayes.bayes import conditional_entropy, entropy, js_divergence, posterior, prior
from neuralbayes.clusters.merging import Merging, merge_states, neighbor_joint
from neuralbayes.distributed.global_batch import global_batch
from neuralbayes.distributed.processes import default_fabric, rank_zero_result
from neuralbayes.features.tables import SMALL, even_batches
from neuralbayes.gradients.replay import frozen_buffers
from neuralbayes.networks.encoders import mlp
from neuralbayes.networks.states import MergedStates, StateNetwork, WithStates
from neuralbayes.objectives import MIM, Objective
from neuralbayes.objectives.base import interior_posterior
from neuralbayes.objectives.virtual_adversarial import virtual_adversarial
from neuralbayes.training import Batches, Callback, StopOnNaN, TrainingState, cosine, train
from neuralbayes.training.precision import InBfloat16, choose_precision
from neuralbayes.training.progress import progress

Array = NDArray[Any]
Read = Callable[[NDArray[np.int64]], Tensor]
"""Samples at some indices as the caller has them: (m, n_features) or (m, C, H, W)."""
Fetch = Callable[[Tensor], Tensor]
"""From indices to samples as the network takes them."""
Step = Callable[[nn.Module, tuple[Tensor, Tensor]], dict[str, Tensor]]
"""As :func:`neuralbayes.training.train` takes it; a batch is x and the radius of each sample."""

N_STATES = 4
"""States for each cluster."""

LARGE = 1e11
"""Multiplications in a fit from which on it is worth to find out, for seconds, whether bfloat16 is faster."""

BATCH_SIZE = 250
SPAN_NUMBERS = 2**25
"""Numbers, a quarter of a gigabyte of them, from which the principal components are computed at most."""

BLOCK = 2000
"""Samples that are read, or pass through the network, at once."""


@dataclass(frozen=True)
class ClusterOptions:
    """What a fit can be told; :class:`neuralbayes.ManifoldLabeler` says more of those that it takes.

    Attributes
    ----------
    n_clusters : int or None
        None: the number that stands out, up to `max_clusters`.
    max_iter : int
        Steps: half for the states, half for the clusters.
    n_states, max_clusters, n_init, n_neighbors, n_hidden, max_samples : int
    standardize, verbose : bool
    n_dimensions : int
        Most principal components: directions beyond carry noise, which the worst step would go along.
    radius : float
        Length of the worst step in units of the distance to the last of the neighbours.
    small_step : float
        Length of the step at whose end the worst direction is looked for, in units of the radius.
    information, prior : float
        lambda and mu, IMSAT's weights of the information and of H(z) in it.
    head : float
        Scale of the last layer at first.
    batch_size : int
    learning_rate : float
        Of Adam, which half a cosine takes to 0.
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
    n_dimensions: int = 64
    radius: float = 0.4
    small_step: float = 4.0
    information: float = 0.1
    prior: float = 4.0
    head: float = 1e-4
    batch_size: int = BATCH_SIZE
    learning_rate: float = 2e-3


@dataclass
class Clusters:
    """A network with its clusters, how they were merged, and how well it is trained."""

    network: StateNetwork
    n_dimensions: int  # of the principal components
    joint: NDArray[np.float64]  # (n_states, n_states): p(z, z') of neighbours
    merging: Merging
    separation: NDArray[np.float64]  # (n_clusters,) in nats
    objective: float
    loss_curve: list[float]
    n_iter: int
    n_iter_states: int  # of these

    @property
    def disjoint(self) -> NDArray[np.bool_]:
        """That no cluster is certified: (n_clusters,)."""
        return np.zeros(len(self.separation), bool)


@dataclass
class Trained:
    """The loss of a network over the last tenth of the steps, and over each tenth."""

    objective: float
    loss_curve: list[float]
    n_iter: int

    def then(self, other: Trained) -> Trained:
        """Both, one after the other."""
        return Trained(other.objective, self.loss_curve + other.loss_curve, self.n_iter + other.n_iter)


def fit_clusters(
    read: Read,
    n_samples: int,
    body: nn.Module | None,
    options: ClusterOptions,
    rng: np.random.RandomState,
    train_network: Callable[[nn.Module, Fetch, Tensor, ClusterOptions], Trained] | None = None,
) -> Clusters:
    """Train small states from `n_init` starts, merge them, train the clusters, and take those with the least loss.

    Where the number of clusters is not given, the states with the least loss are taken, and the number that stands out
    among them.

    Parameters
    ----------
    read : callable
    n_samples : int
    body : nn.Module, optional
        A network of the caller's that takes what `read` gives, normalised, and is copied; by default an MLP on the
        principal components.
    options : ClusterOptions
    rng : RandomState
    train_network : callable, optional
        In the place of :func:`train_states`, for the states and for the clusters.

    Returns
    -------
    Clusters
    """
    train_network = train_network or train_states
    fabric = default_fabric()
    options = replace(options, verbose=options.verbose and fabric.is_global_zero)

    def sample() -> tuple[NDArray[np.int64], tuple[Tensor, Tensor, Tensor], np.random.RandomState]:
        chosen = np.sort(rng.permutation(n_samples)[: options.max_samples])
        return chosen, _span(read, chosen, options, rng), rng

    # Rank 0 speaks for all: they have the same samples, neighbours and random numbers, and will merge alike.
    chosen, (center, scale, components), rng = rank_zero_result(fabric, sample)
    frame = StateNetwork(center, scale[:, None] * components, nn.Identity(), torch.eye(1))
    points = torch.cat([frame.normalize(x) for x in _blocks(read, chosen, options.verbose)])
    distance, neighbors = rank_zero_result(fabric, lambda: _neighbors(points.numpy(), options))
    radius = torch.from_numpy(options.radius * distance[:, -1]).float()
    if body is not None:
        frame = StateNetwork(center, scale, nn.Identity(), torch.eye(1))

    def fetch(indices: Tensor) -> Tensor:
        return points[indices] if body is None else frame.normalize(read(chosen[indices.numpy()]))

    n_products = options.batch_size * (points.shape[1] + options.n_hidden + options.n_states) * options.n_hidden
    n_threads = 1 if body is None and n_products < SMALL else None
    large = body is None and n_products * options.max_iter > LARGE
    half = large and rank_zero_result(fabric, lambda: choose_precision("auto")) == "bfloat16"
    merges = options.n_clusters not in (1, options.n_states)
    for_clusters = replace(options, max_iter=merges * (options.max_iter // 2))
    for_states = replace(options, max_iter=options.max_iter - for_clusters.max_iter)

    @contextmanager
    def seeded() -> Iterator[None]:
        with torch.random.fork_rng(), threadpool_limits(n_threads):
            torch.manual_seed(int(rng.randint(2**31 - 1)))
            yield

    def joint_of(network: nn.Module) -> NDArray[np.float64]:
        return rank_zero_result(fabric, lambda: neighbor_joint(_posteriors(network, fetch, len(chosen)), neighbors))

    starts = []
    for _ in range(options.n_init):
        with seeded():
            network = _network(body, fetch, points.shape[1], options)
            called = InBfloat16(network) if half else network
            trained = train_network(called, fetch, radius, for_states)
        joint = joint_of(network)
        starts.append(_Start(network, called, joint, merge_states(joint), trained))
    if options.n_clusters is None:  # losses over different numbers could not be compared
        starts = [min(starts, key=_objective)]
    n_clusters = options.n_clusters or starts[0].merging.standing_out(options.max_clusters)
    if for_clusters.max_iter and n_clusters > 1:
        for start in starts:
            clusters = MergedStates(start.called, start.membership(n_clusters))
            with seeded():
                start.trained = start.trained.then(train_network(clusters, fetch, radius, for_clusters))

    best = min(starts, key=_objective)
    membership = best.membership(n_clusters)

    def separated() -> NDArray[np.float64]:
        p_zx = _posteriors(MergedStates(best.network, membership), fetch, len(chosen))
        near = np.mean([p_zx[column] for column in neighbors.T], axis=0)
        divergence: NDArray[np.float64] = js_divergence(torch.from_numpy(near)).double().numpy()
        return divergence

    separation = rank_zero_result(fabric, separated) if n_clusters > 1 else np.zeros(1)
    return Clusters(
        StateNetwork(frame.center, frame.basis, best.network, membership),
        n_dimensions=points.shape[1],
        joint=best.joint,
        merging=best.merging,
        separation=separation,
        objective=best.trained.objective,
        loss_curve=best.trained.loss_curve,
        n_iter=best.trained.n_iter,
        n_iter_states=for_states.max_iter,
    )


@dataclass
class _Start:
    """A network to small states, as it is and as it is called in training, and how its states were merged."""

    network: nn.Module
    called: nn.Module
    joint: NDArray[np.float64]
    merging: Merging
    trained: Trained

    def membership(self, n_clusters: int) -> Tensor:
        return torch.eye(n_clusters)[torch.from_numpy(self.merging.clusters(n_clusters))]


def _objective(start: _Start) -> float:
    return start.trained.objective


def _posteriors(network: nn.Module, fetch: Fetch, n_samples: int) -> Array:
    """p(z|x) of all samples, a block at a time: (n_samples, n_states)."""
    with torch.no_grad():
        parts = (torch.arange(start, min(start + BLOCK, n_samples)) for start in range(0, n_samples, BLOCK))
        return torch.cat([posterior(network(fetch(part))) for part in parts]).numpy()


def default_steps(n_samples: int) -> int:
    """How long to train where nothing else is said: a hundred epochs, but from 2000 to 6000 steps.

    Examples
    --------
    >>> default_steps(1437), default_steps(10_000), default_steps(60_000)
    (2000, 4000, 6000)
    """
    return int(np.clip(100 * n_samples // BATCH_SIZE, 2000, 6000))


def information_step(objective: Objective, weight: float, *, n_iterations: int = 1, step: float = 0.1) -> Step:
    r"""A step of training by :math:`R_{VAT} + \text{weight} \cdot J(\text{logits})` on a batch (x, radius).

    Parameters
    ----------
    objective : Objective
        J.
    weight : float
    n_iterations, step
        As in :func:`neuralbayes.objectives.virtual_adversarial.virtual_adversarial`.

    Returns
    -------
    callable
        The metrics are "loss", "change", which is R_VAT, and "mi". Over several processes p(z), the statistics of batch
        normalisation and the gradient are those of the batch of all of them.
    """

    def train_step(network: nn.Module, batch: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
        with global_batch(network, batch) as whole:
            x, radius = whole.samples
            logits = whole(x)
            with frozen_buffers(network):  # running statistics are those of the samples as they are
                change = virtual_adversarial(
                    whole, x, radius, clean=logits, n_iterations=n_iterations, step=step, start=whole.noise(x)
                )
            p_zx = interior_posterior(logits)
            p_z = whole.mean(prior(p_zx))
            of_samples, of_prior = objective.per_sample(p_zx, p_z).mean(), objective.of_prior(p_z)
            of_this_process = whole.share * (change + weight * of_samples)
            torch.autograd.backward(of_this_process + weight * of_prior / whole.n_processes)
        loss = change + weight * (of_samples + of_prior)
        h_z, h_zx = entropy(p_z.detach(), dim=0), whole.mean(conditional_entropy(p_zx.detach()))
        return {"loss": loss, "change": change, "mi": (h_z - h_zx).clamp_min(0.0)}

    return train_step


def state_mlp(n_dimensions: int, n_hidden: int, n_states: int) -> nn.Sequential:
    """The network for coordinates: two hidden layers with batch normalisation."""
    return mlp((n_dimensions, n_hidden, n_hidden, n_states), batch_norm=True)


def _network(body: nn.Module | None, fetch: Fetch, n_dimensions: int, options: ClusterOptions) -> nn.Module:
    """A new network whose states are all alike but for a trace."""
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
    """The loss of each step."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def on_step_end(self, state: TrainingState, metrics: Mapping[str, float]) -> None:
        self.values.append(metrics["loss"])


def train_states(
    network: nn.Module, fetch: Fetch, radius: Tensor, options: ClusterOptions, step: Step | None = None
) -> Trained:
    """Train a network to states or clusters, and leave it in evaluation mode.

    Parameters
    ----------
    network : nn.Module
    fetch : callable
        From indices to what the network takes.
    radius : Tensor of shape (n_samples,)
    options : ClusterOptions
    step : callable, optional
        Another objective than :func:`information_step` with the weights in `options`.

    Returns
    -------
    Trained
    """
    if step is None:
        objective = MIM(options.prior - 1.0, version=1)
        step = information_step(objective, options.information, step=options.small_step)
    losses = _Losses()
    size = even_batches(len(radius), options.batch_size)
    state = train(
        network,
        step,
        Batches(len(radius), size, seed=int(torch.randint(2**31, ())), drop_last=True),
        fetch=lambda indices: (fetch(indices), radius[indices]),
        optimizer=torch.optim.Adam(network.parameters(), lr=options.learning_rate),
        schedule=cosine(),
        max_steps=options.max_iter,
        callbacks=(StopOnNaN(), losses),
        verbose=options.verbose,
        description="step of the clusters" if isinstance(network, MergedStates) else "step of the states",
    )
    network.cpu().eval()
    tenths = np.array_split(losses.values, min(10, len(losses.values)))
    curve = [float(np.mean(tenth)) for tenth in tenths]
    return Trained(curve[-1], curve, state.step)


def _span(
    read: Read, chosen: NDArray[np.int64], options: ClusterOptions, rng: np.random.RandomState
) -> tuple[Tensor, Tensor, Tensor]:
    """Center (n_features,), factors (n_features,) and principal components (n_features, n_dimensions), in double."""
    n_features = read(chosen[:1])[0].numel()
    few = rng.permutation(len(chosen))[: max(2, SPAN_NUMBERS // n_features)]
    blocks = _blocks(read, chosen[np.sort(few)], verbose=False)
    rows = np.concatenate([x.flatten(1).double().numpy() for x in blocks])
    center = rows.mean(axis=0)
    rows -= center
    variance = np.square(rows).mean(axis=0)
    if not variance.any():
        raise ValueError("X has a single distinct sample: there is nothing to tell apart.")
    deviation = np.sqrt(variance if options.standardize else np.full(n_features, variance.mean()))
    scale = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0.0)
    rows *= scale
    n_dimensions = min(options.n_dimensions, n_features, len(rows) - 1)
    components = PCA(n_dimensions, random_state=rng).fit(rows).components_
    return torch.from_numpy(center), torch.from_numpy(scale), torch.from_numpy(components.T.copy())


def _blocks(read: Read, indices: NDArray[np.int64], verbose: bool) -> Iterator[Tensor]:
    """The samples, a block at a time."""
    starts = range(0, len(indices), BLOCK)
    with progress(len(starts), description="parts read", enabled=verbose) as display:
        for start in starts:
            x = read(indices[start : start + BLOCK])
            yield x
            display.advance(samples=len(x))


def _neighbors(points: Array, options: ClusterOptions) -> tuple[Array, NDArray[np.int64]]:
    """Distances to the nearest neighbours of each point, and which they are: (n_points, n_neighbors) each."""
    n_neighbors = min(options.n_neighbors, len(points) - 1)
    index = NearestNeighbors(n_neighbors=n_neighbors).fit(points)
    distances = np.empty((len(points), n_neighbors), points.dtype)
    neighbors = np.empty((len(points), n_neighbors), np.int64)
    starts = range(0, len(points), 2 * BLOCK)
    with progress(len(starts), description="parts of the neighbours", enabled=options.verbose) as display:
        for start in starts:
            part = slice(start, start + 2 * BLOCK)
            # Each point is its own nearest, unless others lie on it: take out one.
            distance, near = index.kneighbors(points[part], n_neighbors + 1)
            own = near == np.arange(start, start + len(near))[:, None]
            own[~own.any(axis=1), -1] = True
            distances[part] = distance[~own].reshape(-1, n_neighbors)
            neighbors[part] = near[~own].reshape(-1, n_neighbors)
            display.advance(samples=len(near))
    return distances, neighbors
