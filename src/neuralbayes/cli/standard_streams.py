"""Standard input and output instead of files, named by a hyphen."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

HYPHEN = Path("-")
_folders: list[TemporaryDirectory[str]] = []  # removed at the end of the process


def standard_input() -> Path:
    """A file with all of standard input; its suffix matches its content, .csv for text."""
    from neuralbayes.data.packed import PACKED
    from neuralbayes.data.table_formats import contents

    if sys.stdin is None or sys.stdin.isatty():
        raise ValueError("- reads a table from standard input, but nothing is piped into it; name a file instead")
    path = _folder() / "standard-input"
    with open(path, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    found = contents(path)
    suffix = ".csv" if found is None else found[1]
    if suffix in PACKED:
        suffix = f".csv{suffix}"
    with open(path, "rb") as file:
        if file.read(1) == b"{":
            suffix = ".jsonl"
    return path.rename(path.with_name(path.name + suffix))


def output_file(source: Path) -> Path:
    """A file in the format of `source`, for :func:`to_standard_output`."""
    from neuralbayes.data.table_formats import unpacked_name

    return _folder() / f"standard-output{unpacked_name(source).suffix}"


def to_standard_output(path: Path) -> None:
    """Copy a file to standard output."""
    with open(path, "rb") as file:
        shutil.copyfileobj(file, sys.stdout.buffer)
    sys.stdout.buffer.flush()


def stream_names(text: str) -> str:
    """Replace the names of temporary files in `text` by those of the streams."""
    for folder in _folders:
        for file in Path(folder.name).iterdir():
            text = text.replace(str(file), file.stem.partition(".")[0].replace("-", " "))
    return text


def _folder() -> Path:
    _folders.append(TemporaryDirectory(prefix="neuralbayes-"))
    return Path(_folders[-1].name)
