"""Convolution kernels as small images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neuralbayes.plot.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from neuralbayes.features.encoder import ImageEncoder

MAX_FILTERS = 200
GAP = (0.86, 0.91, 0.97)


class FiltersDisplay(Display):
    """Convolution kernels side by side, the largest first.

    Parameters
    ----------
    weight : array-like of shape (n_filters, C, h, w)
        Kernels with three channels are drawn in colour; others in grey, as the mean over channels. Each filter is
        scaled to its largest weight; middle grey is 0.

    Attributes
    ----------
    tiles : ndarray of shape (n_shown, h, w, 3)
        The drawn filters in [0, 1], at most 200.
    n_filters : int
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> import neuralbayes as nb
    >>> weight = np.random.default_rng(0).normal(size=(12, 3, 3, 3))
    >>> nb.plot.FiltersDisplay(weight).plot().ax_.get_title(loc="left")
    '12 filters of the first layer, each scaled to its largest weight'
    """

    def __init__(self, weight: ArrayLike) -> None:
        kernels = np.asarray(weight, dtype=np.float64)
        if kernels.ndim != 4 or 0 in kernels.shape:
            raise ValueError(f"`weight` must have shape (n_filters, C, h, w), got {kernels.shape}")
        self.n_filters = len(kernels)
        kernels = kernels[np.argsort(-np.square(kernels).sum(axis=(1, 2, 3)), kind="stable")[:MAX_FILTERS]]
        if kernels.shape[1] != 3:
            kernels = np.repeat(kernels.mean(axis=1, keepdims=True), 3, axis=1)
        largest = np.abs(kernels).max(axis=(1, 2, 3), keepdims=True)
        self.tiles = (0.5 + 0.5 * kernels / np.maximum(largest, 1e-12)).transpose(0, 2, 3, 1)

    @classmethod
    def from_encoder(cls, encoder: ImageEncoder, *, ax: Axes | None = None) -> Self:
        """Draw the first layer of an image encoder."""
        return cls(encoder.network.state_dict()["conv1.weight"].cpu().numpy()).plot(ax=ax)

    @property
    def caption(self) -> str:
        """Description of the picture."""
        n = len(self.tiles)
        shown = f"the {n} strongest of {self.n_filters}" if n < self.n_filters else f"{n}"
        return f"{shown} filters of the first layer, each scaled to its largest weight"

    def wall(self, *, clear: bool = False) -> NDArray[np.float64]:
        """All tiles in one landscape image: (H, W, 3), or (H, W, 4) with transparent gaps."""
        columns = math.ceil(math.sqrt(1.6 * len(self.tiles)))
        if not clear:
            return tile_wall(self.tiles, columns)
        opaque = np.concatenate([self.tiles, np.ones((*self.tiles.shape[:3], 1))], axis=3)
        return tile_wall(opaque, columns, gap=(0.0, 0.0, 0.0, 0.0))

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw into `ax`, by default into a new figure; returns self."""
        wall = self.wall()
        ax = self._begin(ax, (7.2, 0.9 + 7.0 * wall.shape[0] / wall.shape[1]))
        ax.imshow(wall, interpolation="nearest")
        ax.set_axis_off()
        ax.set_title(self.caption, loc="left", fontsize=10)
        return self


def tile_wall(tiles: NDArray[np.float64], columns: int, gap: Sequence[float] = GAP) -> NDArray[np.float64]:
    """Arrange tiles (n, h, w, C) in a grid: (H, W, C). The gaps are pale blue, which differs from every grey."""
    n, height, width, channels = tiles.shape
    rows = math.ceil(n / columns)
    wall = np.full((rows * (height + 1) - 1, columns * (width + 1) - 1, channels), gap)
    for i, tile in enumerate(tiles):
        top, left = i // columns * (height + 1), i % columns * (width + 1)
        wall[top : top + height, left : left + width] = tile
    return wall
