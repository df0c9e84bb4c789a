"""An encoder with a linear layer on its last state that predicts classes or clusters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from neuralbayes.distributed.global_batch import global_batch
from numpy.typing import NDArray
from torch import Tensor, nn

from neuralbayes.data.normalize import Normalization
from neuralbayes.data.sources import ImageSource, as_source
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.system.files import read_tensors, write_tensors
from neuralbayes.training.inference import evaluation_mode, in_blocks

HEAD_FILE = "head.safetensors"


class HeadedEncoder(ImageEncoder):
    """The paper's encoder with a linear layer on its last hidden state.

    It is an :class:`neuralbayes.ImageEncoder`: its features are the states below the linear layer, and
    ``ImageEncoder.load`` reads its folder.

    Parameters
    ----------
    size : {"paper", "small", "tiny"}
    shape : tuple of int
        (H, W, C) of the images.
    normalization : Normalization
    n_outputs : int
        Number of classes or clusters.
    pooled : bool, default=False
        Average the last state over its positions, instead of using all of it.

    Attributes
    ----------
    head : nn.Sequential
        Maps the last hidden state to logits.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> images = nb.datasets.load("digits").train.images[:40].repeat(3, axis=1).repeat(3, axis=2)  # of 24x24 pixels
    >>> config = nb.baselines.RotationConfig(encoder="tiny", epochs=1)
    >>> encoder = nb.baselines.rotation(images, config, out="run")
    >>> loaded = nb.baselines.HeadedEncoder.load("run")
    >>> np.array_equal(loaded.predict(images), encoder.predict(images))
    True
    """

    def __init__(
        self,
        size: str,
        shape: tuple[int, int, int],
        normalization: Normalization,
        n_outputs: int,
        pooled: bool = False,
    ) -> None:
        super().__init__(size, shape, normalization)
        channels, height, width = state_shape(self, "relu4")
        n_features = channels if pooled else channels * height * width
        self.head = nn.Sequential(
            nn.AdaptiveAvgPool2d(1) if pooled else nn.Identity(), nn.Flatten(), nn.Linear(n_features, n_outputs)
        )

    @property
    def classifier(self) -> nn.Sequential:
        """Network and head, which map prepared images to logits and share their weights with this encoder."""
        return nn.Sequential(self.network, self.head)

    def predict_proba(self, images: ImageSource | NDArray[np.uint8], *, batch_size: int = 500) -> NDArray[np.float32]:
        """Return the softmax output for each image: (n, n_outputs)."""
        source = as_source(images)
        classifier = self.classifier
        device = next(classifier.parameters()).device
        with evaluation_mode(self):
            return in_blocks(
                lambda rows: classifier(self.prepare(source.read(rows)).to(device)).softmax(dim=1),
                len(source),
                block=batch_size,
                even=True,
            )

    def predict(self, images: ImageSource | NDArray[np.uint8], *, batch_size: int = 500) -> NDArray[np.int64]:
        """Return the most probable output for each image: (n,)."""
        labels: NDArray[np.int64] = self.predict_proba(images, batch_size=batch_size).argmax(axis=1)
        return labels

    def save(self, folder: str | Path) -> None:
        """Write encoder.json, encoder.safetensors and head.safetensors to `folder`."""
        super().save(folder)
        pooled = isinstance(self.head[0], nn.AdaptiveAvgPool2d)
        write_tensors(Path(folder) / HEAD_FILE, self.head.state_dict(), {"pooled": str(pooled)})

    @classmethod
    def load(cls, folder: str | Path) -> HeadedEncoder:
        """Load a saved encoder. A damaged file raises a ValueError that names it."""
        plain = ImageEncoder.load(folder)
        path = Path(folder) / HEAD_FILE
        weights, metadata = read_tensors(path)
        try:
            pooled = metadata["pooled"] == "True"
            encoder = cls(plain.size, plain.shape, plain.normalization, len(weights["2.bias"]), pooled)
            encoder.network.load_state_dict(plain.network.state_dict())
            encoder.head.load_state_dict(weights)
        except (KeyError, TypeError, RuntimeError) as error:
            raise ValueError(f"{path} does not hold the head of this encoder ({error}); it may be damaged") from error
        return encoder.eval()


@torch.no_grad()
def state_shape(encoder: ImageEncoder, state: str) -> tuple[int, int, int]:
    """Channels, height and width of a hidden state."""
    height, width, channels = encoder.shape
    with evaluation_mode(encoder):
        output: Tensor = encoder.layers(state)(torch.zeros(1, channels, height, width))
    return output.shape[1], output.shape[2], output.shape[3]


def classify(network: nn.Module, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Cross-entropy and accuracy of `network` on `x`; adds the gradient to the parameters."""
    with global_batch(network, (x, labels)) as batch:
        x, labels = batch.samples
        logits = batch(x)
        loss = nn.functional.cross_entropy(logits, labels)
        torch.autograd.backward(batch.share * loss)
    return {"loss": loss, "accuracy": (logits.argmax(1) == labels).float().mean()}
