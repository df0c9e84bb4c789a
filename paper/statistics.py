"""Means with confidence intervals over seeds, and the verdict that differences give on a claim."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from paper.reproduced import Interval
from paper.results_page import Power, Verdict

CONFIDENCE = 0.95
POWER = 0.8
"""Share of repetitions in which the interval should exclude 0."""


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds.

    Attributes
    ----------
    mean : float
    half : float or None
        Half the width of its 95 % confidence interval (Student's t); None for a single value.
    error : float or None
        Its standard error; None for a single value.
    runs : int
        Number of values.
    """

    mean: float
    half: float | None = None
    error: float | None = None
    runs: int = 1

    @property
    def positive(self) -> bool:
        """Whether the whole interval is above 0; False for a single value, which has no interval."""
        return self.half is not None and self.mean > self.half

    @property
    def sure(self) -> bool:
        """Whether the interval excludes 0."""
        return self.half is not None and abs(self.mean) > self.half

    @property
    def needed(self) -> int | None:
        """Runs at which a difference as large as this one is significant with probability 0.8; None if unknown.

        The standard error shrinks with the square root of the number of runs, and must fall to the difference divided
        by 1.96 + 0.84.

        Examples
        --------
        >>> Estimate(1.0, 2.4, error=1.0, runs=10).needed, Estimate(0.0, 2.4, error=1.0, runs=10).needed
        (79, None)
        """
        if self.error is None or self.mean == 0.0:
            return None
        from scipy.stats import norm

        ratio = float(norm.ppf(0.5 + CONFIDENCE / 2) + norm.ppf(POWER)) * self.error / self.mean
        return max(self.runs, math.ceil(self.runs * ratio**2))

    def minus(self, other: Estimate) -> Estimate:
        """The difference from another, independent estimate.

        Examples
        --------
        >>> Estimate(5.0, 3.0).minus(Estimate(1.0, 4.0)).text(1, 1)
        '4.0 ± 5.0'
        """

        def added(a: float | None, b: float | None) -> float | None:
            return None if a is None or b is None else math.hypot(a, b)

        return Estimate(
            self.mean - other.mean, added(self.half, other.half), added(self.error, other.error), self.runs + other.runs
        )

    def text(self, digits: int = 1, factor: float = 100.0, sign: bool = False) -> str:
        """Format as "54.1 ± 1.2"; by default in percent. One more digit if it shows whether the interval contains 0.

        Examples
        --------
        >>> Estimate(0.541, 0.012).text(), Estimate(0.02).text(sign=True), Estimate(3.0).text(2, 1)
        ('54.1 ± 1.2', '+2.0', '3.00')
        >>> Estimate(0.0051, 0.0049).text()
        '0.51 ± 0.49'
        """
        mean = f"{factor * self.mean:{'+' if sign else ''}.{digits}f}"
        if self.half is None:
            return mean
        half = f"{factor * self.half:.{digits}f}"
        if mean.lstrip("+-") == half and float(half) > 0:
            return f"{factor * self.mean:{'+' if sign else ''}.{digits + 1}f} ± {factor * self.half:.{digits + 1}f}"
        return f"{mean} ± {half}"


def estimate(values: Sequence[float]) -> Estimate:
    """Mean of one value per seed.

    Examples
    --------
    >>> estimate([1.0, 2.0, 3.0]).text(2, 1)  # 4.303 * 1 / sqrt(3)
    '2.00 ± 2.48'
    """
    if not values:
        raise ValueError("`values` must not be empty")
    n = len(values)
    if n == 1:
        return Estimate(values[0])
    error = statistics.stdev(values) / math.sqrt(n)
    return Estimate(statistics.fmean(values), _quantile(n - 1) * error, error, n)


def text(values: Sequence[float], digits: int = 1, factor: float = 100.0) -> str:
    """Format the estimate as a table cell: the mean with its interval, both of two values, or "-" without values.

    The interval of two values is so wide that it would say less than the values.

    Examples
    --------
    >>> text([0.601, 0.787]), text([0.6, 0.7, 0.8]), text([])
    ('60.1, 78.7', '70.0 ± 24.8', '-')
    """
    if len(values) == 2:
        return ", ".join(Estimate(value).text(digits, factor) for value in values)
    return estimate(values).text(digits, factor) if values else "-"


