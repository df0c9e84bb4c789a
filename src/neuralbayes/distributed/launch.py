"""How this process was started: its rank, the number of processes, and the cores for each."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from neuralbayes.system.limits import cpu_quota

LAUNCHERS = (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"))
"""Variables of torchrun and of Slurm's srun. Not SLURM_NTASKS, which is also set for a single process in a batch
script."""

TOGETHER = ("SLURM_", "TORCHELASTIC_", "RANK", "GROUP_RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
"""Prefixes of the variables that mark a process as one of several."""

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class Share:
    """Rank of this process, from 0, and the number of processes."""

    rank: int = 0
    world: int = 1


def launched_share(environment: Mapping[str, str] = os.environ) -> Share:
    """Rank and number of processes according to the launcher; a single process without one.

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
    """Threads that can run at a time on `n` cores with a quota; None means no quota.

    Examples
    --------
    >>> usable_cores(8, None), usable_cores(8, 2.5), usable_cores(8, 0.5)
    (8, 3, 1)
    """
    return allowed if quota is None else max(1, min(allowed, math.ceil(quota)))


def n_cores() -> int:
    """Cores that this process may use, within the quota of a container."""
    return usable_cores(allowed_cores(), cpu_quota())


def n_threads(workers: int) -> int:
    """Threads per worker: a share of the cores, limited by OMP_NUM_THREADS."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    share = max(1, n_cores() // workers)
    return min(share, int(given)) if given.isdecimal() and int(given) > 0 else share


def n_workers(asked: int | None) -> int:
    """The requested number of workers, or one per core."""
    cores = n_cores()
    if asked is not None and not 1 <= asked <= cores:
        raise ValueError(f"--workers must be from 1 to the number of cores, {cores}, got {asked}")
    return cores if asked is None else asked


@contextmanager
def on_its_own(variables: Mapping[str, str] | None = None) -> Iterator[None]:
    """Make this process and its children train alone, whatever has started them, with additional `variables`."""
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
