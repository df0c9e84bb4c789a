"""Hints about rows: weights, known classes of some, and pairs that belong together or apart."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import _check_sample_weight

Labels = NDArray[np.int64]
Array = NDArray[np.floating]

MISSING = ("None", "nan", "NaN", "<NA>", "")  # texts of the cells that say nothing; <NA> is that of pandas
UNKNOWN = -1  # class of rows whose class is unknown
POOL = 4  # how many times a row of mean weight is in the pool that training draws from
ROUNDS = 10  # maximum number of passes that move rows which share a cluster but must not
COORDINATES, PENALTY = 0.5, 3.0  # of the classifier of known rows: weight of the coordinates, and the parameter C
FEW_ROWS = 2.0  # number of known rows per class at which votes and classifier have equal weight


def _none() -> Labels:
    return np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Hints:
    """Weights, classes and links of rows; the arrays of classes and links are empty without any."""

    weight: NDArray[np.float64] | None = None  # (n_rows,), with mean 1
    known: Labels = field(default_factory=_none)  # (n_rows,): the class, which is the number of its cluster, or -1
    group: Labels = field(default_factory=_none)  # (n_rows,): rows with the same number must share a cluster
    cannot: Labels = field(default_factory=_none)  # (n_pairs, 2): rows that must not share a cluster

    @property
    def constrain(self) -> bool:
        """Whether there are hints other than weights."""
        return len(self.known) > 0

    @cached_property
    def classes(self) -> Labels:
        """Classes with at least one known row, ascending."""
        return np.unique(self.known[self.known != UNKNOWN])

    @cached_property
    def rows(self) -> Labels:
        """Indices of the rows with a class or a link, ascending."""
        hinted = self.known != UNKNOWN
        hinted |= np.bincount(self.group)[self.group] > 1
        hinted[self.cannot] = True
        return np.flatnonzero(hinted)

    def of(self, rows: Labels) -> Hints:
        """Hints about some rows, in their order; drops equal weights and pairs with other rows."""
        if self.weight is not None:
            others, weight = replace(self, weight=None).of(rows), self.weight[rows]
            return others if (weight == weight[0]).all() else replace(others, weight=weight / weight.mean())
        if not self.constrain:
            return Hints()
        place = np.full(len(self.known), -1)
        place[rows] = np.arange(len(rows))
        cannot = place[self.cannot]
        group = np.unique(self.group[rows], return_inverse=True)[1]
        return Hints(None, self.known[rows], group, cannot[(cannot >= 0).all(axis=1)])

    def draw(self, n_rows: int, at_most: int, rng: np.random.RandomState) -> Labels:
        """Draw at most `at_most` rows at random, rows with a class or a link first; returns them in ascending order."""
        order = rng.permutation(n_rows)
        if n_rows > at_most and len(self.rows):
            order = order[np.argsort(~np.isin(order, self.rows), kind="stable")]
        return np.sort(order[:at_most])

    def pool(self) -> Labels | None:
        """Row indices, each repeated by its weight in quarters of the mean weight; None if every row counts once."""
        if self.weight is None:
            return None
        edges = np.floor(np.cumsum(self.weight) * POOL + 0.5).astype(np.int64)
        return np.repeat(np.arange(len(self.weight)), np.diff(edges, prepend=0))

    def masses(self, p_zx: Array) -> NDArray[np.float64]:
        """Number of known rows of each class in each state: (n_rows, n_states) -> (n_states, n_classes)."""
        rows = np.flatnonzero(self.known != UNKNOWN)
        one_hot = np.eye(least_number(self, None))[self.known[rows]] if len(rows) else np.zeros((0, 0))
        return np.asarray(p_zx[rows].T @ one_hot, dtype=np.float64)

    def assign(self, cost: Array) -> Labels:
        """Assign each row to the cheapest cluster that the hints allow: (n_rows, n_clusters) -> (n_rows,).

        Rows that must share a cluster go to the one with the lowest sum of their costs. If two rows that must not share
        a cluster do, the row that loses less moves to its next best cluster.
        """
        labels: Labels = cost.argmin(axis=1)
        rows = self.rows
        if not len(rows):
            return labels
        names, group = np.unique(self.group[rows], return_inverse=True)
        total = np.zeros((len(names), cost.shape[1]))
        np.add.at(total, group, cost[rows])
        known = np.full(len(names), UNKNOWN)
        np.maximum.at(known, group, self.known[rows])
        total[known != UNKNOWN] += np.inf
        total[known != UNKNOWN, known[known != UNKNOWN]] = 0.0
        place = np.searchsorted(names, self.group[self.cannot])
        labels[rows] = _apart(total, place)[group]
        return labels


NO_HINTS = Hints()


def numbered_by_class(clusters: Labels, n_clusters: int, of_classes: Array) -> Labels:
    """Give the cluster of states (n_states,) with most rows of a class, by :meth:`Hints.masses`, the class's number."""
    if not of_classes.size:
        return clusters
    held = np.zeros((n_clusters, n_clusters))  # cluster, class
    np.add.at(held[:, : of_classes.shape[1]], clusters, of_classes)
    old, new = linear_sum_assignment(held, maximize=True)
    return np.asarray(new[np.argsort(old)][clusters], dtype=np.int64)


