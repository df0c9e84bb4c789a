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
    from rich.progress import Progress, TaskID
    from rich.text import Text


class Display:
    """Base class: counts steps and samples, and shows nothing."""

    def __init__(self, total: int, completed: int) -> None:
        self.total = total
        self.completed = completed
        self._started_at = completed
        self._start = time.monotonic()
        self._samples = 0
        self._metrics: Mapping[str, float] = {}

    def advance(self, *, samples: int = 0, metrics: Mapping[str, float] | None = None) -> None:
        """Count a step of `samples` samples and show its `metrics`."""
        self.completed += 1
        self._samples += samples
        self._metrics = metrics or {}
        self._show()

    def _show(self) -> None:
        """Show the new state."""

    def _summary(self) -> str:
        """Metrics and throughput since the start of this process, for example "loss 0.51  1200 samples/s".

        Metrics of the same kind are combined: mi/a and mi/b become "mi 0.12 3.4".
        """
        kinds: dict[str, list[float]] = {}
        for name, value in self._metrics.items():
            kinds.setdefault(name.split("/")[0], []).append(value)
        parts = [
            " ".join([kind, *(f"{value:.4g}" if len(values) == 1 else f"{value:.3g}" for value in values)])
            for kind, values in kinds.items()
        ]
        if self._samples:
            parts.append(f"{self._samples / max(time.monotonic() - self._start, 1e-9):.4g} samples/s")
        return "  ".join(parts)


class _Lines(Display):
    """Plain lines, at most one every `interval` seconds and one at the end."""

    def __init__(self, total: int, completed: int, description: str, interval: float) -> None:
        super().__init__(total, completed)
        self._description = description
        self._interval = interval
        self._printed = self._start

    def _show(self) -> None:
        now = time.monotonic()
        if self.completed < self.total and now - self._printed < self._interval:
            return
        self._printed = now
        per_step = (now - self._start) / (self.completed - self._started_at)
        left = timedelta(seconds=round(per_step * (self.total - self.completed)))
        print(f"{self._description} {self.completed}/{self.total}  {self._summary()}  {left} left", flush=True)


class _Bar(Display):
    """A progress bar of rich, with the numbers on a separate line (two lines in a narrow terminal)."""

    def __init__(self, total: int, completed: int, bar: Progress, task: TaskID, line: Text) -> None:
        super().__init__(total, completed)
        self._bar = bar
        self._task = task
        self._line = line

    def _show(self) -> None:
        self._bar.update(self._task, completed=self.completed)
        self._line.plain = self._summary()


@contextmanager
def progress(
    total: int,
    *,
    description: str = "step",
    completed: int = 0,
    enabled: bool = True,
    interval: float = 10.0,
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
    interval : float, default=10.0
        Seconds between lines if standard output is not a terminal.
    console : rich.console.Console, optional
        Console; standard output by default.

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

    from rich.console import Console

    console = console or Console()
    if not console.is_terminal:
        yield _Lines(total, completed, description, interval)
        return

    from rich.console import Group
    from rich.live import Live
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.text import Text

    bar = Progress("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("left"))
    task = bar.add_task(description, total=total, completed=completed)
    line = Text()
    with Live(Group(bar, line), console=console):
        yield _Bar(total, completed, bar, task, line)
