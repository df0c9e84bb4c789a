"""Results that several processes make, which are started once for all tests of a module."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock


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
