"""Convert the cells of a data frame column to numbers, text or dates, whatever their type."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

ISO = "ISO8601"
"""Format of dates such as 2024-02-29, with or without a time, in pandas notation."""

UNHASHABLE = (list, dict, set, np.ndarray)

TRIED = 50
"""Number of cells that must all match a date format before the column is parsed."""


def as_missing(values: pd.Series[Any]) -> NDArray[np.bool_]:
    """Mask of empty cells: missing cells, and text that consists of spaces."""
    missing = np.array(values.isna(), dtype=bool)
    if values.dtype.kind == "O":
        blank = (isinstance(cell, str) and not cell.strip() for cell in values)
        missing |= np.fromiter(blank, bool, len(values))
    return missing


def as_numbers(values: pd.Series[Any]) -> tuple[NDArray[np.float64], int]:
    """The cells as numbers, with NaN for other or infinite cells, and the number of numeric cells.

    Examples
    --------
    >>> import pandas as pd
    >>> as_numbers(pd.Series(["1", " 2.5 ", "many"]))
    (array([1. , 2.5, nan]), 2)
    """
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
    """The cells as stripped text, with None for empty cells, independent of their type.

    Examples
    --------
    >>> import pandas as pd
    >>> [as_words(pd.Series(cells)).tolist() for cells in ([1, 2], [1.0, None], [" a", ""], [True, False])]
    [['1', '2'], ['1', None], ['a', None], ['true', 'false']]
    """
    cells = values.astype(object)
    if any(isinstance(cell, UNHASHABLE) for cell in cells):
        cells = cells.map(lambda cell: str(cell) if isinstance(cell, UNHASHABLE) else cell)
    distinct = {cell: _word(cell) for cell in cells.dropna().unique()}
    words: pd.Series[Any] = cells.map(distinct).astype(object)
    return words.where(words.notna() & (words != ""), None)


def as_dates(values: pd.Series[Any], date_format: str | None) -> NDArray[np.datetime64]:
    """The cells as datetime64[s] without a time zone (converted to UTC), with NaT for cells without a date.

    Parameters
    ----------
    values : Series
    date_format : str or None
        Format of text cells.
    """
    import pandas

    if isinstance(values.dtype, pandas.PeriodDtype):
        values = values.dt.to_timestamp()
    elif values.dtype.kind != "M":
        values = pandas.to_datetime(as_words(values), format=date_format or ISO, errors="coerce", utc=True)
    if getattr(values.dtype, "tz", None) is not None:
        values = values.dt.tz_convert("UTC").dt.tz_localize(None)
    return values.to_numpy().astype("datetime64[s]")


def date_format(words: pd.Series[Any]) -> str | None:
    """The date format of text cells for :func:`pandas.to_datetime`; None if they are not dates.

    If day and month are ambiguous, the month comes first.

    Examples
    --------
    >>> import pandas as pd
    >>> date_format(pd.Series(["31/01/2024", "01/02/2024"])), date_format(pd.Series(["may", "june"]))
    ('%d/%m/%Y', None)
    """
    import pandas
    from pandas.tseries.api import guess_datetime_format

    some = words.dropna().drop_duplicates()
    some = some.iloc[:: max(1, len(some) // TRIED)]
    if not len(some) or not some.str.contains(r"\d[-/.: ]").all():
        return None
    first = some.iloc[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # pandas warns that day and month may be swapped
        guesses = [ISO, *(guess_datetime_format(word, dayfirst=day) for day in (False, True) for word in some.head(5))]
        for guess in dict.fromkeys(guesses):
            if guess is None or (guess == ISO and len(first) < len("2024-02")):
                continue
            if pandas.to_datetime(some, format=guess, errors="coerce", utc=True).notna().all():
                return guess
    return None


def _word(cell: Any) -> str:
    if isinstance(cell, bool | np.bool_):
        return str(cell).lower()
    if isinstance(cell, float | np.floating) and float(cell).is_integer():
        return str(int(cell))
    word = str(cell).strip()
    return word.lower() if word in ("True", "False", "TRUE", "FALSE") else word
