"""Differences between a cluster and the rest, column by column: in numbers and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from neuralbayes.explain.columns import OTHERS, Column, standardized
from neuralbayes.explain.information import bin_counts, column_information, membership_information
from neuralbayes.explain.numerals import as_date, as_percent, short_number

LEAST_SD, LEAST_SHARE = 0.3, 0.1
"""Smallest difference to report: in standard deviations, and as a share of rows."""

NARROW = 0.6
"""Maximum interquartile range of a cluster, relative to that of the rest, that counts as narrow."""

MIDDLE_SD = 0.75
"""Difference in standard deviations below which a cluster with a narrow range is in the middle, not higher or lower."""

PREFERRED = 0.75
"""A value that is frequent in a cluster is reported instead of a rare one if its gap is at least this share of the
gap of the rare value."""

MOSTLY = 0.75
"""Minimum share of rows with a value to say "mostly"."""

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
    """

    column: str
    way: Way
    effect: float
    information: float
    words: str


def differences(columns: Sequence[Column], labels: NDArray[np.integer], n_clusters: int) -> list[list[Difference]]:
    """Differences of each cluster from the rest, the most informative first; one list for each cluster.

    A column has at most one difference in its values and one in its missing cells. Differences that may be due to
    chance are left out.

    Parameters
    ----------
    columns : sequence of Column
    labels : ndarray of shape (n_rows,)
        Clusters from 0 to n_clusters - 1, or -1 for rows without a cluster, which belong to the rest.
    n_clusters : int

    Examples
    --------
    >>> from neuralbayes.explain.columns import number_column
    >>> labels = np.repeat([0, 1], 20)
    >>> mass = number_column("mass", np.concatenate([np.linspace(3, 4, 20), np.linspace(5, 6, 20)]))
    >>> [found.words for cluster in differences([mass], labels, 2) for found in cluster]
    ['lower mass (3.5, rest 5.5; -1.9 sd)', 'higher mass (5.5, rest 3.5; +1.9 sd)']
    """
    found: list[list[Difference]] = [[] for _ in range(n_clusters)]
    for column in columns:
        if column.kind == "text":
            continue
        counts = bin_counts(column, labels, n_clusters)
        others = counts.sum(axis=0) - counts[:-1]
        told = column_information(column, labels, n_clusters, with_missing=False)
        gone = np.stack([counts[:-1, :-1].sum(axis=1), counts[:-1, -1]], axis=1)
        gone_others = np.stack([others[:, :-1].sum(axis=1), others[:, -1]], axis=1)
        told_missing = membership_information(gone, gone_others)
        scaled = standardized(column.values) if column.ordered and told.any() else np.empty(0)
        for k in range(n_clusters):
            one = None
            if told[k] and column.ordered:
                one = _of_numbers(column, labels == k, scaled, float(told[k]))
            elif told[k]:
                one = _of_values(column, counts[k, :-1], others[k, :-1], float(told[k]))
            found[k] += [one] if one else []
            one = _of_missing(column, gone[k], gone_others[k], float(told_missing[k])) if told_missing[k] else None
            found[k] += [one] if one else []
    return [sorted(cluster, key=lambda one: -one.information) for cluster in found]


def number_difference(
    column: str, effect: float, information: float, values: tuple[str, str] | None, *, date: bool = False
) -> Difference:
    """Describe numbers or dates that are higher or lower than in the rest by `effect` standard deviations.

    `values` are what is typical of the cluster and of the rest, in words; None leaves them out.
    """
    up = effect > 0
    word = ("later" if up else "earlier") if date else "higher" if up else "lower"
    much = "" if values is None else f"{values[0]}, rest {values[1]}; "
    words = f"{word} {column} ({much}{effect:+.1f} sd)"
    return Difference(column, "higher" if up else "lower", effect, information, words)


def _of_numbers(
    column: Column, members: NDArray[np.bool_], scaled: NDArray[np.float64], information: float
) -> Difference | None:
    present = ~column.missing
    parts = members & present, ~members & present
    effect = float(scaled[parts[0]].mean() - scaled[parts[1]].mean())
    quartiles = [np.quantile(column.values[part], [0.25, 0.5, 0.75]) for part in parts]
    (low, middle, high), (rest_low, rest_middle, rest_high) = quartiles
    inside = rest_low < middle < rest_high and high - low <= NARROW * (rest_high - rest_low)
    if inside and abs(effect) < MIDDLE_SD:
        (low, _, high), (rest_low, _, rest_high) = ([_shown(value, column) for value in part] for part in quartiles)
        words = f"medium {column.name} (half of the rows {low} to {high}, rest {rest_low} to {rest_high})"
        return Difference(column.name, "narrow", effect, information, words)
    # The words would be false of medians that differ the other way.
    if abs(effect) < LEAST_SD or effect * (middle - rest_middle) < 0:
        return None
    values = _shown(middle, column), _shown(rest_middle, column)
    if middle == rest_middle:
        means = [float(column.values[part].mean()) for part in parts]
        values = f"mean {_shown(means[0], column)}", _shown(means[1], column)
    return number_difference(column.name, effect, information, values, date=column.kind == "date")


def _shown(value: float, column: Column) -> str:
    return as_date(86_400.0 * round(value / 86_400.0)) if column.kind == "date" else short_number(value)


def _of_values(
    column: Column, hits: NDArray[np.int64], others: NDArray[np.int64], information: float
) -> Difference | None:
    own, rest = hits / max(1, hits.sum()), others / max(1, others.sum())
    gap = own - rest
    if column.levels[-1] == OTHERS:
        gap[-1] = 0.0
    level = int(gap.argmax() if gap.max() >= PREFERRED * -gap.min() else gap.argmin())
    if abs(gap[level]) < LEAST_SHARE:
        return None
    more, share = gap[level] > 0, own[level]
    if share in (0.0, 1.0):
        often, shares = ("always" if share else "never"), f"rest {as_percent(rest[level])}"
    else:
        often = ("mostly" if share >= MOSTLY else "more often") if more else "less often"
        often = "rarely" if not more and share <= 1.0 - MOSTLY else often
        shares = f"{as_percent(share)}, rest {as_percent(rest[level])}"
    words = f"{column.name} {often} {column.levels[level]} ({shares})"
    return Difference(column.name, "value" if more else "not value", float(gap[level]), information, words)


def _of_missing(
    column: Column, own: NDArray[np.int64], rest: NDArray[np.int64], information: float
) -> Difference | None:
    share, elsewhere = (float(part[1] / max(1, part.sum())) for part in (own, rest))
    if share - elsewhere < LEAST_SHARE:
        return None
    words = f"{column.name} missing in {as_percent(share)} (rest {as_percent(elsewhere)})"
    return Difference(column.name, "missing", share - elsewhere, information, words)
