"""A test part of one's own, for labelled images that come without one."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from neuralbayes.data.sources import Images, SubsetSource

TEST_SHARE = 0.2
SEED = 0


def held_out(images: Images, *, share: float = TEST_SHARE, seed: int = SEED) -> tuple[Images, Images]:
    """Divide labelled images at random into a train and a test part, in each of which the classes have their share.

    Parameters
    ----------
    images : Images
        With labels; at least two of each class.
    share : float, default=0.2
        Of the images, for the test part, which gets at least one of each class.
    seed : int, default=0

    Returns
    -------
    train, test : Images

    Examples
    --------
    >>> import neuralbayes as nb
    >>> train, test = held_out(nb.load_images("digits"))
    >>> len(train), len(test), np.bincount(test.labels).tolist()
    (1149, 288, [29, 29, 28, 29, 29, 29, 29, 29, 28, 29])
    """
    from sklearn.model_selection import train_test_split

    if images.labels is None:
        raise ValueError(f"`images` must have labels to be divided, but {images.name} has none")
    classes, counts = np.unique(images.labels, return_counts=True)
    if counts.min() < 2:
        k = int(classes[counts.argmin()])
        name = k if images.class_names is None else repr(images.class_names[k])
        raise ValueError(
            f"`images` must hold at least two images of each class to be divided into a train and a test part, but "
            f"{images.name} has one of class {name}"
        )
    n_test = max(len(classes), math.ceil(share * len(images)))
    parts = train_test_split(np.arange(len(images)), test_size=n_test, stratify=images.labels, random_state=seed)
    train, test = (
        replace(images, split=split, source=SubsetSource(images.source, rows), labels=images.labels[rows])
        for split, rows in zip(("train", "test"), map(np.sort, parts), strict=True)
    )
    return train, test
