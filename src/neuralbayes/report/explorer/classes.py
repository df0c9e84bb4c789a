"""States against true classes, where there are any: pictures, tables, and how well they agree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

from neuralbayes.plot.crosstab import CrosstabDisplay, crosstab
from neuralbayes.probes.clustering_accuracy import clustering_accuracy
from neuralbayes.report.explorer.figures import Picture, drawn
from neuralbayes.report.explorer.samples import Samples
from neuralbayes.report.explorer.side import Grid, Layer


def agreement(layers: Sequence[Layer], samples: Samples) -> Grid | None:
    """How well the states of each layer agree with the classes; None without classes."""
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
    return Grid(
        f"Agreement with {len(samples.class_names)} classes on {len(samples):,} {samples.noun}s",
        ("", "states", "NMI", "one state a class", "commonest class of each state"),
        rows,
        "NMI: normalised mutual information, 0 to 1. One state a class: the share that is right when each class is "
        "given one state, the best way. Commonest class: the share in a state whose commonest class is theirs, which "
        "rises with the number of states by itself.",
    )


def crosstab_picture(layer: Layer, samples: Samples) -> Picture | None:
    """Which states hold each class; None without classes."""
    if samples.classes is None:
        return None
    classes = samples.classes
    n = len(samples.class_names)
    nmi = normalized_mutual_info_score(classes, layer.claimed)
    height = float(np.clip(1.2 + 0.24 * n, 2.6, 6.0))
    return drawn(
        f"Classes of each state: {layer.name}",
        f"Which of {n} classes the {len(samples):,} {samples.noun}s in each state have; NMI {nmi:.3f}. The table of "
        "all states in the explorer has each state's commonest class.",
        lambda ax: CrosstabDisplay.from_labels(layer.claimed, classes, class_names=samples.class_names, ax=ax),
        (4.9, height),
    )