def _apart(cost: Array, pairs: Labels) -> Labels:
    """The cheapest cluster of each item, with the items of a pair in different clusters as far as possible."""
    labels: Labels = cost.argmin(axis=1)
    others: dict[int, list[int]] = {}
    for a, b in pairs.tolist():
        others.setdefault(a, []).append(b)
        others.setdefault(b, []).append(a)
    for _ in range(ROUNDS):
        broken = pairs[labels[pairs[:, 0]] == labels[pairs[:, 1]]]
        if not len(broken):
            break
        for a, b in broken.tolist():
            if labels[a] != labels[b]:
                continue
            moves = []
            for item in (a, b):
                open_to = cost[item].copy()
                open_to[labels[others[item]]] = np.inf
                moves.append((open_to.min() - cost[item, labels[item]], item, int(open_to.argmin())))
            loss, item, cluster = min(moves)
            if np.isfinite(loss):
                labels[item] = cluster
    return labels


def make_hints(
    n_rows: int,
    sample_weight: ArrayLike | None = None,
    known: ArrayLike | None = None,
    must_link: ArrayLike | None = None,
    cannot_link: ArrayLike | None = None,
) -> tuple[Hints, list[str]]:
    """Check the hints, and extend the class of a known row to all rows that must share its cluster.

    Rows of weight 0 are kept; the caller drops them with `of`. Also returns the names of the classes, if they have any.

    Examples
    --------
    >>> hints, _ = make_hints(4, known=[2, -1, -1, -1], must_link=[[0, 1]], cannot_link=[[1, 3]])
    >>> hints.known, hints.rows
    (array([ 2,  2, -1, -1]), array([0, 1, 3]))
    >>> make_hints(4, known=["dog", None, "cat", ""])[1]
    ['cat', 'dog']
    """
    weight, names = None, list[str]()
    if sample_weight is not None:
        weight = _check_sample_weight(sample_weight, np.empty((n_rows, 1)), dtype=float, ensure_non_negative=True)
    classes = np.full(n_rows, UNKNOWN)
    if known is not None:
        classes, names = _class_numbers(known, n_rows)
    must, cannot = _checked_pairs("must_link", must_link, n_rows), _checked_pairs("cannot_link", cannot_link, n_rows)
    if not (len(must) or len(cannot) or (classes != UNKNOWN).any()):
        return Hints(weight), names
    edges = coo_matrix((np.ones(len(must)), must.T), shape=(n_rows, n_rows))
    group = connected_components(edges, directed=False)[1].astype(np.int64)
    for pair in cannot[group[cannot[:, 0]] == group[cannot[:, 1]]][:1].tolist():
        raise ValueError(f"`cannot_link` must not contain rows that `must_link` connects, got {pair}; remove a link")
    rows = np.flatnonzero(classes != UNKNOWN)
    of_group = np.full(group.max() + 1, UNKNOWN)
    of_group[group[rows]] = classes[rows]
    for row in rows[of_group[group[rows]] != classes[rows]][:1].tolist():
        other = rows[(group[rows] == group[row]) & (classes[rows] != classes[row])][0]
        raise ValueError(
            f"`must_link` must only connect rows of the same class, got the rows {row} and {other} with the classes "
            f"{classes[row]} and {classes[other]} in `known`; remove a link or correct `known`"
        )
    classes = of_group[group]
    same = (classes[cannot[:, 0]] != UNKNOWN) & (classes[cannot[:, 0]] == classes[cannot[:, 1]])
    for pair in cannot[same][:1].tolist():
        raise ValueError(
            f"`cannot_link` must not contain two rows of the same class, got the pair {pair}, both of class "
            f"{classes[pair[0]]} according to `known`; remove the pair or correct `known`"
        )
    return Hints(weight, classes, group, cannot), names


