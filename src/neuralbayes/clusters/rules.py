"""Rules that set a cluster apart from the rest: at most three conditions, in the units of the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from neuralbayes.clusters.cells import Column, Kind
from neuralbayes.clusters.evidence import column_information
from neuralbayes.clusters.numerals import as_date, as_number, rounder_dates, rounder_numbers
from neuralbayes.clusters.rule_search import Draft, Mask, RuleSearch

MAX_CONDITIONS = 3
MAX_ROWS, ROWS_A_CLUSTER = 5_000, 200
"""Maximum number of rows, drawn at random, to search rules on: the larger of a total and a number per cluster.
Precision and recall are measured on all rows."""

MAX_COLUMNS = 50
"""Maximum number of columns to make rules of: the most informative about the clusters."""

GAIN = 0.01
"""Minimum gain of F1 for one more condition, since shorter rules are easier to read."""

LOOSE_GAIN = 0.03
"""Minimum gain of F1 for "at least two of" over a rule with all conditions required."""

LOST = 0.002
"""Maximum loss of F1 for a rounder threshold."""


@dataclass(frozen=True)
class Condition:
    """A condition on the cells of one column.

    Attributes
    ----------
    column : str
    kind : {"number", "date", "category"}
    low, high : float or None
        Numbers, or dates in seconds since 1970, must be above `low` and at most `high`.
    values : tuple of str
        A category must be one of these, or none of them if `excluded`.
    excluded : bool
    missing : bool
        Whether missing cells satisfy the condition.
    """

    column: str
    kind: Kind
    low: float | None = None
    high: float | None = None
    values: tuple[str, ...] = ()
    excluded: bool = False
    missing: bool = False

    def holds(self, column: Column) -> Mask:
        """Which cells satisfy the condition."""
        if column.ordered:
            inside = np.ones(len(column.values), bool)
            if self.missing:
                return column.missing
            if self.low is not None:
                inside &= column.values > self.low
            if self.high is not None:
                inside &= column.values <= self.high
            return inside & ~column.missing
        named = np.array([level in self.values for level in column.levels], bool)
        return np.append(named != self.excluded, self.missing)[column.bins]

    def __str__(self) -> str:
        if self.kind == "category":
            listed = [*self.values, *(["missing"] if self.missing != self.excluded else [])]
            return f"{self.column} is {'not ' if self.excluded else ''}{_either(listed)}"
        if self.missing:
            return f"{self.column} is missing"
        if self.low is None and self.high is None:
            return f"{self.column} is not missing"
        show = as_date if self.kind == "date" else as_number
        low, high = (None if bound is None else show(bound) for bound in (self.low, self.high))
        if low is None:
            return f"{self.column} ≤ {high}"
        return f"{self.column} > {low}" if high is None else f"{low} < {self.column} ≤ {high}"


@dataclass(frozen=True)
class Rule:
    """Conditions of which at least `needed` must hold, with precision and recall for the cluster's rows."""

    conditions: tuple[Condition, ...]
    needed: int
    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        total = self.precision + self.recall
        return 2.0 * self.precision * self.recall / total if total else 0.0

    def __str__(self) -> str:
        if self.needed == len(self.conditions):
            return " and ".join(map(str, self.conditions))
        if self.needed == 1:
            return " or ".join(map(str, self.conditions))
        return f"at least {self.needed} of: {'; '.join(map(str, self.conditions))}"

    def holds(self, columns: Sequence[Column]) -> Mask:
        """Which rows satisfy the rule."""
        by_name = {column.name: column for column in columns}
        counts = np.sum([condition.holds(by_name[condition.column]) for condition in self.conditions], axis=0)
        return np.asarray(counts >= self.needed)


def find_rules(columns: Sequence[Column], labels: NDArray[np.integer], n_clusters: int) -> list[Rule | None]:
    """Find a rule for each cluster; None if it has no rows or all rows, or if no column varies.

    Parameters
    ----------
    columns : sequence of Column
    labels : ndarray of shape (n_rows,)
        From 0 to n_clusters - 1; rows labelled -1 are in no cluster.
    n_clusters : int

    Examples
    --------
    >>> import pandas as pd
    >>> from neuralbayes.clusters.cells import as_columns
    >>> frame = pd.DataFrame({"mass": [3.1, 3.4, 3.9, 5.2, 5.4, 5.8], "sex": ["f", "m", "f", "m", "f", "m"]})
    >>> [str(rule) for rule in find_rules(as_columns(frame), np.array([0, 0, 0, 1, 1, 1]), 2)]
    ['mass ≤ 5', 'mass > 5']
    """
    usable = [column for column in columns if column.kind != "text" and len(np.unique(column.bins)) > 1]
    if len(usable) > MAX_COLUMNS:
        told = [float(column_information(column, labels, n_clusters).sum()) for column in usable]
        usable = [usable[j] for j in np.sort(np.argsort(told)[::-1][:MAX_COLUMNS])]
    counts = np.bincount(labels[labels >= 0], minlength=n_clusters)
    if not usable:
        return [None] * n_clusters
    drawn = _drawn(len(labels), max(MAX_ROWS, ROWS_A_CLUSTER * n_clusters))
    searched = [column.take(drawn) for column in usable]
    search = RuleSearch(searched)
    rules: list[Rule | None] = []
    for k in range(n_clusters):
        if not 0 < counts[k] < len(labels):
            rules.append(None)
            continue
        draft = _draft(search, labels[drawn] == k)
        conditions = tuple(_condition(searched[j], allowed) for j, allowed in draft.parts)
        rule = Rule(conditions, draft.needed, 0.0, 0.0)
        rule = _rounded(rule, searched, labels[drawn] == k)
        rules.append(_measured(rule, usable, labels == k))
    return rules


