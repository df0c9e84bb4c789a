"""Pictures by a list of their files, for processes that need not look at each one again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neuralbayes.data.pictures import PictureError, no_longer_readable, read_picture
from neuralbayes.data.sources import check_indices


class ListedSource:
    """Pictures that another process has found readable; they are decoded when they are read.

    Parameters
    ----------
    paths : sequence of str
    shape : tuple (H, W, C)
        They are scaled until they cover it, and cut, as in :class:`~neuralbayes.data.folder.FolderSource`.
    """

    def __init__(self, paths: Sequence[str], shape: tuple[int, int, int]) -> None:
        self._paths = paths
        self._shape = shape

    @classmethod
    def from_listing(cls, listing: Any) -> ListedSource:
        """The source that :func:`listing_of` describes."""
        height, width, channels = listing["shape"]
        return cls(listing["paths"], (height, width, channels))

    @property
    def shape(self) -> tuple[int, int, int]:
        """(H, W, C) of one image."""
        return self._shape

    def __len__(self) -> int:
        return len(self._paths)

    def read(self, indices: ArrayLike) -> NDArray[np.uint8]:
        """Images at `indices` in uint8, shape (m, H, W, C).

        Raises
        ------
        OSError
            When a file cannot be read, or no longer.
        """
        checked = check_indices(indices, len(self))
        batch = np.empty((len(checked), *self._shape), np.uint8)
        for i, index in enumerate(checked):
            path = Path(self._paths[index])
            try:
                batch[i] = read_picture(path, self._shape[:2], self._shape[2])
            except PictureError as error:
                raise no_longer_readable(path, error) from error
        return batch


def listing_of(paths: Sequence[Path], shape: tuple[int, int, int]) -> dict[str, Any]:
    """Paths and shape as JSON can hold them."""
    return {"shape": list(shape), "paths": [str(path.absolute()) for path in paths]}
