"""A progress bar that appears only after two seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def late_bar(
    description: str, total: int | None, *, unit: str = "items", enabled: bool = True, delay: float = 2.0
) -> Iterator[Callable[[int], None]]:
    """Yield a function that counts progress. A bar appears if the work takes longer than `delay` seconds."""
    if not enabled:
        yield lambda amount: None
        return

    from rich.console import Console
    from rich.errors import LiveError
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    amounts = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
    # Standard error, because standard output is for the results of a command.
    bar = Progress("{task.description}", BarColumn(), amounts, TimeRemainingColumn(), console=Console(stderr=True))
    task = bar.add_task(description, total=total)
    drawn = threading.Event()

    def draw() -> None:
        try:
            bar.start()
        except LiveError:  # the caller draws its own bar
            return
        drawn.set()

    timer = threading.Timer(delay, draw)
    timer.daemon = True
    timer.start()
    try:
        yield lambda amount: bar.advance(task, amount)
    finally:
        timer.cancel()
        timer.join()
        if drawn.is_set():
            bar.stop()


def watched(items: Iterable[T], description: str, total: int, enabled: bool) -> Iterator[T]:
    """Yield the items and count them in a late bar."""
    with late_bar(description, total, enabled=enabled) as advance:
        for item in items:
            yield item
            advance(1)
