"""Read and write tables of any usual format, by the suffix of the file. Nothing is unpickled."""

from __future__ import annotations

import bz2
import datetime
import gzip
import io
import json
import lzma
import re
import sys
import warnings
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.bounds import (
    CELL_BYTES,
    Budget,
    batches_within,
    declared_in_arrow,
    declared_in_zip,
    parquet_batches,
    read_within,
)
from neuralbayes.system.files import atomic_write

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
JSON, ARROW, ARRAYS = (".jsonl", ".ndjson"), (".arrow", ".feather"), (".npy", ".npz")
SUFFIXES = (*SEPARATORS, *JSON, ".parquet", *ARROW, ".xlsx", *ARRAYS)
PACKED = (".gz", ".bz2", ".xz", ".zst")

MAGIC = {
    b"PAR1": ("a Parquet file", (".parquet",)),
    b"ARROW1": ("an Arrow file", ARROW),
    b"PK\x03\x04": ("an archive, such as an Excel file", (".xlsx", ".npz")),
    b"\x93NUMPY": ("a NumPy array", (".npy",)),
    b"\x1f\x8b": ("a compressed file", (".gz",)),
    b"BZh": ("a compressed file", (".bz2",)),
    b"\xfd7zXZ\0": ("a compressed file", (".xz",)),
    b"\x28\xb5\x2f\xfd": ("a compressed file", (".zst",)),
    b"\xd0\xcf\x11\xe0": ("an old or encrypted Excel file", ()),
    b"%PDF-": ("a PDF document", ()),
    b"SQLite format 3\0": ("a database", ()),
}
"""First bytes of formats, with their suffixes."""

FORMULA = re.compile(r"[=@\x00-\x1f]|\+(?=.*[^\d\s().,/-])|-(?=.*[(|!])", re.DOTALL)
"""Text that a spreadsheet may run as a formula; not numbers, telephone numbers or a sign alone."""

JSON_BYTES, ROWS_AT_ONCE = 2**22, 50_000
"""JSON lines read and rows written at a time."""

READING = (ValueError, TypeError, LookupError, AttributeError, SyntaxError, EOFError, OSError, RuntimeError)
"""What pyarrow, openpyxl, numpy and decompressors raise on damaged files."""


def read_table(
    path: str | Path,
    *,
    key: str | None = None,
    sheet: str | None = None,
    sep: str | None = None,
    decimal: Literal[".", ","] | None = None,
    encoding: str | None = None,
    as_text: Collection[str] = (),
    max_bytes: int | None = None,
) -> pd.DataFrame | NDArray[Any]:
    """Read all columns of a table.

    Parameters
    ----------
    path : path of a .csv, .tsv, .txt, .jsonl, .ndjson, .parquet, .arrow, .feather, .xlsx, .npy or .npz file
        Or a folder of .parquet files with the same columns, or "-" for text on standard input. Text and JSON lines may
        be compressed: .csv.gz, .csv.bz2, .csv.xz, .csv.zst. For text, the separator, encoding, decimal and thousands
        marks, quotes, lines before the header and missing cells (NA, N/A, null, -, ?) are found. If the first line
        consists of numbers, it is data, and the columns are x0, x1, ...
    key : str, optional
        Array of an .npz file, if there are several.
    sheet : str, optional
        Name of a sheet of an Excel file, or its number from 1; by default the first one.
    sep, decimal, encoding : str, optional
        Separator of a text file (or "tab", "space"), its decimal mark and its encoding, if they are known.
    as_text : collection of str
        Columns of a text or Excel file to keep as text, even if they look like numbers.
    max_bytes : int, optional
        Most memory that the table may take. By default half of the free memory, and at most the larger of 1 GiB and a
        hundred times the size of the file, so that a small file cannot unpack to anything.

    Returns
    -------
    DataFrame, or ndarray of shape (n_rows, n_columns) for .npy (memory-mapped) and .npz
        Names are unique and of type str. Numbers are int64, or float64 with NaN for missing cells (Int64 with NA if
        float64 would round them). Digits with leading zeros ("02750") are codes and stay text. Dates are text if the
        file format has no dates.

    Raises
    ------
    ValueError
        If the file is empty, damaged or not a table.
    MemoryError
        If the table would take too much memory.
    """
    known = {"sep": sep, "decimal": decimal, "encoding": encoding}
    if decimal not in (None, ".", ","):
        raise ValueError(f"`decimal` must be . or a comma, got {decimal!r}")
    if str(path) == "-":
        from neuralbayes.data.text_tables import read_text

        budget = Budget("standard input", 0, max_bytes)
        content = read_within(sys.stdin.buffer, budget)
        return _checked("standard input", read_text(content, "standard input", ",", budget, as_text=as_text, **known))
    path = Path(path)
    if path.exists() and not (path.is_file() or is_table(path)):
        raise IsADirectoryError(f"{path} is a folder, not a file of a table or a folder of .parquet files")
    files = parquet_files(path)
    suffix = table_suffix(files[0])
    rules = {"key": ("names an array of a .npz file", [".npz"]), "sheet": ("names a sheet of an .xlsx file", [".xlsx"])}
    for name, value in {"key": key, "sheet": sheet, **known}.items():
        what, suffixes = rules.get(name, ("is for text files", list(SEPARATORS)))
        if value is not None and suffix not in suffixes:
            raise ValueError(f"`{name}` {what}, but {path} is a {suffix} file")
    for file in files:
        _check_contents(file, suffix)
    if suffix in ARRAYS:
        return _checked(path, _read_array(path, suffix, key, max_bytes))
    budget = Budget(str(path), sum(file.stat().st_size for file in files), max_bytes)
    if suffix in SEPARATORS:
        from neuralbayes.data.text_tables import read_text

        content = _unpacked(path, budget)
        return _checked(path, read_text(content, str(path), SEPARATORS[suffix], budget, as_text=as_text, **known))
    if suffix in JSON:
        return _checked(path, _read_json(path, budget))
    if suffix == ".xlsx":
        return _checked(path, _read_workbook(path, sheet, as_text, budget))
    return _checked(path, _read_arrow(path, budget) if suffix in ARROW else _read_parquet(files, budget))


