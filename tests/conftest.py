"""Settings of every test. With this file here, pytest puts `tests/` on the path: `paper_loops` and the like import."""

import os
from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

# No test of time, and the same examples on every run.
settings.register_profile("neuralbayes", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("neuralbayes")

if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)  # the workers share the cores; more threads than cores only wait for each other


@pytest.fixture(autouse=True)
def _seed() -> None:
    """Every test starts from the same random numbers, whichever tests ran before it."""
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def scheduler() -> Iterator[str]:
    """The address of a Dask scheduler whose two workers are threads of this process."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, processes=False, protocol="tcp", threads_per_worker=1, dashboard_address="127.0.0.1:0"
    ) as cluster:
        yield cluster.scheduler_address
