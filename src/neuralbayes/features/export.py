"""What leaves a run: the encoder as a network for other programs, and the features of images as a file."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.lib import format as npy
from numpy.typing import NDArray
from torch import Tensor, nn

from neuralbayes.data.normalize import whitened
from neuralbayes.data.sources import ArraySource, ImageSource, SubsetSource
from neuralbayes.data.written import parquet_metadata
from neuralbayes.distributed.blocks import cut
from neuralbayes.features.encoder import ImageEncoder, flat_state
from neuralbayes.features.programs import Format, export_network
from neuralbayes.system.files import atomic_write
from neuralbayes.training.progress import progress

MAX_FEATURES = 4096
TOLERANCE = 1e-4
"""Largest difference to the original that an exported network may have, relative to its largest feature or to 1."""

BLOCK = 1000  # images whose features are in memory at a time; whole batches, so that no bit depends on the cut
GROUP_BYTES = 2**26  # of a row group of Parquet: the writer keeps what it knows of each in memory to the end
SUFFIXES = (".parquet", ".npy")


class FeatureNetwork(nn.Module):
    """From raw images to features, normalisation included: uint8 (n, H, W, C) -> float32 (n, n_features).

    Parameters
    ----------
    encoder : ImageEncoder
        Copied.
    state : str, default="relu4"
    """

    scale: Tensor
    offset: Tensor
    whitening: Tensor | None

    def __init__(self, encoder: ImageEncoder, state: str = "relu4") -> None:
        super().__init__()
        std = encoder.normalization.std.astype(np.float64)
        self.register_buffer("scale", torch.from_numpy((1 / (255 * std)).astype(np.float32)))
        self.register_buffer("offset", torch.from_numpy((-encoder.normalization.mean / std).astype(np.float32)))
        kernel = encoder.normalization.whitening
        self.register_buffer("whitening", None if kernel is None else torch.from_numpy(kernel))
        self.layers = copy.deepcopy(encoder.layers(state)).cpu()
        self.eval()

    def forward(self, images: Tensor) -> Tensor:
        x = images.permute(0, 3, 1, 2).to(torch.float32) * self.scale + self.offset
        if self.whitening is not None:
            x = whitened(x, self.whitening)
        return flat_state(self.layers(x), MAX_FEATURES)


def export_encoder(encoder: ImageEncoder, path: str | Path, to: Format, *, state: str = "relu4") -> float:
    """Write an encoder, with its normalisation, as a network that takes uint8 images (n, H, W, C) for any n.

    Parameters
    ----------
    encoder : ImageEncoder
    path : path
    to : {"onnx", "torch"}
        ONNX, which needs the extra ``export``, or a program for `torch.export.load`; neither is a pickle of classes.
    state : str, default="relu4"
        Which hidden state it gives, as :meth:`neuralbayes.ImageEncoder.features` does.

    Returns
    -------
    float
        The largest difference between its features and the original's on random images.

    Raises
    ------
    ValueError
        When that is too large; nothing is written then.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> images = nb.datasets.load("digits").train.images[:40].repeat(3, axis=1).repeat(3, axis=2)  # of 24x24 pixels
    >>> encoder = nb.baselines.random(images, nb.baselines.RandomConfig(encoder="tiny"))  # or nb.pretrain
    >>> nb.export_encoder(encoder, "encoder.pt2", to="torch") < 1e-3
    True
    >>> torch.export.load("encoder.pt2").module()(torch.from_numpy(images)).shape
    torch.Size([40, 80])
    """
    network = FeatureNetwork(encoder, state)
    images = np.random.default_rng(0).integers(0, 256, (5, *encoder.shape), dtype=np.uint8)
    expected = encoder.features(ArraySource(images, channels_first=False), state, max_size=MAX_FEATURES)
    return export_network(
        network,
        images,
        [expected],
        path,
        to,
        names=("images", ("features",)),
        tolerance=[TOLERANCE],
        metadata={"input": f"uint8 images (n, {', '.join(map(str, encoder.shape))})", "output": f"features of {state}"},
    )


def write_features(
    encoder: ImageEncoder,
    source: ImageSource,
    path: str | Path,
    *,
    state: str = "relu4",
    labels: NDArray[np.int64] | None = None,
    names: Sequence[str] | None = None,
    verbose: bool = False,
    features: Iterable[NDArray[np.float32]] | None = None,
) -> tuple[int, int]:
    """Write the features of all images to a file, piece by piece, in the order of the images.

    Parameters
    ----------
    encoder : ImageEncoder
    source : ImageSource
    path : path
        ``.npy``: an array (n_images, n_features) of float32. ``.parquet``: columns "index", "path" where there are
        names, "label" where there are labels, and "f_0", "f_1", ...
    state : str, default="relu4"
    labels : ndarray of shape (n_images,), optional
    names : sequence of str, optional
        For instance the files that the images were read from.
    verbose : bool, default=False
    features : iterable of ndarrays of shape (n, n_features), optional
        The features of all images, in order, where they were computed before, such as by the workers of
        ``neuralbayes embed``. By default they are computed here.

    Returns
    -------
    n_images, n_features : int

    Examples
    --------
    >>> import neuralbayes as nb
    >>> images = nb.datasets.load("digits").train.images[:40].repeat(3, axis=1).repeat(3, axis=2)  # of 24x24 pixels
    >>> encoder = nb.baselines.random(images, nb.baselines.RandomConfig(encoder="tiny"))  # or nb.pretrain
    >>> nb.write_features(encoder, ArraySource(images), "features.npy")
    (40, 80)
    >>> np.load("features.npy", mmap_mode="r").dtype
    dtype('float32')
    """
    check_features_path(path)
    blocks = _computed(encoder, source, state, verbose) if features is None else features
    with atomic_write(path) as temporary:
        if Path(path).suffix.lower() == ".npy":
            return _write_npy(temporary, blocks, len(source))
        return _write_parquet(temporary, blocks, len(source), labels, names)


def feature_block(model: tuple[ImageEncoder, str], images: ImageSource) -> NDArray[np.float32]:
    """The features of some images, by an encoder and the name of its state: what a worker computes."""
    encoder, state = model
    return encoder.features(images, state, max_size=MAX_FEATURES)


def check_features_path(path: str | Path) -> None:
    """Raise unless `path` ends in .parquet or .npy."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"features are written to {' or '.join(SUFFIXES)}, got {str(path)!r}")


