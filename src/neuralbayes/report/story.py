"""A page of sections, each a heading, a sentence, pictures and a command."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from neuralbayes.report.members import data_url
from neuralbayes.report.page import write_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Section(NamedTuple):
    """A section of a page: figures of matplotlib, and the command that makes something like it."""

    heading: str
    sentence: str = ""
    pictures: Sequence[Figure] = ()
    command: str = ""


def write_story(path: str | Path, title: str, sections: Sequence[Section]) -> Path:
    """Write a page of `sections`, which may be tuples in the order of the attributes of `Section`."""
    every = [Section(*one) for one in sections]
    shown = [(one, [_address(figure) for figure in one.pictures]) for one in every]
    return write_html(path, "story.html", title=title, sections=shown)


def _address(figure: Figure) -> str:
    """A figure as the data URL of a PNG."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=160)
    return data_url(file.getvalue(), "image/png")
