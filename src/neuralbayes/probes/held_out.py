"""Hold out a test part of labelled images that come without one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.sources import Images, SubsetSource

TEST_SHARE = 0.2
SEED = 0


def divided(
    labels: NDArray[Any],
    name: str,
    *,
    class_names: Sequence[str] | None = None,
    share: float = TEST_SHARE,
    seed: int = SEED,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Stratified indices of training and test rows, in ascending order.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        At least two samples of each class.
    name : str
        Name of the data, for messages.
    class_names : sequence of str, optional
        Names of the classes by number, for messages.
    share : float, default=0.2
        Fraction of the test part, which gets at least one sample of each class.
    seed : int, default=0
    """
    from sklearn.model_selection import train_test_split

    classes, counts = np.unique(labels, return_counts=True)
    if counts.min(initial=2) < 2:
        rare = classes[counts.argmin()]
        raise ValueError(
            "there must be at least two samples of each class to divide them into a train and a test part, but "
            f"{name} has one of class {rare if class_names is None else repr(class_names[rare])}"
        )
    n_test = max(len(classes), math.ceil(share * len(labels)))
    if len(labels) - n_test < len(classes):
        raise ValueError(
            f"{name} must have more samples to be divided into a train and a test part: {len(labels)} for "
            f"{len(classes)} classes are too few"
        )
    train, test = train_test_split(np.arange(len(labels)), test_size=n_test, stratify=labels, random_state=seed)
    return np.sort(train), np.sort(test)


def held_out(images: Images, *, share: float = TEST_SHARE, seed: int = SEED) -> tuple[Images, Images]:
    """Split labelled images at random into a stratified training and test part.

    Parameters
    ----------
    images : Images
        Labelled images, at least two of each class.
    share : float, default=0.2
        Fraction of the test part, which gets at least one image of each class.
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
    if images.labels is None:
        raise ValueError(f"`images` must have labels to be divided, but {images.name} has none")
    parts = divided(images.labels, images.name, class_names=images.class_names, share=share, seed=seed)
    train, test = (
        replace(images, split=split, source=SubsetSource(images.source, rows), labels=images.labels[rows])
        for split, rows in zip(("train", "test"), parts, strict=True)
    )
    return train, test
