"""Tables of the results page, with text in their cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A table with a title above and a note below."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    note: str = ""
    words: bool = False

    def markdown(self) -> str:
        """Format as Markdown.

        Examples
        --------
        >>> print(Table("Accuracy", ("encoder", "%"), [("random", "44.4")]).markdown())
        **Accuracy**
        <BLANKLINE>
        | encoder | % |
        | --- | ---: |
        | random | 44.4 |
        """
        rules = ("---", *["---" if self.words else "---:"] * (len(self.head) - 1))
        lines = [f"**{self.title}**", "", *(_line(row) for row in (self.head, rules, *self.rows))]
        return "\n".join([*lines, *(["", self.note] if self.note else [])])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
