"""What the file of each table and figure has: its runs, and tables, pictures and claims from their records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from paper.claims import Claim
from paper.runs import Results, Run, Scale
from paper.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Picture:
    """A picture: the name of its file without folder and suffix, its caption, and how to draw it."""

    name: str
    caption: str
    draw: Callable[[], Figure]


class Experiment(Protocol):
    """A file of this folder that reproduces a table or figure."""

    NAME: str
    TITLE: str
    ABOUT: str  # what is done, and how it differs from the paper
    AT_FULL_SCALE: str  # how long a run takes at scale "paper"

    def runs(self, scale: Scale, seeds: int | None, /) -> Sequence[Run]:
        """The runs for a number of seeds (None: that of the scale)."""

    def tables(self, results: Results, /) -> list[Table]: ...

    def pictures(self, results: Results, /) -> list[Picture]: ...

    def claims(self, results: Results, /) -> list[Claim]: ...

    def settings(self, settings: Mapping[str, Any], /) -> dict[str, Any]:
        """Readable settings of a run, by the names in `paper.published.SETTINGS`."""

    def not_run(self, results: Results, /) -> list[str]:
        """What the paper has and the records have not."""
