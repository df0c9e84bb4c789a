"""A progress bar that appears only after two seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def late_bar(
    description: str, total: int | None, *, unit: str = "items", enabled: bool = True, delay: float = 2.0
) -> Iterator[Callable[[int], None]]:
    """Yield a function that counts progress. A bar appears if the work takes longer than `delay` seconds.

    Parameters
    ----------
    description : str
    total : int or None
        Amount of work; None if unknown.
    unit : {"items", "bytes"}, default="items"
    enabled : bool, default=True
        Whether to draw anything.
    delay : float, default=2.0

    Examples
    --------
    >>> with late_bar("reading", 3) as advance:
    ...     advance(3)
    """
    if not enabled:
        yield lambda amount: None
        return

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
    if total is not None:
        columns = [DownloadColumn() if unit == "bytes" else MofNCompleteColumn(), TimeRemainingColumn()]
    # Standard error, because standard output is for the results of a command.
    bar = Progress("{task.description}", BarColumn(), *columns, console=Console(stderr=True))
    task = bar.add_task(description, total=total)
    drawn = threading.Event()

    def draw() -> None:
        try:
            bar.start()
        except LiveError:  # the caller draws its own bar
            return
        drawn.set()

    # A timer instead of a check in advance(): a client such as npm reports nothing while it downloads.
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
