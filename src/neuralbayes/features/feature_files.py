"""Write features of images to Parquet, CSV or NPY, with the file name and class of each image."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy
from numpy.typing import NDArray
from pyarrow import csv, parquet

from neuralbayes.data.images import ImageSource, as_source
from neuralbayes.data.progress import late_bar
from neuralbayes.data.sources import subset
from neuralbayes.data.written import CLASS, FEATURE, INDEX, LABEL, PATH, parquet_metadata
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.system.files import atomic_write

SUFFIXES = (".parquet", ".csv", ".npy")


def write_features(
    encoder: ImageEncoder,
    images: ImageSource | NDArray[np.generic],
    path: str | Path,
    *,
    state: str = "relu4",
    labels: NDArray[np.int64] | None = None,
    class_names: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    block_size: int = 4000,
    verbose: bool = False,
) -> tuple[int, int]:
    """Write the features of all images to a file, in order. The file is complete or is not there.

    Parameters
    ----------
    encoder : ImageEncoder
    images : Images, ImageSource or ndarray of shape (n, H, W), (n, H, W, C) or (n, C, H, W)
    path : path
        ``.parquet`` and ``.csv`` have the columns "index", "path" if there are names, "label" if there are labels,
        "class" if labels have names, and the features "f_0", "f_1", ..., the only ones that count when the file is
        clustered. ``.npy`` is an array (n_images, n_features) of float32; names and labels then go to a CSV file next
        to it, such as ``features-rows.csv`` for ``features.npy``.
    state : str, default="relu4"
    labels : ndarray of shape (n_images,), optional
    class_names : sequence of str, optional
        Names of the classes by number.
    names : sequence of str, optional
        Names of the images, for example their files.
    block_size : int, default=4000
        Number of images in memory at a time.
    verbose : bool, default=False

    Returns
    -------
    n_images, n_features : int

    Examples
    --------
    >>> import neuralbayes as nb
    >>> images = nb.datasets.load("digits").train.images[:40].repeat(3, axis=1).repeat(3, axis=2)  # of 24x24 pixels
    >>> config = nb.PretrainConfig(encoder="tiny", epochs=1, batch_size=20, microbatch_size=20)
    >>> nb.write_features(nb.pretrain(images, config), images, "features.npy")
    (40, 80)
    >>> np.load("features.npy", mmap_mode="r").dtype
    dtype('float32')
    """
    check_features_path(path)
    path, source = Path(path), as_source(images)
    beside: dict[str, Any] = {INDEX: np.arange(len(source))}
    beside |= {} if names is None else {PATH: pa.array(names, pa.string())}
    beside |= {} if labels is None else {LABEL: labels}
    if labels is not None and class_names is not None:
        beside[CLASS] = pa.array([class_names[k] for k in labels], pa.string())
    blocks = _blocks(encoder, source, state, block_size, verbose)
    with atomic_write(path) as temporary:
        first = next(blocks)
        if path.suffix.lower() == ".npy":
            _write_array(temporary, chain([first], blocks), (len(source), first.shape[1]))
            if len(beside) > 1:
                with atomic_write(rows_file(path)) as rows:
                    csv.write_csv(pa.table(beside), rows)
        else:
            _write_tables(temporary, chain([first], blocks), beside)
    return len(source), first.shape[1]


def rows_file(path: str | Path) -> Path:
    """Path of the names and classes of a .npy file.

    Examples
    --------
    >>> rows_file("features.npy").name
    'features-rows.csv'
    """
    return Path(path).with_name(f"{Path(path).stem}-rows.csv")


def check_features_path(path: str | Path) -> None:
    """Raise unless `path` ends in .parquet, .csv or .npy."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise ValueError(f"`path` must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, got {str(path)!r}")


def _blocks(
    encoder: ImageEncoder, source: ImageSource, state: str, block_size: int, verbose: bool
) -> Iterator[NDArray[np.float32]]:
    with late_bar("images", len(source), enabled=verbose) as advance:
        for start in range(0, len(source), block_size):
            rows = np.arange(start, min(start + block_size, len(source)))
            yield encoder.features(subset(source, rows), state)
            advance(len(rows))


def _write_tables(path: Path, blocks: Iterable[NDArray[np.float32]], beside: dict[str, Any]) -> None:
    writer: Any = None
    start = 0
    for features in blocks:
        columns = {name: values[start : start + len(features)] for name, values in beside.items()}
        columns |= {f"{FEATURE}_{i}": column for i, column in enumerate(np.ascontiguousarray(features.T))}
        table = pa.table(columns, metadata=parquet_metadata("embed", beside))
        if writer is None and path.suffix.lower() == ".csv":
            writer = csv.CSVWriter(path, table.schema)
        elif writer is None:
            writer = parquet.ParquetWriter(path, table.schema, use_dictionary=False)  # features rarely repeat
        writer.write_table(table)
        start += len(features)
    writer.close()


def _write_array(path: Path, blocks: Iterable[NDArray[np.float32]], shape: tuple[int, int]) -> None:
    """Header and rows one after the other: on a full disk, a memory map would end in SIGBUS."""
    with open(path, "wb") as file:
        npy.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
        for features in blocks:
            file.write(np.ascontiguousarray(features, "<f4").data)
