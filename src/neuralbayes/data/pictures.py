"""Read a picture file as a uint8 array: eight formats, every colour mode, a limit on pixels."""

from __future__ import annotations

import os
import stat
import struct
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from neuralbayes.data.decoding import DECODING, decoding_bytes
from neuralbayes.data.resizing import Interpolation, NetworkResizing, cover
from neuralbayes.system.allocator import return_free_memory

#: Suffixes of files to read.
SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".avif", ".heic", ".heif"})
#: Suffixes of pictures that cannot be read and are reported.
OTHER_SUFFIXES = frozenset({".jp2", ".svg", ".psd", ".ico", ".ppm", ".pgm"})

FORMATS = ["PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "AVIF", "HEIF"]
IN_WORDS = "PNG, JPEG, BMP, GIF, WebP, TIFF, AVIF, HEIC"
HEIF_SUFFIXES = (".heic", ".heif")
MAX_PIXELS = 64_000_000  # below the number at which Pillow warns; 200 MB unpacked
MAX_FILE_BYTES = 256 * 2**20
MAX_RLE_PIXELS = 4_000_000  # Pillow decodes a run-length coded BMP in Python, a byte at a time
STRIP_PIXELS = 2**20
LARGE = 2**26  # bytes of a picture after which free memory is returned to the system

#: Errors that Pillow raises for damaged files and files that are not pictures.
DAMAGE = (
    UnidentifiedImageError,
    Image.DecompressionBombError,
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    EOFError,
    OverflowError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    struct.error,
    zlib.error,
    Warning,  # if the user turned warnings into errors
)

_ORIENTATION = 0x0112  # EXIF: how the camera was held
_TURNS = {
    2: (Image.Transpose.FLIP_LEFT_RIGHT,),
    3: (Image.Transpose.ROTATE_180,),
    4: (Image.Transpose.FLIP_TOP_BOTTOM,),
    5: (Image.Transpose.TRANSPOSE,),
    6: (Image.Transpose.ROTATE_270,),
    7: (Image.Transpose.TRANSVERSE,),
    8: (Image.Transpose.ROTATE_90,),
}


class PictureError(ValueError):
    """A file that cannot be read as a picture; the message is the reason."""


def no_longer_readable(path: Path, reason: PictureError) -> OSError:
    """The error for a picture that was readable at the start and is now missing or changed."""
    return OSError(
        f"{path} could be read at the start but not now: {reason}; restore the file, then run the same command again"
    )


def picture_header(path: Path) -> tuple[tuple[int, int], int]:
    """Read ((H, W), channels) of a picture file from its header; raises :class:`PictureError`."""
    try:
        with _open(path) as picture:
            turned = _orientation(picture) >= 5
            size = (picture.width, picture.height) if turned else (picture.height, picture.width)
            return size, picture_channels(picture)
    except DAMAGE as error:
        raise _reason(error) from error


def read_picture(
    path: Path, size: tuple[int, int], channels: int, interpolation: Interpolation | NetworkResizing = "area"
) -> NDArray[np.uint8]:
    """Read a picture file as uint8 of shape (H, W, channels).

    Only the first frame of a GIF or TIFF is read. The picture is rotated as its EXIF data say, transparent parts become
    white, and 16 bits become 8.

    Parameters
    ----------
    path : Path
    size : tuple (H, W)
        A picture of another size is scaled until it covers this size, and its middle is returned.
    channels : {1, 3}
        1 for grey, 3 for RGB.
    interpolation : {"area", "bilinear", "bicubic"} or NetworkResizing, default="area"
        How to scale the picture.

    Raises
    ------
    PictureError
        If the file is empty, damaged, too large, or not in a known format.
    """
    try:
        with ExitStack() as room:  # released after the decoded picture is gone
            image, needed = _decoded(path, size, channels, interpolation, room)
            if needed > LARGE:
                return_free_memory()
            return image
    except DAMAGE as error:
        raise _reason(error) from error


def _decoded(
    path: Path, size: tuple[int, int], channels: int, interpolation: Interpolation | NetworkResizing, room: ExitStack
) -> tuple[NDArray[np.uint8], int]:
    """Decode a picture; also return the estimated number of bytes, which `room` holds until it is closed."""
    with _open(path) as picture:
        # A JPEG can be decoded at 1/2, 1/4 or 1/8 of its size in far less time. Decode at least twice the requested
        # size, so the filter can still average pixels.
        longest = 2 * max(interpolation.scaled if isinstance(interpolation, NetworkResizing) else size)
        n_stored = picture.width * picture.height
        picture.draft(None, (longest, longest))
        needed = decoding_bytes(picture, n_stored)
        room.enter_context(DECODING.take(needed))
        turned: Image.Image = picture
        for turn in _TURNS.get(_orientation(picture), ()):
            turned = turned.transpose(turn)
        return fit_picture(turned, size, channels, interpolation), needed


def fit_picture(
    picture: Image.Image,
    size: tuple[int, int],
    channels: int,
    interpolation: Interpolation | NetworkResizing = "area",
) -> NDArray[np.uint8]:
    """Convert to grey or RGB, scale to cover `size` (H, W), and crop the middle: uint8 (H, W, channels)."""
    plain = _plain(picture, channels)
    if isinstance(interpolation, NetworkResizing):
        fitted = interpolation(plain, size)
    else:
        fitted = cover(plain, size, interpolation)
    return np.array(fitted, np.uint8).reshape(*size, channels)


@contextmanager
def _open(path: Path) -> Iterator[Image.Image]:
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
        if path.suffix.lower() in HEIF_SUFFIXES:
            _register_heif()
        with Image.open(file, formats=[name for name in FORMATS if name in _known()]) as picture:
            if picture.width * picture.height > MAX_PIXELS:
                raise PictureError(f"it unpacks to {picture.width} x {picture.height} pixels, more than {MAX_PIXELS}")
            if picture.format == "BMP" and picture.width * picture.height > MAX_RLE_PIXELS and _is_run_length(picture):
                raise PictureError(
                    f"it is a run-length coded BMP of {picture.width} x {picture.height} pixels, more than "
                    f"{MAX_RLE_PIXELS}"
                )
            yield picture


def _known() -> frozenset[str]:
    """Formats that this build of Pillow reads; not all builds read AVIF."""
    Image.init()
    return frozenset(Image.OPEN)


def _register_heif() -> None:
    """Let Pillow read HEIC, the format of many telephones."""
    try:
        from pillow_heif import register_heif_opener
    except ImportError as error:
        raise PictureError("HEIC pictures need pillow-heif: pip install 'neuralbayes[vision]'") from error
    register_heif_opener(thumbnails=False)


def _is_run_length(picture: Image.Image) -> bool:
    return any(tile[0] == "bmp_rle" for tile in getattr(picture, "tile", ()))


def _reason(error: BaseException) -> PictureError:
    if isinstance(error, PictureError):
        return error
    if isinstance(error, UnidentifiedImageError):
        return PictureError(f"it is not one of {IN_WORDS}")
    if isinstance(error, Image.DecompressionBombError):
        return PictureError(f"it unpacks to more than {MAX_PIXELS} pixels")
    return PictureError(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


def _orientation(picture: Image.Image) -> int:
    try:
        value = picture.getexif().get(_ORIENTATION, 1)
    except DAMAGE:  # damaged metadata in an intact picture
        return 1
    return value if isinstance(value, int) else 1


def picture_channels(picture: Image.Image) -> int:
    """1 if the picture is grey, else 3."""
    return 1 if picture.mode in ("1", "L", "LA", "La", "I", "F") or picture.mode.startswith("I;16") else 3


def _plain(picture: Image.Image, channels: int) -> Image.Image:
    """Convert a picture to mode L or RGB, without transparency and with 8 bits."""
    mode = "L" if channels == 1 else "RGB"
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
