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

from neuralbayes.clusters.typicality import FAR, LOCAL, N_NEIGHBORS, Fold
from neuralbayes.data.sources import ArraySource
from neuralbayes.estimators.clusterer import Clusterer
from neuralbayes.estimators.information_clusterer import InformationClusterer
from neuralbayes.features.programs import Format, export_network

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
        self.folds = nn.ModuleList()
        if isinstance(clusterer, InformationClusterer):
            self.folds.extend(FoldProgram(fold) for fold in clusterer.typicality_.folds)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        if self.images:
            x = x.permute(0, 3, 1, 2).to(torch.float32) / 255.0
        logits = self.module(x)
        found = (logits.double().softmax(dim=1).float(), logits.argmax(dim=1))
        if not len(self.folds):
            return found
        rows = self.module.features(x)
        counts = [fold(rows) for fold in self.folds]
        n_beyond, n = sum(count for count, _ in counts), sum(m for _, m in counts)
        return (*found, ((1.0 + n_beyond) / (1.0 + n)).float())


class FoldProgram(nn.Module):
    """A :class:`~neuralbayes.clusters.typicality.Fold` with matrix products only."""

    center: Tensor
    unit: Tensor
    components: Tensor | None
    reference: Tensor
    spacing: Tensor
    scores: Tensor

    def __init__(self, fold: Fold) -> None:
        super().__init__()
        for name in ("center", "unit", "components", "reference", "spacing", "scores"):
            value = torch.from_numpy(np.array(getattr(fold, name))).double()
            self.register_buffer(name, value if value.numel() else None)  # torch.export cannot save empty tensors
        self.floor = float(fold.floor)
        self.n_neighbors = min(N_NEIGHBORS + 1, len(fold.reference))

    def forward(self, rows: Tensor) -> tuple[Tensor, int]:
        """Number of calibration rows that lie at least as far out (n,), and the number of all."""
        x = ((rows - self.center) / self.unit).clamp(-FAR, FAR)
        if self.components is not None:
            inside = x @ self.components
            off = x.square().sum(dim=1, keepdim=True) - inside.square().sum(dim=1, keepdim=True)
            x = torch.cat([inside, off.clamp_min(0.0).sqrt()], dim=1)
        x = x.float().double()
        reference = self.reference
        squared = x.square().sum(dim=1, keepdim=True) + reference.square().sum(dim=1) - 2.0 * x @ reference.T
        _, near = squared.topk(self.n_neighbors, dim=1, largest=False)
        distance = (reference[near] - x[:, None]).square().sum(dim=2).sqrt()
        local = distance.clamp_min(self.floor).log() - LOCAL * self.spacing[near]
        score = local.sum(dim=1)
        if self.n_neighbors > 1:  # leave out the row itself or, if it is absent, the last neighbour
            same = (distance <= SAME * self.floor).to(torch.int64)
            left_out = torch.where(same.sum(dim=1) > 0, same.argmax(dim=1), self.n_neighbors - 1)
            score = (score - local.gather(1, left_out[:, None])[:, 0]) / (self.n_neighbors - 1)
        return (self.scores >= score[:, None] - EQUAL).sum(dim=1).double(), len(self.scores)


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
        tolerance.append(2.5 / (1 + plain.typicality_.n_calibration))  # nearly equal scores may swap
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
    module: Any = clusterer.module_
    center, basis = (buffer.double().numpy() for buffer in (module.center, module.basis))
    spread = np.diag(1.0 / np.where(basis == 0.0, 1.0, basis)) if basis.ndim == 1 else np.linalg.pinv(basis)
    rows: NDArray[Any] = center + rng.normal(size=(COMPARED, len(spread))) @ spread
    reduction = module.rows.reduction if isinstance(clusterer, InformationClusterer) else None
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
