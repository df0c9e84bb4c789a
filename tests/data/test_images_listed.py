"""Pictures by a list: the same images as those of the folder, without a look at each."""

import json

import numpy as np
import pytest
from PIL import Image

from neuralbayes.data.folder import FolderSource
from neuralbayes.data.listed import ListedSource, listing_of


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for i, (side, mode) in enumerate([(24, "RGB"), (40, "L"), (30, "RGB"), (24, "RGB")]):
        array = rng.integers(0, 256, (side, side + i, 3), dtype=np.uint8)
        Image.fromarray(array).convert(mode).save(tmp_path / f"{i}.{('png', 'jpg')[i % 2]}")
    return tmp_path


def test_a_list_gives_the_images_of_its_folder(folder):
    source = FolderSource(folder, size=22, channels=3)
    listing = json.loads(json.dumps(listing_of(source.paths[1:], source.shape)))
    listed = ListedSource.from_listing(listing)
    assert (len(listed), listed.shape) == (3, (22, 22, 3))
    np.testing.assert_array_equal(listed.read([2, 0]), source.read([3, 1]))
    with pytest.raises(IndexError):
        listed.read([3])


def test_a_picture_that_is_gone_is_named(folder):
    listed = ListedSource([str(folder / "0.png"), str(folder / "9.png")], (22, 22, 3))
    with pytest.raises(OSError, match=r"9\.png could be read at the start and cannot now"):
        listed.read([0, 1])
