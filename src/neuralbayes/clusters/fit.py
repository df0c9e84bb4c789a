"""Find clusters of images, and of rows that touch: train many small, informative and smooth states, then merge them.

1. Divide the data by one number, project them on their principal components, and find neighbours there.
2. Train a network with several states per cluster. The states maximise their information about x (MIM-v1 with
   alpha = mu - 1), while p(z|x) must not change under the worst small step from each point, whose length is a fraction
   of the distance to the neighbours. This is the objective of IMSAT (Hu et al. 2017), with more states. The step starts
   from the image rotated, stretched, slanted and shifted a little (:mod:`neuralbayes.clusters.moved`). Such an image
   may be farther away than the neighbours, so the network could not learn from distances that the two are similar.
   With one state per cluster, the objective ends in poor local optima, where one state holds halves of two kinds and
   another kind has two states. Small states are pure, and larger kinds get more of them.
3. Merge states that hold versions of the same images, or, without versions, neighbours of each other; see
   :mod:`neuralbayes.clusters.merging`. With very many states, or more clusters than H(z) - V(z, z') supports, states
   of images are merged by the ratio, as those of neighbours are.
4. Continue training with the same objective over clusters: p(cluster|x) is the sum of p(z|x) over its states. From this
   start it finds a good optimum. If images were moved and the sizes of the merged clusters differ much, these sizes
   become the target of p(z): a uniform p(z) would split large clusters and join small ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from neuralbayes.bayes import js_divergence, posterior
from neuralbayes.clusters.known import least_number, numbered, state_kinds
from neuralbayes.clusters.merging import (
    Merging,
    mean_of_neighbors,
    merge_states,
    merge_versions,
    neighbor_joint,
    versions_joint,
)
from neuralbayes.clusters.moved import moved, n_versions
from neuralbayes.clusters.points import BLOCK, Array, Read, blocks, span
from neuralbayes.clusters.training import (
    ClusterOptions,
    Fetch,
    Trained,
    default_objective,
    state_network,
    target_sizes,
    train_states,
)
from neuralbayes.features.tables import SMALL
from neuralbayes.neighbors import nearest_neighbors
from neuralbayes.networks.states import MergedStates, StateNetwork
from neuralbayes.system.bfloat16 import InBfloat16, bfloat16_is_faster
from neuralbayes.system.devices import device_of, torch_device, working_copy

MANY_STATES = 500
"""Number of states above which merging by information would take longer than some ten seconds."""

LARGE = 1e11
"""Multiplications in a fit above which it pays to spend seconds on measuring whether bfloat16 is faster."""


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
    n_iter_start: int  # steps of n_iter that trained the states
    n_hidden: int
    selection: dict[str, list[float]]  # how the number of clusters was chosen; empty if it was given


def fit_clusters(
    read: Read,
    n_samples: int,
    body: nn.Module | None,
    options: ClusterOptions,
    rng: np.random.RandomState,
) -> Clusters:
    """Train small states from `n_init` starts, merge them, train the clusters, and keep the start with the lowest loss.

    If the number of clusters is not given, keep the states with the lowest loss, and take the number from how they were
    merged.

    Parameters
    ----------
    read : callable
    n_samples : int
    body : nn.Module, optional
        Your network, which is copied. It takes the normalised samples of `read`. By default an MLP on the principal
        components; images are moved only for this MLP.
    options : ClusterOptions
    rng : RandomState

    Returns
    -------
    Clusters
    """
    chosen = options.hints.draw(n_samples, options.max_samples, rng)
    hints = options.hints.of(chosen)
    center, scale, components = span(read, chosen, options.n_dimensions, options.standardize, rng, hints.weight)
    options = replace(options, hints=hints)
    frame = StateNetwork(center, scale[:, None] * components, nn.Identity(), torch.eye(1))
    parts, moved_parts = [], []
    for x in blocks(read, chosen, options.verbose):
        parts.append(frame.normalize(x))
        if x.ndim == 4 and body is None:
            several = range(n_versions(len(chosen), x[0].numel()))
            moved_parts.append(torch.stack([frame.normalize(moved(x, rng)) for _ in several], dim=1))
    points, versions = torch.cat(parts), torch.cat(moved_parts) if moved_parts else None
    n_neighbors = min(options.n_neighbors, len(points) - 1)
    distance, neighbors = nearest_neighbors(points.numpy(), n_neighbors, verbose=options.verbose)
    radius = torch.from_numpy(options.radius * distance[:, -1]).float()
    if body is not None:
        frame = StateNetwork(center, scale, nn.Identity(), torch.eye(1))

    def fetch(indices: Tensor) -> Tensor:
        return points[indices] if body is None else frame.normalize(read(chosen[indices.numpy()]))

    n_products = options.batch_size * (points.shape[1] + options.n_hidden + options.n_states) * options.n_hidden
    n_threads = 1 if body is None and n_products < SMALL else None
    large = body is None and n_products * options.max_iter > LARGE
    half = large and bfloat16_is_faster()
    merges = options.n_clusters not in (1, options.n_states) or (hints.constrain and options.n_clusters != 1)
    for_clusters = replace(options, max_iter=merges * (options.max_iter // 2))
    for_states = replace(options, max_iter=options.max_iter - for_clusters.max_iter)

    @contextmanager
    def seeded() -> Iterator[None]:
        with torch.random.fork_rng(), threadpool_limits(n_threads):
            torch.manual_seed(int(rng.randint(2**31 - 1)))
            yield

    def merged(network: nn.Module) -> tuple[NDArray[np.float64], Merging, NDArray[np.float64]]:
        p_zx = _posteriors(network, fetch, len(chosen))
        if versions is None:
            joint = neighbor_joint(p_zx, neighbors, hints.weight)
        else:
            several = (
                _posteriors(network, partial(_version, versions, i), len(chosen)) for i in range(versions.shape[1])
            )
            joint = versions_joint(p_zx, several, hints.weight)
        of_classes = hints.masses(p_zx)
        kinds = state_kinds(of_classes)
        if versions is not None and len(joint) <= MANY_STATES:
            by_information = merge_versions(joint, kinds)
            if (options.n_clusters or 1) <= by_information.most_clusters:
                return joint, by_information, of_classes
        return joint, merge_states(joint, kinds), of_classes

    starts = []
    for _ in range(options.n_init):
        with seeded():
            network = state_network(body, fetch, points.shape[1], options)
            called = InBfloat16(network) if half else network
            trained = train_states(called, fetch, radius, for_states, versions)
        joint, merging, of_classes = merged(network)
        starts.append(_Start(network, called, joint, merging, of_classes, trained))
    if options.n_clusters is None:  # losses with different numbers of clusters cannot be compared
        starts = [min(starts, key=_objective)]
    n_clusters = options.n_clusters or starts[0].merging.standing_out(options.max_clusters)
    n_clusters = max(n_clusters, least_number(hints, None))
    if for_clusters.max_iter and n_clusters > 1:
        for start in starts:
            membership = start.membership(n_clusters)
            if versions is not None and options.objective is None:
                sizes = torch.from_numpy(start.joint.sum(axis=1)).float() @ membership
                for_clusters = replace(for_clusters, objective=default_objective(options, target_sizes(sizes)))
            with seeded():
                trained = train_states(MergedStates(start.called, membership), fetch, radius, for_clusters, versions)
            start.trained = start.trained.then(trained)

    best = min(starts, key=_objective)
    membership = best.membership(n_clusters)
    separation = np.zeros(1)
    if n_clusters > 1:
        p_zx = _posteriors(MergedStates(best.network, membership), fetch, len(chosen))
        separation = separation_of(p_zx, neighbors, hints.weight)
    return Clusters(
        StateNetwork(frame.center, frame.basis, best.network, membership),
        n_dimensions=points.shape[1],
        joint=best.joint,
        merging=best.merging,
        separation=separation,
        objective=best.trained.objective,
        loss_curve=best.trained.loss_curve,
        n_iter=best.trained.n_iter,
        n_iter_start=for_states.max_iter,
        n_hidden=options.n_hidden,
        selection=best.merging.selection(options.max_clusters) if options.n_clusters is None else {},
    )


def separation_of(
    p_zx: Array, neighbors: NDArray[np.int64], weight: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Jensen-Shannon divergence between each cluster and the rest, with p(z|x) averaged over the neighbours of x.

    Parameters
    ----------
    p_zx : ndarray of shape (n_points, n_clusters)
    neighbors : ndarray of shape (n_points, n_neighbors)
    weight : ndarray of shape (n_points,), optional
        Weight of each point.

    Returns
    -------
    ndarray of shape (n_clusters,), in nats; 0 for a single cluster.
    """
    if p_zx.shape[1] == 1:
        return np.zeros(1)
    near = mean_of_neighbors(p_zx, neighbors)
    of_points = None if weight is None else torch.from_numpy(weight).to(torch.from_numpy(near).dtype)
    divergence: NDArray[np.float64] = js_divergence(torch.from_numpy(near), sample_weight=of_points).double().numpy()
    return divergence


