"""SimCLR (Chen et al. 2020) on the paper's encoder, as a peer for features of images.

lightly, which has it too, needs torchvision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from paper.baselines.training import EncoderConfig, state_shape, train_in_folder
from torch import Tensor, nn

from neuralbayes.data.images import as_source
from neuralbayes.data.normalize import Normalization
from neuralbayes.distributed import seeded_globally
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.features.pretraining import augmented
from neuralbayes.networks.encoders import mlp

GREY = torch.tensor([0.299, 0.587, 0.114]).reshape(3, 1, 1)


@dataclass(frozen=True)
class SimCLRConfig(EncoderConfig):
    """Settings of SimCLR. A batch has two views of `batch_size` images.

    Attributes
    ----------
    crops : bool
        Views are the random crops, flips and colours of SimCLR; if not, the flips and shifts that
        `neuralbayes.pretrain` offers.
    temperature : float
        That of the authors for CIFAR-10.
    """

    method: ClassVar[str] = "simclr"

    batch_size: int = 250
    schedule: Any = "cosine"
    crops: bool = True
    temperature: float = 0.5


def simclr(images: Any, config: SimCLRConfig, *, out: str | Path | None = None) -> ImageEncoder:
    """Learn features of unlabelled images by recognising which two views show the same one."""
    source = as_source(images)
    with seeded_globally(config.seed):
        normalization = Normalization.fit(source, per=config.normalize, progress=False)
        encoder = ImageEncoder(config.encoder, source.shape, normalization)
        channels = state_shape(encoder, "relu4")[0]
        network = nn.Sequential(encoder.network, nn.AdaptiveAvgPool2d(1), nn.Flatten(), mlp((channels, channels, 128)))
        views = crops if config.crops else augmented

        def fetch(indices: Tensor) -> Tensor:
            batch = source.read(indices.numpy())
            return torch.cat([encoder.prepare(views(batch)) for _ in range(2)])

        def step(network: nn.Module, batch: Tensor) -> dict[str, Tensor]:
            loss = nt_xent(network(batch), config.temperature)
            torch.autograd.backward(loss)
            return {"loss": loss}

        train_in_folder(network, step, fetch, len(source), config, out)
    return encoder.eval()


def nt_xent(codes: Tensor, temperature: float) -> Tensor:
    """Equation 1 of SimCLR for codes (2 n, d), of which i and i + n are views of the same image."""
    unit = nn.functional.normalize(codes.float())
    similarity = (unit @ unit.T / temperature).fill_diagonal_(-math.inf)
    return nn.functional.cross_entropy(similarity, torch.arange(len(codes)).roll(len(codes) // 2))


def crops(batch: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A random part of each colour image, scaled to its size, with a flip and with other colours (appendix A)."""
    n = len(batch)
    area, ratio = torch.empty(n).uniform_(0.08, 1.0), torch.empty(n).uniform_(math.log(3 / 4), math.log(4 / 3)).exp()
    width, height = (area * ratio).sqrt().clamp_max(1.0), (area / ratio).sqrt().clamp_max(1.0)
    x, y = ((1.0 - side) * (2.0 * torch.rand(n) - 1.0) for side in (width, height))
    zero = torch.zeros(n)
    flip = torch.randint(0, 2, (n,)) * 2 - 1
    places = torch.stack([flip * width, zero, x, zero, height, y], dim=1).reshape(n, 2, 3)
    pixels = torch.from_numpy(batch).permute(0, 3, 1, 2).float() / 255
    grid = nn.functional.affine_grid(places, list(pixels.shape), align_corners=False)
    views = nn.functional.grid_sample(pixels, grid, padding_mode="border", align_corners=False)

    def factor(strength: float) -> Tensor:  # of those four in five images whose colours change
        return torch.where(changed, torch.empty(n, 1, 1, 1).uniform_(1.0 - strength, 1.0 + strength), 1.0)

    changed = torch.rand(n, 1, 1, 1) < 0.8
    views = (views * factor(0.4)).clamp(0.0, 1.0)
    views = views.mean(dim=(1, 2, 3), keepdim=True).lerp(views, factor(0.4)).clamp(0.0, 1.0)
    grey = (views * GREY).sum(dim=1, keepdim=True)
    views = grey.lerp(views, torch.where(torch.rand(n, 1, 1, 1) < 0.2, 0.0, factor(0.4))).clamp(0.0, 1.0)
    return np.asarray((255 * views).round().byte().permute(0, 2, 3, 1))
