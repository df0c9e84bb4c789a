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

    It is 1 if no larger number passes, and `max_states` if that is certified but no number is stable: then there are
    more manifolds than states, and each fit combines them at random. Also returns what is in `selection_`.
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
    """Adjusted Rand index between the labels that two resamples of four fifths of the rows lead to."""
    labels = []
    is_proven = can_be_proven(geometry, n_states)
    rows = geometry.linkage.points if is_proven else geometry.sample
    for _ in range(2):
        part = rng.permutation(len(rows))[: int(0.8 * len(rows))]
        if is_proven:  # the network would repeat what the spanning tree finds
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