@dataclass
class _Start:
    """A network to small states, the module that calls it in training, and how its states were merged."""

    network: nn.Module
    called: nn.Module
    joint: NDArray[np.float64]
    merging: Merging
    of_classes: NDArray[np.float64]  # (n_states, n_classes): mass of each known class in each state
    trained: Trained

    def membership(self, n_clusters: int) -> Tensor:
        clusters = numbered(self.merging.clusters(n_clusters), n_clusters, self.of_classes)
        return torch.eye(n_clusters)[torch.from_numpy(clusters)]


def _version(versions: Tensor, i: int, indices: Tensor) -> Tensor:
    """Version `i` of some samples: (n_samples, n_versions, n_dimensions) -> (n, n_dimensions)."""
    return versions[indices, i]


def _objective(start: _Start) -> float:
    return start.trained.objective


def _posteriors(network: nn.Module, fetch: Fetch, n_samples: int) -> Array:
    """p(z|x) of all samples, a block at a time: (n_samples, n_states)."""
    network = working_copy(network, torch_device())
    place = device_of(network)
    with torch.no_grad():
        parts = (torch.arange(start, min(start + BLOCK, n_samples)) for start in range(0, n_samples, BLOCK))
        return torch.cat([posterior(network(fetch(part).to(place))).cpu() for part in parts]).numpy()
