"""What a person sees: text without escape sequences, what is being done, tables, pages in a browser."""

from __future__ import annotations

import io
import sys
import threading
import webbrowser
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts.help import DefaultFormatter
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import ConsoleOptions


class Flowing(DefaultFormatter):
    """Panels of a help page, with descriptions that ignore the line breaks of docstrings."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        for entry in panel.entries:
            text = getattr(entry.description, "primary_renderable", None)
            if isinstance(text, Text):
                text.plain = text.plain.replace("\n", " ")
        super().__call__(console, options, panel)


def never_fail_to_print() -> None:
    """Make printing succeed for any character, whatever the encoding of the terminal or file."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def plain(text: object) -> str:
    r"""Text without the control characters that names of files, columns and cells may contain."""
    return "".join(c if c.isprintable() else c.encode("unicode-escape").decode() for c in str(text))


def say(*parts: str | tuple[str, str], style: str = "", stderr: bool = False) -> None:
    """Print a paragraph of texts, or of texts with styles. Lines of a file are not wrapped."""
    console = Console(stderr=stderr, highlight=False)
    pieces = [(part, "") if isinstance(part, str) else part for part in parts]
    text = Text.assemble(*((plain(words), own or style) for words, own in pieces))
    console.print(text, soft_wrap=not console.is_terminal)


tell = partial(say, stderr=True)


def say_paths(**paths: object) -> None:
    """Print paths and commands, each with its name in one line that can be copied."""
    for name, path in paths.items():
        text = Text.assemble((f"{name:<10}", "dim"), plain(path))
        Console(highlight=False).print(text, soft_wrap=True)


def say_table(headings: Iterable[str], rows: Iterable[Iterable[object]], *, numbers: Collection[str] = ()) -> None:
    """Print a table; the columns in `numbers` are aligned right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading, justify="right" if heading in numbers else "left", no_wrap=heading in numbers)
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(plain(cell)) for cell in row))
    Console(highlight=False).print(table)


@contextmanager
def working(doing: str, *, quiet: bool = False, patience: float = 2.0) -> Iterator[Callable[[str], None]]:
    """Yield a function that says what is being done: in a terminal, after `patience` seconds."""
    console = Console(stderr=True, highlight=False)
    if quiet or not console.is_terminal:
        yield lambda text: None
        return
    status = console.status(Text(plain(doing)))
    timer = threading.Timer(patience, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda text: status.update(Text(plain(text)))
    finally:
        timer.cancel()
        timer.join()
        status.stop()


def open_page(page: Path) -> None:
    """Open a page in the browser."""
    if not webbrowser.open(page.absolute().as_uri()):
        tell("no browser could be opened here", style="yellow")
