"""Detect the encoding, separator and header of a text file from its beginning."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from neuralbayes.data.records import cells_of, is_open, records
from neuralbayes.system.bounds import MAX_COLUMNS

MARKS = (",", ";", "\t", "|")
MARK_NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " ", "bar": "|", "pipe": "|"}
"""Names of separators."""

MOST_RECORDS = 1000
"""Number of rows to inspect."""

NUMBER = re.compile(r"[+-]?(?:\d+|\d{1,3}(?:[.,'\u2019 \u00a0\u202f]\d{3})+)?(?:[.,]\d*)?(?:[eE][+-]?\d+)?")
FRACTION = re.compile(r"[+-]?\d*[.,]\d+(?:[eE][+-]?\d+)?")
BOMS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}


@dataclass(frozen=True)
class Dialect:
    """Separator, header and start of a text file.

    Attributes
    ----------
    separator : str
        Separator of cells; a blank stands for any number of blanks.
    names : list of str
        Column names; x0, x1, ... if the file has none.
    header : bool
        Whether the names are in the file.
    begin, start : int
        Byte offsets of the header and of the first row of data in the UTF-8 text. Text before the header is ignored.
    line : int
        Line number of the first row of data.
    """

    separator: str
    names: list[str]
    header: bool
    begin: int
    start: int
    line: int


def find_encoding(head: bytes, *, whole: bool) -> str:
    """Guess the encoding from the first bytes. Text that looks like UTF-8 may still have another encoding.

    Parameters
    ----------
    head : bytes
    whole : bool
        Whether `head` is the whole file, so that it does not end within a character.

    Examples
    --------
    >>> find_encoding("größe".encode("cp1252"), whole=True), find_encoding("größe".encode("utf-16"), whole=True)
    ('cp1252', 'utf-16-le')
    """
    for mark, encoding in BOMS.items():
        if head.startswith(mark):
            return encoding
    odd, even = head[1:2000:2].count(0), head[0:2000:2].count(0)
    if max(odd, even) > 0.4 * len(head[:2000]) / 2 and min(odd, even) == 0:  # UTF-16 without a byte order mark
        return "utf-16-le" if odd else "utf-16-be"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head, final=whole)
    except UnicodeDecodeError:
        return other_than_utf8(head)
    return "utf-8"


def other_than_utf8(head: bytes) -> str:
    """cp1252, the usual encoding of Windows and Excel, or latin-1 if a byte is not valid in it."""
    try:
        head.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"


def is_text(head: bytes) -> bool:
    """Whether UTF-8 bytes look like text: no zeros and few other control characters."""
    control = sum(head.count(byte) for byte in [*range(1, 9), *range(14, 32)])
    return b"\0" not in head and control <= 0.01 * len(head)


def named_mark(sep: str) -> str:
    r"""The separator that `sep` names.

    Examples
    --------
    >>> named_mark("tab"), named_mark(";")
    ('\t', ';')
    """
    mark = MARK_NAMES.get(sep.lower(), sep)
    if len(mark) != 1 or not mark.isascii() or mark in '"\r\n' or mark.isalnum():
        raise ValueError(f"`sep` must be a single mark such as ; or | or one of {', '.join(MARK_NAMES)}, got {sep!r}")
    return mark


def find_dialect(path: Path, sample: bytes, expected: str, sep: str | None = None, *, whole: bool) -> Dialect:
    """Detect the dialect of a text.

    Parameters
    ----------
    path : Path
        For messages.
    sample : bytes
        The beginning of the text, in UTF-8.
    expected : str
        Separator that the suffix suggests, which is preferred if several fit.
    sep : str, optional
        The separator, if known.
    whole : bool
        Whether `sample` is the whole text.

    Raises
    ------
    ValueError
        If the file is empty, or has too many columns or duplicate names.
    """
    begin = len(codecs.BOM_UTF8) if sample.startswith(codecs.BOM_UTF8) else 0
    told = re.match(rb'"?sep=(.)"?\r?\n', sample[begin:])  # a hint for Excel
    if told is not None:
        begin += told.end()
        sep = sep or told[1].decode("ascii", errors="replace")
    rows = {mark: _rows(sample[begin:], mark, whole=whole) for mark in ([sep] if sep else [*MARKS, " "])}
    separator = sep or _separator({mark: _without_remarks(found) for mark, found in rows.items()}, expected)
    found = rows[separator]
    if not any(cells for _, cells in found):
        raise ValueError(f"{path} is empty: it has no columns")
    width = _width(_without_remarks(found))[0]
    skipped = _preamble(found, width, separator, sep)
    front = b"".join(raw for raw, _ in found[:skipped])
    raw, first = found[skipped]
    header = not _is_data(first)
    line = len((sample[:begin] + front).splitlines()) + 1
    begin += len(front)
    start = begin
    if header:
        start, line = begin + len(raw), line + len(raw.splitlines())
        names = [name.strip() or f"Unnamed: {i}" for i, name in enumerate(first)]
    else:
        names = [f"x{i}" for i in range(len(first))]
    if len(names) > MAX_COLUMNS:
        raise ValueError(f"{path} must have at most {MAX_COLUMNS} columns, got more in its first line")
    check_names(path, names)
    return Dialect(separator, names, header, begin, start, line)


def check_names(path: Path, names: list[str]) -> None:
    """Raise if two columns have the same name."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        places = [str(i + 1) for i, name in enumerate(names) if name == repeated[0]]
        raise ValueError(
            f"{path} has more than one column {repeated[0]!r}: columns {', '.join(places)}; column names must differ, "
            "rename one of them"
        )


