"""Comparison with true classes, if there are any: a table of agreement and a cross-table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

from neuralbayes.clusters.accuracy import clustering_accuracy
from neuralbayes.plot.crosstab import CrosstabDisplay, crosstab
from neuralbayes.report.explorer.figures import Picture, drawn
from neuralbayes.report.explorer.samples import Samples
from neuralbayes.report.explorer.side import Grid, Layer


def agreement(layers: Sequence[Layer], samples: Samples) -> Grid | None:
    """Agreement between the states of each layer and the classes; None without classes."""
    if samples.classes is None:
        return None
    rows = []
    for layer in layers:
        states = layer.claimed
        counts = crosstab(states, samples.classes)
        majority = counts.max(axis=1).sum() / len(states)
        rows.append(
            (
                layer.name,
                f"{layer.n_states:,}",
                f"{normalized_mutual_info_score(samples.classes, states):.3f}",
                f"{100 * clustering_accuracy(states, samples.classes):.1f} %",
                f"{100 * majority:.1f} %",
            )
        )
    thing = layers[-1].thing
    return Grid(
        f"Agreement with {len(samples.class_names)} classes on {len(samples):,} {samples.noun}s",
        ("", "number", "NMI", "accuracy, one-to-one", "accuracy, majority class"),
        rows,
        "NMI: normalised mutual information, 0 to 1. One-to-one: the accuracy if each class is matched with one "
        f"{thing}, in the best way. Majority class: the accuracy if each {thing} predicts its most common class; it "
        f"grows with the number of {thing}s.",
    )


def crosstab_picture(layer: Layer, samples: Samples) -> Picture | None:
    """Cross-table of states and classes; None without classes."""
    if samples.classes is None:
        return None
    classes = samples.classes
    n = len(samples.class_names)
    nmi = normalized_mutual_info_score(classes, layer.claimed)
    height = float(np.clip(1.2 + 0.24 * n, 2.6, 6.0))
    return drawn(
        f"Classes of each {layer.thing}: {layer.name}",
        f"How the {len(samples):,} {samples.noun}s of each of the {n} classes are spread over the {layer.thing}s; NMI "
        f"{nmi:.3f}. The table in the explorer lists the most common class of each {layer.thing}.",
        lambda ax: CrosstabDisplay.from_labels(layer.claimed, classes, class_names=samples.class_names, ax=ax),
        (4.9, height),
    )
