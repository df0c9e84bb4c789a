"""p(z|x) over the plane as a pale background, as in the paper's figure 4."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuralbayes.plot.style import COLORS

PALE = 0.28
"""Opacity of the map near points."""

FADE = (0.06, 0.14)
"""Distances from the points at which the map starts to fade and ends, relative to its width and height."""

GRID = 160
"""Grid points along each side."""

MARGIN = FADE[1] / (1.0 - 2.0 * FADE[1])
"""Margin of the map on each side, relative to the extent of the points, so that it fades before its edge."""


@dataclass(frozen=True)
class Regions:
    """p(z|x) on a grid.

    Attributes
    ----------
    extent : tuple of four floats
        Left, right, bottom and top.
    p_zx : ndarray of shape (rows, columns, n_states)
        Rows from the bottom up.
    """

    extent: tuple[float, float, float, float]
    p_zx: NDArray[np.float64]

    @classmethod
    def of(cls, predict_proba: Callable[[NDArray[Any]], NDArray[Any]], points: NDArray[Any]) -> Regions:
        """The regions of `predict_proba` around `points` (n, 2)."""
        low, high = points.min(axis=0), points.max(axis=0)
        room = MARGIN * np.maximum(high - low, 1e-12 + 1e-6 * np.abs(high))
        axes = [np.linspace(a - r, b + r, GRID) for a, b, r in zip(low, high, room, strict=True)]
        grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
        p_zx = np.asarray(predict_proba(grid), dtype=np.float64).reshape(GRID, GRID, -1)
        (left, right), (bottom, top) = ((float(axis[0]), float(axis[-1])) for axis in axes)
        return cls((left, right, bottom, top), p_zx)

    def image(self, points: NDArray[Any]) -> NDArray[np.float64]:
        """Pale colours (rows, columns, 4) that fade away from the `points`, where predictions mean little."""
        return np.dstack([map_colors(self.p_zx), PALE * self._nearness(points)])

    def _nearness(self, points: NDArray[Any]) -> NDArray[np.float64]:
        """1 at the points, 0 far from them."""
        from scipy.spatial import KDTree

        left, right, bottom, top = self.extent
        n_rows, n_columns = self.p_zx.shape[:2]
        size = np.array([right - left, top - bottom])
        grid = np.stack(np.meshgrid(np.linspace(left, right, n_columns), np.linspace(bottom, top, n_rows)), axis=-1)
        distance, _ = KDTree(points / size).query(grid / size)
        near, far = FADE
        left_to_go = np.clip((far - distance) / (far - near), 0.0, 1.0)
        opacity: NDArray[np.float64] = left_to_go**2 * (3.0 - 2.0 * left_to_go)
        return opacity


def map_colors(p_zx: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mix the colours of the states by p(z|x): (..., n_states) -> (..., 3).

    Examples
    --------
    >>> map_colors(np.array([1.0, 0.0])).round(2)  # state 0 is #0072B2
    array([0.  , 0.45, 0.7 ])
    """
    from matplotlib.colors import to_rgb

    colors = np.array([to_rgb(COLORS[k % len(COLORS)]) for k in range(p_zx.shape[-1])])
    mixed: NDArray[np.float64] = np.clip(p_zx @ colors, 0.0, 1.0)
    return mixed
