"""Check output paths before anything is computed."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def beside(source: Path, ending: str, suffix: str | None = None) -> Path:
    """A file next to `source` with a name derived from it, with its suffix or another one.

    Examples
    --------
    >>> beside(Path("data.csv"), "-labels").name, beside(Path("data.csv.gz"), "-labels").name
    ('data-labels.csv', 'data-labels.csv.gz')
    """
    from neuralbayes.data.packed import packing

    if source.is_dir() or source.name in ("", ".."):  # resolve . and ..
        source = Path(os.path.abspath(source))
    packed = source.suffix if packing(source) and not source.is_dir() else ""
    plain = source.with_suffix("") if packed else source
    stem = source.name if source.is_dir() else plain.stem
    return source.parent / f"{stem or 'root'}{ending}{plain.suffix + packed if suffix is None else suffix}"


def check_target(path: Path, *, option: str, force: bool, source: Path | None = None) -> None:
    """Raise unless a command may write the file `path`.

    Parameters
    ----------
    path : Path
    option : str
        The option for another path, for the message.
    force : bool
        Whether an existing file may be replaced.
    source : Path, optional
        The input, which is never replaced, under any name.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; choose a file with {option}")
    if path.exists():
        if source is not None and source.exists() and path.samefile(source):
            raise ValueError(f"{path} is the input itself; choose another file with {option}")
        if not force:
            raise _exists(path, option)
    _check_parent(path)


def check_model_folder(folder: Path, *, option: str, force: bool) -> None:
    """Raise unless a model may be saved in `folder`: it must be new, empty or, with `force`, an earlier model."""
    if folder.is_file():
        raise NotADirectoryError(f"{folder} is a file; choose a folder with {option}")
    if folder.is_dir() and any(folder.iterdir()):
        if not (folder / "model.json").is_file():
            from neuralbayes.estimators.saving import may_hold_model

            if not may_hold_model(folder):
                raise ValueError(f"{folder} contains files that are not a model; choose another folder with {option}")
        elif not force:
            raise _exists(folder, option)
    _check_parent(folder)


def _exists(path: Path, option: str) -> FileExistsError:
    return FileExistsError(f"{path} exists already; replace it with --force or choose another with {option}")


def _check_parent(path: Path) -> None:
    folder = path.absolute().parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise NotADirectoryError(f"{path} cannot be written: {folder} is not a folder")
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, "no permission to write there", str(path))
