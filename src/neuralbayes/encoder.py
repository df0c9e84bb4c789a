"""A trained image encoder: normalisation, network, and the names of its hidden states; saved without pickle."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from neuralbayes.data.normalize import Normalization
from neuralbayes.data.sources import ImageSource
from neuralbayes.files import read_json, read_tensors, write_json, write_tensors
from neuralbayes.networks.encoders import PAPER_CHANNELS, convolutional_encoder, scaled_channels
from neuralbayes.training.progress import progress

WIDTHS = {"paper": 1.0, "small": 0.25, "tiny": 0.08}
"""Width of each named encoder against the paper's channels, 200-500-700-1000."""

STATES = ("relu1", "relu2", "relu3", "relu4")
FORMAT = 1


class ImageEncoder(nn.Module):
    """The paper's convolutional encoder with the normalisation of the images that it was trained on.

    Parameters
    ----------
    size : {"paper", "small", "tiny"}
        200-500-700-1000 channels, a quarter of them, or a twelfth.
    shape : tuple of int
        (H, W, C) of the images; H and W at least 18.
    normalization : Normalization
    batch_norm : bool, default=True
    """

    def __init__(
        self, size: str, shape: tuple[int, int, int], normalization: Normalization, batch_norm: bool = True
    ) -> None:
        super().__init__()
        if size not in WIDTHS:
            raise ValueError(f"`encoder` must be one of {sorted(WIDTHS)}, got {size!r}")
        if min(shape[:2]) < 18:
            raise ValueError(f"images must be at least 18x18 pixels for this encoder, got {shape[0]}x{shape[1]}")
        self.size = size
        self.shape = shape
        self.batch_norm = batch_norm
        self.normalization = normalization
        channels = scaled_channels(PAPER_CHANNELS, WIDTHS[size])
        self.network = convolutional_encoder(channels, in_channels=shape[2], batch_norm=batch_norm)
        self.network.to(memory_format=torch.channels_last)

    def prepare(self, images: NDArray[np.uint8]) -> Tensor:
        """uint8 images (n, H, W, C) as the network takes them: float32 (n, C, H, W), channels last in memory."""
        return self.normalization(images).contiguous(memory_format=torch.channels_last)

    def forward(self, x: Tensor) -> Tensor:
        """The last hidden state of prepared images: (n, C, H, W) -> (n, channels, H', W')."""
        state: Tensor = self.network(x)
        return state

    @torch.no_grad()
    def features(
        self,
        source: ImageSource,
        state: str = "relu4",
        *,
        max_size: int = 4096,
        batch_size: int = 500,
        verbose: bool = False,
    ) -> NDArray[np.float32]:
        """A hidden state of all images as vectors.

        Parameters
        ----------
        source : ImageSource
        state : str, default="relu4"
            One of relu1 to relu4.
        max_size : int, default=4096
            Longest vector: a larger state is averaged over windows until it fits.
        batch_size : int, default=500
        verbose : bool, default=False

        Returns
        -------
        ndarray of shape (n_images, n_features), float32
        """
        if state not in STATES:
            raise ValueError(f"`state` must be one of {STATES}, got {state!r}")
        if tuple(source.shape) != tuple(self.shape):
            raise ValueError(
                f"images must have the shape {self.shape} that the encoder was trained on, got {source.shape}"
            )
        was_training = self.training
        self.eval()
        starts = range(0, len(source), batch_size)
        features: NDArray[np.float32] | None = None
        upto = list(self.network.named_children())
        layers = nn.Sequential(*[m for _, m in upto[: 1 + [n for n, _ in upto].index(state)]])
        with progress(len(starts), description="batches of features", enabled=verbose) as display:
            for start in starts:
                indices = np.arange(start, min(start + batch_size, len(source)))
                part = _flat(layers(self.prepare(source.read(indices))), max_size)
                if features is None:
                    features = np.empty((len(source), part.shape[1]), dtype=np.float32)
                features[indices] = part.numpy()
                display.advance(samples=len(indices))
        self.train(was_training)
        if features is None:
            raise ValueError("`source` must hold at least one image")
        return features

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
        """Read what `save` wrote; a damaged or foreign file gets a ValueError that names it."""
        folder = Path(folder)
        if not (folder / "encoder.json").is_file():
            raise FileNotFoundError(f"`folder` must hold a trained encoder with its encoder.json, got {folder}")
        description: Any = read_json(folder / "encoder.json")
        if not isinstance(description, Mapping) or description.get("format") != FORMAT:
            raise ValueError(f"{folder / 'encoder.json'} does not describe an encoder of format {FORMAT}")
        tensors, _ = read_tensors(folder / "encoder.safetensors")
        try:
            arrays = {k.removeprefix("normalization."): t.numpy() for k, t in tensors.items() if k.startswith("norm")}
            normalization = Normalization.from_dict(description["normalization"], arrays)
            height, width, channels = (int(n) for n in description["shape"])
            encoder = cls(
                description["size"], (height, width, channels), normalization, bool(description["batch_norm"])
            )
            weights = {k.removeprefix("network."): t for k, t in tensors.items() if k.startswith("network.")}
            encoder.network.load_state_dict(weights)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise ValueError(f"{folder} does not hold a whole encoder ({error}); it may be damaged") from error
        return encoder.eval()


def _flat(state: Tensor, max_size: int) -> Tensor:
    """A state as vectors, (n, C, H, W) -> (n, m), averaged over windows as large as it takes for m <= max_size."""
    window = 1
    height, width = state.shape[2:]
    while state.shape[1] * (height // window) * (width // window) > max_size and window < min(height, width):
        window += 1
    return nn.functional.avg_pool2d(state, window).flatten(1)
