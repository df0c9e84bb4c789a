"""Sections before and after the sides of a page: words, pictures, tables and commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from neuralbayes.report.explorer.figures import Picture
from neuralbayes.report.explorer.side import Grid


@dataclass(frozen=True)
class Section:
    """A section. Its parts appear in this order.

    Attributes
    ----------
    name : str
        The anchor; letters only.
    title : str
    result : str
        Summary of the result in one or two sentences, above the pictures.
    words : sequence of str
        Paragraphs below the pictures.
    gallery : sequence of Picture
        Small pictures side by side.
    pictures : sequence of Picture
    grids : sequence of Grid
    commands : sequence of (str, str)
        A task, and the command for it.
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
"""The story of a report, which has no sections."""
