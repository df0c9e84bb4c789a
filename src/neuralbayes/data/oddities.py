"""Pictures that deserve a second look: blank ones, and those that nearly repeat another one.

A picture is compared by a difference hash: on a grid of 9 x 9 mean intensities, whether it gets brighter from one cell
to the next, to the right and downwards. Scaling, compression and a change of brightness leave nearly all of these 128
bits as they are. Two pictures nearly repeat each other where at most `MAX_BITS` bits differ and the colours of the
cells differ little, too. Crops and mirror images are not found.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SIDE = 9
"""Cells of the grid along each side."""

BLANK = 2.0
"""Standard deviation of the intensities, from 0 to 255, below which a picture is blank."""

SOME_PIXELS = 4096
"""How many of them, about, are looked at to tell whether a picture is blank."""

MAX_BITS, BANDS = 5, 8
"""Bits that may differ: fewer than there are bands, so two such pictures agree in all bits of one band at least."""

MAX_COLOR = 12.0
"""Mean difference of the colours, from 0 to 255, of pictures that repeat each other."""

FEW = 2000
"""Pictures with one band in common that are compared with each other at once."""


@dataclass(frozen=True)
class Oddities:
    """Indices of pictures that deserve a second look.

    Attributes
    ----------
    blank : list of int
        Pictures of a single colour, or nearly so.
    repeats : dict of int to int
        For a picture that nearly repeats an earlier one, the first of those.
    """

    blank: list[int] = field(default_factory=list)
    repeats: dict[int, int] = field(default_factory=dict)


@dataclass
class Thumbnails:
    """A grid of colours of each picture, and how much its intensities vary; filled while pictures are decoded."""

    grids: list[NDArray[np.uint8]] = field(default_factory=list)
    spreads: list[float] = field(default_factory=list)

    def add(self, image: NDArray[np.uint8]) -> None:
        """Note an image, uint8 of shape (H, W, C)."""
        picture = Image.fromarray(image[..., 0] if image.shape[2] == 1 else image).convert("RGB")
        self.grids.append(np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.BOX)))
        pixels = image.reshape(-1, image.shape[2])
        self.spreads.append(float(pixels[:: max(1, len(pixels) // SOME_PIXELS)].std(axis=0).max()))

    def oddities(self, limit: int | None = None) -> Oddities:
        """Which pictures, of the first `limit` or of all, are blank, and which nearly repeat another one."""
        blank = np.array(self.spreads[:limit]) < BLANK
        rows = np.flatnonzero(~blank)
        if len(rows) < 2:
            return Oddities(np.flatnonzero(blank).tolist())
        grids = np.stack([self.grids[i] for i in rows])
        first = _first_alike(_bits(grids), grids.reshape(len(rows), -1).astype(np.float32))
        repeats = {int(rows[i]): int(rows[j]) for i, j in enumerate(first) if j < i}
        return Oddities(np.flatnonzero(blank).tolist(), repeats)


def _bits(grids: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Whether intensity grows to the right and downwards, between the cells: (n, 9, 9, 3) -> (n, 128)."""
    gray = grids.astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32)
    right, down = np.diff(gray, axis=2)[:, :-1] > 0.5, np.diff(gray, axis=1)[:, :, :-1] > 0.5
    return np.concatenate([right.reshape(len(grids), -1), down.reshape(len(grids), -1)], axis=1)


def _first_alike(bits: NDArray[np.bool_], colors: NDArray[np.float32]) -> NDArray[np.int64]:
    """For each picture the first one that it repeats, over any number of steps; itself where there is none."""
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
