"""Compressed files (`.gz`, `.bz2`, `.xz` and `.zst`), unpacked in blocks and within a limit."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from pathlib import Path
from typing import Any, Protocol

from neuralbayes.system.bounds import MAX_PACKED_BYTES, MAX_PACKED_RATIO

PACKED = (".gz", ".bz2", ".xz", ".zst")

BROKEN = (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError)
"""Errors of the decompressors on damaged files."""


class Bytes(Protocol):
    """A readable stream."""

    closed: bool

    def read(self, size: int = -1, /) -> bytes: ...

    def close(self) -> None: ...


class Unpacked:
    """The contents of a compressed file, as a stream of bytes.

    Parameters
    ----------
    path : Path
        Its last suffix determines the compression.

    Raises
    ------
    ValueError
        On reading, if the file is damaged or incomplete, or unpacks to more than the larger of `MAX_PACKED_BYTES` and
        `MAX_PACKED_RATIO` times its size.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.closed = False
        self._left = self._limit = max(MAX_PACKED_BYTES, MAX_PACKED_RATIO * path.stat().st_size)
        self._stream = _opened(path)

    def read(self, size: int = -1, /) -> bytes:
        try:
            block = self._stream.read(min(self._left + 1, size) if size >= 0 else self._left + 1)
        except BROKEN as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise ValueError(
                f"{self.path} is not a valid {self.path.suffix} file ({error}); it may be damaged or cut short"
            ) from error
        self._left -= len(block)
        if self._left < 0:
            raise ValueError(
                f"{self.path} unpacks to more than {self._limit} bytes; unpack it first if you trust its source"
            )
        return bytes(block)

    def close(self) -> None:
        self.closed = True
        self._stream.close()


def packing(path: Path) -> str:
    """The suffix of a compressed file; empty for any other file.

    Examples
    --------
    >>> packing(Path("table.csv.GZ")), packing(Path("table.csv"))
    ('.gz', '')
    """
    suffix = path.suffix.lower()
    return suffix if suffix in PACKED else ""


def packing_writer(path: Path, kind: str) -> Any:
    """A binary stream to `path`, compressed by `kind`, one of `PACKED`; uncompressed for any other kind."""
    match kind:
        case ".gz":
            return gzip.open(path, "wb", compresslevel=6)
        case ".bz2":
            return bz2.open(path, "wb")
        case ".xz":
            return lzma.open(path, "wb")
        case ".zst":
            import pyarrow

            return pyarrow.CompressedOutputStream(str(path), "zstd")
    return open(path, "wb")


def _opened(path: Path) -> Any:
    match packing(path):
        case ".gz":
            return gzip.open(path, "rb")
        case ".bz2":
            return bz2.open(path, "rb")
        case ".xz":
            return lzma.open(path, "rb")
    import pyarrow

    return pyarrow.CompressedInputStream(pyarrow.OSFile(str(path)), "zstd")