def _computed(encoder: ImageEncoder, source: ImageSource, state: str, verbose: bool) -> Iterator[NDArray[np.float32]]:
    blocks = cut(len(source), BLOCK)
    with progress(len(blocks), description="thousands of images", enabled=verbose) as display:
        for rows in blocks:
            features = feature_block((encoder, state), SubsetSource(source, np.arange(rows.start, rows.stop)))
            yield features
            display.advance(samples=len(features))


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
    labels: NDArray[np.int64] | None,
    names: Sequence[str] | None,
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
            columns: dict[str, Any] = {"index": np.arange(rows.start, rows.stop)}
            columns |= {} if names is None else {"path": pa.array(names[rows], pa.string())}
            columns |= {} if labels is None else {"label": labels[rows]}
            metadata = parquet_metadata("embed", columns)
            columns |= {f"f_{i}": column for i, column in enumerate(np.ascontiguousarray(features.T))}
            group.append(pa.table(columns, metadata=metadata))
            if writer is None:
                writer = pq.ParquetWriter(path, group[0].schema, use_dictionary=False)  # no value occurs often
            if rows.stop == n_images or sum(table.nbytes for table in group) >= GROUP_BYTES:
                writer.write_table(pa.concat_tables(group))
                group = []
            start = rows.stop
    finally:
        if writer is not None:
            writer.close()
    return n_images, n_features
