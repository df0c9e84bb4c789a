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

from neuralbayes.system.files import inside

# Of tables that can be written, and of compressed text; as in `data.tables`, which is slow to import.
TABLES = (".csv", ".tsv", ".txt", ".parquet", ".arrow", ".feather", ".jsonl", ".ndjson", ".xlsx")
PACKED = (".gz", ".bz2", ".xz", ".zst")


def table_suffix(path: Path) -> str:
    """The suffix of a path that names a table, compressed or not; empty for other paths."""
    *_, first, last = ("", "", *(suffix.lower() for suffix in path.suffixes))
    return last if last in TABLES else first if last in PACKED and first in TABLES else ""


def check_exists(data: str | Path) -> None:
    """Raise a FileNotFoundError, with a similar name, unless there is such a path or, for text, such a data set."""
    path = Path(data).expanduser()
    if path.name == "-" or path.exists():
        return
    names: list[str] = []
    if path.name == data and not path.suffix:
        from neuralbayes.data.named import names as named_sets

        names = list(named_sets())
        if data in names:
            return
    if path.parent.is_dir() and os.access(path.parent, os.R_OK):
        names += [str(path.parent / entry.name) for entry in path.parent.iterdir()]
    known = {Path(name).stem: name for name in names} | {Path(name).name: name for name in names}
    close = difflib.get_close_matches(path.name, known, n=1, cutoff=0.7)
    raise FileNotFoundError(f"{path} does not exist.{f' Did you mean {known[close[0]]}?' if close else ''}")


def model_folder(folder: Path) -> Path:
    """The folder of a model: `folder` itself or, in a result of `cluster`, its sub-folder."""
    check_exists(folder)
    for place in (folder / "model", folder):
        if (place / "model.json").is_file():
            return place
    raise FileNotFoundError(f"{folder} holds no model: it must be a result of neuralbayes cluster, or its model/")


@contextmanager
def standard_input(data: str) -> Iterator[str]:
    """The path `data` or, for a hyphen, a temporary CSV file with all of standard input."""
    if Path(data).name != "-":
        yield data
        return
    if sys.stdin is None or sys.stdin.isatty():
        raise ValueError("- reads a table from standard input, but nothing is piped into it; name a file instead")
    with TemporaryDirectory(prefix="neuralbayes-") as folder:
        path = Path(folder) / "standard-input.csv"
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield str(path)


def beside(data: Path, ending: str) -> Path:
    """A path next to `data`, or in the current folder for a named data set and for standard input; never a link."""
    if data.is_dir():
        data = Path(os.path.relpath(os.path.abspath(data)))  # . and .. have no name
        name = data.name if data.name not in ("", ".", "..") else data.absolute().name
        return inside(data.parent, f"{name}{ending}")
    stem = "standard-input" if data.name == "-" else data.name.removesuffix("".join(data.suffixes[-2:]))
    return inside(data.parent if data.exists() else Path(), f"{stem}{ending}")


def check_target(path: Path, *, force: bool, source: Path | None = None) -> None:
    """Raise unless a command may write the file or new folder `path`, which is never its `source`."""
    if path.exists() and source is not None and source.exists() and path.samefile(source):
        raise ValueError(f"{path} is the input itself; choose another with --out")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder that exists already; choose another with --out")
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists already; replace it with --force or choose another with --out")
    folder = path.absolute().parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise NotADirectoryError(f"{path} cannot be written: {folder} is not a folder")
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, "no permission to write there", str(path))


def check_folder(folder: Path, parts: tuple[str, ...], *, force: bool) -> None:
    """Raise unless `cluster` may write `parts` into `folder`: there are none, or those that it wrote itself."""
    model = folder / parts[0]
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file; choose a folder with --out")
    if model.exists() and not (model / "model.json").is_file():
        raise FileExistsError(f"{model} is not a model of neuralbayes; choose another folder with --out")
    own = model.exists() and not (model / "names.json").is_file()  # names that a person gave
    for part in parts[1:]:
        check_target(folder / part, force=force or own)
