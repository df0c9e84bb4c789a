"""Write features of images to Parquet, CSV or NPY, with the file name and class of each image."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from neuralbayes.data.sources import ImageSource, SubsetSource
from neuralbayes.data.written import CLASS, FEATURE, INDEX, LABEL, PATH, parquet_metadata
from neuralbayes.distributed.blocks import cut
from neuralbayes.features.encoder import MAX_FEATURES, ImageEncoder
from neuralbayes.system.devices import torch_device, working_copy
from neuralbayes.system.files import atomic_write
from neuralbayes.training.progress import progress

BLOCK = 1000  # images in memory at a time; whole batches, so that results do not depend on the split
GROUP_BYTES = 2**26  # size of a Parquet row group: the writer keeps metadata of each in memory
SUFFIXES = (".parquet", ".csv", ".npy")

Beside = Mapping[str, Any]
"""Additional columns by name: the names of images and their classes."""


def write_features(
    encoder: ImageEncoder,
    source: ImageSource,
    path: str | Path,
    *,
    state: str = "relu4",
    labels: NDArray[np.int64] | None = None,
    class_names: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    verbose: bool = False,
    features: Iterable[NDArray[np.float32]] | None = None,
) -> tuple[int, int]:
    """Write the features of all images to a file, in pieces and in order.

    Parameters
    ----------
    encoder : ImageEncoder
    source : ImageSource
    path : path
        ``.parquet`` and ``.csv`` have the columns "index", "path" if there are names, "label" if there are labels,
        "class" if labels have names, and the features "f_0", "f_1", ..., which are the only columns that ``neuralbayes
        label`` uses. ``.npy`` is an array (n_images, n_features) of float32; names and labels then go to a CSV file
        next to it, such as ``features-rows.csv`` for ``features.npy``.
    state : str, default="relu4"
    labels : ndarray of shape (n_images,), optional
    class_names : sequence of str, optional
        Names of the classes by number.
    names : sequence of str, optional
        Names of the images, for example their files.
    verbose : bool, default=False
    features : iterable of ndarrays of shape (n, n_features), optional
        The features of all images, in order, if they were computed before, for example by the workers of ``neuralbayes
        embed``. By default they are computed on the device of the encoder.

    Returns
    -------
    n_images, n_features : int

    Examples
    --------
    >>> import neuralbayes as nb
    >>> from neuralbayes.data.sources import ArraySource
    >>> images = nb.datasets.load("digits").train.images[:40].repeat(3, axis=1).repeat(3, axis=2)  # of 24x24 pixels
    >>> encoder = nb.baselines.random(images, nb.baselines.RandomConfig(encoder="tiny"))  # or nb.pretrain
    >>> nb.write_features(encoder, ArraySource(images), "features.npy")
    (40, 80)
    >>> np.load("features.npy", mmap_mode="r").dtype
    dtype('float32')
    """
    check_features_path(path)
    path = Path(path)
    blocks = _computed(encoder, source, state, verbose) if features is None else features
    beside: dict[str, Any] = {} if names is None else {PATH: list(names)}
    if labels is not None:
        beside[LABEL] = labels
        beside |= {} if class_names is None else {CLASS: [class_names[k] for k in labels]}
    with atomic_write(path) as temporary:
        match path.suffix.lower():
            case ".npy":
                shape = _write_npy(temporary, blocks, len(source))
            case ".csv":
                shape = _write_csv(temporary, blocks, len(source), beside)
            case _:
                shape = _write_parquet(temporary, blocks, len(source), beside)
        if path.suffix.lower() == ".npy" and beside:
            with atomic_write(rows_file(path)) as rows:
                _write_csv(rows, repeat(np.empty((len(source), 0), np.float32), 1), len(source), beside)
    return shape


def rows_file(path: str | Path) -> Path:
    """Path of the names and classes of a .npy file.

    Examples
    --------
    >>> rows_file("features.npy").name
    'features-rows.csv'
    """
    return Path(path).with_name(f"{Path(path).stem}-rows.csv")


def feature_block(model: tuple[ImageEncoder, str, str], images: ImageSource) -> NDArray[np.float32]:
    """Compute the features of some images in a worker, with an encoder, a state and a device."""
    encoder, state, device = model
    return working_copy(encoder, torch_device(device)).features(images, state, max_size=MAX_FEATURES)


def check_features_path(path: str | Path) -> None:
    """Raise unless `path` ends in .parquet, .csv or .npy."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"features are written to {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, got {str(path)!r}")


def _computed(encoder: ImageEncoder, source: ImageSource, state: str, verbose: bool) -> Iterator[NDArray[np.float32]]:
    blocks = cut(len(source), BLOCK)
    with progress(len(blocks), description="thousands of images", enabled=verbose) as display:
        for rows in blocks:
            part = SubsetSource(source, np.arange(rows.start, rows.stop))
            features = encoder.features(part, state, max_size=MAX_FEATURES)
            yield features
            display.advance(samples=len(features))


def _write_csv(path: Path, blocks: Iterable[NDArray[np.float32]], n_images: int, beside: Beside) -> tuple[int, int]:
    n_features, start = 0, 0
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        for features in blocks:
            if not start:
                n_features = features.shape[1]
                writer.writerow([INDEX, *beside, *(f"{FEATURE}_{i}" for i in range(n_features))])
            for i, row in enumerate(features, start):
                writer.writerow(
                    [i, *(column[i] for column in beside.values()), *row]
                )  # the shortest representation of float32
            start += len(features)
    return n_images, n_features


def _write_npy(path: Path, blocks: Iterable[NDArray[np.float32]], n_images: int) -> tuple[int, int]:
    shape = None
    with open(path, "wb") as file:
        for features in blocks:
            if shape is None:
                shape = n_images, features.shape[1]
                description = npy.dtype_to_descr(features.dtype)
                npy.write_array_header_1_0(file, {"descr": description, "fortran_order": False, "shape": shape})
            file.write(np.ascontiguousarray(features).data)
    return shape or (0, 0)


def _write_parquet(
    path: Path,
    blocks: Iterable[NDArray[np.float32]],
    n_images: int,
    beside: Beside,
) -> tuple[int, int]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer: Any = None
    group: list[Any] = []
    n_features, start = 0, 0
    try:
        for features in blocks:
            n_features = features.shape[1]
            rows = slice(start, start + len(features))
            columns: dict[str, Any] = {INDEX: np.arange(rows.start, rows.stop)}
            for name, values in beside.items():
                columns[name] = values[rows] if name == LABEL else pa.array(values[rows], pa.string())
            metadata = parquet_metadata("embed", columns)
            columns |= {f"{FEATURE}_{i}": column for i, column in enumerate(np.ascontiguousarray(features.T))}
            group.append(pa.table(columns, metadata=metadata))
            if writer is None:
                writer = pq.ParquetWriter(path, group[0].schema, use_dictionary=False)  # values rarely repeat
            if rows.stop == n_images or sum(table.nbytes for table in group) >= GROUP_BYTES:
                writer.write_table(pa.concat_tables(group))
                group = []
            start = rows.stop
    finally:
        if writer is not None:
            writer.close()
    return n_images, n_features
