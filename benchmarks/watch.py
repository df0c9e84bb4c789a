"""Measure speed as ratios within one run, and compare them with the last recorded commit.

    python benchmarks/watch.py                  measure, and compare with results/bench/ratios.jsonl
    python benchmarks/watch.py --record         the same, and append a line for this commit
    python benchmarks/watch.py --only steps     measure a part of the table

A ratio is our processor time, or peak memory, divided by that of the alternative, on one thread. A ratio that has grown
by more than a third since the last record is marked.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from records import ROOT, parser
from rich.console import Console
from rich.table import Table
from watched import PARTS, Measured, measure

RECORD = ROOT / "results" / "bench" / "ratios.jsonl"
GROWN = 4 / 3
"""A ratio that has grown by more than this factor is marked. Two runs of one commit differ by less."""

Line = dict[str, Any]


def read_records(path: Path) -> list[Line]:
    """The lines of the record, oldest first."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def newest(records: list[Line]) -> dict[str, float]:
    """The last recorded value of each ratio; a line may contain only a part of the table."""
    return {name: ratio for record in records for name, ratio in record["ratios"].items()}


def key(one: Measured) -> str:
    """The name of a ratio in the record."""
    return f"{one.what} / {one.beside}"


def grown(found: list[Measured], last: dict[str, float]) -> list[str]:
    """Names of the ratios that have grown by more than `GROWN` since the last record."""
    return [key(one) for one in found if one.ratio > GROWN * last.get(key(one), one.ratio)]


def as_table(found: list[Measured], last: dict[str, float]) -> Table:
    """Make a table of all ratios and their last recorded values."""
    table = Table(title="Processor time on one thread, and memory", caption="ARI: adjusted Rand index")
    for column in ("what", "compared with"):
        table.add_column(column)
    for column in ("ours", "other", "ratio", "last", "ARI", "ARI, other"):
        table.add_column(column, justify="right", no_wrap=True)
    marked = set(grown(found, last))
    for one in found:
        before = last.get(key(one))
        scores = ["", ""] if one.scores is None else [f"{score:.2f}" for score in one.scores]
        style = "bold red" if key(one) in marked else None
        table.add_row(
            one.what,
            one.beside,
            f"{one.ours:.3g} {one.unit}",
            f"{one.theirs:.3g} {one.unit}",
            f"{one.ratio:.2f}",
            "" if before is None else f"{before:.2f}",
            *scores,
            style=style,
        )
    return table


def line_of(found: list[Measured]) -> Line:
    """Make the line of the record for a run."""
    describe = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    commit = subprocess.run(describe, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    return {
        "commit": commit or "unknown",
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in ("torch", "scikit-learn", "numpy", "scipy", "pandas")},
        "ratios": {key(one): float(f"{one.ratio:.3g}") for one in found},
    }


def append(line: Line, path: Path) -> None:
    """Add a line to the record."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--record", action="store_true", help="append the ratios to results/bench/ratios.jsonl")
    arguments.add_argument(
        "--only", nargs="+", default=list(PARTS), choices=PARTS, metavar="PART", help="measure these"
    )
    given = arguments.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 140)
    last = newest(read_records(RECORD))
    start = time.perf_counter()
    found = measure(given.only, lambda part: print(f"{part} ...", file=sys.stderr, flush=True))
    console.print(as_table(found, last))
    console.print(f"measured in {time.perf_counter() - start:.0f} s")
    for name in grown(found, last):
        console.print(f"grown by more than a third since the last record: {name}", style="bold red")
    if given.record:
        append(line_of(found), RECORD)


if __name__ == "__main__":
    main()
