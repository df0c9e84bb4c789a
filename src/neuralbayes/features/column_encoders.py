"""The cells of one column as numbers: each kind of column has an encoder, whose state is plain values and arrays.

Every column weighs about as much as a number in units of its standard deviation, whatever it holds.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.column_cells import as_dates, as_missing, as_numbers, as_words, date_format
from neuralbayes.data.column_kinds import LEVELS

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

BOOLEAN_WIDTH = 2.0
"""Distance of two values that are equally frequent in units of their standard deviation."""

WIDEST = 2.5
"""Most distance between two categories: in units of its standard deviation, a rare one would outweigh all else."""

SQUASH = 4.0
"""Units from the median at which numbers begin to be drawn in: none is farther out than this."""

QUARTILES = 1.349
"""Distance of the quartiles of a Gaussian in units of its standard deviation."""

YEAR, WEEK, DAY = 365.2425 * 86400.0, 7 * 86400.0, 86400.0


@dataclass(frozen=True)
class Encoded:
    """A column as numbers.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_parts)
        NaN where a cell is missing.
    n_odd : int
        Cells that are not what they were when the column was fitted: an unseen category, or no number.
    odd : str
        One of them.
    """

    values: Array
    n_odd: int = 0
    odd: str = ""


@dataclass(frozen=True)
class Encoder:
    """What was learnt of a column; subclasses turn its cells into numbers."""

    kind: ClassVar[str]

    def names(self, column: str) -> list[str]:
        """Of the parts."""
        return [column]

    def transform(self, values: pd.Series[Any]) -> Encoded:
        """The cells as numbers."""
        raise NotImplementedError

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What JSON holds, and arrays."""
        return asdict(self), {}

    @classmethod
    def restored(cls, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """From what `state` gave, checked; raises ValueError or TypeError."""
        encoder = cls(**values, **arrays)
        encoder.check()
        return encoder

    def check(self) -> None:
        """Raise a ValueError unless the values are possible."""

    def settled(self, values: Array) -> Array:
        """What was foretold of missing cells (n, n_parts) as this column can hold it."""
        return values

    def complaint(self, column: str, n_odd: int, odd: str) -> str:
        """What to say of cells that are not what they were when the column was fitted."""
        cells = f"{n_odd:,} cells hold no {self.kind}, such as {odd}" if n_odd > 1 else f"{odd} is no {self.kind}"
        return f"Column {column!r}: {cells}; counted as missing."


@dataclass(frozen=True)
class NumberEncoder(Encoder):
    """Numbers, centred at their median, outliers drawn in smoothly, in units of their standard deviation after that.

    Numbers that stay as they are have the center 0 and the scale 0.
    """

    kind: ClassVar[str] = "number"
    center: float
    scale: float
    spread: float

    @classmethod
    def fit(cls, values: pd.Series[Any], standardize: bool = True) -> Self:
        """Measure where numbers lie and how far apart their quartiles are."""
        numbers, _ = as_numbers(values)
        numbers = numbers[np.isfinite(numbers)]
        if not standardize or not len(numbers):
            return cls(0.0, 0.0, 1.0)
        low, center, high = np.quantile(numbers, [0.25, 0.5, 0.75])
        scale = (high - low) / QUARTILES or numbers.std()
        encoder = cls(float(center), float(scale) if np.isfinite(scale) and scale > 0.0 else 1.0, 1.0)
        return replace(encoder, spread=float(encoder._drawn_in(numbers).std()) or 1.0)

    def transform(self, values: pd.Series[Any]) -> Encoded:
        numbers, _ = as_numbers(values)
        odd = np.isnan(numbers) & ~as_missing(values)
        return Encoded(self._drawn_in(numbers)[:, None] / self.spread, *_odd(values, odd))

    def _drawn_in(self, numbers: Array) -> Array:
        if not self.scale:
            return numbers
        z = (numbers - self.center) / self.scale
        return z / np.hypot(1.0, z / SQUASH)

    def check(self) -> None:
        _check_numbers("scale", [self.center, self.scale, self.spread])
        if self.scale < 0.0 or self.spread <= 0.0:
            raise ValueError("'scale' and 'spread' must be positive")


@dataclass(frozen=True)
class CategoryEncoder(Encoder):
    """A column for each of the commonest values, and one for all others; of two values, one column.

    All values are at the same distance from each other, the one that gives the column the variance of a standardised
    number, up to a limit.
    """

    kind: ClassVar[str] = "category"
    levels: list[str]
    other: bool
    width: float

    @classmethod
    def fit(cls, values: pd.Series[Any], unit: float) -> Self:
        """Find the commonest values; `unit` is what one standard deviation is to be."""
        counts = as_words(values).value_counts()
        ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        share = np.array([count for _, count in ordered[:LEVELS]] + [sum(count for _, count in ordered[LEVELS:])])
        differ = 1.0 - float(np.square(share / max(share.sum(), 1)).sum())  # probability that two rows do
        width = min(np.sqrt(2.0 / max(differ, 1e-9)), WIDEST)
        return cls([str(level) for level, _ in ordered[:LEVELS]], len(ordered) > LEVELS, float(unit * width))

    def names(self, column: str) -> list[str]:
        parts = self.levels[:1] if self._binary else self.levels + (["(other)"] if self.other else [])
        return [f"{column}={level}" for level in parts]

    def transform(self, values: pd.Series[Any]) -> Encoded:
        words = as_words(values)
        n_parts = len(self.levels) + self.other
        place = np.array(words.map({level: i for i, level in enumerate(self.levels)}), dtype=np.float64)
        missing = np.array(words.isna(), dtype=bool)
        odd = np.isnan(place) & ~missing
        if self.other:
            place[odd] = len(self.levels)
        one_hot = (place[:, None] == np.arange(n_parts)) * (self.width / np.sqrt(2.0))
        if self._binary:  # the same distance in one column, and an unseen value half way between the two
            one_hot = np.where(odd, 0.5, place == 0.0)[:, None] * self.width
        one_hot[missing] = np.nan
        n_odd, example = (0, "") if self.other else _odd(values, odd)
        return Encoded(one_hot, n_odd, example)

    def settled(self, values: Array) -> Array:
        """The most likely value: one between two would blur that there are only these."""
        if self._binary:
            return np.where(values > self.width / 2.0, self.width, 0.0)
        n_parts = values.shape[1]
        likely: Array = np.eye(n_parts)[values.argmax(axis=1)] * (self.width / np.sqrt(2.0))
        return likely

    def complaint(self, column: str, n_odd: int, odd: str) -> str:
        cells = f"{n_odd:,} cells hold values that were" if n_odd > 1 else "one cell holds a value that was"
        return f"Column {column!r}: {cells} not there in the fit, such as {odd}; counted as none of the known ones."

    @property
    def _binary(self) -> bool:
        return len(self.levels) == 2 and not self.other

    def check(self) -> None:
        right = isinstance(self.levels, list) and all(isinstance(level, str) for level in self.levels)
        if not right or not 1 <= len(self.levels) <= LEVELS or len(set(self.levels)) < len(self.levels):
            raise ValueError(f"'levels' must be from 1 to {LEVELS} different texts")
        _check_numbers("width", [self.width])
        if type(self.other) is not bool:
            raise ValueError("'other' must be true or false")


class BooleanEncoder(CategoryEncoder):
    """Two values: one column."""

    kind = "boolean"


@dataclass(frozen=True)
class DateEncoder(Encoder):
    """When, in units of its standard deviation; and the time of year, week and day where it varies."""

    kind: ClassVar[str] = "date"
    date_format: str | None
    center: float
    scale: float
    cycles: list[str]
    unit: float

    PERIODS: ClassVar[dict[str, float]] = {"time of year": YEAR, "day of week": WEEK, "time of day": DAY}

    @classmethod
    def fit(cls, values: pd.Series[Any], unit: float) -> Self:
        """Find the format and what varies; `unit` is what one standard deviation is to be."""
        found = None if values.dtype.kind == "M" else date_format(as_words(values))
        seconds = _seconds(as_dates(values, found))
        seconds = seconds[np.isfinite(seconds)]
        if not len(seconds):
            return cls(found, 0.0, 1.0, [], unit)
        span = seconds.max() - seconds.min()
        cycles = ["time of year"] if span > YEAR and _around(seconds, YEAR) else []
        if np.unique(seconds % DAY).size > 1:  # events; of birthdays, nobody asks for the day of the week
            cycles += ["day of week"] if span > 2 * WEEK and _around(seconds, WEEK) else []
            cycles += ["time of day"]
        return cls(found, float(seconds.mean()), float(seconds.std()) or 1.0, cycles, unit)

    def names(self, column: str) -> list[str]:
        return [column, *(f"{column}, {part} of {cycle}" for cycle in self.cycles for part in ("sine", "cosine"))]

    def transform(self, values: pd.Series[Any]) -> Encoded:
        seconds = _seconds(as_dates(values, self.date_format))
        odd = np.isnan(seconds) & ~as_missing(values)
        parts = [(seconds - self.center) / self.scale]
        for cycle in self.cycles:
            angle = 2.0 * np.pi * (seconds + (3 * DAY if cycle == "day of week" else 0.0)) / self.PERIODS[cycle]
            parts += [np.sin(angle), np.cos(angle)]
        weight = self.unit / np.sqrt(1.0 + len(self.cycles))
        return Encoded(weight * np.column_stack(parts), *_odd(values, odd))

    def check(self) -> None:
        _check_numbers("scale", [self.center, self.scale, self.unit])
        cycles = isinstance(self.cycles, list) and all(cycle in self.PERIODS for cycle in self.cycles)
        if not cycles or len(set(self.cycles)) < len(self.cycles) or self.scale <= 0.0:
            raise ValueError("'cycles' must be of a year, a week or a day, and 'scale' positive")
        if not isinstance(self.date_format, str | None) or len(self.date_format or "") > 100:
            raise ValueError("'date_format' must be a short text")


def _around(seconds: Array, period: float) -> bool:
    """Whether times are spread over a period, and not in one part of it."""
    return bool(np.abs(np.exp(2j * np.pi * seconds / period).mean()) < 0.8)


def _seconds(dates: NDArray[np.datetime64]) -> Array:
    """Since 1970, NaN where there is no date."""
    return np.where(np.isnat(dates), np.nan, dates.astype(np.int64).astype(np.float64))


def _odd(values: pd.Series[Any], odd: NDArray[np.bool_]) -> tuple[int, str]:
    n = int(odd.sum())
    return n, repr(values.iloc[int(np.argmax(odd))]) if n else ""


def _check_numbers(name: str, values: list[Any]) -> None:
    if not all(type(value) in (int, float) and np.isfinite(value) for value in values):
        raise ValueError(f"{name!r} must be finite numbers, got {values}")