def interval(values: Sequence[float]) -> Interval | None:
    """The estimate in percent, for a figure; None without values."""
    if not values:
        return None
    found = estimate([100.0 * value for value in values])
    return found.mean, found.half


def difference(a: Sequence[float], b: Sequence[float]) -> Estimate:
    """Mean of `a` minus mean of `b`, which are independent, with Welch's interval.

    Examples
    --------
    >>> difference([3.0, 5.0], [1.0, 3.0]).text(2, 1)  # 4.303 * sqrt(1 + 1)
    '2.00 ± 6.08'
    """
    mean = statistics.fmean(a) - statistics.fmean(b)
    n = len(a) + len(b)
    if len(a) < 2 or len(b) < 2:
        return Estimate(mean, runs=n)
    variances = [statistics.variance(values) / len(values) for values in (a, b)]
    total = sum(variances)
    if total == 0.0:
        return Estimate(mean, 0.0, 0.0, n)
    freedom = total**2 / sum(v**2 / (len(values) - 1) for v, values in zip(variances, (a, b), strict=True))
    return Estimate(mean, _quantile(freedom) * math.sqrt(total), math.sqrt(total), n)


def verdict(differences: Sequence[Estimate]) -> Verdict:
    """The verdict on a claim that all differences are positive.

    The claim holds if all confidence intervals are above 0, and holds in part if some are. Otherwise it is undecided if
    a mean is above 0, and does not hold if none is.

    Examples
    --------
    >>> up, unsure, down = Estimate(0.1, 0.05), Estimate(0.1, 0.2), Estimate(-0.1)
    >>> verdict([up]), verdict([up, down]), verdict([unsure, down]), verdict([down]), verdict([])
    ('holds', 'holds in part', 'undecided', 'does not hold here', 'not run')
    """
    if not differences:
        return "not run"
    sure = [d.positive for d in differences]
    if any(sure):
        return "holds" if all(sure) else "holds in part"
    return "undecided" if any(d.mean > 0 for d in differences) else "does not hold here"


def majority(differences: Sequence[Estimate]) -> Verdict:
    """The verdict on a claim that most differences are positive.

    The claim holds if more than half of the intervals are above 0, and does not hold if more than half are below 0.

    Examples
    --------
    >>> up, unsure, down = Estimate(0.1, 0.05), Estimate(0.1, 0.2), Estimate(-0.1, 0.05)
    >>> majority([up, up, down]), majority([unsure, down, down]), majority([up, unsure, down]), majority([])
    ('holds', 'does not hold here', 'undecided', 'not run')
    """
    if not differences:
        return "not run"
    sure = [d.mean > 0 for d in differences if d.sure]
    if 2 * sum(sure) > len(differences):
        return "holds"
    return "does not hold here" if 2 * (len(sure) - sum(sure)) > len(differences) else "undecided"


def power(differences: Sequence[Estimate], each: int = 1) -> Power | None:
    """Runs needed to make all differences significant; None if they already are, or if the number is unknown.

    `each` is the number of runs behind one value, which may be a mean of several runs or a difference of two.

    Examples
    --------
    >>> power([Estimate(1.0, 2.4, error=1.0, runs=10), Estimate(1.0, 0.5, error=0.2, runs=10)])
    Power(runs=20, needed=89)
    >>> power([Estimate(1.0, 0.5, error=0.2, runs=10)]) is None
    True
    """
    if all(d.sure for d in differences):
        return None
    needed = [d.runs if d.sure else d.needed for d in differences]
    found = [n for n in needed if n is not None]
    if len(found) < len(differences):
        return None
    return Power(each * sum(d.runs for d in differences), each * sum(found))


def _quantile(freedom: float) -> float:
    from scipy.stats import t

    return float(t.ppf(0.5 + CONFIDENCE / 2, freedom))
