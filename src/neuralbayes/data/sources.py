"""Sources of images that are read in pieces, so that a data set may be larger than memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from neuralbayes.data.resizing import Interpolation, NetworkResizing

CHANNELS = (1, 3)  # grey or RGB: identifies the channel axis of an array


@runtime_checkable
class ImageSource(Protocol):
    """The interface of images for training: their number, their shape, and reading some of them.

    Any object with these three members is accepted as images.

    Examples
    --------
    >>> class Stripes:
    ...     shape = (32, 32, 1)
    ...     def __len__(self):
    ...         return 100
    ...     def read(self, indices):
    ...         rows = np.arange(32)[:, None, None] // (1 + np.asarray(indices)[:, None, None, None] % 16) % 2
    ...         return np.broadcast_to(255 * rows, (len(indices), *self.shape)).astype(np.uint8)
    >>> isinstance(Stripes(), ImageSource), Stripes().read([3, 50]).shape
    (True, (2, 32, 32, 1))
    """

    @property
    def shape(self) -> tuple[int, int, int]:
        """(H, W, C) of one image."""
        ...

    def __len__(self) -> int:
        """Number of images."""
        ...

    def read(self, indices: ArrayLike) -> NDArray[np.uint8]:
        """Read the images at `indices`, integers of shape (m,), as a new uint8 array of shape (m, H, W, C)."""
        ...


class ArraySource:
    """Images in an array, in memory or mapped from a file.

    Parameters
    ----------
    array : ndarray of shape (n, H, W), (n, H, W, C) or (n, C, H, W)
        uint8, or floating point in [0, 1], which is converted to uint8 on reading.
    channels_first : bool, optional
        Whether the channels come before height and width. By default they are the axis of size 1 or 3, preferably the
        last one.

    Examples
    --------
    >>> source = ArraySource(np.zeros((10, 3, 32, 32), np.uint8))
    >>> len(source), source.shape
    (10, (32, 32, 3))
    >>> source.read([4, 2]).shape
    (2, 32, 32, 3)
    """

    def __init__(self, array: NDArray[np.generic], *, channels_first: bool | None = None) -> None:
        if array.dtype != np.uint8 and array.dtype.kind != "f":
            raise TypeError(
                f"`array` must be of uint8, or of floating point in [0, 1], got {array.dtype}; "
                "convert integers from 0 to 255 with array.astype(numpy.uint8)"
            )
        if array.ndim not in (3, 4) or 0 in array.shape:
            raise ValueError(f"`array` must have shape (n, H, W), (n, H, W, C) or (n, C, H, W), got {array.shape}")
        self._array = array
        self._channels_first = array.ndim == 4 and _is_channels_first(array.shape, channels_first)
        shape = (*array.shape[1:], 1)[:3]
        channels, height, width = shape if self._channels_first else (shape[2], shape[0], shape[1])
        self.shape = (int(height), int(width), int(channels))

    def __len__(self) -> int:
        return len(self._array)

    def read(self, indices: ArrayLike) -> NDArray[np.uint8]:
        """Images at `indices` in uint8, shape (m, H, W, C)."""
        batch = np.asarray(self._array[check_indices(indices, len(self))])
        if self._channels_first:
            batch = batch.transpose(0, 2, 3, 1)
        return np.ascontiguousarray(_as_uint8(batch)).reshape(-1, *self.shape)


class SubsetSource:
    """Some images of another source, in the order of `indices`.

    Parameters
    ----------
    source : ImageSource
    indices : array-like of int and shape (m,)
    """

    def __init__(self, source: ImageSource, indices: ArrayLike) -> None:
        self.shape = source.shape
        self._source = source
        self._indices = check_indices(indices, len(source))

    def __len__(self) -> int:
        return len(self._indices)

    def read(self, indices: ArrayLike) -> NDArray[np.uint8]:
        """Images at `indices` in uint8, shape (m, H, W, C)."""
        return self._source.read(self._indices[check_indices(indices, len(self))])


class FittedSource:
    """Another source, with images cropped and resized to `size` and converted to grey or RGB.

    Parameters
    ----------
    source : ImageSource
        With 1 or 3 channels.
    size : tuple (H, W)
    channels : {1, 3}
    interpolation : {"area", "bilinear", "bicubic"}, default="area"
        How images are scaled.
    waiting_bytes : int, default=2**26
        Maximum size of the images that wait for resizing.
    """

    def __init__(
        self,
        source: ImageSource,
        size: tuple[int, int],
        channels: int,
        *,
        interpolation: Interpolation | NetworkResizing = "area",
        waiting_bytes: int = 2**26,
    ) -> None:
        if source.shape[2] not in CHANNELS:
            raise ValueError(f"`source` must have 1 or 3 channels to be resized, got shape {source.shape}")
        self._source = source
        self.shape = (*size, channels)
        self._interpolation: Interpolation | NetworkResizing = interpolation
        self._at_once = max(1, waiting_bytes // math.prod(source.shape))

    def __len__(self) -> int:
        return len(self._source)

    def read(self, indices: ArrayLike) -> NDArray[np.uint8]:
        """Images at `indices` in uint8, shape (m, H, W, C)."""
        from PIL import Image

        from neuralbayes.data.pictures import fit_picture

        checked = check_indices(indices, len(self))
        fitted = np.empty((len(checked), *self.shape), np.uint8)
        for start in range(0, len(checked), self._at_once):
            for i, image in enumerate(self._source.read(checked[start : start + self._at_once]), start):
                picture = Image.fromarray(image[..., 0] if image.shape[2] == 1 else image)
                fitted[i] = fit_picture(picture, self.shape[:2], self.shape[2], self._interpolation)
        return fitted


@dataclass(frozen=True, eq=False)
class Images:
    """Images with optional labels, accepted wherever an `ImageSource` is accepted.

    Attributes
    ----------
    name : str
        The name of the data set, or the path.
    split : str
        Part of the data set.
    source : ImageSource
        The images: ``len(source)``, ``source.shape``, ``source.read(indices)``.
    labels : ndarray of int64 and shape (n,), or None
    class_names : tuple of str, or None
    skipped : list of (Path, str)
        Files that could not be read, and why.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> images = nb.load_images("digits")
    >>> len(images), images.shape, images.labels[:3]
    (1437, (8, 8, 1), array([0, 1, 2]))
    >>> images.read([5, 2]).shape
    (2, 8, 8, 1)
    """

    name: str
    split: str
    source: ImageSource
    labels: NDArray[np.int64] | None = field(default=None, repr=False)
    class_names: tuple[str, ...] | None = field(default=None, repr=False)
    skipped: list[tuple[Path, str]] = field(default_factory=list, repr=False)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(H, W, C) of one image."""
        return self.source.shape

    def __len__(self) -> int:
        return len(self.source)

    def read(self, indices: ArrayLike) -> NDArray[np.uint8]:
        """Images at `indices` in uint8, shape (m, H, W, C)."""
        return self.source.read(indices)


