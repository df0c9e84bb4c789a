"""Export fitted clusterers for other programs, from raw rows or pixels to probabilities."""

from __future__ import annotations

import copy
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from neuralbayes.clusters.coordinates import Coordinates
from neuralbayes.clusters.typicality import FAR, LOCAL, N_NEIGHBORS, Typicality
from neuralbayes.data.sources import ArraySource
from neuralbayes.estimators.clusterer import Clusterer
from neuralbayes.estimators.information_clusterer import InformationClusterer
from neuralbayes.features.programs import Format, export_network
from neuralbayes.networks.states import StateNetwork

TOLERANCE = 1e-5
"""Maximum error of a probability."""

EQUAL = 1e-5
"""Scores that differ by less count as equal, because distances in float32 have such rounding errors."""

SAME = 0.05
"""Rows closer than this, in units of the shortest distance that counts, are equal up to rounding."""

COMPARED = 20
"""Number of samples for the comparison with the clusterer."""


class ClusterProgram(nn.Module):
    """Map raw samples to the predictions of a clusterer.

    Parameters
    ----------
    clusterer : Clusterer
        A fitted clusterer; its module is copied.

    Notes
    -----
    The input is rows (n, n_features) in float64, or images (n, H, W, C) in uint8. The outputs are the probabilities (n,
    n_clusters) in float32, the labels (n,) and, for an :class:`neuralbayes.InformationClusterer`, the typicality (n,)
    in float32.
    """

    def __init__(self, clusterer: Clusterer) -> None:
        super().__init__()
        self.module = copy.deepcopy(clusterer.module_).eval()
        self.images = clusterer.image_shape_ is not None
        self.typicality = None
        if isinstance(clusterer, InformationClusterer):
            self.typicality = TypicalityProgram(*clusterer.typical_parts())

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        if self.images:
            x = x.permute(0, 3, 1, 2).to(torch.float32) / 255.0
        logits = self.module(x)
        found = (logits.double().softmax(dim=1).float(), logits.argmax(dim=1))
        return found if self.typicality is None else (*found, self.typicality(self.module, x).float())


class TypicalityProgram(nn.Module):
    """:class:`~neuralbayes.clusters.typicality.Typicality` with matrix products only."""

    center: Tensor
    reference: Tensor
    spacing: Tensor
    scores: Tensor
    components: Tensor | None

    def __init__(self, typicality: Typicality, coordinates: Coordinates) -> None:
        super().__init__()
        for name in ("center", "reference", "spacing", "scores"):
            self.register_buffer(name, torch.from_numpy(np.array(getattr(typicality, name))).double())
        components = coordinates.components
        self.register_buffer("components", None if components is None else torch.from_numpy(np.array(components)))
        self.scale, self.floor, self.length = typicality.scale, typicality.floor, coordinates.length
        self.n_neighbors = min(N_NEIGHBORS + 1, len(typicality.reference))

    def forward(self, module: StateNetwork, x: Tensor) -> Tensor:
        """Typicality: (n, ...) -> (n,)."""
        largest = torch.finfo(torch.float32).max
        points: Tensor = module.normalize(x).flatten(1).clamp(-largest, largest).double()
        if self.components is not None:
            points = points @ self.components.double()
        if self.length:
            own = points.square().sum(dim=1, keepdim=True).sqrt()
            taken = module.rows(x).flatten(1).double()
            other = taken.square().sum(dim=1, keepdim=True).sqrt() / self.length - 1.0
            points = torch.cat([points / own.clamp_min(torch.finfo(torch.float64).tiny), other], dim=1)
        rows = ((points - self.center) / self.scale).clamp(-FAR, FAR).float().double()
        reference = self.reference
        squared = rows.square().sum(dim=1, keepdim=True) + reference.square().sum(dim=1) - 2.0 * rows @ reference.T
        _, near = squared.topk(self.n_neighbors, dim=1, largest=False)
        differences = reference[near] - rows[:, None]
        distance = differences.square().sum(dim=2).sqrt()
        local = distance.clamp_min(self.floor).log() - LOCAL * self.spacing[near]
        score = local.sum(dim=1)
        if self.n_neighbors > 1:  # leave out the row itself or, if it is absent, the last neighbour
            same = (distance <= SAME * self.floor).to(torch.int64)
            left_out = torch.where(same.sum(dim=1) > 0, same.argmax(dim=1), self.n_neighbors - 1)
            score = (score - local.gather(1, left_out[:, None])[:, 0]) / (self.n_neighbors - 1)
        n_calibration = len(self.scores)
        at_least = (self.scores >= score[:, None] - EQUAL).sum(dim=1)
        return (1.0 + at_least.double()) / (1.0 + n_calibration)


