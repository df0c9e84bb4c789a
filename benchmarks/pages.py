"""Markdown tables for pages, and the results they are made from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def table(heads: Sequence[str], rows: Sequence[Sequence[Any]], left: int = 1) -> str:
    """Make a table. Its first `left` columns contain words and the others numbers."""
    marks = ["---"] * left + ["---:"] * (len(heads) - left)
    return "\n".join(f"| {' | '.join(map(_cell, cells))} |" for cells in (heads, marks, *rows))


def _cell(value: Any) -> str:
    return str(value).replace("|", r"\|")


def result_path(name: str) -> Path:
    return Path(__file__).parents[1] / "results" / name


def read_result(name: str) -> Any:
    """Read a file in results/."""
    return json.loads(result_path(name).read_text(encoding="utf-8"))
