"""Tables in text files: the encoding, the separator, the header and the types of the columns are found."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, read_csv

from neuralbayes.data.bounds import CELL_BYTES, COLUMN_BYTES, Budget
from neuralbayes.data.cell_types import Decimal, find_decimal, typed

if TYPE_CHECKING:
    import pandas as pd

Row = tuple[int, int, list[str]]  # the index of its first line, that of the line after it, and its cells

MARKS = (",", ";", "\t", "|")
MARK_NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " ", "bar": "|", "pipe": "|"}

SAMPLE_BYTES, SAMPLE_ROWS = 2**18, 1000  # the part of a file from which its separator and header are found

NUMBER = re.compile(r"[+-]?(?:\d+|\d{1,3}(?:[.,'\u2019 \u00a0\u202f]\d{3})+)?(?:[.,]\d*)?(?:[eE][+-]?\d+)?")
FRACTION = re.compile(r"[+-]?\d*[.,]\d+(?:[eE][+-]?\d+)?")

BOMS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",  # begins like that of UTF-16
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


@dataclass(frozen=True)
class Layout:
    """The separator (" ": any number of blanks), the names, and the offset and line of the first row of data."""

    separator: str
    names: list[str]
    start: int
    line: int


def read_text(
    content: bytes,
    name: str,
    expected: str,
    budget: Budget,
    *,
    sep: str | None = None,
    decimal: Decimal | None = None,
    encoding: str | None = None,
) -> pd.DataFrame:
    """Read a text table that is called `name` in messages and probably has the separator `expected`."""
    import pandas

    text = as_utf8(content, name, encoding)
    del content
    layout = find_layout(text, name, expected, sep)
    budget.check_names(layout.names)
    n_lines = max(text.count(b"\n"), text.count(b"\r"))
    budget.take(len(layout.names) * (COLUMN_BYTES + CELL_BYTES * n_lines))
    cells = _cells(text, name, layout)
    del text
    columns = dict(zip(cells.column_names, cells.columns, strict=True))
    del cells
    common = decimal or find_decimal([column.slice(0, 10_000) for column in columns.values()], layout.separator)
    marks: tuple[Decimal, ...] = (decimal,) if decimal else (common, "," if common == "." else ".")
    series = {column: typed(columns.pop(column), marks) for column in layout.names}
    return pandas.DataFrame(series, copy=False)


def as_utf8(content: bytes, name: str, encoding: str | None = None) -> bytes:
    """Text in UTF-8 without a byte order mark; by default UTF-8, UTF-16, UTF-32, cp1252 and latin-1 are told apart."""
    if encoding is not None:
        try:
            found = [codecs.lookup(encoding).name]
            "a".encode(found[0])
        except LookupError as error:  # also raised for codecs that do not convert text to bytes
            raise ValueError(f"`encoding` must be one such as utf-8, cp1252 or latin-1, got {encoding!r}") from error
    else:
        found = [codec for mark, codec in BOMS.items() if content.startswith(mark)][:1]
        head = content[:2000]
        odd, even = head[1::2].count(0), head[::2].count(0)
        if not found and max(odd, even) > 0.2 * len(head) and min(odd, even) == 0:  # UTF-16 without a mark
            found = ["utf-16-le" if odd else "utf-16-be"]
        found = found or ["utf-8", "cp1252", "latin-1"]
    for codec in found:
        with suppress(UnicodeDecodeError, pa.ArrowInvalid):
            if codec != "utf-8":
                return content.decode(codec).removeprefix("\ufeff").encode()
            ends = pa.array([0, len(content)]).buffers()[1]
            pa.Array.from_buffers(pa.large_string(), 1, [None, ends, pa.py_buffer(content)]).validate(full=True)
            return content.removeprefix(codecs.BOM_UTF8)
    raise ValueError(f"{name} is not {found[0]} text; give its encoding with `encoding`")


def find_layout(text: bytes, name: str, expected: str, sep: str | None = None) -> Layout:
    if sep is not None:
        mark = MARK_NAMES.get(sep.lower(), sep)
        if len(mark) != 1 or not mark.isascii() or mark in '"\r\n' or mark.isalnum():
            raise ValueError(f"`sep` must be a single mark such as ; or one of {', '.join(MARK_NAMES)}, got {sep!r}")
        sep = mark
    begin, end = 0, SAMPLE_BYTES
    hint = re.match(rb'"?sep=([,;:|\t ])"?\r?\n', text)  # for Excel
    if hint is not None:
        begin, sep = hint.end(), sep or hint[1].decode()
    while end < len(text) and len(text[begin:end].splitlines()) < 3:
        end *= 2
    sample = text[begin:end]
    if b"\0" in sample or sum(map(sample.count, [*range(1, 9), *range(14, 32)])) > 0.01 * len(sample):
        raise ValueError(f"{name} is not a text file: it holds control characters; its suffix may be wrong")
    lines = sample.splitlines(keepends=True)
    found = {mark: _rows(lines, mark, whole=end >= len(text)) for mark in ([sep] if sep else [*MARKS, " "])}
    separator = sep or _separator({mark: _without_remarks(rows) for mark, rows in found.items()}, expected)
    rows = found[separator]
    if not any(cells for _, _, cells in rows):
        raise ValueError(f"{name} is empty: it has no columns")
    line, following, first = rows[_preamble(rows, separator, known=sep is not None)]
    names = [f"x{i}" for i in range(len(first))]
    if not is_data(first):
        line, names = following, [cell.strip() or f"Unnamed: {i}" for i, cell in enumerate(first)]
    return Layout(separator, names, begin + sum(map(len, lines[:line])), line + 1 + (begin > 0))


def _rows(lines: list[bytes], mark: str, *, whole: bool) -> list[Row]:
    """The first rows, without the last one if it may be incomplete."""
    found: list[Row] = []
    reader = _reader((line.decode("utf-8", errors="replace") for line in lines), mark)
    with suppress(csv.Error):  # a cell exceeds the limit of the csv module
        for cells in islice(reader, SAMPLE_ROWS):
            start, end = found[-1][1] if found else 0, reader.line_num
            found.append((start, end, cells if b"".join(lines[start:end]).strip() else []))
    if len(found) > 1 and found[-1][1] == len(lines) and not whole:
        found.pop()
    return found


def _reader(lines: Iterable[str], mark: str, *, strict: bool = False) -> Any:
    lines = (f"{line.strip()}\n" for line in lines) if mark == " " else lines
    return csv.reader(lines, delimiter=mark, skipinitialspace=mark == " ", strict=strict)


def _without_remarks(rows: list[Row]) -> list[list[str]]:
    """The cells of rows that do not start with #, if there are any."""
    every = [cells for _, _, cells in rows]
    return [cells for cells in every if not (cells and cells[0].startswith("#"))] or every


