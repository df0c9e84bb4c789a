"""The certificate: what is ruled out before states are called disjoint.

Their separation (:mod:`neuralbayes.manifolds.separation`) stays at log 2 where no walk between neighbours leaves a
state. Four things would make it stay without saying anything about manifolds:

1. *Outliers.* A row far from all others has no neighbours to walk to. Rows in components of the graph that are smaller
   than a neighbourhood are joined to the nearest larger one (:func:`neuralbayes.manifolds.separation.settled`).
2. *Columns whose values have gaps by nature*, such as booleans, codes and ids. The states must stay apart without them,
   and rounded columns are spread over the step they were rounded to (:func:`without_columns`).
3. *Too few rows or neighbours.* The states must be further apart than the best division of rows drawn from a Gaussian
   of the same size and covariance (:func:`neuralbayes.manifolds.separation.null_separation`).
4. *Chance.* A fit that has not seen some of the rows must be as far apart on these (:func:`certified`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from neuralbayes.data.columns import discrete_columns, is_whole, rounding
from neuralbayes.manifolds.descent import Labeling, fit_states
from neuralbayes.manifolds.geometry import Geometry, Options, span, take
from neuralbayes.manifolds.graph import Array
from neuralbayes.manifolds.separation import CERTIFIED, is_certified, null_separation, separation, walk_between

FOLDS = 3
"""Parts of the sample, on one of which the states of a fit to the others must be as far apart."""

CODES_TELL = 0.99
"""Share of the rows that a column of whole numbers must label rightly by itself to be suspected of being a code."""

LEAVES = 16
"""Intervals of a column that may have a label of their own."""


def certified(
    labeling: Labeling, X: Array, geometry: Geometry, options: Options, rng: np.random.RandomState
) -> Labeling:
    """The labeling, with the separation of its states lowered by whatever shows that they may not be disjoint."""
    for check in (_on_other_rows, _without_discrete_columns, _beside_null):
        if not labeling.disjoint.any():
            break
        labeling = check(labeling, X, geometry, options, rng)
    return labeling


def _on_other_rows(
    labeling: Labeling, X: Array, geometry: Geometry, options: Options, rng: np.random.RandomState
) -> Labeling:
    """How far apart the states are on rows that no fit has seen, or those of a fit that has not seen them."""
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
        # The states have other numbers there: as many of them must be as far apart.
        tried.append(np.minimum(labeling.separation, np.sort(other)[::-1][rank]))
        if (is_certified(tried[-1], 0.0) == labeling.disjoint).all():
            break
    return replace(labeling, separation=max(tried, key=np.min))


def _without_discrete_columns(
    labeling: Labeling, X: Array, geometry: Geometry, options: Options, rng: np.random.RandomState
) -> Labeling:
    """How far apart the states are without columns whose values have gaps by nature; which of these make them."""
    order = np.argsort(geometry.rows)
    rows = geometry.sample[order]
    p_zx = labeling.posterior(rows)
    labels = p_zx.argmax(axis=1)
    for columns in columns_in_doubt(rows, labels):
        fewer = without_columns(rows, columns, rng)
        lowered = np.zeros_like(labeling.separation)
        if fewer.shape[1] and np.ptp(fewer, axis=0).any():
            center, basis = span(fewer, options.standardize)
            lowered = separation(walk_between((fewer - center) @ basis, options.n_neighbors), p_zx)
        lowered = np.minimum(labeling.separation, lowered)
        if (is_certified(lowered, 0.0) < labeling.disjoint).any():
            behind = [j for j in columns or range(rows.shape[1]) if tells_apart(rows[:, j], labels) >= CERTIFIED]
            return replace(labeling, separation=lowered, columns=tuple(behind or columns))
    return labeling


def _beside_null(
    labeling: Labeling, X: Array, geometry: Geometry, options: Options, rng: np.random.RandomState
) -> Labeling:
    """The separation of connected rows beside that of the states."""
    null = null_separation(geometry.points, len(labeling.separation), options.n_neighbors, rng)
    return replace(labeling, null=null)


def columns_in_doubt(rows: Array, labels: NDArray[np.integer]) -> list[list[int]]:
    """Sets of columns that could make the labels alone without there being a gap between the rows.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns)
        In the order in which they came.
    labels : ndarray of shape (n_rows,)

    Returns
    -------
    list of lists of int
        First all discrete columns together, none of them where there is no such column but one that is rounded; then
        each column of whole numbers, which may be codes, that tells the labels apart by itself.
    """
    discrete = sorted(discrete_columns(rows))
    whole = [int(j) for j in np.flatnonzero(is_whole(rows)) if j not in discrete]
    alone = [[j] for j in whole if tells_apart(rows[:, j], labels) >= CODES_TELL]
    together = [discrete] if discrete or rounding(rows).any() else []
    return together + alone


def tells_apart(column: Array, labels: NDArray[np.integer]) -> float:
    """Share of the rows, each label counting the same, whose label a small decision tree on the column gets right."""
    tree = DecisionTreeClassifier(max_leaf_nodes=LEAVES, class_weight="balanced", random_state=0)
    right = tree.fit(column[:, None], labels).predict(column[:, None]) == labels
    return float(np.mean([right[labels == k].mean() for k in np.unique(labels)]))


def without_columns(rows: Array, columns: list[int], rng: np.random.RandomState) -> Array:
    """Rows without some columns, the others spread over the steps that they were rounded to."""
    kept = np.delete(rows, columns, axis=1)
    spread: Array = kept + rounding(kept) * rng.uniform(-0.5, 0.5, kept.shape)
    return spread
