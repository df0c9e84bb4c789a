"""The raw rows of a text file and their cells."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator

from neuralbayes.data.packed import Bytes

BLOCK_BYTES = 2**22

QUOTED = re.compile(rb'"(?:[^"]++|"")*+"')


def lines(stream: Bytes) -> Iterator[bytes]:
    """The lines of a stream with their line endings: line feed, carriage return or both."""
    rest = b""
    while block := stream.read(BLOCK_BYTES):
        found = (rest + block).splitlines(keepends=True)
        # A carriage return at the end of a block may be half of a line ending.
        rest = found.pop() if not found[-1].endswith(b"\n") else b""
        yield from found
    if rest:
        yield rest


def records(some_lines: Iterable[bytes], separator: str) -> Iterator[bytes]:
    """Records: lines, joined if a quoted cell spans several. An unclosed quote takes everything that follows.

    Examples
    --------
    >>> list(records([b'1,"x\\n', b'y"\\n', b'2,z'], ","))
    [b'1,"x\\ny"\\n', b'2,z']
    """
    mark = separator.encode()
    begun: list[bytes] = []
    for line in some_lines:
        odd = b'"' in line and line.count(b'"') % 2 == 1
        if begun:
            begun.append(line)
            if odd:
                yield b"".join(begun)
                begun = []
        elif odd and is_open(line, mark):
            begun = [line]
        else:
            yield line
    if begun:
        yield b"".join(begun)


def is_open(record: bytes, separator: bytes) -> bool:
    """Whether a record ends within a quoted cell.

    Examples
    --------
    >>> is_open(b'a,"b', b","), is_open(b'5" pipe,"b"', b",")
    (True, False)
    """
    at = 0
    while at < len(record):
        if record[at : at + 1] == b'"':
            closed = QUOTED.match(record, at)
            if closed is None:
                return True
            at = closed.end()
        following = record.find(separator, at)
        if following < 0:
            return False
        at = following + len(separator)
    return False


def body(record: bytes) -> bytes:
    """A record without its line ending."""
    return record.removesuffix(b"\n").removesuffix(b"\r")


def cells_of(record: bytes, separator: str) -> list[str]:
    """The cells of a record, without quotes; several blanks count as one if a blank is the separator.

    Examples
    --------
    >>> cells_of(b'1;"a;b"\\r\\n', ";"), cells_of(b" 1   2 ", " ")
    (['1', 'a;b'], ['1', '2'])
    """
    text = body(record).decode("utf-8-sig", errors="replace")
    blanks = separator == " "
    try:
        return next(csv.reader([text.strip() if blanks else text], delimiter=separator, skipinitialspace=blanks), [])
    except csv.Error:  # a cell exceeds the limit of the csv module
        return text.split(separator)
