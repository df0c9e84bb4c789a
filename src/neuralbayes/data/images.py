"""Load images from a named data set, a folder, a list of pictures, a file of arrays, or an array."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.arrays import npz_keys, npz_shape, open_npy, open_npz
from neuralbayes.data.catalog import find_entry, is_name, names
from neuralbayes.data.folder import Check, FilesSource, FolderSource, check_channels, check_size
from neuralbayes.data.resizing import Interpolation, NetworkResizing
from neuralbayes.data.scan import find_classes, scan_folder
from neuralbayes.data.sources import ArraySource, FittedSource, Images, as_source

SPLITS = ("train", "test", "unlabeled")
#: Sub-folders that are parts of a data set, not classes.
SPLIT_FOLDERS = {
    "train": ("train", "training"),
    "test": ("test", "val", "valid", "validation"),
    "unlabeled": ("unlabeled",),
}
IMAGE_KEYS = ("images", "x", "X", "data", "arr_0")
LABEL_KEYS = ("labels", "y", "target", "targets")


def load_images(
    data: Any,
    *,
    split: str = "train",
    size: int | tuple[int, int] | None = None,
    channels: int | None = None,
    interpolation: Interpolation | NetworkResizing = "area",
    class_folders: bool | None = None,
    root: str | Path | None = None,
    offline: bool = False,
    progress: bool = True,
    check: Check | None = None,
) -> Images:
    """Load images: a data set by its name, a folder, a list of pictures, a ``.npy``, a ``.npz``, or an array.

    Every function that learns from images accepts the result. Images are read in blocks, so they may be larger than
    memory.

    Parameters
    ----------
    data : str, path, list of paths, array, tensor or ImageSource
        A name such as ``"cifar10"`` takes precedence over a folder of that name; write ``"./cifar10"`` for the folder.
        A ``.npz`` contains "images" and optionally "labels", or "train_images", "test_labels" and so on; "x_train" and
        "y_test" work as well. Unreadable files in a folder are skipped and listed in `skipped`. In a list of paths, an
        unreadable file is an error. Arrays and tensors have shape (n, H, W), (n, H, W, C) or (n, C, H, W) and are
        uint8, or floating point in [0, 1].
    split : {"train", "test", "unlabeled"}, default="train"
        Splits of a folder are its sub-folders train, test (or val) and unlabeled. Data without splits is all "train".
    size : int or tuple (H, W), optional
        Images of another size are scaled and cropped. By default, pictures in a folder get its most common size,
        reduced to 64 pixels on the shorter side, and other images stay as they are.
    channels : {1, 3}, optional
        1 for grey, 3 for RGB. By default as in the data.
    interpolation : {"area", "bilinear", "bicubic"}, default="area"
        How images are scaled.
    class_folders : bool, optional
        Whether sub-folders are classes. By default they are if there are at least two and every picture is in one.
    root, offline, progress
        See :func:`neuralbayes.datasets.load`.
    check : callable, optional
        Called with the number of images and their shape (H, W, C) before any picture is decoded. It may raise an error
        if that is too much.

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
    if split not in SPLITS:
        raise ValueError(f"`split` must be one of {', '.join(SPLITS)}, got {split!r}")
    wanted_size, wanted_channels = check_size(size), check_channels(channels)
    if isinstance(data, str) and is_name(data):
        images = _named(data, split, root, offline, progress)
    elif not isinstance(data, str | Path):
        if split != "train":
            raise ValueError(f"`split` must be 'train' unless `data` is a name, a folder or a file, got {split!r}")
        if isinstance(data, list | tuple) and data and isinstance(data[0], str | Path):
            paths = _check_paths(data)
            files = FilesSource(
                paths,
                size=wanted_size,
                channels=wanted_channels,
                interpolation=interpolation,
                progress=progress,
                check=check,
            )
            return Images("pictures", split, files)
        source = as_source(data)
        images = source if isinstance(source, Images) else Images("images", split, source)
    else:
        path = Path(data).expanduser()
        if path.is_dir():
            return _folder(path, split, wanted_size, wanted_channels, interpolation, class_folders, progress, check)
        images = _file(path, split)
    shape = images.source.shape
    height, width = wanted_size or shape[:2]
    wanted = (height, width, wanted_channels or shape[2])
    if check is not None:
        check(len(images), wanted)
    as_it_is = not isinstance(interpolation, NetworkResizing) or interpolation.scaled == wanted[:2]
    if wanted == shape and as_it_is:
        return images
    fitted = FittedSource(images.source, wanted[:2], wanted[2], interpolation=interpolation)
    return Images(images.name, images.split, fitted, images.labels, images.class_names, images.skipped)


