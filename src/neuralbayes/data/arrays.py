"""Arrays of images from ``.npy`` and ``.npz`` files, memory-mapped if possible, never unpickled."""

from __future__ import annotations

import math
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from neuralbayes.system.bounds import MAX_PACKED_BYTES

#: What numpy and zipfile raise on damaged or hostile files.
DAMAGE = (
    OSError,
    EOFError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    OverflowError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    SyntaxError,
    tokenize.TokenError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


def open_npy(path: Path) -> NDArray[np.generic]:
    """Map the array of a ``.npy`` file, read-only."""
    try:
        with open(path, "rb") as file:
            shape, dtype, fortran = _header(file)
            return _mapped(path, file.tell(), shape, dtype, fortran)
    except FileNotFoundError:
        raise
    except DAMAGE as error:
        raise ValueError(f"{path} is not a readable .npy array ({error})") from error


def npz_keys(path: Path) -> tuple[str, ...]:
    """The names of the arrays in a ``.npz`` file."""
    try:
        with zipfile.ZipFile(path) as archive:
            return tuple(name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy"))
    except FileNotFoundError:
        raise
    except DAMAGE as error:
        raise ValueError(f"{path} is not a readable .npz archive ({error})") from error


def npz_shape(path: Path, key: str) -> tuple[int, ...]:
    """The shape of the array `key` of a ``.npz`` file, from its header."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open(f"{key}.npy") as stream:
            return _header(cast(BinaryIO, stream))[0]
    except FileNotFoundError:
        raise
    except DAMAGE as error:
        raise ValueError(f"{path} has no readable array {key!r} ({error})") from error


def open_npz(path: Path, key: str) -> NDArray[np.generic]:
    """The array `key` of a ``.npz`` file: memory-mapped if it is not compressed, otherwise unpacked into memory."""
    try:
        with zipfile.ZipFile(path) as archive:
            member = archive.getinfo(f"{key}.npy")
            with archive.open(member) as stream:
                return _read_member(path, member, cast(BinaryIO, stream))
    except FileNotFoundError:
        raise
    except DAMAGE as error:
        raise ValueError(f"{path} has no readable array {key!r} ({error})") from error


def _read_member(path: Path, member: zipfile.ZipInfo, stream: BinaryIO) -> NDArray[np.generic]:
    shape, dtype, fortran = _header(stream)
    start = stream.tell()
    n_bytes = math.prod(shape) * dtype.itemsize
    if member.file_size != start + n_bytes:
        raise ValueError(f"it must have {start + n_bytes} bytes, got {member.file_size}")
    if member.compress_type == zipfile.ZIP_STORED:
        return _mapped(path, _data_offset(path, member) + start, shape, dtype, fortran)
    if n_bytes > MAX_PACKED_BYTES:
        raise ValueError(
            f"it unpacks to {n_bytes} bytes, more than {MAX_PACKED_BYTES}; "
            "store it with numpy.savez, which does not compress, or as .npy"
        )
    return np.frombuffer(stream.read(n_bytes), dtype).reshape(shape, order="F" if fortran else "C")


def _header(stream: BinaryIO) -> tuple[tuple[int, ...], np.dtype[np.generic], bool]:
    """(shape, dtype, Fortran order) of a .npy stream, which is then positioned at the data."""
    version = npy.read_magic(stream)
    if version == (1, 0):
        shape, fortran, dtype = npy.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, fortran, dtype = npy.read_array_header_2_0(stream)
    else:
        raise ValueError(f"version {version} of the format is not supported")
    if any(side < 0 for side in shape):
        raise ValueError(f"its shape must not be negative, got {shape}")
    if dtype.hasobject:
        raise ValueError("it holds Python objects, that is, a pickle, and reading a pickle runs the code in it")
    return shape, dtype, fortran


def _data_offset(path: Path, member: zipfile.ZipInfo) -> int:
    """Offset of a stored member: after its own header, whose length is not in the directory."""
    with open(path, "rb") as file:
        file.seek(member.header_offset)
        header = file.read(30)
    if len(header) != 30 or header[:4] != b"PK\3\4":
        raise ValueError(f"{member.filename} has no header of its own")
    name_length, extra_length = struct.unpack("<HH", header[26:30])
    return int(member.header_offset + 30 + name_length + extra_length)


def _mapped(
    path: Path, offset: int, shape: tuple[int, ...], dtype: np.dtype[np.generic], fortran: bool
) -> NDArray[np.generic]:
    needed, there = offset + math.prod(shape) * dtype.itemsize, path.stat().st_size
    if needed > there:
        raise ValueError(f"it must have {needed} bytes and has {there}: cut short")
    if 0 in shape:
        return np.empty(shape, dtype)  # cannot be mapped
    return np.memmap(path, dtype, "r", offset, shape, "F" if fortran else "C")
