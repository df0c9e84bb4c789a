"""Update clusters with new rows: old clusters keep their numbers, and new groups get new numbers.

A reservoir, a random sample of all rows so far, represents the old rows, whose p(z|x) is kept. New rows form a group
if they are not typical or lie closer together than chance explains, and a valley of low density separates them from the
old clusters. Then p(z|x) is fitted again to both.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from scipy.stats import betabinom, binom

from neuralbayes.clusters.calibration import temperature
from neuralbayes.clusters.merging import Merging, merge_states, neighbor_joint, separation
from neuralbayes.clusters.number import Kind, stability
from neuralbayes.clusters.posterior import Posterior, Quadratic, Trained
from neuralbayes.clusters.space import ROUNDING_ROWS, Space, metric_of_neighbors, rounding_variance
from neuralbayes.clusters.valleys import cut_at_valleys, is_between
from neuralbayes.clusters.votes import maximize
from neuralbayes.neighbors import nearest_neighbors

if TYPE_CHECKING:
    from neuralbayes.objectives import Objective

Array = NDArray[np.floating]
Labels = NDArray[np.int64]

MAX_RESERVOIR = 20_000  # rows in the reservoir; with 64 numbers each they take 5 MB
ATYPICAL = 0.05  # maximum typicality of an atypical row
LEVEL = 0.01  # of the test for more atypical rows than chance explains
N_NEIGHBORS = 30  # among which new rows are counted
RARE = 1e-5  # a row is strange if chance puts as many new rows among its neighbours with a probability below this
N_CLOSE = 5  # nearest rows, most of which must be strange as well
ALONE = 0.1  # old rows among the neighbours of an isolated row, as a share of the number expected by chance
LEAST_ROWS = 10  # minimum number of strange rows in a new cluster
TOUCHES = 0.1  # minimum share of the rows of a new cluster that an old cluster must claim for the two to be compared
N_NEAREST = 10  # nearest rows that decide whether another row joins a new cluster


def more_than_chance(p_values: Array, n_calibration: int) -> bool:
    """Whether more rows are atypical than chance explains.

    The share of ordinary rows beyond the k-th largest of m calibration scores has a beta distribution with parameters k
    and m + 1 - k for any data, so the number of atypical ones has a beta-binomial one.
    """
    k = int(ATYPICAL * (n_calibration + 1))
    n_atypical = int((p_values <= ATYPICAL).sum())
    if not k or n_atypical < LEAST_ROWS:
        return False
    return bool(betabinom.sf(n_atypical - 1, len(p_values), k, n_calibration + 1 - k) < LEVEL)


def strange_rows(
    old: Array, new: Array, p_values: Array, n_calibration: int
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Which new rows (n_new,) may belong to a new cluster: strange ones among strange ones, not outliers.

    A row is strange if its neighbours contain far more new rows than chance explains, or if it is atypical and there
    are more atypical rows than chance explains. Also returns the share (n_new,) of old rows among the neighbours,
    divided by the share expected by chance.
    """
    points = np.concatenate([new, old]).astype(np.float32)
    n_neighbors = min(N_NEIGHBORS, len(points) - 1)
    _, near = nearest_neighbors(points, n_neighbors, n_queries=len(new))
    share, n_new = (len(new) - 1) / (len(points) - 1), (near < len(new)).sum(axis=1)
    strange = np.zeros(len(points), bool)
    strange[: len(new)] = binom.sf(n_new - 1, n_neighbors, share) < RARE
    if more_than_chance(p_values, n_calibration):
        strange[: len(new)] |= p_values <= ATYPICAL
    together: NDArray[np.bool_] = strange[near[:, :N_CLOSE]].mean(axis=1) > 0.5
    return strange[: len(new)] & together, (1.0 - n_new / n_neighbors) / (1.0 - share)


def find_new_groups(
    old: Array, old_labels: Labels, new: Array, new_labels: Labels, p_values: Array, n_calibration: int, at_most: int
) -> Labels:
    """The new cluster of each new row, numbered from 0 by decreasing size and at most `at_most`, or -1: (n_new,)."""
    groups = np.full(len(new), -1)
    strange, old_share = strange_rows(old, new, p_values, n_calibration)
    candidates = np.flatnonzero(strange)
    if at_most < 1 or len(candidates) < LEAST_ROWS:
        return groups
    x = new[candidates].astype(np.float64)
    parts, _ = cut_at_valleys(x, at_most)
    kept: list[Labels] = []
    for part in range(int(parts.max()) + 1):
        members = candidates[parts == part]
        near = np.bincount(new_labels[members], minlength=int(old_labels.max()) + 1)
        claimants = np.flatnonzero(near >= TOUCHES * len(members))
        if len(members) >= LEAST_ROWS and all(_apart(new[members], old[old_labels == c]) for c in claimants):
            kept.append(members)
    if not kept:  # a wide cluster may have no valley around it, but it contains few old rows
        alone = candidates[old_share[candidates] <= ALONE]
        kept = [alone] if len(alone) >= LEAST_ROWS and len(alone) > len(candidates) / 2 else []
    for number, members in enumerate(sorted(kept, key=len, reverse=True)[:at_most]):
        groups[members] = number
    return _with_others(old, new, groups) if kept else groups


def _apart(group: Array, cluster: Array) -> bool:
    """Whether a valley lies between a new cluster and an old one."""
    side = np.repeat([True, False], [len(group), len(cluster)])
    return not len(cluster) or is_between(np.concatenate([group, cluster]).astype(np.float64), side)


