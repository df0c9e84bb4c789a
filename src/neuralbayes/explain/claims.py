"""Claims about clusters: made about parts of columns, chosen on one half of the rows and checked on the other.

A claim says that a cell lies in a part of its column: among the lowest tenth, third or half of all cells, in the middle
third, at one value. It is a claim about a cluster only if it is true of more members than other rows on both halves,
by more than chance. The shares that are shown are those of the half that did not choose it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from neuralbayes.explain.columns import OTHERS, Cells, bin_counts, membership_information
from neuralbayes.explain.conditions import Condition, Mask, as_date, as_percent, condition_of, short_number

MOST, PLAIN = 0.6, 0.75
"""Minimum share of members that fulfil a claim to say "mostly", and to say it without."""

DIFFERENT, CHANCE = 0.1, 0.01
"""Minimum difference between the shares of members and of other rows, and significance level in each half."""

NEGATED = 0.85
"""Factor for the information of a claim with "not", since it is harder to read."""

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

DATES = {"low": "early", "lower": "earlier", "medium": "middle", "higher": "later", "high": "late"}

WIDER, WIDEST, COMMON = 0.15, 0.95, 0.05
"""Maximum share of the cells in a part beyond its nominal share (repeated values can make it wider), and in all, and
minimum share of the cells with a value for a claim about this value."""

UNITS = {"mm", "cm", "m", "km", "g", "kg", "mg", "s", "ms", "sec", "min", "h", "usd", "eur", "pct", "percent"}


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
        Shares of the members, and of all other rows, that fulfil it, among rows that did not choose it.
    medians : (str, str) or None
        Medians of the members and of all other rows, for numbers and dates.

    Examples
    --------
    >>> print(Claim("low mass", Condition("mass", "number", high=4.0), 0.95, 0.1, ("3.2", "5")))
    low mass (95 %, others 10 %; median 3.2, others 5)
    >>> print(Claim("Bonn", Condition("city", "category", values=("Bonn",)), 0.9, 0.0))
    city: Bonn (90 %, others 0 %)
    """

    words: str
    condition: Condition | None
    share_inside: float
    share_outside: float
    medians: tuple[str, str] | None = None

    def __str__(self) -> str:
        column = "" if self.condition is None else plain_name(self.condition.column)
        words = self.words if column in self.words else f"{column}: {self.words}"
        median = f"; median {self.medians[0]}, others {self.medians[1]}" if self.medians else ""
        return f"{words} ({as_percent(self.share_inside)}, others {as_percent(self.share_outside)}{median})"


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a column that can be claimed: the column by number, the words, and the bins in it."""

    column: int
    words: str
    bins: Mask
    negated: bool = False


@dataclass(frozen=True, eq=False)
class Tally:
    """How common parts are, (n_clusters, n_parts): the shares of the members and of all other rows, whether chance
    hardly makes the first as large, and information about membership in nats."""

    inside: NDArray[np.float64]
    outside: NDArray[np.float64]
    significant: Mask
    information: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Checked:
    """All parts of all columns, tallied on the rows that choose claims and on the rows that check them."""

    columns: Sequence[Cells]
    labels: NDArray[np.integer]
    chooses: Mask
    parts: list[Part]
    choice: Tally
    check: Tally

    def sound(self, gap: float, least: float = 0.0) -> Mask:
        """Which parts hold at least a share of the members, by `gap` more than of other rows: (n_clusters, n_parts)."""
        found = self.choice.significant & self.check.significant
        for tally in (self.choice, self.check):
            found &= (tally.inside >= least) & (tally.inside - tally.outside >= gap)
        return found

    def told(self, gap: float, least: float = 0.0) -> NDArray[np.float64]:
        """Information of sound parts about membership, 0 for others: (n_clusters, n_parts)."""
        weight = np.array([NEGATED if part.negated else 1.0 for part in self.parts])
        return np.where(self.sound(gap, least), self.choice.information * weight, 0.0)

    def claim(self, k: int, j: int) -> Claim:
        """The claim that members of cluster k are in part j."""
        part, inside = self.parts[j], float(self.check.inside[k, j])
        column = self.columns[part.column]
        often = "" if inside >= PLAIN else "mostly " if inside >= MOST else "more often "
        condition = condition_of(column, part.bins, np.ones(len(part.bins), bool)).rounded(column)
        medians = None if condition.missing else self._medians(column, k)
        return Claim(often + part.words, condition, inside, float(self.check.outside[k, j]), medians)

    def _medians(self, column: Cells, k: int) -> tuple[str, str] | None:
        """Medians of the members of cluster k and of all other rows, for numbers and dates."""
        own, rest = ((self.labels == k) & ~column.missing, (self.labels != k) & ~column.missing)
        if not column.ordered or not own.any() or not rest.any():
            return None
        first, second = (_shown(float(np.median(column.values[rows])), column) for rows in (own, rest))
        return first, second


def check_claims(columns: Sequence[Cells], labels: NDArray[np.integer], n_clusters: int) -> Checked:
    """Tally what can be claimed about each cluster on two halves of the rows."""
    chooses = half_of_each(labels, np.random.default_rng(0))
    categories_first = sorted(range(len(columns)), key=lambda j: columns[j].ordered)  # a value says more than "low"
    parts = [part for j in categories_first for part in _parts(j, columns[j])]
    choice, check = (_tally(parts, columns, labels, n_clusters, half) for half in (chooses, ~chooses))
    return Checked(columns, labels, chooses, parts, choice, check)


def differences(checked: Checked, n: int) -> list[list[Claim]]:
    """At most `n` claims about each cluster, one for each column, the most informative first.

    Examples
    --------
    >>> import pandas as pd
    >>> from neuralbayes.explain.columns import as_cells
    >>> checked = check_claims(as_cells(pd.DataFrame({"mass": np.arange(90) / 4})), np.arange(90) // 30, 3)
    >>> for found in differences(checked, 1):
    ...     print(found[0])
    low mass (100 %, others 0 %; median 3.62, others 14.9)
    medium mass (100 %, others 0 %; median 11.1, others 11.1)
    high mass (100 %, others 0 %; median 18.6, others 7.38)
    """
    told = checked.told(DIFFERENT)
    return [[checked.claim(k, j) for j in strongest(told[k], checked.parts, n)] for k in range(len(told))]


def strongest(told: NDArray[np.float64], parts: Sequence[Part], n: int) -> list[int]:
    """At most `n` parts with the most information, one of each column."""
    found: dict[int, int] = {}
    for j in np.argsort(-told, kind="stable")[: np.count_nonzero(told)].tolist():
        if len(found) < n:
            found.setdefault(parts[j].column, j)
    return list(found.values())


def half_of_each(labels: NDArray[np.integer], rng: np.random.Generator) -> Mask:
    """A random half of the rows of each cluster."""
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    chosen = np.zeros(len(labels), bool)
    chosen[order[::2]] = True
    return chosen


def _tally(
    parts: Sequence[Part], columns: Sequence[Cells], labels: NDArray[np.integer], n_clusters: int, half: Mask
) -> Tally:
    rows, own = np.flatnonzero(half), labels[half]
    every = np.zeros((n_clusters + 1, len(parts)), np.int64)
    for j in {part.column for part in parts}:
        counts = bin_counts(columns[j].take(rows), own, n_clusters)
        of_column = [i for i, part in enumerate(parts) if part.column == j]
        every[:, of_column] = counts @ np.stack([parts[i].bins for i in of_column], axis=1)
    sizes = np.bincount(own[own >= 0], minlength=n_clusters)[:, None]
    hits, misses, n_others = every[:-1], every.sum(axis=0) - every[:-1], len(own) - sizes
    share = (misses + 1) / (n_others + 2)
    at_least = np.where(hits > 0, bdtrc(np.maximum(hits - 1.0, 0.0), np.maximum(sizes, 1), share), 1.0)
    return Tally(
        hits / np.maximum(sizes, 1),
        misses / np.maximum(n_others, 1),
        np.asarray((at_least < CHANCE) & (n_others > 0)),
        membership_information(np.stack([hits, sizes - hits], axis=-1), np.stack([misses, n_others - misses], axis=-1)),
    )


def _parts(j: int, column: Cells) -> list[Part]:
    """What can be claimed of a column: its common values, levels of numbers, and missing cells."""
    if column.kind == "text":
        return []
    n, name = column.n_bins, plain_name(column.name)
    counts = np.bincount(column.bins, minlength=n + 1)
    total = max(1, int(counts[:n].sum()))
    bins, found = np.arange(n + 1), []
    if counts[n]:
        found.append(Part(j, f"{name} missing", bins == n))
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
                *qualified, word = level.split()
                words = " ".join([*qualified, DATES[word] if column.kind == "date" else word, name])
                found.append(Part(j, words, inside, negated="not" in qualified))
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
    return _shortened(" ".join(word if word.isupper() else word.lower() for word in words) or column)


def _value_words(column: str, value: str) -> str:
    """A value by itself if it is a clear word, else the column and the value."""
    if value in ("true", "false"):
        return plain_name(column) if value == "true" else f"not {plain_name(column)}"
    telling = len(value) > 2 and not re.fullmatch(r"[-+\d.,:/ ]+|yes|none|other|unknown|nan|n/a", value.lower())
    return _shortened(value) if telling else f"{plain_name(column)} {value}"


def _shown(value: float, column: Cells) -> str:
    return as_date(86_400.0 * round(value / 86_400.0)) if column.kind == "date" else short_number(value)


def _shortened(text: str, most: int = 30) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
