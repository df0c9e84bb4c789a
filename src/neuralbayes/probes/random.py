"""A random encoder, as a baseline for trained ones."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from neuralbayes.data.sources import ImageSource, as_source
from neuralbayes.features.encoder import ImageEncoder


def random_encoder(
    like: ImageEncoder, images: ImageSource | NDArray[np.uint8], seed: int = 0, *, n_images: int = 1000
) -> ImageEncoder:
    """Create an encoder with the architecture and normalisation of `like` and random weights.

    Parameters
    ----------
    like : ImageEncoder
    images : ImageSource or ndarray of shape (n, H, W, C), uint8
        Training images.
    seed : int, default=0
        With the seed of a pretraining, these are its initial weights.
    n_images : int, default=1000
        Number of images, taken from the beginning, to estimate the statistics of batch normalisation.

    Returns
    -------
    ImageEncoder
        In evaluation mode.

    Notes
    -----
    A new batch normalisation layer assumes mean 0 and variance 1 for every channel, which amounts to no batch
    normalisation, as in the random encoder of the authors' code. The paper says "identical architecture". Here the
    statistics are averaged over images in training mode, as if training had left the weights unchanged.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> images = nb.datasets.load("digits").train.images[:40].repeat(3, axis=1).repeat(3, axis=2)  # of 24x24 pixels
    >>> config = nb.PretrainConfig(encoder="tiny", epochs=1, batch_size=20, microbatch_size=20)
    >>> encoder = nb.pretrain(images, config)
    >>> untrained = nb.random_encoder(encoder, images, seed=config.seed)  # where it started
    >>> bool(np.allclose(untrained.features(images), encoder.features(images)))
    False
    """
    source = as_source(images)
    if tuple(source.shape) != tuple(like.shape):
        raise ValueError(f"`images` must have the shape {like.shape} of the encoder's images, got {source.shape}")
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        encoder = ImageEncoder(like.size, like.shape, like.normalization, like.batch_norm)
    norms = [module for module in encoder.modules() if isinstance(module, nn.BatchNorm2d)]
    momenta = [module.momentum for module in norms]
    for module in norms:
        module.momentum = None  # the mean over all batches with equal weights
    n = min(n_images, len(source))
    encoder.train()
    with torch.no_grad():
        for indices in np.array_split(np.arange(n), max(1, n // 100)):
            encoder(encoder.prepare(source.read(indices)))
    for module, momentum in zip(norms, momenta, strict=True):
        module.momentum = momentum
    return encoder.eval()
