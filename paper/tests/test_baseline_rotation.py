"""Rotation prediction: the rotations, and that it learns."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from image_cases import bars
from paper.baselines import RotationConfig, rotation
from paper.baselines.rotation import rotated

from neuralbayes.training import read_metrics

CONFIG = RotationConfig(encoder="tiny", batch_size=16, epochs=6)


def wedges(n=64, side=24, seed=0):
    """Make pictures that are bright on top, so each shows which way is up."""
    rng = np.random.default_rng(seed)
    pictures = rng.integers(0, 80, (n, side, side, 1))
    pictures[:, : side // 3] += 150
    return pictures.astype(np.uint8)


def test_every_image_comes_in_all_four_rotations_pixel_by_pixel():
    x = torch.randn(3, 2, 4, 4)
    copies, turns = rotated(x)
    assert turns.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    for image, copy_, turn in zip(x.repeat(4, 1, 1, 1), copies, turns.tolist(), strict=True):
        for row in range(4):
            for column in range(4):
                before = {
                    0: (row, column),
                    1: (column, 3 - row),
                    2: (3 - row, 3 - column),
                    3: (3 - column, row),
                }[turn]
                assert torch.equal(copy_[:, row, column], image[:, before[0], before[1]])


@pytest.mark.parametrize("pooled", [False, True])
def test_it_learns_which_way_is_up(tmp_path, pooled):
    encoder = rotation(wedges(), replace(CONFIG, pooled=pooled, normalize="channel", learning_rate=3e-3), out=tmp_path)
    lines = read_metrics(tmp_path / "metrics.jsonl")
    assert lines[-1]["loss"] < 0.5 * lines[0]["loss"]
    fresh = wedges(20, seed=1)
    turned = np.concatenate([np.rot90(fresh, k, axes=(1, 2)) for k in range(4)])
    assert (encoder.predict(turned) == np.arange(4).repeat(20)).mean() > 0.9


def test_images_that_are_not_square_are_refused():
    with pytest.raises(ValueError, match="`images` must be square to be rotated, got 24x30 pixels"):
        rotation(np.zeros((8, 24, 30, 1), np.uint8), CONFIG)


def test_a_rotation_is_not_given_away_by_the_normalisation():
    """Bars lie both ways, so the normalisation must not make one rotation more probable than another."""
    images, _ = bars(16)
    encoder = rotation(images, replace(CONFIG, epochs=1, learning_rate=1e-12))
    x, turns = rotated(encoder.prepare(images))
    means = [x[turns == k].mean(dim=0) for k in range(4)]
    for mean in means:  # dimension-wise normalisation: every pixel has mean 0 in every rotation
        torch.testing.assert_close(mean, torch.zeros_like(mean), atol=1e-5, rtol=0)
