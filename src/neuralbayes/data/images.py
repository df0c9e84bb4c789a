"""Images in any form, read in pieces: named data sets, folders, files, arrays, tensors, PIL images, data sets.

Three kinds of sources hold them: :class:`ArraySource`, :class:`FilesSource` and :class:`DatasetSource`.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from neuralbayes.data.arrays import array_shapes, open_array
from neuralbayes.data.named import SETS, is_name, load
from neuralbayes.data.path_text import readable
from neuralbayes.data.pictures import (
    IN_WORDS,
    Interpolation,
    NetworkResizing,
    PictureError,
    Skipped,
    find_pictures,
    fit_picture,
    picture_channels,
    picture_header,
    read_picture,
)
from neuralbayes.data.progress import watched
from neuralbayes.system.limits import free_memory

CHANNELS = (1, 3)  # grey or RGB: identifies the channel axis of an array
SPLITS = ("train", "test", "unlabeled")
SPLIT_FOLDERS = {
    "train": ("train", "training"),
    "test": ("test", "val", "valid", "validation"),
    "unlabeled": ("unlabeled",),
}
"""Sub-folders that are parts of a data set, not classes."""

IMAGE_KEYS = ("", "images", "x", "X", "data", "arr_0")
LABEL_KEYS = ("labels", "y", "target", "targets")
PICTURE_KEYS = ("image", "img", "picture", "pixel_values")  # in items of a data set that are dictionaries

SHORT_SIDE = 64  # maximum pixels of the shorter side if no size is given
LOOKED_AT = 200  # items for finding the most common size of a data set
N_THREADS = min(8, (os.cpu_count() or 1) + 1)  # Pillow releases the GIL while it decodes
BLOCK = 256  # maximum number of files handed to the threads at a time
WAITING_BYTES = 2**27  # maximum bytes of decoded images that wait to be copied or resized
KEPT_BYTES = 2**29  # of decoded images, where the free memory is unknown

_Result = TypeVar("_Result")


@runtime_checkable
class ImageSource(Protocol):
    """The interface of images: their number, their shape, and reading some of them.

    Any object with these three members is accepted as images.
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
    >>> len(source), source.shape, source.read([4, 2]).shape
    (10, (32, 32, 3), (2, 32, 32, 3))
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
        """Images at `indices` in uint8, shape (m, H, W, C)."""
        batch = np.asarray(self._array[check_indices(indices, len(self))])
        if self._channels_first:
            batch = batch.transpose(0, 2, 3, 1)
        return np.ascontiguousarray(_as_uint8(batch)).reshape(-1, *self.shape)


