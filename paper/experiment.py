"""Experiments: their runs at each scale, each in its own folder, and the tables, figures and claims from the results.

A run is a frozen dataclass of all its settings, including the seed. The hash of the settings names its folder, so an
interrupted sweep finds the runs that it has finished. ``result.json`` is written last and atomically: a run is finished
if the file exists.
"""

from __future__ import annotations

import json
import platform
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from neuralbayes.system.files import inside, json_hash, read_json, write_json
from neuralbayes.system.limits import peak_memory
from paper.results_page import Claim, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Scale = Literal["smoke", "laptop", "paper"]
SCALES: tuple[Scale, ...] = ("smoke", "laptop", "paper")
"""A quick check on digits; real images at a size for two cores; the paper's size."""

TRAINING = "training"
"""Folder inside that of a run where training keeps its checkpoints."""

MEASURED = ("neuralbayes", "torch", "numpy", "scikit-learn")


@dataclass(frozen=True)
class Run:
    """One training with one seed; subclasses add the settings.

    Attributes
    ----------
    experiment : str
        The experiment whose folder contains the run. Other experiments may use it too.
    seed : int
    """

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
        return json_hash(self.settings)

    @property
    def label(self) -> str:
        """A readable name that is unique within the experiment."""
        raise NotImplementedError

    @property
    def data_names(self) -> tuple[str, ...]:
        """Names of the data sets that the run needs."""
        return ()

    def folder(self, out: Path) -> Path:
        """The folder of the run below the folder of all results."""
        return inside(out, self.experiment, self.key)

    def finished(self, out: Path) -> bool:
        """Whether it has a result."""
        return (self.folder(out) / "result.json").is_file()


@dataclass(frozen=True)
class Record:
    """A finished run: its settings, its results, and how they were computed.

    Attributes
    ----------
    settings, values : mapping
        As JSON types.
    about : mapping
        Seconds, memory, threads and versions, which may differ between runs with equal values.
    """

    settings: Mapping[str, Any]
    values: Mapping[str, Any]
    about: Mapping[str, Any]

    @classmethod
    def of(cls, run: Run, out: Path) -> Record:
        """Read the result of a finished run from its folder."""
        result = read_json(run.folder(out) / "result.json")
        return cls(run.settings, result["values"], result["about"])

    def store(self, run: Run, out: Path) -> None:
        """Write the result to the folder of a run, unless it has one."""
        if not run.finished(out):
            write_json(run.folder(out) / "config.json", run.settings)
            write_json(run.folder(out) / "result.json", {"values": self.values, "about": self.about})


Results = Sequence[Record]


@dataclass(frozen=True)
class MorePicture:
    """An additional picture of an experiment.

    Attributes
    ----------
    name : str
        Suffix of its file name, after the name of the experiment.
    caption : str
    draw : callable
        Draws the picture from the results.
    has_data : callable
        Whether the results, some of which may be missing, suffice for it.
    """

    name: str
    caption: str
    draw: Callable[[Results], Figure]
    has_data: Callable[[Results], bool]


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper.

    Attributes
    ----------
    name : str
    title : str
        Its title, with its place in the paper.
    about : str
        Description of the experiment for the results page.
    runs : callable
        Lists all runs for a scale and a number of seeds (None: that of the scale).
    run_one : callable
        Performs a run in its folder and returns its values as JSON types.
    cost : callable
        Expected training time of a run on this machine in seconds, from a few timed steps.
    tables, draw, claims : callable
        Tables, picture and verdicts on the paper's claims, from all or some of the results.
    more_pictures : tuple of MorePicture
    tells_sizes_apart : bool
        Whether networks of different sizes get rows of their own. If so, the results page shows the scales "laptop" and
        "paper" together.
    """

    name: str
    title: str
    about: str
    runs: Callable[[Scale, int | None], Sequence[Run]]
    run_one: Callable[[Any, Path], dict[str, Any]]
    cost: Callable[[Any], float]
    tables: Callable[[Results], list[Table]]
    draw: Callable[[Results], Figure]
    claims: Callable[[Results], list[Claim]]
    more_pictures: tuple[MorePicture, ...] = ()
    tells_sizes_apart: bool = False


def perform(experiment: Experiment, run: Run, out: Path) -> None:
    """Perform a run in its folder below `out`, or resume it; does nothing if the run is finished.

    Parameters
    ----------
    experiment : Experiment
        The experiment of the run.
    run : Run
    out : Path
    """
    if run.finished(out):
        return
    import torch

    folder = run.folder(out)
    inside(folder, TRAINING)
    write_json(folder / "config.json", run.settings)
    start = time.perf_counter()
    values = experiment.run_one(run, folder)
    about = {
        "seconds": round(time.perf_counter() - start, 1),  # since the last restart
        "threads": torch.get_num_threads(),
        **peak_memory(),
        "versions": {"python": platform.python_version()} | {name: version(name) for name in MEASURED},
    }
    write_json(folder / "result.json", {"values": values, "about": about})
    shutil.rmtree(folder / TRAINING / "checkpoints", ignore_errors=True)


def by(results: Results, key: Callable[[Record], Any]) -> dict[Any, list[Record]]:
    """Group results by a key, in order of first appearance.

    Examples
    --------
    >>> records = [Record({"seed": s % 2}, {}, {}) for s in range(3)]
    >>> {seed: len(group) for seed, group in by(records, lambda record: record.settings["seed"]).items()}
    {0: 2, 1: 1}
    """
    groups: dict[Any, list[Record]] = {}
    for record in results:
        groups.setdefault(key(record), []).append(record)
    return groups
