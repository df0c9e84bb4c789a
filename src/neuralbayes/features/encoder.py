"""A trained image encoder: normalisation, network and hidden states, saved without pickle."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim.swa_utils import update_bn

from neuralbayes.bayes import conditional_entropy, entropy, posterior, prior
from neuralbayes.data.images import ImageSource, as_source
from neuralbayes.data.normalize import Normalization
from neuralbayes.networks.encoders import PAPER_CHANNELS, convolutional_encoder, scaled_channels
from neuralbayes.networks.filling import check_finite, fill
from neuralbayes.networks.hidden import HiddenStates
from neuralbayes.system.files import read_json, read_tensors, write_json, write_tensors
from neuralbayes.training.inference import evaluation_mode, in_blocks

WIDTHS = {"paper": 1.0, "small": 0.25, "tiny": 0.08}  # relative to the paper's channels, 200-500-700-1000
MIN_SIDE = 22  # pixels: 22-20-10-8-6-3-1 through the layers
STATES = ("relu1", "relu2", "relu3", "relu4")
MAX_FEATURES = 4096  # per image

FORMAT = 1


class ImageEncoder(nn.Module):
    """The convolutional encoder of the paper, with the normalisation of its training images.

    Parameters
    ----------
    size : {"paper", "small", "tiny"}
        Width: 200-500-700-1000 channels, a quarter, or a twelfth.
    shape : tuple of int
        (H, W, C) of the images; H and W at least 22.
    normalization : Normalization
    batch_norm : bool, default=True

    Examples
    --------
    >>> import neuralbayes as nb
    >>> images = nb.datasets.load("digits").train.images[:40].repeat(3, axis=1).repeat(3, axis=2)  # of 24x24 pixels
    >>> config = nb.PretrainConfig(encoder="tiny", epochs=1, batch_size=20, microbatch_size=20)
    >>> encoder = nb.pretrain(images, config, out="run")
    >>> nb.ImageEncoder.load("run").features(images, "relu4").shape
    (40, 80)
    """

    def __init__(
        self, size: str, shape: tuple[int, int, int], normalization: Normalization, batch_norm: bool = True
    ) -> None:
        super().__init__()
        if size not in WIDTHS:
            raise ValueError(f"`encoder` must be one of {sorted(WIDTHS)}, got {size!r}")
        if min(shape[:2]) < MIN_SIDE:
            raise ValueError(
                f"images must be at least {MIN_SIDE}x{MIN_SIDE} pixels for this encoder, got {shape[0]}x{shape[1]}"
            )
        self.size = size
        self.shape = shape
        self.batch_norm = batch_norm
        self.normalization = normalization
        channels = scaled_channels(PAPER_CHANNELS, WIDTHS[size])
        self.network = convolutional_encoder(channels, in_channels=shape[2], batch_norm=batch_norm)
        self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def prepare(self, images: NDArray[np.uint8]) -> Tensor:
        """Convert uint8 images (n, H, W, C) to the input of the network: float32 (n, C, H, W), channels last in
        memory."""
        return self.normalization(images).contiguous(memory_format=torch.channels_last)

    def forward(self, x: Tensor) -> Tensor:
        """The last hidden state of prepared images: (n, C, H, W) -> (n, channels, H', W')."""
        state: Tensor = self.network(x)
        return state

    def features(
        self,
        images: ImageSource | NDArray[np.generic],
        state: str = "relu4",
        *,
        max_size: int = MAX_FEATURES,
        batch_size: int = 500,
        verbose: bool = False,
    ) -> NDArray[np.float32]:
        """Return a hidden state of all images as vectors.

        Parameters
        ----------
        images : Images, ImageSource or ndarray of shape (n, H, W), (n, H, W, C) or (n, C, H, W)
            Images with the size and channels of the training images.
        state : str, default="relu4"
            One of relu1 to relu4.
        max_size : int, default=4096
            Maximum length of a vector. A larger state is averaged over windows that are just large enough.
        batch_size : int, default=500
        verbose : bool, default=False

        Returns
        -------
        ndarray of shape (n_images, n_features), float32
        """
        source = as_source(images)
        if tuple(source.shape) != tuple(self.shape):
            raise ValueError(
                f"images must have the shape {self.shape} that the encoder was trained on, got {source.shape}"
            )
        if len(source) == 0:
            raise ValueError("`images` must hold at least one image")
        layers = self.layers(state)
        device = next(self.network.parameters()).device

        def flat(indices: NDArray[np.int64]) -> Tensor:
            batch = source.read(indices)
            if len(batch) == 1:  # a single image would be summed in a different order
                batch = np.repeat(batch, 2, axis=0)
            return flat_state(layers(self.prepare(batch).to(device)), max_size)[: len(indices)]

        with evaluation_mode(self):
            options: dict[str, Any] = {"description": "batches of features", "verbose": verbose, "dtype": np.float32}
            return in_blocks(flat, len(source), block=batch_size, **options)

    def layers(self, state: str) -> nn.Sequential:
        """The layers up to a hidden state, "relu1" to "relu4", which share their weights with this encoder."""
        if state not in STATES:
            raise ValueError(f"`state` must be one of {STATES}, got {state!r}")
        children = list(self.network.named_children())
        last = [name for name, _ in children].index(state)
        return nn.Sequential(*[module for _, module in children[: last + 1]])

    def save(self, folder: str | Path) -> None:
        """Write encoder.json and encoder.safetensors to `folder`."""
        folder = Path(folder)
        tensors = {f"network.{k}": v for k, v in self.network.state_dict().items()}
        tensors |= {f"normalization.{k}": torch.from_numpy(v) for k, v in self.normalization.to_arrays().items()}
        write_tensors(folder / "encoder.safetensors", tensors, {})
        description = {
            "format": FORMAT,
            "size": self.size,
            "shape": list(self.shape),
            "batch_norm": self.batch_norm,
            "normalization": self.normalization.to_dict(),
        }
        write_json(folder / "encoder.json", description)

    @classmethod
    def load(cls, folder: str | Path) -> ImageEncoder:
        """Load a saved encoder. Raises a ValueError that names the file if it is damaged."""
        folder = Path(folder)
        if not (folder / "encoder.json").is_file():
            found = f"got {folder}"
            if (folder / "config.json").is_file():
                found = f"but the run in {folder} has not finished; call pretrain with the same settings to continue it"
            raise FileNotFoundError(f"`folder` must hold a trained encoder with its encoder.json, {found}")
        description: Any = read_json(folder / "encoder.json")
        if not isinstance(description, Mapping) or description.get("format") != FORMAT:
            raise ValueError(f"{folder / 'encoder.json'} does not describe an encoder of format {FORMAT}")
        tensors, _ = read_tensors(folder / "encoder.safetensors")
        try:
            check_finite(tensors)
            arrays = {k.removeprefix("normalization."): t.numpy() for k, t in tensors.items() if k.startswith("norm")}
            normalization = Normalization.from_dict(description["normalization"], arrays)
            height, width, channels = (int(n) for n in description["shape"])
            shape, batch_norm = (height, width, channels), bool(description["batch_norm"])
            with torch.device("meta"):
                encoder = cls(description["size"], shape, normalization, batch_norm)
            weights = {k.removeprefix("network."): t for k, t in tensors.items() if k.startswith("network.")}
            fill(encoder.network, weights)
        except (KeyError, TypeError, ValueError, RuntimeError, OverflowError) as error:
            raise ValueError(f"{folder} does not hold a whole encoder ({error}); it may be damaged") from error
        return encoder.eval()


def random_encoder(
    like: ImageEncoder, images: ImageSource | NDArray[np.uint8], seed: int = 0, *, n_images: int = 1000
) -> ImageEncoder:
    """An encoder with the architecture and normalisation of `like`, and the initial weights of pretraining with `seed`.

    The statistics of its batch normalisation are those of the first `n_images`: those of a new layer, mean 0 and
    variance 1, would amount to no batch normalisation.
    """
    source = as_source(images)
    if tuple(source.shape) != tuple(like.shape):
        raise ValueError(f"`images` must have the shape {like.shape} of the encoder's images, got {source.shape}")
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        encoder = ImageEncoder(like.size, like.shape, like.normalization, like.batch_norm)
    n = min(n_images, len(source))
    parts = np.array_split(np.arange(n), max(1, n // 100))
    update_bn((encoder.prepare(source.read(rows)) for rows in parts), encoder)
    return encoder.eval()


def flat_state(state: Tensor, max_size: int) -> Tensor:
    """Flatten a state to vectors, (n, C, H, W) -> (n, m), averaged over windows so that m <= max_size.

    The windows cover the whole state and may overlap. A state with more than `max_size` channels becomes the mean over
    all positions.
    """
    channels, height, width = state.shape[1:]
    window = 1
    while channels * math.ceil(height / window) * math.ceil(width / window) > max_size and window < max(height, width):
        window += 1
    size = math.ceil(height / window), math.ceil(width / window)
    return nn.functional.adaptive_avg_pool2d(state, size).flatten(1)


@dataclass(frozen=True, eq=False)
class StateUse:
    """Use of the states of a hidden layer: p(z), (n_states,), and I(x; z) in nats, averaged over positions."""

    p_z: Tensor
    information: float

    @property
    def n_states(self) -> int:
        return len(self.p_z)

    @property
    def n_dead(self) -> int:
        return int(is_dead(self.p_z).sum())

    @property
    def bound(self) -> float:
        """log n_states, the upper bound of the information."""
        return math.log(self.n_states)

    def to_dict(self) -> dict[str, float]:
        """A summary as JSON types."""
        information, bound = round(self.information, 4), round(self.bound, 4)
        return {"states": self.n_states, "information": information, "bound": bound, "dead": self.n_dead}


@torch.no_grad()
def state_use(encoder: ImageEncoder, source: ImageSource, n_images: int = 2048) -> dict[str, StateUse]:
    """Use of the states of each hidden layer of `encoder`, in evaluation mode, on the first `n_images`.

    n images can show at most log n nats, so use more images than the layers have states.
    """
    states = HiddenStates(encoder.network, STATES, scales=(1,))
    device = next(states.parameters()).device
    n = min(n_images, len(source))
    p_z: dict[str, Tensor] = {}
    h_zx = dict.fromkeys(STATES, 0.0)
    for indices in np.array_split(np.arange(n), math.ceil(n / 256)):
        share = len(indices) / n
        for name, logits in states(encoder.prepare(source.read(indices)).to(device)).items():
            p_zx = posterior(logits)
            part = share * prior(p_zx)
            p_z[name] = p_z[name] + part if name in p_z else part
            h_zx[name] += share * float(conditional_entropy(p_zx))
    return {
        name: StateUse(p.mean(dim=(1, 2)).cpu(), max(0.0, float(entropy(p, dim=0).mean()) - h_zx[name]))
        for name, p in p_z.items()
    }


def is_dead(p_z: Tensor) -> Tensor:
    """Whether states are dead, with p(z) below a tenth of 1 / K: (K,) -> (K,) of bool."""
    return p_z < 0.1 / len(p_z)
