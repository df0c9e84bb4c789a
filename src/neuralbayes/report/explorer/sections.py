"""What a page says beyond its halves: sections before and after them, in words, pictures, tables and commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from neuralbayes.report.explorer.figures import Picture
from neuralbayes.report.explorer.side import Grid


@dataclass(frozen=True)
class Section:
    """One of them; what it has stands in this order.

    Attributes
    ----------
    name : str
        The anchor: letters alone.
    title : str
    result : str
        What was found, in a sentence or two above the pictures.
    words : sequence of str
        Paragraphs below the pictures.
    gallery : sequence of Picture
        Small ones of a kind, side by side.
    pictures : sequence of Picture
    grids : sequence of Grid
    commands : sequence of (str, str)
        What somebody may want, and the command that does it.
    """

    name: str
    title: str
    result: str = ""
    words: Sequence[str] = ()
    gallery: Sequence[Picture] = ()
    pictures: Sequence[Picture] = ()
    grids: Sequence[Grid] = ()
    commands: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Story:
    """The sections of a page, and the command that writes it."""

    writer: str = "neuralbayes report"
    before: Sequence[Section] = ()
    after: Sequence[Section] = ()


REPORT = Story()
"""That of a report, which has none."""
