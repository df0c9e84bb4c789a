"""Features of labelled images: computed once and cached in a folder, by the weights and images that they come from."""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.arrays import open_npy
from neuralbayes.data.dataset import Split
from neuralbayes.data.sources import ArraySource, Images, ImageSource, as_source
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.system.files import atomic_write, read_json, write_json
from neuralbayes.training.inference import in_blocks

LabeledData = Images | Split | tuple[NDArray[Any], NDArray[Any]]
"""Images with their labels, or a pair (features or images, labels)."""

BLOCK = 1000  # images per read


@dataclass(frozen=True, eq=False)
class LabeledFeatures:
    """Features (n, d) in float32, labels (n,) in int64, and the time to compute the features in seconds."""

    x: NDArray[np.float32]
    y: NDArray[np.int64]
    seconds: float


def labeled_features(
    data: LabeledData, name: str, *, encoder: ImageEncoder | None, state: str, cache: Path | None, verbose: bool
) -> LabeledFeatures:
    """Features of `data`: a hidden state of `encoder` or, without an encoder, the pixels or the given features.

    `name` is the name of the argument, for messages, and for files if the data have no name.
    """
    rows, labels, data_name = opened(data, name)
    y = checked_labels(labels, len(rows), name)
    if isinstance(rows, np.ndarray):
        if encoder is not None:
            raise ValueError(f"`{name}` must be images if an encoder is given, got features of shape {rows.shape}")
        return LabeledFeatures(_checked_features(rows, name), y, 0.0)
    if encoder is None:
        start = time.perf_counter()
        return LabeledFeatures(pixels(rows), y, time.perf_counter() - start)
    if cache is None:
        x, seconds = _encoded(encoder, rows, state, verbose)
    else:
        x, seconds = _cached(encoder, rows, state, verbose, cache, data_name)
    return LabeledFeatures(x, y, seconds)


def opened(data: LabeledData, name: str) -> tuple[NDArray[Any] | ImageSource, Any, str]:
    """Features or a source of images, labels, and a name."""
    if isinstance(data, Images):
        return data.source, data.labels, f"{Path(data.name).name}-{data.split}"
    if isinstance(data, Split):
        return ArraySource(data.images, channels_first=False), data.labels, name
    if not isinstance(data, tuple) or len(data) != 2:
        raise TypeError(f"`{name}` must be images with labels, or a pair (features, labels), got {type(data).__name__}")
    rows = np.asarray(data[0])
    return rows if rows.ndim == 2 else as_source(rows), data[1], name


def checked_labels(labels: Any, n: int, name: str) -> NDArray[np.int64]:
    if labels is None:
        raise ValueError(f"`{name}` must have labels; put pictures into one folder for each class")
    y = np.asarray(labels)
    if y.shape != (n,) or y.dtype.kind not in "iu" or (n and y.min() < 0):
        raise ValueError(f"the labels of `{name}` must be {n} integers from 0, got {y.dtype} of shape {y.shape}")
    return y.astype(np.int64)


def _checked_features(rows: NDArray[Any], name: str) -> NDArray[np.float32]:
    x = np.ascontiguousarray(rows, dtype=np.float32)
    if 0 in x.shape or not np.isfinite(x).all():
        raise ValueError(f"the features of `{name}` must be finite and not empty, got shape {x.shape}")
    return x if x.flags.writeable else x.copy()  # torch warns about read-only memory


def pixels(source: ImageSource) -> NDArray[np.float32]:
    """All images as vectors of intensities in [0, 1]: (n, H * W * C)."""
    size = int(np.prod(source.shape))
    x = in_blocks(lambda some: source.read(some).reshape(-1, size), len(source), block=BLOCK, dtype=np.float32)
    x /= 255.0
    return x


def _encoded(
    encoder: ImageEncoder, source: ImageSource, state: str, verbose: bool
) -> tuple[NDArray[np.float32], float]:
    start = time.perf_counter()
    x = encoder.features(source, state, verbose=verbose)
    return x, time.perf_counter() - start


def _cached(
    encoder: ImageEncoder, source: ImageSource, state: str, verbose: bool, cache: Path, data_name: str
) -> tuple[NDArray[np.float32], float]:
    """The result of `_encoded`, from `cache` if it is there. NAME.json describes NAME.npy."""
    weights, images = _digest_of_encoder(encoder), _digest_of_images(source)
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", data_name).strip("-.")
    key = hashlib.sha256(f"{weights} {images} {state}".encode()).hexdigest()[:12]
    stem = cache / f"{readable}-{state}-{key}"
    array, record = stem.with_name(f"{stem.name}.npy"), stem.with_name(f"{stem.name}.json")
    try:
        seconds = float(read_json(record)["seconds"])
        stored = np.array(open_npy(array))  # into memory: it is read once per epoch, in random order
        if stored.dtype == np.float32 and stored.ndim == 2 and len(stored) == len(source):
            return stored, seconds
    except (OSError, ValueError, TypeError, KeyError):
        pass  # missing or damaged: compute it and replace the file
    x, seconds = _encoded(encoder, source, state, verbose)
    with atomic_write(array) as temporary:
        np.save(temporary, x)
    write_json(record, {"weights": weights, "images": images, "state": state, "seconds": round(seconds, 3)})
    return x, seconds


def _digest_of_encoder(encoder: ImageEncoder) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in encoder.network.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().data)
    for name, array in encoder.normalization.to_arrays().items():
        digest.update(name.encode())
        digest.update(array.data)
    return digest.hexdigest()


def _digest_of_images(source: ImageSource) -> str:
    """Hash of every byte: reading the images takes much less time than encoding them."""
    digest = hashlib.blake2b(f"{len(source)} {source.shape}".encode(), digest_size=16)
    for start in range(0, len(source), BLOCK):
        digest.update(source.read(np.arange(start, min(start + BLOCK, len(source)))).data)
    return digest.hexdigest()
