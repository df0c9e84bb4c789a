"""Settings for all tests. This file also makes pytest put `tests/` on the path, so `paper_loops` can be imported."""

import gc
import os

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
