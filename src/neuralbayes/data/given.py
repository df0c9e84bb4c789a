"""Images in any form: a folder, paths, PIL images, tensors, arrays, a data set or a loader."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from neuralbayes.data.folder import FilesSource, choose_shape
from neuralbayes.data.pictures import fit_picture, picture_channels
from neuralbayes.data.sources import ArraySource, ImageSource, check_indices

PICTURE_KEYS = ("image", "img", "picture", "pixel_values")
"""Keys of the image in items of a data set that are dictionaries."""

LOOKED_AT = 200
"""Number of images for finding the most common size of a data set."""


def images_given(X: Any, shape: Sequence[int] | None = None) -> ImageSource | None:
    """`X` as a source of images; None for anything else, such as rows.

    Parameters
    ----------
    X : object
        An array or tensor of images (n, H, W), (n, H, W, C) or (n, C, H, W); a source; a folder of pictures; the name
        of a data set; a .npy or .npz file. Or a list of paths, of PIL images, or of arrays or tensors of one image
        each. Or a data set of PyTorch or Hugging Face, whose items are images or start with one, or its loader.
    shape : tuple (H, W, C), optional
        Required shape, such as that of the fitted images. Image files and PIL images are resized to it.

    Examples
    --------
    >>> pictures = [Image.new("L", (12, 8)) for _ in range(5)]
    >>> images_given(pictures).shape, images_given(pictures, (16, 16, 3)).shape
    ((8, 12, 1), (16, 16, 3))
    >>> images_given([[0.5, 1.0], [2.0, 3.0]]) is None  # rows
    True
    """
    if isinstance(X, ImageSource):
        return X
    if isinstance(X, str | PathLike):
        return _of_path(X, shape)
    if _is_tensor(X):
        X = _array_of(X)
    if isinstance(X, np.ndarray):
        return ArraySource(X) if X.ndim in (3, 4) and X.dtype != object else None
    if isinstance(X, list | tuple):
        return _of_list(X, shape)
    if hasattr(X, "dataset") and hasattr(X, "batch_size"):  # a DataLoader: ignore its order and batches
        X = X.dataset
    return DatasetSource(X, shape) if _is_data_set(X) else None


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
    """

    def __init__(self, items: Any, shape: Sequence[int] | None = None) -> None:
        if len(items) == 0:
            raise ValueError("`images` must hold at least one image, got an empty data set")
        self._items = items
        first = _image_in(items[0])
        if shape is not None:
            height, width, channels = shape
        elif isinstance(first, Image.Image):
            looked_at = [_image_in(items[i]) for i in range(min(len(items), LOOKED_AT))]
            headers = [((one.height, one.width), picture_channels(one)) for one in looked_at]
            (height, width, channels), _ = choose_shape(headers, None, None)
        else:
            height, width, channels = _pixels(first).shape
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
                batch[i] = fit_picture(image, self.shape[:2], self.shape[2])
                continue
            pixels = _pixels(image)
            if pixels.shape != self.shape:
                raise ValueError(f"image {index} must have shape {self.shape} (H, W, C), got {pixels.shape}")
            batch[i] = pixels
        return batch


def _of_path(path: str | PathLike[str], shape: Sequence[int] | None) -> ImageSource:
    from neuralbayes.data.images import load_images

    size, channels = (None, None) if shape is None else ((int(shape[0]), int(shape[1])), int(shape[2]))
    return load_images(path if isinstance(path, str) else Path(path), size=size, channels=channels)


def _of_list(items: Sequence[Any], shape: Sequence[int] | None) -> ImageSource | None:
    if not items:
        return None
    if isinstance(items[0], str | PathLike):
        size, channels = (None, None) if shape is None else ((int(shape[0]), int(shape[1])), int(shape[2]))
        return FilesSource(items, size=size, channels=channels)
    if isinstance(items[0], Image.Image) or _is_tensor(items[0]) or isinstance(items[0], np.ndarray):
        return DatasetSource(items, shape) if getattr(items[0], "ndim", 2) > 1 else None
    return None


def _is_data_set(X: Any) -> bool:
    """Whether `X` is a data set of PyTorch, or one of Hugging Face with images. Neither needs to be installed."""
    bases = {f"{base.__module__}.{base.__qualname__}" for base in type(X).__mro__}
    if "torch.utils.data.dataset.Dataset" in bases:
        return hasattr(X, "__len__")
    return any(base.startswith("datasets.") for base in bases) and hasattr(X, "column_names")


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


def _is_tensor(X: Any) -> bool:
    return type(X).__module__.startswith("torch") and hasattr(X, "detach")


def _array_of(tensor: Any) -> NDArray[Any]:
    """Convert a tensor to an array. NumPy has no bfloat16."""
    tensor = tensor.detach().cpu()
    array: NDArray[Any] = (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
    return array
