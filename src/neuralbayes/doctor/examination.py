"""Everything that is looked at, one thing after the other; what fails does not keep the rest from being looked at."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from neuralbayes.doctor.machine import Machine, this_machine
from neuralbayes.doctor.software import (
    InstalledExtra,
    Package,
    installed_extras,
    installed_version,
    required_packages,
)

if TYPE_CHECKING:
    from neuralbayes.doctor.devices import Device
    from neuralbayes.doctor.speed import Speed
    from neuralbayes.training.precision import Trial

T = TypeVar("T")


@dataclass(frozen=True)
class DataFolder:
    """Where named data sets are looked for and kept, and which are there, with their origin."""

    folder: Path
    writable: bool
    free_bytes: int
    present: Mapping[str, str]
    absent: tuple[str, ...]


@dataclass(frozen=True)
class Examination:
    """What was found. None stands for what could not be looked at; then `problems` says why.

    Attributes
    ----------
    python, neuralbayes : str
        Versions.
    packages : list of Package
        What the library needs.
    extras : list of InstalledExtra
    machine : Machine
    threads : int, optional
        That torch computes with.
    devices : list of Device, optional
    idle_nvidia_card : bool
        Whether there is a card of NVIDIA that this torch cannot use.
    bfloat16 : Trial, optional
    gloo_problem : str, optional
        Why processes cannot work together; empty where they can.
    data : DataFolder, optional
    speed : Speed, optional
    problems : mapping
        What failed, with the reason.
    """

    python: str
    neuralbayes: str
    packages: list[Package]
    extras: list[InstalledExtra]
    machine: Machine
    threads: int | None = None
    devices: list[Device] | None = None
    idle_nvidia_card: bool = False
    bfloat16: Trial | None = None
    gloo_problem: str | None = None
    data: DataFolder | None = None
    speed: Speed | None = None
    problems: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON can hold it."""
        found = asdict(self)
        if self.data is not None:
            found["data"]["folder"] = str(self.data.folder)
        return found


def examine(watch: Callable[[str], None] = lambda doing: None) -> Examination:
    """Look at everything; `watch` is told what is being looked at. Takes some ten seconds."""
    problems: dict[str, str] = {}

    def look(doing: str, function: Callable[[], T]) -> T | None:
        watch(doing)
        try:
            return function()
        except Exception as error:  # whatever it is, it is a finding
            problems[doing] = " ".join(f"{type(error).__name__}: {error}".split())
            return None

    found: dict[str, Any] = {
        "python": platform.python_version(),
        "neuralbayes": installed_version("neuralbayes") or "not installed",
        "packages": required_packages(),
        "extras": installed_extras(),
        "machine": this_machine(),  # before anything computes: the load is that of others
        "data": look("looking for data sets", _data_folder),
        "threads": look("importing torch", _threads),
    }
    if found["threads"] is not None:
        found["devices"] = look("trying devices", _devices)
        found["idle_nvidia_card"] = bool(look("looking for graphics cards", _idle_nvidia_card))
        found["bfloat16"] = look("trying bfloat16", _bfloat16)
        found["gloo_problem"] = look("trying several processes", _gloo_problem)
        found["speed"] = look("measuring the speed of training", _speed)
    return Examination(**found, problems=problems)


def _data_folder() -> DataFolder:
    from neuralbayes.data.inventory import inventory
    from neuralbayes.data.places import data_folder

    folder = data_folder()
    there = folder
    while not there.exists():
        there = there.parent
    states = inventory()
    return DataFolder(
        folder,
        writable=there.is_dir() and os.access(there, os.W_OK),
        free_bytes=shutil.disk_usage(there).free,
        present={state.entry.name: state.source for state in states if state.present},
        absent=tuple(state.entry.name for state in states if not state.present),
    )


def _threads() -> int:
    import torch

    return torch.get_num_threads()


def _devices() -> list[Device]:
    from neuralbayes.doctor.devices import accelerators

    return accelerators()


def _idle_nvidia_card() -> bool:
    from neuralbayes.doctor.devices import idle_nvidia_card

    return idle_nvidia_card()


def _bfloat16() -> Trial:
    from neuralbayes.training.precision import try_bfloat16

    return try_bfloat16()


def _gloo_problem() -> str:
    from neuralbayes.doctor.processes import gloo_problem

    return gloo_problem()


def _speed() -> Speed:
    from neuralbayes.doctor.speed import measure_speed

    return measure_speed()
