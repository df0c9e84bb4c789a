"""Decoded images in a temporary file, for sets of images that do not fit into memory."""

from __future__ import annotations

import math
import shutil
import tempfile
import weakref
from threading import Lock

import numpy as np
from numpy.typing import NDArray


class Spool:
    """Store images of one shape in an unnamed temporary file, which is deleted with the object.

    Parameters
    ----------
    shape : tuple (H, W, C)

    Examples
    --------
    >>> spool = Spool((2, 2, 1))
    >>> for i in range(3):
    ...     spool.add(np.full((2, 2, 1), i, np.uint8))
    >>> spool.read(np.array([2, 0]))[:, 0, 0, 0]
    array([2, 0], dtype=uint8)
    """

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self.shape = shape
        self._file = tempfile.TemporaryFile()  # noqa: SIM115, closed with this object
        weakref.finalize(self, self._file.close)
        self._reading = Lock()

    @staticmethod
    def has_room(n_bytes: int) -> bool:
        """Whether `n_bytes` fit into half of the free space for temporary files."""
        try:
            return n_bytes <= shutil.disk_usage(tempfile.gettempdir()).free // 2
        except OSError:
            return False

    def add(self, image: NDArray[np.uint8]) -> None:
        """Append an image. Add all images before reading any."""
        self._file.write(np.ascontiguousarray(image).data)

    def read(self, indices: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Images at `indices`, each from 0 to the number of images - 1: (m, H, W, C)."""
        images = np.empty((len(indices), *self.shape), np.uint8)
        with self._reading:
            for image, index in zip(images, indices, strict=True):
                self._file.seek(int(index) * math.prod(self.shape))
                self._file.readinto(image.data)
        return images
