"""A bar for work that turns out to be long: nothing is drawn in the first two seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

DELAY = 2.0  # seconds before the bar shows itself


class _LateBar:
    """Counts from the start, draws from `DELAY` on."""

    def __init__(self, description: str, total: int | None, unit: str) -> None:
        self._description = description
        self._total = total
        self._unit = unit
        self._completed = 0
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._lock = threading.Lock()
        self._closed = False
        # A timer, not a look at the clock in advance(): a client such as npm says nothing while it downloads.
        self._timer = threading.Timer(DELAY, self._draw)
        self._timer.daemon = True
        self._timer.start()

    def advance(self, amount: int) -> None:
        with self._lock:
            self._completed += amount
            if self._bar is not None and self._task is not None:
                self._bar.update(self._task, completed=self._completed)

    def close(self) -> None:
        self._timer.cancel()
        with self._lock:
            self._closed = True
            if self._bar is not None:
                self._bar.stop()

    def _draw(self) -> None:
        from rich.console import Console
        from rich.errors import LiveError
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            Progress,
            ProgressColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        columns: list[ProgressColumn] = [TimeElapsedColumn()]
        if self._total is not None:
            columns = [DownloadColumn() if self._unit == "bytes" else MofNCompleteColumn(), TimeRemainingColumn()]
        with self._lock:
            if self._closed:
                return
            # Standard error: standard output belongs to what a command prints.
            bar = Progress("{task.description}", BarColumn(), *columns, console=Console(stderr=True))
            self._task = bar.add_task(self._description, total=self._total, completed=self._completed)
            try:
                bar.start()
            except LiveError:  # the caller draws a bar of his own
                return
            self._bar = bar


@contextmanager
def late_bar(
    description: str, total: int | None, *, unit: str = "items", enabled: bool = True
) -> Iterator[Callable[[int], None]]:
    """Yield a function that counts work done; a bar appears when the work takes longer than two seconds.

    Parameters
    ----------
    description : str
    total : int or None
        The amount of work, None when it is not known.
    unit : {"items", "bytes"}, default="items"
    enabled : bool, default=True
        Whether anything may be drawn at all.

    Examples
    --------
    >>> with late_bar("reading", 3) as advance:
    ...     advance(3)
    """
    if not enabled:
        yield lambda amount: None
        return
    bar = _LateBar(description, total, unit)
    try:
        yield bar.advance
    finally:
        bar.close()
