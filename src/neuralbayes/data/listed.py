"""Pictures by their files, decoded when they are read, by a few threads; and some images for another process."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neuralbayes.data.pictures import PictureError, no_longer_readable, read_picture
from neuralbayes.data.resizing import Interpolation, NetworkResizing
from neuralbayes.data.sources import ArraySource, ImageSource, SubsetSource, check_indices

N_THREADS = min(8, (os.cpu_count() or 1) + 1)  # Pillow lets other threads run while it decodes
BLOCK = 256  # files handed to the threads at a time, at most
WAITING_BYTES = 2**27  # of images that wait to be put into their place

_Result = TypeVar("_Result")


def parallel(
    function: Callable[[Path], _Result], paths: list[Path], block: int = BLOCK
) -> Iterator[_Result | PictureError]:
    """Results in the order of `paths`, or the error in place of one; at most `block` of them wait."""

    def attempt(path: Path) -> _Result | PictureError:
        try:
            return function(path)
        except PictureError as error:
            return error

    # Warnings of Pillow are left alone: filters belong to the whole process, and changing them here, while another
    # thread may change them too, can leave them changed for good.
    with ThreadPoolExecutor(N_THREADS) as pool:
        for start in range(0, len(paths), block):
            yield from pool.map(attempt, paths[start : start + block])


class ListedSource:
    """Pictures that were found readable before, perhaps by another process.

    Parameters
    ----------
    paths : sequence of Path
    shape : tuple (H, W, C)
        They are scaled until they cover it, and cut.
    interpolation : {"area", "bilinear", "bicubic"} or NetworkResizing, default="area"
        How they are scaled.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        shape: tuple[int, int, int],
        interpolation: Interpolation | NetworkResizing = "area",
    ) -> None:
        self.paths = tuple(paths)
        self.shape = shape
        self._interpolation: Interpolation | NetworkResizing = interpolation
        self._block = max(N_THREADS, min(BLOCK, WAITING_BYTES // max(1, math.prod(shape))))

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, indices: ArrayLike) -> NDArray[np.uint8]:
        """Images at `indices` in uint8, shape (m, H, W, C).

        Raises
        ------
        OSError
            When a file that could be read at the start no longer can.
        """
        checked = check_indices(indices, len(self))
        batch = np.empty((len(checked), *self.shape), np.uint8)
        paths = [self.paths[i] for i in checked]
        for i, result in enumerate(parallel(self._read_one, paths, self._block)):
            if isinstance(result, PictureError):
                raise no_longer_readable(paths[i], result)
            batch[i] = result
        return batch

    def _read_one(self, path: Path) -> NDArray[np.uint8]:
        return read_picture(path, self.shape[:2], self.shape[2], self._interpolation)


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
