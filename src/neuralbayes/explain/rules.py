"""Rules that set a cluster apart from the rest: at most three conditions, all of which must hold.

Given the other conditions of a rule, the best interval of a column, or the best set of values of a category, is found
exactly (:func:`_best_intervals`, :func:`_best_values`). A beam search adds conditions; then each condition is optimised
again while the others are fixed, until F1 stops improving.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from neuralbayes.explain.columns import Cells, column_information
from neuralbayes.explain.conditions import Condition, Mask, condition_of, rounder

MAX_CONDITIONS, MAX_COLUMNS, MAX_VALUES = 3, 30, 4
"""Maximum number of conditions of a rule, of columns to choose from (the most informative), and of values that a
condition names or excludes."""

MAX_ROWS, ROWS_A_CLUSTER = 4_000, 200
"""Maximum number of rows, drawn at random, to search rules on: the larger of a total and a number per cluster.
Precision and recall are measured on all rows."""

BEAM, IMPROVED, ROUNDS = 6, 3, 3
"""Number of rules to keep at each length, number of those to optimise again, and how many times."""

GAIN, LOST = 0.01, 0.002
"""Minimum gain of F1 for one more condition, and maximum loss for a rounder threshold: both make rules readable."""


@dataclass(frozen=True)
class Rule:
    """Conditions that must all hold, with the precision and the recall of the rule for the rows of a cluster."""

    conditions: tuple[Condition, ...]
    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        total = self.precision + self.recall
        return 2.0 * self.precision * self.recall / total if total else 0.0

    def __str__(self) -> str:
        return " and ".join(map(str, self.conditions))

    def holds(self, columns: Sequence[Cells]) -> Mask:
        """Which rows satisfy the rule."""
        by_name = {column.name: column for column in columns}
        return np.asarray(np.all([condition.holds(by_name[condition.column]) for condition in self.conditions], axis=0))


@dataclass(frozen=True, eq=False)
class Draft:
    """A rule in bins: for each condition a column by number and its allowed bins."""

    parts: tuple[tuple[int, Mask], ...]
    f1: float


def find_rules(columns: Sequence[Cells], labels: NDArray[np.integer], n_clusters: int) -> list[Rule | None]:
    """Find a rule for each cluster; None if it has no rows or all rows, or if no column varies.

    Examples
    --------
    >>> import pandas as pd
    >>> from neuralbayes.explain.columns import as_cells
    >>> frame = pd.DataFrame({"mass": [3.1, 3.4, 3.9, 5.2, 5.4, 5.8], "sex": ["f", "m", "f", "m", "f", "m"]})
    >>> [str(rule) for rule in find_rules(as_cells(frame), np.array([0, 0, 0, 1, 1, 1]), 2)]
    ['mass ≤ 5', 'mass > 5']
    """
    usable = [column for column in columns if column.kind != "text" and (column.bins != column.bins[:1]).any()]
    if not usable:
        return [None] * n_clusters
    drawn = np.random.default_rng(0).permutation(len(labels))
    drawn = np.sort(drawn[: max(MAX_ROWS, ROWS_A_CLUSTER * n_clusters)])
    searched, own = [column.take(drawn) for column in usable], labels[drawn]
    told = np.stack([column_information(column, own, n_clusters) for column in searched])  # (n_columns, n_clusters)
    rules: list[Rule | None] = []
    for k in range(n_clusters):
        members = labels == k
        if not 0 < members.sum() < len(labels):
            rules.append(None)
            continue
        chosen = [searched[j] for j in np.sort(np.argsort(-told[:, k], kind="stable")[:MAX_COLUMNS])]
        there = [np.bincount(column.bins, minlength=column.n_bins + 1) > 0 for column in chosen]
        conditions = [condition_of(chosen[j], allowed, there[j]) for j, allowed in _search(chosen, own == k).parts]
        rounded = _rounded(Rule(tuple(conditions), 0.0, 0.0), chosen, own == k)
        rules.append(_measured(rounded, usable, members))
    return rules


def _search(columns: Sequence[Cells], members: Mask) -> Draft:
    """The shortest rule that is nearly as good as longer ones."""
    bins = np.stack([column.bins for column in columns], axis=1)
    beam = _extended(columns, bins, members, ())
    best = beam[0]
    for length in range(2, min(MAX_CONDITIONS, len(columns)) + 1):
        longer = [found for draft in beam for found in _extended(columns, bins, members, draft.parts)]
        longer.sort(key=lambda draft: -draft.f1)
        improved = [_improved(columns, bins, members, draft) for draft in longer[:IMPROVED]]
        beam = sorted([*improved, *longer[IMPROVED:BEAM]], key=lambda draft: -draft.f1)
        if beam[0].f1 >= best.f1 + GAIN * (length - len(best.parts)):
            best = beam[0]
    return best


def _improved(columns: Sequence[Cells], bins: NDArray[np.int64], members: Mask, draft: Draft) -> Draft:
    """Optimise each condition with the others fixed, until F1 stops improving."""
    parts, best = list(draft.parts), draft.f1
    for _ in range(ROUNDS):
        before = best
        for i in range(len(parts)):
            found = _extended(columns, bins, members, (*parts[:i], *parts[i + 1 :]))[0]
            if found.f1 > best + 1e-9:
                parts[i], best = found.parts[-1], found.f1
        if best <= before + 1e-9:
            break
    return Draft(tuple(parts), best)


def _extended(
    columns: Sequence[Cells], bins: NDArray[np.int64], members: Mask, parts: tuple[tuple[int, Mask], ...]
) -> list[Draft]:
    """The rules with one more condition: the best one on each column that `parts` do not use; the best rules first."""
    within = np.logical_and.reduce([allowed[bins[:, j]] for j, allowed in parts]) if parts else np.ones(len(bins), bool)
    taken = {j for j, _ in parts}
    free = [j for j in range(len(columns)) if j not in taken]
    width = max(column.n_bins for column in columns) + 1
    flat = bins[within][:, free] + np.arange(len(free)) * width
    own = members[within]
    size = np.bincount(flat.ravel(), minlength=len(free) * width).reshape(len(free), width)
    hits = np.bincount(flat[own].ravel(), minlength=len(free) * width).reshape(len(free), width)
    wanted = float(members.sum())
    ordered = np.array([columns[j].ordered for j in free])
    last = np.array([columns[j].n_bins for j in free])
    intervals = iter(_best_intervals(hits[ordered], size[ordered], last[ordered], wanted))
    found = []
    for i, j in enumerate(free):
        n = last[i] + 1
        f1, allowed = next(intervals) if ordered[i] else _best_values(hits[i, :n], size[i, :n], wanted)
        found.append(Draft((*parts, (j, allowed)), f1))
    return sorted(found, key=lambda draft: -draft.f1)[:BEAM]


def _best_intervals(
    hits: NDArray[np.int64], size: NDArray[np.int64], missing: NDArray[np.int64], wanted: float
) -> Iterator[tuple[float, Mask]]:
    r"""The interval of bins, or the bin of missing cells, with the highest F1 in each column, by Dinkelbach's method.

    From members and all rows in each bin (n_columns, n_bins), the number of the bin of missing cells (n_columns,), and
    the number of members w. F1 is :math:`\max_I 2 h(I) / (w + s(I))` with h hits among s rows. It is at least f where
    :math:`\max_I \sum_{b \in I} (2 h_b - f s_b) \ge f w`: a largest sum of neighbours, found with cumulative sums.
    """
    rows = np.arange(len(hits))
    lost = 2.0 * hits[rows, missing] / (wanted + size[rows, missing])
    ends = np.zeros((2, len(hits), hits.shape[1] + 1))
    for end, counts in zip(ends, (hits, size), strict=True):
        end[:, 1:] = np.cumsum(np.where(np.arange(hits.shape[1]) == missing[:, None], 0, counts), axis=1)
    f1 = 2.0 * ends[0, :, -1] / (wanted + ends[1, :, -1])  # of the interval of all bins
    first, last = np.zeros(len(hits), np.intp), missing.astype(np.intp)
    for _ in range(20):  # converges in about four steps
        height = 2.0 * ends[0] - f1[:, None] * ends[1]
        lowest = np.minimum.accumulate(height, axis=1)
        stop = (height[:, 1:] - lowest[:, :-1]).argmax(axis=1) + 1
        start = np.where(np.arange(height.shape[1]) < stop[:, None], height, np.inf).argmin(axis=1)
        inside = ends[:, rows, stop] - ends[:, rows, start]
        better = 2.0 * inside[0] / (wanted + inside[1])
        grown = better > f1 + 1e-12
        first, last, f1 = np.where(grown, start, first), np.where(grown, stop, last), np.where(grown, better, f1)
        if not grown.any():
            break
    for i, n in enumerate(missing):
        allowed = np.zeros(n + 1, bool)
        allowed[slice(n, None) if lost[i] > f1[i] else slice(first[i], min(last[i], n))] = True
        yield float(max(lost[i], f1[i])), allowed


def _best_values(hits: NDArray[np.int64], size: NDArray[np.int64], wanted: float) -> tuple[float, Mask]:
    """The best set of values, including missing, that names few values or excludes few."""
    order = np.argsort(-hits / np.maximum(size, 1), kind="stable")
    f1 = 2.0 * np.cumsum(hits[order]) / (wanted + np.cumsum(size[order]))
    n = np.arange(1, len(hits) + 1)
    f1[(n > MAX_VALUES) & (n < int((size > 0).sum()) - MAX_VALUES)] = -1.0
    best = int(f1.argmax())
    allowed = np.zeros(len(hits), bool)
    allowed[order[: best + 1]] = True
    return float(f1[best]), allowed


def _measured(rule: Rule, columns: Sequence[Cells], members: Mask) -> Rule:
    claimed = rule.holds(columns)
    right = float((claimed & members).sum())
    return replace(rule, precision=right / max(1, int(claimed.sum())), recall=right / max(1, int(members.sum())))


def _rounded(rule: Rule, columns: Sequence[Cells], members: Mask) -> Rule:
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
            old = best.conditions[i]
            unbounded = [] if getattr(old, other) is None else [None]
            for candidate in [*unbounded, *rounder(value, column)]:
                changed = replace(old, low=candidate) if bound == "low" else replace(old, high=candidate)
                conditions = (*best.conditions[:i], changed, *best.conditions[i + 1 :])
                found = _measured(replace(best, conditions=conditions), columns, members)
                if found.f1 >= least and changed.holds(column).any():
                    best = found
                    break
    return best
