"""Export the encoder of a run for other programs."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from neuralbayes.data.normalize import whitened
from neuralbayes.data.sources import ArraySource
from neuralbayes.features.encoder import MAX_FEATURES, ImageEncoder, flat_state
from neuralbayes.features.programs import Format, export_network

TOLERANCE = 1e-4
"""Maximum error of an exported network, relative to its largest feature or to 1."""


class FeatureNetwork(nn.Module):
    """Map raw images to features, including the normalisation: uint8 (n, H, W, C) -> float32 (n, n_features).

    Parameters
    ----------
    encoder : ImageEncoder
        Copied.
    state : str, default="relu4"
    """

    scale: Tensor
    offset: Tensor
    whitening: Tensor | None

    def __init__(self, encoder: ImageEncoder, state: str = "relu4") -> None:
        super().__init__()
        std = encoder.normalization.std.astype(np.float64)
        self.register_buffer("scale", torch.from_numpy((1 / (255 * std)).astype(np.float32)))
        self.register_buffer("offset", torch.from_numpy((-encoder.normalization.mean / std).astype(np.float32)))
        kernel = encoder.normalization.whitening
        self.register_buffer("whitening", None if kernel is None else torch.from_numpy(kernel))
        self.layers = copy.deepcopy(encoder.layers(state)).cpu()
        self.eval()

    def forward(self, images: Tensor) -> Tensor:
        x = images.permute(0, 3, 1, 2).to(torch.float32) * self.scale + self.offset
        if self.whitening is not None:
            x = whitened(x, self.whitening)
        return flat_state(self.layers(x), MAX_FEATURES)


def export_encoder(encoder: ImageEncoder, path: str | Path, to: Format, *, state: str = "relu4") -> float:
    """Export an encoder with its normalisation, for any number of uint8 images (n, H, W, C).

    Parameters
    ----------
    encoder : ImageEncoder
    path : path
    to : {"onnx", "torch"}
        ONNX (needs the extra ``export``), or a program for `torch.export.load`. Neither is a pickle.
    state : str, default="relu4"
        Hidden state to return, as in :meth:`neuralbayes.ImageEncoder.features`.

    Returns
    -------
    float
        The maximum difference from the original features on random images.

    Raises
    ------
    ValueError
        If the difference is too large. Nothing is written then.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> images = nb.datasets.load("digits").train.images[:40].repeat(3, axis=1).repeat(3, axis=2)  # of 24x24 pixels
    >>> config = nb.PretrainConfig(encoder="tiny", epochs=1, batch_size=20, microbatch_size=20)
    >>> nb.export_encoder(nb.pretrain(images, config), "encoder.pt2", to="torch") < 1e-3
    True
    >>> torch.export.load("encoder.pt2").module()(torch.from_numpy(images)).shape
    torch.Size([40, 80])
    """
    network = FeatureNetwork(encoder, state)
    images = np.random.default_rng(0).integers(0, 256, (5, *encoder.shape), dtype=np.uint8)
    expected = encoder.features(ArraySource(images, channels_first=False), state)
    return export_network(
        network,
        images,
        [expected],
        path,
        to,
        names=("images", ("features",)),
        tolerance=[TOLERANCE],
        metadata={"input": f"uint8 images (n, {', '.join(map(str, encoder.shape))})", "output": f"features of {state}"},
    )
