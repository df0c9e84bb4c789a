"""How this process was started: which one of how many it is, and how many cores there are for each."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from neuralbayes.system.limits import cpu_quota

LAUNCHERS = (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"))
"""What torchrun sets, and Slurm's srun. Not SLURM_NTASKS: a batch script that starts a single process has it too."""

TOGETHER = ("SLURM_", "TORCHELASTIC_", "RANK", "GROUP_RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
"""How variables begin by which a process knows that it is one of several that train together."""

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class Share:
    """Which process this is, from 0, and of how many."""

    rank: int = 0
    world: int = 1


def launched_share(environment: Mapping[str, str] = os.environ) -> Share:
    """The share of this process as its launcher says it; the whole where there is none.

    Examples
    --------
    >>> launched_share({"RANK": "1", "WORLD_SIZE": "4"})
    Share(rank=1, world=4)
    >>> launched_share({})
    Share(rank=0, world=1)
    """
    for names in LAUNCHERS:
        rank, world = (environment.get(name, "") for name in names)
        if not rank or not world:
            continue
        if not (rank.isdecimal() and world.isdecimal() and int(rank) < int(world)):
            raise ValueError(f"{names[0]} must be a number from 0 and below {names[1]}, got {rank!r} and {world!r}")
        return Share(int(rank), int(world))
    return Share()


def allowed_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def usable_cores(allowed: int, quota: float | None) -> int:
    """Threads that can run at a time on so many cores, with so many cores' worth of time; None is no limit.

    Examples
    --------
    >>> usable_cores(8, None), usable_cores(8, 2.5), usable_cores(8, 0.5)
    (8, 3, 1)
    """
    return allowed if quota is None else max(1, min(allowed, math.ceil(quota)))


def n_cores() -> int:
    """Cores that this process may use: those it may run on, as far as a container gives it their time."""
    return usable_cores(allowed_cores(), cpu_quota())


def n_threads(workers: int) -> int:
    """Threads of each of so many workers: a share of the cores, and no more than OMP_NUM_THREADS where it is set."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    share = max(1, n_cores() // workers)
    return min(share, int(given)) if given.isdecimal() and int(given) > 0 else share


def n_workers(asked: int | None) -> int:
    """As many workers as were asked for, or one a core."""
    cores = n_cores()
    if asked is not None and not 1 <= asked <= cores:
        raise ValueError(f"--workers must be from 1 to the number of cores, {cores}, got {asked}")
    return cores if asked is None else asked


@contextmanager
def on_its_own(variables: Mapping[str, str] | None = None) -> Iterator[None]:
    """Let this process and those it starts train alone, whatever has started it, and with further `variables`."""
    before = dict(os.environ)
    for name in before:
        if name.startswith(TOGETHER):
            del os.environ[name]
    os.environ.update(variables or {})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
