"""The numbers of clusters that "auto" considered, and their scores."""

from __future__ import annotations

from typing import Any

from neuralbayes.bayes import LOG_2
from neuralbayes.report.explorer.side import Grid

HEADS = {
    "n_clusters": "clusters",
    "separation": "lowest separation, of 100",
    "stability": "agreement of resamples",
    "agreement": "agreement of halves",
    "silhouette": "silhouette",
    "information": "H - V, nats",
    "rows": "rows divided by the valley",
    "p_value": "p-value of the valley",
}
"""Titles of the columns of `selection_`."""

NOTES = {
    "separation": "The result is the largest number of manifolds that are all certified (separation of at least 90) "
    "and that are found again in resamples (adjusted Rand index of at least 0.9).",
    "silhouette": "Each half of the rows was divided on its own. Their agreement is the adjusted mutual information of "
    "both divisions, extended to all rows. The result has the largest agreement times silhouette, or is one cluster if "
    "no agreement reaches 0.35.",
    "agreement": "Each half of the rows was divided on its own. Their agreement is the adjusted mutual information of "
    "both divisions, extended to all rows. The result has the largest agreement above chance, which is greater for two "
    "clusters than for more, or is one cluster if no agreement reaches 0.35.",
    "information": "H is the entropy of the clusters. V, the variation of information, measures how many images leave "
    "their cluster when they are moved a little. The result is the smallest number within 2% of the largest H - V.",
    "p_value": "A valley is a band of low density between two clusters. The p-value says how likely it is to "
    "see such a valley if there is only one cluster.",
}
"""How each column of `selection_` determines the number."""


def tried_grid(estimator: Any) -> Grid | None:
    """The numbers of clusters that "auto" considered, as a table; None if there were none."""
    selection = getattr(estimator, "selection_", None)
    if not selection or not any(selection.values()):
        return None
    columns = list(selection)
    rows = [
        tuple(_shown(name, value) for name, value in zip(columns, values, strict=True))
        for values in zip(*selection.values(), strict=True)
    ]
    taken = selection.get("n_clusters", [])
    best = [(i, len(columns) - 1) for i, n in enumerate(taken) if n == estimator.n_clusters_]
    note = next((text for name, text in NOTES.items() if name in columns), "")
    head = tuple(HEADS.get(name, name.replace("_", " ")) for name in columns)
    return Grid("How the number of clusters was chosen", head, rows, note, best)


def _shown(name: str, value: float | None) -> str:
    if value is None:
        return "not needed"
    if name == "separation":
        return f"{100 * value / LOG_2:.1f}"
    return (
        f"{value:,.0f}" if name in ("n_clusters", "rows") else f"{value:.2g}" if name == "p_value" else f"{value:.3f}"
    )
