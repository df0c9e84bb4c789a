"""The machine: system, cores that may be used, memory, and what the environment says of threads."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from neuralbayes.distributed.launch import THREAD_VARIABLES, allowed_cores, usable_cores
from neuralbayes.system.limits import cpu_quota, system_file
from neuralbayes.system.limits import memory as available_memory


@dataclass(frozen=True)
class Machine:
    """What there is to compute with.

    Attributes
    ----------
    system, processor : str
    cores : int
        Of the machine.
    allowed : int
        That this process may run on.
    quota : float, optional
        How many cores' worth of time a container or a batch system gives it.
    load : float, optional
        Processes that wanted to run, on average over the last minute, those of others too.
    memory, free_memory : int, optional
        Bytes, of which a container may have a part.
    threads : mapping
        Variables of the environment that set numbers of threads.
    """

    system: str
    processor: str
    cores: int
    allowed: int
    quota: float | None
    load: float | None
    memory: int | None
    free_memory: int | None
    threads: Mapping[str, str]

    @property
    def usable(self) -> int:
        """The number of threads that can run at a time."""
        return usable_cores(self.allowed, self.quota)


def this_machine() -> Machine:
    """The machine that runs this process."""
    memory, free_memory = available_memory()
    return Machine(
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        processor=_processor(),
        cores=os.cpu_count() or 1,
        allowed=allowed_cores(),
        quota=cpu_quota(),
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        memory=memory,
        free_memory=free_memory,
        threads={name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ},
    )


def _processor() -> str:
    names = [
        line.partition(":")[2].strip()
        for line in system_file(Path("/proc/cpuinfo")).splitlines()
        if "model name" in line
    ]
    return names[0] if names else platform.processor()
