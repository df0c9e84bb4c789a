"""The columns of a data frame: what kind each has and why, and its cells as numbers, words or dates."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.floating]
UsedKind = Literal["number", "boolean", "category", "date", "text"]
Kind = Literal["number", "boolean", "category", "date", "text", "id", "constant", "empty", "written", "ignored"]

USED: tuple[UsedKind, ...] = get_args(UsedKind)
LEVELS = 20  # most distinct values of a category; the others are combined
NUMERIC, EMPTY, COUNTED = 0.95, 0.7, 0.98  # least share of numbers, of missing cells, of consecutive numbers in an id
LONG_WORDS, LONG_CHARACTERS = 5.0, 40.0  # mean number above which distinct cells are text and not ids
LOOKED_AT = 20_000  # rows, evenly spaced
CODES = re.compile("ids?|uuid|codes?|zip|zipcode|postcode|postal|plz|phone|ssn|isbn|ean", re.IGNORECASE)
MOST_VALUES, REPEATS = 20, 5  # a column has few values if it has at most so many, each in so many rows on average
REPEATED_ROWS, RUNS = 50, 0.9  # least number of rows, and share of consecutive values, of a counter with gaps
EVEN = 1e-6  # probability that whole numbers drawn at random are as even as those of a counter
EXACT = 2.0**53  # from which on numbers are no longer consecutive
ISO, TRIED = "ISO8601", 50  # the format of dates such as 2024-02-29; number of cells that must match a format

# Reason for a column that is only partly discrete, such as amounts that are often 0; the minimum fraction of rows of
# such a value, and its minimum ratio to an ordinary value.
ATOM, ATOM_SHARE, ATOM_RATIO = "mostly one value", 0.1, 20.0

# Columns beside the features f_0, f_1, ... of images; those of a clustering; their suffix where the name is taken.
INDEX, PATH, LABEL, CLASS, FEATURE = "index", "path", "label", "class", "f"
CLUSTERING, TAKEN = ("cluster", "name", "probability", "typicality"), " (neuralbayes)"


@dataclass(frozen=True)
class Column:
    """A column of a table: its kind, the reason for it, and the fraction of missing cells."""

    name: str
    kind: Kind
    reason: str
    missing: float = 0.0

    @property
    def used(self) -> bool:
        """Whether the column is used."""
        return self.kind in USED

    def __post_init__(self) -> None:
        right = isinstance(self.name, str) and isinstance(self.reason, str) and self.kind in get_args(Kind)
        if not right or type(self.missing) not in (int, float) or not 0.0 <= self.missing <= 1.0:
            raise ValueError(f"{self!r:.200} is not a column of a table")


def recognize(frame: pd.DataFrame, kinds: Mapping[str, str] | None = None) -> list[Column]:
    """The kind of each column, from its values and its name.

    `kinds` overrides the kind of some columns by name; "ignore" leaves a column out.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"kg": [1.5, 2.0, 4.1], "color": ["red", "blue", "green"], "unit": ["cm", "cm", "cm"]})
    >>> [(column.name, column.kind, column.reason) for column in recognize(frame)]
    [('kg', 'number', '3 values'), ('color', 'category', '3 values'), ('unit', 'constant', "always 'cm'")]
    """
    kinds = _check_kinds(frame, kinds)
    some = frame.iloc[:: max(1, len(frame) // LOOKED_AT)]
    written, features = written_columns(some), feature_columns(some)
    found = []
    for name in frame:
        label, values = str(name), some[name]
        missing = float(as_missing(values).mean()) if len(values) else 0.0
        if label in kinds:
            kind, reason = ("ignored", "not chosen") if kinds[label] == "ignore" else (kinds[label], "as chosen")
        elif label in written:
            kind, reason = "written", written[label]
        elif label in features:
            kind, reason = "number", "a feature of neuralbayes embed"
        else:
            kind, reason = _kind(label, values, missing)
        found.append(Column(label, kind, reason, missing))  # type: ignore[arg-type]
    return found


def _check_kinds(frame: pd.DataFrame, kinds: Mapping[str, str] | None) -> dict[str, str]:
    there = [str(name) for name in frame]
    if len(set(there)) < len(there):
        repeated = next(name for name in there if there.count(name) > 1)
        raise ValueError(f"column names must differ, got more than one {repeated!r}; rename one of them")
    for name, kind in (kinds or {}).items():
        if name not in there:
            shown = ", ".join(map(repr, there[:12])) + (", ..." if len(there) > 12 else "")
            raise ValueError(f"`kinds` names column {name!r}, but the columns are {shown}")
        if kind not in (*USED, "ignore"):
            raise ValueError(f"`kinds` of column {name!r} must be one of {', '.join(USED)}, ignore, got {kind!r}")
    return dict(kinds or {})


def _kind(name: str, values: pd.Series[Any], missing: float) -> tuple[str, str]:
    """The kind of a column and the reason for it."""
    present = values[~as_missing(values)]
    if not len(present):
        return "empty", "all cells are empty"
    if missing >= EMPTY:
        return "empty", f"{100 * missing:.0f} % of its cells are missing"
    if present.dtype.kind == "M":
        return ("date", "dates") if present.nunique() > 1 else ("constant", f"always {present.iloc[0]}")
    numbers, n_numbers = as_numbers(present)
    few = () if present.dtype.kind in "iufb" else present.head(1000)
    coded = any(isinstance(cell, str) and re.fullmatch(r"\s*0\d+\s*", cell) for cell in few)  # as postal codes
    if present.dtype.kind != "b" and n_numbers >= NUMERIC * len(present) and not coded:
        return _kind_of_numbers(name, numbers[np.isfinite(numbers)], stored=present.dtype.kind == "O")
    if present.dtype.kind == "c":
        return "ignored", "complex numbers"
    if any(isinstance(cell, list | dict | set | tuple | np.ndarray | bytes) for cell in present.head(100)):
        return "ignored", f"its cells are {type(present.iloc[0]).__name__}s"
    return _kind_of_words(name, as_words(present).astype(object), categorical=hasattr(values, "cat"))


def _kind_of_numbers(name: str, numbers: Array, *, stored: bool) -> tuple[str, str]:
    distinct = len(np.unique(numbers))
    if distinct == 1:
        return "constant", f"always {numbers[0]:g}"
    if distinct == 2:
        return "boolean", f"two values, {numbers.min():g} and {numbers.max():g}"
    whole = bool((numbers == np.round(numbers)).all())
    if whole and named_as_code(name):
        if distinct <= LEVELS and len(numbers) >= 2 * distinct:
            return "category", f"a code by its name, {distinct} values"
        return "id", "an id or code by its name"
    if whole and len(numbers) >= 10 and why_not_continuous(numbers) == "counts the rows":
        return "id", "counts the rows"
    if whole and len(numbers) >= 50 and (np.diff(numbers) == 1).mean() > COUNTED:
        return "id", "counts the rows, starting again"
    words = f"{distinct} values" if distinct <= LEVELS else f"such as {numbers[0]:g} and {numbers[-1]:g}"
    return "number", words + (", stored as text" if stored else "")


def _kind_of_words(name: str, words: pd.Series[Any], *, categorical: bool) -> tuple[str, str]:
    counts = words.value_counts()
    n, distinct = len(words), len(counts)
    first, second = (repr(word if len(word) <= 30 else f"{word[:27]}...") for word in [*counts.index[:2], ""][:2])
    if distinct == 1:
        return "constant", f"always {first}"
    if distinct == 2 and n > 2:
        return "boolean", f"two values, {first} and {second}"
    if not categorical and date_format(words) is not None:
        return "date", f"dates such as {words.iloc[0]}"
    lengths = words.drop_duplicates().head(1000)
    long = lengths.str.count(r"\S+").mean() >= LONG_WORDS or lengths.str.len().mean() >= LONG_CHARACTERS
    if not categorical and long and distinct > max(LEVELS, n / 10):
        return "text", f"{distinct:,} texts"
    if named_as_code(name) and (n < 10 or distinct > n / 2):
        return "id", "an id or code by its name"
    if n >= 10 and not categorical and distinct > n / 2:
        return "id", f"{distinct:,} values in {n:,} rows: hardly any repeats"
    if counts.iloc[:LEVELS].sum() < 0.2 * n:
        return "id", f"{distinct:,} values, none of them common"
    return "category", f"{distinct:,} values" + (f", the {LEVELS} most common used" if distinct > LEVELS else "")


def named_as_code(name: str) -> bool:
    """Whether the name of a column marks its numbers as ids or codes."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    return any(map(CODES.fullmatch, words))


