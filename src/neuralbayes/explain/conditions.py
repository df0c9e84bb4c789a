"""Conditions on the cells of one column, of which rules and names are made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from neuralbayes.explain.columns import Column, Kind
from neuralbayes.explain.numerals import as_date, as_number, rounder_dates, rounder_numbers

Mask = NDArray[np.bool_]


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
            if self.missing:
                return column.missing
            low, high = (-np.inf if self.low is None else self.low), (np.inf if self.high is None else self.high)
            return np.asarray((column.values > low) & (column.values <= high))
        named = np.array([level in self.values for level in column.levels], bool)
        return np.append(named != self.excluded, self.missing)[column.bins]

    def rounded(self, column: Column) -> Condition:
        """The same condition, with thresholds of few digits where no cell changes sides."""
        low, high = (
            bound if bound is None or float(f"{bound:.2g}") == bound else [*rounder(bound, column)][-1]
            for bound in (self.low, self.high)
        )
        return replace(self, low=low, high=high)

    def __str__(self) -> str:
        if self.kind == "category":
            listed = [*self.values, *(["missing"] if self.missing != self.excluded else [])]
            return f"{self.column} is {'not ' if self.excluded else ''}{_either(listed)}"
        if self.missing:
            return f"{self.column} is missing"
        show = as_date if self.kind == "date" else as_number
        if self.high is None:
            return f"{self.column} > {show(self.low)}" if self.low is not None else f"{self.column} is not missing"
        low = "" if self.low is None else f"{show(self.low)} < "
        return f"{low}{self.column} ≤ {show(self.high)}"


def condition_of(column: Column, allowed: Mask, there: Mask) -> Condition:
    """The condition that a cell is in one of the `allowed` bins, an interval of numbers or any set of values.

    Also from the bins that hold any cells, `there`: both masks have shape (n_bins + 1,).
    """
    n = column.n_bins
    if column.ordered:
        inside = np.flatnonzero(allowed[:n])
        if not len(inside):
            return Condition(column.name, column.kind, missing=True)
        low = None if inside[0] == 0 else float(column.edges[inside[0] - 1])
        high = None if inside[-1] == n - 1 else float(column.edges[inside[-1]])
        return Condition(column.name, column.kind, low, high)
    named = tuple(level for level, inside in zip(column.levels, allowed, strict=False) if inside)
    others = tuple(column.levels[i] for i in range(n) if not allowed[i] and there[i])
    if not named and allowed[n]:
        return Condition(column.name, "category", missing=True)
    excluded = len(others) < len(named)
    missing = bool(allowed[n]) or not there[n] if excluded else bool(allowed[n] and there[n])
    return Condition(column.name, "category", values=others if excluded else named, excluded=excluded, missing=missing)


def rounder(value: float, column: Column) -> Iterator[float]:
    """Thresholds near `value`, the roundest first; the last one lies between the same two cells."""
    above = column.values[column.values > value]
    after = float(above.min()) if len(above) else value
    if column.kind == "date":
        return rounder_dates(value, after)
    low, high = np.nanquantile(column.values, [0.05, 0.95])
    return rounder_numbers(value, after, float(high - low) or abs(value))


def _either(words: Sequence[str]) -> str:
    """Join words as "a, b or c"."""
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
