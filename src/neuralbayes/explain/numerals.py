"""Write numbers, shares and dates as people write them, and find round thresholds between two values."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

DAY = 86_400.0


def as_number(value: float) -> str:
    """Format a number without superfluous digits.

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
    """Format a number with three significant digits; keep all digits before the decimal point.

    Examples
    --------
    >>> [short_number(value) for value in (4207.3, 38.812, 0.012345, 12345.0)]
    ['4207', '38.8', '0.0123', '12,345']
    """
    size = abs(value)
    return as_number(float(f"{value:.0f}" if 100 <= size < 1e9 else f"{value:.3g}"))


def as_date(seconds: float) -> str:
    """Format seconds since 1970 as a day, with the time unless it is midnight.

    Examples
    --------
    >>> as_date(0.0), as_date(86_400.0 + 3_600.0)
    ('1970-01-01', '1970-01-02 01:00')
    """
    moment = np.datetime64(round(seconds), "s")
    day = moment.astype("datetime64[D]")
    return str(day) if moment == day else str(moment.astype("datetime64[m]")).replace("T", " ")


def as_percent(share: float) -> str:
    """Format a share as a percentage; "0 %" and "100 %" are exact.

    Examples
    --------
    >>> as_percent(0.004), as_percent(0.996), as_percent(0.5)
    ('0.4 %', '99.6 %', '50 %')
    """
    percent = 100.0 * share
    return f"{percent:.0f} %" if percent in (0.0, 100.0) or 0.5 <= percent < 99.5 else f"{percent:.1f} %"


def rounder_numbers(value: float, after: float, spread: float) -> Iterator[float]:
    """Yield thresholds near `value`, the roundest first; the last is at least `value` and below `after`.

    `value` and `after` are the two neighbouring numbers that the threshold separates, and the `spread` of all numbers
    limits how far thresholds are rounded.

    Examples
    --------
    >>> list(rounder_numbers(3.87, 3.94, 5.0))
    [4.0, 3.9]
    """
    if not after > value:
        yield value
        return
    place = math.floor(math.log10(spread)) if spread > 0 else 0
    for digits in range(-place, -place + 12):
        for found in dict.fromkeys(round(near, digits) for near in ((value + after) / 2.0, value)):
            yield found
            if value <= found < after:
                return
    yield value


def rounder_dates(value: float, after: float) -> Iterator[float]:
    """Yield thresholds near a date: the beginning of a year, of a month, of a day, then the date itself.

    Examples
    --------
    >>> [as_date(found) for found in rounder_dates(*(DAY * day for day in (27.0, 28.0)))]
    ['1970-01-01', '1970-02-01', '1970-01-28']
    """
    for unit in ("Y", "M", "D"):
        moment = np.datetime64(round(value), "s")
        start = moment.astype(f"datetime64[{unit}]")
        near = min((start, start + 1), key=lambda one: abs(one.astype("datetime64[s]") - moment))
        found = float(near.astype("datetime64[s]").astype(np.int64))
        yield found
        if value <= found < after:
            return
    yield value
