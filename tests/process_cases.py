"""Results of several processes, which are started once for all tests of a module."""

import ctypes
import multiprocessing
import os
import socket
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from filelock import FileLock

START_METHOD = "forkserver" if "forkserver" in mp.get_all_start_methods() else "spawn"
STATUS = Path("/proc/self/status")
M_MMAP_THRESHOLD = -3  # in glibc's malloc.h

Work = Callable[[int], dict[str, Any]]
"""A function that a process runs: it maps its rank to results by name. It must be in a module, for import."""


def warm() -> multiprocessing.context.BaseContext:
    """Processes that start quickly: a fork server does the imports, which take most of the time, once for all."""
    imports = "neuralbayes.estimators.information_clusterer", "neuralbayes.clusters.update"
    mp.set_forkserver_preload([*imports, "lightning_fabric"])
    return mp.get_context(START_METHOD)


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """The folder that `make` was called with: once, even if pytest-xdist divides the tests of a module."""
    base = factory.getbasetemp()
    folder: Path = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with FileLock(f"{folder}.lock"):
        if not (folder / "done").exists():
            folder.mkdir()
            make(folder)
            (folder / "done").touch()
    return folder


def in_child(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function of a module in a new process; BrokenProcessPool if the process is killed."""
    with ProcessPoolExecutor(1, mp_context=warm()) as pool:
        return pool.submit(function, *arguments).result()


def child(function: Callable[..., Any], *arguments: Any) -> mp.Process:
    """Start a new process that runs a function of a module."""
    process: mp.Process = warm().Process(target=function, args=arguments)  # type: ignore[attr-defined]
    process.start()
    return process


def peak_of(work: Callable[[], object]) -> int:
    """Kilobytes by which `work` raises the peak of this process; the allocator keeps no freed memory."""
    ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 65536)
    before = _peak()
    work()
    return _peak() - before


def _peak() -> int:
    # Not resource.getrusage: a child would start with the peak of its parent.
    (line,) = [line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1])


def results_of_group(folder: Path, work: Work, n_processes: int) -> None:
    """Run `work` in the processes of a group; `results_of_ranks` reads their results."""
    _start(_in_group, (folder, work, n_processes), n_processes)


def results_of_launched(folder: Path, work: Work, *, n_nodes: int = 1) -> None:
    """Run `work` in two processes as torchrun starts them on one node or two, before they form a group."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = str(one.getsockname()[1])
    _start(_launched, (folder, work, port, n_nodes), 2)


def results_of_ranks(folder: Path, n_processes: int = 2) -> list[dict[str, Any]]:
    """The results of each process."""
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(n_processes)]


def _start(process: Callable[..., None], arguments: tuple[Any, ...], n_processes: int) -> None:
    warm()
    mp.start_processes(process, arguments, nprocs=n_processes, start_method=START_METHOD)


def _in_group(rank: int, folder: Path, work: Work, n_processes: int) -> None:
    meeting, patience = (folder / "meeting").as_uri(), timedelta(seconds=120)
    dist.init_process_group("gloo", init_method=meeting, timeout=patience, rank=rank, world_size=n_processes)
    _save(rank, folder, work)


def _launched(rank: int, folder: Path, work: Work, port: str, n_nodes: int) -> None:
    for name in [name for name in os.environ if name.startswith(("SLURM", "PYTEST"))]:
        del os.environ[name]
    node, local = (rank, 0) if n_nodes == 2 else (0, rank)
    os.environ |= {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": str(2 // n_nodes), "TORCHELASTIC_RUN_ID": "test"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(local), "GROUP_RANK": str(node)}
    _save(rank, folder, work)


def _save(rank: int, folder: Path, work: Work) -> None:
    torch.set_num_threads(1)
    try:
        torch.save(work(rank), folder / f"{rank}.pt")
    finally:
        dist.destroy_process_group()


def each(trainers: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    """The result of each process, or the error that it ended with."""
    results = {}
    for name, trainer in trainers.items():
        try:
            results[name] = trainer()
        except Exception as error:
            results[name] = {"error": repr(error)}
    return results
