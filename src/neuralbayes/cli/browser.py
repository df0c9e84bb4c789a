"""Opening a page in a browser, if there is one and somebody wants it."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path

from rich.console import Console
from rich.text import Text


def open_if_wanted(page: Path, wanted: bool | None) -> None:
    """Open `page` if it is `wanted`; where that is None, ask whoever sits at the terminal, if anybody does."""
    if wanted is None:
        wanted = _somebody_sees_it() and _agreed("Open it now? [Y/n] ")
    if wanted and not webbrowser.open(page.absolute().as_uri()):
        Console(stderr=True).print(Text("no browser could be opened here", style="yellow"))


def _somebody_sees_it() -> bool:
    """Whether a person is there, and a browser that has a window."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("CI"):
        return False
    if sys.platform in ("darwin", "win32"):
        window = not os.environ.get("SSH_CONNECTION")
    else:
        window = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    if not window:
        return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def _agreed(question: str) -> bool:
    """The answer: Enter is yes; Ctrl-C and the end of input are no."""
    try:
        return input(question).strip().lower() in ("", "y", "yes")
    except (EOFError, KeyboardInterrupt):
        print()  # the shell's prompt is not to stand beside the question
        return False
