"""What a reader must know before believing the states, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuralbayes.bayes import LOG_2
from neuralbayes.plot.states import DEAD
from neuralbayes.report.explorer.side import Layer

COLLAPSED = 0.01
"""Share of log n_states below which a layer says nothing."""

FEW = 5
"""Samples a state, below which its members are few."""

FEW_ROWS = 30
"""Rows of a state of a labeler, below which it is thinly sampled."""


def layer_warnings(layers: Sequence[Layer], noun: str) -> list[str]:
    """Collapsed layers, dead states, and more states than the samples can fill."""
    words, few = [], []
    for layer in layers:
        n, k = len(layer.p_zx), layer.n_states
        if layer.information is not None and k > 1 and layer.information < COLLAPSED * layer.bound:
            words.append(
                f"{layer.name} has collapsed: it says {layer.information:.3f} of {layer.bound:.2f} nats about the "
                f"{noun}. Its states mean nothing."
            )
        if n_dead := int(layer.dead.sum()):
            are, those = ("are", "states are") if n_dead > 1 else ("is", "state is")
            words.append(
                f"{layer.name}: {n_dead:,} of {k:,} {those} dead: p(z) {are} less than {DEAD:g} of the equal share."
            )
        if n < FEW * k and k > 8:
            few.append(f"{n / k:.1f} {noun}s a state in {layer.name}")
    if few:
        words.append(f"Few samples: {', '.join(few)}. What is typical of a rare state may be chance.")
    return words


def certificate_warnings(layer: Layer) -> list[str]:
    """What the certificate of a labeler refuses, and states with few rows."""
    words = []
    if layer.n_states == 1:
        return ["One state: no disjoint manifolds were found, so the labels divide nothing."]
    if layer.disjoint is None or layer.separation is None:
        return []
    counts = np.bincount(layer.claimed, minlength=layer.n_states)
    if not layer.disjoint.all():
        weak = ", ".join(
            f"{k} ({100 * layer.separation[k] / LOG_2:.0f} % of log 2)" if np.isfinite(layer.separation[k]) else f"{k}"
            for k in np.flatnonzero(~layer.disjoint)
        )
        many = (~layer.disjoint).sum() > 1
        words.append(
            f"Not certified disjoint: state{'s' if many else ''} {weak}. {'They cut' if many else 'It cuts'} through "
            "something connected, or hold more than one manifold: the boundary is not in the data."
        )
    if empty := np.flatnonzero(counts == 0).tolist():
        words.append(f"No rows here: state{'s' if len(empty) > 1 else ''} {', '.join(map(str, empty))}.")
    if thin := np.flatnonzero((counts > 0) & (counts < FEW_ROWS)).tolist():
        listed = ", ".join(f"{k} ({counts[k]})" for k in thin)
        words.append(f"Few samples: state{'s' if len(thin) > 1 else ''} {listed} with fewer than {FEW_ROWS} rows.")
    return words
