"""Picture files: find them below a folder, decode one robustly, and resize it."""

from __future__ import annotations

import os
import stat
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Semaphore
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

Interpolation = Literal["area", "bilinear", "bicubic"]
FILTERS = {"area": Image.Resampling.BOX, "bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}

Skipped = tuple[Path, str]  # a file that was left out, and why

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".avif", ".heic", ".heif"})
OTHER_SUFFIXES = frozenset({".jp2", ".svg", ".psd", ".ico", ".ppm", ".pgm"})  # not read, and reported
HIDDEN = (".", "__MACOSX")  # beginnings of names of files and folders that are passed over
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "AVIF", "HEIF")
IN_WORDS = "PNG, JPEG, BMP, GIF, WebP, TIFF, AVIF, HEIC"

MAX_PIXELS = 64_000_000  # below the number at which Pillow warns; 200 MB unpacked
MAX_FILE_BYTES = 256 * 2**20
MAX_RLE_PIXELS = 4_000_000  # Pillow decodes a run-length coded BMP in Python, a byte at a time
LARGE_PIXELS = 4_000_000  # decoded two at a time: each pixel takes up to 16 bytes
STRIP_PIXELS = 2**20

ORIENTATION = 0x0112  # EXIF: how the camera was held
TURNS = {  # ImageOps.exif_transpose also writes the EXIF data anew and fails on damaged ones
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}

# What Pillow raised on 150,000 files with a few changed bytes, and what its decoders document.
DAMAGE = (
    OSError,  # most damage, UnidentifiedImageError among it
    SyntaxError,  # a broken chunk of a PNG, a broken header of EXIF data
    ValueError,  # a truncated chunk, a mode that cannot be converted
    EOFError,  # HEIC
    RuntimeError,  # AVIF
    OverflowError,  # sizes and offsets beyond 64 bits
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
    Warning,  # if the user turned warnings into errors
)

_large = Semaphore(2)


class PictureError(ValueError):
    """A file that cannot be read as a picture; the message is the reason."""


@dataclass(frozen=True)
class NetworkResizing:
    """Scale a whole picture to whole pixels, then crop its middle, exactly like timm and torchvision."""

    scaled: tuple[int, int]  # (H, W) that the scaled picture just covers
    interpolation: Interpolation = "bicubic"
    squash: bool = False  # to exactly this size, without keeping the proportions

    def __call__(self, picture: Image.Image, size: tuple[int, int]) -> Image.Image:
        """Scale the picture and crop its middle `size` (H, W)."""
        height, width = self._scaled(picture.height, picture.width)
        if (width, height) != picture.size:
            picture = picture.resize((width, height), FILTERS[self.interpolation])
        top, left = (max(0, round((whole - part) / 2)) for whole, part in zip((height, width), size, strict=True))
        return picture.crop((left, top, left + size[1], top + size[0]))

    def _scaled(self, height: int, width: int) -> tuple[int, int]:
        to_height, to_width = self.scaled
        if self.squash:
            return self.scaled
        if to_height == to_width:  # torchvision rounds the longer side down
            longer = int(to_height * max(height, width) / min(height, width))
            return (to_height, longer) if height <= width else (longer, to_height)
        ratio = min(height / to_height, width / to_width)
        return max(to_height, round(height / ratio)), max(to_width, round(width / ratio))


Scaling = Interpolation | NetworkResizing


def cover(picture: Image.Image, size: tuple[int, int], interpolation: Interpolation = "area") -> Image.Image:
    """Crop the middle of a picture to the proportions of `size` (H, W) and scale it to this size, in one step."""
    height, width = size
    if picture.size == (width, height):
        return picture
    scale = min(picture.width / width, picture.height / height)
    cut_width, cut_height = width * scale, height * scale
    left, top = max(picture.width - cut_width, 0.0) / 2, max(picture.height - cut_height, 0.0) / 2
    box = (left, top, min(left + cut_width, picture.width), min(top + cut_height, picture.height))
    method = FILTERS[interpolation]
    if interpolation == "area" and scale < 1:  # enlarged, where the area filter would repeat pixels
        method = Image.Resampling.BILINEAR
    return picture.resize((width, height), method, box=box)


