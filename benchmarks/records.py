"""What the benchmarks share: arguments, one thread, processor time, and records in JSON that a second run continues."""

from __future__ import annotations

import argparse
import json
import platform
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import torch
from threadpoolctl import threadpool_limits

from neuralbayes.system.files import atomic_write, read_json

Record = dict[str, Any]
T = TypeVar("T")

ROOT = Path(__file__).parents[1]
OWN = "neuralbayes"
"""The library itself. Its version may change without measuring the peers again, so a record with another version says
so."""


class Results:
    """Records by file. Each new record is written to `folder` at once; None keeps them in memory.

    Parameters
    ----------
    folder : Path or None
    packages : sequence of str
        Packages whose versions are saved. Records of other versions raise ValueError, except for other versions of the
        library itself.
    files : sequence of str
        Names of the files, without their suffix.
    command : str
        The command of the benchmark, which is saved with the records.
    threads : int
        Number of threads that the benchmark uses.
    """

    def __init__(
        self, folder: Path | None, packages: Sequence[str], files: Sequence[str], command: str, threads: int = 1
    ) -> None:
        self.folder = folder
        self.versions = {"python": platform.python_version(), **{name: version(name) for name in packages}}
        self._own = self.versions.get(OWN)
        self.records: dict[str, list[Record]] = {name: [] for name in files}
        self._head = {"command": command, "threads": threads}
        for name in files if folder else ():
            path = Path(folder or "", f"{name}.json")
            if not path.exists():
                continue
            content = read_json(path)
            if {**content["versions"], OWN: None} != {**self.versions, OWN: None}:
                raise ValueError(f"{path} was measured with {content['versions']}, now {self.versions}: remove it")
            self.versions = content["versions"]
            self.records[name] = content["records"]

    def has(self, name: str, key: Record) -> bool:
        return any(key.items() <= record.items() for record in self.records[name] if record["seed"] == key["seed"])

    def forget(self, name: str, keys: Sequence[Record]) -> None:
        """Drop the records that match one of `keys`; the file changes when the next record is added."""
        self.records[name] = [
            record for record in self.records[name] if not any(key.items() <= record.items() for key in keys)
        ]

    def add(self, name: str, record: Record) -> None:
        rounded = {key: float(f"{value:.6g}") if isinstance(value, float) else value for key, value in record.items()}
        if self._own != self.versions.get(OWN):
            rounded[OWN] = self._own
        self.records[name].append(rounded)
        if self.folder is None:
            return
        head = {**self._head, "versions": self.versions}
        lines = ",\n".join("    " + json.dumps(record, allow_nan=False) for record in self.records[name])
        with atomic_write(self.folder / f"{name}.json") as temporary:
            temporary.write_text(f'{json.dumps(head, indent=2)[:-2]},\n  "records": [\n{lines}\n  ]\n}}\n', "utf-8")

    def measure(self, name: str, key: Record, job: Callable[[], Record]) -> None:
        """Record and print what `job` returns, unless there is such a record."""
        if not self.has(name, key):
            self.add(name, key | job())
            print(self.records[name][-1], flush=True)


def parser(doc: str | None) -> argparse.ArgumentParser:
    """A parser of arguments that prints the docstring of a script as its help."""
    return argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread, without warnings: peers warn about disconnected graphs and starts without convergence."""
    torch.set_num_threads(1)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def timed(job: Callable[[], T]) -> tuple[T, float]:
    """Run a job in this process; returns its result and its processor seconds."""
    start = time.process_time()
    value = job()
    return value, time.process_time() - start
