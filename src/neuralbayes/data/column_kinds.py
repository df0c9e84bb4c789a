"""Recognise the kinds of table columns: numbers, categories, dates, text, and columns without information."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from neuralbayes.data.column_cells import as_missing, as_numbers, as_words, date_format
from neuralbayes.data.columns import named_as_code, why_not_continuous
from neuralbayes.data.written import feature_columns, written_columns

if TYPE_CHECKING:
    import pandas as pd

UsedKind = Literal["number", "boolean", "category", "date", "text"]
Kind = Literal["number", "boolean", "category", "date", "text", "id", "constant", "empty", "written", "ignored"]

USED: tuple[UsedKind, ...] = get_args(UsedKind)
"""Kinds of columns that are used."""

OVERRULES = (*USED, "ignore")
"""Kinds that a user may specify."""

PLURAL = {"category": "categories", "constant": "constant", "empty": "empty", "text": "text"}

LEVELS = 20
"""Maximum number of distinct values of a category; the others are combined."""

CODED = 0.95
"""Fraction of text cells that must be numbers, or dates, for the column to count as such."""

EMPTY = 0.7
"""Fraction of missing cells above which a column is left out."""

COUNTED = 0.98
"""Fraction of rows with consecutive numbers above which a column counts as a row counter."""

LONG_WORDS, LONG_CHARACTERS = 5.0, 40.0
"""Mean number of words, or characters, above which distinct cells are text and not ids."""

LOOKED_AT = 20_000
"""Number of evenly spaced rows to inspect."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    name : str
    kind : str
    reason : str
        Reason for the kind.
    missing : float
        Fraction of missing cells.
    """

    name: str
    kind: Kind
    reason: str
    missing: float = 0.0

    @property
    def used(self) -> bool:
        """Whether the column is used."""
        return self.kind in USED

    def checked(self) -> Column:
        """Check a column that was read from a file; raises a ValueError if it is invalid."""
        right = isinstance(self.name, str) and isinstance(self.reason, str) and type(self.missing) in (int, float)
        if not right or self.kind not in get_args(Kind) or not 0.0 <= self.missing <= 1.0:
            raise ValueError(f"{self!r:.200} is not a column of a table")
        return self


def recognize(frame: pd.DataFrame, kinds: Mapping[str, str] | None = None) -> list[Column]:
    """The kind of each column, from its values and its name.

    Parameters
    ----------
    frame : DataFrame
    kinds : mapping of str to str, optional
        Kinds of some columns by name, which override the recognition; "ignore" leaves a column out.

    Returns
    -------
    list of Column
        In the order of `frame`.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"kg": [1.5, 2.0, 4.1], "color": ["red", "blue", "green"], "unit": ["cm", "cm", "cm"]})
    >>> [(column.name, column.kind, column.reason) for column in recognize(frame)]
    [('kg', 'number', '3 values'), ('color', 'category', '3 values'), ('unit', 'constant', "always 'cm'")]
    """
    kinds = check_kinds(frame, kinds)
    some = frame.iloc[:: max(1, len(frame) // LOOKED_AT)]
    written, features = written_columns(some), feature_columns(some)
    found = []
    for name in frame:
        label, values = str(name), some[name]
        missing = float(as_missing(values).mean()) if len(values) else 0.0
        if label in kinds:
            said = kinds[label]
            kind, reason = ("ignored", "not chosen") if said == "ignore" else (said, "as chosen")
        elif label in written:
            kind, reason = "written", written[label]
        elif label in features:
            kind, reason = "number", "a feature of neuralbayes embed"
        else:
            kind, reason = _kind(label, values, missing)
        found.append(Column(label, kind, reason, missing))  # type: ignore[arg-type]
    return found


def check_kinds(frame: pd.DataFrame, kinds: Mapping[str, str] | None) -> dict[str, str]:
    """Check `kinds`: its columns and kinds must exist, and the names of `frame` must be unique."""
    repeated = frame.columns[frame.columns.astype(str).duplicated()]
    if len(repeated):
        raise ValueError(f"column names must differ, got more than one {str(repeated[0])!r}; rename one of them")
    there = [str(name) for name in frame]
    for name, kind in (kinds or {}).items():
        if name not in there:
            shown = ", ".join(map(repr, there[:12])) + (", ..." if len(there) > 12 else "")
            raise ValueError(f"there is no column {name!r} to use as {kind}; the columns are {shown}")
        if kind not in OVERRULES:
            raise ValueError(f"the kind of column {name!r} must be one of {', '.join(OVERRULES)}, got {kind!r}")
    return dict(kinds or {})


def in_words(columns: list[Column]) -> str:
    """Number of columns of each kind, on one line.

    Examples
    --------
    >>> in_words([Column("a", "number", ""), Column("b", "number", ""), Column("c", "id", "")])
    '3 columns: 2 numbers; 1 left out: 1 id'
    """

    def counted(part: list[Column]) -> str:
        kinds = [column.kind for column in part]
        distinct = [kind for kind in get_args(Kind) if kind in kinds]
        return ", ".join(f"{kinds.count(kind)} {_plural(kind, kinds.count(kind))}" for kind in distinct)

    used, left_out = ([column for column in columns if column.used is which] for which in (True, False))
    words = f"{len(columns)} {'column' if len(columns) == 1 else 'columns'}: {counted(used) or 'none usable'}"
    return words + (f"; {len(left_out)} left out: {counted(left_out)}" if left_out else "")


def _plural(kind: str, count: int) -> str:
    return kind if count == 1 else PLURAL.get(kind, kind if kind in ("written", "ignored") else f"{kind}s")


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
    if present.dtype.kind != "b" and n_numbers >= CODED * len(present) and not _coded(present):
        return _kind_of_numbers(name, numbers[np.isfinite(numbers)], stored=present.dtype.kind == "O")
    if present.dtype.kind == "c":
        return "ignored", "complex numbers"
    if any(isinstance(cell, list | dict | set | tuple | np.ndarray) for cell in present.head(100)):
        return "ignored", f"its cells are {type(present.iloc[0]).__name__}s"
    return _kind_of_words(name, as_words(present).astype(object), categorical=hasattr(values, "cat"))


def _kind_of_numbers(name: str, numbers: np.ndarray[Any, Any], *, stored: bool) -> tuple[str, str]:
    if not len(numbers):
        return "empty", "no cell holds a finite number"
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
    if distinct == 1:
        return "constant", f"always {_shortened(counts.index[0])}"
    if distinct == 2 and n > 2:
        return "boolean", f"two values, {_shortened(counts.index[0])} and {_shortened(counts.index[1])}"
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


def _coded(present: pd.Series[Any]) -> bool:
    """Whether cells are digits with leading zeros, as in postal codes."""
    if present.dtype.kind in "iufb":
        return False
    return any(isinstance(cell, str) and re.fullmatch(r"\s*0\d+\s*", cell) for cell in present.head(1000))


def _shortened(word: str, most: int = 30) -> str:
    return repr(word if len(word) <= most else word[: most - 3] + "...")