def find_pictures(folder: Path) -> tuple[list[Path], list[Skipped]]:
    """Picture files below `folder`, found by suffix and sorted, and the skipped files.

    Links out of the folder and links to folders are not followed. Hidden files and other suffixes are not reported.
    """
    found: list[Path] = []
    skipped: list[Skipped] = []
    inside = folder.resolve()

    def unreadable(error: OSError) -> None:
        skipped.append((Path(error.filename), f"the folder cannot be read ({error.strerror})"))

    for place, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = [name for name in folders if not name.startswith(HIDDEN)]
        links = [Path(place, name) for name in folders if os.path.islink(os.path.join(place, name))]
        skipped += [(link, "it is a link to a folder") for link in links]
        for path in (Path(place, name) for name in names if not name.startswith(HIDDEN)):
            if path.suffix.lower() in OTHER_SUFFIXES:
                skipped.append((path, f"{path.suffix} files are not read"))
            elif path.suffix.lower() not in SUFFIXES:
                continue
            elif path.is_symlink() and not os.path.exists(path):  # a Path would raise where it may not look
                skipped.append((path, "it is a broken link"))
            elif path.is_symlink() and not path.resolve().is_relative_to(inside):
                skipped.append((path, "it is a link out of the folder"))
            else:
                found.append(path)
    return sorted(found), skipped


