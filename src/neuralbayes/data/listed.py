"""Pictures by their files, decoded when they are read, by a few threads; and some images for another process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neuralbayes.data.pictures import Interpolation, PictureError, no_longer_readable, read_picture
from neuralbayes.data.sources import ArraySource, ImageSource, SubsetSource, check_indices

N_THREADS = min(8, (os.cpu_count() or 1) + 1)  # Pillow lets other threads run while it decodes
BLOCK = 256  # files handed to the threads at a time, at most
DECODING_BYTES = 2**29  # of pictures that are being decoded, or wait to be put into their place

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Room:
    """Bytes that a picture takes while it is decoded, and as an image: large ones are not decoded many at a time."""

    decoding: int = 0
    image: int = 0

    @property
    def n_threads(self) -> int:
        """Pictures that are decoded at a time."""
        return max(1, min(N_THREADS, DECODING_BYTES // max(1, self.decoding)))

    @property
    def block(self) -> int:
        """Pictures that wait to be put into their place, at most."""
        return max(self.n_threads, min(BLOCK, DECODING_BYTES // max(1, self.image)))


def parallel(function: Callable[[Path], _Result], paths: list[Path], room: Room) -> Iterator[_Result | PictureError]:
    """Results in the order of `paths`, or the error in place of one."""

    def attempt(path: Path) -> _Result | PictureError:
        try:
            return function(path)
        except PictureError as error:
            return error

    # Warnings of Pillow are left alone: filters belong to the whole process, and changing them here, while another
    # thread may change them too, can leave them changed for good.
    with ThreadPoolExecutor(room.n_threads) as pool:
        for start in range(0, len(paths), room.block):
            yield from pool.map(attempt, paths[start : start + room.block])


class ListedSource:
    """Pictures that were found readable before, perhaps by another process.

    Parameters
    ----------
    paths : sequence of Path
    shape : tuple (H, W, C)
        They are scaled until they cover it, and cut.
    room : Room, optional
        By default they are decoded one at a time: how large they are is not known.
    interpolation : {"area", "bilinear", "bicubic"}, default="area"
        How they are scaled.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        shape: tuple[int, int, int],
        room: Room | None = None,
        interpolation: Interpolation = "area",
    ) -> None:
        self.paths = tuple(paths)
        self.shape = shape
        self._interpolation: Interpolation = interpolation
        self._room = room or Room(decoding=DECODING_BYTES)

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
        for i, result in enumerate(parallel(self._read_one, paths, self._room)):
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
