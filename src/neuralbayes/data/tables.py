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
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import NDArray

from neuralbayes.data.arrays import array_shapes, named_damage, open_array
from neuralbayes.data.bounds import (
    BLOCK_BYTES,
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

TEXT = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
JSON, ARROW, ARRAYS = (".jsonl", ".ndjson"), (".arrow", ".feather"), (".npy", ".npz")
SUFFIXES = (*TEXT, *JSON, ".parquet", *ARROW, ".xlsx", *ARRAYS)
PACKED = (".gz", ".bz2", ".xz", ".zst")

# Text that a spreadsheet may run as a formula; not numbers, telephone numbers or a sign alone. In Japan, signs may have
# full width; where numbers have a decimal comma, a cell of a CSV file ends at a semicolon.
START, LATER = (
    rf"[=@\uff1d\uff20]|[+\uff0b](?={any_}*[^\d\s().,/;-])|[-\uff0d](?={any_}*[(|!])" for any_ in (".", "[^;]")
)
FORMULA = re.compile(rf"^(?=[\x00-\x1f]|{START})|(?<=;)(?={LATER})", re.DOTALL)


def read_table(
    path: str | Path,
    *,
    key: str | None = None,
    sheet: str | None = None,
    sep: str | None = None,
    decimal: Literal[".", ","] | None = None,
    encoding: str | None = None,
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
        If the table would take more than half of the free memory, or more than 1 GiB and a hundred times the size of
        the file, so that a small file cannot unpack to anything.
    """
    standard = str(path) == "-"
    path = Path("standard input" if standard else path)
    if path.is_dir() and not is_table(path):
        raise IsADirectoryError(f"{path} is a folder, not a file of a table or a folder of .parquet files")
    files = parquet_files(path)
    suffix = ".csv" if standard else table_suffix(files[0])
    given = {"key": key, "sheet": sheet, "sep": sep, "decimal": decimal, "encoding": encoding}
    for name, value in given.items():
        kinds = {"key": (".npz",), "sheet": (".xlsx",)}.get(name, tuple(TEXT))
        if value is not None and suffix not in kinds:
            raise ValueError(f"`{name}` is for {' and '.join(kinds)} files, but {path} is a {suffix} file")
    if decimal not in (None, ".", ","):
        raise ValueError(f"`decimal` must be . or a comma, got {decimal!r}")
    sizes = {} if standard else {file: file.stat().st_size for file in files}
    for file, size in sizes.items():
        if not size:
            raise ValueError(f"{file} is empty")
    budget = Budget(str(path), 0 if suffix == ".npy" else sum(sizes.values()))
    if suffix in TEXT:
        from neuralbayes.data.text_tables import read_text

        content = read_within(sys.stdin.buffer, budget) if standard else _unpacked(path, budget)
        table: Any = read_text(content, str(path), TEXT[suffix], budget, sep=sep, decimal=decimal, encoding=encoding)
    elif suffix in JSON:
        table = _read_json(path, budget)
    elif suffix == ".xlsx":
        table = _read_workbook(path, sheet, budget)
    elif suffix in ARRAYS:
        table = _read_array(path, key, budget)
    else:
        table = _read_arrow(path, budget) if suffix in ARROW else _read_parquet(files, budget)
    if 0 in table.shape:
        raise ValueError(f"{path} is empty: it has {table.shape[0]} rows and {table.shape[1]} columns")
    return table  # type: ignore[no-any-return]


def write_table(path: str | Path, frame: pd.DataFrame) -> None:
    """Write a data frame, atomically, in the format that the suffix of `path` names.

    Text that a spreadsheet would run as a formula gets an apostrophe in .csv, .tsv and .txt files, and is marked as
    text in .xlsx files. The index is written if it has a name or holds more than whole numbers.

    """
    import pandas

    path, suffix = Path(path), table_suffix(path)
    if suffix in ARRAYS:
        kinds = ", ".join(suffix for suffix in SUFFIXES if suffix not in ARRAYS)
        raise ValueError(f"`path` must end in one of {kinds}, which have names of columns, got {str(path)!r}")
    indexed = frame.index.nlevels > 1 or frame.index.name is not None or frame.index.dtype.kind not in "iu"
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    with atomic_write(path) as temporary:
        if suffix == ".parquet":
            frame.to_parquet(temporary, engine="pyarrow", index=indexed)
            return
        frame = frame.reset_index(drop=not indexed)
        if suffix in ARROW:
            frame.to_feather(temporary)
        elif suffix == ".xlsx":
            with pandas.ExcelWriter(temporary, engine="openpyxl") as writer:
                frame.to_excel(writer, index=False)
                for row in writer.sheets["Sheet1"].iter_rows():
                    for cell in row:
                        cell.data_type = "s" if cell.data_type == "f" else cell.data_type
        else:
            with closing(_stream(temporary, path.suffix.lower(), "wb")) as stream:
                if suffix in JSON:
                    _write_json(stream, frame)
                else:
                    safe = _without_formulas(frame)
                    safe.to_csv(stream, sep=TEXT[suffix], index=False, lineterminator="\n", mode="wb")


def is_table(path: str | Path) -> bool:
    """Whether `path` is a file with the suffix of a table, or a folder of Parquet files."""
    path = Path(path)
    name = path.with_suffix("") if path.suffix.lower() in PACKED else path
    return parquet_files(path) != [path] if path.is_dir() else path.is_file() and name.suffix.lower() in SUFFIXES


def parquet_files(path: str | Path) -> list[Path]:
    """The Parquet files of a folder, without hidden ones, by name; `path` itself if it is a file or has none."""
    path = Path(path)
    return sorted(file for file in path.glob("*.parquet") if file.name[0] not in "._") or [path]


def table_suffix(path: str | Path) -> str:
    """The lower-case suffix of `path` that names a table format, without a compression suffix."""
    path = Path(path)
    packing = path.suffix.lower() if path.suffix.lower() in PACKED else ""
    suffix = (path.with_suffix("") if packing else path).suffix.lower()
    if suffix not in SUFFIXES or (packing and suffix not in (*TEXT, *JSON)):
        raise ValueError(
            f"{path} must end in one of {', '.join(SUFFIXES)}, or for compressed text in one of these and then in "
            f"{', '.join(PACKED)}, got {suffix + packing or 'no suffix'!r}"
        )
    return suffix


def _stream(path: Path, kind: str, mode: Literal["rb", "wb"]) -> Any:
    """A binary stream that is compressed if `kind` is the suffix of a compression."""
    if kind == ".zst":
        import pyarrow

        stream = pyarrow.CompressedInputStream if mode == "rb" else pyarrow.CompressedOutputStream
        return stream(str(path), "zstd")
    opened: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(kind, open)
    return opened(path, mode)


def _unpacked(path: Path, budget: Budget) -> bytes:
    kind = path.suffix.lower()
    with named_damage(path, kind), closing(_stream(path, kind, "rb")) as stream:
        return read_within(stream, budget)


def _read_array(path: Path, key: str | None, budget: Budget) -> NDArray[Any]:
    if path.suffix.lower() == ".npz":
        with named_damage(path, path.suffix):
            budget.check(declared_in_zip(path))
    names = list(array_shapes(path))
    if key not in names and (key is not None or len(names) != 1):
        raise ValueError(f"`key` must be one of {', '.join(map(repr, names))}, the arrays of {path}")
    array = open_array(path, names[0] if key is None else key)
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
        with named_damage(file, "Parquet"):
            schema, batches = parquet_batches(file, budget)
            tables.append(pyarrow.Table.from_batches(batches, schema))
        if tables[-1].column_names != tables[0].column_names:
            raise ValueError(f"{file} has other columns than the files before it, or in another order")
    with named_damage(files[0], "Parquet"):
        return _as_frame(pyarrow.concat_tables(tables, promote_options="permissive"))


def _read_arrow(path: Path, budget: Budget) -> pd.DataFrame:
    import pyarrow
    from pyarrow import ipc

    with named_damage(path, "Arrow"), pyarrow.memory_map(str(path)) as file:
        content = file.read_buffer()
        budget.check(declared_in_arrow(content))
        whole = content[:6].to_pybytes() == b"ARROW1"  # otherwise a stream
        reader = ipc.open_file(content) if whole else ipc.open_stream(content)
        budget.check_schema(reader.schema)
        batches = map(reader.get_batch, range(reader.num_record_batches)) if whole else reader
        return _as_frame(pyarrow.Table.from_batches(batches_within(batches, budget), reader.schema))


def _as_frame(table: Any) -> pd.DataFrame:
    import pyarrow

    table.validate(full=True)  # offsets and text of a damaged file would otherwise be trusted
    for i, field in enumerate(table.schema):
        if field.type in (pyarrow.string_view(), pyarrow.binary_view()):  # which pandas does not take
            kind = pyarrow.large_string() if field.type == pyarrow.string_view() else pyarrow.large_binary()
            table = table.set_column(i, field.with_type(kind), table.column(i).cast(kind))
    frame: pd.DataFrame = table.to_pandas()
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def _read_json(path: Path, budget: Budget) -> pd.DataFrame:
    """Read one object per line. Dates stay text, because JSON has no dates."""
    import pandas
    import pyarrow

    from neuralbayes.data.cell_types import as_series

    tables: list[Any] = []
    names: dict[str, None] = {}
    n_rows = 0
    for rows in _json_blocks(path, _unpacked(path, budget)):
        names |= dict.fromkeys(name for row in rows for name in row)
        n_rows += len(rows)
        budget.check_names(list(names))
        budget.check(CELL_BYTES * len(names) * n_rows)
        columns = {name: _json_column(path, name, [row.get(name) for row in rows]) for name in names}
        tables.append(pyarrow.table(columns))
    try:
        table = pyarrow.concat_tables(tables, promote_options="permissive")
    except pyarrow.ArrowTypeError as error:
        raise ValueError(f"{path} holds text and numbers in one column ({error}); write all as text") from error
    return pandas.DataFrame({name: as_series(table.column(name)) for name in names}, copy=False)


def _json_blocks(path: Path, content: bytes) -> Iterator[list[dict[str, Any]]]:
    """The objects, some of the text at a time."""
    rows: list[dict[str, Any]] = []
    n_bytes = 0
    for number, line in enumerate(io.BytesIO(content), 1):
        try:
            row = json.loads(line) if line.strip() else {}
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}: line {number} is not a JSON object ({error})") from error
        if not isinstance(row, dict):
            raise ValueError(f"{path}: line {number} must hold a JSON object, got {type(row).__name__}")
        rows += [row] if line.strip() else []
        n_bytes += len(line)
        if n_bytes > BLOCK_BYTES:
            yield rows
            rows, n_bytes = [], 0
    yield rows


def _json_column(path: Path, name: str, values: list[Any]) -> Any:
    import pyarrow

    found = {type(value): value for value in values if value is not None}
    try:
        if found.keys() & {list, dict}:
            raise ValueError
        if found.keys() == {int, float}:
            values = [None if value is None else float(value) for value in values]
        return pyarrow.array(values)
    except (ValueError, TypeError, OverflowError) as error:
        shown = " and ".join(repr(value)[:40] for value in found.values())
        raise ValueError(
            f"column {name!r} of {path} must hold single values of one kind, got {shown}; leave it out, or write all "
            "of them as text"
        ) from error


def _read_workbook(path: Path, sheet: str | None, budget: Budget) -> pd.DataFrame:
    """Read a sheet without empty rows and columns around it. Formulas have the value that Excel computed last."""
    import openpyxl
    import pandas

    from neuralbayes.data.text_tables import is_data

    rows: list[tuple[Any, ...]] = []
    with named_damage(path, "Excel"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about the appearance
        budget.take(declared_in_zip(path))
        with closing(openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)) as book:
            titles = {str(number): title for number, title in enumerate(book.sheetnames, 1)}
            title = titles["1"] if sheet is None else sheet if sheet in book.sheetnames else titles.get(sheet)
            if title is None:
                raise ValueError(
                    f"`sheet` must be one of {', '.join(map(repr, titles.values()))} in {path}, got {sheet!r}"
                )
            book[title].reset_dimensions()
            for row in book[title].iter_rows(values_only=True):
                budget.take(CELL_BYTES * (len(row) + 1) + sum(len(cell) for cell in row if isinstance(cell, str)))
                rows.append(row)
    used = [i for i, row in enumerate(rows) if any(cell is not None for cell in row)]
    if not used:
        raise ValueError(f"{path} is empty: the sheet has no cells; choose another with `sheet`")
    rows = rows[used[0] : used[-1] + 1]
    budget.check(CELL_BYTES * len(rows) * max(map(len, rows)))  # one cell may be far away
    columns = [column for column in zip_longest(*rows) if any(cell is not None for cell in column)]
    first = ["" if column[0] is None else str(column[0]).strip() for column in columns]
    header = not is_data(first)
    names = [name or f"Unnamed: {j}" if header else f"x{j}" for j, name in enumerate(first)]
    budget.check_names(names)
    return pandas.DataFrame({name: _sheet_column(column[header:]) for name, column in zip(names, columns, strict=True)})


def _sheet_column(values: Sequence[Any]) -> pd.Series[Any]:
    """A column of numbers, booleans or dates if all of its cells are; otherwise as in a text file."""
    import pandas
    import pyarrow

    from neuralbayes.data.cell_types import MISSING, as_series, typed

    values = [None if isinstance(value, str) and value.strip() in MISSING else value for value in values]
    kinds = {type(value) for value in values if value is not None}
    if kinds and (kinds <= {int, float} or kinds == {bool}):
        return as_series(pyarrow.chunked_array([pyarrow.array(values, pyarrow.float64() if float in kinds else None)]))
    if kinds and kinds <= {datetime.datetime, datetime.date}:
        return pandas.to_datetime(pandas.Series(values))
    cells = [None if value is None else str(value) for value in values]
    return typed(pyarrow.chunked_array([cells], pyarrow.string()), text=kinds != {str})


def _without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with an apostrophe before names and text that a spreadsheet may run."""

    def safe(cell: Any) -> Any:
        return FORMULA.sub("'", cell) if isinstance(cell, str) else cell

    frame = frame.set_axis([safe(name) for name in frame.columns], axis=1)
    for i, dtype in enumerate(frame.dtypes):
        if dtype.kind not in "iufbmMc":
            frame.isetitem(i, frame.iloc[:, i].astype(object).map(safe).to_numpy())
    return frame


def _write_json(stream: Any, frame: pd.DataFrame) -> None:
    for start in range(0, len(frame), 2**16):
        part = frame.iloc[start : start + 2**16]
        for row in part.astype(object).where(part.notna(), None).itertuples(index=False, name=None):
            line = json.dumps(dict(zip(part.columns, row, strict=True)), ensure_ascii=False, default=str)
            stream.write(f"{line}\n".encode())
