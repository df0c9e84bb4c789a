"""What each table and figure has: its runs at each scale, and tables, pictures and claims from their records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from paper.claims import Claim
from paper.runs import Results, Run, Scale
from paper.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Picture:
    """A picture of an experiment.

    Attributes
    ----------
    name : str
        Name of its file, without folder and suffix.
    caption : str
    draw : callable
        Draws it, without arguments.
    """

    name: str
    caption: str
    draw: Callable[[], Figure]


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper.

    Attributes
    ----------
    name, title : str
    about : str
        What is done and how it differs from the paper.
    runs : callable
        Lists the runs for a scale and a number of seeds (None: that of the scale).
    tables, pictures, claims : callable
        From all or some of the records.
    settings : callable
        Readable settings of a run, by the names in `paper.published.SETTINGS`.
    not_run : callable
        What the paper has and the records have not, one sentence each.
    at_full_scale : str
        How long a run takes at scale "paper".
    """

    name: str
    title: str
    about: str
    runs: Callable[[Scale, int | None], Sequence[Run]]
    tables: Callable[[Results], list[Table]]
    pictures: Callable[[Results], list[Picture]]
    claims: Callable[[Results], list[Claim]]
    settings: Callable[[Mapping[str, Any]], dict[str, Any]]
    not_run: Callable[[Results], list[str]]
    at_full_scale: str
