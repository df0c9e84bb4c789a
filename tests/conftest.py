"""Settings of every test. With this file here, pytest puts `tests/` on the path: `paper_loops` and the like import."""

import gc
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

# No test of time, and the same examples on every run.
settings.register_profile("neuralbayes", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("neuralbayes")

if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)  # the workers share the cores; more threads than cores only wait for each other


# What the tests import stays to the end: looking through it for garbage takes a quarter of the time of their imports.
gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Collect garbage from here on, but not among what has been imported."""
    gc.enable()
    gc.freeze()


@pytest.fixture(autouse=True)
def _seed() -> None:
    """Every test starts from the same random numbers, whichever tests ran before it."""
    torch.manual_seed(0)


CLUSTER = """
import sys
from dask import config
from distributed import LocalCluster

config.set({"distributed.worker.profile.enabled": False})  # a look at every thread a hundred times a second

with LocalCluster(
    n_workers=2, processes=False, protocol="tcp", threads_per_worker=1, dashboard_address="127.0.0.1:0"
) as cluster:
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="session")
def scheduler() -> Iterator[str]:
    """The address of a Dask scheduler with two workers.

    They are threads of a process of their own: all the time that Dask runs, it draws from the generator of `random`.
    """
    with subprocess.Popen(
        [sys.executable, "-c", CLUSTER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(sys.path)}  # with the folders of the tests
        | {"OMP_NUM_THREADS": str(torch.get_num_threads())},  # convolutions round by the number of threads
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate()
