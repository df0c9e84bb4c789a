"""Progress: a bar in a terminal, occasional lines in a file, a bar for what takes long, or nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.text import Text

T = TypeVar("T")

DELAY = 2.0  # seconds after which a late bar appears


class Display:
    """Counts steps, and shows them on a bar of rich, in lines that begin with `line`, or not at all."""

    def __init__(
        self, total: int, completed: int, bar: Progress | None = None, below: Text | None = None, line: str = ""
    ) -> None:
        self.total, self.completed, self._started_at = total, completed, completed
        self._bar, self._below, self._line = bar, below, line
        self._start = self._printed = time.monotonic()
        self._samples = 0

    def advance(self, *, samples: int = 0, metrics: Mapping[str, float] | None = None, interval: float = 10.0) -> None:
        """Count a step of `samples` samples and show its `metrics`; lines are at least `interval` seconds apart."""
        self.completed += 1
        self._samples += samples
        seconds = max(time.monotonic() - self._start, 1e-9)
        kinds: dict[str, str] = {}  # metrics of a kind, mi/a and mi/b, share a word
        for name, value in (metrics or {}).items():
            kind = name.split("/")[0]
            kinds[kind] = f"{kinds.get(kind, kind)} {value:.4g}"
        rate = [f"{self._samples / seconds:.4g} samples/s"] if self._samples else []
        numbers = "  ".join([*kinds.values(), *rate])
        if self._bar is not None and self._below is not None:
            self._bar.update(self._bar.task_ids[0], completed=self.completed)
            self._below.plain = numbers
        elif self._line and (self.completed == self.total or time.monotonic() - self._printed >= interval):
            self._printed = time.monotonic()
            per_step = seconds / (self.completed - self._started_at)
            left = timedelta(seconds=round(per_step * (self.total - self.completed)))
            print(f"{self._line} {self.completed}/{self.total}  {numbers}  {left} left", flush=True)


@contextmanager
def progress(
    total: int,
    *,
    description: str = "step",
    completed: int = 0,
    enabled: bool = True,
    console: Console | None = None,
) -> Iterator[Display]:
    """Show the progress of `total` steps, named `description`, of which `completed` were done before an interruption.

    Yields an object whose ``advance(samples=, metrics=)`` counts a step. If `console`, by default standard output, is
    not a terminal, a line is printed every ten seconds.

    Examples
    --------
    >>> with progress(3, description="epoch", enabled=False) as display:
    ...     for _ in range(3):
    ...         display.advance(samples=64, metrics={"loss": 0.5})
    >>> display.completed
    3
    """
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
    below = Text()  # the numbers have a line of their own, for narrow terminals
    with Live(Group(bar, below), console=console):
        yield Display(total, completed, bar, below)


@contextmanager
def late_bar(
    description: str, total: int | None, *, unit: str = "items", enabled: bool = True
) -> Iterator[Callable[[int], None]]:
    """Yield a function that counts "items" or "bytes". After two seconds, a bar is drawn on standard error."""
    if not enabled:
        yield lambda amount: None
        return

    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    amounts = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
    bar = Progress("{task.description}", BarColumn(), amounts, TimeRemainingColumn(), console=Console(stderr=True))
    task, start = bar.add_task(description, total=total), time.monotonic()

    def advance(amount: int) -> None:
        bar.advance(task, amount)
        if time.monotonic() - start > DELAY:
            bar.start()

    try:
        yield advance
    finally:
        if bar.live.is_started:
            bar.stop()


def watched(items: Iterable[T], description: str, total: int, enabled: bool) -> Iterator[T]:
    """Yield the items and count them in a late bar."""
    with late_bar(description, total, enabled=enabled) as advance:
        for item in items:
            yield item
            advance(1)