def as_source(images: Any) -> ImageSource:
    """Convert `images`, in any form of :func:`neuralbayes.data.given.images_given`, to a source."""
    if isinstance(images, ImageSource):
        return images
    if isinstance(images, np.ndarray):
        return ArraySource(images)
    from neuralbayes.data.given import images_given

    found = images_given(images)
    if found is None:
        raise TypeError(
            "`images` must be a folder, paths, PIL images, arrays, tensors, a data set, or have shape, len() and "
            f"read(), got {type(images).__name__}"
        )
    return found


def check_indices(indices: ArrayLike, n: int) -> NDArray[np.int64]:
    """`indices` as an int64 array of shape (m,), each from 0 to n - 1."""
    checked = np.asarray(indices)
    if checked.size == 0:
        checked = checked.astype(np.int64)  # an empty list has no integer type
    if checked.ndim != 1 or checked.dtype.kind not in "iu":
        raise TypeError(f"`indices` must be integers of shape (m,), got {checked.dtype} of shape {checked.shape}")
    if checked.size and (checked.min() < 0 or checked.max() >= n):
        raise IndexError(f"`indices` must be from 0 to {n - 1}, got {checked.min()} to {checked.max()}")
    return checked.astype(np.int64)


def _is_channels_first(shape: tuple[int, ...], channels_first: bool | None) -> bool:
    if channels_first is not None:
        return channels_first
    if shape[3] in CHANNELS:
        return False
    if shape[1] in CHANNELS:
        return True
    raise ValueError(
        f"`array` must have 1 or 3 channels on its second or last axis, got shape {shape}; "
        "set channels_first to say which axis it is"
    )


def _as_uint8(batch: NDArray[np.generic]) -> NDArray[np.uint8]:
    if batch.dtype == np.uint8:
        return batch  # type: ignore[return-value]
    values = batch.astype(np.float32)
    low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    if not (low >= 0.0 and high <= 1.0):  # `not`: NaN fails every comparison
        raise ValueError(f"images of floating point must be in [0, 1], got values from {low:g} to {high:g}")
    levels: NDArray[np.float32] = np.rint(values * 255.0)
    return levels.astype(np.uint8)
