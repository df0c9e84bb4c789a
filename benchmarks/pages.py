"""Tables of the pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def table(heads: Sequence[str], rows: Sequence[Sequence[Any]], left: int = 1) -> str:
    """A table whose first `left` columns are words and the others numbers."""
    marks = ["---"] * left + ["---:"] * (len(heads) - left)
    return "\n".join(f"| {' | '.join(map(_cell, cells))} |" for cells in (heads, marks, *rows))


def _cell(value: Any) -> str:
    return str(value).replace("|", r"\|")
