"""Locations of data sets on this computer."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

VARIABLE = "NEURALBAYES_DATA"


def data_folder(root: str | Path | None = None) -> Path:
    """The folder for data sets: `root`, or ``$NEURALBAYES_DATA``, or the cache folder of the system.

    Examples
    --------
    >>> data_folder("somewhere").name
    'somewhere'
    """
    chosen = root if root is not None else os.environ.get(VARIABLE)
    if chosen is not None and str(chosen):
        return Path(chosen).expanduser()
    return _system_cache() / "neuralbayes"


def _system_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def find_files(folder: Path, names: Iterable[str]) -> dict[str, Path]:
    """The official `names` in `folder`, compressed with gzip or not, in any usual spelling."""
    found: dict[str, Path] = {}
    for name in names:
        # Some archives of MNIST use the spelling "train-images.idx3-ubyte".
        for spelling in (name, name.replace("-idx", ".idx")):
            for path in (folder / spelling, folder / f"{spelling}.gz"):
                if path.is_file():
                    found.setdefault(name, path)
    return found


def total_size(paths: Mapping[str, Path]) -> int:
    """Total size of `paths` on disk in bytes."""
    return sum(path.stat().st_size for path in paths.values())
