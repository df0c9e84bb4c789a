"""Estimate how long a training takes on this machine by timing a step."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from neuralbayes.training import Callback

TIMED = 16
"""Samples in the timed step."""


class StepClock(Callback):
    """Measures the seconds between the ends of the last two steps. The first step still allocates memory and does not
    count."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._last: float | None = None

    def on_step_end(self, state: Any, metrics: Mapping[str, float]) -> None:
        now = time.perf_counter()
        if self._last is not None:
            self.seconds = now - self._last
        self._last = now


def seconds_per_sample(train: Callable[[StepClock], object], n_samples: int = TIMED) -> float:
    """Seconds per sample of a training that takes a clock and makes at least two steps of `n_samples` each."""
    clock = StepClock()
    train(clock)
    return clock.seconds / n_samples
