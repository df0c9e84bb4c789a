"""The table formats: which suffix is which, and how each is read. Nothing is unpickled."""

from __future__ import annotations

import warnings
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.arrays import DAMAGE, MAX_PACKED_BYTES

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = {".csv": ",", ".tsv": "\t"}
ARRAY_SUFFIXES = frozenset({".npy", ".npz"})  # one dtype, no column names
SUFFIXES = (".csv", ".tsv", ".parquet", ".npy", ".npz")
MAX_PARQUET_RATIO = 1000  # bytes in memory by bytes of the file, above 1 GB: numbers that say something pack less well


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


def read_text(path: Path, separator: str) -> pd.DataFrame:
    """The table of a text file; columns x0, x1, ... if its first line holds numbers instead of names."""
    pandas = import_pandas()
    try:
        with warnings.catch_warnings():
            # pandas would drop the fields that no header stands above
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            first = pandas.read_csv(path, sep=separator, header=None, nrows=1, dtype=str, keep_default_na=False)
            fields = first.iloc[0].tolist()
            # DataFrames without column names are written with the header 0, 1, 2, ...
            headerless = all(map(is_number, fields)) and fields != [str(i) for i in range(len(fields))]
            names = [f"x{i}" for i in range(len(fields))] if headerless else None
            frame: pd.DataFrame = pandas.read_csv(
                path, sep=separator, header=None if headerless else 0, names=names, index_col=False, low_memory=False
            )
    except pandas.errors.EmptyDataError as error:
        raise ValueError(f"{path} is empty: it has no columns") from error
    except pandas.errors.ParserWarning as error:
        raise ValueError(f"{path} has rows with more fields than the first line has") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text ({error}); save it as UTF-8") from error
    except pandas.errors.ParserError as error:
        raise ValueError(f"{path} cannot be read as a table ({error})") from error
    if len(fields) == 1:
        other = next((mark for mark in ";\t|," if mark != separator and mark in fields[0]), None)
        if other is not None:
            raise ValueError(f"{path} seems to be separated by {other!r}; a {path.suffix} file must use {separator!r}")
    return frame


def read_parquet(path: Path) -> pd.DataFrame:
    """The table of a Parquet file, its column names as str."""
    pandas = import_pandas()
    import_pyarrow()
    try:
        _check_cells(path)
        frame: pd.DataFrame = pandas.read_parquet(path, engine="pyarrow")
        _check_text(frame)
    except Exception as error:  # whatever pyarrow and pandas stumble over in damaged contents
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise _damaged(path, "Parquet", error) from error
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def is_number(value: Any) -> bool:
    """Whether `float` takes `value`."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _check_unpacked(archive: zipfile.ZipFile, key: str) -> None:
    """Raise if an array of a few bytes unpacks to more than the memory may hold."""
    for member in archive.infolist():
        named = member.filename.removesuffix(".npy") == key
        if named and member.compress_type != zipfile.ZIP_STORED and member.file_size > MAX_PACKED_BYTES:
            raise ValueError(
                f"{key!r} unpacks to {member.file_size} bytes, more than {MAX_PACKED_BYTES}; store it by numpy.savez, "
                "which does not pack, or as .npy"
            )


def _check_cells(path: Path) -> None:
    """Raise if a Parquet file claims far more numbers than its bytes can be meant to hold."""
    import pyarrow.parquet

    metadata = pyarrow.parquet.read_metadata(path)
    n_bytes = 8 * metadata.num_rows * metadata.num_columns
    if n_bytes > max(MAX_PACKED_BYTES, MAX_PARQUET_RATIO * path.stat().st_size):
        raise ValueError(f"it claims {metadata.num_rows} rows, which unpack to {n_bytes} bytes: refused")


def _check_text(frame: pd.DataFrame) -> None:
    """Raise if text is not UTF-8, which pandas would find out when somebody looks at it."""
    import pyarrow

    for i in range(frame.shape[1]):
        values = frame.iloc[:, i].array
        if hasattr(values, "__arrow_array__"):
            pyarrow.array(values).validate(full=True)


def _object_array(path: Path) -> ValueError:
    return ValueError(f"{path} holds Python objects, which are never unpickled; save it as an array of floats")


def _damaged(path: Path, kind: str, error: Exception) -> ValueError:
    # numpy takes what it does not know for a pickle and explains how to load that, which nobody should try
    detail = "" if "allow_pickle" in str(error) else f" ({error})"
    return ValueError(f"{path} is not a valid {kind} file{detail}; it may be damaged or cut short")
