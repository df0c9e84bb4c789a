"""Differences between a cluster and the rest, column by column: in numbers and in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from neuralbayes.clusters.cells import OTHERS, Column
from neuralbayes.clusters.evidence import bin_counts, membership_information
from neuralbayes.clusters.numerals import as_date, short_number

FENCE = 3.0
"""Largest distance from the quartiles, in interquartile ranges. Numbers further out are moved to this distance."""

LEAST_SD, LEAST_SHARE = 0.3, 0.1
"""Smallest difference to report: in standard deviations, and as a share of rows."""

NARROW = 0.6
"""Maximum interquartile range of a cluster, relative to that of the rest, that counts as narrow."""

PREFERRED = 0.75
"""A value that is frequent in a cluster is reported instead of a rare one if its gap is at least this share of the
gap of the rare value."""

MIDDLE_SD = 0.75
"""Difference in standard deviations below which a cluster with a narrow range is "medium", not higher or lower."""

MOSTLY = 0.75
"""Minimum share of rows with a value to say "mostly"."""

ENOUGH = 0.6
"""Minimum share of the entropy of membership that a single difference must explain to be a name by itself."""

LONGEST = 3
"""Maximum number of differences in a name."""

UNITS = {"mm", "cm", "m", "km", "g", "kg", "mg", "s", "ms", "sec", "min", "h", "usd", "eur", "pct", "percent"}

Way = Literal["higher", "lower", "narrow", "value", "not value", "missing"]


@dataclass(frozen=True)
class Difference:
    """One difference between a cluster and the rest.

    Attributes
    ----------
    column : str
    way : {"higher", "lower", "narrow", "value", "not value", "missing"}
        Numbers are higher or lower than in the rest, or in a narrow range; a value of a category is more or less
        frequent; or more cells are missing.
    effect : float
        Difference in standard deviations of the column, or between shares of rows.
    information : float
        Information of the column about membership in the cluster, in nats.
    words : str
        Full description.
    short : str
        Description in a few words, for a name.
    """

    column: str
    way: Way
    effect: float
    information: float
    words: str
    short: str


def differences(column: Column, labels: NDArray[np.integer], n_clusters: int) -> list[list[Difference]]:
    """Find the differences of each cluster in a column: at most one in the values and one in the missing cells.

    Parameters
    ----------
    column : Column
    labels : ndarray of shape (n_rows,)
        Clusters from 0 to n_clusters - 1, or -1 for rows without a cluster.
    n_clusters : int

    Returns
    -------
    list of lists of Difference
        One list for each cluster.

    Examples
    --------
    >>> from neuralbayes.clusters.cells import number_column
    >>> labels = np.repeat([0, 1], 20)
    >>> mass = number_column("mass", np.concatenate([np.linspace(3, 4, 20), np.linspace(5, 6, 20)]))
    >>> [found.words for cluster in differences(mass, labels, 2) for found in cluster]
    ['lower mass (3.5, rest 5.5; -1.9 sd)', 'higher mass (5.5, rest 3.5; +1.9 sd)']
    """
    found: list[list[Difference]] = [[] for _ in range(n_clusters)]
    if column.kind == "text":
        return found
    counts = bin_counts(column, labels, n_clusters)
    totals = counts.sum(axis=0)
    scaled = standardized(column.values) if column.ordered else np.empty(0)
    for k in range(n_clusters):
        members = labels == k
        if not 0 < members.sum() < len(labels):
            continue
        others = totals - counts[k]
        if information := membership_information(counts[k][:-1], others[:-1]):
            if column.ordered:
                one = _of_numbers(column, members, scaled, information)
            else:
                one = _of_values(column, counts[k], others, information)
            found[k] += [one] if one else []
        missing = [np.array([part[:-1].sum(), part[-1]]) for part in (counts[k], others)]
        shares = [part[1] / max(1, part.sum()) for part in missing]
        if shares[0] - shares[1] >= LEAST_SHARE and (information := membership_information(*missing)):
            words = f"{column.name} missing in {_percent(shares[0])} (rest {_percent(shares[1])})"
            short = f"no {plain_name(column.name)}"
            found[k].append(Difference(column.name, "missing", shares[0] - shares[1], information, words, short))
    return found


def within_fences(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Clip outliers to the fences of their column; the shape stays the same, and so do NaNs.

    Examples
    --------
    >>> within_fences(np.array([1.0, 2.0, 3.0, 4.0, 1e9]))
    array([ 1.,  2.,  3.,  4., 10.])
    """
    first, third = quantiles(values, [0.25, 0.75])
    reach = FENCE * (third - first)
    low, high = first - reach, third + reach
    if (flat := reach == 0).any():  # at least half of the values are equal, so use outer quantiles
        outer = quantiles(values, [0.01, 0.99])
        low, high = np.where(flat, outer[0], low), np.where(flat, outer[1], high)
    return np.asarray(values.clip(low, high))


