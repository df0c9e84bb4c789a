"""A test part for images without one: every class in both parts, and the same for the same seed."""

import numpy as np
import pytest

from neuralbayes.data.sources import ArraySource, Images
from neuralbayes.probes.held_out import held_out


def labeled(labels, class_names=None):
    images = np.arange(len(labels), dtype=np.uint8)[:, None, None] * np.ones((1, 4, 4), np.uint8)
    return Images("mine", "train", ArraySource(images), np.array(labels, np.int64), class_names)


def test_the_parts_share_no_image_and_all_classes():
    labels = np.repeat([0, 1, 2], [40, 50, 10])
    train, test = held_out(labeled(labels))
    rows = [part.read(np.arange(len(part)))[:, 0, 0, 0] for part in (train, test)]
    assert sorted(np.concatenate(rows)) == list(range(100))
    for part, index in zip((train, test), rows, strict=True):
        np.testing.assert_array_equal(part.labels, labels[index])
    assert np.bincount(test.labels).tolist() == [8, 10, 2]
    assert (train.split, test.split) == ("train", "test")


def test_the_seed_decides():
    images = labeled(np.arange(60) % 3)
    first, again, other = (held_out(images, seed=seed)[1].read(np.arange(12)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_few_images_of_many_classes_have_one_of_each_in_the_test_part():
    train, test = held_out(labeled(np.arange(10) % 5))
    assert sorted(test.labels) == sorted(train.labels) == [0, 1, 2, 3, 4]


def test_what_cannot_be_divided_is_named():
    with pytest.raises(ValueError, match="mine has one of class 'rare'"):
        held_out(labeled([0, 0, 1], ("common", "rare")))
    with pytest.raises(ValueError, match="mine has none"):
        held_out(Images("mine", "train", ArraySource(np.zeros((3, 4, 4), np.uint8))))
