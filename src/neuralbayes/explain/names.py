"""Names that cannot be false: claims about columns, chosen on one half of the rows and checked on the other.

A claim says that a cell lies in a part of its column: among the lowest tenth, third or half of all cells, in the middle
third, at one value. It is a claim about a cluster only if it is true of most members and of far fewer other rows, on
the rows that chose it and on the rows that did not; the shares that are shown are those of the latter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, entr

from neuralbayes.explain.columns import OTHERS, Column
from neuralbayes.explain.conditions import Condition, Mask, condition_of
from neuralbayes.explain.information import bin_counts, membership_information
from neuralbayes.explain.numerals import as_date, as_percent, short_number
from neuralbayes.explain.prototypes import some

MOST, PLAIN = 0.6, 0.75
"""Minimum share of members that fulfil a claim, and minimum share to say it without "mostly"."""

LARGE, SMALL = 0.25, 0.05
"""Minimum difference between the shares of members and of other rows: of a claim in a name, and of a claim that only
tells a cluster from those with the same name."""

LEVEL = 0.01
"""Significance level of the check: how often other rows would fulfil a claim as often as the members do."""

NEGATED = 0.85
"""Factor for the information of a claim with "not", since it is harder to read."""

ENOUGH = 0.6
"""Share of the entropy of membership that the claims of a name should explain; then no more are added."""

LONGEST = 3
"""Maximum number of claims in a name."""

N_CONSIDERED = 12
"""Maximum number of claims about a cluster that its name is chosen from."""

MAX_ROWS = 10_000
"""Maximum number of rows, drawn at random, to count which claims hold together; shares are counted on all rows."""

LEVELS = {
    "very low": (0.0, 0.1),
    "low": (0.0, 1 / 3),
    "lower": (0.0, 0.5),
    "medium": (1 / 3, 2 / 3),
    "higher": (0.5, 1.0),
    "high": (2 / 3, 1.0),
    "very high": (0.9, 1.0),
    "not very low": (0.1, 1.0),
    "not low": (1 / 3, 1.0),
    "not high": (0.0, 2 / 3),
    "not very high": (0.0, 0.9),
}
"""Words for parts of a column, by the mean rank of a value among all cells, from 0 to 1."""

DATES = {
    "very low": "very early",
    "low": "early",
    "lower": "earlier",
    "medium": "middle",
    "higher": "later",
    "high": "late",
    "very high": "very late",
    "not very low": "not very early",
    "not low": "not early",
    "not high": "not late",
    "not very high": "not very late",
}

COMMON = 0.05
"""Minimum share of the cells with a value for a claim about this value."""

WIDER, WIDEST = 0.15, 0.95
"""Maximum share of the cells in a part, beyond its nominal share and in all, since repeated values can make it wider."""

BETTER = 1.05
"""Minimum gain of information, as a factor, for one more claim in a name."""

UNITS = {"mm", "cm", "m", "km", "g", "kg", "mg", "s", "ms", "sec", "min", "h", "usd", "eur", "pct", "percent"}

NOTHING, TOO_FEW = "nothing stands out", "too few rows to name"
FEW = 10
"""Number of rows below which no claim about numbers can be checked."""


@dataclass(frozen=True)
class Claim:
    """A claim about the members of a cluster, with the shares of rows that fulfil it.

    Attributes
    ----------
    words : str
        The claim in a few words: "low mass", "mostly Bonn".
    condition : Condition or None
        What a row must fulfil; None for a phrase, which a text must contain.
    share_inside, share_outside : float
        Shares of the members, and of all other rows, that fulfil it, among the checked rows.
    checked_rows : int
        Number of members and other rows that it was checked on; they did not take part in its choice.

    Examples
    --------
    >>> print(Claim("low mass", Condition("mass", "number", high=4.0), 0.95, 0.1, 300))
    low mass (95 %, others 10 %)
    """

    words: str
    condition: Condition | None
    share_inside: float
    share_outside: float
    checked_rows: int

    def __str__(self) -> str:
        return f"{self.words} ({as_percent(self.share_inside)}, others {as_percent(self.share_outside)})"


def name_clusters(
    columns: Sequence[Column], labels: NDArray[np.integer], n_clusters: int, *, random_state: int = 0
) -> list[tuple[str, list[Claim]]]:
    """A name for each cluster, different from the others, and the claims that it makes, the strongest first.

    Parameters
    ----------
    columns : sequence of Column
    labels : ndarray of shape (n_rows,)
        From 0 to n_clusters - 1; rows labelled -1 are in no cluster.
    n_clusters, random_state : int

    Examples
    --------
    >>> from neuralbayes.explain.columns import number_column
    >>> mass = number_column("mass_kg", np.arange(90.0))
    >>> for name, claims in name_clusters([mass], np.arange(90) // 30, 3):
    ...     print(name, claims[0].share_inside, claims[0].share_outside)
    low mass 1.0 0.0
    medium mass 1.0 0.0
    high mass 1.0 0.0
    """
    rng = np.random.default_rng(random_state)
    chooses = half_of_each(labels, rng)
    categories_first = sorted(range(len(columns)), key=lambda j: columns[j].ordered)  # a value says more than "low"
    parts = [part for j in categories_first for part in _parts(j, columns[j])]
    first, second = (_tally(parts, columns, labels, n_clusters, np.flatnonzero(half)) for half in (chooses, ~chooses))
    sound = first.significant & second.significant & first.hold(SMALL) & second.hold(SMALL)
    large = sound & first.hold(LARGE) & second.hold(LARGE)
    told = np.where(large, first.information, 0.0) * [NEGATED if part.negated else 1.0 for part in parts]
    rows = some(np.flatnonzero(chooses), MAX_ROWS, rng)
    searched = [column.take(rows) for column in columns]
    chosen = [_chosen(told[k], parts, searched, labels[rows] == k) for k in range(n_clusters)]
    apart = np.minimum(first.between, second.between)  # the half in which two clusters differ less
    chosen = _told_apart(chosen, np.where(sound[:, None], apart, 0.0))
    names, claims = [], []
    for k, own in enumerate(chosen):
        size = first.sizes[k] + second.sizes[k]
        claims.append([_claim(parts[j], columns, second, k, j) for j in own])
        nothing = "no rows" if not size else "all rows" if size == len(labels) else TOO_FEW if size < FEW else NOTHING
        names.append(", ".join(claim.words for claim in claims[k]) or nothing)
    return list(zip(numbered(names), claims, strict=True))


def numbered(names: Sequence[str]) -> list[str]:
    """The names, with a number after those that were there before.

    Examples
    --------
    >>> numbered(["low mass", "low mass", "old", "low mass"])
    ['low mass', 'low mass (2)', 'old', 'low mass (3)']
    """
    found: list[str] = []
    for name in names:
        number, new = 1, name
        while new in found:
            number, new = number + 1, f"{name} ({number + 1})"
        found.append(new)
    return found


def half_of_each(labels: NDArray[np.integer], rng: np.random.Generator) -> Mask:
    """A random half of the rows of each cluster."""
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    chosen = np.zeros(len(labels), bool)
    chosen[order[::2]] = True
    return chosen


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a column that can be claimed: the column by number, the words, and the bins in it."""

    column: int
    words: str
    bins: Mask
    negated: bool = False


@dataclass(frozen=True, eq=False)
class Tally:
    """How many rows of each cluster are in each part: `hits` (n_clusters + 1, n_parts), `sizes` (n_clusters + 1,)."""

    hits: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @property
    def shares(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Shares of the members, and of all other rows, in each part: two arrays (n_clusters, n_parts)."""
        sizes = self.sizes[:-1, None]
        inside = self.hits[:-1] / np.maximum(sizes, 1)
        outside = (self.hits.sum(axis=0) - self.hits[:-1]) / np.maximum(self.sizes.sum() - sizes, 1)
        return inside, outside

    def hold(self, gap: float) -> Mask:
        """Whether most members, and fewer other rows by `gap`, are in a part: (n_clusters, n_parts)."""
        inside, outside = self.shares
        return np.asarray((inside >= MOST) & (inside - outside >= gap))

    @property
    def significant(self) -> Mask:
        """Whether as many other rows would hardly be in a part as often: (n_clusters, n_parts)."""
        hits, sizes = self.hits[:-1], self.sizes[:-1, None]
        share = (self.hits.sum(axis=0) - hits + 1) / (self.sizes.sum() - sizes + 2)
        at_least = np.where(hits > 0, bdtrc(np.maximum(hits - 1.0, 0.0), np.maximum(sizes, 1), share), 1.0)
        return np.asarray((at_least < LEVEL) & (sizes < self.sizes.sum()))

    @property
    def information(self) -> NDArray[np.float64]:
        """Information of being in a part about membership, in nats: (n_clusters, n_parts)."""
        own = np.stack([self.hits, self.sizes[:, None] - self.hits], axis=-1)
        return membership_information(own[:-1], own.sum(axis=0) - own[:-1])

    @property
    def between(self) -> NDArray[np.float64]:
        """Share of one cluster in a part, less that of another: (n_clusters, n_clusters, n_parts)."""
        inside = self.shares[0]
        return inside[:, None] - inside


def _tally(
    parts: Sequence[Part],
    columns: Sequence[Column],
    labels: NDArray[np.integer],
    n_clusters: int,
    rows: NDArray[np.intp],
) -> Tally:
    hits = np.zeros((n_clusters + 1, len(parts)), np.int64)
    for j in {part.column for part in parts}:
        counts = bin_counts(columns[j].take(rows), labels[rows], n_clusters)
        own = [i for i, part in enumerate(parts) if part.column == j]
        hits[:, own] = counts @ np.stack([parts[i].bins for i in own], axis=1)
    return Tally(hits, np.bincount(np.where(labels[rows] < 0, n_clusters, labels[rows]), minlength=n_clusters + 1))


def _chosen(told: NDArray[np.float64], parts: Sequence[Part], columns: Sequence[Column], members: Mask) -> list[int]:
    """The most informative part about a cluster, then those that tell most together with it, one of each column."""
    candidates: list[int] = []
    for j in np.argsort(-told, kind="stable")[: np.count_nonzero(told)].tolist():
        if len(candidates) < N_CONSIDERED and all(parts[j].column != parts[i].column for i in candidates):
            candidates.append(j)
    if not candidates:
        return []
    share = float(members.mean())
    enough = ENOUGH * float(entr(share) + entr(1.0 - share))
    holds = np.stack([parts[j].bins[columns[parts[j].column].bins] for j in candidates])  # (n_candidates, n_rows)
    chosen, together = [0], holds[0]
    best = float(_information(together[None], members)[0])
    while best < enough and len(chosen) < min(LONGEST, len(candidates)):
        gained = _information(holds & together, members)
        gained[chosen] = 0.0
        if gained.max() < BETTER * best:
            break
        chosen.append(int(gained.argmax()))
        together, best = together & holds[chosen[-1]], float(gained.max())
    return [candidates[i] for i in chosen]


def _information(masks: Mask, members: Mask) -> NDArray[np.float64]:
    """Information of masks (n_masks, n_rows) about membership, in nats."""
    own, every = masks[:, members].sum(axis=1), masks.sum(axis=1)
    inside = np.stack([own, members.sum() - own], axis=1)
    return membership_information(inside, np.stack([every, len(members) - every], axis=1) - inside)


def _told_apart(chosen: list[list[int]], apart: NDArray[np.float64]) -> list[list[int]]:
    """Add to equal names what is true of far more members of one cluster than of the others with the same name.

    `apart` is how much larger the share of a cluster in a part is than that of another: (n_clusters, n_clusters, n_parts).
    """
    longer = []
    for k, own in enumerate(chosen):
        same = [i for i, other in enumerate(chosen) if i != k and other == own]
        gap = apart[k, same].min(axis=0) if same else np.zeros(0)
        longer.append([*own, int(gap.argmax())] if gap.max(initial=0.0) >= LARGE else own)
    return longer


def _claim(part: Part, columns: Sequence[Column], tally: Tally, k: int, j: int) -> Claim:
    inside, outside = (float(shares[k, j]) for shares in tally.shares)
    column = columns[part.column]
    condition = condition_of(column, part.bins, np.ones(len(part.bins), bool)).rounded(column)
    words = part.words if inside >= PLAIN else f"mostly {part.words}"
    return Claim(words, condition, inside, outside, int(tally.sizes.sum()))


def _parts(j: int, column: Column) -> list[Part]:
    """What can be claimed of a column: its common values, levels of numbers, and missing cells."""
    if column.kind == "text":
        return []
    n, name = column.n_bins, plain_name(column.name)
    counts = np.bincount(column.bins, minlength=n + 1)
    total = max(1, int(counts[:n].sum()))
    bins, found = np.arange(n + 1), []
    if counts[n]:
        found.append(Part(j, f"no {name}", bins == n))
    if n < 2:
        return found
    for b in np.flatnonzero(counts[:n] >= COMMON * total):
        cells = column.values[column.bins == b] if column.ordered else np.zeros(1)
        value = _shown(cells[0], column) if column.ordered else column.levels[b]
        if value == OTHERS or (cells != cells[0]).any():
            continue
        found.append(Part(j, _value_words(column.name, value), bins == b))
        if not column.ordered and n > 2:
            found.append(Part(j, f"not {_value_words(column.name, value)}", (bins != b) & (bins < n), negated=True))
        if column.kind == "number" and b == 0:
            found.append(Part(j, f"{name} above {value}", (bins > 0) & (bins < n)))
    if column.ordered:
        rank = np.append((np.cumsum(counts[:n]) - counts[:n] / 2.0) / total, np.nan)  # of the middle of each bin
        for level, (low, high) in LEVELS.items():
            inside = (rank >= low) & (rank <= high)
            if 0 < counts[inside].sum() <= min(high - low + WIDER, WIDEST) * total:
                words = DATES[level] if column.kind == "date" else level
                found.append(Part(j, f"{words} {name}", inside, negated=level.startswith("not ")))
    return found


def plain_name(column: str) -> str:
    """The name of a column as ordinary words, without a unit at the end.

    Examples
    --------
    >>> [plain_name(name) for name in ("flipper_length_mm", "PetalWidth", "Total.Price", "age", "m")]
    ['flipper length', 'petal width', 'total price', 'age', 'm']
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", re.sub(r"[_.\s]+", " ", column)).strip().split()
    if len(words) > 1 and words[-1].strip("()[]").lower() in UNITS:
        words = words[:-1]
    return _cut(" ".join(word if word.isupper() else word.lower() for word in words) or column)


def _value_words(column: str, value: str) -> str:
    """A value by itself if it is a clear word, else the column and the value."""
    if value in ("true", "false"):
        return plain_name(column) if value == "true" else f"not {plain_name(column)}"
    telling = len(value) > 2 and not re.fullmatch(r"[-+\d.,:/ ]+|yes|none|other|unknown|nan|n/a", value.lower())
    return _cut(value) if telling else f"{plain_name(column)} {value}"


def _shown(value: float, column: Column) -> str:
    return as_date(value) if column.kind == "date" else short_number(value)


def _cut(text: str, most: int = 30) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
