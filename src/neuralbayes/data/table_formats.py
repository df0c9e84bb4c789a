"""Table formats: suffixes and readers. Nothing is unpickled."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.arrays import DAMAGE
from neuralbayes.data.packed import PACKED, packing
from neuralbayes.data.parquet import RefusedError
from neuralbayes.system.bounds import MAX_PACKED_BYTES

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
JSON_SUFFIXES = frozenset({".jsonl", ".ndjson"})
ARROW_SUFFIXES = frozenset({".arrow", ".feather"})
ARRAY_SUFFIXES = frozenset({".npy", ".npz"})  # one dtype, no column names
SUFFIXES = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".parquet", ".arrow", ".feather", ".xlsx", ".npy", ".npz")

MAGIC = {
    b"PAR1": ("a Parquet file", ".parquet"),
    b"ARROW1": ("an Arrow file", ".arrow"),
    b"\x93NUMPY": ("a NumPy array", ".npy"),
    b"PK\x03\x04": ("an archive, such as an Excel file", ".xlsx"),
    b"\x1f\x8b": ("a packed file", ".gz"),
    b"\x28\xb5\x2f\xfd": ("a packed file", ".zst"),
    b"BZh91AY&SY": ("a packed file", ".bz2"),
    b"\xfd7zXZ\0": ("a packed file", ".xz"),
    b"\xd0\xcf\x11\xe0": ("an old or encrypted Excel file", ""),
    b"%PDF-": ("a PDF document", ""),
    b"SQLite format 3\0": ("a database", ""),
}
"""Magic bytes of formats, with their names and suffixes."""


def table_suffix(path: str | Path) -> str:
    """The lower-case suffix of `path` that names a table format, without a compression suffix.

    Examples
    --------
    >>> table_suffix("rows.CSV"), table_suffix("rows.tsv.gz")
    ('.csv', '.tsv')
    """
    path = Path(path)
    kind = packing(path)
    suffix = (path.with_suffix("") if kind else path).suffix.lower()
    if suffix not in SUFFIXES:
        got = f"{suffix}{kind}" or "no suffix"
        raise ValueError(
            f"{path} must end in one of {', '.join(SUFFIXES)}, and after that, for compressed text, in one of "
            f"{', '.join(PACKED)}, got {got!r}"
        )
    if kind and suffix not in SEPARATORS and suffix not in JSON_SUFFIXES:
        raise ValueError(f"{path} is compressed twice; unpack it, because only text may end in {kind}")
    return suffix


def unpacked_name(path: Path) -> Path:
    """`path` without a compression suffix.

    Examples
    --------
    >>> unpacked_name(Path("rows.csv.gz")).name
    'rows.csv'
    """
    return path.with_suffix("") if packing(path) else path


def check_format(path: str | Path) -> None:
    """Raise unless the suffix of `path` is known."""
    table_suffix(path)


def check_contents(path: Path) -> None:
    """Raise if the magic bytes of a file contradict its suffix."""
    suffix = packing(path) or table_suffix(path)
    found = contents(path)
    if found is None or suffix in ARRAY_SUFFIXES:
        return
    what, right = found
    if right == suffix or (right in ARROW_SUFFIXES and suffix in ARROW_SUFFIXES):
        return
    if right in PACKED:
        right = f"{table_suffix(path)}{right}"
    raise ValueError(f"{path} is {what}; " + (f"name it {right}" if right else "save it as .xlsx, .csv or .parquet"))


def contents(path: Path) -> tuple[str, str] | None:
    """The format and suffix of a file by its magic bytes; None if unknown."""
    with open(path, "rb") as file:
        head = file.read(16)
    return next((found for magic, found in MAGIC.items() if head.startswith(magic)), None)


def import_pandas() -> Any:
    """The pandas module, imported on first use, which takes most of a second."""
    import pandas

    return pandas


def read_npy(path: Path) -> NDArray[Any]:
    """The array of a .npy file, memory-mapped."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError:
        raise
    except DAMAGE as error:
        if "Python objects in dtype" in str(error):
            raise _object_array(path) from error
        raise _damaged(path, "NPY", error) from error
    if not isinstance(array, np.ndarray):  # NumPy looks at the contents, not at the suffix
        array.close()
        raise ValueError(f"{path} is a NPZ archive; name it .npz")
    return array


def read_npz(path: Path, key: str | None) -> NDArray[Any]:
    """The array `key` of a .npz file, or its only one."""
    try:
        with open(path, "rb") as file:  # with a name, NumPy leaves a damaged file open
            archive = np.load(file, allow_pickle=False)
            if isinstance(archive, np.ndarray):
                raise ValueError("it is a NPY file; name it .npy")
            names = archive.files
            if key is None and len(names) == 1:
                key = names[0]
            if key is not None and key in names:
                _check_unpacked(archive.zip, key)
                return np.asarray(archive[key])
    except DAMAGE as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        if "Object arrays" in str(error):
            raise _object_array(path) from error
        raise _damaged(path, "NPZ", error) from error
    if not names:
        raise ValueError(f"{path} holds no array")
    choices = ", ".join(map(repr, names))
    if key is None:
        raise ValueError(f"{path} holds {len(names)} arrays; choose one with `key`: {choices}")
    raise ValueError(f"{path} has no array {key!r}; `key` must be one of {choices}")


@contextmanager
def arrow_errors(path: Path, kind: str = "Parquet") -> Iterator[None]:
    """Report errors of pyarrow and pandas as damaged files."""
    try:
        yield
    except RefusedError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise _damaged(path, kind, error) from error


def _check_unpacked(archive: zipfile.ZipFile, key: str) -> None:
    """Raise if a small array unpacks to more than the limit."""
    for member in archive.infolist():
        named = member.filename.removesuffix(".npy") == key
        if named and member.compress_type != zipfile.ZIP_STORED and member.file_size > MAX_PACKED_BYTES:
            raise ValueError(
                f"{key!r} unpacks to {member.file_size} bytes, more than {MAX_PACKED_BYTES}; store it with "
                "numpy.savez, which does not compress, or as .npy"
            )


def _object_array(path: Path) -> ValueError:
    return ValueError(f"{path} holds Python objects, which are never unpickled; save it as an array of floats")


def _damaged(path: Path, kind: str, error: Exception) -> ValueError:
    # NumPy takes unknown files for pickles and explains how to load these, which is unsafe
    detail = "" if "allow_pickle" in str(error) else f" ({error})"
    return ValueError(f"{path} is not a valid {kind} file{detail}; it may be damaged or cut short")
