"""Read expected files from untrusted archives, without unpacking to disk and within limits.

Members are returned as streams under expected names, so no name from an archive becomes a path. Archives with links,
devices, absolute names or ``..`` are refused as a whole: no data set has such members.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from neuralbayes.system.bounds import MAX_MEMBERS, MAX_OTHER_BYTES, MAX_PAX_BYTES

BLOCK = 512

#: What the standard library raises on a damaged archive.
DAMAGE = (EOFError, zlib.error, tarfile.TarError, gzip.BadGzipFile)


class LimitedStream(io.RawIOBase):
    """At most `limit` bytes of `stream`. More bytes are an error if `strict`; otherwise they are ignored.

    Examples
    --------
    >>> LimitedStream(io.BytesIO(b"abcdef"), 4).read()
    b'abcd'
    """

    def __init__(self, stream: BinaryIO, limit: int, *, strict: bool = False) -> None:
        self._stream = stream
        self.left = limit  # remaining bytes
        self._limit = limit
        self._strict = strict

    def readable(self) -> bool:
        """Always true."""
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        """Fill `buffer` as far as the limit allows."""
        wanted = len(buffer)
        data = self._stream.read(min(wanted, self.left + self._strict))
        if len(data) > self.left:
            raise ValueError(f"the data unpack to more than the {self._limit} bytes expected: refused")
        self.left -= len(data)
        buffer[: len(data)] = data
        return len(data)


def read_exactly(stream: BinaryIO, n_bytes: int) -> bytes:
    """Read `n_bytes`. Raises a ValueError if the stream ends earlier.

    Examples
    --------
    >>> read_exactly(io.BytesIO(b"abc"), 2)
    b'ab'
    """
    data = bytearray()
    while len(data) < n_bytes:
        piece = stream.read(min(n_bytes - len(data), 2**20))  # a wrong size in a header allocates nothing
        if not piece:
            raise ValueError(f"the data end after {len(data)} of {n_bytes} bytes: cut short")
        data += piece
    return bytes(data)


@contextmanager
def named_damage(name: str) -> Iterator[None]:
    """Convert errors of the standard library to a ValueError, and name the file in any ValueError."""
    try:
        yield
    except DAMAGE as error:
        raise ValueError(f"{name} is damaged or cut short ({error})") from error
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


@contextmanager
def open_file(path: Path, limit: int, count: Callable[[int], None] = lambda amount: None) -> Iterator[BinaryIO]:
    """Open a file, or the content of a ``.gz`` file, as a stream of at most `limit` bytes (more is an error).

    Parameters
    ----------
    path : Path
    limit : int
        Maximum number of unpacked bytes.
    count : callable, optional
        Called with the number of bytes read from disk, for a progress bar.
    """
    with open(path, "rb") as file:
        stream = cast(BinaryIO, _Counted(file, count))
        yield _unpacked(stream, path.name, limit)


def _unpacked(stream: BinaryIO, name: str, limit: int) -> BinaryIO:
    if name.endswith((".gz", ".tgz")):
        stream = cast(BinaryIO, gzip.GzipFile(fileobj=stream))
    return cast(BinaryIO, io.BufferedReader(LimitedStream(stream, limit, strict=True)))


def tar_members(stream: BinaryIO, prefix: str, expected: Mapping[str, int]) -> Iterator[tuple[str, BinaryIO]]:
    """Yield (name, stream) for the expected files of a tar archive, in archive order.

    The archive is read once, sequentially, so large archives need little memory. Read each stream before requesting the
    next.

    Parameters
    ----------
    stream : binary stream
        An unpacked tar archive, limited by the caller.
    prefix : str
        The folder inside the archive, such as ``"cifar-10-batches-bin/"``.
    expected : mapping of str to int
        File names below `prefix` and their maximum sizes in bytes. Members with an additional ``.gz`` are accepted and
        unpacked.

    Raises
    ------
    ValueError
        If the archive contains links, devices or names that leave it, exceeds a size, or is damaged.
    """
    for _ in range(MAX_MEMBERS):
        block = stream.read(BLOCK)
        if not block.strip(b"\0"):  # the end is a block of zeros or, in some archives, nothing
            _drain(stream)
            return
        try:
            header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.HeaderError as error:
            raise ValueError(f"it is not a tar archive, or a damaged one ({error})") from error
        yield from _member(header, stream, prefix, expected)
    raise ValueError(f"it has more than {MAX_MEMBERS} members: refused")


def _member(
    header: tarfile.TarInfo, stream: BinaryIO, prefix: str, expected: Mapping[str, int]
) -> Iterator[tuple[str, BinaryIO]]:
    """Yield the member if it is expected; in any case, move `stream` to its end."""
    if header.type in (tarfile.XHDTYPE, tarfile.XGLTYPE):
        _refuse_overrides(_whole(stream, header.size, MAX_PAX_BYTES, "an extended header"))
        return
    name = header.name.removeprefix("./")
    is_file = header.type in (tarfile.REGTYPE, tarfile.AREGTYPE)  # isfile() accepts sparse files
    if not (is_file or header.isdir()):
        raise ValueError(f"its member {name!r} is a link, a device or another special file: refused")
    if PurePosixPath(name).is_absolute() or "\\" in name or ".." in PurePosixPath(name).parts:
        raise ValueError(f"its member {name!r} points out of the archive: refused")
    size = header.size if is_file else 0
    inside = name.removeprefix(prefix).removesuffix(".gz")
    wanted = name.startswith(prefix) and inside in expected and is_file
    limit = expected[inside] if wanted else MAX_OTHER_BYTES
    if not 0 <= size <= limit:
        raise ValueError(f"its member {name!r} claims {size} bytes, more than the {limit} expected: refused")
    body = LimitedStream(stream, size)
    if wanted:
        yield inside, _unpacked(cast(BinaryIO, body), name, limit)
    while body.read(2**20):
        pass
    if body.left:
        raise ValueError(f"the archive ends inside its member {name!r}: cut short")
    stream.read(-size % BLOCK)


def _whole(stream: BinaryIO, size: int, limit: int, what: str) -> bytes:
    if not 0 <= size <= limit:
        raise ValueError(f"{what} claims {size} bytes, more than {limit}: refused")
    data = read_exactly(stream, size)
    stream.read(-size % BLOCK)
    return data


def _refuse_overrides(records: bytes) -> None:
    # An extended header may override the name or size in the plain header that is checked here.
    for key in (b" path=", b" size=", b" linkpath=", b" GNU.sparse"):
        if key in records:
            raise ValueError("it renames or resizes a member in an extended header: refused")


def _drain(stream: BinaryIO) -> None:
    """Read the padding at the end, so that gzip verifies its checksum."""
    for _ in range(64):
        if not stream.read(2**16):
            return


class _Counted(io.RawIOBase):
    """A file that reports the number of bytes read."""

    def __init__(self, file: BinaryIO, count: Callable[[int], None]) -> None:
        self._file = file
        self._count = count

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        n_bytes: int = self._file.readinto(buffer)  # type: ignore[attr-defined]
        self._count(n_bytes)
        return n_bytes
