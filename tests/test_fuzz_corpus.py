"""Files that once broke a reader: each is now read, or refused with a documented error."""

import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
from cyclopts import CycloptsError

FUZZ = Path(__file__).parents[1] / "fuzz"
CORPUS = sorted((FUZZ / "corpus").iterdir())


@pytest.fixture(scope="module")
def readers():
    sys.path.insert(0, str(FUZZ))
    try:
        found = import_module("readers").READERS
    finally:
        sys.path.remove(str(FUZZ))
    return {name.replace(" ", "-"): reader for name, reader in found.items()}


@pytest.mark.filterwarnings("ignore")  # from pandas, about invalid numbers
@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_a_file_that_broke_a_reader_is_read_or_refused(readers, path, tmp_path):
    reader = readers[path.name.partition(".")[0]]
    file = tmp_path / f"input{reader.suffix}"
    file.write_bytes(reader.sealed(path.read_bytes()))
    with suppress(ValueError, OSError, CycloptsError):
        reader.read(file)


@pytest.mark.filterwarnings("ignore")
def test_every_reader_reads_its_first_seed(readers, tmp_path):
    for name, reader in readers.items():
        folder = tmp_path / name
        folder.mkdir()
        file = folder / f"input{reader.suffix}"
        file.write_bytes(reader.sealed(reader.seeds[0]))
        reader.read(file)
