"""Checks of plain arguments: an error names the parameter, what it must be and what it got."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any


def check_integer(name: str, value: Any, minimum: int) -> int:
    """Return `value` as an int of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"`{name}` must be an integer, got {value!r}")
    if value < minimum:
        raise ValueError(f"`{name}` must be at least {minimum}, got {value}")
    return int(value)


def check_number(name: str, value: Any, *, low: float, high: float = math.inf, open_low: bool = False) -> float:
    """Return `value` as a finite float in [low, high], or in (low, high] with `open_low`.

    Examples
    --------
    >>> check_number("warmup", 1.5, low=0, high=1)
    Traceback (most recent call last):
    ...
    ValueError: `warmup` must be a finite number in [0, 1], got 1.5
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"`{name}` must be a number, got {value!r}")
    number = float(value)
    above = number > low if open_low else number >= low
    if not (above and number <= high and math.isfinite(number)):
        interval = f"{'(' if open_low else '['}{low}, {high}]"
        raise ValueError(f"`{name}` must be a finite number in {interval}, got {value}")
    return number
