"""Settings of the examples in docstrings, which the tests run."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def _data_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(autouse=True)
def _folder_of_its_own(tmp_path: Path, _data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An example writes its files where no other looks, and reads data sets that none of the user's are."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEURALBAYES_DATA", str(_data_folder))