def _drawn(n_rows: int, n: int) -> NDArray[np.intp]:
    """Draw at most `n` rows, ascending, always the same."""
    return np.arange(n_rows) if n_rows <= n else np.sort(np.random.default_rng(0).choice(n_rows, n, replace=False))


def _draft(search: RuleSearch, members: Mask) -> Draft:
    """The shortest rule that is nearly as good as longer ones; "at least n of" rules only if they are much better."""
    found = search.by_length(members, MAX_CONDITIONS)
    best = found[0]
    for longer in found[1:]:
        if longer.f1 >= best.f1 + GAIN * (len(longer.parts) - len(best.parts)):
            best = longer
    loose = search.some_of(found, members, MAX_CONDITIONS)
    loose = [draft for draft in loose if draft.f1 >= best.f1 + LOOSE_GAIN + GAIN * (len(draft.parts) - 2)]
    return max(loose, key=lambda draft: draft.f1 - GAIN * len(draft.parts), default=best)


def _condition(column: Column, allowed: Mask) -> Condition:
    """Convert allowed bins to a condition, with thresholds at the largest values of bins."""
    n = column.n_bins
    there = np.bincount(column.bins, minlength=n + 1) > 0
    if column.ordered:
        inside = np.flatnonzero(allowed[:n])
        if not len(inside):
            return Condition(column.name, column.kind, missing=True)
        low = None if inside[0] == 0 else float(column.edges[inside[0] - 1])
        high = None if inside[-1] == n - 1 else float(column.edges[inside[-1]])
        return Condition(column.name, column.kind, low, high)
    named = [column.levels[i] for i in range(n) if allowed[i]]
    others = [column.levels[i] for i in range(n) if not allowed[i] and there[i]]
    if not named and allowed[n]:
        return Condition(column.name, "category", missing=True)
    if len(others) < len(named):
        return Condition(
            column.name, "category", values=tuple(others), excluded=True, missing=bool(allowed[n]) or not there[n]
        )
    return Condition(column.name, "category", values=tuple(named), missing=bool(allowed[n]) and bool(there[n]))


def _measured(rule: Rule, columns: Sequence[Column], members: Mask) -> Rule:
    claimed = rule.holds(columns)
    right = float((claimed & members).sum())
    return replace(rule, precision=right / max(1, int(claimed.sum())), recall=right / max(1, int(members.sum())))


def _rounded(rule: Rule, columns: Sequence[Column], members: Mask) -> Rule:
    """Round each threshold as far as F1 allows, or drop it."""
    by_name = {column.name: column for column in columns}
    best = _measured(rule, columns, members)
    least = best.f1 - LOST
    for i, condition in enumerate(rule.conditions):
        column = by_name[condition.column]
        for bound, other in (("low", "high"), ("high", "low")):
            value = getattr(condition, bound)
            if value is None:
                continue
            unbounded = [] if getattr(best.conditions[i], other) is None else [None]
            for candidate in [*unbounded, *_rounder(value, column)]:
                old = best.conditions[i]
                changed = replace(old, low=candidate) if bound == "low" else replace(old, high=candidate)
                conditions = (*best.conditions[:i], changed, *best.conditions[i + 1 :])
                found = _measured(replace(best, conditions=conditions), columns, members)
                if found.f1 >= least and changed.holds(column).any():
                    best = found
                    break
    return best


def _rounder(value: float, column: Column) -> Iterator[float]:
    """Thresholds, the roundest first; the last one lies between the same two cells as `value`."""
    present = column.values[~column.missing]
    above = present[present > value]
    after = float(above.min()) if len(above) else value
    if column.kind == "date":
        return rounder_dates(value, after)
    low, high = np.quantile(present, [0.05, 0.95])
    return rounder_numbers(value, after, float(high - low) or abs(value))


def _either(words: Sequence[str]) -> str:
    """Join words as "a, b or c"."""
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
