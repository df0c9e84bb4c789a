"""Pictures resized for pretrained networks."""

import numpy as np
import pytest
from PIL import Image

from neuralbayes.data.images import load_images
from neuralbayes.data.resizing import NetworkResizing, cover


def gradient(width: int, height: int) -> Image.Image:
    """A picture whose red is the column, whose green is the row, and whose blue is their sum."""
    columns, rows = np.meshgrid(np.arange(width), np.arange(height))
    return Image.fromarray(np.stack([columns, rows, columns + rows], axis=2).astype(np.uint8))


@pytest.mark.parametrize(
    ("given", "scaled", "size", "left", "top"),
    [
        ((40, 20), (20, 20), (20, 20), 10, 0),
        ((20, 41), (20, 20), (16, 16), 2, 12),  # round(12.5) is 12, as in torchvision
        ((30, 20), (20, 20), (16, 12), 9, 2),
    ],
)
def test_the_middle_is_cut_to_the_pixel(
    given: tuple[int, int], scaled: tuple[int, int], size: tuple[int, int], left: int, top: int
) -> None:
    picture = gradient(*given)
    found = NetworkResizing(scaled)(picture, size)
    assert np.array_equal(found, np.asarray(picture)[top : top + size[0], left : left + size[1]])


def test_the_whole_picture_is_scaled_to_whole_pixels() -> None:
    picture = gradient(101, 67)
    whole = picture.resize((30, 20), Image.Resampling.BICUBIC)  # 20 * 101 / 67 = 30.1
    found = NetworkResizing((20, 20))(picture, (16, 16))
    assert np.array_equal(found, np.asarray(whole)[2:18, 7:23])


def test_a_squashed_picture_loses_its_proportions_and_nothing_else() -> None:
    picture = gradient(60, 20)
    found = NetworkResizing((20, 20), "bilinear", squash=True)(picture, (20, 20))
    assert np.array_equal(found, picture.resize((20, 20), Image.Resampling.BILINEAR))


@pytest.mark.parametrize("given", [(64, 48), (48, 64), (301, 77), (8, 8)])
def test_sizes_that_are_not_square_are_covered(given: tuple[int, int]) -> None:
    assert NetworkResizing((15, 20))(gradient(*given), (12, 16)).size == (16, 12)


def test_cover_scales_in_one_step() -> None:
    picture = gradient(60, 20)
    assert np.array_equal(cover(picture, (20, 20)), np.asarray(picture)[:, 20:40])
    assert cover(picture, (20, 60)) is picture


def test_images_of_the_size_of_the_network_are_scaled_all_the_same() -> None:
    images = np.asarray(gradient(16, 16))[None]
    enlarged = gradient(16, 16).resize((20, 20), Image.Resampling.BICUBIC)
    found = load_images(images, size=16, interpolation=NetworkResizing((20, 20))).read([0])[0]
    assert np.array_equal(found, np.asarray(enlarged)[2:18, 2:18])
