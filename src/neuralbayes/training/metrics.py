"""metrics.jsonl: one line per log interval. The file depends only on the run: it contains no times or dates."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path

from neuralbayes.system.files import atomic_write, inside, named_errors, read_bounded


def write_metrics(path: Path, record: Mapping[str, float]) -> None:
    """Append a line: ``step`` (updates), ``epoch`` (completed epochs), ``lr`` and the metrics.

    Values that are not finite are written as null, because JSON has no NaN.
    """
    with named_errors(path), open(inside(path.parent, path.name), "a", encoding="utf-8") as file:
        file.write(_line(record))


def sync_metrics(path: Path) -> None:
    """Flush all lines to disk, before the checkpoint that relies on them."""
    with named_errors(path), open(inside(path.parent, path.name), "a", encoding="utf-8") as file:
        os.fsync(file.fileno())


def cut_metrics(path: Path, step: int) -> list[dict[str, float]]:
    """Drop the lines written after `step`, and return the remaining ones."""
    records = [record for record in read_metrics(path) if record["step"] <= step]
    with atomic_write(inside(path.parent, path.name)) as temporary:
        temporary.write_text("".join(map(_line, records)), encoding="utf-8")
    return records


def read_metrics(path: str | Path) -> list[dict[str, float]]:
    """Read a metrics.jsonl: one dictionary per line, with null as NaN.

    A last line that a crash has truncated is ignored. Any other damaged line raises a ValueError that names it, as does
    a file larger than 64 MB. A missing file has no lines.

    Examples
    --------
    >>> with open("metrics.jsonl", "w") as file:
    ...     print('{"step": 20, "loss": 3.5}', '{"step": 40, "loss": null}', sep="\\n", file=file)
    >>> read_metrics("metrics.jsonl")
    [{'step': 20, 'loss': 3.5}, {'step': 40, 'loss': nan}]
    """
    path = Path(path)
    if not path.exists():
        return []
    lines = read_bounded(path).decode("utf-8", errors="replace").splitlines()
    records: list[dict[str, float]] = []
    for number, line in enumerate(lines, start=1):
        try:
            values = json.loads(line)
            if not isinstance(values, dict) or not isinstance(values.get("step"), int):
                raise ValueError("not an object with a step")
            for value in values.values():
                if not isinstance(value, float | None) and not (isinstance(value, int) and abs(value) < 2**63):
                    raise ValueError("a value that is not a number")
        except (ValueError, RecursionError) as error:
            if number == len(lines):
                break
            raise ValueError(f"{path}, line {number} is not a line of metrics ({error})") from error
        records.append({name: math.nan if value is None else value for name, value in values.items()})
    return records


def _line(record: Mapping[str, float]) -> str:
    return json.dumps({name: value if math.isfinite(value) else None for name, value in record.items()}) + "\n"
