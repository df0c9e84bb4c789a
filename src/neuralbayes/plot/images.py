"""Walls of small images: the most typical members of each state, and convolution kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neuralbayes.plot.style import Display, current_theme, literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from neuralbayes.features.encoder import ImageEncoder

MAX_FILTERS = 200
PALE_BLUE = (0.86, 0.91, 0.97)  # differs from every grey


class MembersDisplay(Display):
    """One row of typical images per state, with the range of p(x|z) / p(x).

    Parameters
    ----------
    images : sequence of arrays of shape (n, H, W) or (n, H, W, C)
        The images of each state; grey, or RGB in uint8.
    names : sequence of str
        Names of the states.
    ratios : sequence of sequences of float
        p(x|z) / p(x) of the images of each state.

    Examples
    --------
    >>> import numpy as np
    >>> import neuralbayes as nb
    >>> images = np.zeros((2, 3, 8, 8), np.uint8)  # two states, three images of each
    >>> display = nb.plot.MembersDisplay(images, ["state 4", "state 9"], [[8.0, 6.0, 5.0], [3.0, 2.0, 2.0]]).plot()
    >>> [text.get_text() for text in display.ax_.texts]
    ['state 4', '8 to 5', 'state 9', '3 to 2']
    """

    def __init__(self, images: Sequence[NDArray[Any]], names: Sequence[str], ratios: Sequence[Sequence[float]]) -> None:
        self.images = [np.asarray(row) for row in images]
        if not self.images or any(row.ndim not in (3, 4) or 0 in row.shape for row in self.images):
            raise ValueError(f"`images` must be arrays (n, H, W) or (n, H, W, C), got {[r.shape for r in self.images]}")
        if not len(names) == len(ratios) == len(images):
            raise ValueError(f"`names` and `ratios` must be {len(images)} each, got {len(names)} and {len(ratios)}")
        self.names, self.ratios = list(names), [list(row) for row in ratios]

    @classmethod
    def from_posterior(
        cls,
        p_zx: ArrayLike,
        images: NDArray[Any],
        *,
        states: Sequence[int] | None = None,
        n_members: int = 10,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the most typical images of states.

        Parameters
        ----------
        p_zx : array-like of shape (n_samples, n_states)
        images : array of shape (n_samples, H, W) or (n_samples, H, W, C)
        states : sequence of int, optional
            By default the eight that contribute most to I(x; z).
        n_members : int, default=10
        """
        posteriors = np.asarray(p_zx, dtype=np.float64)
        if posteriors.ndim != 2 or len(posteriors) != len(images) or 0 in posteriors.shape:
            raise ValueError(f"`p_zx` must have shape ({len(images)}, n_states), got {posteriors.shape}")
        ratio = posteriors / np.maximum(posteriors.mean(axis=0), np.finfo(float).tiny)  # p(x|z) / p(x)
        if states is None:
            parts = (posteriors * np.log(np.maximum(ratio, 1e-12))).mean(axis=0)  # they add up to I(x; z)
            states = np.argsort(-parts, kind="stable")[:8].tolist()
        if not all(0 <= k < posteriors.shape[1] for k in states):
            raise ValueError(f"`states` must be from 0 to {posteriors.shape[1] - 1}, got {list(states)}")
        best = [np.argsort(-ratio[:, k], kind="stable")[:n_members] for k in states]
        ratios = [ratio[rows, k].tolist() for k, rows in zip(states, best, strict=True)]
        return cls([images[rows] for rows in best], [f"state {k}" for k in states], ratios).plot(ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, images: NDArray[Any], **options: Any) -> Self:
        """Draw for an estimator with `predict_proba`, such as :class:`neuralbayes.MIMEncoder`; see `from_posterior`."""
        return cls.from_posterior(estimator.predict_proba(images), images, **options)

    def plot(self, *, ax: Axes | None = None, cmap: str = "gray") -> Self:
        """Draw into `ax`, by default into a new figure; `cmap` is for grey images. Returns self."""
        most, (height, width) = max(map(len, self.images)), self.images[0].shape[1:3]
        gap = max(1, width // 8)
        grey = all(row.ndim == 3 or row.shape[3] == 1 for row in self.images)
        clear = np.nan if grey else 0.0  # where a state has fewer images, and between them
        tiles = np.full((len(self.images), most, height, width, 1 if grey else 4), clear)
        for tile, row in zip(tiles, self.images, strict=True):
            tile[: len(row), ..., :3] = row.reshape(*row.shape[:3], -1) / (1.0 if grey else 255.0)
            tile[: len(row), ..., 3:] = 1.0
        wall = tile_wall(tiles.reshape(-1, *tiles.shape[2:]), most, clear, gap)
        ax = self._begin(ax, height=0.6 + 5.8 * wall.shape[0] / wall.shape[1])
        ax.imshow(wall.squeeze(), cmap=cmap, vmin=0, vmax=255, interpolation="nearest").axes.set_axis_off()
        style: dict[str, Any] = {"fontsize": 8, "color": current_theme().muted, "va": "center"}
        for i, (name, ratio) in enumerate(zip(self.names, self.ratios, strict=True)):
            middle = i * (height + gap) + (height - 1) / 2
            ax.text(-2 * gap, middle, literal(name), ha="right", **style)
            ax.text(wall.shape[1] + gap, middle, f"{ratio[0]:.0f} to {ratio[-1]:.0f}", ha="left", **style)
        self.figure_.draw_without_rendering()  # the layout makes room for the names in the second pass
        return self


class FiltersDisplay(Display):
    """Convolution kernels side by side, the largest first.

    Parameters
    ----------
    weight : array-like of shape (n_filters, C, h, w)
        Kernels with three channels are drawn in colour; others in grey, as the mean over channels. Each filter is
        scaled to its largest weight; middle grey is 0.

    Examples
    --------
    >>> import numpy as np
    >>> import neuralbayes as nb
    >>> nb.plot.FiltersDisplay(np.eye(12).reshape(12, 3, 2, 2)).plot().ax_.get_title(loc="left")
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

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw into `ax`, by default into a new figure; returns self."""
        n = len(self.tiles)
        wall = tile_wall(self.tiles, math.ceil(math.sqrt(1.6 * n)))
        ax = self._begin(ax, height=0.9 + 7.0 * wall.shape[0] / wall.shape[1])
        ax.imshow(wall, interpolation="nearest")
        ax.set_axis_off()
        shown = f"the {n} strongest of {self.n_filters}" if n < self.n_filters else f"{n}"
        title = f"{shown} filters of the first layer, each scaled to its largest weight"
        ax.set_title(title, loc="left", fontsize=10)
        return self


def tile_wall(tiles: NDArray[Any], columns: int, fill: ArrayLike = PALE_BLUE, gap: int = 1) -> NDArray[Any]:
    """Arrange tiles (n, h, w, C) in a grid: (H, W, C), with gaps in the colour `fill`."""
    n, height, width, channels = tiles.shape
    rows = math.ceil(n / columns)
    wall = np.full((rows * (height + gap) - gap, columns * (width + gap) - gap, channels), fill, tiles.dtype)
    for i, tile in enumerate(tiles):
        top, left = i // columns * (height + gap), i % columns * (width + gap)
        wall[top : top + height, left : left + width] = tile
    return wall
