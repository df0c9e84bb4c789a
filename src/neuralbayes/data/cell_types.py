"""Cells of text as numbers or booleans, where all cells of a column are such.

Numbers may have a decimal point or comma, thousands marks, and a currency or percent sign. Digits with a leading zero
are a code and stay text, and so do dates.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    import pandas as pd

Decimal = Literal[".", ","]

# Missing cells; signs are none in a column of other signs, such as + and -.
SIGNS = ("-", "--", "?", ".", "–", "—")  # noqa: RUF001
MISSING = (
    *("", "NA", "N/A", "n/a", "<NA>", "#N/A", "#NA", "NaN", "nan", "NAN", "-nan", "-NaN", "NULL", "Null", "null"),
    *("None", "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!"),
    *SIGNS,
)

BLANKS, CURRENCIES = " \u00a0\u202f\u2009", "$€£¥"
THOUSANDS = (*BLANKS, "'", "’")  # noqa: RUF001

EXACT = 2**53  # largest integer up to which all are exact in double precision


def typed(cells: Any, marks: tuple[Decimal, ...] = (".", ","), *, text: bool = False) -> pd.Series[Any]:
    """A column of text, a ChunkedArray, as numbers or booleans if all cells are such; `marks` are tried in order."""
    if not text and (numbers := _plain(cells, marks[0])) is not None:
        return as_series(numbers)
    trimmed, missing = _trimmed(cells)
    known = _without(trimmed, missing)
    if known.null_count == len(known):
        return as_series(known.cast(pa.float64()))
    if not text:
        for read, mark in [(_plain, marks[0]), *((_human, mark) for mark in marks), (_plain, ".")]:
            if (numbers := read(known, mark)) is not None:
                return as_series(numbers)
        if _all(known, "^(?i:true|false)$"):
            return as_series(pc.equal(pc.utf8_lower(known), "true"))
    signs = pc.is_in(trimmed, pa.array(SIGNS))
    if pc.any(signs).as_py() and _any(known, r"^[^\pL\pN]+$"):
        missing = pc.and_not(missing, signs)
    return as_series(_without(cells, missing))


def find_decimal(columns: list[Any], separator: str) -> Decimal:
    """The decimal mark of a file: a comma if some column shows it and none shows a point."""
    comma = point = either = False
    for cells in columns:
        known = _without(*_trimmed(cells))
        if _cast(known, "int64") is None:
            as_point = _cast(known, "float64") is not None or _all(known, number_pattern("."))
            as_comma = _all(known, number_pattern(","))
            point |= as_point and not as_comma
            comma |= as_comma and not as_point
            either |= as_point and as_comma and _any(known, ",")
    return "," if not point and (comma or (either and separator == ";")) else "."


@cache
def number_pattern(decimal: Decimal) -> str:
    """Regular expression of a number with this decimal mark, such as 1,234.5, $ 7 or 12 %."""
    point, group = (r"\.", ",") if decimal == "." else (",", r"\.")
    grouped = "|".join(rf"(?:{mark}\d{{3}})+" for mark in (group, *THOUSANDS))
    whole = rf"(?:[1-9]\d{{0,2}}(?:{grouped})|\d+)"
    number = rf"(?:{whole}(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?"
    sign, money = "[+−-]?", f"[{CURRENCIES}]?"  # noqa: RUF001
    return rf"^{sign}{money}[{BLANKS}]?{sign}{number}[{BLANKS}]?[{CURRENCIES}%]?$"


def _plain(cells: Any, decimal: Decimal) -> Any:
    """Integers, or numbers with a decimal point, in the format of programs; None if any cell differs."""
    numbers = _cast(cells, "int64")
    if numbers is None and decimal == ".":
        numbers = _cast(cells, "float64")
        if numbers is not None and _all(cells, r"^\d+$"):  # more digits than numbers can hold
            return None
    return None if numbers is None or _has_codes(cells) else numbers


def _has_codes(cells: Any) -> bool:
    """Whether a cell of digits begins with a zero, or with 0x."""
    return _any(cells.filter(pc.starts_with(cells, "0")), "^0[0-9xX][0-9a-fA-F]*$")


def _human(known: Any, decimal: Decimal) -> Any:
    """Numbers in human formats with this decimal mark; None if a cell differs or units are mixed."""
    if not _all(known, number_pattern(decimal)) or _has_codes(known):
        return None
    mixed_percent = _any(known, "%$") and not _all(known, "%$")
    if mixed_percent or sum(_any(known, f"[{sign}]") for sign in CURRENCIES) > 1:
        return None
    group = "," if decimal == "." else "."
    bare = pc.replace_substring_regex(known, f"[{group}{''.join(THOUSANDS)}{CURRENCIES}%+]", "")
    bare = pc.replace_substring(pc.replace_substring(bare, decimal, "."), "−", "-")  # noqa: RUF001
    numbers = _cast(bare, "int64")
    if numbers is None and _all(bare, r"^-?\d+$"):  # more digits than numbers can hold
        return None
    return _cast(bare, "float64") if numbers is None else numbers


def _trimmed(cells: Any) -> tuple[Any, Any]:
    """Cells without surrounding blanks, and a mask of missing cells."""
    trimmed = pc.utf8_trim(cells, BLANKS + "\t")
    return trimmed, pc.is_in(trimmed, pa.array(MISSING))


def _without(cells: Any, missing: Any) -> Any:
    return pc.if_else(missing, pa.scalar(None, pa.string()), cells)


def _cast(cells: Any, kind: str) -> Any:
    try:
        return pc.cast(cells, kind)
    except pa.ArrowInvalid:
        return None


def _all(cells: Any, pattern: str) -> bool:
    # For most columns of text, the first cells are enough to see that they do not match.
    few = pc.all(pc.match_substring_regex(cells.slice(0, 20), pattern)).as_py()
    return bool(few is not False and pc.all(pc.match_substring_regex(cells, pattern)).as_py())


def _any(cells: Any, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(cells, pattern)).as_py())


def as_series(array: Any) -> pd.Series[Any]:
    """An Arrow column as a Series, of a nullable type if its integers would be rounded, or booleans are missing."""
    import pandas

    dtype: Any = None
    if pa.types.is_null(array.type):
        array = array.cast(pa.float64())
    elif array.null_count and pa.types.is_boolean(array.type):
        dtype = pandas.BooleanDtype()
    elif array.null_count and pa.types.is_integer(array.type):
        dtype = pandas.Int64Dtype() if max(map(abs, pc.min_max(array).as_py().values())) > EXACT else None
    series: pd.Series[Any] = array.to_pandas() if dtype is None else pandas.Series(dtype.__from_arrow__(array))
    return series
