"""Write features of images to Parquet, CSV or NPY, with the file name and class of each image."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy
from numpy.typing import NDArray
from pyarrow import csv, parquet

from neuralbayes.data.columns import CLASS, FEATURE, INDEX, LABEL, PATH
from neuralbayes.data.images import ImageSource, as_source
from neuralbayes.data.pictures import path_cell
from neuralbayes.data.sources import subset
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.system.files import atomic_write
from neuralbayes.training.progress import late_bar

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
    if Path(path).suffix.lower() not in SUFFIXES:
        raise ValueError(f"`path` must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, got {str(path)!r}")
    path, source = Path(path), as_source(images)
    columns: dict[str, Any] = {INDEX: np.arange(len(source))}
    columns |= {} if names is None else {PATH: pa.array(map(path_cell, names), pa.string())}
    columns |= {} if labels is None else {LABEL: labels}
    if labels is not None and class_names is not None:
        columns[CLASS] = pa.array([path_cell(class_names[k]) for k in labels], pa.string())
    beside = pa.table(columns)
    n_features = 0
    writer: Any = None
    with atomic_write(path) as temporary, ExitStack() as stack:
        advance = stack.enter_context(late_bar("images", len(source), enabled=verbose))
        for start in range(0, len(source), block_size):
            rows = np.arange(start, min(start + block_size, len(source)))
            features = encoder.features(subset(source, rows), state)
            n_features = features.shape[1]
            if path.suffix.lower() == ".npy":
                if writer is None:  # rows one after the other: on a full disk, a memory map would end in SIGBUS
                    writer = stack.enter_context(open(temporary, "wb"))
                    shape = {"descr": "<f4", "fortran_order": False, "shape": (len(source), n_features)}
                    npy.write_array_header_1_0(writer, shape)
                writer.write(np.ascontiguousarray(features, "<f4").data)
            else:
                table = beside.slice(start, len(rows))
                for i, column in enumerate(np.ascontiguousarray(features.T)):
                    table = table.append_column(f"{FEATURE}_{i}", pa.array(column))
                if writer is None and path.suffix.lower() == ".csv":
                    writer = stack.enter_context(csv.CSVWriter(temporary, table.schema))
                elif writer is None:  # without dictionaries, as features rarely repeat
                    writer = stack.enter_context(parquet.ParquetWriter(temporary, table.schema, use_dictionary=False))
                writer.write_table(table)
            advance(len(rows))
        if path.suffix.lower() == ".npy" and len(columns) > 1:
            with atomic_write(path.with_name(f"{path.stem}-rows.csv")) as other:
                csv.write_csv(beside, other)
    return len(source), n_features
