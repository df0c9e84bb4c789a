"""A run: frozen settings whose hash names its folder. Finished runs are recorded as JSON, one line for each.

``result.json`` is written last and atomically: a run is finished if the file exists, so an interrupted command
continues where it stopped. A record only ever grows.
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from joblib import Parallel, cpu_count, delayed  # type: ignore[import-untyped]

from neuralbayes.system.files import atomic_write, inside, read_json, write_json

Scale = Literal["smoke", "laptop", "paper"]
SCALES: tuple[Scale, ...] = ("smoke", "laptop", "paper")
"""A check on digits in seconds; real images at a size for two cores; the paper's size."""

TRAINING = "training"
"""Folder inside that of a run where training keeps its checkpoints."""

MEASURED = ("neuralbayes", "torch", "numpy", "scikit-learn")


def hash_of(settings: Mapping[str, Any]) -> str:
    """Twelve hexadecimal digits, the same on every machine."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Run:
    """One training with one seed; subclasses add the settings and say how to measure."""

    experiment: str
    seed: int

    @property
    def settings(self) -> dict[str, Any]:
        """All settings, as JSON types."""
        settings: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return settings

    @property
    def key(self) -> str:
        """Hash of the settings: twelve hexadecimal digits, the same on every machine."""
        return hash_of(self.settings)

    @property
    def label(self) -> str:
        """A readable name that is unique within the experiment."""
        raise NotImplementedError

    @property
    def data_names(self) -> tuple[str, ...]:
        """Names of the data sets that the run needs."""
        parts = [value for value in self.settings.values() if isinstance(value, dict)]
        return tuple(part["name"] for part in parts if "name" in part)

    def measure(self, folder: Path) -> dict[str, Any]:
        """Train in `folder`, or continue there, and return what was measured as JSON types."""
        raise NotImplementedError

    def folder(self, out: Path) -> Path:
        """The folder of the run below that of all runs."""
        return inside(out, self.experiment, self.key)

    def finished(self, out: Path) -> bool:
        """Whether it has a result."""
        return (self.folder(out) / "result.json").is_file()


@dataclass(frozen=True)
class Record:
    """A finished run: its settings, what was measured, and seconds, threads and versions."""

    settings: Mapping[str, Any]
    values: Mapping[str, Any]
    about: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The hash of its run."""
        return hash_of(self.settings)

    @property
    def seed(self) -> int:
        """The seed of its run."""
        return int(self.settings["seed"])


Results = Sequence[Record]


def by(results: Results, key: Callable[[Record], Any]) -> dict[Any, list[Record]]:
    """Group results by a key, in order of first appearance.

    Examples
    --------
    >>> records = [Record({"seed": s % 2}, {}, {}) for s in range(3)]
    >>> {seed: len(group) for seed, group in by(records, lambda record: record.seed).items()}
    {0: 2, 1: 1}
    """
    groups: dict[Any, list[Record]] = {}
    for record in results:
        groups.setdefault(key(record), []).append(record)
    return groups


def perform(run: Run, out: Path) -> Record:
    """Perform a run in its folder below `out`, or continue it, and return its record."""
    import torch

    folder = run.folder(out)
    if not run.finished(out):
        inside(folder, TRAINING)
        write_json(folder / "config.json", run.settings)
        start = time.perf_counter()
        values = run.measure(folder)
        about = {
            "seconds": round(time.perf_counter() - start, 1),  # since the last restart
            "threads": torch.get_num_threads(),
            "versions": {"python": platform.python_version()} | {name: version(name) for name in MEASURED},
        }
        write_json(folder / "result.json", {"values": values, "about": about})
        shutil.rmtree(folder / TRAINING / "checkpoints", ignore_errors=True)
    result = read_json(folder / "result.json")
    return Record(run.settings, result["values"], result["about"])


def perform_all(runs: Sequence[Run], out: Path, workers: int) -> Iterator[tuple[Run, Record | Exception]]:
    """Perform runs in `workers` processes that share the cores, and yield each with its record or its error.

    One worker is this process itself, with the threads that it has.
    """
    parallel = Parallel(min(workers, cpu_count()), return_as="generator_unordered")
    found: Iterator[tuple[Run, Record | Exception]] = parallel(delayed(_attempt)(run, out) for run in runs)
    return found


def _attempt(run: Run, out: Path) -> tuple[Run, Record | Exception]:
    """A run with its record, or its error: one that fails does not stop the others."""
    try:
        return run, perform(run, out)
    except Exception as error:
        return run, error


def record_path(folder: Path, experiment: str, scale: Scale) -> Path:
    """The file with the recorded runs of an experiment at one scale."""
    return folder / experiment / f"{scale}.json"


def read_records(folder: Path, experiment: str, scale: Scale) -> list[Record]:
    """The recorded runs of an experiment at one scale; none if there is no file."""
    path = record_path(folder, experiment, scale)
    if not path.is_file():
        return []
    try:
        return [Record(**record) for record in read_json(path)["records"]]
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} does not hold recorded runs ({error!r})") from error


def add_records(folder: Path, experiment: str, scale: Scale, found: Iterable[Record]) -> None:
    """Add finished runs to the record of an experiment. A run that it already has stays as it is."""
    records = {record.key: record for record in read_records(folder, experiment, scale)}
    for record in found:
        records.setdefault(record.key, record)
    head = {"experiment": experiment, "scale": scale, "command": f"python -m paper {experiment} --scale {scale}"}
    lines = ",\n".join("    " + json.dumps(asdict(record), allow_nan=False) for record in records.values())
    with atomic_write(record_path(folder, experiment, scale)) as temporary:
        temporary.write_text(f'{json.dumps(head, indent=2)[:-2]},\n  "records": [\n{lines}\n  ]\n}}\n', "utf-8")
