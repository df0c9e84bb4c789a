"""STL-10 in its binary version, reduced from 96 x 96 to 32 x 32 on reading."""

from __future__ import annotations

from collections.abc import Mapping
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.layout import Arrays, Layout

SIDE = 96
FACTOR = 3  # 96 / 32
RECORD = 3 * SIDE * SIDE


def read_stl_images(stream: BinaryIO, *, at_once: int = 500) -> NDArray[np.uint8]:
    """Read a file of images and average each 3 x 3 block of pixels.

    The file was written by MATLAB and contains the red, green and blue planes of each image, column by column.
    Averaging a block is the area filter for this factor; means are rounded to the nearest integer (a ninth is never
    halfway between two). The unlabelled part has 2.8 GB, so only `at_once` images are in memory at full size.

    Returns
    -------
    ndarray of uint8 and shape (n, 32, 32, 3).

    Raises
    ------
    ValueError
        If the length is not a multiple of the image size.
    """
    parts = []
    while data := stream.read(at_once * RECORD):
        if len(data) % RECORD:
            raise ValueError(f"its length must be a multiple of {RECORD} bytes, one image, and it is not: cut short?")
        planes = np.frombuffer(data, np.uint8).reshape(-1, 3, SIDE, SIDE)  # (n, C, W, H): columns come first
        parts.append(area_mean(planes.transpose(0, 3, 2, 1), FACTOR))
    if not parts:
        raise ValueError("it is empty")
    return np.concatenate(parts)


def area_mean(images: NDArray[np.uint8], factor: int) -> NDArray[np.uint8]:
    """Average blocks of `factor` x `factor` pixels, for an odd `factor`: (n, H, W, C) to (n, H/factor, W/factor, C).

    Examples
    --------
    >>> area_mean(np.arange(9, dtype=np.uint8).reshape(1, 3, 3, 1), 3).ravel()
    array([4], dtype=uint8)
    """
    n, height, width, channels = images.shape
    blocks = images.reshape(n, height // factor, factor, width // factor, factor, channels)
    total: NDArray[np.uint32] = blocks.sum(axis=(2, 4), dtype=np.uint32)
    return ((total + factor * factor // 2) // (factor * factor)).astype(np.uint8)


def read_stl_labels(stream: BinaryIO) -> NDArray[np.int64]:
    """Read a file of labels, bytes from 1 to 10, as 0 to 9."""
    labels = np.frombuffer(stream.read(), np.uint8).astype(np.int64)
    if not len(labels) or labels.min() < 1 or labels.max() > 10:
        raise ValueError("its labels must be bytes from 1 to 10, but are not")
    return labels - 1


def _read_stl_file(name: str, stream: BinaryIO) -> NDArray[np.generic]:
    return read_stl_images(stream) if name.endswith("_X.bin") else read_stl_labels(stream)


def assemble_stl(parts: Mapping[str, NDArray[np.generic]]) -> Arrays:
    """Arrays of train, test and unlabeled out of the five files."""
    return {
        "train_images": parts["train_X.bin"],
        "train_labels": parts["train_y.bin"],
        "test_images": parts["test_X.bin"],
        "test_labels": parts["test_y.bin"],
        "unlabeled_images": parts["unlabeled_X.bin"],
    }


STL10 = Layout(
    files={
        "train_X.bin": 5_000 * RECORD,
        "train_y.bin": 5_000,
        "test_X.bin": 8_000 * RECORD,
        "test_y.bin": 8_000,
        "unlabeled_X.bin": 100_000 * RECORD,
    },
    read=_read_stl_file,
    assemble=assemble_stl,
)