def _width(rows: list[list[str]]) -> tuple[int, float]:
    """The most common number of cells per row, and the fraction of rows with it."""
    counts = Counter(len(row) for row in rows if row)
    width, number = counts.most_common(1)[0] if counts else (0, 0)
    return width, number / max(1, counts.total())


def _separator(rows: dict[str, list[list[str]]], expected: str) -> str:
    """The separator that gives most rows the same number of cells, at least two; `expected` in doubt."""
    shares = {mark: share for mark in MARKS for width, share in [_width(rows[mark])] if width > 1}
    best = [mark for mark, share in shares.items() if share == max(shares.values())]
    if not best:
        width, share = _width(rows[" "])
        columns = zip(*(row for row in rows[" "] if len(row) == width), strict=True)
        numeric = any(len(cells) > 1 and all(map(is_number_text, cells[1:])) for cells in columns)
        return " " if width > 1 and share > 0.7 and numeric else expected
    for other in best[1:] if best[0] == "," else []:  # both fit 1,5;2,5, where the comma belongs to the numbers
        cells = [cell.strip() for row in rows[other] for cell in row if "," in cell]
        if cells and all(map(NUMBER.fullmatch, cells)):
            return other
    return expected if expected in best else best[0]


def _preamble(rows: list[Row], separator: str, *, known: bool) -> int:
    """Number of rows before the header: remarks, titles, blank lines."""
    width = _width(_without_remarks(rows))[0]
    n = next(i for i, (_, _, cells) in enumerate(rows) if cells)
    remarks = titles = n
    for _, _, cells in rows[n:-1]:
        is_remark = not cells or (cells[0].startswith("#") and len(cells) != width)
        # With a known separator, this may be the header of a file with a wrong `sep`.
        divided = known and any(mark in cell for cell in cells for mark in MARKS if mark != separator)
        if not is_remark and (width == 1 or len(cells) != 1 or divided):
            break
        titles += 1
        if is_remark and titles == remarks + 1:
            remarks = titles
    return remarks if is_data(rows[titles][2]) else titles


