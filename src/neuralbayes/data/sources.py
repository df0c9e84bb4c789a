"""Sources of images, read in pieces: arrays, picture files, data sets, and views of other sources."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from neuralbayes.data.pictures import PictureError, Scaling, fit_picture, picture_channels, read_picture

CHANNELS = (1, 3)  # grey or RGB: identifies the channel axis of an array
PICTURE_KEYS = ("image", "img", "picture", "pixel_values")  # in items of a data set that are dictionaries

SHORT_SIDE = 64  # maximum pixels of the shorter side if no size is given
LOOKED_AT = 200  # items for finding the most common size of a data set
N_THREADS = min(8, (os.cpu_count() or 1) + 1)  # Pillow releases the GIL while it decodes
BLOCK = 256  # maximum number of files handed to the threads at a time
WAITING_BYTES = 2**27  # maximum bytes of decoded images that wait to be copied or resized

_Result = TypeVar("_Result")


@runtime_checkable
class ImageSource(Protocol):
    """The interface of images. Any object with these three members is accepted as images."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """(H, W, C) of one image."""

    def __len__(self) -> int:
        """Number of images."""

    def read(self, indices: ArrayLike) -> NDArray[np.uint8]:
        """Read the images at `indices`, integers of shape (m,), as a new uint8 array of shape (m, H, W, C)."""


class ArraySource:
    """Images in an array, in memory or mapped from a file.

    `array` has shape (n, H, W), (n, H, W, C) or (n, C, H, W), in uint8, or floating point in [0, 1], which is converted
    on reading. By default, the channels are the axis of size 1 or 3, preferably the last one.
    """

    def __init__(self, array: NDArray[np.generic], *, channels_first: bool | None = None) -> None:
        if array.dtype != np.uint8 and array.dtype.kind != "f":
            raise TypeError(
                f"`array` must be of uint8, or of floating point in [0, 1], got {array.dtype}; "
                "convert integers from 0 to 255 with array.astype(numpy.uint8)"
            )
        if array.ndim not in (3, 4) or 0 in array.shape:
            raise ValueError(f"`array` must have shape (n, H, W), (n, H, W, C) or (n, C, H, W), got {array.shape}")
        if array.ndim == 4 and channels_first is None:
            channels_first = array.shape[3] not in CHANNELS
            if channels_first and array.shape[1] not in CHANNELS:
                raise ValueError(
                    f"`array` must have 1 or 3 channels on its second or last axis, got shape {array.shape}; "
                    "set channels_first to say which axis it is"
                )
        self._array = array
        self._channels_first = array.ndim == 4 and bool(channels_first)
        height, width, channels = (*array.shape[1:], 1)[:3]
        if self._channels_first:
            channels, height, width = height, width, channels
        self.shape = (int(height), int(width), int(channels))

    def __len__(self) -> int:
        return len(self._array)

    def read(self, indices: ArrayLike) -> NDArray[np.uint8]:
        batch = np.asarray(self._array[check_indices(indices, len(self))])
        if self._channels_first:
            batch = batch.transpose(0, 2, 3, 1)
        return np.ascontiguousarray(_as_uint8(batch)).reshape(-1, *self.shape)


class FilesSource:
    """Picture files that a few threads decode on demand, scaled until they cover `shape` (H, W, C), then cropped.

    `images` are those that have been decoded already, and `reduced_from` is the most common size, if it was reduced.
    """

    def __init__(
        self,
        paths: Sequence[str | Path],
        shape: tuple[int, int, int],
        interpolation: Scaling = "area",
        *,
        images: NDArray[np.uint8] | None = None,
        reduced_from: tuple[int, int] | None = None,
    ) -> None:
        self.paths = tuple(map(Path, paths))
        self.shape = shape
        self.reduced_from = reduced_from
        self._interpolation = interpolation
        self._images = images

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, indices: ArrayLike) -> NDArray[np.uint8]:
        checked = check_indices(indices, len(self))
        if self._images is not None:
            return self._images[checked]
        batch = np.empty((len(checked), *self.shape), np.uint8)
        paths = [self.paths[i] for i in checked]
        for i, image in enumerate(self.decode(paths)):
            if isinstance(image, Exception):
                raise OSError(
                    f"{paths[i]} could be read at the start but not now: {image}; restore the file, then run the same "
                    "command again"
                )
            batch[i] = image
        return batch

    def decode(self, paths: Sequence[Path]) -> Iterator[NDArray[np.uint8] | PictureError]:
        """The image of each file, or why it cannot be read."""
        height, width, channels = self.shape
        read = partial(read_picture, size=(height, width), channels=channels, interpolation=self._interpolation)
        return each_file(read, paths, max(N_THREADS, min(BLOCK, WAITING_BYTES // math.prod(self.shape))))


class DatasetSource:
    """Images of an indexable data set, read on demand.

    ``items[i]`` is a PIL image, an array (H, W) or (H, W, C), a tensor (C, H, W) in [0, 1], or a tuple or dictionary
    with one. By default all have the shape of the first array, or the most common one of PIL images, reduced.
    """

    def __init__(self, items: Any, shape: Sequence[int] | None = None, interpolation: Scaling = "area") -> None:
        if len(items) == 0:
            raise ValueError("`images` must hold at least one image, got an empty data set")
        self.items = items
        self._interpolation = interpolation
        self.reduced_from: tuple[int, int] | None = None
        first = _image_in(items[0])
        self.of_pictures = isinstance(first, Image.Image)
        if shape is None and self.of_pictures:
            looked_at = [_image_in(items[i]) for i in range(min(len(items), LOOKED_AT))]
            headers = [((one.height, one.width), picture_channels(one)) for one in looked_at]
            shape, self.reduced_from = choose_shape(headers, None, None)
        height, width, channels = _pixels(first).shape if shape is None else shape
        self.shape = (int(height), int(width), int(channels))

    def __len__(self) -> int:
        return len(self.items)

    def read(self, indices: ArrayLike) -> NDArray[np.uint8]:
        checked = check_indices(indices, len(self))
        batch = np.empty((len(checked), *self.shape), np.uint8)
        for i, index in enumerate(checked):
            image = _image_in(self.items[int(index)])
            if isinstance(image, Image.Image):
                batch[i] = fit_picture(image, self.shape[:2], self.shape[2], self._interpolation)
                continue
            pixels = _pixels(image)
            if pixels.shape != self.shape:
                raise ValueError(f"image {index} must have shape {self.shape} (H, W, C), got {pixels.shape}")
            batch[i] = pixels
        return batch


class ViewSource:
    """Some images of another source, or images at another shape: see :func:`subset` and :func:`resized`."""

    def __init__(
        self, source: ImageSource, rows: NDArray[np.int64], shape: tuple[int, int, int], interpolation: Any = None
    ) -> None:
        self.shape, self._source, self._rows = shape, source, rows
        self.reduced_from: tuple[int, int] | None = getattr(source, "reduced_from", None)
        self._interpolation = interpolation  # None: as they are

    @property
    def paths(self) -> tuple[Path, ...]:
        """The file of each image; an AttributeError if they are no files."""
        paths: tuple[Path, ...] = self._source.paths  # type: ignore[attr-defined]
        return tuple(paths[i] for i in self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def read(self, indices: ArrayLike) -> NDArray[np.uint8]:
        rows = self._rows[check_indices(indices, len(self))]
        if self._interpolation is None:
            return self._source.read(rows)
        fitted = np.empty((len(rows), *self.shape), np.uint8)
        at_once = max(1, WAITING_BYTES // math.prod(self._source.shape))
        for start in range(0, len(rows), at_once):
            for i, image in enumerate(self._source.read(rows[start : start + at_once]), start):
                picture = Image.fromarray(image[..., 0] if image.shape[2] == 1 else image)
                fitted[i] = fit_picture(picture, self.shape[:2], self.shape[2], self._interpolation)
        return fitted


def subset(images: ImageSource, rows: ArrayLike) -> ImageSource:
    """The images at `rows`, in their order."""
    source: ImageSource = getattr(images, "source", images)  # of labelled images
    return ViewSource(source, check_indices(rows, len(source)), source.shape)


def resized(images: ImageSource, shape: tuple[int, int, int], interpolation: Scaling = "area") -> ImageSource:
    """The images cropped and scaled to `shape` (H, W, C); files are decoded again at this size."""
    source: ImageSource = getattr(images, "source", images)  # of labelled images
    if isinstance(source, ViewSource):
        return subset(resized(source._source, shape, interpolation), source._rows)
    if isinstance(source, FilesSource):
        return FilesSource(source.paths, shape, interpolation)
    if isinstance(source, DatasetSource) and source.of_pictures:
        return DatasetSource(source.items, shape, interpolation)
    if source.shape[2] not in CHANNELS:
        raise ValueError(f"`images` must have 1 or 3 channels to be resized, got shape {source.shape}")
    return ViewSource(source, np.arange(len(source)), shape, interpolation)


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


def each_file(
    function: Callable[[Path], _Result], paths: Sequence[Path], block: int = BLOCK
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


def choose_shape(
    headers: list[tuple[tuple[int, int], int]], size: tuple[int, int] | None, channels: int | None
) -> tuple[tuple[int, int, int], tuple[int, int] | None]:
    """Choose the shape (H, W, C) of the images; also return the most common size if it was reduced, else None."""
    reduced_from = None
    if size is None:
        counts = Counter(header for header, _ in headers)
        height, width = min(counts, key=lambda one: (-counts[one], one))  # the most common size; the smallest in a tie
        size = (height, width)
        if min(size) > SHORT_SIDE:
            reduction = min(size) / SHORT_SIDE
            size, reduced_from = (round(height / reduction), round(width / reduction)), size
    return (*size, channels or max(channel for _, channel in headers)), reduced_from


def _as_uint8(batch: NDArray[np.generic]) -> NDArray[np.uint8]:
    if batch.dtype == np.uint8:
        return batch  # type: ignore[return-value]
    values = batch.astype(np.float32)
    low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    if not (low >= 0.0 and high <= 1.0):  # `not`: NaN fails every comparison
        raise ValueError(f"images of floating point must be in [0, 1], got values from {low:g} to {high:g}")
    levels: NDArray[np.float32] = np.rint(values * 255.0)
    return levels.astype(np.uint8)


def _image_in(item: Any) -> Any:
    """The image in an item of a data set: the item itself, its first element, or the element with an image key."""
    if isinstance(item, dict):
        for key in PICTURE_KEYS:
            if key in item:
                return item[key]
        names = ", ".join(map(repr, item))
        raise ValueError(f"an item of `images` must have one of {', '.join(PICTURE_KEYS)}, got {names}")
    return item[0] if isinstance(item, tuple | list) else item


def _pixels(image: Any) -> NDArray[np.uint8]:
    """Convert an array or tensor of one image to uint8 of shape (H, W, C)."""
    tensor = is_tensor(image)
    array = array_of(image) if tensor else np.asarray(image)
    if array.ndim not in (2, 3):
        raise TypeError(f"an item of `images` must be an image, got {type(image).__name__} of shape {array.shape}")
    source = ArraySource(array[None], channels_first=True if tensor and array.ndim == 3 else None)
    return np.asarray(source.read([0])[0])


def is_tensor(X: Any) -> bool:  # by its module, so that torch is not imported
    return type(X).__module__.startswith("torch") and hasattr(X, "detach")


def array_of(tensor: Any) -> NDArray[Any]:
    tensor = tensor.detach().cpu()
    array: NDArray[Any] = (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
    return array  # NumPy has no bfloat16