def why_not_continuous(values: Array) -> str | None:
    """Why gaps between values (n_rows,), finite and in row order, cannot separate rows; None if they can."""
    distinct, counts = np.unique(values, return_counts=True)
    n = len(values)
    if len(distinct) == 1:
        return "constant"
    if len(distinct) == 2 and n > 2:
        return "two values"
    if len(distinct) <= MOST_VALUES and n >= REPEATS * len(distinct):
        return "few values"
    whole = n >= 10 and bool(is_whole(values[:, None])[0])
    if whole and n >= REPEATED_ROWS and distinct[-1] < EXACT and distinct[0] > -EXACT:
        if np.median(counts) == 1 and (np.diff(distinct) == 1).mean() > RUNS:
            return "counts the rows"  # with gaps, or in a table with repeated rows
        if _too_even(distinct, counts):
            return "counts the rows, starting again"
    if counts.max() >= max(ATOM_SHARE * n, ATOM_RATIO * np.median(counts)):
        return ATOM
    if not whole or len(distinct) < n:
        return None
    steps = np.diff(values)
    counted = (steps > 0).all() or (steps < 0).all() or distinct[-1] - distinct[0] < 3 * n
    return "counts the rows" if counted else None


def _too_even(distinct: Array, counts: NDArray[np.int64]) -> bool:
    """Whether whole numbers, most of a range, occur more evenly than random ones; apart from the most common one."""
    from scipy.special import gammainc

    others = np.delete(counts, counts.argmax())
    span = distinct[-1] - distinct[0]  # of the others
    if len(others) <= RUNS * span:
        return False
    mean = others.sum() / max(1, span)
    dispersion = (np.square(others - mean).sum() + (span - len(others)) * mean**2) / mean
    return bool(gammainc(span / 2, dispersion / 2) < EVEN)  # of a chi-squared distribution


