"""Load pretrained networks for pictures and texts by name, each with its own preprocessing.

==============================  ============================================================================
``timm:NAME``                   a network from timm; ``timm:local-dir:FOLDER`` loads weights from a folder
``sentence-transformers:NAME``  a network for texts, by its name or its folder
``file.py:function``            your own: uint8 pictures (n, H, W, 3), or a list of texts, to (n, n_features)
==============================  ============================================================================
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuralbayes.data.resizing import Interpolation, NetworkResizing
from neuralbayes.system.code import named_object
from neuralbayes.system.devices import torch_device

Kind = Literal["pictures", "texts"]

KINDS: dict[str, Kind] = {"timm": "pictures", "sentence-transformers": "texts"}
FORMS = ("timm:NAME", "sentence-transformers:NAME", "file.py:function")

BATCH = 32
"""Number of pictures in a batch."""

SIDE = 224
"""Side of pictures in pixels if neither the network nor the user gives a size."""


@dataclass(frozen=True)
class Preprocessing:
    """Preprocessing of pictures for a network.

    Attributes
    ----------
    size : tuple (H, W)
        Size of the input of the network.
    resizing : NetworkResizing
        How to resize pictures to this size.
    mean, std : tuple of float
        Mean and standard deviation of the colours, which are in [0, 1].
    """

    size: tuple[int, int]
    resizing: NetworkResizing
    mean: tuple[float, ...] = (0.485, 0.456, 0.406)  # of ImageNet
    std: tuple[float, ...] = (0.229, 0.224, 0.225)

    def __call__(self, pictures: NDArray[np.uint8]) -> Tensor:
        """Standardise pictures: uint8 (n, *size, 3) -> float32 (n, 3, *size)."""
        x = torch.from_numpy(np.ascontiguousarray(pictures)).permute(0, 3, 1, 2).float() / 255.0
        mean, std = (torch.tensor(values).reshape(1, -1, 1, 1) for values in (self.mean, self.std))
        return (x - mean) / std


@dataclass(frozen=True)
class PretrainedNetwork:
    """A frozen network that computes features of pictures or texts.

    Attributes
    ----------
    name : str
        The name that was passed to :func:`pretrained_network`.
    kind : {"pictures", "texts"}
    identity : str
        A digest of its weights and preprocessing. Features from networks with the same identity can be compared.
    compute : callable
        uint8 pictures (n, *preprocessing.size, 3), or a list of texts -> features (n, n_features).
    preprocessing : Preprocessing or None
        Preprocessing of pictures; None for texts.
    """

    name: str
    kind: Kind
    identity: str
    compute: Callable[[Any], Any]
    preprocessing: Preprocessing | None = None

    def __call__(self, items: NDArray[np.uint8] | list[str]) -> NDArray[np.float32]:
        """Compute the features of pictures or texts, shape (n, n_features); raises ValueError if they are not valid."""
        with torch.no_grad():
            found = self.compute(items)
        features = np.asarray(found.float().cpu() if isinstance(found, Tensor) else found, np.float32)
        if features.ndim != 2 or len(features) != len(items) or not features.shape[1]:
            raise ValueError(f"{self.name} must give an array ({len(items)}, n_features), got shape {features.shape}")
        if not np.isfinite(features).all():
            raise ValueError(f"{self.name} must give finite numbers, got NaN or infinity")
        return features


def pretrained_network(
    name: str, kind: Kind, *, size: tuple[int, int] | None = None, device: str = "auto"
) -> PretrainedNetwork:
    """Load a pretrained network by its name.

    Parameters
    ----------
    name : str
        One of the forms in the table of this module.
    kind : {"pictures", "texts"}
        Kind of the data.
    size : tuple (H, W), optional
        Input size of a network for pictures, by default the size that it was trained with.
    device : str, default="auto"
        Where to compute: "cpu", "cuda", "cuda:1" or "mps"; "auto" is the best one available. Your own function chooses
        its device itself.

    Returns
    -------
    PretrainedNetwork

    Examples
    --------
    >>> brightness = pretrained_network("numpy:mean", "pictures")  # any function that can be imported
    >>> brightness.kind, brightness.preprocessing.size
    ('pictures', (224, 224))
    """
    family, _, rest = name.partition(":")
    if not rest:
        raise ValueError(f"`features` must be written as {', '.join(FORMS)} or be a .npy file, got {name!r}")
    of = KINDS.get(family, kind)
    if of != kind:
        raise ValueError(f"{name} is a network for {of}, but the data are {kind}; use one of {', '.join(FORMS)}")
    if family == "timm":
        return _timm(name, rest, size, torch_device(device))
    if family == "sentence-transformers":
        return _sentence_transformers(name, rest, torch_device(device))
    return _own(name, kind, size)


def _timm(name: str, rest: str, size: tuple[int, int] | None, device: torch.device) -> PretrainedNetwork:
    timm = _import("timm", "vision")
    with _loading(name):
        network = timm.create_model(rest, pretrained=True, num_classes=0)
    network = network.eval().requires_grad_(False).to(device)
    config = timm.data.resolve_model_data_config(network)
    side = size or tuple(config["input_size"][1:])
    scaled = (math.floor(side[0] / config["crop_pct"]), math.floor(side[1] / config["crop_pct"]))
    how: Interpolation = "bilinear" if config["interpolation"] == "bilinear" else "bicubic"
    resizing = NetworkResizing(scaled, how, squash=config.get("crop_mode") == "squash")
    preprocessing = Preprocessing(side, resizing, config["mean"], config["std"])

    def compute(pictures: NDArray[np.uint8]) -> Tensor:
        parts = [pictures[start : start + BATCH] for start in range(0, len(pictures), BATCH)]
        return torch.cat([network(preprocessing(part).to(device)).flatten(1).float().cpu() for part in parts])

    return PretrainedNetwork(name, "pictures", digest_of(network.state_dict(), preprocessing), compute, preprocessing)


def _sentence_transformers(name: str, rest: str, device: torch.device) -> PretrainedNetwork:
    library = _import("sentence_transformers", "text")
    with _loading(name):
        network = library.SentenceTransformer(rest, device=str(device), trust_remote_code=False)

    def compute(texts: list[str]) -> NDArray[np.float32]:
        found: NDArray[np.float32] = network.encode(texts, show_progress_bar=False, convert_to_numpy=True)
        return found

    return PretrainedNetwork(name, "texts", digest_of(network.state_dict(), rest), compute)


def _own(name: str, kind: Kind, size: tuple[int, int] | None) -> PretrainedNetwork:
    function = named_object(name, "features")
    if not callable(function):
        raise ValueError(f"`features` must name a function, got {name!r}, a {type(function).__name__}")
    place = Path(name.rpartition(":")[0])
    source = place.read_bytes() if place.suffix == ".py" else str(place).encode()
    wanted = size or (SIDE, SIDE)
    preprocessing = Preprocessing(wanted, NetworkResizing(wanted)) if kind == "pictures" else None
    identity = digest_of({}, (hashlib.blake2b(source).hexdigest(), name.rpartition(":")[2], preprocessing))
    return PretrainedNetwork(name, kind, identity, function, preprocessing)


def digest_of(weights: Mapping[str, Tensor], settings: object) -> str:
    """Compute a digest of the weights and of ``repr(settings)``."""
    found = hashlib.blake2b(repr(settings).encode(), digest_size=16)
    for key, tensor in sorted(weights.items()):
        found.update(key.encode())
        found.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def _import(module: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.replace("_", "-")
        raise ImportError(f"these features need {package}: pip install 'neuralbayes[{extra}]'") from error


@contextmanager
def _loading(name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(
            f"{name} cannot be loaded: {reason}. Check the name; without internet access, download its weights first, "
            "or give their folder or file"
        ) from error
