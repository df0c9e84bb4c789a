"""Named data sets: ``nb.datasets.load("cifar10")``."""

from __future__ import annotations

from neuralbayes.data.named import Dataset, Split, data_folder, load, names

__all__ = ["Dataset", "Split", "data_folder", "load", "names"]
