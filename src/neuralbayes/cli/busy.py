"""A spinner for work without known progress."""

from __future__ import annotations

from contextlib import AbstractContextManager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


def busy(doing: str, *, enabled: bool) -> AbstractContextManager[object]:
    """Show a message and the elapsed time while the block runs, only in a terminal, and remove them at the end."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    progress = Progress(*columns, console=console, transient=True, disable=not (enabled and console.is_terminal))
    progress.add_task(doing, total=None)
    return progress
