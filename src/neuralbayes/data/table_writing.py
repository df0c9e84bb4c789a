"""Write tables: new columns next to the unchanged columns of the input."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.json_lines import write_json_lines
from neuralbayes.data.packed import packing, packing_writer
from neuralbayes.data.table_formats import (
    ARRAY_SUFFIXES,
    ARROW_SUFFIXES,
    JSON_SUFFIXES,
    SEPARATORS,
    check_format,
    import_pandas,
    table_suffix,
)
from neuralbayes.data.text_tables import ROWS_AT_ONCE, TextFile
from neuralbayes.data.workbooks import write_workbook
from neuralbayes.data.written import marked
from neuralbayes.system.files import atomic_write

if TYPE_CHECKING:
    import pandas as pd

    from neuralbayes.data.table_sources import Original, TableSource


def write_table(
    path: str | Path, columns: Mapping[str, NDArray[Any]], *, beside: TableSource | None = None
) -> list[str]:
    """Write arrays as a table, atomically. The suffix of `path` determines the format.

    Parameters
    ----------
    path : path
        One of the formats that :func:`neuralbayes.data.tables.read_table` reads.
    columns : mapping of names to arrays of shape (n_rows,) or (n_rows, n)
        A two-dimensional array ``p`` becomes the columns p_0, p_1, ... In NPZ, each array keeps its name; NPY contains
        a single array.
    beside : TableSource, optional
        Its columns come first, except in NPY and NPZ. Text files of the same kind, JSON lines and the cells of a
        workbook are kept byte for byte, including separator, quotes, line endings and encoding. If a new name is taken,
        all new names get the same number at the end: label_1, p_0_1, p_1_1.

    Returns
    -------
    list of str
        Final names of the new columns; empty for NPY, which has no names.
    """
    suffix, path = table_suffix(path), Path(path)
    if suffix == ".npy" and len(columns) != 1:
        raise ValueError(f"a .npy file holds one array, got {len(columns)} for {path}; a .npz file holds several")
    if suffix in ARRAY_SUFFIXES:
        return _write_arrays(path, suffix, columns)
    check_format(path)
    frame, names = _joined(beside, columns)
    original = None if beside is None or beside.original is None or beside.original.changed() else beside.original
    with atomic_write(path) as temporary:
        alike = original is not None and _is_alike(original, suffix)
        if original is not None and alike and original.write_beside(temporary, packing(path), frame[names]):
            return names
        if isinstance(original, TextFile) and suffix in SEPARATORS:
            own = original.cells().to_pandas()  # unchanged, with another separator
            frame = import_pandas().concat([own, frame[names]], axis=1)
        _write_frame(temporary, suffix, packing(path), frame)
    return names


def free_names(taken: Iterable[str], names: Iterable[str]) -> list[str]:
    """New names for columns. If one is taken, all get the same number at the end.

    Examples
    --------
    >>> free_names(["label", "a"], ["label", "p_0"])
    ['label_1', 'p_0_1']
    """
    own, new, number = set(taken), list(names), 0
    while own & {f"{name}_{number}" if number else name for name in new}:
        number += 1
    return [f"{name}_{number}" if number else name for name in new]


def _write_arrays(path: Path, suffix: str, columns: Mapping[str, NDArray[Any]]) -> list[str]:
    with atomic_write(path) as temporary, open(temporary, "wb") as file:
        if suffix == ".npy":
            np.save(file, next(iter(columns.values())), allow_pickle=False)
            return []
        for name, array in columns.items():  # NumPy before 2.2 takes `allow_pickle` for the name of an array
            if array.dtype.hasobject:
                raise ValueError(f"`columns` must not hold Python objects, which would be pickled, got {name!r}")
        np.savez(file, **columns)  # type: ignore[arg-type]
        return list(columns)


def _is_alike(original: Original, suffix: str) -> bool:
    """Whether the rows of a file can be copied unchanged to a file with this suffix."""
    own = table_suffix(original.path)
    if isinstance(original, TextFile):
        # A .csv file may have any separator, a .tsv file should have tabs.
        return suffix == own or (suffix in SEPARATORS and SEPARATORS[suffix] == original.dialect.separator)
    return suffix == own or (suffix in JSON_SUFFIXES and own in JSON_SUFFIXES)


def _write_frame(path: Path, suffix: str, kind: str, frame: pd.DataFrame) -> None:
    if suffix == ".parquet":
        frame.to_parquet(path, engine="pyarrow")
        return
    # Keep the index of a Parquet file, which may be more than the row number.
    plain = isinstance(frame.index, import_pandas().RangeIndex)
    if suffix in SEPARATORS:
        with packing_writer(path, kind) as file:
            for start in range(0, max(1, len(frame)), ROWS_AT_ONCE):
                block = frame.iloc[start : start + ROWS_AT_ONCE]
                text = block.to_csv(
                    None, sep=SEPARATORS[suffix], index=not plain, header=start == 0, lineterminator="\n"
                )
                file.write(text.encode())
        return
    frame = frame if plain else frame.reset_index()
    if suffix in JSON_SUFFIXES:
        write_json_lines(path, kind, frame)
    elif suffix in ARROW_SUFFIXES:
        frame.to_feather(path)
    else:
        write_workbook(path, frame)


def _joined(beside: TableSource | None, columns: Mapping[str, NDArray[Any]]) -> tuple[pd.DataFrame, list[str]]:
    """The columns of `beside` followed by the new ones, and the final names of the latter."""
    pandas = import_pandas()
    own = None if beside is None else beside.frame
    new: dict[str, NDArray[Any]] = {}
    for name, values in columns.items():
        new |= {f"{name}_{k}": values[:, k] for k in range(values.shape[1])} if values.ndim == 2 else {name: values}
    if own is None:
        return pandas.DataFrame(new), list(new)
    names = free_names(own.columns, new)
    added = pandas.DataFrame(dict(zip(names, new.values(), strict=True)), index=own.index)
    joined = pandas.concat([own, added], axis=1)
    joined.attrs = marked(own.attrs, "label", names)
    return joined, names
