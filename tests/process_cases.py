"""Results that several processes make, which are started once for all tests of a module."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from filelock import FileLock
from torch import Tensor

ENDING = """
import sys, torch
torch.set_num_threads(1)
results = {}
for name, work in WORK.items():
    try:
        results[name] = work()
    except Exception as error:
        results[name] = {"error": repr(error)}
torch.save(results, sys.argv[1])
torch.distributed.destroy_process_group()
"""


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """The folder that `make` was called with: once, also where pytest-xdist divides the tests of a module."""
    base = factory.getbasetemp()
    folder: Path = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with FileLock(f"{folder}.lock"):
        if not (folder / "done").exists():
            folder.mkdir()
            make(folder)
            (folder / "done").touch()
    return folder


def two_processes(folder: Path, script: str, *places: Path) -> None:
    """Do the `WORK` that `script` defines, functions by name, in two processes as a launcher would start them.

    `places` are where the script finds its modules, beside this folder.
    """
    path = folder / "script.py"
    path.write_text(script + ENDING)
    python_path = [*map(str, places), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "PYTEST"))}
    environment |= {"PYTHONPATH": os.pathsep.join(python_path), "OMP_NUM_THREADS": "1"}
    environment |= {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = str(one.getsockname()[1])
    environment |= {"TORCHELASTIC_RUN_ID": "test", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    jobs = []
    for rank in range(2):
        own = environment | {"RANK": str(rank), "LOCAL_RANK": str(rank), "GROUP_RANK": "0"}
        command = [sys.executable, str(path), str(folder / f"{rank}.pt")]
        jobs.append(subprocess.Popen(command, env=own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    try:
        said = [job.communicate(timeout=180)[0] for job in jobs]
    finally:
        for job in jobs:
            job.kill()
    assert [job.returncode for job in jobs] == [0, 0], said


def results_of_ranks(folder: Path) -> list[dict[str, Any]]:
    """What each of the processes that `two_processes` started in `folder` ended with."""
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(2)]


@contextmanager
def in_double() -> Iterator[None]:
    """Rounding stays small: in float32 the first worst directions, where p(z|x) is all but constant, are made of it."""
    torch.set_default_dtype(torch.float64)
    try:
        with mock.patch.object(Tensor, "float", Tensor.double):
            yield
    finally:
        torch.set_default_dtype(torch.float32)
