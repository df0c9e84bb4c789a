"""Cells of text become columns of numbers, truth values or text, each by all of its cells.

Numbers are taken as people write them: with a decimal point or comma, with marks between thousands, with a currency or
a percent sign. Digits with a leading zero are a code and stay text.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd

Decimal = Literal[".", ","]

SIGNS = ("-", "--", "?", ".", "–", "—")  # noqa: RUF001
"""Missing cells, unless the column holds other signs, as one of + and - does."""

MISSING = (
    *("", "NA", "N/A", "n/a", "<NA>", "#N/A", "#NA", "NaN", "nan", "NAN", "-nan", "-NaN", "NULL", "Null", "null"),
    *("None", "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!"),
    *SIGNS,
)
"""What stands in cells that have no value."""

BLANKS = " \u00a0\u202f\u2009"
CURRENCIES = "$€£¥"
THOUSANDS = (" ", "\u00a0", "\u202f", "\u2009", "'", "’")  # noqa: RUF001
LOOKED_AT = 10_000
"""Rows that decide on the decimal mark of a file, for columns that can be read either way."""

EXACT = 2**53
"""Whole numbers up to here are exact in double precision."""

CODES_BEGIN = [f"0{character}".encode() for character in "0123456789xX"]


def frame_of_cells(
    columns: dict[str, Any], decimal: Decimal | None, separator: str, as_text: frozenset[str] = frozenset()
) -> tuple[pd.DataFrame, Decimal]:
    """Columns of text as a DataFrame, and the decimal mark of numbers.

    Parameters
    ----------
    columns : dict of str to pyarrow.ChunkedArray of str
        It is emptied, so that no column is in memory twice.
    decimal : "." or ",", optional
        The mark in all columns; by default each column shows its own, and where it could be either the others do.
    separator : str
        Between cells: with a semicolon the comma is rather in numbers.
    as_text : set of str
        Columns that stay text.
    """
    import pandas

    names = list(columns)
    common = decimal or find_decimal([columns[name].slice(0, LOOKED_AT) for name in names], separator)
    marks: tuple[Decimal, ...] = (decimal,) if decimal else (common, "," if common == "." else ".")
    series = {name: typed(columns.pop(name), marks, text=name in as_text) for name in names}
    return pandas.DataFrame(series, copy=False), common


def typed(cells: Any, marks: tuple[Decimal, ...] = (".", ","), *, text: bool = False) -> pd.Series[Any]:
    """A column of text as a Series: of numbers or truth values if all cells are such, else of text.

    Parameters
    ----------
    cells : pyarrow.ChunkedArray of str
    marks : tuple of "." and ","
        The decimal marks to try, in this order.
    text : bool
        Whether it stays text in any case.

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
    """The decimal mark of a file: the comma where a column shows it and none shows the point."""
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
    """Whether columns of numbers show a decimal comma, a decimal point, or commas that may be either."""
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
    """The regular expression of a number with this decimal mark, as people write it.

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
    """Whole numbers, or with a decimal point numbers, as programs write them; None if there is anything else."""
    numbers = _cast(cells, "int64")
    if numbers is None and decimal == ".":
        numbers = _cast(cells, "float64")
        if numbers is not None and _all(cells, r"^\d+$"):  # more digits than numbers have
            return None
    return None if numbers is None or _has_codes(cells) else numbers


def _has_codes(cells: Any) -> bool:
    """Whether a cell of digits begins with a zero, or with 0x."""
    import pyarrow
    import pyarrow.compute as pc

    ahead = pc.is_in(pc.binary_slice(cells.cast("binary"), 0, 2), pyarrow.array(CODES_BEGIN))
    return bool(pc.any(ahead).as_py()) and _any(cells.filter(ahead), "^0[0-9xX][0-9a-fA-F]*$")


def _written(known: Any, decimal: Decimal) -> Any:
    """Numbers as people write them, with this decimal mark; None if a cell is something else, or units are mixed."""
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
    if numbers is None and _all(bare, r"^-?\d+$"):  # more digits than numbers have
        return None
    return _cast(bare, "float64") if numbers is None else numbers


def _trimmed(cells: Any) -> tuple[Any, Any]:
    """Cells without blanks around them, and which of them are missing."""
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
    """Whether all cells that are not null match."""
    import pyarrow.compute as pc

    # Most columns of text show in their first cells that they are none.
    few = pc.all(pc.match_substring_regex(cells.slice(0, 20), pattern)).as_py()
    return bool(few is not False and pc.all(pc.match_substring_regex(cells, pattern)).as_py())


def _any(cells: Any, pattern: str) -> bool:
    """Whether a cell that is not null matches."""
    import pyarrow.compute as pc

    return bool(pc.any(pc.match_substring_regex(cells, pattern)).as_py())


def series_of(array: Any, dtype: Any = None) -> pd.Series[Any]:
    """An array as a Series, of an extension type of pandas or of the usual one."""
    import pandas

    series: pd.Series[Any] = array.to_pandas() if dtype is None else pandas.Series(dtype.__from_arrow__(array))
    return series