def discrete_columns(X: Array) -> dict[int, str]:
    """The columns of X (n_rows, n_columns) for which :func:`why_not_continuous` has a reason, with that reason."""
    looked_at = np.flatnonzero(_repeats(X) | is_whole(X))
    reasons = {int(j): why_not_continuous(X[:, j]) for j in looked_at}
    return {j: reason for j, reason in reasons.items() if reason is not None}


def is_whole(X: Array) -> NDArray[np.bool_]:
    """Which columns contain only integers: (n_rows, n_columns) -> (n_columns,)."""
    return np.asarray((np.round(X) == X).all(axis=0))


def rounding(X: Array) -> NDArray[np.float64]:
    """Rounding step of each column, 0 if most values differ: (n_rows, n_columns) -> (n_columns,)."""
    steps = np.zeros(X.shape[1])
    for j in np.flatnonzero(_repeats(X)):
        distinct = np.unique(X[:, j])
        if 1 < len(distinct) <= len(X) / 2:
            steps[j] = np.median(np.diff(distinct))
    return steps


def _repeats(X: Array) -> NDArray[np.bool_]:
    """Which columns repeat a value among some 200 rows, as rounded columns and columns with few values do."""
    some = np.sort(X[:: max(1, len(X) // 200)], axis=0)
    return np.asarray((some[1:] == some[:-1]).any(axis=0))


def as_missing(values: pd.Series[Any]) -> NDArray[np.bool_]:
    """Mask of empty cells: missing cells, and text that consists of spaces."""
    missing = np.array(values.isna(), dtype=bool)
    if values.dtype.kind == "O":
        blank = (isinstance(cell, str) and not cell.strip() for cell in values)
        missing |= np.fromiter(blank, bool, len(values))
    return missing


def as_numbers(values: pd.Series[Any]) -> tuple[NDArray[np.float64], int]:
    """The cells as numbers, with NaN for other or infinite cells, and the number of numeric cells."""
    import pandas

    if values.dtype.kind == "m":  # a duration in seconds
        numbers = values.dt.total_seconds().to_numpy(dtype=np.float64)
    elif values.dtype.kind in "iufb":
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    elif values.dtype.kind in "cM" or isinstance(values.dtype, pandas.PeriodDtype):
        numbers = np.full(len(values), np.nan)
    else:
        cells = values.astype(object).map(lambda cell: cell.strip() if isinstance(cell, str) else cell)
        plain = cells.where(cells.map(lambda cell: not isinstance(cell, list | dict | set | tuple | np.ndarray)))
        numbers = pandas.to_numeric(plain, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    numbers = np.where(np.isfinite(numbers), numbers, np.nan)
    return numbers, int(np.isfinite(numbers).sum())


def as_words(values: pd.Series[Any]) -> pd.Series[Any]:
    """The cells as stripped text, with None for empty cells, independent of their type."""
    unhashable = (list, dict, set, np.ndarray)
    cells = values.astype(object)
    if any(isinstance(cell, unhashable) for cell in cells):
        cells = cells.map(lambda cell: str(cell) if isinstance(cell, unhashable) else cell)
    distinct = {cell: _word(cell) for cell in cells.dropna().unique()}
    words: pd.Series[Any] = cells.map(distinct).astype(object)
    return words.where(words.notna() & (words != ""), None)


def _word(cell: Any) -> str:
    if isinstance(cell, bool | np.bool_):
        return str(cell).lower()
    if isinstance(cell, float | np.floating) and float(cell).is_integer():
        return str(int(cell))
    word = str(cell).strip()
    return word.lower() if word in ("True", "False", "TRUE", "FALSE") else word


def as_dates(values: pd.Series[Any], date_format: str | None) -> NDArray[np.datetime64]:
    """The cells as datetime64[s] in UTC, with NaT for cells without a date; `date_format` is that of text."""
    import pandas

    if isinstance(values.dtype, pandas.PeriodDtype):
        values = values.dt.to_timestamp()
    elif values.dtype.kind != "M":
        values = pandas.to_datetime(as_words(values), format=date_format or ISO, errors="coerce", utc=True)
    if getattr(values.dtype, "tz", None) is not None:
        values = values.dt.tz_convert("UTC").dt.tz_localize(None)
    return values.to_numpy().astype("datetime64[s]")


def date_format(words: pd.Series[Any]) -> str | None:
    """The format of text cells for :func:`pandas.to_datetime`, with the month first in doubt; None if there is none."""
    import pandas
    from pandas.tseries.api import guess_datetime_format

    some = words.dropna().drop_duplicates()
    some = some.iloc[:: max(1, len(some) // TRIED)]
    if not len(some) or not some.str.contains(r"\d[-/.: ]").all():
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # pandas warns that day and month may be swapped
        guesses = [ISO, *(guess_datetime_format(word, dayfirst=day) for day in (False, True) for word in some.head(5))]
        for guess in dict.fromkeys(guesses):
            if guess is None or (guess == ISO and len(some.iloc[0]) < len("2024-02")):
                continue
            if pandas.to_datetime(some, format=guess, errors="coerce", utc=True).notna().all():
                return guess
    return None


def is_frame(X: Any) -> bool:
    """Whether `X` is a data frame, of pandas or polars."""
    return type(X).__name__ == "DataFrame" and hasattr(X, "columns") and hasattr(X, "dtypes")


def as_frame(X: Any, names: Sequence[str] | None = None) -> pd.DataFrame:
    """Convert `X` to a pandas data frame. Columns of an array get `names`, by default x0, x1, ..."""
    import pandas

    if isinstance(X, pandas.DataFrame):
        return X
    if is_frame(X):  # polars: pandas gets its columns as NumPy arrays
        return pandas.DataFrame({name: pandas.Series(X[name].to_list()) for name in X.columns})
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(f"`X` must be a data frame or have shape (n_samples, n_features), got shape {array.shape}")
    if names is not None and len(names) != array.shape[1]:
        raise ValueError(f"`X` must have the {len(names)} columns that were fitted, got {array.shape[1]}")
    given = [f"x{i}" for i in range(array.shape[1])] if names is None else list(names)
    return pandas.DataFrame(array, columns=given, copy=False)


def written_columns(frame: pd.DataFrame) -> dict[str, str]:
    """The columns that this library wrote and that are not features, by their names, with reasons."""
    there = [str(name) for name in frame]
    found = dict.fromkeys((INDEX, PATH, LABEL, CLASS), "embed") if feature_columns(frame) else {}
    own = [f"{name}{TAKEN}" if f"{name}{TAKEN}" in there else name for name in CLUSTERING]
    values = frame[own[2]] if {*own[:3]} <= {*there} else None
    if values is not None and values.dtype.kind in "iuf" and values.between(0.0, 1.0).all():
        found |= dict.fromkeys(own, "cluster")
        # Only in tables of images; elsewhere "index" may be an ordinary column.
        if INDEX in there and (PATH in there or {*there} <= {INDEX, CLASS, *own}):
            found |= dict.fromkeys((INDEX, PATH, CLASS), "cluster")
    return {name: f"written by neuralbayes {found[name]}, not a feature" for name in there if name in found}


def feature_columns(frame: pd.DataFrame) -> set[str]:
    """The columns f_0, f_1, ... of a table of features of images; none of other tables."""
    names = {str(name) for name in frame if re.fullmatch(rf"{FEATURE}_\d+", str(name))}
    return names if {f"{FEATURE}_0", f"{FEATURE}_1"} <= names else set()
