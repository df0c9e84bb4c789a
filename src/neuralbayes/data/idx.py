"""The IDX format of MNIST and Fashion-MNIST: a magic number, the sizes, then bytes."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.archives import read_exactly
from neuralbayes.data.layout import Arrays, Layout

UINT8 = 0x08
MAX_BYTES = 64 * 2**20  # 60,000 images of 28 x 28 are 47 million


def read_idx(stream: BinaryIO) -> NDArray[np.uint8]:
    """Read one IDX file of unsigned bytes.

    Returns
    -------
    ndarray of uint8 with the shape in the header, such as (60000, 28, 28).

    Raises
    ------
    ValueError
        If the file is not IDX, has another type than bytes, or has the wrong length.

    Examples
    --------
    >>> import io
    >>> read_idx(io.BytesIO(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9])))
    array([7, 8, 9], dtype=uint8)
    """
    zeros, kind, n_dims = struct.unpack(">HBB", read_exactly(stream, 4))
    if zeros != 0 or kind != UINT8 or not 1 <= n_dims <= 3:
        raise ValueError("not an IDX file of unsigned bytes (its first bytes must be 00 00 08 and 01 to 03)")
    shape = struct.unpack(f">{n_dims}I", read_exactly(stream, 4 * n_dims))
    n_bytes = math.prod(shape)
    if n_bytes > MAX_BYTES:
        raise ValueError(f"its header claims {shape}, more than {MAX_BYTES} bytes: refused")
    data = read_exactly(stream, n_bytes)
    if stream.read(1):
        raise ValueError(f"it continues after the {n_bytes} bytes in its header")
    return np.frombuffer(data, np.uint8).reshape(shape)


def assemble_idx(parts: Mapping[str, NDArray[np.uint8]]) -> Arrays:
    """Arrays of train and test out of the four files."""
    return {
        "train_images": parts["train-images-idx3-ubyte"][..., np.newaxis],  # (n, H, W) -> (n, H, W, 1)
        "train_labels": parts["train-labels-idx1-ubyte"].astype(np.int64),
        "test_images": parts["t10k-images-idx3-ubyte"][..., np.newaxis],
        "test_labels": parts["t10k-labels-idx1-ubyte"].astype(np.int64),
    }


IDX = Layout(
    files={
        "train-images-idx3-ubyte": MAX_BYTES,
        "train-labels-idx1-ubyte": 2**20,
        "t10k-images-idx3-ubyte": MAX_BYTES,
        "t10k-labels-idx1-ubyte": 2**20,
    },
    read=lambda name, stream: read_idx(stream),
    assemble=assemble_idx,
)
