"""CIFAR-10 and CIFAR-100 in their binary version, and CIFAR-10 as sheets of PNG.

The "Python version" of CIFAR is a pickle. It is not supported, because reading a pickle can run any code.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.layout import Arrays, Layout

HEIGHT = WIDTH = 32
PIXELS = HEIGHT * WIDTH
SHEET_ROWS = 10_000

BATCHES = tuple(f"data_batch_{i}" for i in range(1, 6))


def read_cifar(stream: BinaryIO, *, label_bytes: int, n_classes: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Read one file of the binary version: per image its label bytes, then the red, green and blue planes.

    Parameters
    ----------
    stream : binary stream
    label_bytes : int
        1 for CIFAR-10; 2 for CIFAR-100, whose second (fine) label is used.
    n_classes : int

    Returns
    -------
    images : ndarray of uint8 and shape (n, 32, 32, 3)
    labels : ndarray of int64 and shape (n,)

    Raises
    ------
    ValueError
        If the length is not a multiple of the record size, or a label is not below `n_classes`.

    Examples
    --------
    >>> images, labels = read_cifar(io.BytesIO(bytes([6]) + bytes(3072)), label_bytes=1, n_classes=10)
    >>> images.shape, labels
    ((1, 32, 32, 3), array([6]))
    """
    record = label_bytes + 3 * PIXELS
    data = stream.read()
    if not data or len(data) % record:
        raise ValueError(f"its length must be a multiple of {record} bytes, one record per image, got {len(data)}")
    records = np.frombuffer(data, np.uint8).reshape(-1, record)
    labels = records[:, label_bytes - 1].astype(np.int64)
    if labels.max() >= n_classes:
        raise ValueError(f"its labels must be below {n_classes}, got {labels.max()}")
    planes = records[:, label_bytes:].reshape(-1, 3, HEIGHT, WIDTH)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels


def assemble_cifar10(parts: Mapping[str, tuple[NDArray[np.uint8], NDArray[np.int64]]]) -> Arrays:
    """Arrays of train and test out of the six files of CIFAR-10."""
    train = [parts[f"{name}.bin"] for name in BATCHES]
    return {
        "train_images": np.concatenate([images for images, _ in train]),
        "train_labels": np.concatenate([labels for _, labels in train]),
        "test_images": parts["test_batch.bin"][0],
        "test_labels": parts["test_batch.bin"][1],
    }


def assemble_cifar100(parts: Mapping[str, tuple[NDArray[np.uint8], NDArray[np.int64]]]) -> Arrays:
    """Arrays of train and test out of the two files of CIFAR-100."""
    return {
        "train_images": parts["train.bin"][0],
        "train_labels": parts["train.bin"][1],
        "test_images": parts["test.bin"][0],
        "test_labels": parts["test.bin"][1],
    }


def read_sheet(stream: BinaryIO) -> NDArray[np.uint8]:
    """Read a PNG in which each row is one image of 1024 RGB pixels: (n, 32, 32, 3)."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(stream.read()), formats=("PNG",)) as sheet:
            if sheet.mode != "RGB" or sheet.width != PIXELS or sheet.height > SHEET_ROWS:
                raise ValueError(f"it must be an RGB picture of {PIXELS} columns, got {sheet.mode} of {sheet.size}")
            return np.asarray(sheet).reshape(-1, HEIGHT, WIDTH, 3)
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError) as error:
        raise ValueError(f"it is not a readable PNG picture ({error})") from error


def read_sheet_labels(stream: BinaryIO) -> NDArray[np.int64]:
    """Read the labels of the sheets: a JSON list of integers from 0 to 9."""
    try:
        labels = json.loads(stream.read())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not valid JSON ({error})") from error
    if not isinstance(labels, list) or not all(type(label) is int and 0 <= label <= 9 for label in labels):
        raise ValueError("it must be a list of integers from 0 to 9")
    return np.array(labels, np.int64)


def _read_sheet_file(name: str, stream: BinaryIO) -> NDArray[np.generic]:
    return read_sheet(stream) if name.endswith(".png") else read_sheet_labels(stream)


def assemble_sheets(parts: Mapping[str, NDArray[np.generic]]) -> Arrays:
    """Arrays of train and test out of the sheets and their labels."""
    return {
        "train_images": np.concatenate([parts[f"{name}.png"] for name in BATCHES]),
        "train_labels": parts["train_lables.json"],
        "test_images": parts["test_batch.png"],
        "test_labels": parts["test_lables.json"],
    }


CIFAR10 = Layout(
    files={f"{name}.bin": 10_000 * (1 + 3 * PIXELS) for name in (*BATCHES, "test_batch")},
    read=lambda name, stream: read_cifar(stream, label_bytes=1, n_classes=10),
    assemble=assemble_cifar10,
)

CIFAR100 = Layout(
    files={"train.bin": 50_000 * (2 + 3 * PIXELS), "test.bin": 10_000 * (2 + 3 * PIXELS)},
    read=lambda name, stream: read_cifar(stream, label_bytes=2, n_classes=100),
    assemble=assemble_cifar100,
)

SHEETS = Layout(
    files={
        **{f"{name}.png": 32 * 2**20 for name in (*BATCHES, "test_batch")},
        "train_lables.json": 2**20,  # "lables" is the spelling of the package
        "test_lables.json": 2**20,
    },
    read=_read_sheet_file,
    assemble=assemble_sheets,
)
