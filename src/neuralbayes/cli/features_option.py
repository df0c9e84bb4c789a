"""The option ``--features``: the file or network of the features, and a check of models."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralbayes.cli.runs import limited

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from neuralbayes.data.sources import Images
    from neuralbayes.features.networks import Network


@dataclass(frozen=True)
class ImageFeatures:
    """Features of images: from a pretrained network or from a file.

    Attributes
    ----------
    name : str
        Name as given.
    size : tuple (H, W) or None
        Requested size in pixels.
    network : Network or None
        None if features come from a file.
    kept : Path
        Cache of the features of a network.
    """

    name: str
    size: tuple[int, int] | None
    network: Network | None
    kept: Path

    def load(self, data: str, split: str, *, verbose: bool) -> Images:
        """The images as input of the network, or for display if features come from a file."""
        from neuralbayes.data.images import load_images

        steps = None if self.network is None else self.network.preprocessing
        if steps is None:
            return load_images(data, split=split, size=self.size, progress=verbose)
        return load_images(
            data, split=split, size=steps.size, channels=3, interpolation=steps.resizing, progress=verbose
        )

    def rows(
        self, images: Images, limit: int | None, *, index: NDArray[np.int64] | None = None, verbose: bool
    ) -> NDArray[Any]:
        """The features of the first `limit` images, or of all, optionally only at `index`: (n, n_features)."""
        source = limited(images, limit)
        if self.network is None:
            found = features_of_file(Path(self.name), len(source), f"images of {images.name}")
            return found if index is None else found[index]
        from neuralbayes.features.kept import kept_features

        if index is not None:
            from neuralbayes.data.sources import SubsetSource

            source = SubsetSource(source, index)
        return kept_features(self.network, source, self.kept, verbose=verbose)


def image_features(name: str, size: tuple[int, int] | None, kept: Path) -> ImageFeatures:
    """Parse ``--features``, and check it before anything is read."""
    if is_file(name):
        if not Path(name).is_file():
            raise FileNotFoundError(f"--features must be a .npy file that exists, or a network, got {name!r}")
        return ImageFeatures(name, size, None, kept)
    from neuralbayes.features.networks import load_network

    return ImageFeatures(name, size, load_network(name, "pictures", size=size), kept)


def is_file(name: str) -> bool:
    """Whether features come from a file instead of a network."""
    return Path(name).suffix.lower() == ".npy"


def features_of_file(path: Path, n_rows: int, what: str) -> NDArray[Any]:
    """The memory-mapped features in a .npy file, with one row for each of `n_rows` items called `what`."""
    from neuralbayes.data.arrays import open_npy

    features = open_npy(path)
    if features.ndim != 2 or features.dtype.kind != "f":
        raise ValueError(
            f"{path} must hold floating-point features (n_rows, n_features), got {features.dtype} of shape "
            f"{features.shape}"
        )
    if len(features) != n_rows:
        raise ValueError(f"{path} must have a row for each of the {n_rows:,} {what}, got {len(features):,} rows")
    return features


def features_file(out: Path) -> Path:
    """The cache of the features of a network, next to the labels.

    Examples
    --------
    >>> features_file(Path("photos-labels.csv")).name
    'photos-features.safetensors'
    """
    return out.with_name(f"{out.stem.removesuffix('-labels')}-features.safetensors")


def features_name(features: str, network: Network | None) -> str:
    """Identity of the fitted features in a model: the digest of the network or file, and the name.

    Examples
    --------
    >>> features_name("my features.npy", None)
    'file my features.npy'
    """
    return f"{'file' if network is None else network.identity} {features}"


def load_fitting_features(model: Path, features: str | None, network: Network | None) -> Any:
    """A saved clusterer, if it was fitted to these features."""
    import neuralbayes

    estimator = neuralbayes.load(model)
    identity, _, name = getattr(estimator, "features_from_", "").partition(" ")
    if not name and features is not None:
        raise ValueError(f"{model} was not fitted to features, but --features is {features}")
    if name and features is None:
        raise ValueError(f"{model} was fitted to features: add --features {shlex.quote(name)}")
    if network is not None and name and identity != network.identity:
        raise ValueError(f"{model} was fitted to features of {name}, but --features is another network")
    return estimator
