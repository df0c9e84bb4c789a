"""What a training will cost on this machine, from a step that is timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from neuralbayes.training import Callback

TIMED = 16
"""Samples in a step that is timed."""


class StepClock(Callback):
    """The seconds between the ends of the last two steps; the first one, in which memory is still being found, is not
    counted."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._last: float | None = None

    def on_step_end(self, state: Any, metrics: Mapping[str, float]) -> None:
        now = time.perf_counter()
        if self._last is not None:
            self.seconds = now - self._last
        self._last = now


def seconds_per_sample(train: Callable[[StepClock], object], n_samples: int = TIMED) -> float:
    """Of a training that is given a clock and does two steps or more, each of `n_samples`."""
    clock = StepClock()
    train(clock)
    return clock.seconds / n_samples
