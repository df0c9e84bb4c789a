"""Cache of features of a pretrained network, by the content of each item."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from neuralbayes.data.progress import late_bar
from neuralbayes.data.sources import ImageSource
from neuralbayes.features.pretrained import PretrainedNetwork
from neuralbayes.system.files import read_tensors, write_tensors

BLOCK = 256
"""Pictures or texts per computation."""

Digests = NDArray[np.uint8]


def kept_features(
    network: PretrainedNetwork,
    read: Callable[[NDArray[np.int64]], Any],
    items: Digests,
    path: Path,
    *,
    verbose: bool = False,
) -> NDArray[np.float32]:
    """The features of all items, from the cache `path` or computed and added to it.

    Each item is computed once, even if it occurs several times. After an error or Ctrl-C, the same call continues.

    Parameters
    ----------
    network : PretrainedNetwork
    read : callable
        Reads items by their indices, as input of the network.
    items : ndarray of uint8 and shape (n, 16)
        Digest of the content of each item: :func:`text_digests`, :func:`file_digests`, :func:`image_digests`.
    path : Path
        A .safetensors file. A file of another network is replaced.
    verbose : bool, default=False
        Show progress.

    Returns
    -------
    ndarray of shape (n, n_features), float32
    """
    known, features = _kept(path, network.identity)
    place = {item.tobytes(): i for i, item in enumerate(known)}
    new: list[int] = []  # where each unknown item stands first
    for i, item in enumerate(items):
        if item.tobytes() not in place:
            place[item.tobytes()] = len(known) + len(new)
            new.append(i)
    found = [features] if len(known) else []
    done = 0
    try:
        with late_bar(f"features of {network.name}", len(new), enabled=verbose) as advance:
            for start in range(0, len(new), BLOCK):
                rows = np.array(new[start : start + BLOCK])
                found.append(network(read(rows)))
                done += len(rows)
                advance(len(rows))
    finally:  # keep what was computed before an error or Ctrl-C
        if done:
            features = np.concatenate(found)
            kept = {"items": np.concatenate([known, items[new[:done]]]), "features": features}
            write_tensors(path, {name: torch.from_numpy(v) for name, v in kept.items()}, {"network": network.identity})
    order = [place[item.tobytes()] for item in items]
    return features if order == list(range(len(features))) else features[order]  # which would be a second copy


def _kept(path: Path, identity: str) -> tuple[Digests, NDArray[np.float32]]:
    """Digests and features in a file; none if it is missing, damaged, or of another network."""
    nothing = np.empty((0, 16), np.uint8), np.empty((0, 0), np.float32)
    try:
        tensors, metadata = read_tensors(path)
        items, features = tensors["items"].numpy(), tensors["features"].numpy()
    except (FileNotFoundError, ValueError, KeyError):
        return nothing
    fits = items.dtype == np.uint8 and features.dtype == np.float32 and items.shape == (len(features), 16)
    whole = fits and features.ndim == 2 and bool(np.isfinite(features).all())
    return (items, features) if whole and metadata.get("network") == identity else nothing


def keeps(path: Path, network: PretrainedNetwork) -> bool:
    """Whether a file contains features of this network."""
    return len(_kept(path, network.identity)[0]) > 0


def text_digests(texts: Iterable[str]) -> Digests:
    """Digests of texts: (n, 16)."""
    return _stacked(text.encode(errors="surrogatepass") for text in texts)


def file_digests(paths: Sequence[Path]) -> Digests:
    """Digests of the bytes of files: (n, 16)."""
    return _stacked(path.read_bytes() for path in paths)


def image_digests(source: ImageSource) -> Digests:
    """Digests of the pixels of images: (n, 16)."""
    starts = range(0, len(source), BLOCK)
    blocks = (source.read(np.arange(start, min(start + BLOCK, len(source)))) for start in starts)
    return _stacked(image.tobytes() for block in blocks for image in block)


def _stacked(contents: Iterable[bytes]) -> Digests:
    found = b"".join(hashlib.blake2b(content, digest_size=16).digest() for content in contents)
    return np.frombuffer(found, np.uint8).reshape(-1, 16)
