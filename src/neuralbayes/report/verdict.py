"""What an InformationClusterer found, in words."""

from __future__ import annotations

from typing import Any

KINDS = {"clusters": "clusters with valleys between them", "segments": "segments of a continuum"}


def result_words(clusterer: Any, noun: str = "row") -> str:
    """The number of clusters, what they are, and how far two halves of the data agree about them.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> result_words(SimpleNamespace(n_clusters_=12, verdict_="segments", kind_="table", stability_=0.62))
    '12 segments of a continuum; two halves of the rows agree to 62 %'
    """
    n, verdict, stability = clusterer.n_clusters_, getattr(clusterer, "verdict_", ""), stability_of(clusterer)
    if n == 1:
        return "no repeatable division: one cluster" if verdict == "none" else "one cluster"
    halves = "" if stability is None else f"; two halves of the {noun}s agree to {100 * stability:.0f} %"
    return f"{n} {KINDS.get(verdict, 'clusters')}{halves}"


def stability_of(clusterer: Any) -> float | None:
    """How far two halves of the data agree; None for certificates, images and a single cluster."""
    measured = clusterer.n_clusters_ > 1 and getattr(clusterer, "kind_", "images") != "images"
    return float(clusterer.stability_) if measured else None


def cluster_stability_of(clusterer: Any) -> Any:
    """How far two halves of the data agree about each cluster; None as above."""
    return None if stability_of(clusterer) is None else clusterer.cluster_stability_
