"""The certificate: rule out other causes of separation before states count as disjoint.

The separation of a state (:mod:`neuralbayes.manifolds.separation`) stays at log 2 if no walk between neighbours leaves
it. Four causes other than disjoint manifolds can keep it there, and each has a remedy:

1. *Outliers.* A row far from all others has no neighbours to walk to. Components of the graph that are smaller than a
   neighbourhood are joined to the nearest larger one (:func:`neuralbayes.manifolds.separation.settled`).
2. *Columns whose values have gaps by nature*, such as booleans, codes and ids. The states must stay separated without
   them, and with rounded columns spread over their rounding step (:func:`without_columns`).
3. *Too few rows or neighbours.* The separation must exceed the best separation of connected rows, drawn from a Gaussian
   with the same number of rows and covariance (:func:`neuralbayes.manifolds.separation.null_separation`).
4. *Chance.* The states must be as far apart on rows that the fit has not seen (:func:`certified`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from neuralbayes.data.columns import discrete_columns, is_whole, rounding
from neuralbayes.manifolds.descent import Labeling, fit_parts, fit_states
from neuralbayes.manifolds.geometry import Geometry, Options, span, take
from neuralbayes.manifolds.graph import Array, NeighborGraph
from neuralbayes.manifolds.linkage import Linkage
from neuralbayes.manifolds.separation import (
    CERTIFIED,
    is_certified,
    null_separation,
    separation,
    separation_of_parts,
    walk_between,
)

FOLDS = 3
"""Number of parts of the sample. A fit to all but one of them is judged on the remaining part."""

CODES_TELL = 0.99
"""Share of the rows that a column of whole numbers must label correctly by itself to be suspected to be a code."""

LEAVES = 16
"""Maximum number of intervals of a column with different labels."""


def certified(
    labeling: Labeling, X: Array, geometry: Geometry, options: Options, rng: np.random.RandomState
) -> Labeling:
    """Check a labeling, and lower the separation of states that may not be disjoint.

    If it is not certified and there are as many proven parts, fit these and check the result.
    """
    n_states = len(labeling.separation)
    if labeling.disjoint.any() and geometry.linkage.may_be_broken(labeling.posterior(geometry.denser).argmax(axis=1)):
        labeling = replace(labeling, separation=np.zeros(n_states))
    if labeling.disjoint.any():
        labeling = _on_other_rows(labeling, X, geometry, options, rng)
    labeling = _beside_others(labeling, geometry, options, rng)
    if labeling.disjoint.all() or not can_be_proven(geometry, n_states):
        return labeling
    # Its separation is already that of rows which the fit has not seen.
    again = _beside_others(fit_parts(geometry, n_states, options, rng), geometry, options, rng)
    return again if again.disjoint.all() else labeling


def _beside_others(labeling: Labeling, geometry: Geometry, options: Options, rng: np.random.RandomState) -> Labeling:
    """Lower the separation to that without columns in doubt, and add that of connected rows."""
    if labeling.disjoint.any():
        labeling = _without_discrete_columns(labeling, geometry, options, rng)
    if labeling.disjoint.any():
        null = null_separation(geometry.points, len(labeling.separation), options.n_neighbors, rng)
        labeling = replace(labeling, null=null)
    return labeling


def can_be_proven(geometry: Geometry, n_states: int) -> bool:
    """Whether a spanning tree divides the rows into as many parts, and none of them is cut through a proven one."""
    proven = geometry.linkage.proven
    return proven is not None and proven.n_parts >= n_states and n_states in geometry.linkage.ratio


def _on_other_rows(
    labeling: Labeling, X: Array, geometry: Geometry, options: Options, rng: np.random.RandomState
) -> Labeling:
    """Measure the separation on unseen rows, or, if there are too few, by fits that leave out some rows."""
    m = len(geometry.rows)
    if len(X) >= 2 * options.max_samples:
        fresh = take(X, np.setdiff1d(rng.choice(len(X), 2 * m, replace=False), geometry.rows)[:m])
        walk = walk_between((fresh - geometry.center) @ geometry.basis, options.n_neighbors)
        other = separation(walk, labeling.posterior(fresh))
        return replace(labeling, separation=np.minimum(labeling.separation, other))
    fewer = replace(options, n_init=min(4, options.n_init))
    rank = np.argsort(np.argsort(-labeling.separation, kind="stable"))
    tried = [np.zeros_like(labeling.separation)]
    for judged in np.array_split(np.arange(m), FOLDS):
        again = fit_states(Geometry(np.delete(geometry.sample, judged, axis=0), fewer, rng), len(rank), fewer, rng)
        other = separation(geometry.settled, again.posterior(geometry.sample), judged)
        # The states of the new fit have other numbers, so compare the two by rank.
        tried.append(np.minimum(labeling.separation, np.sort(other)[::-1][rank]))
        if (is_certified(tried[-1], 0.0) == labeling.disjoint).all():
            break
    return replace(labeling, separation=max(tried, key=np.min))


def _without_discrete_columns(
    labeling: Labeling, geometry: Geometry, options: Options, rng: np.random.RandomState
) -> Labeling:
    """Measure the separation without columns whose values have gaps by nature, and find which of them make states."""
    order = np.argsort(geometry.rows)
    rows = geometry.sample[order]
    p_zx = labeling.posterior(rows)
    labels = p_zx.argmax(axis=1)
    for columns in columns_in_doubt(rows, labels):
        fewer = without_columns(rows, columns, rng)
        lowered = np.zeros_like(labeling.separation)
        if fewer.shape[1] and np.ptp(fewer, axis=0).any():
            center, basis = span(fewer, options.standardize)
            points = (fewer - center) @ basis
            graph = NeighborGraph(points, options.n_neighbors)
            proven = Linkage(graph).proven
            if proven is not None and proven.n_parts >= len(lowered):
                lowered = separation_of_parts(proven.part, p_zx)
            else:
                lowered = separation(walk_between(points, options.n_neighbors), p_zx)
        lowered = np.minimum(labeling.separation, lowered)
        if (is_certified(lowered, 0.0) < labeling.disjoint).any():
            behind = [j for j in columns or range(rows.shape[1]) if tells_apart(rows[:, j], labels) >= CERTIFIED]
            return replace(labeling, separation=lowered, columns=tuple(behind or columns))
    return labeling


def columns_in_doubt(rows: Array, labels: NDArray[np.integer]) -> list[list[int]]:
    """Sets of columns that could explain the labels without a gap between manifolds; rows are in their first order.

    First all discrete columns together, which are none if there are only rounded columns. Then each column of whole
    numbers, possibly codes, that separates the labels by itself, and each column with a sentinel.
    """
    discrete = sorted(discrete_columns(rows))
    whole = [int(j) for j in np.flatnonzero(is_whole(rows)) if j not in discrete]
    alone = [[j] for j in whole if tells_apart(rows[:, j], labels) >= CODES_TELL]
    alone += [[j] for j in sentinel_columns(rows, labels) if j not in discrete]
    together = [discrete] if discrete or rounding(rows).any() else []
    return together + alone


def sentinel_columns(rows: Array, labels: NDArray[np.integer]) -> list[int]:
    """Columns in which nearly all rows of a label, and hardly any others, have one value, such as -999 for missing."""
    found = np.zeros(rows.shape[1], np.bool_)
    for k in np.unique(labels):
        own = rows[labels == k]
        value = np.median(own, axis=0)
        same = rows == value
        found |= (same[labels == k].mean(axis=0) >= CODES_TELL) & (same[labels != k].mean(axis=0) <= 1.0 - CODES_TELL)
    return [int(j) for j in np.flatnonzero(found)]


def tells_apart(column: Array, labels: NDArray[np.integer]) -> float:
    """Balanced accuracy of a small decision tree that predicts the labels from the column."""
    tree = DecisionTreeClassifier(max_leaf_nodes=LEAVES, class_weight="balanced", random_state=0)
    right = tree.fit(column[:, None], labels).predict(column[:, None]) == labels
    return float(np.mean([right[labels == k].mean() for k in np.unique(labels)]))


def without_columns(rows: Array, columns: list[int], rng: np.random.RandomState) -> Array:
    """Remove columns, and spread the others over their rounding steps."""
    kept = np.delete(rows, columns, axis=1)
    spread: Array = kept + rounding(kept) * rng.uniform(-0.5, 0.5, kept.shape)
    return spread
