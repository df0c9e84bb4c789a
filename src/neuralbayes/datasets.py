"""Named data sets: ``nb.datasets.load("cifar10")``."""

from __future__ import annotations

from neuralbayes.data.catalog import names
from neuralbayes.data.dataset import Dataset, Split
from neuralbayes.data.loading import load
from neuralbayes.data.places import data_folder

__all__ = ["Dataset", "Split", "data_folder", "load", "names"]