def write_table(path: str | Path, frame: pd.DataFrame) -> None:
    """Write a data frame, atomically, in the format that the suffix of `path` names.

    Text that a spreadsheet would run as a formula gets an apostrophe in .csv and .tsv files, and is marked as text in
    .xlsx files. The index is written if it has a name or holds more than numbers.

    Parameters
    ----------
    path : path of a .csv, .tsv, .txt, .jsonl, .ndjson, .parquet, .arrow, .feather or .xlsx file
        Text and JSON lines may be compressed, as in :func:`read_table`.
    frame : DataFrame
    """
    check_writable(path)
    path = Path(path)
    suffix = table_suffix(path)
    indexed = frame.index.name is not None or frame.index.nlevels > 1 or frame.index.dtype.kind not in "iu"
    with atomic_write(path) as temporary:
        if suffix == ".parquet":
            frame.to_parquet(temporary, engine="pyarrow", index=indexed)
            return
        frame = frame.reset_index(drop=not indexed)
        if suffix in ARROW:
            frame.to_feather(temporary)
        elif suffix == ".xlsx":
            _write_workbook(temporary, frame)
        else:
            with closing(_packing(temporary, path.suffix.lower())) as stream:
                if suffix in JSON:
                    _write_json(stream, frame)
                else:
                    safe = _without_formulas(frame)
                    safe.to_csv(stream, sep=SEPARATORS[suffix], index=False, lineterminator="\n", mode="wb")


def check_writable(path: str | Path) -> None:
    """Raise a ValueError unless :func:`write_table` knows the suffix of `path`."""
    if table_suffix(path) in ARRAYS:
        kinds = ", ".join(suffix for suffix in SUFFIXES if suffix not in ARRAYS)
        raise ValueError(f"`path` must end in one of {kinds}, which have names of columns, got {str(path)!r}")


def is_table(path: str | Path) -> bool:
    """Whether `path` is a file with the suffix of a table, or a folder of Parquet files."""
    path = Path(path)
    if path.is_dir():
        return parquet_files(path) != [path]
    name = path.with_suffix("") if path.suffix.lower() in PACKED else path
    return path.is_file() and name.suffix.lower() in SUFFIXES


def parquet_files(path: str | Path) -> list[Path]:
    """The Parquet files of a folder, sorted by name; `path` itself if it is a file or has none.

    Files that start with a dot or an underscore are ignored.
    """
    path = Path(path)
    return sorted(file for file in path.glob("*.parquet") if file.name[0] not in "._") or [path]


