"""Means with confidence intervals over seeds, and what a difference says of a claim."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from neuralbayes.report.reproduced import Interval
from neuralbayes.report.results_page import Verdict

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds.

    Attributes
    ----------
    mean : float
    half : float or None
        Half of the width of its 95 % confidence interval, Student's; None for a single value.
    """

    mean: float
    half: float | None = None

    @property
    def positive(self) -> bool:
        """Whether the whole interval is above 0; never for a single value, which has none."""
        return self.half is not None and self.mean > self.half

    def minus(self, other: Estimate) -> Estimate:
        """The difference to another one, which is independent of this.

        Examples
        --------
        >>> Estimate(5.0, 3.0).minus(Estimate(1.0, 4.0))
        Estimate(mean=4.0, half=5.0)
        """
        halves = (self.half, other.half)
        half = None if halves[0] is None or halves[1] is None else math.hypot(halves[0], halves[1])
        return Estimate(self.mean - other.mean, half)

    def text(self, digits: int = 1, factor: float = 100.0, sign: bool = False) -> str:
        """Such as "54.1 ± 1.2"; by default in percent.

        Examples
        --------
        >>> Estimate(0.541, 0.012).text(), Estimate(0.02).text(sign=True), Estimate(3.0).text(2, 1)
        ('54.1 ± 1.2', '+2.0', '3.00')
        """
        mean = f"{factor * self.mean:{'+' if sign else ''}.{digits}f}"
        return mean if self.half is None else f"{mean} ± {factor * self.half:.{digits}f}"


def estimate(values: Sequence[float]) -> Estimate:
    """Mean of one value a seed.

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
    return Estimate(statistics.fmean(values), _quantile(n - 1) * statistics.stdev(values) / math.sqrt(n))


def text(values: Sequence[float], digits: int = 1, factor: float = 100.0) -> str:
    """The estimate as a cell of a table; "-" where there are no values."""
    return estimate(values).text(digits, factor) if values else "-"


def interval(values: Sequence[float]) -> Interval | None:
    """The estimate in percent, for a picture; None where there are no values."""
    if not values:
        return None
    found = estimate([100.0 * value for value in values])
    return found.mean, found.half


def difference(a: Sequence[float], b: Sequence[float]) -> Estimate:
    """Mean of `a` minus mean of `b`, which are independent: Welch's interval.

    Examples
    --------
    >>> difference([3.0, 5.0], [1.0, 3.0]).text(2, 1)  # 4.303 * sqrt(1 + 1)
    '2.00 ± 6.08'
    """
    mean = statistics.fmean(a) - statistics.fmean(b)
    if len(a) < 2 or len(b) < 2:
        return Estimate(mean)
    variances = [statistics.variance(values) / len(values) for values in (a, b)]
    total = sum(variances)
    if total == 0.0:
        return Estimate(mean, 0.0)
    freedom = total**2 / sum(v**2 / (len(values) - 1) for v, values in zip(variances, (a, b), strict=True))
    return Estimate(mean, _quantile(freedom) * math.sqrt(total))


def verdict(differences: Sequence[Estimate]) -> Verdict:
    """What differences that a claim says are positive say of it.

    It holds where all of their confidence intervals are above 0 and in part where some are. Else it is undecided where
    a mean is above 0, and does not hold where none is.

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


def _quantile(freedom: float) -> float:
    from scipy.stats import t

    return float(t.ppf(0.5 + CONFIDENCE / 2, freedom))
