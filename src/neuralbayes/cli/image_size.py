"""The option --size, and a check that clustering such images fits into memory."""

from __future__ import annotations

import math
import re


def parsed_size(text: str | None) -> tuple[int, int] | None:
    """Parse --size to (H, W): one number for both, or two.

    Examples
    --------
    >>> parsed_size("32"), parsed_size("48x64"), parsed_size(None)
    ((32, 32), (48, 64), None)
    """
    if text is None:
        return None
    found = re.fullmatch(r"(\d{1,4})(?:x(\d{1,4}))?", text)
    if found is None or not all(1 <= int(side) <= 4096 for side in found.groups(default=found[1])):
        raise ValueError(f"--size must be a number of pixels from 1 to 4096, or two as in 48x64 (HxW), got {text!r}")
    return int(found[1]), int(found[2] or found[1])


def check_memory(n_images: int, shape: tuple[int, int, int]) -> None:
    """Raise unless clustering `n_images` images of `shape` (H, W, C) fits into the available memory."""
    from neuralbayes.system.limits import free_memory

    free, needed = free_memory(), clustering_bytes(n_images, shape)
    if free is not None and needed > free:
        height, width, _ = shape
        raise ValueError(
            f"{n_images:,} images of {height}x{width} pixels would take about {needed / 1e9:.1f} GB of memory, and "
            f"{free / 1e9:.1f} GB are free; make them smaller with --size, such as --size 64"
        )


def clustering_bytes(n_images: int, shape: tuple[int, int, int]) -> int:
    """Approximate memory for clustering images in bytes: a block of pixels and the principal components.

    Examples
    --------
    >>> round(clustering_bytes(40, (3000, 4000, 3)) / 1e9), round(clustering_bytes(40, (64, 85, 3)) / 1e9, 2)
    (16, 0.02)
    """
    from neuralbayes.clusters.images import N_DIMENSIONS
    from neuralbayes.clusters.points import BLOCK, SPAN_NUMBERS

    n_numbers = math.prod(shape)
    n_spanning = min(n_images, max(2, SPAN_NUMBERS // n_numbers))
    n_components = min(N_DIMENSIONS, n_spanning - 1)
    # Factors measured on 10 to 2,000 images of 60x80 to 1000x1300 pixels, accurate to 6 %.
    return n_numbers * (9 * min(n_images, BLOCK) + 13 * n_spanning + 13 * n_components + 50)
