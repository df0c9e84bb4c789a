"""Convert columns of text cells to numbers, booleans or text, based on all cells of a column.

Numbers may have a decimal point or comma, thousands marks, and a currency or percent sign. Digits with a leading zero
are a code and stay text.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd

Decimal = Literal[".", ","]

SIGNS = ("-", "--", "?", ".", "–", "—")  # noqa: RUF001
"""Text of missing cells, unless the column has other signs, such as + and -."""

MISSING = (
    *("", "NA", "N/A", "n/a", "<NA>", "#N/A", "#NA", "NaN", "nan", "NAN", "-nan", "-NaN", "NULL", "Null", "null"),
    *("None", "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!"),
    *SIGNS,
)
"""Text of cells without a value."""

BLANKS = " \u00a0\u202f\u2009"
CURRENCIES = "$€£¥"
THOUSANDS = (" ", "\u00a0", "\u202f", "\u2009", "'", "’")  # noqa: RUF001
LOOKED_AT = 10_000
"""Number of rows for detecting the decimal mark of ambiguous columns."""

EXACT = 2**53
"""Largest integer that is exact in double precision."""

CODES_BEGIN = [f"0{character}".encode() for character in "0123456789xX"]


def frame_of_cells(
    columns: dict[str, Any], decimal: Decimal | None, separator: str, as_text: frozenset[str] = frozenset()
) -> tuple[pd.DataFrame, Decimal]:
    """Columns of text as a DataFrame, and the decimal mark of numbers.

    Parameters
    ----------
    columns : dict of str to pyarrow.ChunkedArray of str
        It is emptied to save memory.
    decimal : "." or ",", optional
        Decimal mark of all columns. By default it is detected for each column; ambiguous columns follow the others.
    separator : str
        Separator of cells. With a semicolon, commas are probably decimal marks.
    as_text : set of str
        Columns to keep as text.
    """
    import pandas

    names = list(columns)
    common = decimal or find_decimal([columns[name].slice(0, LOOKED_AT) for name in names], separator)
    marks: tuple[Decimal, ...] = (decimal,) if decimal else (common, "," if common == "." else ".")
    series = {name: typed(columns.pop(name), marks, text=name in as_text) for name in names}
    return pandas.DataFrame(series, copy=False), common


def typed(cells: Any, marks: tuple[Decimal, ...] = (".", ","), *, text: bool = False) -> pd.Series[Any]:
    """A column of text as a Series of numbers or booleans if all cells are such, otherwise of text.

    Parameters
    ----------
    cells : pyarrow.ChunkedArray of str
    marks : tuple of "." and ","
        Decimal marks to try, in order.
    text : bool
        Whether to keep it as text.

    Examples
    --------
    >>> import pyarrow
    >>> typed(pyarrow.chunked_array([["1.234,5", "NA", "7"]])).tolist()
    [1234.5, nan, 7.0]
    >>> typed(pyarrow.chunked_array([["02750", "10001"]])).tolist()
    ['02750', '10001']
    """
    import pandas
    import pyarrow
    import pyarrow.compute as pc

    numbers = None if text else _plain(cells, marks[0])
    if numbers is None:
        trimmed, missing = _trimmed(cells)
        known = _without(trimmed, missing)
        if known.null_count == len(known):
            return pandas.Series([float("nan")] * len(known))
        if not text:
            numbers = _plain(known, marks[0])
            if numbers is None:
                numbers = next((found for mark in marks if (found := _written(known, mark)) is not None), None)
            if numbers is None and marks[0] == ",":
                numbers = _plain(known, ".")
            if numbers is None and _is_boolean(known):
                flags = pc.equal(pc.utf8_lower(known), "true")
                return series_of(flags, pandas.BooleanDtype() if flags.null_count else None)
        if numbers is None:
            if pc.any(pc.is_in(trimmed, pyarrow.array(SIGNS))).as_py() and _any(known, r"^[^\pL\pN]+$"):
                missing = pc.and_not(missing, pc.is_in(trimmed, pyarrow.array(SIGNS)))
            return series_of(_without(cells, missing))
    if pyarrow.types.is_integer(numbers.type) and numbers.null_count:
        ends = pc.min_max(numbers).as_py()
        if max(-ends["min"], ends["max"]) > EXACT:
            return series_of(numbers, pandas.Int64Dtype())
    return series_of(numbers)


def find_decimal(columns: list[Any], separator: str) -> Decimal:
    """The decimal mark of a file: a comma if some column shows it and none shows a point."""
    plain: list[Any] = []
    others: list[Any] = []
    for cells in columns:
        if _cast(cells, "int64") is None:
            (others if _cast(cells, "float64") is None else plain).append(cells)
    comma, point, either = _marks_in(others)
    if (comma or either) and not point:
        point = _marks_in(plain)[1]
    return "," if not point and (comma or (either and separator == ";")) else "."


def _marks_in(columns: list[Any]) -> tuple[bool, bool, bool]:
    """Whether columns of numbers have a decimal comma, a decimal point, or ambiguous commas."""
    comma = point = either = False
    for cells in columns:
        known = _without(*_trimmed(cells))
        if _cast(known, "int64") is None:
            as_point, as_comma = _all(known, number_pattern(".")), _all(known, number_pattern(","))
            point |= as_point and not as_comma
            comma |= as_comma and not as_point
            either |= as_point and as_comma and _any(known, ",")
    return comma, point, either


@cache
def number_pattern(decimal: Decimal) -> str:
    """Regular expression of a number with this decimal mark.

    Examples
    --------
    >>> import re
    >>> [bool(re.match(number_pattern("."), text)) for text in ("1,234.5", "$ 7", "1,5", "12 %")]
    [True, True, False, True]
    """
    point, group = (r"\.", ",") if decimal == "." else (",", r"\.")
    grouped = "|".join(rf"(?:{mark}\d{{3}})+" for mark in (group, *THOUSANDS))
    whole = rf"(?:[1-9]\d{{0,2}}(?:{grouped})|\d+)"
    exponent = r"(?:[eE][+-]?\d+)?"
    sign, money = "[+−-]?", f"[{CURRENCIES}]?"  # noqa: RUF001
    return (
        rf"^{sign}{money}[{BLANKS}]?{sign}(?:{whole}(?:{point}\d*)?|{point}\d+){exponent}[{BLANKS}]?[{CURRENCIES}%]?$"
    )


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
    import pyarrow
    import pyarrow.compute as pc

    ahead = pc.is_in(pc.binary_slice(cells.cast("binary"), 0, 2), pyarrow.array(CODES_BEGIN))
    return bool(pc.any(ahead).as_py()) and _any(cells.filter(ahead), "^0[0-9xX][0-9a-fA-F]*$")


def _written(known: Any, decimal: Decimal) -> Any:
    """Numbers in human formats with this decimal mark; None if a cell differs or units are mixed."""
    import pyarrow.compute as pc

    if not _all(known, number_pattern(decimal)) or _has_codes(known):
        return None
    percent = pc.ends_with(known, "%")
    if pc.any(percent).as_py() and not pc.all(percent).as_py():
        return None
    if sum(_any(known, f"[{sign}]") for sign in CURRENCIES) > 1:
        return None
    group = "," if decimal == "." else "."
    bare = pc.replace_substring_regex(known, f"[{group}{BLANKS}{''.join(THOUSANDS)}{CURRENCIES}%+]", "")
    bare = pc.replace_substring(pc.replace_substring(bare, decimal, "."), "−", "-")  # noqa: RUF001
    numbers = _cast(bare, "int64")
    if numbers is None and _all(bare, r"^-?\d+$"):  # more digits than numbers can hold
        return None
    return _cast(bare, "float64") if numbers is None else numbers


def _trimmed(cells: Any) -> tuple[Any, Any]:
    """Cells without surrounding blanks, and a mask of missing cells."""
    import pyarrow
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim(cells, BLANKS + "\t")
    return trimmed, pc.is_in(trimmed, pyarrow.array(MISSING))


def _without(cells: Any, missing: Any) -> Any:
    import pyarrow
    import pyarrow.compute as pc

    return pc.if_else(missing, pyarrow.scalar(None, pyarrow.string()), cells)


def _is_boolean(known: Any) -> bool:
    return _all(known, "^(?i:true|false)$")


def _cast(cells: Any, kind: str) -> Any:
    import pyarrow.compute as pc
    from pyarrow import ArrowInvalid

    try:
        return pc.cast(cells, kind)
    except ArrowInvalid:
        return None


def _all(cells: Any, pattern: str) -> bool:
    """Whether all non-null cells match."""
    import pyarrow.compute as pc

    # For most columns of text, the first cells are enough to see that they do not match.
    few = pc.all(pc.match_substring_regex(cells.slice(0, 20), pattern)).as_py()
    return bool(few is not False and pc.all(pc.match_substring_regex(cells, pattern)).as_py())


def _any(cells: Any, pattern: str) -> bool:
    """Whether any non-null cell matches."""
    import pyarrow.compute as pc

    return bool(pc.any(pc.match_substring_regex(cells, pattern)).as_py())


def series_of(array: Any, dtype: Any = None) -> pd.Series[Any]:
    """Convert an array to a Series, with a pandas extension type or a NumPy type."""
    import pandas

    series: pd.Series[Any] = array.to_pandas() if dtype is None else pandas.Series(dtype.__from_arrow__(array))
    return series