def export_clusterer(clusterer: Clusterer, path: str | Path, to: Format) -> float:
    """Export a clusterer with all its preprocessing, for any number of samples.

    Parameters
    ----------
    clusterer : InformationClusterer or ManifoldLabeler
        Fitted.
    path : path
    to : {"onnx", "torch"}
        ONNX (needs the extra ``export``), or a program for `torch.export.load`.

    Returns
    -------
    float
        The maximum difference of a probability or typicality from the clusterer, on random samples.

    Raises
    ------
    ValueError
        If the difference is too large. Nothing is written then.

    Notes
    -----
    The program takes "rows" (n, n_features) in float64, or "images" (n, H, W, C) in uint8. Its outputs are
    "probabilities", "labels" and, for an :class:`neuralbayes.InformationClusterer`, "typicality". The metadata of an
    ONNX file contain the names of the columns and the size of images. A clusterer of data frames expects the output of
    its `vectorizer_`.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> clusterer = nb.InformationClusterer(3, max_iter=40, random_state=0).fit(X)
    >>> nb.export_clusterer(clusterer, "iris.pt2", "torch") < 1e-5
    True
    >>> torch.export.load("iris.pt2").module()(torch.from_numpy(X))[1].shape
    torch.Size([150])
    """
    check_is_fitted(clusterer)
    program = ClusterProgram(clusterer)
    example = _examples(clusterer)
    samples = example if clusterer.image_shape_ is None else ArraySource(example, channels_first=False)
    plain = copy.copy(clusterer)  # expects the numbers, not the data frame
    for name in {"vectorizer_", "feature_names_in_"} & vars(plain).keys():
        delattr(plain, name)
    expected = [plain.predict_proba(samples), plain.predict(samples)]
    names, tolerance = ["probabilities", "labels"], [TOLERANCE, 0.0]
    if isinstance(plain, InformationClusterer):
        expected.append(plain.typicality(samples))
        names.append("typicality")
        tolerance.append(1.5 / (1 + len(plain.typical_scores_)))  # nearly equal scores may swap
    return export_network(
        program,
        example,
        expected,
        path,
        to,
        names=("rows" if clusterer.image_shape_ is None else "images", names),
        tolerance=tolerance,
        metadata=_metadata(clusterer),
    )


def _examples(clusterer: Clusterer) -> NDArray[Any]:
    """Random samples in the input type of the program; rows are spread around the centre of the fitted rows."""
    rng = np.random.default_rng(0)
    if clusterer.image_shape_ is not None:
        return rng.integers(0, 256, (COMPARED, *clusterer.image_shape_), dtype=np.uint8)
    center, basis = (buffer.double().numpy() for buffer in (clusterer.module_.center, clusterer.module_.basis))
    spread = np.diag(1.0 / np.where(basis == 0.0, 1.0, basis)) if basis.ndim == 1 else np.linalg.pinv(basis)
    rows: NDArray[Any] = center + rng.normal(size=(COMPARED, len(spread))) @ spread
    reduction = clusterer.module_.rows.reduction if isinstance(clusterer, InformationClusterer) else None
    return rows if reduction is None else rows @ reduction.numpy().T


def _metadata(clusterer: Clusterer) -> dict[str, str]:
    """Metadata of an ONNX file on its input and output."""
    shape = clusterer.image_shape_
    columns = getattr(clusterer, "feature_names_in_", None)
    return {
        "model": f"{type(clusterer).__name__} of neuralbayes {version('neuralbayes')}",
        "input": f"float64 rows (n, {clusterer.n_features_in_})" if shape is None else f"uint8 images {('n', *shape)}",
        "columns": json.dumps(None if columns is None else [str(name) for name in columns]),
        "n_clusters": str(clusterer.n_clusters_),
    }
