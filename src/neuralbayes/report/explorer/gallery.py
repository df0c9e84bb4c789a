"""Clusters of pictures and of texts, shown by their members, the largest cluster first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from neuralbayes.bayes import LOG_2
from neuralbayes.data.oddities import distinct
from neuralbayes.explain.phrases import key_phrases, phrase_names
from neuralbayes.explain.prototypes import borderline_members, rank_members
from neuralbayes.plot.crosstab import crosstab
from neuralbayes.report.explorer.figures import thumbnails
from neuralbayes.report.explorer.samples import Samples
from neuralbayes.report.explorer.side import Layer
from neuralbayes.report.explorer.words import separation_words

FIRST = 24
"""Number of clusters shown at first."""

LETTERS = 200
"""Maximum length of a text on the page."""

N_TEXTS = 5
"""Number of typical and of borderline texts per cluster."""

N_PICTURES, N_PICTURES_OF_MANY = 12, 8
"""Number of typical pictures per cluster; the second number applies to more than FIRST clusters."""

COMPARED = 20
"""Maximum number of pictures to compare for each one that is shown."""

BUDGET = 600_000
"""Maximum size of all pictures in bytes."""

N_CLASSES = 3
"""Number of classes named per cluster."""


@dataclass(frozen=True)
class Member:
    """A picture or a text: its index among the samples, its second most probable cluster, and its content."""

    place: int
    name: str
    second: str
    text: str = ""
    address: str = ""


@dataclass(frozen=True)
class MembersCard:
    """The card of one cluster."""

    number: int
    name: str
    size: int
    share: float
    separation: float | None  # of 100
    stability: float | None
    words: Sequence[str]
    classes: Sequence[tuple[str, float]]
    typical: Sequence[Member]
    borderline: Sequence[Member]


@dataclass(frozen=True, eq=False)
class Gallery:
    """Clusters by their members.

    Attributes
    ----------
    sentence : str
        Summary of the result, with the verdict.
    verdict : str
        Separation of the clusters, in words.
    poor : bool
        Whether most clusters are poorly separated.
    cards : list of MembersCard
        Sorted by size, the largest first.
    names : list of str
        Names of the clusters, by number.
    runner_up : ndarray of int64 and shape (n_samples,)
        The second most probable cluster.
    """

    sentence: str
    verdict: str
    poor: bool
    cards: list[MembersCard]
    names: list[str]
    runner_up: NDArray[np.int64]

    @property
    def n_first(self) -> int:
        return FIRST


def members_gallery(samples: Samples, layer: Layer, sizes: NDArray[np.integer] | None = None) -> Gallery:
    """Show the clusters of pictures or texts by their members.

    Parameters
    ----------
    samples : Samples
        With `pictures` or `texts`.
    layer : Layer
        With `points`, which determine the typical members.
    sizes : ndarray of shape (n_clusters,), optional
        Members in all data, if known; otherwise the samples on the page are counted.
    """
    if layer.points is None or (samples.pictures is None and samples.texts is None):
        raise ValueError("a gallery needs pictures or texts, and the points where they lie")
    k, labels, p_zx = layer.n_states, layer.claimed, layer.p_zx
    texts = samples.texts
    phrases = [[] for _ in range(k)] if texts is None else key_phrases(texts, labels, k)
    names = [f"cluster {i}" for i in range(k)] if texts is None else phrase_names(phrases)
    runner_up = np.argsort(-p_zx, axis=1, kind="stable")[:, min(1, k - 1)]
    n_typical = N_TEXTS if texts is not None else N_PICTURES if k <= FIRST else N_PICTURES_OF_MANY
    typical = [
        _different(rows.tolist(), samples, n_typical) for rows in rank_members(np.asarray(layer.points), labels, k)
    ]
    borderline = [
        _different(rows.tolist(), samples, max(N_TEXTS, n_typical // 2))
        for rows in borderline_members(p_zx, labels, 4 * n_typical)
    ]
    needed = sorted({i for rows in (*typical, *borderline) for i in rows})
    addresses = {} if samples.pictures is None else thumbnails(samples.pictures, needed, BUDGET)

    def members(rows: Iterable[int]) -> list[Member]:
        return [
            Member(
                place=i,
                name=samples.names[i] if samples.names else f"{samples.noun} {samples.index[i]:,}",
                second=names[int(runner_up[i])] if k > 1 else "",
                text="" if texts is None else shortened(texts[i]),
                address=addresses.get(i, ""),
            )
            for i in rows
        ]

    counts = np.bincount(labels, minlength=k) if sizes is None else sizes
    total = max(1, int(counts.sum()))
    classes = _classes(samples, labels, k)
    share = np.full(k, np.nan) if layer.separation is None else 100.0 * layer.separation / LOG_2
    cards = [
        MembersCard(
            number=i,
            name=names[i],
            size=int(counts[i]),
            share=int(counts[i]) / total,
            separation=float(share[i]) if k > 1 and np.isfinite(share[i]) else None,
            stability=None if layer.stability is None else float(layer.stability[i]),
            words=[claim.words for claim in phrases[i]],
            classes=classes[i],
            typical=members(typical[i]),
            borderline=members(borderline[i]) if k > 1 else [],
        )
        for i in np.argsort(-counts, kind="stable").tolist()
    ]
    verdict, poor = ("", False) if layer.separation is None else separation_words(layer.separation, names)
    return Gallery(_sentence(cards, samples.noun, verdict), verdict, poor, cards, names, runner_up)


def shortened(text: str) -> str:
    """The beginning of a text, on one line.

    Examples
    --------
    >>> shortened("one\\n  two"), len(shortened("word " * 100))
    ('one two', 200)
    """
    line = " ".join(text[: 4 * LETTERS].split())
    return line if len(line) <= LETTERS else f"{line[: LETTERS - 1].rstrip()}…"


def _different(rows: Sequence[int], samples: Samples, n: int) -> list[int]:
    """The first `n` rows with different texts, or with pictures that are not near-duplicates."""
    if samples.texts is None:
        return [] if samples.pictures is None else distinct(samples.pictures, rows[: COMPARED * n], n)
    found: dict[str, int] = {}
    for i in rows:
        found.setdefault(samples.texts[i].strip().lower(), i)
        if len(found) == n:
            break
    return list(found.values())


def _classes(samples: Samples, labels: NDArray[np.intp], k: int) -> list[list[tuple[str, float]]]:
    """The most common classes of each cluster with their shares; empty without classes."""
    if samples.classes is None:
        return [[] for _ in range(k)]
    counts = crosstab(labels, samples.classes, k, len(samples.class_names))
    found = []
    for row in counts:
        order = np.argsort(-row, kind="stable")[:N_CLASSES]
        found.append([(str(samples.class_names[j]), float(row[j] / row.sum())) for j in order if row[j]])
    return found


def _sentence(cards: Sequence[MembersCard], noun: str, verdict: str) -> str:
    total = sum(card.size for card in cards)
    if len(cards) == 1:
        return f"One cluster: nothing was found that divides the {total:,} {noun}s."
    listed = [f"{card.name} ({100 * card.share:.0f} %)" for card in cards[:6]] if cards[0].words else []
    if listed:
        listed += [f"{len(cards) - 6} more"] if len(cards) > 6 else []
        found = f"{len(cards)} clusters in {total:,} {noun}s: {'; '.join(listed)}."
    else:
        found = f"{len(cards)} clusters in {total:,} {noun}s, the largest of {cards[0].size:,}, the smallest of "
        found += f"{cards[-1].size:,}."
    return f"{found} {verdict}".strip()