def holds_images(data: str | Path) -> bool:
    """Whether :func:`load_images` can read `data`: a named data set, a folder, or a file of arrays with three or four
    axes.

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
        if path.suffix == ".npy":
            return open_npy(path).ndim in (3, 4)
        split_keys = [key for split in SPLITS for key in (f"{split}_images", f"x_{split}", f"X_{split}")]
        keys = set(npz_keys(path)).intersection([*split_keys, *IMAGE_KEYS])
        return any(len(npz_shape(path, key)) in (3, 4) for key in keys)
    except ValueError:  # damaged: the reader reports it
        return False


def labeled_splits(data: str | Path) -> dict[str, bool]:
    """The parts of `data`, and whether each has labels, without decoding pictures.

    There are none if `data` cannot be read; :func:`load_images` then says why.

    Examples
    --------
    >>> labeled_splits("digits")
    {'train': True, 'test': True}
    """
    if is_name(str(data)):
        return {split: part.labeled for split, part in find_entry(str(data)).parts.items()}
    path = Path(data).expanduser()
    if path.is_dir():
        folders = {split: folder for split in SPLITS if (folder := _split_folder(path, split)) is not None}
        return {split: find_classes(scan_folder(one)[0], one, None) is not None for split, one in folders.items()}
    if path.suffix == ".npz" and path.is_file():
        keys = set(npz_keys(path))
        found = {split: (keys & {*_image_keys(split)}, keys & {*_label_keys(split)}) for split in SPLITS}
        return {split: bool(labels) for split, (images, labels) in found.items() if images}
    return {"train": False} if path.suffix == ".npy" and path.is_file() else {}


def _check_paths(data: Sequence[object]) -> list[Path]:
    other = next((path for path in data if not isinstance(path, str | Path)), None)
    if other is not None:
        raise TypeError(f"`data` must contain only paths if it starts with one, got {type(other).__name__}")
    return [Path(path).expanduser() for path in data if isinstance(path, str | Path)]


def _named(name: str, split: str, root: str | Path | None, offline: bool, progress: bool) -> Images:
    from neuralbayes.data.loading import load

    data = load(name, root=root, offline=offline, progress=progress)
    part = {"train": data.train, "test": data.test, "unlabeled": data.unlabeled}[split]
    if part is None:
        raise ValueError(f"`split` must be train or test for {data.name}, got {split!r}")
    class_names = None if part.labels is None else data.class_names
    return Images(data.name, split, ArraySource(part.images, channels_first=False), part.labels, class_names)


def _folder(
    path: Path,
    split: str,
    size: tuple[int, int] | None,
    channels: int | None,
    interpolation: Interpolation | NetworkResizing,
    class_folders: bool | None,
    progress: bool,
    check: Check | None,
) -> Images:
    folder = _split_folder(path, split)
    if folder is None:
        raise ValueError(f"{path} has no split {split!r}; put its pictures into the sub-folders train and {split}")
    source = FolderSource(
        folder,
        size=size,
        channels=channels,
        interpolation=interpolation,
        class_folders=class_folders,
        progress=progress,
        check=check,
    )
    return Images(str(path), split, source, source.labels, source.class_names, source.skipped)


def _split_folder(path: Path, split: str) -> Path | None:
    """The folder of a part of the pictures below `path`; unsplit pictures are all "train"."""
    parts = {
        name: next((path / folder for folder in folders if (path / folder).is_dir()), None)
        for name, folders in SPLIT_FOLDERS.items()
    }
    # Both are required: a single folder called train may be a class.
    is_split = parts["train"] is not None and (parts["test"] is not None or parts["unlabeled"] is not None)
    return parts[split] if is_split else (path if split == "train" else None)


def _image_keys(split: str) -> tuple[str, ...]:
    return (f"{split}_images", f"x_{split}", f"X_{split}", *(IMAGE_KEYS if split == "train" else ()))


def _label_keys(split: str) -> tuple[str, ...]:
    return (f"{split}_labels", f"y_{split}", *(LABEL_KEYS if split == "train" else ()))


def _file(path: Path, split: str) -> Images:
    if not path.exists():
        raise FileNotFoundError(
            f"`data` must be a data set ({', '.join(names())}), a folder, a .npy or a .npz, "
            f"got {str(path)!r}, which does not exist"
        )
    if path.suffix == ".npy":
        if split != "train":
            raise ValueError(f"{path} has no split {split!r}: a .npy is one array")
        return Images(str(path), split, ArraySource(open_npy(path)))
    if path.suffix != ".npz":
        raise ValueError(f"`data` must be a folder, a .npy or a .npz, got the file {path}")
    image_keys = _image_keys(split)
    keys = npz_keys(path)
    image_key = next((key for key in image_keys if key in keys), None)
    label_key = next((key for key in _label_keys(split) if key in keys), None)
    if image_key is None:
        raise ValueError(f"{path} must hold one of the arrays {', '.join(image_keys)}, got {', '.join(keys) or 'none'}")
    source = ArraySource(open_npz(path, image_key))
    labels = None if label_key is None else _check_labels(open_npz(path, label_key), len(source), path)
    return Images(str(path), split, source, labels)


def _check_labels(labels: NDArray[np.generic], n: int, path: Path) -> NDArray[np.int64]:
    flat = np.asarray(labels)
    if flat.shape == (n, 1):  # names in Keras
        flat = flat[:, 0]
    if flat.shape != (n,) or flat.dtype.kind not in "iu":
        raise ValueError(
            f"the labels in {path} must be integers of shape ({n},), got {flat.dtype} of shape {flat.shape}"
        )
    return flat.astype(np.int64)
