"""The 1,797 handwritten digits that come with scikit-learn: the data set that needs nothing."""

from __future__ import annotations

import numpy as np

from neuralbayes.data.layout import Arrays

N_TRAIN = 1_437


def read_digits() -> Arrays:
    """Arrays of train and test.

    The grey levels 0 to 16 become 0 to 255. The first 1,437 images are for training, the last 360 for testing, in
    the order of scikit-learn: neighbours in it were written by the same person, so a random split would test on the
    hands that were trained on.
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