def table_suffix(path: str | Path) -> str:
    """The lower-case suffix of `path` that names a table format, without a compression suffix.

    Examples
    --------
    >>> table_suffix("rows.CSV"), table_suffix("rows.tsv.gz")
    ('.csv', '.tsv')
    """
    path = Path(path)
    packing = path.suffix.lower() if path.suffix.lower() in PACKED else ""
    suffix = (path.with_suffix("") if packing else path).suffix.lower()
    if suffix not in SUFFIXES or (packing and suffix not in (*SEPARATORS, *JSON)):
        raise ValueError(
            f"{path} must end in one of {', '.join(SUFFIXES)}, or for compressed text in one of these and then in "
            f"{', '.join(PACKED)}, got {suffix + packing or 'no suffix'!r}"
        )
    return suffix


def _check_contents(path: Path, suffix: str) -> None:
    """Raise if a file is missing or empty, or if its first bytes contradict its suffix."""
    suffix = path.suffix.lower() if path.suffix.lower() in PACKED else suffix
    with open(path, "rb") as file:
        head = file.read(16)
    if not head:
        raise ValueError(f"{path} is empty")
    what, right = next((found for magic, found in MAGIC.items() if head.startswith(magic)), ("", (suffix,)))
    if suffix not in right:
        advice = " or ".join(right) or ".xlsx, .csv or .parquet, after saving it as such"
        raise ValueError(f"{path} is {what}; its name must end in {advice}")


def _checked(path: Path | str, table: Any) -> Any:
    """`table` with names of type str, which must be unique; raises if there are no rows or columns."""
    if not isinstance(table, np.ndarray):
        from neuralbayes.data.text_tables import check_names

        table = table.set_axis([str(name) for name in table.columns], axis=1)
        check_names(str(path), list(table.columns))
    if 0 in table.shape:
        raise ValueError(f"{path} is empty: it has {table.shape[0]} rows and {table.shape[1]} columns")
    return table


@contextmanager
def _named_damage(path: Path, kind: str) -> Iterator[None]:
    """Name the file in errors of other libraries."""
    try:
        yield
    except MemoryError as error:
        raise MemoryError(
            f"{path} does not fit into memory: {error}" if str(path) not in str(error) else str(error)
        ) from error
    except (*READING, zipfile.BadZipFile, zlib.error, lzma.LZMAError) as error:
        if str(path) in str(error) or (isinstance(error, OSError) and error.errno is not None):
            raise
        raise ValueError(f"{path} is not a valid {kind} file ({error}); it may be damaged or cut short") from error


def _unpacked(path: Path, budget: Budget) -> bytes:
    """The bytes of a file that may be compressed."""
    kind = path.suffix.lower()
    with _named_damage(path, kind):
        match kind:
            case ".gz":
                return read_within(gzip.open(path), budget)
            case ".bz2":
                return read_within(bz2.open(path), budget)
            case ".xz":
                return read_within(lzma.open(path), budget)
            case ".zst":
                import pyarrow

                return read_within(pyarrow.CompressedInputStream(str(path), "zstd"), budget)
        return read_within(open(path, "rb"), budget)


def _packing(path: Path, kind: str) -> Any:
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


def _read_array(path: Path, suffix: str, key: str | None, max_bytes: int | None) -> NDArray[Any]:
    with _named_damage(path, suffix):
        if suffix == ".npy":
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        else:
            Budget(str(path), path.stat().st_size, max_bytes).take(declared_in_zip(path))
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
                if key is None and len(archive.files) != 1:
                    raise ValueError(
                        f"{path} holds {len(archive.files)} arrays; choose one with `key`: {archive.files}"
                    )
                if key is not None and key not in archive.files:
                    raise ValueError(f"{path} has no array {key!r}; `key` must be one of {archive.files}")
                array = archive[key or archive.files[0]]
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise ValueError(
            f"{path} must hold a 2-D array (n_rows, n_columns) of numbers, got shape {array.shape} and dtype "
            f"{array.dtype}; reshape it to one row per sample"
        )
    return array


def _read_parquet(files: list[Path], budget: Budget) -> pd.DataFrame:
    import pyarrow

    tables: list[Any] = []
    for file in files:
        with _named_damage(file, "Parquet"):
            schema, batches = parquet_batches(file, budget)
            _check_schema(file, schema, budget)
            tables.append(pyarrow.Table.from_batches(batches, schema))
            if tables[-1].column_names != tables[0].column_names:
                raise ValueError(f"{file} has other columns than the files before it, or in another order")
    with _named_damage(files[0].parent, "Parquet"):
        return _as_frame(pyarrow.concat_tables(tables, promote_options="permissive"))


