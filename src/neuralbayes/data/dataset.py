"""Named data sets: images and labels of each part, as arrays in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Split:
    """A part of a data set.

    Attributes
    ----------
    images : ndarray of uint8 and shape (n, H, W, C)
    labels : ndarray of int64 and shape (n,), or None
        None for images without labels.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> part = nb.datasets.load("digits").test
    >>> part, part.images.shape, part.labels[:3]
    (Split(360 images, labeled), (360, 8, 8, 1), array([2, 3, 4]))
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        return f"Split({len(self)} images{'' if self.labels is None else ', labeled'})"


@dataclass(frozen=True, eq=False)
class Dataset:
    """A named data set.

    Attributes
    ----------
    name : str
    class_names : tuple of str
        The name of label k is ``class_names[k]``.
    train, test : Split
    unlabeled : Split or None
        The part without labels, which only STL-10 has.
    source : str
        Original source of the data.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> data = nb.datasets.load("digits")
    >>> data.shape, len(data.train), len(data.test), data.class_names[:3]
    ((8, 8, 1), 1437, 360, ('0', '1', '2'))
    """

    name: str
    class_names: tuple[str, ...] = field(repr=False)
    train: Split
    test: Split
    unlabeled: Split | None = None
    source: str = ""

    @property
    def shape(self) -> tuple[int, int, int]:
        """(H, W, C) of one image."""
        height, width, channels = self.train.images.shape[1:]
        return int(height), int(width), int(channels)
