"""Blank pictures and near-duplicates."""

import io

import numpy as np
import pytest
from PIL import Image, ImageEnhance

from neuralbayes.data.images import images_given
from neuralbayes.data.oddities import Oddities, distinct, odd


def scene(seed: int, side: int = 120) -> Image.Image:
    """A picture with large and small structure, different for each seed."""
    rng = np.random.default_rng(seed)
    cells = [Image.fromarray(rng.integers(0, 256, (n, n, 3), np.uint8)).resize((side, side)) for n in (5, 30)]
    return Image.blend(*cells, 0.25)


def recompressed(picture: Image.Image, quality: int) -> Image.Image:
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=quality)
    return Image.open(file).convert("RGB")


def found(*pictures: Image.Image, n: int | None = None) -> Oddities:
    source = images_given(list(pictures), (120, 120, 1 if pictures[0].mode == "L" else 3))
    assert source is not None
    return odd(source, n)


CHANGES = {
    "the same": lambda picture: picture,
    "recompressed": lambda picture: recompressed(picture, 20),
    "half the size": lambda picture: picture.resize((60, 60), Image.Resampling.BICUBIC),
    "brighter": lambda picture: ImageEnhance.Brightness(picture).enhance(1.08),
    "noisy": lambda picture: Image.fromarray(
        (np.asarray(picture) + np.random.default_rng(1).normal(0, 8, (*picture.size, 3))).clip(0, 255).astype(np.uint8)
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_picture_that_was_changed_a_little_is_found(change: str) -> None:
    pictures = [scene(seed) for seed in range(5)]
    assert found(*pictures, CHANGES[change](pictures[3])) == Oddities([], {5: 3})


def test_different_pictures_are_not() -> None:
    assert found(*(scene(seed) for seed in range(60))) == Oddities()


def test_colours_tell_pictures_of_one_shape_apart() -> None:
    shape = np.zeros((64, 64, 3), np.uint8)
    shape[16:48, 16:48] = 200
    red, blue = shape.copy(), shape.copy()
    red[..., 1:], blue[..., :2] = 0, 0
    assert found(*map(Image.fromarray, (red, blue))) == Oddities()


def test_the_first_of_several_is_named() -> None:
    picture = scene(0)
    assert found(picture, scene(1), recompressed(picture, 30), picture).repeats == {2: 0, 3: 0}


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_blank_pictures_are_found_and_repeat_nothing(mode: str) -> None:
    white, grey = (Image.new(mode, (40, 40), level) for level in ("white", "grey"))
    assert found(scene(0).convert(mode), white, grey, white).blank == [1, 2, 3]
    assert found(scene(0).convert(mode), white, grey, white).repeats == {}


def test_the_limit_counts_pictures() -> None:
    assert found(scene(0), scene(0), scene(0), n=2).repeats == {1: 0}


def test_the_first_distinct_pictures_are_chosen() -> None:
    pictures = np.stack([np.asarray(scene(seed)) for seed in (0, 0, 1, 2)])
    assert distinct(pictures, [1, 0, 2, 3], 2) == [1, 2]
    assert distinct(pictures, [0, 1], 2) == [0]
