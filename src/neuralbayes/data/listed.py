"""Some images of a source as they are sent to another process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neuralbayes.data.pictures import PictureError, no_longer_readable, read_picture
from neuralbayes.data.sources import ArraySource, ImageSource, SubsetSource, check_indices


class ListedSource:
    """Pictures that another process has found readable; they are decoded when they are read.

    Parameters
    ----------
    paths : sequence of Path
    shape : tuple (H, W, C)
        They are scaled until they cover it, and cut, as in :class:`~neuralbayes.data.folder.FolderSource`.
    """

    def __init__(self, paths: Sequence[Path], shape: tuple[int, int, int]) -> None:
        self._paths = paths
        self._shape = shape

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
            path = self._paths[index]
            try:
                batch[i] = read_picture(path, self._shape[:2], self._shape[2])
            except PictureError as error:
                raise no_longer_readable(path, error) from error
        return batch


def block_of(source: ImageSource, rows: slice, *, sent: bool, paths: Sequence[Path] = ()) -> ImageSource:
    """The images `rows` of a source, as another process can take them if they are to be sent.

    Parameters
    ----------
    source : ImageSource
    rows : slice
    sent : bool
        Whether they go to another process: by their files where there are some, which it then reads, or as an array.
    paths : sequence of Path, optional
        The file of each image of `source`.
    """
    indices = np.arange(rows.start, rows.stop)
    if not sent:
        return SubsetSource(source, indices)
    if paths:
        return ListedSource([path.absolute() for path in paths[rows]], source.shape)
    return ArraySource(source.read(indices), channels_first=False)
