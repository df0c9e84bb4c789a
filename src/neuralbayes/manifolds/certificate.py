"""The certificate of disjoint states, and the number of manifolds: the largest that is certified and stable.

The separation of a state stays at log 2 if no walk between neighbours leaves it. Disjoint manifolds do this, and so do:

1. *Outliers*, which have no neighbours to walk to. Small components of the graph are joined to the nearest larger one.
2. *Columns whose values have gaps by nature*, such as booleans, codes and sentinels. The states must stay separated
   without them, and with rounded columns spread over their rounding step.
3. *Too few rows or neighbours.* The separation must exceed that of a Gaussian of the same size and covariance.
4. *Lines with uneven spacing.* Their pieces point at each other (:mod:`neuralbayes.manifolds.linkage`).
5. *Chance.* The states must be as far apart on rows that the fit has not seen.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score
from sklearn.tree import DecisionTreeClassifier

from neuralbayes.data.columns import discrete_columns, is_whole, rounding
from neuralbayes.manifolds.descent import Labeling, fit_parts, fit_states, single_state
from neuralbayes.manifolds.geometry import Geometry, Options, span
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
from neuralbayes.training.progress import progress

CODES_TELL, LEAVES = 0.99, 16
"""Share of the rows that a column must label by itself, in so many intervals, to be suspected to be a code."""


def certified(labeling: Labeling, geometry: Geometry, options: Options, rng: np.random.RandomState) -> Labeling:
    """Lower the separation of states that may not be disjoint; if there are as many proven parts, fit these instead."""
    n_states = len(labeling.separation)
    if labeling.disjoint.any() and geometry.linkage.may_be_broken(labeling.posterior(geometry.denser).argmax(axis=1)):
        labeling = replace(labeling, separation=np.zeros(n_states))
    if labeling.disjoint.any():
        labeling = _on_other_rows(labeling, geometry, options, rng)
    labeling = _beside_others(labeling, geometry, options, rng)
    if labeling.disjoint.all() or not geometry.linkage.can_prove(n_states):
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


def _on_other_rows(labeling: Labeling, geometry: Geometry, options: Options, rng: np.random.RandomState) -> Labeling:
    """Measure the separation on unseen rows, or, if there are too few, by fits that leave out some rows."""
    m = len(geometry.rows)
    fresh = geometry.denser[m : 2 * m]
    if len(fresh) == m:
        walk = walk_between((fresh - geometry.center) @ geometry.basis, options.n_neighbors)
        other = separation(walk, labeling.posterior(fresh))
        return replace(labeling, separation=np.minimum(labeling.separation, other))
    fewer = replace(options, n_init=min(4, options.n_init))
    rank = np.argsort(np.argsort(-labeling.separation, kind="stable"))
    tried = [np.zeros_like(labeling.separation)]
    for judged in np.array_split(np.arange(m), 3):
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
            proven = Linkage(NeighborGraph(points, options.n_neighbors)).proven
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
        same = rows == np.median(rows[labels == k], axis=0)
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
    return np.asarray(kept + rounding(kept) * rng.uniform(-0.5, 0.5, kept.shape))


def select(
    geometry: Geometry, max_states: int, options: Options, rng: np.random.RandomState
) -> tuple[Labeling, dict[str, list[Any]]]:
    """Choose the largest number of states that are all certified and stable under resampling; also what was tried.

    `max_states` is chosen if it is certified but no number is stable: then there are more manifolds than states.
    """
    tried: list[Labeling] = []
    proven = geometry.linkage.proven
    n_likely = geometry.linkage.clearest if proven is None else proven.n_parts
    with progress(max_states - 1, description="numbers of states tried", enabled=options.verbose) as display:
        for n_states in range(2, max_states + 1):
            tried.append(fit_states(geometry, n_states, options, rng))
            display.advance(metrics={"n_clusters": n_states, "separation": tried[-1].separation.min()})
            failures = sum(not labeling.disjoint.all() for labeling in tried)
            if failures >= 2 and n_states >= n_likely:
                break  # more states would only cut further
    stability: list[float | None] = [None] * len(tried)
    chosen = None
    for i in reversed(range(len(tried))):
        if tried[i].disjoint.all() or geometry.linkage.can_prove(i + 2):
            tried[i] = certified(tried[i], geometry, options, rng)
        if tried[i].disjoint.all():
            stability[i] = agreement = _stability(geometry, i + 2, options, rng)
            if agreement >= CERTIFIED:
                chosen = tried[i]
                break
    selection: dict[str, list[Any]] = {
        "n_clusters": list(range(2, len(tried) + 2)),
        "objective": [labeling.objective for labeling in tried],
        "separation": [float(labeling.separation.min()) for labeling in tried],
        "stability": stability,
    }
    if chosen is None:
        columns = {j for labeling in tried for j in labeling.columns}
        single = replace(single_state(geometry), columns=tuple(sorted(columns)))
        chosen = tried[-1] if tried[-1].disjoint.all() else single
    return chosen, selection


def _stability(geometry: Geometry, n_states: int, options: Options, rng: np.random.RandomState) -> float:
    """Adjusted Rand index between the labels that two resamples lead to."""
    labels = []
    is_proven = geometry.linkage.can_prove(n_states)
    rows = geometry.linkage.points if is_proven else geometry.sample
    for _ in range(2):
        part = rng.permutation(len(rows))[: int((0.95 if is_proven else 0.8) * len(rows))]
        if is_proven:  # the network would repeat what the tree finds, which needs nearly all rows of a thin line
            linkage = Linkage(NeighborGraph(rows[part], options.n_neighbors))
            if n_states not in linkage.ratio:
                return 0.0
            labels.append(np.full(len(rows), -1))
            labels[-1][part] = linkage.divide(n_states).part
        else:
            fewer = replace(options, n_init=min(4, options.n_init))
            fitted = fit_states(Geometry(rows[part], fewer, rng), n_states, fewer, rng)
            labels.append(fitted.posterior(rows).argmax(axis=1))
    one, other = (found[(np.array(labels) >= 0).all(axis=0)] for found in labels)
    return float(adjusted_rand_score(one, other))
