"""Choose the number of manifolds: the largest number of states that are certified and stable under resampling."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from neuralbayes.manifolds.certificate import can_be_proven, certified
from neuralbayes.manifolds.descent import Labeling, fit_states, single_state
from neuralbayes.manifolds.geometry import Geometry, Options
from neuralbayes.manifolds.graph import Array, NeighborGraph
from neuralbayes.manifolds.linkage import Linkage
from neuralbayes.manifolds.separation import CERTIFIED
from neuralbayes.training.progress import progress


def select(
    X: Array, geometry: Geometry, max_states: int, options: Options, rng: np.random.RandomState
) -> tuple[Labeling, dict[str, list[Any]]]:
    """Choose the largest number of states that are all certified and stable under resampling.

    Returns
    -------
    labeling : Labeling
        A single state if no larger number passes. `max_states` states if they are certified but no number is stable:
        then there are more manifolds than states, and each fit combines them at random.
    selection : dict of lists
        For each number tried: "n_clusters", "objective", "separation" (the smallest over the states), "stability" (the
        adjusted Rand index between two resamples; None if it was not computed).
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
        if tried[i].disjoint.all() or can_be_proven(geometry, i + 2):
            tried[i] = certified(tried[i], X, geometry, options, rng)
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
    if chosen is None and tried[-1].disjoint.all():
        chosen = tried[-1]
    if chosen is None:
        columns = {j for labeling in tried for j in labeling.columns}
        chosen = replace(single_state(geometry), columns=tuple(sorted(columns)))
    return chosen, selection


def _stability(geometry: Geometry, n_states: int, options: Options, rng: np.random.RandomState) -> float:
    """Adjusted Rand index between the labels of the whole sample from two fits to four fifths of it each.

    Proven parts are divided again by a spanning tree instead: the network would only repeat them.
    """
    if can_be_proven(geometry, n_states):
        return _stability_of_parts(geometry, n_states, options, rng)
    labels = []
    for _ in range(2):
        part = rng.permutation(len(geometry.sample))[: int(0.8 * len(geometry.sample))]
        fewer = replace(options, n_init=min(4, options.n_init))
        resampled = Geometry(geometry.sample[part], fewer, rng)
        labels.append(fit_states(resampled, n_states, fewer, rng).posterior(geometry.sample).argmax(axis=1))
    return float(adjusted_rand_score(*labels))


def _stability_of_parts(geometry: Geometry, n_states: int, options: Options, rng: np.random.RandomState) -> float:
    """Adjusted Rand index between the clearest divisions of two resamples on the rows of both."""
    points = geometry.linkage.points
    labels = np.full((2, len(points)), -1)
    for one in labels:
        some = rng.permutation(len(points))[: int(0.8 * len(points))]
        linkage = Linkage(NeighborGraph(points[some], options.n_neighbors))
        if n_states not in linkage.ratio:
            return 0.0
        one[some] = linkage.divide(n_states).part
    return float(adjusted_rand_score(*labels[:, (labels >= 0).all(axis=0)]))
