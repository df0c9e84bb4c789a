"""Convert the cells of a column to numbers, so that it has about the weight of a standardised number."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.columns import LEVELS, Column, as_dates, as_missing, as_numbers, as_words, date_format

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_matrix

Array = NDArray[np.float64]
Odd = NDArray[np.bool_]

# In units of a standard deviation
BOOLEAN_WIDTH = 2.0  # distance between two equally frequent values
WIDEST = 2.5  # maximum distance between two categories, as a rare one would otherwise outweigh all other columns
SQUASH = 4.0  # maximum distance from the median: outliers are pulled in smoothly towards it
QUARTILES = 1.349  # distance between the quartiles of a Gaussian
MANY_PERIODS = 30  # minimum years, or days, between the first and the last date for the time of year, or day, to count

N_HASHES = 4096  # buckets for the n-grams of text
N_PARTS, MOST_PARTS = 10, 100  # components of text next to other columns, and if it is the only column
FIT_ROWS = 20_000  # evenly spaced texts for learning the components


@dataclass(frozen=True)
class Encoder:
    """Base class: the learnt state of a column. Subclasses convert its cells to numbers."""

    kind: ClassVar[str]

    def names(self, column: str) -> list[str]:
        """Names of the parts."""
        return [column]

    def transform(self, values: pd.Series[Any]) -> tuple[Array, Odd]:
        """Numbers (n_rows, n_parts), NaN for missing cells, and a mask (n_rows,) of cells that do not belong here."""
        raise NotImplementedError

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The state as JSON values and arrays."""
        return asdict(self), {}

    def check(self) -> None:
        """Raise a ValueError unless a restored state is valid."""

    def settled(self, values: Array) -> Array:
        """Convert predictions of missing cells (n, n_parts) to possible values of this column."""
        return values

    def complaint(self, column: str, n_odd: int, odd: str) -> str:
        cells = f"{n_odd:,} cells are not a {self.kind}, such as {odd}" if n_odd > 1 else f"{odd} is not a {self.kind}"
        return f"Column {column!r}: {cells}; counted as missing."


@dataclass(frozen=True)
class NumberEncoder(Encoder):
    """Numbers less their median, with outliers pulled in, in units of their deviation; as they are if `scale` is 0."""

    kind: ClassVar[str] = "number"
    center: float
    scale: float
    spread: float

    @classmethod
    def fit(cls, values: pd.Series[Any], standardize: bool) -> Self:
        numbers, _ = as_numbers(values)
        numbers = numbers[np.isfinite(numbers)]
        if not standardize or not len(numbers):
            return cls(0.0, 0.0, 1.0)
        low, center, high = np.quantile(numbers, [0.25, 0.5, 0.75])
        scale = (high - low) / QUARTILES or numbers.std()
        encoder = cls(float(center), float(scale) if np.isfinite(scale) and scale > 0.0 else 1.0, 1.0)
        return replace(encoder, spread=float(encoder._drawn_in(numbers).std()) or 1.0)

    def transform(self, values: pd.Series[Any]) -> tuple[Array, Odd]:
        numbers, _ = as_numbers(values)
        return self._drawn_in(numbers)[:, None] / self.spread, np.isnan(numbers) & ~as_missing(values)

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
    """One column for each of the most common values and one for all others; a single column for two values.

    All are equally far apart, so that the column has the variance of a standardised number unless a value is rare.
    """

    kind: ClassVar[str] = "category"
    levels: list[str]
    other: bool
    width: float

    @classmethod
    def fit(cls, values: pd.Series[Any], unit: float) -> Self:
        counts = as_words(values).value_counts()
        ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        share = np.array([count for _, count in ordered[:LEVELS]] + [sum(count for _, count in ordered[LEVELS:])])
        differ = 1.0 - float(np.square(share / max(share.sum(), 1)).sum())  # probability that two rows differ
        width = min(np.sqrt(2.0 / max(differ, 1e-9)), WIDEST)
        return cls([str(level) for level, _ in ordered[:LEVELS]], len(ordered) > LEVELS, float(unit * width))

    def names(self, column: str) -> list[str]:
        parts = self.levels[:1] if self._binary else self.levels + (["(other)"] if self.other else [])
        return [f"{column}={level}" for level in parts]

    def transform(self, values: pd.Series[Any]) -> tuple[Array, Odd]:
        words = as_words(values)
        place = np.array(words.map({level: i for i, level in enumerate(self.levels)}), dtype=np.float64)
        missing = np.array(words.isna(), dtype=bool)
        odd = np.isnan(place) & ~missing
        if self.other:
            place[odd] = len(self.levels)
        one_hot = (place[:, None] == np.arange(len(self.levels) + self.other)) * (self.width / np.sqrt(2.0))
        if self._binary:  # the same distance in one column, with unseen values halfway between the two
            one_hot = np.where(odd, 0.5, place == 0.0)[:, None] * self.width
        one_hot[missing] = np.nan
        return one_hot, odd & (not self.other)

    def settled(self, values: Array) -> Array:
        """The most likely value, never a mixture of two."""
        if self._binary:
            return np.where(values > self.width / 2.0, self.width, 0.0)
        likely: Array = np.eye(values.shape[1])[values.argmax(axis=1)] * (self.width / np.sqrt(2.0))
        return likely

    def complaint(self, column: str, n_odd: int, odd: str) -> str:
        cells = f"{n_odd:,} cells hold values that were" if n_odd > 1 else "one cell holds a value that was"
        return f"Column {column!r}: {cells} not in the fit, such as {odd}; counted as unknown."

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
    kind = "boolean"