def _rows(sample: bytes, mark: str, *, whole: bool) -> list[tuple[bytes, list[str]]]:
    """The first rows with their cells, without the last one if it may be incomplete."""
    found = list(islice(records(sample.splitlines(keepends=True), mark), MOST_RECORDS + 1))
    if len(found) > 1 and (not whole or len(found) > MOST_RECORDS or is_open(found[-1], mark.encode())):
        found.pop()
    return [(record, cells_of(record, mark) if record.strip() else []) for record in found]


def _without_remarks(rows: list[tuple[bytes, list[str]]]) -> list[list[str]]:
    """The cells of rows that do not start with #, if there are any."""
    return [cells for record, cells in rows if not record.startswith(b"#")] or [cells for _, cells in rows]


def _width(rows: list[list[str]]) -> tuple[int, float]:
    """The most common number of cells per row, and the fraction of rows with it."""
    counts = Counter(len(row) for row in rows if row)
    if not counts:
        return 0, 0.0
    width, number = counts.most_common(1)[0]
    return width, number / counts.total()


def _separator(rows: dict[str, list[list[str]]], expected: str) -> str:
    """The separator that gives most rows the same number of cells, at least two; `expected` in case of ties or if none
    does.

    In rows such as 1,5;2,5, both marks fit; there the comma belongs to the numbers.
    """
    shares = {mark: share for mark in MARKS for width, share in [_width(rows[mark])] if width > 1}
    best = [mark for mark, share in shares.items() if share == max(shares.values())]
    if not best:
        width, share = _width(rows[" "])
        divides = width > 1 and share > 0.7 and any(map(_is_number_column, zip(*_even(rows[" "], width), strict=True)))
        return " " if divides else expected
    for other in best if "," in best else []:
        cells = [cell.strip() for row in rows[other] for cell in row if "," in cell]
        if other != "," and cells and all(map(NUMBER.fullmatch, cells)):
            return other
    return expected if expected in best else best[0]


def _even(rows: list[list[str]], width: int) -> list[list[str]]:
    return [row for row in rows if len(row) == width]


def _is_number_column(cells: tuple[str, ...]) -> bool:
    return len(cells) > 1 and all(is_number_text(cell) for cell in cells[1:])


def _preamble(rows: list[tuple[bytes, list[str]]], width: int, separator: str, sep: str | None) -> int:
    """Number of lines before the header: comments, titles, blank lines.

    A line that another separator would split may be the header of a file with a wrong `sep`.
    """
    n = next(i for i, (_, cells) in enumerate(rows) if cells)
    remarks = titles = n
    for record, cells in rows[n:-1]:
        is_remark = not cells or (record.startswith(b"#") and len(cells) != width)
        divided = sep is not None and any(mark.encode() in record for mark in MARKS if mark != separator)
        if not is_remark and (width == 1 or len(cells) != 1 or divided):
            break
        titles += 1
        if is_remark and titles == remarks + 1:
            remarks = titles
    return remarks if _is_data(rows[titles][1]) else titles


def _is_data(first: list[str]) -> bool:
    """Whether the first row contains values instead of names: all are numbers, or one has a fraction."""
    cells = [cell.strip() for cell in first]
    if cells == [*map(str, range(len(cells)))]:
        return False  # data frames without column names have the header 0, 1, 2, ...
    return all(map(is_number_text, cells)) or any(map(FRACTION.fullmatch, cells))


def is_number_text(cell: str) -> bool:
    """Whether a cell is a number in a human format."""
    text = cell.strip()
    return (any(character.isdigit() for character in text) and NUMBER.fullmatch(text) is not None) or _is_float(text)


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