def _with_others(old: Array, new: Array, groups: Labels) -> Labels:
    """Add each other new row to the new cluster that most of its nearest rows belong to, if there is one."""
    free, taken = np.flatnonzero(groups < 0), np.flatnonzero(groups >= 0)
    if not len(free):
        return groups
    known = np.concatenate([new[taken], old]).astype(np.float32)
    of_known = np.concatenate([groups[taken], np.full(len(old), -1)])
    _, near = nearest_neighbors(known, min(N_NEAREST, len(known)), queries=new[free].astype(np.float32))
    result = groups.copy()
    for group in range(int(groups.max()) + 1):
        result[free[(of_known[near] == group).mean(axis=1) > 0.5]] = group
    return result


def update_clusters(
    posterior: Posterior,
    membership: NDArray[np.float64],
    old: Array,
    new: Array,
    groups: Labels,
    *,
    max_iter: int | None,
    n_neighbors: int,
    objective: Objective | None,
    device: str,
    rng: np.random.RandomState,
    verbose: bool,
) -> tuple[Posterior, NDArray[np.float64], Merging, NDArray[np.float64], Trained]:
    """Fit p(z|x) to old rows (n_old, n_dimensions), and new rows in new groups (n_new,) or none (-1).

    Returns the posterior, membership, merging, separation and training as in :class:`~neuralbayes.clusters.rows.Fit`.
    """
    n_more = int(groups.max(initial=-1)) + 1
    n_states, n_clusters = membership.shape
    points = np.concatenate([old, new]).astype(np.float64)
    target = np.zeros((len(points), n_clusters + n_more))
    target[:, :n_clusters] = softmax(posterior.logits(points), axis=1) @ membership
    in_group = len(old) + np.flatnonzero(groups >= 0)
    target[in_group] = np.eye(n_clusters + n_more)[n_clusters + groups[groups >= 0]]
    kept = np.concatenate([np.arange(len(old)), in_group])  # rows whose p(z|x) is known
    grown = np.zeros((n_states + n_more, n_clusters + n_more))
    grown[:n_states, :n_clusters] = membership
    grown[n_states:, n_clusters:] = np.eye(n_more)
    distances, neighbors = nearest_neighbors(points, min(n_neighbors, len(points) - 1))
    trained, updated = Trained(), posterior
    if isinstance(posterior, Quadratic):
        floor = np.diag(rounding_variance(old[:ROUNDING_ROWS]))
        updated = maximize(points, target @ grown.T, floor)  # shares in the order of the states
    elif n_clusters + n_more > 1:
        import torch

        from neuralbayes.clusters import training
        from neuralbayes.networks.states import MergedStates

        network, n_hidden = _widened(posterior.network, len(grown))
        rows, nowhere = torch.from_numpy(kept), torch.empty(0, 2, dtype=torch.int64)
        with training.seeded(rng, training.BATCH_SIZE * (points.shape[1] + n_hidden + len(grown)) * n_hidden):
            trained = training.train_from_votes(
                MergedStates(network, torch.from_numpy(grown).float()),
                points,
                distances[:, -1],
                target,
                steps=max_iter,
                objective=objective,
                anchors=training.Anchors(rows, torch.from_numpy(target[kept]).float(), nowhere, nowhere),
                device=device,
                verbose=verbose,
            )
        updated = replace(posterior, network=network.eval().requires_grad_(False))
    if len(grown) == grown.shape[1]:  # one state per cluster: restore the calibration
        updated = updated.divided(temperature(updated.logits(points[kept]) @ grown, target[kept]))
    p_states = softmax(updated.logits(points), axis=1)
    merging = merge_states(neighbor_joint(p_states, neighbors), grown.argmax(axis=1))
    return updated, grown, merging, separation(p_states @ grown, neighbors), trained


def _widened(network: Any, n_states: int) -> tuple[Any, int]:
    """A copy of a network with so many states, the new ones improbable everywhere, and the width of its last layer."""
    import torch

    network = copy.deepcopy(network).requires_grad_(True)
    head = network[-1]
    n_old = head.out_features
    if n_states > n_old:
        network[-1] = torch.nn.Linear(head.in_features, n_states)
        with torch.no_grad():
            network[-1].weight.zero_()
            network[-1].bias.fill_(float(head.bias.min()))
            network[-1].weight[:n_old], network[-1].bias[:n_old] = head.weight, head.bias
    return network, head.in_features


def updated_stability(
    points: NDArray[np.float64], kind: Kind, labels: Labels, n_clusters: int, rng: np.random.RandomState
) -> tuple[float, NDArray[np.float64]]:
    """The stability, and that of each cluster, of points in the coordinates of p(z|x)."""
    floor, metric = np.diag(rounding_variance(points[:ROUNDING_ROWS])), np.eye(points.shape[1])
    if kind == "table":
        metric = metric_of_neighbors(points[rng.permutation(len(points))], floor)
    return stability(Space(points, floor, metric), kind, labels, n_clusters, rng)


def mixed_reservoir(
    n_old: int, n_seen: int, n_new: int, rng: np.random.RandomState, *, at_most: int = MAX_RESERVOIR
) -> tuple[Labels, Labels]:
    """Indices of a random sample of all rows so far: of `n_old`, which represent `n_seen`, and of new ones."""
    if n_old + n_new <= at_most:
        return np.arange(n_old), np.arange(n_new)
    drawn = int(np.clip(rng.binomial(at_most, n_new / (n_seen + n_new)), at_most - n_old, n_new))
    return rng.permutation(n_old)[: at_most - drawn], rng.permutation(n_new)[:drawn]
