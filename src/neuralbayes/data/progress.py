"""A progress bar that appears only after two seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

DELAY = 2.0  # seconds


@contextmanager
def late_bar(
    description: str, total: int | None, *, unit: str = "items", enabled: bool = True
) -> Iterator[Callable[[int], None]]:
    """Yield a function that counts progress, in "items" or "bytes". The bar is drawn on standard error."""
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
