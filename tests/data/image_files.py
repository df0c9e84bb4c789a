"""Small files in the original formats of the image data sets, written byte by byte from their descriptions."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from neuralbayes.data.catalog import Entry, find_entry
from neuralbayes.data.verify import Part

N_TRAIN, N_TEST = 20, 10
IDX_NAMES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


def idx_bytes(array: np.ndarray) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(np.uint8).tobytes()


def cifar_bytes(images: np.ndarray, *labels: np.ndarray) -> bytes:
    """Write images (n, 32, 32, 3): each record has the labels, then all red, all green and all blue, row by row."""
    records = b""
    for i, image in enumerate(images):
        records += bytes(int(label[i]) for label in labels)
        for channel in range(3):
            records += image[:, :, channel].tobytes()
    return records


def stl_bytes(images: np.ndarray) -> bytes:
    """Write images (n, 96, 96, 3): each image has all red, all green and all blue, column by column."""
    data = b""
    for image in images:
        for channel in range(3):
            for column in range(96):
                data += image[:, column, channel].tobytes()
    return data


def tar_bytes(members: dict[str, bytes] | list[tuple[tarfile.TarInfo, bytes]], *, packed: bool = True) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for key, data in members.items() if isinstance(members, dict) else members:
            info = key if isinstance(key, tarfile.TarInfo) else tarfile.TarInfo(key)
            if info.type == tarfile.REGTYPE:
                info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return gzip.compress(buffer.getvalue(), 1) if packed else buffer.getvalue()


def grey_arrays(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "train_images": rng.integers(0, 256, (N_TRAIN, 28, 28), np.uint8),
        "train_labels": np.arange(N_TRAIN) % 10,
        "test_images": rng.integers(0, 256, (N_TEST, 28, 28), np.uint8),
        "test_labels": np.arange(N_TEST) % 10,
    }


def write_idx_files(folder: Path, *, packed: bool = False, seed: int = 0) -> dict[str, np.ndarray]:
    folder.mkdir(parents=True, exist_ok=True)
    arrays = grey_arrays(seed)
    for name, array in zip(IDX_NAMES, arrays.values(), strict=True):
        data = idx_bytes(array)
        if packed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(data))
        else:
            (folder / name).write_bytes(data)
    return arrays


def small_entry(name: str, **changes: object) -> Entry:
    """The entry of a data set with 20 + 10 images without a known SHA-256, and without network access."""
    entry = find_entry(name)
    parts = {"train": Part(N_TRAIN), "test": Part(N_TEST)}
    settings = {"parts": parts, "addresses": ("https://127.0.0.1:1/",), "packages": (), "installed": (), **changes}
    return replace(entry, **settings)
