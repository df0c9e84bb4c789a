"""What an experiment is: runs that follow from a scale, each in a folder of its own, and what is made of their results.

A run is a frozen dataclass of all its settings, the seed among them. The hash of the settings names its folder, so that
a sweep which was interrupted finds again what it has done. ``result.json`` is written last and whole: where it is, the
run is finished.
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

from neuralbayes.report.results_page import Claim, Table
from neuralbayes.system.files import inside, json_hash, read_json, write_json
from neuralbayes.system.limits import peak_memory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Scale = Literal["smoke", "laptop", "paper"]
SCALES: tuple[Scale, ...] = ("smoke", "laptop", "paper")
"""A trial on digits; real images at a size for two cores; what the paper did."""

TRAINING = "training"
"""Folder inside that of a run in which training keeps its checkpoints."""

MEASURED = ("neuralbayes", "torch", "numpy", "scikit-learn")


@dataclass(frozen=True)
class Run:
    """One training with one seed; subclasses add the settings.

    Attributes
    ----------
    experiment : str
        In whose folder it is. Other experiments may look at it too.
    seed : int
    """

    experiment: str
    seed: int

    @property
    def settings(self) -> dict[str, Any]:
        """All settings as JSON knows them."""
        settings: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return settings

    @property
    def key(self) -> str:
        """Hash of the settings: twelve hexadecimal digits that are the same on every machine."""
        return json_hash(self.settings)

    @property
    def label(self) -> str:
        """What tells it from the other runs of its experiment, for people."""
        raise NotImplementedError

    @property
    def data_names(self) -> tuple[str, ...]:
        """The named data sets that it needs."""
        return ()

    def folder(self, out: Path) -> Path:
        """Its own folder below that of all results."""
        return inside(out, self.experiment, self.key)

    def finished(self, out: Path) -> bool:
        """Whether it has a result."""
        return (self.folder(out) / "result.json").is_file()


@dataclass(frozen=True)
class Record:
    """A finished run: what it was told, what it found, and how.

    Attributes
    ----------
    settings, values : mapping
        As JSON has them.
    about : mapping
        Seconds, memory, threads and versions: what may differ where the values do not.
    """

    settings: Mapping[str, Any]
    values: Mapping[str, Any]
    about: Mapping[str, Any]

    @classmethod
    def of(cls, run: Run, out: Path) -> Record:
        """What a finished run left in its folder."""
        result = read_json(run.folder(out) / "result.json")
        return cls(run.settings, result["values"], result["about"])


Results = Sequence[Record]


@dataclass(frozen=True)
class MorePicture:
    """A picture beside that of the figure.

    Attributes
    ----------
    name : str
        What its file is called after that of the experiment.
    caption : str
    draw : callable
        From the results to the picture.
    has_data : callable
        Whether the results, of which some may be missing, are enough for it.
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
        What it is and where in the paper.
    about : str
        What was done here, for the results page.
    runs : callable
        From a scale and a number of seeds (None: as many as the scale wants) to all runs.
    run_one : callable
        Does a run in its folder and returns its values, which JSON can hold.
    cost : callable
        Expected seconds of a run's training on this machine, from a few steps that are timed.
    tables, draw, claims : callable
        From the results, all or some of them, to tables, a picture and what they say of the paper's claims.
    more_pictures : tuple of MorePicture
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


def perform(experiment: Experiment, run: Run, out: Path) -> None:
    """Do a run in its folder below `out`, or go on with it; nothing where it is finished.

    Parameters
    ----------
    experiment : Experiment
        The one that `run` names.
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
        "seconds": round(time.perf_counter() - start, 1),  # of the last sitting
        "threads": torch.get_num_threads(),
        **peak_memory(),
        "versions": {"python": platform.python_version()} | {name: version(name) for name in MEASURED},
    }
    write_json(folder / "result.json", {"values": values, "about": about})
    shutil.rmtree(folder / TRAINING / "checkpoints", ignore_errors=True)


def by(results: Results, key: Callable[[Record], Any]) -> dict[Any, list[Record]]:
    """Results in groups, in the order in which the groups first come.

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
