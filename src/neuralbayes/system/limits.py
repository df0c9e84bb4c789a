"""The memory there is, what a container or a batch system gives this process, and how much memory it has taken."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")


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
        match system_file(folder / "cpu.max").split():  # version 2
            case [quota, period] if quota.isdecimal():
                quotas.append(int(quota) / int(period))
        quota, period = (
            system_file(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")
        )  # version 1
        if quota.isdecimal() and period.isdecimal():
            quotas.append(int(quota) / int(period))
    return min(quotas, default=None)


def memory() -> tuple[int | None, int | None]:
    """Bytes that this process may have in all, and bytes that are free or can be made so; None where nobody knows."""
    lines = (line.split() for line in system_file(Path("/proc/meminfo")).splitlines())
    kilobytes = {words[0].rstrip(":"): int(words[1]) for words in lines}
    total, free = (1024 * kilobytes[name] if name in kilobytes else None for name in ("MemTotal", "MemAvailable"))
    if total is None and hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = memory_limit()
    if limit is not None and total is not None and limit[0] < total:
        left = limit[0] - limit[1]
        total, free = limit[0], left if free is None else min(free, left)
    return total, free


def free_memory() -> int | None:
    """Bytes that are free, or where that is not known all there are; None where neither is."""
    total, free = memory()
    return total if free is None else free


def memory_limit(root: Path = CGROUPS, group: str | None = None) -> tuple[int, int] | None:
    """Bytes that the control groups of this process may have, and bytes of those in use; None without a limit."""
    found = []
    for folder in _groups(root, group):
        for limit_name, used_name in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            limit, used = (system_file(folder / name).strip() for name in (limit_name, used_name))
            if limit.isdecimal() and used.isdecimal():
                found.append((int(limit), int(used)))
    return min(found, default=None)


def peak_memory() -> dict[str, int]:
    """The most memory that this process has had at a time, as ``{"peak_memory_mb": ...}``; empty where nobody knows."""
    try:
        import resource
    except ImportError:  # Windows
        return {}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"peak_memory_mb": round(peak / (1024 if sys.platform == "linux" else 1024**2))}


def system_file(path: Path) -> str:
    """The text of a file of the system, empty where there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _groups(root: Path, group: str | None) -> Iterator[Path]:
    """The folder of each control group that this process is in, and of those around it."""
    lines = system_file(Path("/proc/self/cgroup")).splitlines() if group is None else [f"0::{group}"]
    for line in lines:
        _, controllers, path = line.split(":", 2)
        base = root / controllers if controllers else root
        below = Path(path.lstrip("/"))
        yield from (base / part for part in (below, *below.parents))
