"""What a person sees: text without escape sequences, what is being done, tables, pages in a browser."""

from __future__ import annotations

import io
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
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

Part = str | tuple[str, str] | Text

PATIENCE = 2.0
"""Seconds until the terminal shows what is being done."""


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
    r"""Text without the control characters that names of files, columns and cells may contain.

    Examples
    --------
    >>> print(plain("a\x1b]0;title\x07b"))
    a\x1b]0;title\x07b
    """
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode-escape").decode() for c in str(text))


def styled(*parts: Part, style: str = "") -> Text:
    """Join text, and text with a style, without control characters."""
    text = Text(style=style)
    for part in parts:
        words, of_part = part if isinstance(part, tuple) else (part, "")
        text.append(words if isinstance(words, Text) else plain(words), of_part or None)
    return text


def say(*parts: Part, style: str = "") -> None:
    """Print one line or paragraph to standard output. Lines of a file are not wrapped."""
    console = Console(highlight=False)
    console.print(styled(*parts, style=style), soft_wrap=not console.is_terminal)


def tell(*parts: Part, style: str = "") -> None:
    """Like :func:`say`, to standard error."""
    console = Console(stderr=True, highlight=False)
    console.print(styled(*parts, style=style), soft_wrap=not console.is_terminal)


def say_paths(paths: Iterable[tuple[str, object]]) -> None:
    """Print paths and commands, each in one line that can be copied."""
    for name, path in paths:
        Console(highlight=False).print(styled((f"{name:<10}", "dim"), str(path)), soft_wrap=True)


def say_table(headings: Iterable[str], rows: Iterable[Iterable[object]], *, numbers: Iterable[str] = ()) -> None:
    """Print a table; the columns in `numbers` are aligned right, and the last column may be wrapped."""
    headings, right = list(headings), set(numbers)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading, justify="right" if heading in right else "left", no_wrap=heading in right)
    for row in rows:
        table.add_row(*map(_cell, row))
    Console(highlight=False).print(table)


def _cell(value: object) -> Text:
    return value if isinstance(value, Text) else Text(plain(value))


@contextmanager
def working(doing: str, *, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Yield a function that says what is being done: in a terminal, after two seconds, removed at the end."""
    console = Console(stderr=True, highlight=False)
    if quiet or not console.is_terminal:
        yield lambda text: None
        return
    status = console.status(styled(doing))
    timer = threading.Timer(PATIENCE, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda text: status.update(styled(text))
    finally:
        timer.cancel()
        timer.join()
        status.stop()


def open_page(page: Path) -> None:
    """Open a page in the browser."""
    if not webbrowser.open(page.absolute().as_uri()):
        tell("no browser could be opened here", style="yellow")