def _read_arrow(path: Path, budget: Budget) -> pd.DataFrame:
    import pyarrow
    from pyarrow import ipc

    with _named_damage(path, "Arrow"), pyarrow.memory_map(str(path)) as file:
        content = file.read_buffer()
        budget.check(declared_in_arrow(content))
        if content[:6].to_pybytes() == b"ARROW1":
            opened = ipc.open_file(content)
            batches = (opened.get_batch(i) for i in range(opened.num_record_batches))
        else:
            batches = opened = ipc.open_stream(content)
        _check_schema(path, opened.schema, budget)
        return _as_frame(pyarrow.Table.from_batches(batches_within(batches, budget), opened.schema))


def _check_schema(path: Path, schema: Any, budget: Budget) -> None:
    from pyarrow import types

    from neuralbayes.data.text_tables import check_names

    budget.check_columns(len(schema))
    check_names(str(path), schema.names)
    for field in schema:
        kind = getattr(field.type, "storage_type", field.type)
        if types.is_nested(kind) or (types.is_dictionary(kind) and types.is_nested(kind.value_type)):
            raise _not_single(path, field.name, field.type)


def _not_single(path: Path, name: str, kind: Any) -> ValueError:
    return ValueError(
        f"column {name!r} of {path} must hold single values, got {kind}; leave it out, or make a column of each part"
    )


def _as_frame(table: Any) -> pd.DataFrame:
    import pyarrow

    table.validate(full=True)  # offsets and text of a damaged file would otherwise be trusted
    for i, field in enumerate(table.schema):
        if field.type in (pyarrow.string_view(), pyarrow.binary_view()):  # which pandas does not take
            kind = pyarrow.large_string() if field.type == pyarrow.string_view() else pyarrow.large_binary()
            table = table.set_column(i, field.with_type(kind), table.column(i).cast(kind))
    metadata = table.schema.metadata or {}
    frame: pd.DataFrame = table.to_pandas()
    frame.attrs |= json.loads(metadata.get(b"PANDAS_ATTRS", b"{}"))  # pyarrow before 20 does not
    return frame


def _read_json(path: Path, budget: Budget) -> pd.DataFrame:
    """Read one object per line. Dates stay text, because JSON has no dates."""
    import pandas
    import pyarrow

    from neuralbayes.data.text_tables import as_series

    tables: list[Any] = []
    names: dict[str, None] = {}
    n_rows = 0
    for rows in _json_blocks(path, _unpacked(path, budget)):
        names |= dict.fromkeys(name for row in rows for name in row)
        n_rows += len(rows)
        budget.check_columns(len(names))
        budget.check(CELL_BYTES * len(names) * n_rows)
        columns = {name: _json_column(path, name, [row.get(name) for row in rows]) for name in names}
        tables.append(pyarrow.table(columns))
    try:
        table = pyarrow.concat_tables(tables, promote_options="permissive")
    except pyarrow.ArrowTypeError as error:
        raise ValueError(f"{path} has text and numbers in one column ({error}); write all as text") from error
    return pandas.DataFrame({name: as_series(table.column(name)) for name in names}, copy=False)


def _json_blocks(path: Path, content: bytes) -> Iterator[list[dict[str, Any]]]:
    """The objects, a few megabytes of text at a time."""
    rows: list[dict[str, Any]] = []
    n_bytes = 0
    for number, line in enumerate(io.BytesIO(content), 1):
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{path}: line {number} is not a JSON object ({error})") from error
            if not isinstance(row, dict):
                raise ValueError(f"{path}: line {number} must hold a JSON object, got {type(row).__name__}")
            rows.append(row)
            n_bytes += len(line)
            if n_bytes > JSON_BYTES:
                yield rows
                rows, n_bytes = [], 0
    yield rows


def _json_column(path: Path, name: str, values: list[Any]) -> Any:
    import pyarrow

    found = {type(value): value for value in values if value is not None}
    for kind in found.keys() & {list, dict}:
        raise _not_single(path, name, kind.__name__)
    try:
        if found.keys() == {int, float}:
            values = [None if value is None else float(value) for value in values]
        return pyarrow.array(values)
    except (ValueError, TypeError, OverflowError) as error:
        shown = " and ".join(repr(value)[:40] for value in found.values())
        raise ValueError(f"column {name!r} of {path} holds {shown}; write all as text, or all as numbers") from error


