"""Confusion matrix of a classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from neuralbayes.plot.crosstab import CrosstabDisplay
from neuralbayes.plot.style import new_picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_confusion(matrix: ArrayLike, *, class_names: Sequence[str] | None = None, title: str = "") -> Figure:
    """Draw a confusion matrix: one row per true class, in percent of its images.

    Parameters
    ----------
    matrix : array of shape (n_classes, n_classes)
        Counts: entry (i, j) is how often class i was predicted as class j.
    class_names : sequence of str, optional
    title : str, optional
    """
    counts = np.asarray(matrix, dtype=np.float64)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or counts.size == 0:
        raise ValueError(f"`matrix` must be square, got shape {counts.shape}")
    n = len(counts)
    if class_names is not None and len(class_names) != n:
        raise ValueError(f"`class_names` must be {n} names, got {len(class_names)}")
    figure, ax = new_picture()
    side = min(9.0, 3.6 + 0.38 * n)
    figure.set_size_inches(side + 0.8, side)
    CrosstabDisplay(counts, row_names=class_names, column_names=class_names).plot(ax=ax, title=title)
    return figure
