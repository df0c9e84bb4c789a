"""Arrays in ``.npy`` and ``.npz`` files, never unpickled and never larger than they say."""

from __future__ import annotations

import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from neuralbayes.system.limits import free_memory

# What numpy and zipfile document and raise on damaged files.
DAMAGE = (
    OSError,
    EOFError,
    ValueError,
    SyntaxError,  # a header that is no literal
    OverflowError,
    NotImplementedError,  # an unknown compression
    RuntimeError,  # an encrypted member
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


def array_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shape of each array of a ``.npz`` file by its name, or of the one of a ``.npy`` file by ``""``."""
    with _named_damage(path):
        if path.suffix == ".npy":
            with open(path, "rb") as file:
                return {"": _header(file)[0]}
        with zipfile.ZipFile(path) as archive:
            shapes = {}
            for name in archive.namelist():
                if name.endswith(".npy"):
                    with archive.open(name) as stream:
                        shapes[name.removesuffix(".npy")] = _header(stream)[0]
            return shapes


def open_array(path: Path, name: str = "") -> NDArray[Any]:
    """Map the array of a ``.npy`` file read-only, or read the array `name` of a ``.npz`` file."""
    with _named_damage(path):
        if path.suffix == ".npy":
            mapped: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
            return mapped
        with zipfile.ZipFile(path) as archive:
            member = archive.getinfo(f"{name}.npy")
            with archive.open(member) as stream:
                shape, dtype = _header(stream)
            n_bytes, free = math.prod(shape) * dtype.itemsize, free_memory()
            if n_bytes > member.file_size:
                raise ValueError(f"its array {name!r} has fewer than the {n_bytes} bytes in its header: cut short")
            if free is not None and n_bytes > free // 2:
                raise ValueError(
                    f"its array {name!r} takes {n_bytes} bytes, more than half of the free memory; store it as .npy, "
                    "which is read in pieces"
                )
            with archive.open(member) as stream:
                read: NDArray[Any] = npy.read_array(stream, allow_pickle=False)
            return read


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = npy.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"version {version} of the format is not read")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(stream)
    if dtype.hasobject:
        raise ValueError("it holds Python objects, that is, a pickle, and reading a pickle runs the code in it")
    return shape, dtype


@contextmanager
def _named_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except DAMAGE as error:
        raise ValueError(f"{path} is not a readable {path.suffix} file ({error})") from error