def _read_workbook(path: Path, sheet: str | None, as_text: Collection[str], budget: Budget) -> pd.DataFrame:
    """Read a sheet without empty rows and columns around it. Formulas have the value that Excel computed last."""
    import openpyxl
    import pandas

    from neuralbayes.data.text_tables import check_names, is_number_text

    with _named_damage(path, "Excel"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about the appearance
        budget.take(declared_in_zip(path))
        with closing(openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)) as book:
            names = {str(number): title for number, title in enumerate(book.sheetnames, 1)}
            title = book.sheetnames[0] if sheet is None else sheet if sheet in names.values() else names.get(sheet)
            if title is None:
                raise ValueError(f"{path} has no sheet {sheet!r}; `sheet` must be one of {list(names.values())[:20]}")
            book[title].reset_dimensions()
            rows: list[tuple[Any, ...]] = []
            for row in book[title].iter_rows(values_only=True):
                budget.take(CELL_BYTES * (len(row) + 1) + sum(len(value) for value in row if isinstance(value, str)))
                rows.append(row)
    used = [i for i, row in enumerate(rows) if any(value is not None for value in row)]
    if not used:
        raise ValueError(f"{path} is empty: the sheet has no cells; choose another with `sheet`")
    rows = rows[used[0] : used[-1] + 1]
    budget.check(CELL_BYTES * len(rows) * max(map(len, rows)))  # one cell may be far away
    columns = [column for column in zip_longest(*rows) if any(value is not None for value in column)]
    first = [column[0] for column in columns]
    header = not all(
        isinstance(name, int | float) or (isinstance(name, str) and is_number_text(name)) for name in first
    )
    names = [f"Unnamed: {j}" if name is None else str(name).strip() for j, name in enumerate(first)]
    names = names if header else [f"x{j}" for j in range(len(columns))]
    check_names(str(path), names)
    cells = {
        name: _sheet_column(column[header:], text=name in as_text) for name, column in zip(names, columns, strict=True)
    }
    return pandas.DataFrame(cells)


def _sheet_column(values: Sequence[Any], *, text: bool) -> pd.Series[Any]:
    """A column of numbers, booleans or dates if all of its cells are; otherwise as in a text file."""
    import pandas
    import pyarrow

    from neuralbayes.data.text_tables import MISSING, as_series, typed

    values = [None if isinstance(value, str) and value.strip() in MISSING else value for value in values]
    kinds = {type(value) for value in values if value is not None}
    if kinds and (kinds <= {int, float} or kinds == {bool}):
        return as_series(pyarrow.chunked_array([pyarrow.array(values, pyarrow.float64() if float in kinds else None)]))
    if kinds and kinds <= {datetime.datetime, datetime.date}:
        return pandas.to_datetime(pandas.Series(values))
    cells = ["" if value is None else str(value) for value in values]
    return typed(pyarrow.chunked_array([cells], pyarrow.string()), text=text or kinds != {str})


def _without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """A copy with an apostrophe before text that a spreadsheet may run."""

    def safe(cell: Any) -> Any:
        return f"'{cell}" if isinstance(cell, str) and FORMULA.match(cell) else cell

    columns = {
        i: cells if cells.dtype.kind in "iufbmMc" else cells.astype(object).map(safe)
        for i, (_, cells) in enumerate(frame.items())
    }
    import pandas

    return pandas.DataFrame(columns).set_axis([safe(str(name)) for name in frame], axis=1)


def _write_json(stream: Any, frame: pd.DataFrame) -> None:
    names = [str(name) for name in frame]
    for start in range(0, len(frame), ROWS_AT_ONCE):
        part = frame.iloc[start : start + ROWS_AT_ONCE]
        for row in part.astype(object).where(part.notna(), None).itertuples(index=False, name=None):
            line = json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, default=str)
            stream.write(f"{line}\n".encode())


def _write_workbook(path: Path, frame: pd.DataFrame) -> None:
    import pandas
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    book = Workbook(write_only=True)
    sheet = book.create_sheet("Sheet1")

    def cell(value: Any) -> Any:
        if isinstance(value, bool | int | float | np.generic) or pandas.isna(value):
            return None if pandas.isna(value) else getattr(value, "item", lambda: value)()
        if isinstance(value, datetime.datetime) and value.tzinfo is None:
            return value
        text = WriteOnlyCell(sheet, ILLEGAL_CHARACTERS_RE.sub("", str(value)))
        text.data_type = "s"  # never a formula
        return text

    sheet.append([cell(str(name)) for name in frame])
    for row in frame.astype(object).itertuples(index=False, name=None):
        sheet.append([cell(value) for value in row])
    book.save(path)
