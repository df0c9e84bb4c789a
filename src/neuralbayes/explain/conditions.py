"""Conditions on the cells of a column, for rules and names, with numbers and dates as people write them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from neuralbayes.explain.columns import Cells, Kind

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Condition:
    """A condition on the cells of one column.

    Attributes
    ----------
    low, high : float or None
        Numbers, or dates in seconds since 1970, must be above `low` and at most `high`.
    values : tuple of str
        A category must be one of these, or none of them if `excluded`.
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

    def holds(self, cells: Cells) -> Mask:
        """Which cells satisfy the condition."""
        if cells.ordered:
            if self.missing:
                return cells.missing
            low, high = (-np.inf if self.low is None else self.low), (np.inf if self.high is None else self.high)
            return np.asarray((cells.values > low) & (cells.values <= high))
        named = np.array([level in self.values for level in cells.levels], bool)
        return np.append(named != self.excluded, self.missing)[cells.bins]

    def rounded(self, cells: Cells) -> Condition:
        """The same condition, with thresholds of few digits where no cell changes sides."""
        low, high = (
            bound if bound is None or float(f"{bound:.2g}") == bound else [*rounder(bound, cells)][-1]
            for bound in (self.low, self.high)
        )
        return replace(self, low=low, high=high)

    def __str__(self) -> str:
        if self.kind == "category":
            listed = [*self.values, *(["missing"] if self.missing != self.excluded else [])]
            either = " or ".join(filter(None, [", ".join(listed[:-1]), listed[-1]]))
            return f"{self.column} is {'not ' if self.excluded else ''}{either}"
        if self.missing:
            return f"{self.column} is missing"
        show = as_date if self.kind == "date" else as_number
        if self.high is None:
            return f"{self.column} > {show(self.low)}" if self.low is not None else f"{self.column} is not missing"
        low = "" if self.low is None else f"{show(self.low)} < "
        return f"{low}{self.column} ≤ {show(self.high)}"


def condition_of(cells: Cells, allowed: Mask, there: Mask) -> Condition:
    """The condition that a cell is in one of the `allowed` bins, given those that hold any cells: (n_bins + 1,)."""
    n = cells.n_bins
    if cells.ordered:
        inside = np.flatnonzero(allowed[:n])
        if not len(inside):
            return Condition(cells.name, cells.kind, missing=True)
        low = None if inside[0] == 0 else float(cells.edges[inside[0] - 1])
        high = None if inside[-1] == n - 1 else float(cells.edges[inside[-1]])
        return Condition(cells.name, cells.kind, low, high)
    named = tuple(level for level, inside in zip(cells.levels, allowed, strict=False) if inside)
    others = tuple(cells.levels[i] for i in range(n) if not allowed[i] and there[i])
    if not named and allowed[n]:
        return Condition(cells.name, "category", missing=True)
    excluded = len(others) < len(named)
    missing = bool(allowed[n]) or not there[n] if excluded else bool(allowed[n] and there[n])
    return Condition(cells.name, "category", values=others if excluded else named, excluded=excluded, missing=missing)


def rounder(value: float, cells: Cells) -> Iterator[float]:
    """Thresholds near `value`, the roundest first; the last one lies between the same two cells.

    Examples
    --------
    >>> import pandas as pd
    >>> from neuralbayes.explain.columns import as_cells
    >>> list(rounder(3.87, as_cells(pd.DataFrame({"x": [1.0, 3.87, 3.94, 5.0]}))[0]))
    [4.0, 3.9]
    """
    above = cells.values[cells.values > value]
    after = float(above.min()) if len(above) else value
    for found in _round_dates(value) if cells.kind == "date" else _round_numbers(value, after, cells):
        yield found
        if value <= found < after:
            return
    yield value


def _round_numbers(value: float, after: float, cells: Cells) -> Iterator[float]:
    if not after > value:
        return
    low, high = np.nanquantile(cells.values, [0.05, 0.95])
    spread = float(high - low) or abs(value)
    place = math.floor(math.log10(spread)) if spread > 0 else 0
    for digits in range(-place, -place + 12):
        yield from dict.fromkeys(round(near, digits) for near in ((value + after) / 2.0, value))


def _round_dates(value: float) -> Iterator[float]:
    """The beginning of the nearest year, month and day."""
    moment = np.datetime64(round(value), "s")
    for unit in ("Y", "M", "D"):
        start = moment.astype(f"datetime64[{unit}]")
        near = min((start, start + 1), key=lambda one: abs(one.astype("datetime64[s]") - moment))
        yield float(near.astype("datetime64[s]").astype(np.int64))


def as_number(value: float) -> str:
    """A number without superfluous digits.

    Examples
    --------
    >>> [as_number(value) for value in (4.0, 0.25, -12500.0, 1e9, 3e-7)]
    ['4', '0.25', '-12,500', '1e+09', '3e-07']
    """
    value += 0.0  # -0 is 0
    if value == round(value) and 10_000 <= abs(value) < 1e9:
        return f"{value:,.0f}"
    return f"{value:.12g}" if 1e-4 <= abs(value) < 1e9 or value == 0 else f"{value:.6g}"


def short_number(value: float) -> str:
    """A number with three significant digits, and all digits before the decimal point: 4207, 38.8."""
    return as_number(float(f"{value:.0f}" if 100 <= abs(value) < 1e9 else f"{value:.3g}"))


def as_date(seconds: float) -> str:
    """Seconds since 1970 as a day, with the time unless it is midnight: 1970-01-02, 1970-01-02 01:00."""
    moment = np.datetime64(round(seconds), "s")
    day = moment.astype("datetime64[D]")
    return str(day) if moment == day else str(moment.astype("datetime64[m]")).replace("T", " ")


def as_percent(share: float) -> str:
    """A share as a percentage, of which only exact ones are "0 %" and "100 %"; others are 0.4 %, 99.6 % and 50 %."""
    percent = 100.0 * share
    return f"{percent:.0f} %" if percent in (0.0, 100.0) or 0.5 <= percent < 99.5 else f"{percent:.1f} %"