def _class_numbers(known: ArrayLike, n_rows: int) -> tuple[Labels, list[str]]:
    """Number the known classes in the order of their names; whole numbers are kept as they are, without names."""
    cells = np.asarray(known if hasattr(known, "dtype") else np.array(known, dtype=object))
    array, names = np.asarray(known), list[str]()
    if cells.shape == (n_rows,) and array.dtype.kind not in "iu":
        missing = np.array([str(cell) in MISSING for cell in cells.tolist()])
        named, array = cells[~missing].tolist(), np.full(n_rows, UNKNOWN)
        if all(isinstance(cell, Real) and not isinstance(cell, bool) and float(cell).is_integer() for cell in named):
            array[~missing] = [int(cell) for cell in named]
        else:
            found, array[~missing] = np.unique([str(cell) for cell in named], return_inverse=True)
            names = found.tolist()
    if array.shape != (n_rows,) or array.min(initial=0) < UNKNOWN:
        raise ValueError(
            f"`known` must be names or numbers from 0, of shape ({n_rows},), with None or -1 for unknown classes, got "
            f"shape {array.shape} and least {array.min(initial=0)}"
        )
    return array.astype(np.int64), names


def _checked_pairs(name: str, pairs: ArrayLike | None, n_rows: int) -> Labels:
    array = np.asarray([] if pairs is None else pairs)
    if not array.size:
        return np.empty((0, 2), np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ValueError(f"`{name}` must be integers of shape (n_pairs, 2), got {array.dtype} of shape {array.shape}")
    if array.min() < 0 or array.max() >= n_rows:
        raise ValueError(f"`{name}` must be row numbers from 0 to {n_rows - 1}, got {array.min()} to {array.max()}")
    for pair in array[array[:, 0] == array[:, 1]][:1].tolist() if name == "cannot_link" else ():
        raise ValueError(f"`{name}` must contain two different rows in each pair, got {pair}; remove this pair")
    return array.astype(np.int64)


def least_number(hints: Hints, n_clusters: int | None) -> int:
    """Smallest number of clusters that fits the known classes; raises an error if `n_clusters` is smaller."""
    least = int(hints.classes.max()) + 1 if len(hints.classes) else 1
    if n_clusters is not None and n_clusters < least:
        raise ValueError(
            f"`known` must contain classes from 0 to n_clusters - 1 = {n_clusters - 1}, got {least - 1}; raise "
            f"n_clusters to at least {least}, or correct `known`"
        )
    return least


def votes_with_known(
    shares: NDArray[np.float64], partitions: Sequence[Labels], points: Array, neighbors: Labels, hints: Hints
) -> NDArray[np.float64]:
    """Mix the votes (n_rows, n_clusters) with the predictions of a classifier, if every cluster has known rows.

    It learns from points (n_rows, n_dimensions) and `partitions`, which did not use the hints: with them, they would be
    right about known rows, but not about others.
    """
    n_clusters = shares.shape[1]
    if n_clusters < 2 or len(hints.classes) < n_clusters:
        return shares
    memberships = [np.eye(n_clusters)[labels] for labels in partitions]
    features = np.hstack([COORDINATES * points / points.std(), *memberships])
    rows = np.flatnonzero(hints.known != UNKNOWN)
    weight = None if hints.weight is None else hints.weight[rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        classifier = LogisticRegression(C=PENALTY, max_iter=500).fit(features[rows], hints.known[rows], weight)
    p_classes = classifier.predict_proba(features)
    smoothed = (p_classes + np.mean([p_classes[column] for column in neighbors.T], axis=0)) / 2.0
    trust = len(rows) / (len(rows) + FEW_ROWS * n_clusters)
    votes: NDArray[np.float64] = (1.0 - trust) * shares + trust * smoothed
    votes[hints.rows] = shares[hints.rows]
    return votes
