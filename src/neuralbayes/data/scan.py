"""Find the pictures below a folder and their class folders. Links out of the folder are not followed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from neuralbayes.data.pictures import OTHER_SUFFIXES, SUFFIXES

#: (path, reason)
Skipped = tuple[Path, str]


def scan_folder(folder: Path) -> tuple[list[Path], list[Skipped]]:
    """Picture files below `folder`, found by suffix and sorted, and the skipped files.

    Hidden files and files with other suffixes are not reported.
    """
    found: list[Path] = []
    skipped: list[Skipped] = []
    inside = folder.resolve()
    pending = [folder]
    while pending:
        for entry in _entries(pending.pop(), skipped):
            path = Path(entry.path)
            if entry.name.startswith((".", "__MACOSX")):
                continue
            if entry.is_dir(follow_symlinks=False):
                pending.append(path)
            elif entry.is_symlink() and path.is_dir():
                skipped.append((path, "it is a link to a folder"))
            elif path.suffix.lower() in OTHER_SUFFIXES:
                skipped.append((path, f"{path.suffix} files are not read"))
            elif path.suffix.lower() in SUFFIXES:
                reason = _leaves(path, inside) if entry.is_symlink() else None
                if reason is None:
                    found.append(path)
                else:
                    skipped.append((path, reason))
    return sorted(found), skipped


def _entries(folder: Path, skipped: list[Skipped]) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError as error:
        skipped.append((folder, f"the folder cannot be read ({error.strerror})"))


def _leaves(link: Path, inside: Path) -> str | None:
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError):  # RuntimeError: a loop of links, before Python 3.13
        return "it is a broken link"
    return None if target.is_relative_to(inside) else "it is a link out of the folder"


def class_of(path: Path, folder: Path) -> str | None:
    """The first folder below `folder` in `path`; None if `path` is in `folder` itself."""
    parts = path.relative_to(folder).parts
    return parts[0] if len(parts) > 1 else None


def find_classes(paths: list[Path], folder: Path, class_folders: bool | None) -> tuple[str, ...] | None:
    """The class names: sorted names of the subfolders; None if there are none.

    Parameters
    ----------
    paths : list of Path
    folder : Path
    class_folders : bool, optional
        Whether subfolders are classes. By default they are if there are at least two and every picture is in one.
    """
    if class_folders is False:
        return None
    classes = {class_of(path, folder) for path in paths}
    if class_folders is None and (None in classes or len(classes) < 2):
        return None
    named = sorted(name for name in classes if name is not None)
    if not named:
        raise ValueError(f"{folder} must have sub-folders with pictures for class_folders=True, and has none")
    return tuple(named)
