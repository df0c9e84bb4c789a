"""Settings for all tests. This file also makes pytest put `tests/` on the path, so `paper_loops` can be imported."""

import gc
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

# Tests must not depend on time, and every run uses the same examples.
settings.register_profile("neuralbayes", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("neuralbayes")

if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)  # the workers share the cores; more threads than cores would only wait for each other


# Imported modules stay until the end. Searching them for garbage would take a quarter of the time of their imports.
gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Collect garbage from now on, but not among imported modules."""
    gc.enable()
    gc.freeze()


@pytest.fixture(autouse=True)
def _seed() -> None:
    """Start every test with the same random numbers, independent of earlier tests."""
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

    The workers are threads of a new process, because Dask draws from the generator of `random` while it runs.
    """
    with subprocess.Popen(
        [sys.executable, "-c", CLUSTER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(sys.path)}  # with the folders of the tests
        | {"OMP_NUM_THREADS": str(torch.get_num_threads())},  # their number affects the rounding of convolutions
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate()
