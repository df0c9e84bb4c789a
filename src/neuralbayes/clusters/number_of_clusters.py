"""How many clusters rows have: as many as the hierarchy joins across a valley."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage
from scipy.stats import binom
from torch import Tensor

from neuralbayes.clusters.kmeans import cells, ward
from neuralbayes.clusters.space import Space

Array = NDArray[np.floating]

MANY_ROWS = 2000
"""Up to so many rows the hierarchy starts from single rows, beyond from cells."""

LEVEL = 0.02
"""Probability that a join of all rows without a valley is taken for one with a valley; of some rows, their share."""

DEPTH = 0.5
"""A valley has at most this share of the density of the lower of its two hills."""

HALF_WIDTH = 0.1
"""Of the band between two means in which rows are counted, in units of their distance."""

LEAST_ROWS = 8
"""Rows of a cluster that may stand apart."""

RIDGE = 30.0
"""Weight of the identity in the covariance within two clusters, in units of columns over rows."""


@dataclass(frozen=True)
class Join:
    """A join of the hierarchy, and what lies between the two clusters that it joins."""

    n_rows: int
    p_value: float  # of a valley at least as empty as this one, if there were none
    deep: bool


def choose_number(space: Space, max_clusters: int) -> tuple[int, dict[str, list[float]]]:
    """The number of clusters, and which joins of the hierarchy it undoes.

    Rows in units of the noise are joined by Ward's criterion. Two clusters stay apart where few rows lie between them:
    along the direction that tells them apart best, a band half way between their means is emptier than bands around
    either mean. If it were not, a row would fall into either with a known probability, which gives a p-value; the level
    is shared out by size (Meinshausen 2008). Clusters that hold several stay apart too. Values are scattered over what
    they were rounded from, because gaps between codes are no valleys.

    Returns
    -------
    int
        From 1 to `max_clusters`. The same for every seed.
    dict
        "rows" in and "p_value" of each join that is undone, the largest first.
    """
    generator = torch.Generator().manual_seed(0)  # the same for all seeds: the answer is a matter of the rows alone
    scatter = torch.randn(space.points.shape, generator=generator) @ _root(space.floor)
    x = ((space.points + scatter) @ space.noise).double().numpy()
    cell = np.arange(len(x))
    if len(x) <= MANY_ROWS:
        tree = linkage(x, "ward")
    else:
        cell, centers, sizes = cells(x, min(4 * max_clusters, len(x) // 10), np.random.RandomState(0))
        tree = ward(centers, sizes)
    number, undone = count_valleys(x, cell, tree)
    undone = sorted(undone, key=lambda join: -join.n_rows)
    selection = {"rows": [float(join.n_rows) for join in undone], "p_value": [join.p_value for join in undone]}
    return min(number, max_clusters), selection


def count_valleys(x: Array, cell: NDArray[np.int64], tree: NDArray[np.float64]) -> tuple[int, list[Join]]:
    """How many clusters a hierarchy of cells keeps apart, and which joins that undoes.

    Parameters
    ----------
    x : ndarray of shape (n_rows, n_dimensions)
    cell : ndarray of shape (n_rows,)
        The cell of each row.
    tree : ndarray of shape (n_cells - 1, 4)
        A linkage of the cells.
    """
    m = len(tree) + 1
    order = np.argsort(cell, kind="stable")
    rows: list[NDArray[np.int64]] = np.split(order, np.searchsorted(cell[order], np.arange(1, m)))
    count = np.ones(2 * m - 1, np.int64)
    undone = []
    for node, (a, b) in enumerate(tree[:, :2].astype(np.int64), start=m):
        join = _join(x[rows[a]], x[rows[b]])
        apart = join.deep and join.p_value < LEVEL * join.n_rows / len(x)
        count[node] = count[a] + count[b] if apart or count[a] > 1 or count[b] > 1 else 1
        undone += [join] if apart else []
        rows.append(np.concatenate([rows[a], rows[b]]))
        rows[a] = rows[b] = np.empty(0, np.int64)
    return int(count[-1]), undone


def _join(a: Array, b: Array) -> Join:
    """What lies between two sets of rows, seen along Fisher's direction, where their means are at 0 and 1."""
    n, d = len(a) + len(b), a.shape[1]
    nothing = Join(n, 1.0, deep=False)
    if min(len(a), len(b)) < LEAST_ROWS:
        return nothing
    center_a, center_b = a.mean(axis=0), b.mean(axis=0)
    residual = np.concatenate([a - center_a, b - center_b])
    within = residual.T @ residual / n
    ridge = RIDGE / n * np.trace(within) + 1e-12
    direction = np.linalg.solve(within + ridge * np.eye(d), center_b - center_a)
    length = float(direction @ (center_b - center_a))
    if not length > 0.0:
        return nothing
    along_a, along_b = ((side - center_a) @ direction / length for side in (a, b))
    spread_a, spread_b = along_a.std() + 1e-9, along_b.std() + 1e-9
    middle = spread_a / (spread_a + spread_b)
    along = np.concatenate([along_a, along_b])

    def near(center: float, half_width: float) -> int:
        return int((np.abs(along - center) < half_width).sum())

    between = near(middle, HALF_WIDTH)
    p_value, deep = 0.0, True
    for center, spread in ((0.0, spread_a), (1.0, spread_b)):
        width = max(spread, HALF_WIDTH)
        hill = near(center, width)
        p_value = max(p_value, float(binom.cdf(between, between + hill, HALF_WIDTH / (HALF_WIDTH + width))))
        deep = deep and between * width < DEPTH * hill * HALF_WIDTH
    return Join(n, p_value, deep)


def _root(covariance: Tensor) -> Tensor:
    """The symmetric square root."""
    values, vectors = torch.linalg.eigh(covariance)
    root: Tensor = vectors * values.clamp_min(0.0).sqrt() @ vectors.T
    return root
