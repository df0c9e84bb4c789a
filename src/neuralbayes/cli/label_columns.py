"""Columns of a table on the command line: options, and the overview before the work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table as Grid
from rich.text import Text

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from neuralbayes.data.column_kinds import Column

SHOWN = 40
"""Maximum number of columns with a line each; with more, only ignored columns are listed."""


def kinds_said(said: Sequence[str]) -> dict[str, str]:
    """Parse ``--as COLUMN=KIND``, by column.

    Examples
    --------
    >>> kinds_said(["zip=category", "a=b=ignore"])
    {'zip': 'category', 'a=b': 'ignore'}
    """
    kinds = {}
    for words in said:
        name, sign, kind = words.rpartition("=")
        if not sign or not name:
            raise ValueError(f"--as must be COLUMN=KIND, such as --as zip=category, got {words!r}")
        kinds[name] = kind
    return kinds


def chosen_kinds(frame: pd.DataFrame, columns: Sequence[str] | None, said: dict[str, str]) -> dict[str, str]:
    """Kinds that are given: those of the user, and "ignore" for columns that were not selected.

    Selected columns are always used, except constants.
    """
    from neuralbayes.data.column_cells import as_numbers
    from neuralbayes.data.column_kinds import recognize

    if columns is None:
        return said
    if odd := set(said) - set(columns):
        raise ValueError(f"--as names {sorted(odd)[0]!r}, which --columns does not select")
    kinds = dict.fromkeys((str(name) for name in frame if str(name) not in columns), "ignore")
    for column in recognize(frame[list(columns)], said):
        if column.kind in ("id", "written"):
            kinds[column.name] = "number" if as_numbers(frame[column.name])[1] else "category"
    return kinds | said


def show_columns(title: str, n_rows: int, columns: Sequence[Column], console: Console) -> None:
    """Print the kind of each column and the reason."""
    from neuralbayes.data.column_kinds import in_words

    console.print(Text(f"{title}: {n_rows:,} rows, {in_words(list(columns))}", style="bold"), soft_wrap=True)
    shown = [column for column in columns if len(columns) <= SHOWN or not column.used][:SHOWN]
    if not shown:
        return
    grid = Grid(box=box.SIMPLE_HEAD)
    for heading in ("column", "kind", "missing", "why"):
        grid.add_column(heading, justify="right" if heading == "missing" else "left", no_wrap=heading == "kind")
    for column in shown:
        style = "" if column.used else "dim"
        missing = f"{100 * column.missing:.1f} %" if column.missing else ""
        kind = column.kind if column.used else f"left out: {column.kind}"
        grid.add_row(*(Text(cell, style=style) for cell in (column.name, kind, missing, column.reason)))
    console.print(grid)


def column_records(columns: Sequence[Column]) -> list[dict[str, Any]]:
    """The columns as JSON types."""
    return [{**vars(column), "used": column.used} for column in columns]
