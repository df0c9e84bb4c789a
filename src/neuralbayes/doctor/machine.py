"""The machine: system, cores that may be used, memory, and what the environment says of threads."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from neuralbayes.launch import THREAD_VARIABLES, n_cores

CGROUPS = Path("/sys/fs/cgroup")


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
        return self.allowed if self.quota is None else max(1, min(self.allowed, math.ceil(self.quota)))


def this_machine() -> Machine:
    """The machine that runs this process."""
    memory, free_memory = _memory()
    return Machine(
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        processor=_processor(),
        cores=os.cpu_count() or 1,
        allowed=n_cores(),
        quota=cpu_quota(),
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        memory=memory,
        free_memory=free_memory,
        threads={name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ},
    )


def cpu_quota(root: Path = CGROUPS, group: str | None = None) -> float | None:
    """How many cores' worth of time the control groups of this process give it; None for all.

    Parameters
    ----------
    root : Path
        Where control groups are mounted.
    group : str, optional
        The group, below `root`; by default that of this process.
    """
    quotas = []
    for folder in _groups(root, group):
        match _read(folder / "cpu.max").split():  # version 2
            case [quota, period] if quota.isdecimal():
                quotas.append(int(quota) / int(period))
        quota, period = (_read(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period"))  # version 1
        if quota.isdecimal() and period.isdecimal():
            quotas.append(int(quota) / int(period))
    return min(quotas, default=None)


def memory_limit(root: Path = CGROUPS, group: str | None = None) -> tuple[int, int] | None:
    """Bytes that the control groups of this process may have, and bytes of those in use; None without a limit."""
    found = []
    for folder in _groups(root, group):
        for limit_name, used_name in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            limit, used = (_read(folder / name).strip() for name in (limit_name, used_name))
            if limit.isdecimal() and used.isdecimal():
                found.append((int(limit), int(used)))
    return min(found, default=None)


def _groups(root: Path, group: str | None) -> Iterator[Path]:
    """The folder of each control group that this process is in, and of those around it."""
    lines = _read(Path("/proc/self/cgroup")).splitlines() if group is None else [f"0::{group}"]
    for line in lines:
        _, controllers, path = line.split(":", 2)
        base = root / controllers if controllers else root
        below = Path(path.lstrip("/"))
        yield from (base / part for part in (below, *below.parents))


def _memory() -> tuple[int | None, int | None]:
    """Bytes in all, and bytes that are free or can be made so."""
    lines = (line.split() for line in _read(Path("/proc/meminfo")).splitlines())
    kilobytes = {words[0].rstrip(":"): int(words[1]) for words in lines}
    total, free = (1024 * kilobytes[name] if name in kilobytes else None for name in ("MemTotal", "MemAvailable"))
    if total is None and hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = memory_limit()
    if limit is not None and total is not None and limit[0] < total:
        left = limit[0] - limit[1]
        total, free = limit[0], left if free is None else min(free, left)
    return total, free


def _processor() -> str:
    names = [
        line.partition(":")[2].strip() for line in _read(Path("/proc/cpuinfo")).splitlines() if "model name" in line
    ]
    return names[0] if names else platform.processor()


def _read(path: Path) -> str:
    """The text of a file of the system, empty where there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
