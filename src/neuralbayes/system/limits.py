"""Limits of memory, those of a container or batch system included, and of threads."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path

from threadpoolctl import ThreadpoolController

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


def free_memory() -> int | None:
    """Available memory in bytes or, if unknown, total memory; None if both are unknown."""
    lines = (line.split() for line in system_file(Path("/proc/meminfo")).splitlines())
    kilobytes = {words[0].rstrip(":"): int(words[1]) for words in lines}
    total, free = (1024 * kilobytes[name] if name in kilobytes else None for name in ("MemTotal", "MemAvailable"))
    if total is None and hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = memory_limit()
    if limit is not None and total is not None and limit[0] < total:
        left = limit[0] - limit[1]
        return left if free is None else min(free, left)
    return total if free is None else free


@contextmanager
def limited_memory(data: object) -> Iterator[None]:
    """Let the process take the free memory and no more, so that data that unpack to more end in a MemoryError."""
    used, free = _data_in_use(), free_memory()
    if used is None or free is None:
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_DATA)
    most = min([used + free, *(limit for limit in before if limit != resource.RLIM_INFINITY)])
    resource.setrlimit(resource.RLIMIT_DATA, (most, before[1]))
    try:
        yield
    except (MemoryError, RuntimeError, SystemError) as error:  # the last one: C code that did not expect it
        other = isinstance(error, RuntimeError) and "t allocate memory" not in str(error)
        if other or str(data) in str(error):
            raise
        raise MemoryError(f"{data} takes more than the free memory, {free / 2**30:.1f} GB") from error
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _data_in_use() -> int | None:
    """The memory of this process that RLIMIT_DATA counts, in bytes; None except on Linux, elsewhere it counts less."""
    lines = dict(line.split(":", 1) for line in system_file(Path("/proc/self/status")).splitlines() if ":" in line)
    words = lines.get("VmData", "").split()
    return 1024 * int(words[0]) if words and resource is not None and sys.platform == "linux" else None


def memory_limit(root: Path = Path("/sys/fs/cgroup"), group: str | None = None) -> tuple[int, int] | None:
    """Memory limit and usage of this process or its control groups, in bytes; None without a limit."""
    found = []
    for folder in _groups(root, group):
        for limit_name, used_name in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            limit, used = (system_file(folder / name).strip() for name in (limit_name, used_name))
            if limit.isdecimal() and used.isdecimal():
                found.append((int(limit), int(used)))
    in_use = _data_in_use() if group is None else None
    if in_use is not None:
        most = resource.getrlimit(resource.RLIMIT_DATA)[0]  # `ulimit -d`
        found += [] if most == resource.RLIM_INFINITY else [(most, in_use)]
    return min(found, default=None)


def system_file(path: Path) -> str:
    """The text of a system file; empty if it is missing."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _groups(root: Path, group: str | None) -> Iterator[Path]:
    """The folders of the control groups of this process and of their parents."""
    lines = system_file(Path("/proc/self/cgroup")).splitlines() if group is None else [f"0::{group}"]
    for line in lines:
        _, controllers, path = line.split(":", 2)
        base = root / controllers if controllers else root
        below = Path(path.lstrip("/"))
        yield from (base / part for part in (below, *below.parents))


_controller = cache(ThreadpoolController)  # it looks through all loaded libraries, which takes milliseconds


def one_thread() -> AbstractContextManager[object]:
    """A context in which BLAS and OpenMP compute on one thread."""
    context: AbstractContextManager[object] = _controller().limit(limits=1)
    return context
