"""Find blank pictures and near-duplicates.

Pictures are compared by a difference hash: on a grid of 9 x 9 mean intensities, each bit says whether the next cell, to
the right or below, is brighter. Scaling, compression and a change of brightness change few of these 128 bits. Two
pictures are near-duplicates if at most `MAX_BITS` bits differ and the colours of the cells differ little. Crops and
mirror images are not found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from neuralbayes.data.images import ImageSource

SIDE = 9  # grid cells along each side
BLANK = 2.0  # standard deviation of the intensities, from 0 to 255, below which a picture is blank
SOME_PIXELS = 4096  # about so many intensities are inspected to find blank pictures
MAX_BITS, BANDS = 5, 8  # fewer different bits than bands, so near-duplicates agree in at least one band
MAX_COLOR = 12.0  # mean colour difference of near-duplicates, from 0 to 255
FEW = 2000  # pictures with a common band that are compared at a time
BLOCK = 256  # images read at a time


@dataclass(frozen=True)
class Oddities:
    """Indices of the pictures of nearly a single colour, and of each near-duplicate with the first that it repeats."""

    blank: list[int] = field(default_factory=list)
    repeats: dict[int, int] = field(default_factory=dict)


def odd(images: ImageSource, n: int | None = None) -> Oddities:
    """The blank pictures and near-duplicates among the first `n` images, or all.

    Examples
    --------
    >>> from neuralbayes.data.sources import ArraySource
    >>> pictures = np.random.default_rng(0).integers(0, 255, (4, 32, 32, 1), np.uint8)
    >>> pictures[1], pictures[3] = 7, pictures[0] // 4 * 4
    >>> odd(ArraySource(pictures))
    Oddities(blank=[1], repeats={3: 0})
    """
    n = len(images) if n is None else min(n, len(images))
    grids = np.empty((n, SIDE, SIDE, 3), np.uint8)
    spreads = np.empty(n)
    for start in range(0, n, BLOCK):
        for i, image in enumerate(images.read(np.arange(start, min(start + BLOCK, n))), start):
            pixels = image.reshape(-1, image.shape[2])
            grids[i] = _grid(image)
            spreads[i] = pixels[:: max(1, len(pixels) // SOME_PIXELS)].std(axis=0).max()
    rows = np.flatnonzero(spreads >= BLANK)
    found = Oddities(np.flatnonzero(spreads < BLANK).tolist())
    if len(rows) > 1:
        first = _first_alike(_bits(grids[rows]), grids[rows].reshape(len(rows), -1).astype(np.float32))
        found.repeats.update({int(rows[i]): int(rows[j]) for i, j in enumerate(first) if j < i})
    return found


def distinct(pictures: NDArray[np.uint8], rows: Sequence[int], n: int) -> list[int]:
    """The first `n` of the rows whose pictures, uint8 (n_pictures, H, W, C), repeat none before them.

    Examples
    --------
    >>> pictures = np.random.default_rng(0).integers(0, 255, (3, 32, 32, 1), np.uint8)
    >>> pictures[1] = pictures[0] // 4 * 4
    >>> distinct(pictures, [0, 1, 2], 2)
    [0, 2]
    """
    found: list[int] = []
    bits, colors = np.empty((0, 2 * (SIDE - 1) ** 2), bool), np.empty((0, 3 * SIDE**2), np.float32)
    for i in rows:
        grid = _grid(pictures[i])[None]
        these, color = _bits(grid), grid.reshape(1, -1).astype(np.float32)
        alike = ((bits != these).sum(axis=1) <= MAX_BITS) & (np.abs(colors - color).mean(axis=1) <= MAX_COLOR)
        if not alike.any():
            found.append(i)
            bits, colors = np.concatenate([bits, these]), np.concatenate([colors, color])
        if len(found) == n:
            break
    return found


def _grid(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Mean colours of the cells of an image: (H, W, C) -> (9, 9, 3)."""
    pixels = image if image.shape[2] == 3 else image.mean(axis=2).astype(np.uint8)
    picture = Image.fromarray(pixels).convert("RGB")
    return np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.BOX))


def _bits(grids: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Difference hash: (n, 9, 9, 3) -> (n, 128)."""
    gray = grids.astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32)
    right, down = np.diff(gray, axis=2)[:, :-1] > 0.5, np.diff(gray, axis=1)[:, :, :-1] > 0.5
    return np.concatenate([right.reshape(len(grids), -1), down.reshape(len(grids), -1)], axis=1)


def _first_alike(bits: NDArray[np.bool_], colors: NDArray[np.float32]) -> NDArray[np.int64]:
    """The first picture that each picture repeats, directly or indirectly, or itself."""
    first = np.arange(len(bits))

    def root(i: int) -> int:
        while first[i] != i:
            first[i] = first[first[i]]
            i = int(first[i])
        return i

    packed = np.packbits(bits, axis=1).reshape(len(bits), BANDS, -1)
    for band in range(BANDS):
        _, group, sizes = np.unique(packed[:, band], axis=0, return_inverse=True, return_counts=True)
        order = np.argsort(group.reshape(-1), kind="stable")
        for members in np.split(order, np.cumsum(sizes)[:-1]):
            for start in range(0, len(members) if len(members) > 1 else 0, FEW):
                part = members[start : start + FEW]
                signs = 2.0 * bits[part].astype(np.float32) - 1.0
                differing = (signs.shape[1] - signs @ signs.T) / 2.0
                for a, b in np.argwhere(np.triu(differing <= MAX_BITS, 1)):
                    i, j = root(int(part[a])), root(int(part[b]))
                    if i != j and np.abs(colors[part[a]] - colors[part[b]]).mean() <= MAX_COLOR:
                        first[max(i, j)] = min(i, j)
    return np.array([root(i) for i in range(len(first))], np.int64)
