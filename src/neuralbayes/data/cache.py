"""Cache of decoded arrays: one ``.npy`` file each, and a manifest that is written last."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.arrays import DAMAGE
from neuralbayes.data.layout import Arrays
from neuralbayes.data.verify import sha256
from neuralbayes.system.files import atomic_write, read_json, write_json

FORMAT = 1
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Manifest:
    """The manifest of a cached data set.

    Attributes
    ----------
    source : str
        Source of the data.
    digests : dict
        SHA-256 of each array at the time of writing, by name.
    """

    source: str
    digests: dict[str, str]


def write_cache(folder: Path, arrays: Arrays, digests: Mapping[str, str], source: str) -> None:
    """Write the arrays, then the manifest. A crash leaves a folder without a manifest, which counts as empty."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)  # it would describe a mixture of old and new arrays
    for name, array in arrays.items():
        with atomic_write(folder / f"{name}.npy") as temporary, open(temporary, "wb") as file:
            np.save(file, np.ascontiguousarray(array), allow_pickle=False)
    write_json(folder / MANIFEST, {"format": FORMAT, "source": source, "sha256": dict(digests)})


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest in `folder`; None if there is none that this version can read."""
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        content: Any = read_json(path)
    except ValueError:
        return None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        return None
    source, digests = content.get("source"), content.get("sha256")
    if not isinstance(source, str) or not isinstance(digests, dict):
        return None
    if not all(isinstance(key, str) and isinstance(value, str) for key, value in digests.items()):
        return None
    return Manifest(source, digests)


def read_cache(folder: Path, names: list[str], *, memory_map: bool = False) -> Arrays:
    """Load the arrays `names` into memory, or map them read-only.

    Raises
    ------
    ValueError
        If a file is missing, damaged or not a plain array.
    """
    arrays: Arrays = {}
    for name in names:
        path = folder / f"{name}.npy"
        try:
            array = np.load(path, mmap_mode="r" if memory_map else None, allow_pickle=False)
            if not isinstance(array, np.ndarray):  # a .npz file with the suffix .npy
                raise ValueError("it is not one array")
            arrays[name] = array
        except DAMAGE as error:
            raise ValueError(f"{path} is damaged ({error})") from error
    return arrays


def cached_digests(folder: Path, names: list[str]) -> dict[str, str]:
    """Current SHA-256 of the arrays `names`."""
    arrays: Mapping[str, NDArray[np.generic]] = read_cache(folder, names, memory_map=True)
    return {name: sha256(array) for name, array in arrays.items()}


def cached_bytes(folder: Path) -> int:
    """Size of the cached arrays on disk."""
    if not folder.is_dir():
        return 0
    with os.scandir(folder) as entries:
        return sum(entry.stat().st_size for entry in entries if entry.name.endswith(".npy"))
