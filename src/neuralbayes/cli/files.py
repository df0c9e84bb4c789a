"""Paths on the command line, checked before anything heavy is imported."""

from __future__ import annotations

import difflib
import errno
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

HYPHEN = Path("-")
TABLES = (".csv", ".tsv", ".parquet", ".arrow", ".feather", ".jsonl", ".xlsx")
"""Suffixes of tables that can be written."""


def check_exists(path: Path, *, sets: bool = False) -> None:
    """Raise a FileNotFoundError, with a similar name, unless there is such a file, folder or (`sets`) data set."""
    path = path.expanduser()
    if path == HYPHEN or path.exists():
        return
    names: list[str] = []
    if sets and path.name == str(path) and not path.suffix:
        from neuralbayes.data.catalog import names as named_sets

        names = list(named_sets())
        if str(path) in names:
            return
    folder = path.parent
    if folder.is_dir() and os.access(folder, os.R_OK):
        names += [str(folder / entry.name) for entry in folder.iterdir()]
    stems = {Path(name).stem: name for name in reversed(names)} | {Path(name).name: name for name in reversed(names)}
    close = difflib.get_close_matches(path.name, stems, n=1, cutoff=0.7)
    raise FileNotFoundError(f"{path} does not exist.{f' Did you mean {stems[close[0]]}?' if close else ''}")


def model_folder(folder: Path) -> Path:
    """The folder of a model: `folder` itself or, in a result of `cluster`, its sub-folder."""
    check_exists(folder)
    for place in (folder / "model", folder):
        if (place / "model.json").is_file():
            return place
    raise FileNotFoundError(f"{folder} holds no model: it must be a result of neuralbayes cluster, or its model/")


@contextmanager
def standard_input(data: Path) -> Iterator[Path]:
    """The path `data` or, for a hyphen, a temporary CSV file with all of standard input."""
    if data != HYPHEN:
        yield data
        return
    if sys.stdin is None or sys.stdin.isatty():
        raise ValueError("- reads a table from standard input, but nothing is piped into it; name a file instead")
    with TemporaryDirectory(prefix="neuralbayes-") as folder:
        path = Path(folder) / "standard-input.csv"
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield path


def stem(data: Path) -> str:
    """The name of some data without suffixes."""
    if data == HYPHEN:
        return "standard-input"
    name = Path(os.path.abspath(data)).name or "root"
    return name if data.is_dir() else name.removesuffix("".join(Path(name).suffixes[-2:])) or name


def beside(data: Path, ending: str) -> Path:
    """A path next to `data`, or in the current folder for a named data set and for standard input."""
    folder = data.parent if not data.is_dir() else Path(os.path.relpath(os.path.abspath(data))).parent
    return (folder if data.exists() else Path()) / f"{stem(data)}{ending}"


def check_target(path: Path, *, force: bool, source: Path | None = None) -> None:
    """Raise unless a command may write the file `path`, which is never its `source`."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; choose a file with --out")
    if path.exists() and source is not None and source.exists() and path.samefile(source):
        raise ValueError(f"{path} is the input itself; choose another file with --out")
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists already; replace it with --force or choose another with --out")
    _check_parent(path)


def check_folder(folder: Path, parts: tuple[str, ...], *, force: bool) -> None:
    """Raise unless `cluster` may write `parts` into `folder`: nothing is there, or what it wrote itself.

    Names that a person gave to clusters are only replaced with `force`, and other people's folders not even then.
    """
    model = folder / parts[-1]
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file; choose a folder with --out")
    if model.exists() and not (model / "model.json").is_file() and (model.is_file() or any(model.iterdir())):
        raise FileExistsError(f"{model} is not a model of neuralbayes; choose another folder with --out")
    there = [part for part in parts if (folder / part).exists()]
    if there and not force and not (model / "source.json").is_file():
        raise FileExistsError(f"{folder / there[0]} exists already; replace it with --force or choose another --out")
    if (model / "names.json").is_file() and not force:
        raise FileExistsError(f"{model / 'names.json'} holds names that you gave; give --force or another --out")
    _check_parent(folder / parts[0])


def _check_parent(path: Path) -> None:
    folder = path.absolute().parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise NotADirectoryError(f"{path} cannot be written: {folder} is not a folder")
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, "no permission to write there", str(path))