@dataclass(frozen=True)
class DateEncoder(Encoder):
    """Time in units of its standard deviation and, over many of them, the time of day and of the year.

    A cycle begins where it has the fewest rows. As sine and cosine, and for few cycles, it would be a ring or a helix,
    which has valleys wherever one looks through it, although the dates have none.
    """

    kind: ClassVar[str] = "date"
    date_format: str | None
    center: float
    scale: float
    cycles: dict[str, float]  # the phase at which each begins, in [0, 1)
    unit: float

    PERIODS: ClassVar[dict[str, float]] = {"time of year": 365.2425 * 86400.0, "time of day": 86400.0}

    @classmethod
    def fit(cls, values: pd.Series[Any], unit: float) -> Self:
        found = None if values.dtype.kind == "M" else date_format(as_words(values))
        seconds = _seconds(as_dates(values, found))
        seconds = seconds[np.isfinite(seconds)]
        if not len(seconds):
            return cls(found, 0.0, 1.0, {}, unit)
        cycles = {}
        for cycle, period in cls.PERIODS.items():
            phases = np.sort(seconds / period % 1.0)
            if np.ptp(seconds) >= MANY_PERIODS * period and phases[-1] > phases[0]:
                steps = np.diff(np.append(phases, phases[0] + 1.0))
                cycles[cycle] = float((phases + 0.5 * steps)[steps.argmax()] % 1.0)
        return cls(found, float(seconds.mean()), float(seconds.std()) or 1.0, cycles, unit)

    def names(self, column: str) -> list[str]:
        return [column, *(f"{column}, {cycle}" for cycle in self.cycles)]

    def transform(self, values: pd.Series[Any]) -> tuple[Array, Odd]:
        seconds = _seconds(as_dates(values, self.date_format))
        parts = [(seconds - self.center) / self.scale]
        for cycle, start in self.cycles.items():  # a uniform phase has a standard deviation of 1 / sqrt(12)
            parts.append(np.sqrt(12.0) * ((seconds / self.PERIODS[cycle] - start) % 1.0 - 0.5))
        weight = self.unit / np.sqrt(len(parts))
        return weight * np.column_stack(parts), np.isnan(seconds) & ~as_missing(values)

    def check(self) -> None:
        _check_numbers("scale", [self.center, self.scale, self.unit])
        if not isinstance(self.cycles, dict) or not self.cycles.keys() <= self.PERIODS.keys() or self.scale <= 0.0:
            raise ValueError("'cycles' must be of a year or a day, and 'scale' positive")
        _check_numbers("cycles", list(self.cycles.values()))
        if not isinstance(self.date_format, str | None) or len(self.date_format or "") > 100:
            raise ValueError("'date_format' must be a short text")


