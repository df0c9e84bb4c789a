"""Find clusters of images: train many small, informative and smooth states, then merge them.

1. Divide the data by one number, project them on their principal components, and find neighbours there.
2. Train a network with several states per cluster. The states maximise their information about x, while p(z|x) must not
   change under the worst small step, whose length is a fraction of the distance to the neighbours
   (:mod:`~neuralbayes.clusters.training`). The step starts from the image rotated, stretched, slanted and shifted a
   little. Such an image may be farther away than the neighbours, so the network could not learn from distances that the
   two are similar. With one state per cluster, the objective ends in poor local optima, where one state holds halves of
   two kinds and another kind has two states. Small states are pure, and larger kinds get more of them.
3. Merge states that hold versions of the same images, or, without versions, neighbours of each other
   (:mod:`~neuralbayes.clusters.merging`). With very many states, or more clusters than H(z) - V(z, z') supports, states
   of images are merged by the ratio, as those of neighbours are.
4. Continue training with the same objective over clusters: p(cluster|x) is the sum of p(z|x) over its states. From this
   start it finds a good optimum. If images were moved and the sizes of the merged clusters differ much, these sizes
   become the target of p(z): a uniform p(z) would split large clusters and join small ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.utils.extmath import randomized_svd
from torch import Tensor, nn

from neuralbayes.bayes import posterior
from neuralbayes.clusters.known import NO_HINTS, UNKNOWN, Hints, least_number, numbered_by_class
from neuralbayes.clusters.merging import Merging, cut, merge_states, neighbor_joint, separation, versions_joint
from neuralbayes.clusters.posterior import Network, Trained
from neuralbayes.clusters.rows import Fit
from neuralbayes.clusters.space import Frame
from neuralbayes.clusters.training import (
    BATCH_SIZE,
    RADIUS,
    Anchors,
    default_objective,
    seeded,
    smooth_step,
    state_network,
    train_steps,
)
from neuralbayes.neighbors import nearest_neighbors
from neuralbayes.networks.states import MergedStates, StateNetwork
from neuralbayes.objectives import Objective
from neuralbayes.system.devices import InBfloat16, bfloat16_is_faster, device_of, torch_device, working_copy
from neuralbayes.training.inference import in_blocks
from neuralbayes.training.progress import progress

Array = NDArray[Any]

Read = Callable[[NDArray[np.int64]], Tensor]  # images at some indices: (m, C, H, W)

N_DIMENSIONS = 64  # principal components; further directions carry noise, which the worst step would follow
LEAST_STATES, MOST_STATES = 4, 8  # states per cluster; with 4, one with a fiftieth of the images may get none
SAMPLES_PER_STATE = 100  # within the range of states per cluster
MANY_STATES = 500  # above, merging by information would take longer than some ten seconds
MARGIN = 0.02  # share of the largest H(z) - V(z, z') that fewer clusters may lack
HELD = 0.5  # known rows of a class, counted by p(z|x), from which a state belongs to that class
NEARLY_EQUAL = 1.5  # largest ratio of cluster sizes that count as equal
LARGE = 1e11  # multiplications in a fit above which it pays to spend seconds on measuring whether bfloat16 is faster
N_MOVED = 8  # moved versions of each image, fewer if images are many or large
MOVED_NUMBERS = 2**29  # pixels to move in all; every image gets at least one version
ANGLE = math.radians(8.0)
STRETCH = 0.08  # largest logarithm of the factor of both sides, and of their ratio
SLANT = 0.08
SHIFT = 0.05  # share of the width, and of the height
SPAN_NUMBERS = 2**25  # values to compute the principal components from: a quarter of a gigabyte
BLOCK = 2000  # images to read, or to pass through the network, at once


def fit_images(
    read: Read,
    n_samples: int,
    n_clusters: int | None,
    *,
    body: nn.Module | None = None,
    n_states: int | None = None,
    n_hidden: int = 512,
    max_iter: int | None = None,
    max_samples: int = 60_000,
    max_clusters: int = 20,
    n_neighbors: int = 15,
    objective: Objective | None = None,
    target_prior: Literal["auto", "uniform"] = "auto",
    hints: Hints = NO_HINTS,
    device: str = "auto",
    rng: np.random.RandomState,
    verbose: bool = False,
) -> Fit:
    """Train small states, merge them, and train the clusters; :class:`neuralbayes.InformationClusterer` says more.

    `body` is your network, which is copied and takes the normalised images; by default an MLP on the principal
    components. Images are moved only for this MLP. Half of the `max_iter` steps are for the states. Clusters of images
    are not tested for gaps between them, so the verdict is never "clusters".
    """
    chosen = hints.draw(n_samples, max_samples, rng)
    hints = hints.of(chosen)
    least = max(least_number(hints, n_clusters), n_clusters or 1)
    if n_states is None:
        k = n_clusters or max(10, least)
        n_states = int(np.clip(n_samples // SAMPLES_PER_STATE, LEAST_STATES * k, MOST_STATES * k))
    if n_states < least:
        raise ValueError(f"`n_states` must be at least {least}, the number of clusters, got {n_states}")
    data = _prepare(read, chosen, body, n_neighbors, hints, rng, verbose)
    merges = n_clusters not in (1, n_states) or (hints.constrain and n_clusters != 1)
    # By default a hundred epochs, but at least 2000 and at most 6000 steps.
    steps = int(np.clip(100 * n_samples // BATCH_SIZE, 2000, 6000)) if max_iter is None else max_iter
    later_steps = steps // 2 if merges else 0
    n_products = math.inf if body is not None else BATCH_SIZE * (data.points.shape[1] + n_hidden + n_states) * n_hidden
    tensors = (data.radius,) if data.versions is None else (data.radius, data.versions)
    run = partial(train_steps, fetch=data.fetch, tensors=tensors, hints=hints, device=device, verbose=verbose)

    with seeded(rng, n_products):
        network = state_network(body, data.fetch(torch.arange(2)), n_states, n_hidden)
        half = body is None and n_products * steps > LARGE and bfloat16_is_faster()
        called = InBfloat16(network) if half else network
        step = partial(smooth_step, objective=objective or default_objective())
        trained = run(called, step=step, steps=steps - later_steps, description="step of the states")
    p_zx = data.posteriors(network, device)
    if data.versions is None:
        joint = neighbor_joint(p_zx, data.neighbors, hints.weight)
    else:
        versions = (data.posteriors(network, device, version) for version in range(data.versions.shape[1]))
        joint = versions_joint(p_zx, versions, hints.weight)
    of_classes = hints.masses(p_zx)
    kinds = None
    if of_classes.size:
        kinds = np.where(of_classes.max(axis=1) >= HELD, of_classes.argmax(axis=1), UNKNOWN)
    merging, by_information = merge_for(joint, n_clusters, data.versions is not None, kinds)
    found, selection = (n_clusters, {}) if n_clusters else choose_number(merging, max_clusters, by_information)
    found = max(found, least)
    membership = torch.eye(found)[torch.from_numpy(numbered_by_class(cut(merging.linkage, found), found, of_classes))]
    last = Trained([], 0)
    if later_steps and found > 1:
        if objective is None and data.versions is not None and target_prior == "auto":
            objective = default_objective(target_sizes(torch.from_numpy(joint.sum(axis=1)).float() @ membership))
        with seeded(rng, n_products):
            step = partial(
                step, objective=objective or default_objective(), fetch=data.fetch, anchors=Anchors.of(hints, found)
            )
            merged = MergedStates(called, membership)
            last = run(merged, step=step, steps=later_steps, description="step of the clusters")
    p_zx = data.posteriors(MergedStates(network, membership), device) if found > 1 else np.ones((len(chosen), 1))
    return Fit(
        Frame.unbounded(data.frame.center.numpy(), data.frame.basis.numpy()),
        Network(network.eval().requires_grad_(False), device),
        membership.double().numpy(),
        merging,
        separation(p_zx, data.neighbors, hints.weight),
        None,
        None,
        "segments" if found > 1 else "none",
        selection,
        trained.then(last),
    )


@dataclass(frozen=True, eq=False)
class _Data:
    """Images for training: their principal components, and what the network takes."""

    points: Tensor  # (n_samples, n_dimensions)
    versions: Tensor | None  # (n_samples, n_versions, n_dimensions)
    neighbors: NDArray[np.int64]  # (n_samples, n_neighbors)
    radius: Tensor  # (n_samples,)
    frame: StateNetwork  # normalises
    fetch: Callable[[Tensor], Tensor]  # inputs of the network by their indices

    def posteriors(self, network: nn.Module, device: str, version: int | None = None) -> Array:
        """p(z|x) of all images or of one version of them: (n_samples, n_states)."""
        network = working_copy(network, torch_device(device))
        place = device_of(network)

        def of_rows(rows: NDArray[np.int64]) -> Tensor:
            indices = torch.from_numpy(rows)
            x = self.fetch(indices) if version is None or self.versions is None else self.versions[indices, version]
            return posterior(network(x.to(place)))

        return in_blocks(of_rows, len(self.points), block=BLOCK)


def _prepare(
    read: Read,
    chosen: NDArray[np.int64],
    body: nn.Module | None,
    n_neighbors: int,
    hints: Hints,
    rng: np.random.RandomState,
    verbose: bool,
) -> _Data:
    """Project the images and their moved versions, and find neighbours."""
    center, scale, components = _span(read, chosen, rng, hints.weight)
    frame = StateNetwork(center, scale[:, None] * components, nn.Identity(), torch.eye(1))
    parts, moved_parts = [], []
    for x in _blocks(read, chosen, verbose):
        parts.append(frame.normalize(x))
        if body is None:
            n_versions = int(np.clip(MOVED_NUMBERS // (len(chosen) * x[0].numel()), 1, N_MOVED))
            moved_parts.append(torch.stack([frame.normalize(affinely_moved(x, rng)) for _ in range(n_versions)], dim=1))
    points, versions = torch.cat(parts), torch.cat(moved_parts) if moved_parts else None
    distance, neighbors = nearest_neighbors(points.numpy(), min(n_neighbors, len(points) - 1), verbose=verbose)
    radius = torch.from_numpy(RADIUS * distance[:, -1]).float()
    if body is None:
        return _Data(points, versions, neighbors, radius, frame, points.__getitem__)
    plain = StateNetwork(center, scale, nn.Identity(), torch.eye(1))
    return _Data(points, versions, neighbors, radius, plain, lambda some: plain.normalize(read(chosen[some.numpy()])))


def _span(
    read: Read, chosen: NDArray[np.int64], rng: np.random.RandomState, weight: NDArray[np.float64] | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Center (n_features,), factors (n_features,) and components (n_features, n_dimensions) of images with weights."""
    n_features = read(chosen[:1])[0].numel()
    few = np.sort(rng.permutation(len(chosen))[: max(2, SPAN_NUMBERS // n_features)])
    rows = np.concatenate([x.flatten(1).double().numpy() for x in _blocks(read, chosen[few], verbose=False)])
    share = None if weight is None else weight[few] / weight[few].sum()
    center = rows.mean(axis=0) if share is None else share @ rows
    rows -= center
    variance = np.square(rows).mean(axis=0) if share is None else share @ np.square(rows)
    if not variance.any():
        raise ValueError("X must contain at least 2 distinct samples, got 1 repeated; check how X was read or made")
    scale = np.full(n_features, 1.0 / np.sqrt(variance.mean()))
    rows *= scale
    n_dimensions = min(N_DIMENSIONS, n_features, len(rows) - 1)
    if share is None:
        components = PCA(n_dimensions, random_state=rng).fit(rows).components_
    else:  # the weighted mean is 0; PCA would subtract the unweighted mean
        components = randomized_svd(rows * np.sqrt(share)[:, None], n_dimensions, random_state=rng)[2]
    return torch.from_numpy(center), torch.from_numpy(scale), torch.from_numpy(components.T.copy())


def _blocks(read: Read, indices: NDArray[np.int64], verbose: bool) -> Iterator[Tensor]:
    """The images, one block at a time."""
    starts = range(0, len(indices), BLOCK)
    with progress(len(starts), description="parts read", enabled=verbose) as display:
        for start in starts:
            x = read(indices[start : start + BLOCK])
            yield x
            display.advance(samples=len(x))


def merge_for(
    joint: NDArray[np.float64], n_clusters: int | None, moved: bool, kinds: NDArray[np.int64] | None = None
) -> tuple[Merging, bool]:
    """Merge states by H - V if they are moved and it supports `n_clusters`, else by the ratio; returns which it was.

    With more clusters than at the largest H - V, further ones would hold a few odd images each.
    """
    if moved and len(joint) <= MANY_STATES:
        merging = merge_states(joint, kinds, by_information=True)
        if (n_clusters or 1) <= int(np.argmax(merging.information)) + 1:
            return merging, True
    return merge_states(joint, kinds), False


def choose_number(merging: Merging, max_clusters: int, by_information: bool) -> tuple[int, dict[str, list[float]]]:
    """Number of clusters from 2 to `max_clusters`, or 1 for a single state, and what was compared.

    By information, the smallest number with nearly the largest H - V, which increases up to the number of clusters that
    images rarely leave when they are moved; it then hardly changes for a while, so the position of its maximum is
    partly chance. Else the number at the largest drop in neighbour affinity: the ratio of the merge to K clusters over
    that of the merge to K - 1.
    """
    if by_information:
        tried = merging.information[1:max_clusters]
        nearly_best = tried >= tried.max(initial=-np.inf) - MARGIN * abs(tried.max(initial=-np.inf))
        selection = {"information": tried.tolist()}
    else:
        ratios = merging.ratios[::-1]
        bounded = np.maximum(ratios, np.finfo(float).eps)
        tried = (bounded[1:] / bounded[:-1])[: max_clusters - 1]
        nearly_best = tried == tried.max(initial=0.0)
        selection = {"ratio": ratios[: len(tried)].tolist(), "jump": tried.tolist()}
    chosen = int(np.argmax(nearly_best)) + 2 if len(tried) else 1
    return chosen, {"n_clusters": [*range(2, len(tried) + 2)], **selection}


def target_sizes(sizes: Tensor) -> Tensor | None:
    """Sizes of merged states (n_clusters,) as a target for p(z), or None if they are nearly equal.

    If sizes are nearly equal, a uniform p(z) is the better target, since it corrects images that merging left in a
    wrong cluster. If they are not, it splits large clusters and joins small ones.
    """
    return None if sizes.max() <= NEARLY_EQUAL * sizes.min() else sizes


def affinely_moved(images: Tensor, rng: np.random.RandomState) -> Tensor:
    """Apply a different small affine map to each image (n, C, H, W); outside, the nearest border pixel is repeated."""
    maps = torch.from_numpy(affine_maps(len(images), rng)).to(images.dtype)
    grid = nn.functional.affine_grid(maps, list(images.shape), align_corners=False)
    return nn.functional.grid_sample(images, grid, padding_mode="border", align_corners=False)


def affine_maps(n: int, rng: np.random.RandomState) -> NDArray[np.float64]:
    """Maps from positions in the moved image to positions in the image, from -1 to 1: (n, 2, 3)."""
    angle, size, aspect, slant, *shift = rng.uniform(-1.0, 1.0, (6, n))
    turn = np.array([[np.cos(ANGLE * angle), -np.sin(ANGLE * angle)], [np.sin(ANGLE * angle), np.cos(ANGLE * angle)]])
    width, height = np.exp(STRETCH * (size + aspect / 2)), np.exp(STRETCH * (size - aspect / 2))
    stretch = np.array([[width, SLANT * slant], [np.zeros(n), height]])
    linear = np.einsum("ijn,jkn->nik", turn, stretch)
    return np.concatenate([linear, 2.0 * SHIFT * np.stack(shift, axis=1)[:, :, None]], axis=2)
