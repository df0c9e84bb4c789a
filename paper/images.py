"""The images of a run, by name: part of a data set, optionally only its first images, optionally resized."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.images import Images, load_images
from neuralbayes.data.named import data_folder, find_set, is_present
from neuralbayes.data.sources import ArraySource
from paper.packaged_data import load


@dataclass(frozen=True)
class Source:
    """Images of a named data set."""

    name: str
    split: str = "train"
    n: int | None = None
    side: int | None = None

    def __len__(self) -> int:
        whole = find_set(self.name).sizes[self.split]
        return whole if self.n is None else min(self.n, whole)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(H, W, C) of an image."""
        height, width, channels = find_set(self.name).shape
        return (height, width, channels) if self.side is None else (self.side, self.side, channels)

    def load(self) -> Images:
        """Load the images into memory, with their labels."""
        images = load_images(self.name, split=self.split, size=self.side, progress=False)
        pixels = images.source.read(np.arange(len(self)))
        labels = None if images.labels is None else images.labels[: len(self)]
        return replace(images, source=ArraySource(pixels, channels_first=False), labels=labels)


def labels_of(images: Images) -> NDArray[np.int64]:
    """The labels of images; raises ValueError if there are none."""
    if images.labels is None:
        raise ValueError(f"{images.name} must have labels in its part {images.split!r}")
    return images.labels


def present(names: Iterable[str]) -> tuple[str, ...]:
    """The data sets that are already on this computer."""
    return tuple(name for name in names if is_present(find_set(name), data_folder()))


def fetch(names: Collection[str]) -> None:
    """Download missing data sets before several processes ask for them at once."""
    for name in sorted(set(names) - set(present(names))):
        load(name)
