"""Rotate, stretch, slant and shift images a little: no cluster should depend on such changes."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

N_MOVED = 8
"""Number of moved versions of each image, fewer if images are many or large."""

MOVED_NUMBERS = 2**29
"""Total number of pixels to move; every image gets at least one version."""

ANGLE = math.radians(8.0)
STRETCH = 0.08  # largest logarithm of the factor of both sides, and of their ratio
SLANT = 0.08
SHIFT = 0.05  # share of the width, and of the height


def n_versions(n_images: int, n_pixels: int) -> int:
    """Number of moved versions to make of each image.

    Parameters
    ----------
    n_images, n_pixels : int
        Number of images, and of numbers per image (pixels times channels).

    Examples
    --------
    >>> n_versions(60_000, 28 * 28), n_versions(60_000, 32 * 32 * 3), n_versions(10_000, 224 * 224 * 3)
    (8, 2, 1)
    """
    return int(np.clip(MOVED_NUMBERS // (n_images * n_pixels), 1, N_MOVED))


def moved(images: Tensor, rng: np.random.RandomState) -> Tensor:
    """Apply a different small affine map to each image; pixels from outside repeat the nearest border pixel.

    Parameters
    ----------
    images : Tensor of shape (n, C, H, W)
    rng : RandomState

    Returns
    -------
    Tensor of the shape of `images`

    Examples
    --------
    >>> moved(torch.full((2, 1, 4, 4), 0.5), np.random.RandomState(0)).unique()
    tensor([0.5000])
    """
    grid = nn.functional.affine_grid(
        torch.from_numpy(_affine_maps(len(images), rng)).to(images.dtype), list(images.shape), align_corners=False
    )
    return nn.functional.grid_sample(images, grid, padding_mode="border", align_corners=False)


def _affine_maps(n: int, rng: np.random.RandomState) -> NDArray[np.float64]:
    """Maps from positions in the moved image to positions in the image, from -1 to 1: (n, 2, 3)."""
    angle, size, aspect, slant, *shift = rng.uniform(-1.0, 1.0, (6, n))
    turn = np.array([[np.cos(ANGLE * angle), -np.sin(ANGLE * angle)], [np.sin(ANGLE * angle), np.cos(ANGLE * angle)]])
    width, height = np.exp(STRETCH * (size + aspect / 2)), np.exp(STRETCH * (size - aspect / 2))
    stretch = np.array([[width, SLANT * slant], [np.zeros(n), height]])
    linear = np.einsum("ijn,jkn->nik", turn, stretch)
    return np.concatenate([linear, 2.0 * SHIFT * np.stack(shift, axis=1)[:, :, None]], axis=2)