@dataclass(frozen=True, eq=False)
class TextEncoder(Encoder):
    """Latent semantic analysis of character 3-grams and 4-grams, hashed: text of any language without a dictionary."""

    kind: ClassVar[str] = "text"
    weights: NDArray[np.float32]  # (N_HASHES,): rare n-grams have larger weights
    components: NDArray[np.float32]  # (n_parts, N_HASHES)
    center: NDArray[np.float32]  # (n_parts,)

    @classmethod
    def fit(cls, values: pd.Series[Any], unit: float, n_parts: int) -> Self:
        from sklearn.decomposition import TruncatedSVD

        words = as_words(values).dropna()
        words = words.iloc[:: max(1, len(words) // FIT_ROWS)]
        counts = _counts(words)
        present = np.asarray((counts > 0).sum(axis=0)).ravel()
        weights = np.log((1.0 + counts.shape[0]) / (1.0 + present)) + 1.0
        weighted = _normalized(counts, weights)
        n_parts = max(1, min(n_parts, counts.shape[0] - 1))
        components = TruncatedSVD(n_parts, random_state=0).fit(weighted).components_
        parts = weighted @ components.T
        scale = unit / (np.sqrt(parts.var(axis=0).sum()) or 1.0)
        center = scale * parts.mean(axis=0)
        return cls(weights.astype(np.float32), (scale * components).astype(np.float32), center.astype(np.float32))

    def names(self, column: str) -> list[str]:
        return [f"{column}, part {i}" for i in range(len(self.components))]

    def transform(self, values: pd.Series[Any]) -> tuple[Array, Odd]:
        words = as_words(values)
        present = np.array(words.notna(), dtype=bool)
        parts = np.full((len(words), len(self.components)), np.nan)
        if present.any():
            parts[present] = _normalized(_counts(words[present]), self.weights) @ self.components.T - self.center
        return parts, np.zeros(len(words), dtype=bool)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {}, {"weights": self.weights, "components": self.components, "center": self.center}

    def check(self) -> None:
        n_parts = len(self.components)
        shapes = {"weights": (N_HASHES,), "components": (n_parts, N_HASHES), "center": (n_parts,)}
        for name, shape in shapes.items():
            array = getattr(self, name)
            if array.dtype != np.float32 or array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"{name!r} of a column of text must be finite float32 of shape {shape}")
        if not 1 <= n_parts <= MOST_PARTS:
            raise ValueError(f"'components' must be from 1 to {MOST_PARTS}, got {n_parts}")


ENCODERS: dict[str, type[Encoder]] = {
    encoder.kind: encoder for encoder in (NumberEncoder, BooleanEncoder, CategoryEncoder, DateEncoder, TextEncoder)
}


def fit_encoder(column: Column, values: pd.Series[Any], *, unit: float, standardize: bool, alone: bool) -> Encoder:
    """Learn to convert the cells of a column to numbers, in `unit` per standard deviation, or raise a ValueError."""
    if column.kind == "number":
        encoder: Encoder = NumberEncoder.fit(values, standardize)
    elif column.kind == "text":
        encoder = TextEncoder.fit(values, unit, MOST_PARTS if alone else N_PARTS)
    else:
        encoder = ENCODERS[column.kind].fit(values, unit)  # type: ignore[attr-defined]
    present = ~as_missing(values)
    if present.any() and np.isnan(encoder.transform(values.head(1000)[present[:1000]])[0][:, 0]).all():
        row = int(np.argmax(present))
        raise ValueError(
            f"column {column.name!r} cannot be read as {column.kind}: row {row + 1} holds {values.iloc[row]!r}; "
            "choose another kind for it"
        )
    return encoder


def restored_encoder(saved: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Encoder:
    """Restore a saved encoder, with checks; raises ValueError, TypeError or KeyError."""
    values = {key: value for key, value in saved.items() if key not in ("column", "kind")}
    encoder = ENCODERS[saved["kind"]](**values, **arrays)
    encoder.check()
    return encoder


def _counts(words: pd.Series[Any]) -> csr_matrix:
    from sklearn.feature_extraction.text import HashingVectorizer

    how = {"analyzer": "char_wb", "ngram_range": (3, 4), "norm": None, "alternate_sign": False}
    counts: csr_matrix = HashingVectorizer(n_features=N_HASHES, **how).transform(words)
    return counts


def _normalized(counts: csr_matrix, weights: NDArray[Any]) -> csr_matrix:
    """Weighted logarithms of counts, with every row scaled to length 1."""
    from sklearn.preprocessing import normalize

    weighted = counts.astype(np.float64)
    weighted.data = np.log1p(weighted.data) * weights[weighted.indices]
    rows: csr_matrix = normalize(weighted, copy=False)
    return rows


def _seconds(dates: NDArray[np.datetime64]) -> Array:
    """Seconds since 1970; NaN for missing dates."""
    return np.where(np.isnat(dates), np.nan, dates.astype(np.int64).astype(np.float64))


def _check_numbers(name: str, values: list[Any]) -> None:
    if not all(type(value) in (int, float) and np.isfinite(value) for value in values):
        raise ValueError(f"{name!r} must be finite numbers, got {values}")
