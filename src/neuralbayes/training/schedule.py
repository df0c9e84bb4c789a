"""Learning rate schedules: a factor as a function of progress in [0, 1]."""

from __future__ import annotations

import math
from collections.abc import Callable

from neuralbayes.training.checks import check_number

Schedule = Callable[[float], float]


def cosine(*, warmup: float = 0.0, final: float = 0.0) -> Schedule:
    r"""Linear warm-up from 0 to 1 over the fraction `warmup` of the run, then cosine decay to `final`.

    .. math:: f(t) = \mathrm{final} + (1 - \mathrm{final}) \,
              \tfrac{1}{2}\Bigl(1 + \cos \pi \frac{t - \mathrm{warmup}}{1 - \mathrm{warmup}}\Bigr)
              \quad (t \ge \mathrm{warmup})

    Parameters
    ----------
    warmup : float in [0, 1], default=0.0
    final : float in [0, 1], default=0.0

    Returns
    -------
    A function from progress in [0, 1] to a factor in [0, 1].

    Examples
    --------
    >>> factor = cosine(warmup=0.2, final=0.1)
    >>> [round(factor(t), 3) for t in (0.0, 0.1, 0.2, 0.6, 1.0)]
    [0.0, 0.5, 1.0, 0.55, 0.1]
    """
    warmup = check_number("warmup", warmup, low=0, high=1)
    final = check_number("final", final, low=0, high=1)

    def factor(progress: float) -> float:
        if progress < warmup:
            return progress / warmup
        if warmup == 1.0:
            return 1.0
        turned = (progress - warmup) / (1.0 - warmup)
        return final + (1.0 - final) * 0.5 * (1.0 + math.cos(math.pi * turned))

    return factor
