"""Blocks of images for another process: the same images, as files or as an array."""

import pickle

import numpy as np
import pytest
from PIL import Image

from neuralbayes.data.folder import FolderSource
from neuralbayes.data.listed import ListedSource, block_of


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for i, (side, mode) in enumerate([(24, "RGB"), (40, "L"), (30, "RGB"), (24, "RGB")]):
        array = rng.integers(0, 256, (side, side + i, 3), dtype=np.uint8)
        Image.fromarray(array).convert(mode).save(tmp_path / f"{i}.{('png', 'jpg')[i % 2]}")
    return tmp_path


@pytest.mark.parametrize("sent", [False, True])
@pytest.mark.parametrize("by_file", [False, True])
def test_a_block_holds_the_images_of_its_rows(folder, sent, by_file):
    source = FolderSource(folder, size=22, channels=3)
    block = block_of(source, slice(1, 4), sent=sent, paths=source.paths if by_file else ())
    assert (len(block), block.shape) == (3, (22, 22, 3))
    np.testing.assert_array_equal(block.read([2, 0]), source.read([3, 1]))
    with pytest.raises(IndexError):
        block.read([3])
    if sent:
        assert (len(pickle.dumps(block)) < 22 * 22 * 3) == by_file  # only the paths
        assert isinstance(block, ListedSource) == by_file


def test_a_picture_that_has_gone_is_named(folder):
    listed = ListedSource([folder / "0.png", folder / "9.png"], (22, 22, 3))
    with pytest.raises(OSError, match=r"9\.png"):
        listed.read([0, 1])
