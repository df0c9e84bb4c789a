"""Find new clusters among new rows: rows that are not typical, behind a valley of density."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import betabinom, binom

from neuralbayes.clusters.number_of_clusters import cut_at_valleys, is_between
from neuralbayes.neighbors import nearest_neighbors

Array = NDArray[np.floating]
Labels = NDArray[np.int64]

ATYPICAL = 0.05
"""Maximum typicality of an atypical row."""

LEVEL = 0.01
"""Significance level of the test for more atypical rows than chance explains."""

N_NEIGHBORS = 30
"""Number of neighbours of a row among which new rows are counted."""

RARE = 1e-5
"""A row is strange if chance puts as many new rows among its neighbours with a probability below this."""

N_CLOSE = 5
"""Number of nearest rows. Most of them must be strange as well."""

ALONE = 0.1
"""Maximum number of old rows among the neighbours of an isolated row, as a share of the number expected by chance."""

LEAST_ROWS = 10
"""Minimum number of strange rows in a new cluster."""

TOUCHES = 0.1
"""Minimum share of the rows of a new cluster that an old cluster must claim for the two to be compared."""

N_NEAREST = 10
"""Number of nearest rows that decide whether another row joins a new cluster."""


def more_than_chance(p_values: Array, n_calibration: int) -> bool:
    """Whether more rows are atypical than chance explains.

    The number of rows with a typicality of at most a, among n ordinary rows, has a beta-binomial distribution for any
    data. The reason is that the share of ordinary rows beyond the k-th largest of m calibration scores has a beta
    distribution with parameters k and m + 1 - k.
    """
    k = int(ATYPICAL * (n_calibration + 1))
    n_atypical = int((p_values <= ATYPICAL).sum())
    if not k or n_atypical < LEAST_ROWS:
        return False
    return bool(betabinom.sf(n_atypical - 1, len(p_values), k, n_calibration + 1 - k) < LEVEL)


def strange_rows(
    old: Array, new: Array, p_values: Array, n_calibration: int
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Find the new rows that may belong to a new cluster.

    A row is strange if its neighbours contain far more new rows than chance explains. It is also strange if it is
    atypical, provided that there are more atypical rows than chance explains. Outliers are left out: most of the
    nearest rows must be strange as well.

    Returns
    -------
    candidates : ndarray of bool of shape (n_new,)
    old_share : ndarray of shape (n_new,)
        Share of old rows among the neighbours, divided by the share expected by chance.
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
    """The new cluster of each new row, numbered from 0 by decreasing size, or -1.

    Parameters
    ----------
    old, new : ndarray of shape (n_old, n_dimensions), (n_new, n_dimensions)
        Rows in the coordinates of the network.
    old_labels, new_labels : ndarray of shape (n_old,), (n_new,)
        Their current clusters.
    p_values : ndarray of shape (n_new,)
        Typicality of the new rows.
    n_calibration : int
        Number of rows that calibrated the typicality.
    at_most : int
        Maximum number of new clusters.

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
    if not kept:  # a wide cluster may have no valley around it, but it contains few old rows
        alone = candidates[old_share[candidates] <= ALONE]
        kept = [alone] if len(alone) >= LEAST_ROWS and len(alone) > len(candidates) / 2 else []
    for number, members in enumerate(sorted(kept, key=len, reverse=True)[:at_most]):
        groups[members] = number
    return _with_others(old, new, groups) if kept else groups


def _divided(x: Array, at_most: int) -> list[Labels]:
    """Cut the rows at valleys, and return the indices of the rows in each part."""
    labels, _ = cut_at_valleys(x.astype(np.float64), at_most)
    return [np.flatnonzero(labels == part) for part in range(int(labels.max()) + 1)]


def _apart(group: Array, cluster: Array) -> bool:
    """Whether a valley lies between a new cluster and an old one."""
    if not len(cluster):
        return True
    side = np.repeat([True, False], [len(group), len(cluster)])
    return is_between(np.concatenate([group, cluster]).astype(np.float64), side)


def _with_others(old: Array, new: Array, groups: Labels) -> Labels:
    """Add each other new row to the new cluster that most of its nearest rows belong to, if there is one."""
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
