"""Picture files that a few threads decode on demand."""

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
from neuralbayes.data.sources import check_indices

N_THREADS = min(8, (os.cpu_count() or 1) + 1)  # Pillow releases the GIL while it decodes
BLOCK = 256  # maximum number of files handed to the threads at a time
WAITING_BYTES = 2**27  # maximum bytes of decoded images that wait to be copied

_Result = TypeVar("_Result")


def parallel(
    function: Callable[[Path], _Result], paths: list[Path], block: int = BLOCK
) -> Iterator[_Result | PictureError]:
    """Yield `function(path)` or its PictureError for each path, in order; at most `block` results wait."""

    def attempt(path: Path) -> _Result | PictureError:
        try:
            return function(path)
        except PictureError as error:
            return error

    # Do not silence warnings of Pillow here: filters belong to the whole process, and if another thread changes them
    # at the same time, they may never be restored.
    with ThreadPoolExecutor(N_THREADS) as pool:
        for start in range(0, len(paths), block):
            yield from pool.map(attempt, paths[start : start + block])


class ListedSource:
    """Source of images from files that are known to be readable, perhaps from another process.

    Parameters
    ----------
    paths : sequence of Path
    shape : tuple (H, W, C)
        Shape of the images. Pictures are scaled until they cover it, then cropped.
    interpolation : {"area", "bilinear", "bicubic"} or NetworkResizing, default="area"
        How to scale pictures.
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
            If a file can no longer be read.
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
