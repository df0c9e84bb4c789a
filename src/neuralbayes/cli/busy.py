"""A sign of life while something runs that cannot say how far it is."""

from __future__ import annotations

from contextlib import AbstractContextManager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


def busy(doing: str, *, enabled: bool) -> AbstractContextManager[object]:
    """Show what is being done and for how long, in a terminal only, until the block ends; then leave no trace."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    progress = Progress(*columns, console=console, transient=True, disable=not (enabled and console.is_terminal))
    progress.add_task(doing, total=None)
    return progress
