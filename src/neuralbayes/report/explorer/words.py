"""Caveats of a page, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from neuralbayes.bayes import LOG_2
from neuralbayes.plot.states import DEAD
from neuralbayes.report.explorer.side import Layer

COLLAPSED = 0.01
"""Fraction of log n_states below which a layer counts as collapsed."""

FEW = 5
"""Samples per state below which the page warns."""

FEW_ROWS = 30
"""Rows per certified cluster below which the page warns."""


POOR = 0.4
"""Fraction of log 2 below which a cluster is called poorly separated: one neighbour in seven is in another cluster."""

APART = 0.9
"""Fraction of log 2 above which clusters stand apart."""


def separation_words(separation: NDArray[np.floating], names: Sequence[str] = ()) -> tuple[str, bool]:
    """A sentence on the separation of clusters, and whether most of them are poorly separated.

    Parameters
    ----------
    separation : ndarray of shape (n_clusters,)
        Separation in nats.
    names : sequence of str
        Names of the clusters; their numbers by default.

    Examples
    --------
    >>> separation_words(LOG_2 * np.array([0.61, 0.89]))
    ('They may touch: separation 61 to 89 of 100.', False)
    >>> separation_words(LOG_2 * np.array([0.31, 0.2, 0.5]))[0]
    'Poor: separation 20 to 50 of 100, so the boundaries may not be in the data.'
    """
    share = np.asarray(separation, dtype=np.float64) / LOG_2
    known = share[np.isfinite(share)]
    if len(share) < 2 or not len(known):
        return "", False
    span = f"separation {100 * known.min():.0f} to {100 * known.max():.0f} of 100"
    poor = np.flatnonzero(share < POOR)
    if 2 * len(poor) > len(known):
        return f"Poor: {span}, so the boundaries may not be in the data.", True
    if len(poor):
        listed = ", ".join([str(names[k]) if len(names) else f"cluster {k}" for k in poor[:3]])
        more = f" and {len(poor) - 3} more" if len(poor) > 3 else ""
        return f"They may touch: {span}, poor for {listed}{more}.", False
    return f"They {'stand apart' if known.min() >= APART else 'may touch'}: {span}.", False


def layer_warnings(layers: Sequence[Layer], noun: str) -> list[str]:
    """Warnings about collapsed layers, dead states, and too few samples."""
    words, few = [], []
    for layer in layers:
        n, k = len(layer.p_zx), layer.n_states
        if layer.information is not None and k > 1 and layer.information < COLLAPSED * layer.bound:
            words.append(
                f"{layer.name} has collapsed: it carries {layer.information:.3f} of {layer.bound:.2f} nats about the "
                f"{noun}. Its {layer.thing}s mean nothing."
            )
        if n_dead := int(layer.dead.sum()):
            those = f"{layer.thing}s are" if n_dead > 1 else f"{layer.thing} is"
            words.append(f"{layer.name}: {n_dead:,} of {k:,} {those} dead, with p(z) below {DEAD:g} / {k:,}.")
        if n < FEW * k and k > 8:
            few.append(f"{n / k:.1f} {noun}s per {layer.thing} in {layer.name}")
    if few:
        words.append(f"Few samples: {', '.join(few)}. The typical members of small ones may be due to chance.")
    return words


def certificate_warnings(layer: Layer) -> list[str]:
    """Warnings about clusters without a certificate, and about clusters with few rows."""
    words = []
    if layer.n_states == 1:
        return ["There is only one cluster: no disjoint manifolds were found."]
    if layer.disjoint is None or layer.separation is None:
        return []
    counts = np.bincount(layer.claimed, minlength=layer.n_states)
    if not layer.disjoint.all():
        weak = ", ".join(
            f"{k} (separation {100 * layer.separation[k] / LOG_2:.0f} of 100)"
            if np.isfinite(layer.separation[k])
            else f"{k}"
            for k in np.flatnonzero(~layer.disjoint)
        )
        many = (~layer.disjoint).sum() > 1
        words.append(
            f"Not certified as disjoint: cluster{'s' if many else ''} {weak}. {'They cut' if many else 'It cuts'} "
            f"through connected rows, or {'hold' if many else 'holds'} more than one manifold."
        )
    if empty := np.flatnonzero(counts == 0).tolist():
        words.append(f"No rows here: cluster{'s' if len(empty) > 1 else ''} {', '.join(map(str, empty))}.")
    if thin := np.flatnonzero((counts > 0) & (counts < FEW_ROWS)).tolist():
        listed = ", ".join(f"{k} ({counts[k]})" for k in thin)
        words.append(f"Few samples: cluster{'s' if len(thin) > 1 else ''} {listed} with fewer than {FEW_ROWS} rows.")
    return words
