"""Features of a network, each computed once and kept in a file by the content of its picture or text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.sources import ImageSource, resized
from neuralbayes.system.files import read_tensors, write_tensors
from neuralbayes.training.progress import late_bar

if TYPE_CHECKING:
    from neuralbayes.features.networks import FeatureNetwork

BLOCK = 256  # pictures or texts per computation

Digests = NDArray[np.uint8]


def cached_features(
    network: FeatureNetwork, items: Sequence[str] | ImageSource, path: Path | None = None, *, verbose: bool = False
) -> NDArray[np.float32]:
    """The features of all items, from the file `path` or computed and added to it.

    Each item is computed once, even if it occurs several times. After an error or Ctrl-C, the same call continues.

    A file of another network is replaced. Features of your own function are not kept, because they may depend on files
    that only the function knows. The result is (n, n_features), float32.
    """
    digests, read = _readable(items, network)
    path = None if network.own else path
    known, features = _cached(path, network.identity)
    place = {item.tobytes(): i for i, item in enumerate(known)}
    new: list[int] = []  # where each unknown item stands first
    for i, item in enumerate(digests):
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
        if done and path is not None:
            import torch

            kept = {"items": np.concatenate([known, digests[new[:done]]]), "features": features}
            write_tensors(path, {name: torch.from_numpy(v) for name, v in kept.items()}, {"network": network.identity})
    order = [place[item.tobytes()] for item in digests]
    return features if order == list(range(len(features))) else features[order]  # which would be a second copy


def _readable(
    items: Sequence[str] | ImageSource, network: FeatureNetwork
) -> tuple[Digests, Callable[[NDArray[np.int64]], Any]]:
    """A digest of the content of each item, (n, 16), and a function that reads items as input of the network."""
    if not hasattr(items, "read"):
        texts = list(items)
        return _digests(text.encode(errors="surrogatepass") for text in texts), lambda rows: [texts[i] for i in rows]
    source = cast(ImageSource, getattr(items, "source", items))  # of labelled images
    steps, paths = network.preprocessing, getattr(source, "paths", None)
    fitted = source if steps is None else resized(source, (*steps.size, 3), steps.resizing)
    if steps is not None and paths is not None:
        return _digests(path.read_bytes() for path in paths), fitted.read
    starts = range(0, len(source), BLOCK)
    blocks = (source.read(np.arange(start, min(start + BLOCK, len(source)))) for start in starts)
    return _digests(image.tobytes() for block in blocks for image in block), fitted.read


def _cached(path: Path | None, identity: str) -> tuple[Digests, NDArray[np.float32]]:
    """Digests and features in a file; none if it is missing, damaged, or of another network."""
    nothing = np.empty((0, 16), np.uint8), np.empty((0, 0), np.float32)
    if path is None or not path.is_file():
        return nothing
    try:
        tensors, metadata = read_tensors(path)
        items, features = tensors["items"].numpy(), tensors["features"].numpy()
    except (FileNotFoundError, ValueError, KeyError):
        return nothing
    fits = items.dtype == np.uint8 and features.dtype == np.float32 and items.shape == (len(features), 16)
    whole = fits and features.ndim == 2 and bool(np.isfinite(features).all())
    return (items, features) if whole and metadata.get("network") == identity else nothing


def _digests(contents: Iterable[bytes]) -> Digests:
    found = b"".join(hashlib.blake2b(content, digest_size=16).digest() for content in contents)
    return np.frombuffer(found, np.uint8).reshape(-1, 16)
