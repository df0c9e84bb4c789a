"""Groups of new rows that no old cluster holds: not typical of it, and with a valley of density between them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import betabinom, binom

from neuralbayes.clusters.number_of_clusters import cut_at_valleys, is_between
from neuralbayes.neighbors import nearest_neighbors

Array = NDArray[np.floating]
Labels = NDArray[np.int64]

ATYPICAL = 0.05
"""Rows of at most this typicality may be of a new group."""

LEVEL = 0.01
"""Probability of looking for new groups where all rows are ordinary."""

N_NEIGHBORS = 30
"""Neighbours among which new rows are counted."""

RARE = 1e-5
"""Probability of so many new rows among them by chance, below which a row may be of a new group."""

N_CLOSE = 5
"""Nearest rows most of which must be strange, too."""

ALONE = 0.1
"""Share of the old rows that chance would put among the neighbours of a row, up to which it is without old rows."""

LEAST_ROWS = 10
"""Such rows in a new group."""

TOUCHES = 0.1
"""Share of a group's rows that an old cluster must claim to be compared with it."""

N_NEAREST = 10
"""Rows that decide whether another row belongs to a new group, too."""


def more_than_chance(p_values: Array, n_calibration: int) -> bool:
    """Whether more rows are atypical than ordinary rows would be.

    Of n ordinary rows, the number with a typicality of at most a has a beta-binomial distribution, whatever the data:
    the share of ordinary rows beyond the k-th largest of m scores has a beta distribution with k and m + 1 - k.
    """
    k = int(ATYPICAL * (n_calibration + 1))
    n_atypical = int((p_values <= ATYPICAL).sum())
    if not k or n_atypical < LEAST_ROWS:
        return False
    return bool(betabinom.sf(n_atypical - 1, len(p_values), k, n_calibration + 1 - k) < LEVEL)


def strange_rows(
    old: Array, new: Array, p_values: Array, n_calibration: int
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Which new rows may be of a new group, and how many of their neighbours are old, as a share of chance: (n_new,).

    They are not typical, where more rows are not than chance would have it, or have far more new rows among their
    neighbours than there are among all rows; and most of their nearest rows are strange, too, as those of a mere
    outlier are not.
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
    """The new group of each new row, from 0 on, the largest first, or -1.

    Parameters
    ----------
    old, new : ndarray of shape (n_old, n_dimensions), (n_new, n_dimensions)
        Coordinates in which the network sees rows.
    old_labels, new_labels : ndarray of shape (n_old,), (n_new,)
        Their clusters as they are.
    p_values : ndarray of shape (n_new,)
        Typicality of the new rows.
    n_calibration : int
        Rows that it was calibrated with.
    at_most : int
        Largest number of new groups.

    Returns
    -------
    ndarray of shape (n_new,)
    """
    groups = np.full(len(new), -1)
    strange, old_share = strange_rows(old, new, p_values, n_calibration)
    candidates = np.flatnonzero(strange)
    if at_most < 1 or len(candidates) < LEAST_ROWS:
        return groups
    x = new[candidates].astype(np.float64)
    kept: list[Labels] = []
    for rows in _divided(x, at_most):
        members = candidates[rows]
        near = np.bincount(new_labels[members], minlength=int(old_labels.max()) + 1)
        claimants = np.flatnonzero(near >= TOUCHES * len(members))
        if len(members) >= LEAST_ROWS and all(_apart(x[rows], old[old_labels == c]) for c in claimants):
            kept.append(members)
    if not kept:  # a wide group has no valley beside it, but hardly an old row within
        alone = candidates[old_share[candidates] <= ALONE]
        kept = [alone] if len(alone) >= LEAST_ROWS and len(alone) > len(candidates) / 2 else []
    for number, members in enumerate(sorted(kept, key=len, reverse=True)[:at_most]):
        groups[members] = number
    return _with_others(old, new, groups) if kept else groups


def _divided(x: Array, at_most: int) -> list[Labels]:
    """Indices of the rows of each part between which there are valleys."""
    labels, _ = cut_at_valleys(x.astype(np.float64), at_most)
    return [np.flatnonzero(labels == part) for part in range(int(labels.max()) + 1)]


def _apart(group: Array, cluster: Array) -> bool:
    """Whether a valley lies between a group and a cluster."""
    if not len(cluster):
        return True
    side = np.repeat([True, False], [len(group), len(cluster)])
    return is_between(np.concatenate([group, cluster]).astype(np.float64), side)


def _with_others(old: Array, new: Array, groups: Labels) -> Labels:
    """New groups with the new rows most of whose nearest rows, among old rows and the groups, are of one group."""
    free, taken = np.flatnonzero(groups < 0), np.flatnonzero(groups >= 0)
    known = np.concatenate([new[taken], old]).astype(np.float32)
    of_known = np.concatenate([groups[taken], np.full(len(old), -1)])
    if not len(free):
        return groups
    _, near = nearest_neighbors(known, min(N_NEAREST, len(known)), queries=new[free].astype(np.float32))
    result = groups.copy()
    for group in range(int(groups.max()) + 1):
        result[free[(of_known[near] == group).mean(axis=1) > 0.5]] = group
    return result
