"""Picture files as a source of images, kept in memory, in a temporary file, or decoded on demand."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypedDict, TypeVar, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neuralbayes.data.listed import BLOCK, ListedSource, parallel
from neuralbayes.data.oddities import Thumbnails
from neuralbayes.data.path_text import readable
from neuralbayes.data.pictures import IN_WORDS, PictureError, picture_header
from neuralbayes.data.progress import late_bar
from neuralbayes.data.resizing import Interpolation, NetworkResizing
from neuralbayes.data.scan import Skipped, class_of, find_classes, scan_folder
from neuralbayes.data.sources import check_indices
from neuralbayes.data.spool import Spool
from neuralbayes.system.limits import free_memory

SHORT_SIDE = 64  # maximum pixels of the shorter side if no size is given
MEMORY_LIMIT = 2**29  # maximum bytes of decoded images in memory; larger sets go to disk

_Result = TypeVar("_Result")
Check = Callable[[int, tuple[int, int, int]], None]
"""Called with the number of images and their shape (H, W, C) before any is decoded; raises if that is too much."""


class Options(TypedDict, total=False):
    """Keyword arguments of :class:`FilesSource`."""

    size: int | tuple[int, int] | None
    channels: int | None
    interpolation: Interpolation | NetworkResizing
    memory_limit: int
    progress: bool
    check: Check | None


class FilesSource(ListedSource):
    """Source of images of one size from picture files: PNG, JPEG, BMP, GIF and TIFF (first frame), WebP, AVIF, HEIC.

    Every file is decoded once at the start, so unreadable files are found before a long run.

    Parameters
    ----------
    paths : sequence of paths
    size : int or tuple (H, W), optional
        Size of the images. Pictures of another size are scaled until they cover it, then cropped. By default the most
        common size, reduced to 64 pixels on its shorter side if that is longer.
    channels : {1, 3}, optional
        1 for grey, 3 for RGB. By default RGB if at least one picture has colours.
    interpolation : {"area", "bilinear", "bicubic"} or NetworkResizing, default="area"
        How to scale pictures.
    memory_limit : int, default=2**29
        Decoded images are kept in memory if they take at most this many bytes in total. Otherwise they are kept in a
        temporary file, or decoded on demand if the disk has no room.
    progress : bool, default=True
        Show a progress bar if reading takes longer than two seconds.
    check : callable, optional
        Called with the number of pictures and the shape (H, W, C) of an image before any picture is decoded. Both come
        from the headers of the files.

    Attributes
    ----------
    paths : tuple of Path
        The file of each image.
    reduced_from : tuple (H, W), or None
        The most common size, if no size was given and it was reduced.
    thumbnails : Thumbnails
        A thumbnail of each image, to find blank images and near-duplicates.
    """

    def __init__(
        self,
        paths: Sequence[str | Path],
        *,
        size: int | tuple[int, int] | None = None,
        channels: int | None = None,
        interpolation: Interpolation | NetworkResizing = "area",
        memory_limit: int = MEMORY_LIMIT,
        progress: bool = True,
        check: Check | None = None,
    ) -> None:
        given = [Path(path) for path in paths]
        headers = dict(self._readable(picture_header, given, "looking at pictures", progress, BLOCK))
        self._require(headers)
        found = [path for path in given if path in headers]
        shape, self.reduced_from = choose_shape(
            [headers[path] for path in found], check_size(size), check_channels(channels)
        )
        super().__init__(found, shape, interpolation)
        if check is not None:
            check(len(found), shape)
        self._images: NDArray[np.uint8] | None = None
        self._spool: Spool | None = None
        self.thumbnails = Thumbnails()
        self.paths = tuple(self._decode_all(found, memory_limit, progress))
        self._require(self.paths)

    def read(self, indices: ArrayLike) -> NDArray[np.uint8]:
        """Images at `indices` in uint8, shape (m, H, W, C); raises OSError if a file can no longer be read."""
        if self._images is not None:
            return self._images[check_indices(indices, len(self))]
        if self._spool is not None:
            return self._spool.read(check_indices(indices, len(self)))
        return super().read(indices)

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_spool": None}  # another process decodes the files itself

    def _readable(
        self, function: Callable[[Path], _Result], paths: list[Path], description: str, progress: bool, block: int
    ) -> Iterator[tuple[Path, _Result]]:
        """Yield (path, function(path)) for each path; if the function fails, call `_pass_over` instead."""
        with late_bar(description, len(paths), enabled=progress) as advance:
            for path, result in zip(paths, parallel(function, paths, block), strict=True):
                advance(1)
                if isinstance(result, PictureError):
                    self._pass_over(path, str(result))
                else:
                    yield path, result

    def _pass_over(self, path: Path, reason: str) -> None:
        raise ValueError(f"`paths` must be readable pictures ({IN_WORDS}); {path}: {reason}")

    def _require(self, paths: Iterable[Path]) -> None:
        if not any(True for _ in paths):
            raise ValueError("`paths` must name at least one picture, got none")

    def _decode_all(self, paths: list[Path], memory_limit: int, progress: bool) -> list[Path]:
        """Decode every file once, keep images in memory or on disk if there is room, and return the decoded paths."""
        kept: list[Path] = []
        free = free_memory()
        most = memory_limit if free is None else min(memory_limit, free // 2)
        n_bytes = len(paths) * math.prod(self.shape)
        fits = n_bytes <= most
        spool = Spool(self.shape) if not fits and Spool.has_room(n_bytes) else None
        # Fill one array: a list of images and then their stack would need twice the memory.
        images = np.empty((len(paths) if fits else 0, *self.shape), np.uint8)
        for path, image in self._readable(self._read_one, paths, "reading pictures", progress, self._block):
            if fits:
                images[len(kept)] = image
            elif spool is not None:
                try:
                    spool.add(image)
                except OSError:  # the disk is full now, so decode on demand
                    spool = None
            self.thumbnails.add(image)
            kept.append(path)
        if fits:
            self._images = images[: len(kept)]
        self._spool = spool
        return kept


class FolderSource(FilesSource):
    """Source of images from a folder and its sub-folders, in the order of their names.

    Pictures that cannot be decoded are left out and listed in `skipped`.

    Parameters
    ----------
    path : path
        Path of the folder.
    class_folders : bool, optional
        Whether the sub-folders are classes. By default they are if there are at least two and every picture is in one.
    **options
        Keyword arguments of :class:`FilesSource`.

    Attributes
    ----------
    labels : ndarray of int64 and shape (n,), or None
        Class of each image, an index of `class_names`.
    class_names : tuple of str, or None
        Names of the class folders.
    skipped : list of (Path, str)
        Files that were left out, each with the reason.
    """

    def __init__(self, path: str | Path, *, class_folders: bool | None = None, **options: Unpack[Options]) -> None:
        folder = self._folder = Path(path)
        if not folder.is_dir():
            raise NotADirectoryError(f"`path` must be a folder of pictures, got {folder}, which is not a folder")
        self.skipped: list[Skipped]
        found, self.skipped = scan_folder(folder)
        if class_folders:  # raises before anything is decoded
            self._label(found, folder, find_classes(found, folder, True))
        super().__init__(found, **options)
        self.class_names = find_classes(list(self.paths), folder, class_folders)
        self.labels: NDArray[np.int64] | None = self._label(self.paths, folder, self.class_names)
        if self.class_names is not None:
            self.class_names = tuple(map(readable, self.class_names))

    def _pass_over(self, path: Path, reason: str) -> None:
        self.skipped.append((path, reason))

    def _require(self, paths: Iterable[Path]) -> None:
        if any(True for _ in paths):
            return
        reasons = "".join(f"\n  {path}: {reason}" for path, reason in self.skipped[:5])
        more = f"\n  and {len(self.skipped) - 5} more" if len(self.skipped) > 5 else ""
        raise ValueError(
            f"{self._folder} must contain readable pictures ({IN_WORDS}), but has none"
            + (f"; skipped:{reasons}{more}" if reasons else "")
        )

    @staticmethod
    def _label(paths: Sequence[Path], folder: Path, class_names: tuple[str, ...] | None) -> NDArray[np.int64] | None:
        if class_names is None:
            return None
        classes = [class_of(path, folder) for path in paths]
        if None in classes:
            stray = paths[classes.index(None)]
            raise ValueError(f"every picture must be in a class folder for class_folders=True; {stray} is not")
        number = {name: k for k, name in enumerate(class_names)}
        return np.array([number[name] for name in classes if name is not None], np.int64)


def check_size(size: int | tuple[int, int] | None) -> tuple[int, int] | None:
    """Return `size` as (H, W), or None."""
    if size is None:
        return None
    pair = (size, size) if isinstance(size, int) else tuple(size)
    if len(pair) != 2 or not all(isinstance(side, int) and 1 <= side <= 4096 for side in pair):
        raise ValueError(f"`size` must be an integer from 1 to 4096 or two of them (H, W), got {size!r}")
    return pair[0], pair[1]


def check_channels(channels: int | None) -> int | None:
    """Return `channels` if it is 1, 3 or None, else raise ValueError."""
    if channels not in (None, 1, 3):
        raise ValueError(f"`channels` must be 1 (grey) or 3 (RGB), got {channels!r}")
    return channels


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
