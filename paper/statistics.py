"""Means with 95 % confidence intervals over independent seeds or draws, and differences of such means."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scipy.stats import t

from paper.runs import Results, by


@dataclass(frozen=True)
class Estimate:
    """A mean over independent values."""

    mean: float
    half: float | None
    n: int

    def text(self, digits: int = 1, factor: float = 100.0, sign: bool = False) -> str:
        """Format as "54.1 ± 1.2"; by default in percent. One more digit if it shows whether the interval contains 0.

        Examples
        --------
        >>> Estimate(0.541, 0.012, 3).text(), Estimate(0.02, None, 1).text(sign=True)
        ('54.1 ± 1.2', '+2.0')
        >>> Estimate(0.0051, 0.0049, 3).text()
        '0.51 ± 0.49'
        """
        mean = f"{factor * self.mean:{'+' if sign else ''}.{digits}f}"
        if self.half is None:
            return mean
        half = f"{factor * self.half:.{digits}f}"
        if mean.lstrip("+-") == half and float(half) > 0 and digits < 4:
            return self.text(digits + 1, factor, sign)
        return f"{mean} ± {half}"


def estimate(values: Sequence[float]) -> Estimate:
    """Mean of independent values.

    Examples
    --------
    >>> estimate([1.0, 2.0, 3.0]).text(2, 1)  # 4.303 * 1 / sqrt(3)
    '2.00 ± 2.48'
    """
    n = len(values)
    half = None if n < 2 else float(t.ppf(0.975, n - 1)) * statistics.stdev(values) / math.sqrt(n)
    return Estimate(statistics.fmean(values), half, n)


def difference(a: Sequence[float], b: Sequence[float]) -> Estimate:
    """Mean of `a` minus mean of `b`, which are independent, with Welch's interval.

    Examples
    --------
    >>> difference([3.0, 5.0], [1.0, 3.0]).text(2, 1)  # 4.303 * sqrt(1 + 1)
    '2.00 ± 6.08'
    """
    mean, n = statistics.fmean(a) - statistics.fmean(b), min(len(a), len(b))
    if n < 2:
        return Estimate(mean, None, n)
    variances = [statistics.variance(values) / len(values) for values in (a, b)]
    total = sum(variances)
    if total == 0.0:
        return Estimate(mean, 0.0, n)
    freedom = total**2 / sum(v**2 / (len(values) - 1) for v, values in zip(variances, (a, b), strict=True))
    return Estimate(mean, float(t.ppf(0.975, freedom)) * math.sqrt(total), n)


def means(results: Results, unit: Callable[[Any], Any], value: Callable[[Any], float]) -> dict[Any, float]:
    """Mean value of the runs of each independent unit, such as a draw that was repeated with several seeds."""
    return {key: statistics.fmean(map(value, group)) for key, group in by(results, unit).items()}


def paired(a: dict[Any, float], b: dict[Any, float]) -> list[float]:
    """Differences between two groups, for the units in both."""
    return [value - b[key] for key, value in a.items() if key in b]


def text(values: Sequence[float], digits: int = 1, factor: float = 100.0) -> str:
    """Format the mean with its interval as a table cell; one or two values as they are; "-" without values.

    Examples
    --------
    >>> text([0.601, 0.787]), text([0.6, 0.7, 0.8]), text([])
    ('60.1, 78.7', '70.0 ± 24.8', '-')
    """
    if len(values) < 3:
        return ", ".join(f"{factor * value:.{digits}f}" for value in values) or "-"
    return estimate(values).text(digits, factor)
