"""Embedded pictures: figures of :mod:`neuralbayes.plot` in light and dark, sheets of thumbnails, plain pixels."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from neuralbayes.plot.style import new_picture, problem_of, theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

THUMBNAILS = (48, 32, 24)
"""Maximum length of the longer side in pixels. The more pictures there are, the smaller they become."""

BLOCK = 16  # block size of WebP in pixels: thumbnails that share a block would bleed into each other
QUALITIES = (82, 60, 35)
SINGLE = ((112, 82), (80, 75), (64, 70), (48, 60))  # pixels and quality of separate thumbnails
SQUARE = 2.1  # inches


@dataclass(frozen=True)
class Picture:
    """A picture as data URLs, with its texts.

    Attributes
    ----------
    title, text : str
        The heading and the alternative text.
    light, dark : str
        Data URLs; equal if the colours carry meaning.
    caption : str
        Text below the picture.
    verdict : bool, or None
        Whether the caption reports a success or a failure; None for neither.
    pixelated : bool
        Whether to enlarge it without smoothing.
    """

    title: str
    text: str
    light: str
    dark: str
    caption: str = ""
    verdict: bool | None = None
    pixelated: bool = False


@dataclass(frozen=True)
class Sheet:
    """Thumbnails in one picture.

    Attributes
    ----------
    address : str
    columns : int
        Thumbnails in a row.
    cell : int
        Distance between thumbnails in pixels.
    width, height : int
        Size of a thumbnail in pixels.
    """

    address: str
    columns: int
    cell: int
    width: int
    height: int


def drawn(title: str, text: str, draw: Callable[[Axes], Any], size: tuple[float, float] = (3.9, 2.8)) -> Picture:
    """Draw a picture as SVG in light and dark colours. If drawing fails, the page shows the reason instead."""
    found: list[Picture] = []
    problem = problem_of(lambda: found.append(_drawn(title, text, draw, size)))
    if problem is None:
        return found[0]
    nothing = data_address(b'<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>', "image/svg+xml")
    return Picture(title, text, nothing, nothing, caption=f"not drawn: {problem}", verdict=False)


def _drawn(title: str, text: str, draw: Callable[[Axes], Any], size: tuple[float, float]) -> Picture:
    from matplotlib import rc_context

    addresses = []
    for name in ("light", "dark"):
        with theme(name, transparent=True), rc_context({"svg.hashsalt": "neuralbayes"}):  # reproducible ids
            figure, ax = new_picture()
            figure.set_size_inches(*size)
            draw(ax)
            file = io.BytesIO()
            figure.savefig(file, format="svg", dpi=160, metadata={"Date": None, "Creator": None})
        addresses.append(data_address(file.getvalue(), "image/svg+xml"))
    return Picture(title, text, addresses[0], addresses[1])


def pixels(title: str, text: str, wall: NDArray[np.float64]) -> Picture:
    """Encode an array (H, W, 3) or (H, W, 4) of numbers in [0, 1] as a picture."""
    address = png_address((255.0 * np.clip(wall, 0.0, 1.0)).round().astype(np.uint8))
    return Picture(title, text, address, address, caption=text, pixelated=True)


def painted(title: str, text: str, draw: Callable[[Axes], Any], *, caption: str, verdict: bool | None) -> Picture:
    """Draw a square picture without background and text, as one WebP for light and dark."""
    figure, ax = new_picture()
    figure.set_layout_engine("none")
    figure.set_size_inches(SQUARE, SQUARE)
    ax.set_position((0.0, 0.0, 1.0, 1.0))
    ax.set_axis_off()
    draw(ax)
    file = io.BytesIO()
    figure.savefig(file, format="webp", dpi=220, transparent=True, pil_kwargs={"quality": 88, "method": 4})
    address = data_address(file.getvalue(), "image/webp")
    return Picture(title, text, address, address, caption, verdict)


def png_address(array: NDArray[np.uint8]) -> str:
    """Encode an image (H, W, C) as the data URL of a PNG."""
    file = io.BytesIO()
    Image.fromarray(array).save(file, "PNG", optimize=True)
    return data_address(file.getvalue(), "image/png")


def sheet(pictures: NDArray[np.uint8], budget: int) -> Sheet:
    """Thumbnails of pictures (n, H, W, C) in one WebP file.

    Parameters
    ----------
    pictures : ndarray of uint8 and shape (n, H, W, C)
    budget : int
        Maximum size of the file in bytes. Grey pictures are first tried without loss; then the quality falls, then the
        size. The smallest version is used even if it exceeds the budget.
    """
    smallest: Sheet
    for longest in THUMBNAILS:
        thumbnails = np.stack([_thumbnail(picture, longest) for picture in pictures])
        # Line drawings such as digits are smaller and sharper without loss.
        grey = bool((thumbnails == thumbnails[..., :1]).all())
        options: list[dict[str, Any]] = [{"lossless": True}] if grey else []
        for option in [*options, *({"quality": quality} for quality in QUALITIES)]:
            content, smallest = _encoded(thumbnails, option)
            if len(content) <= budget:
                return smallest
    return smallest


def thumbnails(pictures: NDArray[np.uint8], chosen: Sequence[int], budget: int) -> dict[int, str]:
    """Encode pictures (n, H, W, C) as data URLs, as large as fits into `budget` bytes in total."""
    found: dict[int, bytes] = {}
    for longest, quality in SINGLE:
        for i in chosen:
            file = io.BytesIO()
            Image.fromarray(_thumbnail(pictures[i], longest)).save(file, "WEBP", quality=quality, method=2)
            found[i] = file.getvalue()
        if sum(map(len, found.values())) <= budget:
            break
    return {i: data_address(content, "image/webp") for i, content in found.items()}


def _encoded(thumbnails: NDArray[np.uint8], option: dict[str, Any]) -> tuple[bytes, Sheet]:
    """Thumbnails (n, h, w, 3) as WebP."""
    n, height, width = thumbnails.shape[:3]
    cell = BLOCK * math.ceil(max(height, width) / BLOCK)
    columns = math.ceil(math.sqrt(n))  # WebP limits each side to 16,383 pixels
    rows = math.ceil(n / columns)
    # Repeat the edges up to the end of the cell, so that neighbours do not bleed in.
    padded = np.pad(thumbnails, ((0, rows * columns - n), (0, cell - height), (0, cell - width), (0, 0)), mode="edge")
    wall = padded.reshape(rows, columns, cell, cell, 3).transpose(0, 2, 1, 3, 4).reshape(rows * cell, columns * cell, 3)
    file = io.BytesIO()
    Image.fromarray(wall).save(file, "WEBP", method=4, **option)
    return file.getvalue(), Sheet(data_address(file.getvalue(), "image/webp"), columns, cell, width, height)


def data_address(content: bytes, kind: str) -> str:
    """Encode content as a data URL."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def _thumbnail(picture: NDArray[np.uint8], most: int) -> NDArray[np.uint8]:
    """Convert to RGB and shrink the longer side to at most `most` pixels: (H, W, C) -> (h, w, 3)."""
    colors = np.repeat(picture, 3, axis=2) if picture.shape[2] == 1 else picture
    longest = max(colors.shape[:2])
    if longest <= most:
        return colors
    height, width = (max(1, round(side * most / longest)) for side in colors.shape[:2])
    return np.asarray(Image.fromarray(colors).resize((width, height), Image.Resampling.LANCZOS))
