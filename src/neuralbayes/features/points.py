"""The samples of some data with features in place of pixels and letters: the choice of a network, and its result."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from neuralbayes.data.points import Points
from neuralbayes.data.tables import read_table
from neuralbayes.features.cache import cached_features
from neuralbayes.features.networks import FeatureNetwork, better_network, default_network, load_network, needs_network


def with_features(
    points: Points, features: Any = "auto", *, device: str = "auto", cache: Path | None = None, progress: bool = False
) -> Points:
    """Replace samples by their features: an array, a file, or what a network or a function computes.

    Parameters are those of :func:`neuralbayes.cluster`.

    Examples
    --------
    >>> from neuralbayes.data.points import as_points
    >>> points = as_points(["a", "bb", "ccc"])
    >>> with_features(points, lambda texts: np.array([[len(text), 1] for text in texts])).X[:, 0]
    array([1., 2., 3.], dtype=float32)
    """
    if points.noun != "row":
        return _of_texts_or_images(points, features, device, cache, progress)
    if features is None or (isinstance(features, str) and features == "auto"):
        return points
    if isinstance(features, str) and not features.lower().endswith(".npy"):
        raise ValueError(
            f"`features` of a table must be an array or a .npy file, got {features!r}; networks are for images and for "
            "texts: name the column of texts with `text`"
        )
    return _with_array(points, features)


def _of_texts_or_images(points: Points, features: Any, device: str, cache: Path | None, progress: bool) -> Points:
    """Texts or images with their features, from a network, a function, a file or an array."""
    kind: Literal["pictures", "texts"] = "pictures" if points.noun == "image" else "texts"
    if points.noun == "image" and (features in (None, "pixels") if isinstance(features, str | None) else False):
        return points
    notes = []
    if isinstance(features, str) and features == "auto":
        if points.images is not None and not needs_network(points.images):
            return points
        features = default_network(kind)
        notes = [words] if (words := better_network(features)) else []
    if features is None or isinstance(features, np.ndarray | list) or str(features).lower().endswith(".npy"):
        return _with_array(points, features)
    if callable(features):
        network = FeatureNetwork(getattr(features, "__name__", "function"), kind, "", features, own=True)
    else:
        network = load_network(str(features), kind, device=device)
    items: Any = points.texts if points.images is None else points.images
    kept = None if cache is None else cache / "features.safetensors"
    found = cached_features(network, items, kept, verbose=progress)
    return replace(
        points,
        X=found,
        features_from=network.name,
        identity=network.identity,
        notes=[*points.notes, *notes],
        recipe=points.recipe | {"features": network.name},
    )


def _with_array(points: Points, features: Any) -> Points:
    """The samples with features from an array, several arrays, or a .npy file."""
    name = "an array"
    if isinstance(features, str | PathLike):
        name = str(features)
        features = read_table(name)
    n = len(points.texts) if points.texts is not None else len(points)
    spaces = features if isinstance(features, list | tuple) and np.ndim(features[0]) == 2 else [np.asarray(features)]
    for space in spaces:
        if np.ndim(space) != 2 or len(space) != n:
            raise ValueError(
                f"`features` must have shape ({n}, n_features), a row for each {points.noun}, got {np.shape(space)}"
            )
    X = list(spaces) if len(spaces) > 1 else spaces[0]
    return replace(points, X=X, features_from=name, identity=None, recipe=points.recipe | {"features": name})
