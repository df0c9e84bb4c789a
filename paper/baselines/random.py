"""A random encoder, with or without batch normalisation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuralbayes.data.images import as_source
from neuralbayes.data.normalize import Normalization, Per
from neuralbayes.features.encoder import ImageEncoder, random_encoder


@dataclass(frozen=True)
class RandomConfig:
    """Settings of a random encoder.

    Attributes
    ----------
    batch_norm : bool
        Whether the encoder has batch normalisation, with statistics of the first `n_images` ("identical architecture"
        in the paper). The authors' code has none.
    encoder, normalize, seed
        As in :class:`neuralbayes.PretrainConfig`.
    """

    encoder: str = "paper"
    batch_norm: bool = True
    normalize: Per = "dimension"
    n_images: int = 1000
    seed: int = 0


def random(images: Any, config: RandomConfig, *, out: str | Path | None = None) -> ImageEncoder:
    """Create a random encoder: the initial weights of the other methods with this seed. Nothing is written."""
    source = as_source(images)
    normalization = Normalization.fit(source, per=config.normalize, progress=False)
    like = ImageEncoder(config.encoder, source.shape, normalization, config.batch_norm)
    return random_encoder(like, source, config.seed, n_images=config.n_images)
