"""A page of sections, each a heading, a sentence, pictures and a command."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from neuralbayes.report.members import data_url
from neuralbayes.report.page import finish
from neuralbayes.system.files import atomic_write

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
    out = Path(path)
    shown = []
    for one in sections:
        section = Section(*one)
        shown.append((section, [_address(figure) for figure in section.pictures]))
    with atomic_write(out) as temporary:
        temporary.write_text(finish("story.html", None, title=title, sections=shown), encoding="utf-8")
    return out


def _address(figure: Figure) -> str:
    """A figure as the data URL of a PNG."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=160)
    return data_url(file.getvalue(), "image/png")
