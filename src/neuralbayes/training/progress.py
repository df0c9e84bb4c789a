"""Progress: a bar in a terminal, occasional lines in a file, or nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from neuralbayes.training.checks import check_integer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.text import Text


class Display:
    """Counts steps and samples, and shows them: on a bar of rich, in lines, or not at all."""

    def __init__(
        self, total: int, completed: int = 0, bar: Progress | None = None, below: Text | None = None, line: str = ""
    ) -> None:
        self.total = total
        self.completed = completed
        self._bar = bar
        self._below = below  # the numbers have a line of their own, for narrow terminals
        self._line = line  # what a line begins with; no lines without it
        self._started_at = completed
        self._start = self._printed = time.monotonic()
        self._samples = 0

    def advance(self, *, samples: int = 0, metrics: Mapping[str, float] | None = None, interval: float = 10.0) -> None:
        """Count a step of `samples` samples and show its `metrics`; lines are at least `interval` seconds apart."""
        self.completed += 1
        self._samples += samples
        now = time.monotonic()
        if self._bar is not None and self._below is not None:
            self._bar.update(self._bar.task_ids[0], completed=self.completed)
            self._below.plain = self._summary(metrics or {}, now - self._start)
        elif self._line and (self.completed == self.total or now - self._printed >= interval):
            self._printed = now
            numbers = self._summary(metrics or {}, now - self._start)
            per_step = (now - self._start) / (self.completed - self._started_at)
            left = timedelta(seconds=round(per_step * (self.total - self.completed)))
            print(f"{self._line} {self.completed}/{self.total}  {numbers}  {left} left", flush=True)

    def _summary(self, metrics: Mapping[str, float], seconds: float) -> str:
        """Metrics and throughput: "loss 0.51  1200 samples/s". Metrics of a kind, mi/a and mi/b, share a word."""
        kinds: dict[str, list[str]] = {}
        for name, value in metrics.items():
            kinds.setdefault(name.split("/")[0], []).append(f"{value:.4g}")
        parts = [" ".join([kind, *values]) for kind, values in kinds.items()]
        if self._samples:
            parts.append(f"{self._samples / max(seconds, 1e-9):.4g} samples/s")
        return "  ".join(parts)


@contextmanager
def progress(
    total: int,
    *,
    description: str = "step",
    completed: int = 0,
    enabled: bool = True,
    console: Console | None = None,
) -> Iterator[Display]:
    """Show the progress of `total` steps: yields an object whose ``advance(samples=, metrics=)`` counts one.

    Parameters
    ----------
    total : int
    description : str, default="step"
        Name of a step.
    completed : int, default=0
        Steps done before an interruption. Throughput and remaining time ignore them.
    enabled : bool, default=True
        Whether to show anything.
    console : rich.console.Console, optional
        Console; standard output by default. If it is not a terminal, a line is printed every ten seconds.

    Examples
    --------
    >>> with progress(3, description="epoch", enabled=False) as display:
    ...     for _ in range(3):
    ...         display.advance(samples=64, metrics={"loss": 0.5})
    >>> display.completed
    3
    """
    total = check_integer("total", total, 0)
    if not enabled:
        yield Display(total, completed)
        return

    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.text import Text

    console = console or Console()
    if not console.is_terminal:
        yield Display(total, completed, line=description)
        return
    bar = Progress("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("left"))
    bar.add_task(description, total=total, completed=completed)
    below = Text()
    with Live(Group(bar, below), console=console):
        yield Display(total, completed, bar, below)