def readable(name: str | Path) -> str:
    r"""A file name as text, with bytes that are not UTF-8 written as ``\xff``."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def path_cell(path: str | Path) -> str:
    """A path as a table cell, with ``./`` in front if a spreadsheet would read it as a formula."""
    text = readable(path)
    return f"./{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def picture_header(path: Path) -> tuple[tuple[int, int], int]:
    """Read ((H, W), channels) of a picture file from its header; raises :class:`PictureError`."""
    with _opened(path) as picture:
        turned = _orientation(picture) >= 5
        size = (picture.width, picture.height) if turned else (picture.height, picture.width)
        return size, picture_channels(picture)


def read_picture(
    path: Path, size: tuple[int, int], channels: int, interpolation: Scaling = "area"
) -> NDArray[np.uint8]:
    """Read the middle of a picture, scaled to cover `size` (H, W), as uint8 (H, W, channels); may raise PictureError.

    Only the first frame of a GIF or TIFF is read. The picture is turned as its EXIF data say, transparent parts become
    white, and 16 bits become 8. `channels` are 1 for grey and 3 for RGB.
    """
    with _opened(path) as picture:
        # A JPEG can be decoded at 1/2, 1/4 or 1/8 of its size in far less time. Decode at least twice the requested
        # size, so the filter can still average pixels. A progressive one keeps its coefficients at full size.
        longest = 2 * max(interpolation.scaled if isinstance(interpolation, NetworkResizing) else size)
        n_pixels = picture.width * picture.height
        picture.draft(None, (longest, longest))
        if picture.format == "JPEG" and not picture.info.get("progressive"):
            n_pixels = picture.width * picture.height
        with _large if n_pixels > LARGE_PIXELS else nullcontext():
            turn = TURNS.get(_orientation(picture))
            turned = picture if turn is None else picture.transpose(turn)
            return fit_picture(turned, size, channels, interpolation)


def fit_picture(
    picture: Image.Image, size: tuple[int, int], channels: int, interpolation: Scaling = "area"
) -> NDArray[np.uint8]:
    """Convert to grey or RGB, scale to cover `size` (H, W), and crop the middle: uint8 (H, W, channels)."""
    plain = _plain(picture, "L" if channels == 1 else "RGB")
    if isinstance(interpolation, NetworkResizing):
        fitted = interpolation(plain, size)
    else:
        fitted = cover(plain, size, interpolation)
    return np.array(fitted, np.uint8).reshape(*size, channels)


def picture_channels(picture: Image.Image) -> int:
    """1 if the picture is grey, else 3."""
    return 1 if picture.mode in ("1", "L", "LA", "La", "I", "F") or picture.mode.startswith("I;16") else 3


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    """Open a picture within bounds, and turn what Pillow raises on damage into a PictureError."""
    try:
        # Without blocking: opening a named pipe would otherwise wait forever. Windows has no such flag.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise PictureError("it is not a regular file")
            if status.st_size == 0:
                raise PictureError("the file is empty")
            if status.st_size > MAX_FILE_BYTES:
                raise PictureError(f"the file has {status.st_size} bytes, more than {MAX_FILE_BYTES}")
            if path.suffix.lower() in (".heic", ".heif"):  # of telephones
                try:
                    from pillow_heif import register_heif_opener
                except ImportError as error:
                    raise PictureError("HEIC pictures need pillow-heif: pip install 'neuralbayes[vision]'") from error
                register_heif_opener(thumbnails=False)
            Image.init()  # not all builds of Pillow read AVIF
            with Image.open(file, formats=[name for name in FORMATS if name in Image.OPEN]) as picture:
                _check_bounds(picture)
                yield picture
    except PictureError:
        raise
    except UnidentifiedImageError as error:
        raise PictureError(f"it is not one of {IN_WORDS}") from error
    except Image.DecompressionBombError as error:
        raise PictureError(f"it unpacks to more than {MAX_PIXELS} pixels") from error
    except DAMAGE as error:
        raise PictureError(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__) from error


def _check_bounds(picture: Image.Image) -> None:
    n_pixels, tiles = picture.width * picture.height, getattr(picture, "tile", ())
    if n_pixels > MAX_PIXELS:
        raise PictureError(f"it unpacks to {picture.width} x {picture.height} pixels, more than {MAX_PIXELS}")
    if n_pixels > MAX_RLE_PIXELS and any(tile[0] == "bmp_rle" for tile in tiles):
        raise PictureError(
            f"it is a run-length coded BMP of {picture.width} x {picture.height} pixels, more than {MAX_RLE_PIXELS}"
        )
    if not all(isinstance(tile[2], int) for tile in tiles):
        raise PictureError("its pixels do not start at a whole byte")  # a TypeError of Pillow's otherwise


def _orientation(picture: Image.Image) -> int:
    try:
        value = picture.getexif().get(ORIENTATION, 1)
    except DAMAGE:  # damaged metadata in an intact picture
        return 1
    return value if isinstance(value, int) else 1


def _plain(picture: Image.Image, mode: str) -> Image.Image:
    """Convert a picture to mode L or RGB, without transparency and with 8 bits."""
    if picture.mode == "I" or picture.mode.startswith("I;16"):
        # Pillow clips 16-bit values at 255, so take the upper byte instead.
        values = np.asarray(picture).clip(0, 65_535)
        values >>= 8
        picture = Image.fromarray(values.astype(np.uint8))
    if picture.mode in ("RGBA", "RGBa", "LA", "La", "PA") or "transparency" in picture.info:
        picture = _on_white(picture)
    return picture if picture.mode == mode else picture.convert(mode)


def _on_white(picture: Image.Image) -> Image.Image:
    """Put a picture on white, in mode RGB, a few rows at a time: the whole picture could take a gigabyte."""
    result = Image.new("RGB", picture.size)
    rows = max(1, STRIP_PIXELS // picture.width)
    for top in range(0, picture.height, rows):
        box = (0, top, picture.width, min(top + rows, picture.height))
        strip = picture.crop(box).convert("RGBA")
        white = Image.new("RGBA", strip.size, "white")
        result.paste(Image.alpha_composite(white, strip).convert("RGB"), box)
    return result
