"""Resize a picture: in one step, or in the steps that pretrained networks expect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from PIL import Image

Interpolation = Literal["area", "bilinear", "bicubic"]
"""Interpolation method. Pretrained networks need the one that they were trained with."""

FILTERS = {
    "area": Image.Resampling.BOX,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
}


@dataclass(frozen=True)
class NetworkResizing:
    """Scale a whole picture to whole pixels, then crop its middle, exactly like timm and torchvision.

    Attributes
    ----------
    scaled : tuple (H, W)
        Size that the scaled picture just covers.
    interpolation : {"area", "bilinear", "bicubic"}
    squash : bool
        Scale to exactly this size instead, without keeping the proportions.
    """

    scaled: tuple[int, int]
    interpolation: Interpolation = "bicubic"
    squash: bool = False

    def __call__(self, picture: Image.Image, size: tuple[int, int]) -> Image.Image:
        """Scale the picture and crop its middle `size` (H, W).

        Examples
        --------
        >>> NetworkResizing((256, 256))(Image.new("L", (640, 480)), (224, 224)).size
        (224, 224)
        """
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
    # Reduce with the area filter, as for STL-10: it averages all pixels in the box and no others.
    if interpolation == "area":
        method = Image.Resampling.BOX if scale >= 1 else Image.Resampling.BILINEAR
    return picture.resize((width, height), method, box=box)
