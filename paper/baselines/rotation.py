"""Rotation prediction (Gidaris, Singh and Komodakis 2018)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from neuralbayes.data.images import as_source
from neuralbayes.data.normalize import Normalization
from neuralbayes.distributed import seeded_globally
from neuralbayes.features.encoder import ImageEncoder
from paper.baselines.training import EncoderConfig, state_shape, train_in_folder

N_ROTATIONS = 4


@dataclass(frozen=True)
class RotationConfig(EncoderConfig):
    """Settings of rotation prediction. The defaults are among those of the Neural Bayes paper (section 5.1.2).

    A batch has `batch_size` images, each in all four rotations.
    """

    method: ClassVar[str] = "rotation"

    batch_size: int = 50


def rotation(images: Any, config: RotationConfig, *, out: str | Path | None = None) -> ImageEncoder:
    """Learn features of unlabelled square images by predicting which of four rotations was applied.

    Notes
    -----
    Method of Gidaris, Singh and Komodakis, "Unsupervised Representation Learning by Predicting Image Rotations", ICLR
    2018 (arXiv:1803.07728), with the paper's encoder instead of their network in network, and Adam instead of SGD.
    Images are rotated after normalisation. Otherwise, the mean of each pixel would reveal the rotation.
    """
    source = as_source(images)
    with seeded_globally(config.seed):
        normalization = Normalization.fit(source, per=config.normalize, progress=False)
        encoder = ImageEncoder(config.encoder, source.shape, normalization)
        head = nn.Linear(math.prod(state_shape(encoder, "relu4")), N_ROTATIONS)
        classifier = nn.Sequential(encoder.network, nn.Flatten(), head)

        def fetch(indices: Tensor) -> Tensor:
            return encoder.prepare(source.read(indices.numpy()))

        train_in_folder(classifier, _step, fetch, len(source), config, out)
    return encoder.eval()


def rotated(x: Tensor) -> tuple[Tensor, Tensor]:
    """Every image in all rotations, with their labels: (n, C, H, H) -> (4 n, C, H, H), (4 n,).

    Examples
    --------
    >>> x, turns = rotated(torch.tensor([[[[1, 2], [3, 4]]]]))
    >>> x.flatten(1).tolist(), turns.tolist()
    ([[1, 2, 3, 4], [2, 4, 1, 3], [4, 3, 2, 1], [3, 1, 4, 2]], [0, 1, 2, 3])
    """
    copies = torch.cat([torch.rot90(x, turns, dims=(2, 3)) for turns in range(N_ROTATIONS)])
    turns = torch.arange(N_ROTATIONS, device=x.device).repeat_interleave(len(x))
    return copies.contiguous(memory_format=torch.channels_last), turns


def _step(network: nn.Module, batch: Tensor) -> dict[str, Tensor]:
    x, turns = rotated(batch)
    logits = network(x)
    loss = nn.functional.cross_entropy(logits, turns)
    torch.autograd.backward(loss)
    return {"loss": loss, "accuracy": (logits.argmax(1) == turns).float().mean()}
