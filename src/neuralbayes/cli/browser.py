"""Open a page in a browser."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path

from rich.console import Console
from rich.text import Text


def open_if_wanted(page: Path, wanted: bool | None) -> None:
    """Open `page` if `wanted`; if None, ask in a terminal."""
    if wanted is None:
        wanted = _somebody_sees_it() and _agreed("Open it now? [Y/n] ")
    if wanted and not webbrowser.open(page.absolute().as_uri()):
        Console(stderr=True).print(Text("no browser could be opened here", style="yellow"))


def _somebody_sees_it() -> bool:
    """Whether there are a terminal and a graphical browser."""
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
    """Ask: Enter means yes; Ctrl-C and the end of input mean no."""
    try:
        return input(question).strip().lower() in ("", "y", "yes")
    except (EOFError, KeyboardInterrupt):
        print()  # so that the shell's prompt starts on a new line
        return False
