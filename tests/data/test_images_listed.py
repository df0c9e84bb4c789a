"""Picture files that are decoded on demand."""

import numpy as np
import pytest
from PIL import Image

from neuralbayes.data.listed import ListedSource


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for i, (side, mode) in enumerate([(24, "RGB"), (40, "L"), (30, "RGB"), (24, "RGB")]):
        array = rng.integers(0, 256, (side, side + i, 3), dtype=np.uint8)
        Image.fromarray(array).convert(mode).save(tmp_path / f"{i}.{('png', 'jpg')[i % 2]}")
    return tmp_path


def test_a_picture_that_has_gone_is_named(folder):
    listed = ListedSource([folder / "0.png", folder / "9.png"], (22, 22, 3))
    with pytest.raises(OSError, match=r"9\.png"):
        listed.read([0, 1])