def is_data(first: list[str]) -> bool:
    """Whether the first row contains values instead of names: all are numbers, or one has a fraction."""
    cells = [cell.strip() for cell in first]
    if cells == [*map(str, range(len(cells)))]:
        return False  # data frames without column names have the header 0, 1, 2, ...
    return all(map(is_number_text, cells)) or any(map(FRACTION.fullmatch, cells))


def is_number_text(cell: str) -> bool:
    """Whether a cell is a number in a human format."""
    text = cell.strip()
    with suppress(ValueError):
        float(text)
        return True
    return any(map(str.isdigit, text)) and NUMBER.fullmatch(text) is not None


def _cells(text: bytes, name: str, layout: Layout) -> Any:
    """All cells as text, a pyarrow Table."""
    names, separator = layout.names, layout.separator
    data = pa.py_buffer(text).slice(layout.start)
    n_quotes = text.count(b'"')
    if n_quotes % 2:
        _check_rows(data, name, layout)
    if separator == " ":  # a single one between two cells
        single = io.StringIO()
        csv.writer(single, delimiter=" ", lineterminator="\n").writerows(filter(None, _reader(_lines(data), " ")))
        data = pa.py_buffer(single.getvalue().encode())
    convert = ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
    block = 2**20
    while True:
        try:
            parse = ParseOptions(delimiter=separator, newlines_in_values=n_quotes > 0)
            return read_csv(pa.BufferReader(data), ReadOptions(column_names=names, block_size=block), parse, convert)
        except pa.ArrowInvalid as error:
            if "Empty CSV file" in str(error):
                return pa.table({column: pa.array([], pa.string()) for column in names})
            if "straddling" not in str(error) or block >= 2**30:
                _check_rows(pa.py_buffer(text).slice(layout.start), name, layout)
                raise ValueError(f"{name} cannot be read as a table ({error})") from error
            block *= 8  # a row must fit into a block


def _lines(data: Any) -> Iterable[str]:
    return io.TextIOWrapper(pa.BufferReader(data), "utf-8", errors="replace", newline="")


def _check_rows(data: Any, name: str, layout: Layout) -> None:
    """Raise an error that names the first row with a wrong number of cells or a quote that is not closed."""
    reader, line, row = _reader(_lines(data), layout.separator, strict=True), layout.line, 0
    try:
        for cells in reader:
            row += bool(cells)
            if len(cells) not in (0, len(layout.names)):
                by = {"\t": "tabs", " ": "blanks"}.get(layout.separator, repr(layout.separator))
                raise ValueError(
                    f"{name}: row {row} (line {line}) has {len(cells)} {'cell' if len(cells) == 1 else 'cells'}, but "
                    f"there are {len(layout.names)} columns, separated by {by}; put cells that contain the separator "
                    "into quotes, or choose another separator with `sep`"
                )
            line = layout.line + reader.line_num
    except csv.Error as error:
        if "unexpected end" in str(error):
            raise ValueError(f"{name}: a quoted cell in line {line} never ends; close the quote") from error
