"""Arrays in ``.npy`` and ``.npz`` files, never unpickled and never larger than they say."""

from __future__ import annotations

import lzma
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

# What numpy, zipfile, pyarrow, openpyxl and the decompressors raise on damaged files.
DAMAGE = (
    *(ValueError, TypeError, LookupError, AttributeError, SyntaxError, EOFError, OSError, RuntimeError, OverflowError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, tokenize.TokenError),
)


def array_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shape of each array of a ``.npz`` file by its name, or of the one of a ``.npy`` file by ``""``."""
    with named_damage(path, path.suffix):
        if path.suffix.lower() == ".npy":
            with open(path, "rb") as file:
                return {"": _header(file)[0]}
        shapes = {}
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(".npy"):
                    with archive.open(name) as stream:
                        shapes[name.removesuffix(".npy")] = _header(stream)[0]
        if not shapes:
            raise ValueError("it holds no arrays")
        return shapes


def open_array(path: Path, name: str = "") -> NDArray[Any]:
    """Map the array of a ``.npy`` file read-only, or read the array `name` of a ``.npz`` file."""
    found: NDArray[Any]
    with named_damage(path, path.suffix):
        if path.suffix.lower() == ".npy":
            found = npy.open_memmap(path, mode="r")
            return found
        with zipfile.ZipFile(path) as archive:
            with archive.open(f"{name}.npy") as stream:
                shape, dtype = _header(stream)
            n_bytes, free = math.prod(shape) * dtype.itemsize, free_memory()
            if n_bytes > archive.getinfo(f"{name}.npy").file_size:
                raise ValueError(f"its array {name!r} has fewer bytes than its header says: cut short")
            if free is not None and n_bytes > free // 2:
                raise ValueError(f"its array {name!r} takes more than half of the free memory; store it as .npy")
            with archive.open(f"{name}.npy") as stream:
                found = npy.read_array(stream, allow_pickle=False)
    return found


@contextmanager
def named_damage(path: Path, kind: str) -> Iterator[None]:
    """Name the file in errors of other libraries."""
    try:
        yield
    except MemoryError as error:
        known = str(path) in str(error)
        raise MemoryError(str(error) if known else f"{path} does not fit into memory ({error})") from error
    except DAMAGE as error:
        if str(path) in str(error) or (isinstance(error, OSError) and error.filename is not None):
            raise
        raise ValueError(f"{path} is not a valid {kind} file ({error}); it may be damaged or cut short") from error


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    read = npy.read_array_header_1_0 if npy.read_magic(stream) == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(stream)
    if dtype.hasobject:
        raise ValueError("it holds Python objects, that is, a pickle, and reading a pickle runs the code in it")
    return shape, dtype
