"""Text files in any encoding, packed or not, as streams of UTF-8."""

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
"""At most so much of a file is looked at, where its first lines are long."""


def open_text(path: Path, encoding: str = "utf-8") -> Bytes:
    """The contents of a text file in UTF-8, as a stream of bytes; a mark of the byte order stays at its beginning."""
    raw: Any = Unpacked(path) if packing(path) else path.open("rb")
    return raw if encoding == "utf-8" else _Recoded(raw, encoding)


class _Recoded:
    """A stream of text in any encoding as a stream of UTF-8."""

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
    """The encoding of a text file by its beginning."""
    with closing(open_text(path)) as stream:
        head = stream.read(SAMPLE_BYTES)
        return find_encoding(head, whole=not stream.read(1))


def guess_again(path: Path) -> str:
    """The encoding of a file that looked like UTF-8 at its beginning and is not."""
    with closing(open_text(path)) as stream:
        while block := stream.read(BLOCK_BYTES):
            if (found := other_than_utf8(block)) != "cp1252":
                return found
    return "cp1252"


def known_encoding(path: Path, encoding: str) -> str:
    """The name that Python has for the encoding of a file; a mark of the byte order in it is read as a character."""
    try:
        name = codecs.lookup(encoding).name
        "a".encode(name)
    except LookupError as error:  # also said of codecs that do not make bytes of text
        raise ValueError(f"`encoding` must be one such as utf-8, cp1252 or latin-1, got {encoding!r}") from error
    if name in ("utf-16", "utf-32"):
        guess = guess_encoding(path)
        return guess if guess.startswith(name) else f"{name}-le"
    return name.removesuffix("-sig")


def text_sample(path: Path, encoding: str) -> tuple[bytes, bool]:
    """The beginning of a text in UTF-8, with at least two lines, and whether it is all of it."""
    sample = b""
    with closing(open_text(path, encoding)) as stream:
        while len(sample) < MAX_SAMPLE_BYTES and len(sample.splitlines()) < 3:
            block = stream.read(max(SAMPLE_BYTES, len(sample)))
            if not block:
                return sample, True
            sample += block
        return sample, not stream.read(1)


def count_quotes(path: Path, encoding: str) -> int:
    """How many quotation marks there are in a text."""
    count = 0
    with closing(open_text(path, encoding)) as stream:
        while block := stream.read(BLOCK_BYTES):
            count += block.count(b'"')
    return count


def undecodable_line(path: Path, encoding: str) -> int | None:
    """The number of the first line that is not in this encoding; None where lines cannot be told apart before."""
    if encoding.startswith(("utf-16", "utf-32")):
        return None
    with closing(open_text(path)) as stream:
        for number, line in enumerate(lines(stream), 1):
            try:
                line.decode(encoding)
            except UnicodeDecodeError:
                return number
    return None
