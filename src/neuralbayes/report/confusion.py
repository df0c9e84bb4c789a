"""Which classes a classifier takes for which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from neuralbayes.report.labels import new_picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_NUMBERS = 20  # classes up to which numbers and names are written


def draw_confusion(matrix: ArrayLike, *, class_names: Sequence[str] | None = None, title: str = "") -> Figure:
    """Draw a confusion matrix: one row a true class, in per cent of its images.

    Parameters
    ----------
    matrix : array of shape (n_classes, n_classes)
        Counts: row i, column j is how often class i was taken for class j.
    class_names : sequence of str, optional
    title : str, optional

    Returns
    -------
    matplotlib Figure
        For :func:`neuralbayes.report.labels.save_picture`.
    """
    counts = np.asarray(matrix, dtype=np.float64)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or counts.size == 0:
        raise ValueError(f"`matrix` must be square, got shape {counts.shape}")
    n = len(counts)
    names = [str(k) for k in range(n)] if class_names is None else list(class_names)
    if len(names) != n:
        raise ValueError(f"`class_names` must be {n} names, got {len(names)}")
    percent = 100.0 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)

    figure, ax = new_picture()
    side = min(9.0, 3.6 + 0.38 * n)
    figure.set_size_inches(side + 0.8, side)
    image = ax.imshow(percent, cmap="Blues", vmin=0.0, vmax=100.0)
    figure.colorbar(image, ax=ax, label="% of the images of a class", shrink=0.8)
    ax.set_xlabel("taken for")
    ax.set_ylabel("is")
    ax.set_title(title, loc="left", fontsize=10)
    ax.spines[:].set_visible(False)
    if n > MAX_NUMBERS:
        return figure
    short = max(map(len, names)) <= 2
    ax.set_xticks(
        range(n), names, rotation=0 if short else 45, ha="center" if short else "right", rotation_mode="anchor"
    )
    ax.set_yticks(range(n), names)
    ax.tick_params(length=0)
    for i, j in np.ndindex(n, n):
        if percent[i, j] >= 0.5:
            color = "white" if percent[i, j] > 55 else "#333333"
            ax.text(j, i, f"{percent[i, j]:.0f}", ha="center", va="center", fontsize=8, color=color)
    return figure