def quantiles(values: NDArray[np.float64], shares: Sequence[float]) -> list[NDArray[np.float64]]:
    """Compute ``np.nanquantile(values, shares, axis=0)``, several times faster if there are no NaNs.

    Examples
    --------
    >>> quantiles(np.array([[4.0, 0.0], [1.0, 0.0], [2.0, 8.0]]), [0.25, 0.5])
    [array([1.5, 0. ]), array([2., 0.])]
    """
    if not values.size or np.isnan(values).any():
        return list(np.nanquantile(values, shares, axis=0))
    columns = values.T.copy()  # contiguous columns, which are partitioned for one quantile at a time
    last = len(values) - 1
    found = []
    for share in shares:
        below = int(share * last)
        columns.partition(below, axis=-1)
        low, beyond = columns[..., below], share * last - below
        high = columns[..., below + 1 :].min(axis=-1) if below < last else low
        step = high - low
        found.append(low + step * beyond if beyond < 0.5 else high - step * (1.0 - beyond))
    return found


def standardized(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Clip outliers, subtract the mean and divide by the standard deviation: (n_rows,) -> (n_rows,); NaNs stay.

    Examples
    --------
    >>> standardized(np.array([1.0, 2.0, 3.0, 4.0, 1e9])).round(1)  # the last one counts as 10
    array([-0.9, -0.6, -0.3,  0. ,  1.9])
    """
    if not np.isfinite(values).any():
        return np.zeros(len(values))
    inside = within_fences(values)
    return np.asarray((inside - np.nanmean(inside)) / (float(np.nanstd(inside)) or 1.0))


def number_difference(
    column: str, effect: float, values: tuple[float, float] | None, information: float, *, date: bool = False
) -> Difference:
    """Describe numbers or dates that are higher or lower than in the rest by `effect` standard deviations.

    `values` are typical values of the cluster and of the rest, or None to leave them out.
    """
    up = effect > 0
    word = ("later" if up else "earlier") if date else "higher" if up else "lower"
    short = ("late" if up else "early") if date else "high" if up else "low"
    show = as_date if date else short_number
    much = "" if values is None else f"{show(values[0])}, rest {show(values[1])}; "
    words = f"{word} {column} ({much}{effect:+.1f} sd)"
    return Difference(column, "higher" if up else "lower", effect, information, words, f"{short} {plain_name(column)}")


def _of_numbers(
    column: Column, members: NDArray[np.bool_], scaled: NDArray[np.float64], information: float
) -> Difference | None:
    present = ~column.missing
    own, rest = members & present, ~members & present
    effect = float(scaled[own].mean() - scaled[rest].mean())
    show = as_date if column.kind == "date" else short_number
    quartiles = [np.quantile(column.values[part], [0.25, 0.5, 0.75]) for part in (own, rest)]
    ranges = [quartile[2] - quartile[0] for quartile in quartiles]
    narrow = ranges[0] <= NARROW * ranges[1]
    if abs(effect) >= (MIDDLE_SD if narrow else LEAST_SD):
        medians = _day(quartiles[0][1], column), _day(quartiles[1][1], column)
        return number_difference(column.name, effect, medians, information, date=column.kind == "date")
    if narrow:
        (low, high), (rest_low, rest_high) = (
            [show(_day(quartile[i], column)) for i in (0, 2)] for quartile in quartiles
        )
        words = f"medium {column.name} (half of the rows {low} to {high}, rest {rest_low} to {rest_high})"
        return Difference(column.name, "narrow", effect, information, words, f"medium {plain_name(column.name)}")
    return None


def _of_values(
    column: Column, hits: NDArray[np.int64], others: NDArray[np.int64], information: float
) -> Difference | None:
    n = len(column.levels)
    own, rest = (part[:n] / max(1, part[:n].sum()) for part in (hits, others))
    gap = own - rest
    if column.levels[-1] == OTHERS:
        gap[-1] = 0.0
    level = int(gap.argmax() if gap.max() >= PREFERRED * -gap.min() else gap.argmin())
    if abs(gap[level]) < LEAST_SHARE:
        return None
    value = column.levels[level]
    there, elsewhere = _percent(own[level]), _percent(rest[level])
    named = _named(column.name, value)
    if gap[level] > 0:
        if own[level] == 1.0:
            words = f"{column.name} always {value} (rest {elsewhere})"
        else:
            often = "mostly" if own[level] >= MOSTLY else "more often"
            words = f"{column.name} {often} {value} ({there}, rest {elsewhere})"
        short = named if own[level] >= MOSTLY else f"often {named}"
        return Difference(column.name, "value", float(gap[level]), information, words, short)
    if own[level] == 0.0:
        words = f"{column.name} never {value} (rest {elsewhere})"
    else:
        rare = "rarely" if own[level] <= 1.0 - MOSTLY else "less often"
        words = f"{column.name} {rare} {value} ({there}, rest {elsewhere})"
    short = f"{'not' if own[level] <= 1.0 - MOSTLY else 'less often'} {named}"
    return Difference(column.name, "not value", float(gap[level]), information, words, short)


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


def _named(column: str, value: str) -> str:
    """A value by itself if it is a clear word, else the column and the value."""
    telling = len(value) > 2 and not re.fullmatch(r"[-+\d.,:/ ]+|yes|true|false|none|other|unknown", value.lower())
    return _cut(value) if telling else f"{plain_name(column)} {value}"


def _cut(text: str, most: int = 30) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _day(value: float, column: Column) -> float:
    """Round a date, in seconds, to midnight; leave a number unchanged."""
    return float(86_400.0 * round(value / 86_400.0)) if column.kind == "date" else float(value)


def _percent(share: float) -> str:
    """Format a share as a percentage; "0 %" and "100 %" are exact.

    Examples
    --------
    >>> _percent(0.004), _percent(0.996), _percent(0.5)
    ('0.4 %', '99.6 %', '50 %')
    """
    percent = 100.0 * share
    return f"{percent:.0f} %" if percent in (0.0, 100.0) or 0.5 <= percent < 99.5 else f"{percent:.1f} %"


def cluster_names(ranked: Sequence[Sequence[Difference]], entropies: Sequence[float]) -> list[str]:
    """Make a short, unique name for each cluster.

    Parameters
    ----------
    ranked : sequence of sequences of Difference
        Differences of each cluster, with the most informative first.
    entropies : sequence of float
        Entropy of membership in each cluster, in nats. If the first difference explains most of it, the name has only
        this difference.

    Examples
    --------
    >>> big, small = (Difference("mass", way, 1.0, 0.6, "", f"{word} mass")
    ...     for way, word in (("higher", "high"), ("lower", "low")))
    >>> cluster_names([[big], [small], [big], []], [0.69] * 4)
    ['high mass', 'low mass', 'high mass (2)', 'nothing special']
    >>> cluster_names([[]], [0.0])
    ['all rows']
    """
    if len(ranked) == 1:
        return ["all rows"]
    phrases = [list(dict.fromkeys(found.short for found in cluster)) for cluster in ranked]
    lengths = [
        1 if not cluster or cluster[0].information >= ENOUGH * entropy else 2
        for cluster, entropy in zip(ranked, entropies, strict=True)
    ]
    for _ in range(LONGEST):
        names = [", ".join(parts[:n]) or "nothing special" for parts, n in zip(phrases, lengths, strict=True)]
        for k, name in enumerate(names):
            if names.count(name) > 1:
                lengths[k] = min(lengths[k] + 1, LONGEST)
    return [name if name not in names[:k] else f"{name} ({names[: k + 1].count(name)})" for k, name in enumerate(names)]
