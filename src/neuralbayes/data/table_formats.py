"""The table formats: which suffix is which, and how each is read. Nothing is unpickled."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.arrays import DAMAGE
from neuralbayes.data.parquet import RefusedError, read_frame
from neuralbayes.system.bounds import MAX_PACKED_BYTES

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = {".csv": ",", ".tsv": "\t"}
ARRAY_SUFFIXES = frozenset({".npy", ".npz"})  # one dtype, no column names
SUFFIXES = (".csv", ".tsv", ".parquet", ".npy", ".npz")


def table_suffix(path: str | Path) -> str:
    """The lower-case suffix of `path`; a ValueError lists the known ones if it is not one of them."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"{path} must end in one of {', '.join(SUFFIXES)}, got {suffix or 'no suffix'!r}")
    return suffix


def check_format(path: str | Path) -> None:
    """Raise unless the suffix of `path` is a known one and what its format needs is installed."""
    suffix = table_suffix(path)
    if suffix not in ARRAY_SUFFIXES:
        import_pandas()
    if suffix == ".parquet":
        import_pyarrow()


def import_pandas() -> Any:
    """The pandas module, or an ImportError that says how to install it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("tables with column names need pandas: pip install 'neuralbayes[table]'") from error
    return pandas


def import_pyarrow() -> None:
    """Raise an ImportError that says how to install pyarrow, if it is missing."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install 'neuralbayes[table]'") from error


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
    if not isinstance(array, np.ndarray):  # numpy looks at the contents, not at the suffix
        array.close()
        raise ValueError(f"{path} is a NPZ archive; name it .npz")
    return array


def read_npz(path: Path, key: str | None) -> NDArray[Any]:
    """The array `key` of a .npz file, or its only one."""
    try:
        with open(path, "rb") as file:  # by name, numpy leaves a damaged file open
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


def read_parquet(path: Path) -> pd.DataFrame:
    """The table of a Parquet file, its column names as str."""
    import_pandas()
    import_pyarrow()
    with parquet_errors(path):
        frame = read_frame(path)
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


@contextmanager
def parquet_errors(path: Path) -> Iterator[None]:
    """Let whatever pyarrow and pandas stumble over in damaged contents say that the file is damaged."""
    try:
        yield
    except RefusedError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise _damaged(path, "Parquet", error) from error


def _check_unpacked(archive: zipfile.ZipFile, key: str) -> None:
    """Raise if an array of a few bytes unpacks to more than the memory may hold."""
    for member in archive.infolist():
        named = member.filename.removesuffix(".npy") == key
        if named and member.compress_type != zipfile.ZIP_STORED and member.file_size > MAX_PACKED_BYTES:
            raise ValueError(
                f"{key!r} unpacks to {member.file_size} bytes, more than {MAX_PACKED_BYTES}; store it by numpy.savez, "
                "which does not pack, or as .npy"
            )


def _object_array(path: Path) -> ValueError:
    return ValueError(f"{path} holds Python objects, which are never unpickled; save it as an array of floats")


def _damaged(path: Path, kind: str, error: Exception) -> ValueError:
    # numpy takes what it does not know for a pickle and explains how to load that, which nobody should try
    detail = "" if "allow_pickle" in str(error) else f" ({error})"
    return ValueError(f"{path} is not a valid {kind} file{detail}; it may be damaged or cut short")
