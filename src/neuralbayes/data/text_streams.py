"""Text files in any encoding, compressed or not, as streams of UTF-8."""

from __future__ import annotations

import codecs
from contextlib import closing
from pathlib import Path
from typing import Any

from neuralbayes.data.dialect import find_encoding, other_than_utf8
from neuralbayes.data.packed import Bytes, Unpacked, packing
from neuralbayes.data.records import BLOCK_BYTES, lines

SAMPLE_BYTES = 2**18
MAX_SAMPLE_BYTES = 2**26
"""Maximum number of bytes to inspect if the first lines are long."""


def open_text(path: Path, encoding: str = "utf-8") -> Bytes:
    """The contents of a text file as a stream of UTF-8 bytes, including a byte order mark."""
    raw: Any = Unpacked(path) if packing(path) else path.open("rb")
    return raw if encoding == "utf-8" else _Recoded(raw, encoding)


class _Recoded:
    """Convert a stream of text in any encoding to UTF-8."""

    def __init__(self, raw: Bytes, encoding: str) -> None:
        self.closed = False
        self._raw = raw
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._rest = b""
        self._ended = False

    def read(self, size: int = -1, /) -> bytes:
        while not self._ended and (size < 0 or len(self._rest) < size):
            block = self._raw.read(BLOCK_BYTES)
            self._ended = not block
            self._rest += self._decoder.decode(block, final=self._ended).encode()
        size = len(self._rest) if size < 0 else size
        block, self._rest = self._rest[:size], self._rest[size:]
        return block

    def close(self) -> None:
        self.closed = True
        self._raw.close()


def guess_encoding(path: Path) -> str:
    """Guess the encoding of a text file from its beginning."""
    with closing(open_text(path)) as stream:
        head = stream.read(SAMPLE_BYTES)
        return find_encoding(head, whole=not stream.read(1))


def guess_again(path: Path) -> str:
    """The encoding of a file that looked like UTF-8 at its beginning but is not."""
    with closing(open_text(path)) as stream:
        while block := stream.read(BLOCK_BYTES):
            if (found := other_than_utf8(block)) != "cp1252":
                return found
    return "cp1252"


def known_encoding(path: Path, encoding: str) -> str:
    """Python's name for the encoding of a file. A byte order mark is read as a character."""
    try:
        name = codecs.lookup(encoding).name
        "a".encode(name)
    except LookupError as error:  # also raised for codecs that do not convert text to bytes
        raise ValueError(f"`encoding` must be one such as utf-8, cp1252 or latin-1, got {encoding!r}") from error
    if name in ("utf-16", "utf-32"):
        guess = guess_encoding(path)
        return guess if guess.startswith(name) else f"{name}-le"
    return name.removesuffix("-sig")


def text_sample(path: Path, encoding: str) -> tuple[bytes, bool]:
    """The beginning of a UTF-8 text, with at least two lines, and whether it is the whole text."""
    sample = b""
    with closing(open_text(path, encoding)) as stream:
        while len(sample) < MAX_SAMPLE_BYTES and len(sample.splitlines()) < 3:
            block = stream.read(max(SAMPLE_BYTES, len(sample)))
            if not block:
                return sample, True
            sample += block
        return sample, not stream.read(1)


def count_quotes(path: Path, encoding: str) -> int:
    """Number of quotation marks in a text."""
    count = 0
    with closing(open_text(path, encoding)) as stream:
        while block := stream.read(BLOCK_BYTES):
            count += block.count(b'"')
    return count


def undecodable_line(path: Path, encoding: str) -> int | None:
    """Number of the first line that is not valid in this encoding; None if lines cannot be separated before
    decoding."""
    if encoding.startswith(("utf-16", "utf-32")):
        return None
    with closing(open_text(path)) as stream:
        for number, line in enumerate(lines(stream), 1):
            try:
                line.decode(encoding)
            except UnicodeDecodeError:
                return number
    return None
