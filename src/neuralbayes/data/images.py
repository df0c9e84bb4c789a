"""Images in any form, read in pieces: named data sets, folders, files, arrays, tensors, PIL images, data sets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from neuralbayes.data.arrays import array_shapes, open_array
from neuralbayes.data.named import SETS, is_name, load
from neuralbayes.data.pictures import IN_WORDS, PictureError, Scaling, Skipped, find_pictures, picture_header, readable
from neuralbayes.data.sources import (
    ArraySource,
    DatasetSource,
    FilesSource,
    ImageSource,
    array_of,
    choose_shape,
    each_file,
    is_tensor,
    resized,
    subset,
)
from neuralbayes.system.limits import free_memory
from neuralbayes.training.progress import watched

__all__ = ["ImageSource", "Images", "as_source", "holds_images", "images_given", "load_images"]

# Sub-folders that are parts of a data set, not classes.
SPLITS = {"train": ("train", "training"), "test": ("test", "val", "valid", "validation"), "unlabeled": ("unlabeled",)}

IMAGE_KEYS = ("", "images", "x", "X", "data", "arr_0")
LABEL_KEYS = ("labels", "y", "target", "targets")
DECODED_BYTES = 2**29  # of images in memory, where the free memory is unknown

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Images:
    """Images with optional labels, accepted wherever an `ImageSource` is accepted.

    Attributes
    ----------
    name : str
        The name of the data set, or the path.
    split : str
    source : ImageSource
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
        """The images at `indices` as uint8 of shape (m, H, W, C)."""
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
    interpolation: Scaling = "area",
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

    Examples
    --------
    >>> import neuralbayes as nb
    >>> images = nb.load_images("digits", split="test")
    >>> len(images), images.shape, images.labels[:3]
    (360, (8, 8, 1), array([2, 3, 4]))
    >>> nb.load_images(np.zeros((10, 28, 28), np.uint8), size=32, channels=3).shape
    (32, 32, 3)
    """
    if split not in SPLITS:
        raise ValueError(f"`split` must be one of {', '.join(SPLITS)}, got {split!r}")
    if channels not in (None, 1, 3):
        raise ValueError(f"`channels` must be 1 (grey) or 3 (RGB), got {channels!r}")
    sides = (size, size) if isinstance(size, int) else size
    if sides is not None and not (len(sides) == 2 and min(sides) >= 1 and max(sides) <= 4096):
        raise ValueError(f"`size` must be an integer from 1 to 4096 or two of them (H, W), got {size!r}")
    if isinstance(data, str) and is_name(data):
        known = load(data, progress=progress)
        part = getattr(known, split)
        if part is None:
            raise ValueError(f"`split` must be train or test for {known.name}, got {split!r}")
        class_names = None if part.labels is None else known.class_names
        images = Images(known.name, split, ArraySource(part.images, channels_first=False), part.labels, class_names)
    elif isinstance(data, str | Path):
        path = Path(data).expanduser()
        if path.is_dir():
            folder = _folder_of(path, split)
            found, skipped = find_pictures(folder)
            files, damaged = _decode_files(found, sides, channels, interpolation, progress)
            return _with_classes(Images(str(path), split, files, skipped=skipped + damaged), folder)
        images = _array_file(path, split)
    elif split != "train":
        raise ValueError(f"`split` must be 'train' unless `data` is a name, a folder or a file, got {split!r}")
    elif isinstance(data, list | tuple) and data and isinstance(data[0], str | Path):
        for other in data:
            if not isinstance(other, str | Path):
                raise TypeError(f"`data` must contain only paths if it starts with one, got {type(other).__name__}")
        paths = [Path(path).expanduser() for path in data]
        files, skipped = _decode_files(paths, sides, channels, interpolation, progress)
        if skipped:  # labels and rows of the caller would no longer belong to the images
            path, reason = skipped[0]
            raise ValueError(f"`data` must be paths of readable pictures ({IN_WORDS}); {path}: {reason}")
        return Images("pictures", split, files)
    else:
        source = as_source(data)
        images = source if isinstance(source, Images) else Images("images", split, source)
    shape = (*(sides or images.shape[:2]), channels or images.shape[2])
    if shape == images.shape and getattr(interpolation, "scaled", shape[:2]) == shape[:2]:
        return images
    return replace(images, source=resized(images, shape, interpolation))


def images_given(X: Any, shape: Sequence[int] | None = None) -> ImageSource | None:
    """`X` as a source of images; None for anything else, such as rows.

    Data sets are those of PyTorch or Hugging Face, whose items are images or start with one, or their loaders. Picture
    files and PIL images are resized to `shape` (H, W, C), such as that of the fitted images.
    """
    if isinstance(X, ImageSource):
        return X
    if isinstance(X, str | PathLike) or (isinstance(X, list | tuple) and X and isinstance(X[0], str | PathLike)):
        size, channels = (None, None) if shape is None else ((int(shape[0]), int(shape[1])), int(shape[2]))
        return load_images(X if isinstance(X, str | list | tuple) else Path(X), size=size, channels=channels)
    if is_tensor(X):
        X = array_of(X)
    if isinstance(X, np.ndarray):
        return ArraySource(X) if X.ndim in (3, 4) and X.dtype != object else None
    if isinstance(X, list | tuple):
        are_images = X and (isinstance(X[0], Image.Image) or is_tensor(X[0]) or isinstance(X[0], np.ndarray))
        return DatasetSource(X, shape) if are_images and getattr(X[0], "ndim", 2) > 1 else None
    if hasattr(X, "dataset") and hasattr(X, "batch_size"):  # a DataLoader: ignore its order and batches
        X = X.dataset
    bases = {f"{base.__module__}.{base.__qualname__}" for base in type(X).__mro__}  # without importing them
    of_torch = "torch.utils.data.dataset.Dataset" in bases and hasattr(X, "__len__")
    of_hugging_face = any(base.startswith("datasets.") for base in bases) and hasattr(X, "column_names")
    return DatasetSource(X, shape) if of_torch or of_hugging_face else None


def as_source(images: Any) -> ImageSource:
    """Convert images in any form to a source; raises TypeError for anything else."""
    found = images_given(images)
    if found is None and isinstance(images, np.ndarray):
        return ArraySource(images)  # raises: rows
    if found is None:
        raise TypeError(
            "`images` must be a folder, paths, PIL images, arrays, tensors, a data set, or have shape, len() and "
            f"read(), got {type(images).__name__}"
        )
    return found


def holds_images(data: str | Path) -> bool:
    """Whether :func:`load_images` can read `data`: a named data set, a folder, or a file of arrays of images."""
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


def _folder_of(path: Path, split: str) -> Path:
    """The folder with the pictures of a split: a sub-folder, if there are several such, or `path` itself."""
    parts = {
        name: next((path / folder for folder in folders if (path / folder).is_dir()), None)
        for name, folders in SPLITS.items()
    }
    # Both are required: a single folder called train may be a class. Unsplit pictures are all "train".
    is_split = parts["train"] is not None and (parts["test"] is not None or parts["unlabeled"] is not None)
    folder = parts[split] if is_split else (path if split == "train" else None)
    if folder is None:
        raise ValueError(f"{path} has no split {split!r}; put its pictures into the sub-folders train and {split}")
    return folder


def _with_classes(images: Images, folder: Path) -> Images:
    """Images of a folder with its sub-folders as classes, unless there is one, or pictures outside of them."""
    if len(images) == 0:
        skipped = images.skipped
        reasons = "".join(f"\n  {path}: {reason}" for path, reason in skipped[:5])
        more = f"\n  and {len(skipped) - 5} more" if len(skipped) > 5 else ""
        raise ValueError(
            f"{folder} must contain readable pictures ({IN_WORDS}), but has none"
            + (f"; skipped:{reasons}{more}" if reasons else "")
        )
    below = [path.relative_to(folder).parts for path in images.source.paths]  # type: ignore[attr-defined]
    classes, labels = np.unique([parts[0] for parts in below], return_inverse=True)
    if len(classes) < 2 or min(map(len, below)) < 2:
        return images
    return replace(images, labels=labels.astype(np.int64), class_names=tuple(map(readable, classes.tolist())))


def _decode_files(
    paths: Sequence[Path], size: tuple[int, int] | None, channels: int | None, interpolation: Scaling, progress: bool
) -> tuple[FilesSource, list[Skipped]]:
    """Choose a shape by the headers, and decode every picture once, so that damage shows before a long run."""
    skipped: list[Skipped] = []
    headers = watched(each_file(picture_header, paths), "looking at pictures", len(paths), progress)
    looked_at = list(_intact(paths, headers, skipped))
    if not looked_at:
        return FilesSource((), (1, 1, 1)), skipped
    found = [path for path, _ in looked_at]
    shape, reduced_from = choose_shape([header for _, header in looked_at], size, channels)
    free, n_bytes = free_memory(), len(found) * math.prod(shape)
    keep = n_bytes <= (DECODED_BYTES if free is None else free // 4)  # others are decoded on demand
    # Fill one array: a list of images and then their stack would need twice the memory.
    images = np.empty((len(found) if keep else 0, *shape), np.uint8)
    intact: list[Path] = []
    decoded = watched(FilesSource(found, shape, interpolation).decode(found), "reading pictures", len(found), progress)
    for path, image in _intact(found, decoded, skipped):
        if keep:
            images[len(intact)] = image
        intact.append(path)
    decoded_images = images[: len(intact)] if keep else None
    return FilesSource(intact, shape, interpolation, images=decoded_images, reduced_from=reduced_from), skipped


def _intact(
    paths: Sequence[Path], results: Iterable[T | PictureError], skipped: list[Skipped]
) -> Iterator[tuple[Path, T]]:
    """The files that could be read; the reasons for the others go to `skipped`."""
    for path, result in zip(paths, results, strict=True):
        if isinstance(result, PictureError):
            skipped.append((path, str(result)))
        else:
            yield path, result