class FilesSource:
    """Picture files that a few threads decode on demand: PNG, JPEG, BMP, GIF, TIFF, WebP, AVIF, HEIC.

    `paths` are known to be readable; pictures are scaled until they cover `shape` (H, W, C), then cropped. `images` are
    those that have been decoded already, and `reduced_from` is the most common size, if it was reduced.
    """

    def __init__(
        self,
        paths: Sequence[str | Path],
        shape: tuple[int, int, int],
        interpolation: Interpolation | NetworkResizing = "area",
        *,
        images: NDArray[np.uint8] | None = None,
        reduced_from: tuple[int, int] | None = None,
    ) -> None:
        self.paths = tuple(map(Path, paths))
        self.shape = shape
        self.reduced_from = reduced_from
        self._interpolation: Interpolation | NetworkResizing = interpolation
        self._images = images

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, indices: ArrayLike) -> NDArray[np.uint8]:
        """Images at `indices` in uint8, shape (m, H, W, C); raises OSError if a file can no longer be read."""
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

    def at(self, shape: tuple[int, int, int], interpolation: Interpolation | NetworkResizing = "area") -> FilesSource:
        """The same files, decoded on demand at another shape."""
        return FilesSource(self.paths, shape, interpolation)

    def read_at(self, indices: ArrayLike, size: tuple[int, int]) -> NDArray[np.uint8]:
        """Images at `indices`, decoded from their files at another size (H, W)."""
        return self.at((*size, self.shape[2])).read(indices)

    def decode(self, paths: Sequence[Path]) -> Iterator[NDArray[np.uint8] | PictureError]:
        """The image of each file, or why it cannot be read."""

        def read(path: Path) -> NDArray[np.uint8]:
            return read_picture(path, self.shape[:2], self.shape[2], self._interpolation)

        return _each(read, paths, max(N_THREADS, min(BLOCK, WAITING_BYTES // math.prod(self.shape))))


class DatasetSource:
    """Images of an indexable data set, read on demand.

    Parameters
    ----------
    items : sequence
        With ``len(items)`` and ``items[i]``: a PIL image, an array (H, W) or (H, W, C), a tensor (C, H, W) in [0, 1];
        or a tuple or dictionary with one of these.
    shape : tuple (H, W, C), optional
        Shape of all images. By default that of the arrays or, for PIL images, the most common among the first ones,
        with at most 64 pixels on the shorter side.
    interpolation : {"area", "bilinear", "bicubic"} or NetworkResizing, default="area"
        How to scale PIL images.
    """

    def __init__(
        self,
        items: Any,
        shape: Sequence[int] | None = None,
        interpolation: Interpolation | NetworkResizing = "area",
    ) -> None:
        if len(items) == 0:
            raise ValueError("`images` must hold at least one image, got an empty data set")
        self._items = items
        self._interpolation: Interpolation | NetworkResizing = interpolation
        self.reduced_from: tuple[int, int] | None = None
        first = _image_in(items[0])
        if shape is None and isinstance(first, Image.Image):
            looked_at = [_image_in(items[i]) for i in range(min(len(items), LOOKED_AT))]
            headers = [((one.height, one.width), picture_channels(one)) for one in looked_at]
            shape, self.reduced_from = _choose_shape(headers, None, None)
        height, width, channels = _pixels(first).shape if shape is None else shape
        self.shape = (int(height), int(width), int(channels))

    def __len__(self) -> int:
        return len(self._items)

    def read(self, indices: ArrayLike) -> NDArray[np.uint8]:
        """Images at `indices` in uint8, shape (m, H, W, C)."""
        checked = check_indices(indices, len(self))
        batch = np.empty((len(checked), *self.shape), np.uint8)
        for i, index in enumerate(checked):
            image = _image_in(self._items[int(index)])
            if isinstance(image, Image.Image):
                batch[i] = fit_picture(image, self.shape[:2], self.shape[2], self._interpolation)
                continue
            pixels = _pixels(image)
            if pixels.shape != self.shape:
                raise ValueError(f"image {index} must have shape {self.shape} (H, W, C), got {pixels.shape}")
            batch[i] = pixels
        return batch

    def at(self, shape: tuple[int, int, int], interpolation: Interpolation | NetworkResizing = "area") -> ImageSource:
        """The same images at another shape; PIL images are scaled from their own size."""
        if isinstance(_image_in(self._items[0]), Image.Image):
            return DatasetSource(self._items, shape, interpolation)
        return ViewSource(self, np.arange(len(self)), shape, interpolation)


class ViewSource:
    """Some images of another source, or images at another shape: see :func:`subset` and :func:`resized`."""

    def __init__(
        self,
        source: ImageSource,
        rows: NDArray[np.int64],
        shape: tuple[int, int, int],
        interpolation: Interpolation | NetworkResizing | None = None,
    ) -> None:
        self.shape, self._source, self._rows = shape, source, rows
        self.reduced_from: tuple[int, int] | None = getattr(source, "reduced_from", None)
        self._interpolation = interpolation  # None: as they are

    @property
    def paths(self) -> tuple[Path, ...]:
        """The file of each image; an AttributeError if they are no files."""
        paths: tuple[Path, ...] = self._source.paths  # type: ignore[attr-defined]
        return tuple(paths[i] for i in self._rows)

    def at(self, shape: tuple[int, int, int], interpolation: Interpolation | NetworkResizing = "area") -> ImageSource:
        """The same images at another shape, from their source."""
        return subset(resized(self._source, shape, interpolation), self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def read(self, indices: ArrayLike) -> NDArray[np.uint8]:
        """Images at `indices` in uint8, shape (m, H, W, C)."""
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
    source = images.source if isinstance(images, Images) else images
    return ViewSource(source, check_indices(rows, len(source)), source.shape)


def resized(
    images: ImageSource, shape: tuple[int, int, int], interpolation: Interpolation | NetworkResizing = "area"
) -> ImageSource:
    """The images cropped and scaled to `shape` (H, W, C); files are decoded again at this size.

    Examples
    --------
    >>> resized(ArraySource(np.zeros((10, 28, 28), np.uint8)), (32, 32, 3)).read([4]).shape
    (1, 32, 32, 3)
    """
    source = images.source if isinstance(images, Images) else images
    if isinstance(source, FilesSource | DatasetSource | ViewSource):
        return source.at(shape, interpolation)
    if source.shape[2] not in CHANNELS:
        raise ValueError(f"`images` must have 1 or 3 channels to be resized, got shape {source.shape}")
    return ViewSource(source, np.arange(len(source)), shape, interpolation)


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
    >>> images.take([5, 2]).read([0]).shape
    (1, 8, 8, 1)
    """

    name: str
    split: str
    source: ImageSource
    labels: NDArray[np.int64] | None = field(default=None, repr=False)
    class_names: tuple[str, ...] | None = field(default=None, repr=False)
    skipped: list[Skipped] = field(default_factory=list, repr=False)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(H, W, C) of one image."""
        return self.source.shape

    def __len__(self) -> int:
        return len(self.source)

    def read(self, indices: ArrayLike) -> NDArray[np.uint8]:
        """Images at `indices` in uint8, shape (m, H, W, C)."""
        return self.source.read(indices)

    def take(self, rows: ArrayLike) -> Images:
        """The images at `rows`, in their order, with their labels."""
        source, labels = subset(self.source, rows), self.labels
        return replace(self, source=source, labels=None if labels is None else labels[np.asarray(rows, np.int64)])


def load_images(
    data: Any,
    *,
    split: str = "train",
    size: int | tuple[int, int] | None = None,
    channels: int | None = None,
    interpolation: Interpolation | NetworkResizing = "area",
    progress: bool = True,
) -> Images:
    """Load images: a data set by its name, a folder, a list of pictures, a ``.npy``, a ``.npz``, or an array.

    Every function that learns from images accepts the result. Images are read in blocks, so they may be larger than
    memory.

    Parameters
    ----------
    data : str, path, list of paths or PIL images, array, tensor, data set or ImageSource
        A name such as ``"cifar10"`` takes precedence over a folder of that name; write ``"./cifar10"`` for the folder.
        A ``.npz`` contains "images" and optionally "labels", or "train_images", "y_test" and so on. Unreadable files in
        a folder are skipped and listed in `skipped`; in a list of paths, they are an error. Sub-folders are classes if
        there are at least two and every picture is in one. Arrays and tensors have shape (n, H, W), (n, H, W, C) or
        (n, C, H, W) and are uint8, or floating point in [0, 1].
    split : {"train", "test", "unlabeled"}, default="train"
        Splits of a folder are its sub-folders train, test (or val) and unlabeled. Data without splits is all "train".
    size : int or tuple (H, W), optional
        Images of another size are scaled and cropped. By default, pictures in a folder get its most common size,
        reduced to 64 pixels on the shorter side, and other images stay as they are.
    channels : {1, 3}, optional
        1 for grey, 3 for RGB. By default as in the data.
    interpolation : {"area", "bilinear", "bicubic"}, default="area"
        How images are scaled.
    progress : bool, default=True
        Show a progress bar if reading takes longer than two seconds.

    Returns
    -------
    Images
        ``len(images)``, ``images.shape``, ``images.read(indices)``, ``images.labels``.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> images = nb.load_images("digits", split="test")
    >>> len(images), images.shape, images.labels[:3]
    (360, (8, 8, 1), array([2, 3, 4]))
    >>> nb.load_images(np.zeros((10, 28, 28), np.uint8), size=32, channels=3).shape
    (32, 32, 3)
    """
    from neuralbayes.data.pictures import NetworkResizing

    if split not in SPLITS:
        raise ValueError(f"`split` must be one of {', '.join(SPLITS)}, got {split!r}")
    if channels not in (None, 1, 3):
        raise ValueError(f"`channels` must be 1 (grey) or 3 (RGB), got {channels!r}")
    sides = (size, size) if isinstance(size, int) else size
    if sides is not None and not (len(sides) == 2 and min(sides) >= 1 and max(sides) <= 4096):
        raise ValueError(f"`size` must be an integer from 1 to 4096 or two of them (H, W), got {size!r}")
    if isinstance(data, str) and is_name(data):
        images = _named(data, split, progress)
    elif isinstance(data, str | Path):
        path = Path(data).expanduser()
        if path.is_dir():
            return _folder(path, split, sides, channels, interpolation, progress)
        images = _array_file(path, split)
    elif split != "train":
        raise ValueError(f"`split` must be 'train' unless `data` is a name, a folder or a file, got {split!r}")
    elif isinstance(data, list | tuple) and data and isinstance(data[0], str | Path):
        other = next((path for path in data if not isinstance(path, str | Path)), None)
        if other is not None:
            raise TypeError(f"`data` must contain only paths if it starts with one, got {type(other).__name__}")
        paths = [Path(path).expanduser() for path in data]
        files, _ = _decode_files(paths, sides, channels, interpolation, progress, strict=True)
        return Images("pictures", split, files)
    else:
        source = as_source(data)
        images = source if isinstance(source, Images) else Images("images", split, source)
    shape = (*(sides or images.shape[:2]), channels or images.shape[2])
    as_it_is = not isinstance(interpolation, NetworkResizing) or interpolation.scaled == shape[:2]
    return (
        images if shape == images.shape and as_it_is else replace(images, source=resized(images, shape, interpolation))
    )


def images_given(X: Any, shape: Sequence[int] | None = None) -> ImageSource | None:
    """`X` as a source of images; None for anything else, such as rows.

    Parameters
    ----------
    X : object
        What :func:`neuralbayes.load_images` takes. Data sets are those of PyTorch or Hugging Face, whose items are
        images or start with one, or their loaders.
    shape : tuple (H, W, C), optional
        Required shape, such as that of the fitted images. Picture files and PIL images are resized to it.

    Examples
    --------
    >>> from PIL import Image
    >>> pictures = [Image.new("L", (12, 8)) for _ in range(5)]
    >>> images_given(pictures).shape, images_given(pictures, (16, 16, 3)).shape
    ((8, 12, 1), (16, 16, 3))
    >>> images_given([[0.5, 1.0], [2.0, 3.0]]) is None  # rows
    True
    """
    if isinstance(X, ImageSource):
        return X
    if isinstance(X, str | PathLike) or (isinstance(X, list | tuple) and X and isinstance(X[0], str | PathLike)):
        size, channels = (None, None) if shape is None else ((int(shape[0]), int(shape[1])), int(shape[2]))
        return load_images(X if isinstance(X, str | list | tuple) else Path(X), size=size, channels=channels)
    if _is_tensor(X):
        X = _array_of(X)
    if isinstance(X, np.ndarray):
        return ArraySource(X) if X.ndim in (3, 4) and X.dtype != object else None
    if isinstance(X, list | tuple):
        are_images = X and (isinstance(X[0], Image.Image) or _is_tensor(X[0]) or isinstance(X[0], np.ndarray))
        return DatasetSource(X, shape) if are_images and getattr(X[0], "ndim", 2) > 1 else None
    if hasattr(X, "dataset") and hasattr(X, "batch_size"):  # a DataLoader: ignore its order and batches
        X = X.dataset
    return DatasetSource(X, shape) if _is_data_set(X) else None


def as_source(images: Any) -> ImageSource:
    """Convert images in any form to a source; raises TypeError for anything else."""
    found = images_given(images)
    if found is None:
        if isinstance(images, np.ndarray):
            return ArraySource(images)  # raises: rows
        raise TypeError(
            "`images` must be a folder, paths, PIL images, arrays, tensors, a data set, or have shape, len() and "
            f"read(), got {type(images).__name__}"
        )
    return found


def holds_images(data: str | Path) -> bool:
    """Whether :func:`load_images` can read `data`: a named data set, a folder, or a file of arrays of images.

    Examples
    --------
    >>> holds_images("mnist"), holds_images("table.csv")
    (True, False)
    """

    path = Path(data).expanduser()
    if is_name(str(data)) or path.is_dir():
        return True
    if path.suffix not in (".npy", ".npz") or not path.is_file():
        return False
    try:
        keys = {key for split in SPLITS for key in _keys("images", split)}
        return any(len(shape) in (3, 4) for key, shape in array_shapes(path).items() if key in keys)
    except ValueError:  # damaged: the reader reports it
        return False


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


def _named(name: str, split: str, progress: bool) -> Images:
    data = load(name, progress=progress)
    part = getattr(data, split)
    if part is None:
        raise ValueError(f"`split` must be train or test for {data.name}, got {split!r}")
    class_names = None if part.labels is None else data.class_names
    return Images(data.name, split, ArraySource(part.images, channels_first=False), part.labels, class_names)


def _array_file(path: Path, split: str) -> Images:
    if not path.exists():
        raise FileNotFoundError(
            f"`data` must be a data set ({', '.join(SETS)}), a folder, a .npy or a .npz, got {str(path)!r}, which does "
            "not exist"
        )
    if path.suffix not in (".npy", ".npz"):
        raise ValueError(f"`data` must be a folder, a .npy or a .npz, got the file {path}")
    found, wanted = array_shapes(path), _keys("images", split)
    image_key, label_key = (next((k for k in _keys(kind, split) if k in found), None) for kind in ("images", "labels"))
    if image_key is None:
        raise ValueError(
            f"{path} has no split {split!r}: it must hold one of the arrays {', '.join(filter(None, wanted))}"
        )
    source = ArraySource(open_array(path, image_key))
    if label_key is None:
        return Images(str(path), split, source)
    labels = open_array(path, label_key)
    labels = labels[:, 0] if labels.shape == (len(source), 1) else labels  # as Keras has them
    if labels.shape != (len(source),) or labels.dtype.kind not in "iu":
        raise ValueError(f"the labels in {path} must be {len(source)} integers, got {labels.dtype} of {labels.shape}")
    return Images(str(path), split, source, labels.astype(np.int64))


def _keys(kind: str, split: str) -> tuple[str, ...]:
    """Names of the "images" or "labels" of a split in a .npz file; that of the array in a .npy file is ""."""
    keys = (f"{split}_images", f"x_{split}", f"X_{split}") if kind == "images" else (f"{split}_labels", f"y_{split}")
    return keys if split != "train" else (*keys, *(IMAGE_KEYS if kind == "images" else LABEL_KEYS))


def _folder(
    path: Path,
    split: str,
    size: tuple[int, int] | None,
    channels: int | None,
    interpolation: Interpolation | NetworkResizing,
    progress: bool,
) -> Images:

    folder = _split_folder(path, split)
    if folder is None:
        raise ValueError(f"{path} has no split {split!r}; put its pictures into the sub-folders train and {split}")
    found, skipped = find_pictures(folder)
    source, damaged = _decode_files(found, size, channels, interpolation, progress, strict=False)
    skipped += damaged
    if len(source) == 0:
        reasons = "".join(f"\n  {path}: {reason}" for path, reason in skipped[:5])
        more = f"\n  and {len(skipped) - 5} more" if len(skipped) > 5 else ""
        raise ValueError(
            f"{folder} must contain readable pictures ({IN_WORDS}), but has none"
            + (f"; skipped:{reasons}{more}" if reasons else "")
        )
    below = [path.relative_to(folder).parts for path in source.paths]
    classes, labels = np.unique([parts[0] for parts in below], return_inverse=True)
    if len(classes) < 2 or min(map(len, below)) < 2:  # one folder, or pictures outside of folders
        return Images(str(path), split, source, skipped=skipped)
    return Images(str(path), split, source, labels.astype(np.int64), tuple(map(readable, classes.tolist())), skipped)


def _split_folder(path: Path, split: str) -> Path | None:
    """The folder of a part of the pictures below `path`; unsplit pictures are all "train"."""
    parts = {
        name: next((path / folder for folder in folders if (path / folder).is_dir()), None)
        for name, folders in SPLIT_FOLDERS.items()
    }
    # Both are required: a single folder called train may be a class.
    is_split = parts["train"] is not None and (parts["test"] is not None or parts["unlabeled"] is not None)
    return parts[split] if is_split else (path if split == "train" else None)


def _decode_files(
    paths: Sequence[Path],
    size: tuple[int, int] | None,
    channels: int | None,
    interpolation: Interpolation | NetworkResizing,
    progress: bool,
    *,
    strict: bool,
) -> tuple[FilesSource, list[Skipped]]:
    """Choose a shape by the headers, and decode every picture once, so that damage shows before a long run.

    The images are kept if they take at most a quarter of the free memory; otherwise they are decoded on demand.
    """

    skipped: list[Skipped] = []

    def leave_out(path: Path, reason: PictureError) -> None:
        if strict:
            raise ValueError(f"`data` must be paths of readable pictures ({IN_WORDS}); {path}: {reason}")
        skipped.append((path, str(reason)))

    found, headers = [], []
    looked_at = watched(_each(picture_header, paths), "looking at pictures", len(paths), progress)
    for path, header in zip(paths, looked_at, strict=True):
        if isinstance(header, PictureError):
            leave_out(path, header)
        else:
            found.append(path)
            headers.append(header)
    if not found:
        return FilesSource((), (1, 1, 1)), skipped
    shape, reduced_from = _choose_shape(headers, size, channels)
    free, n_bytes = free_memory(), len(found) * math.prod(shape)
    keep = n_bytes <= (KEPT_BYTES if free is None else free // 4)
    # Fill one array: a list of images and then their stack would need twice the memory.
    images = np.empty((len(found) if keep else 0, *shape), np.uint8)
    kept: list[Path] = []
    decoded = FilesSource(found, shape, interpolation).decode(found)
    for path, image in zip(found, watched(decoded, "reading pictures", len(found), progress), strict=True):
        if isinstance(image, PictureError):
            leave_out(path, image)
            continue
        if keep:
            images[len(kept)] = image
        kept.append(path)
    known = images[: len(kept)] if keep else None
    return FilesSource(kept, shape, interpolation, images=known, reduced_from=reduced_from), skipped


def _each(
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


def _choose_shape(
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
    tensor = _is_tensor(image)
    array = _array_of(image) if tensor else np.asarray(image)
    if array.ndim not in (2, 3):
        raise TypeError(f"an item of `images` must be an image, got {type(image).__name__} of shape {array.shape}")
    source = ArraySource(array[None], channels_first=True if tensor and array.ndim == 3 else None)
    return np.asarray(source.read([0])[0])


def _is_tensor(X: Any) -> bool:  # by its module, so that torch is not imported
    return type(X).__module__.startswith("torch") and hasattr(X, "detach")


def _is_data_set(X: Any) -> bool:
    """Whether `X` is a data set of PyTorch, or one of Hugging Face, which need not be installed."""
    bases = {f"{base.__module__}.{base.__qualname__}" for base in type(X).__mro__}
    if "torch.utils.data.dataset.Dataset" in bases:
        return hasattr(X, "__len__")
    return any(base.startswith("datasets.") for base in bases) and hasattr(X, "column_names")


def _array_of(tensor: Any) -> NDArray[Any]:
    tensor = tensor.detach().cpu()
    array: NDArray[Any] = (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
    return array  # NumPy has no bfloat16
