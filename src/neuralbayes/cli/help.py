"""Help pages of cyclopts, with descriptions that ignore the line breaks of docstrings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cyclopts.help import DefaultFormatter
from rich.text import Text

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions


class Flowing(DefaultFormatter):
    """Draws the panels of a page of help."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        for entry in panel.entries:
            text = getattr(entry.description, "primary_renderable", None)
            if isinstance(text, Text):
                text.plain = text.plain.replace("\n", " ")
        super().__call__(console, options, panel)
