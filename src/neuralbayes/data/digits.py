"""The 1,797 handwritten digits of scikit-learn, which need no download."""

from __future__ import annotations

import numpy as np

from neuralbayes.data.layout import Arrays

N_TRAIN = 1_437


def read_digits() -> Arrays:
    """Arrays of train and test.

    Grey levels 0 to 16 are scaled to 0 to 255. The first 1,437 images are the training part and the last 360 the test
    part, in the order of scikit-learn. Consecutive digits were written by the same person, so a random split would have
    the same writers in both parts.
    """
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images = np.rint(bunch.images * (255 / 16)).astype(np.uint8)[..., np.newaxis]
    labels = bunch.target.astype(np.int64)
    return {
        "train_images": images[:N_TRAIN],
        "train_labels": labels[:N_TRAIN],
        "test_images": images[N_TRAIN:],
        "test_labels": labels[N_TRAIN:],
    }
