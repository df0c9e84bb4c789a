"""Rotation prediction (Gidaris, Singh and Komodakis 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from neuralbayes.features.encoder_training import EncoderConfig, Learner, train_encoder
from numpy.typing import NDArray
from torch import Tensor, nn

from neuralbayes.data.normalize import Normalization
from neuralbayes.data.sources import Images, ImageSource
from neuralbayes.training import Callback
from paper.baselines.headed import HeadedEncoder, classify

N_ROTATIONS = 4


@dataclass(frozen=True)
class RotationConfig(EncoderConfig):
    """Settings of rotation prediction. The defaults are among those of the Neural Bayes paper (section 5.1.2).

    Attributes
    ----------
    batch_size : int
        Images per update, each in all four rotations.
    pooled : bool
        Predict from the average of the last state over its positions, instead of all of it.
    encoder, normalize, augment, epochs, patience, learning_rate, weight_decay, schedule, seed
        As in :class:`neuralbayes.PretrainConfig`.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> baselines.RotationConfig(encoder="small", epochs=20).batch_size
    50
    """

    method: ClassVar[str] = "rotation"

    batch_size: int = 50
    pooled: bool = False


def rotation(
    images: Images | ImageSource | NDArray[np.uint8],
    config: RotationConfig,
    *,
    out: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: bool = False,
) -> HeadedEncoder:
    """Learn features of unlabelled images by predicting which of four rotations was applied.

    Parameters
    ----------
    images : Images, ImageSource or ndarray of shape (n, H, W, C), uint8
        Square images.
    config : RotationConfig
    out, callbacks, verbose
        As in :func:`neuralbayes.pretrain`.

    Returns
    -------
    HeadedEncoder
        Its outputs are the counterclockwise rotations by 0, 90, 180 and 270 degrees.

    Notes
    -----
    Method of Gidaris, Singh and Komodakis, "Unsupervised Representation Learning by Predicting Image Rotations", ICLR
    2018 (arXiv:1803.07728), with the encoder of this library instead of their network in network, and Adam instead of
    SGD.

    Images are rotated after normalisation. Otherwise, the mean of each pixel would reveal the rotation.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> images = nb.datasets.load("digits").train.images[:40].repeat(3, axis=1).repeat(3, axis=2)  # of 24x24 pixels
    >>> encoder = baselines.rotation(images, baselines.RotationConfig(encoder="tiny", epochs=1))
    >>> encoder.predict_proba(images).shape  # of the four ways up
    (40, 4)
    """

    def learner(source: ImageSource, normalization: Normalization) -> Learner[HeadedEncoder]:
        height, width, _ = source.shape
        if height != width:
            raise ValueError(f"`images` must be square to be rotated, got {height}x{width} pixels")
        encoder = HeadedEncoder(config.encoder, source.shape, normalization, N_ROTATIONS, config.pooled)
        return Learner(encoder, encoder.classifier, _step)

    return train_encoder(images, config, learner, out=out, callbacks=callbacks, verbose=verbose)


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
    return classify(network, x, turns)
