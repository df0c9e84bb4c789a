"""Export fitted clusterers and encoders for other programs, from raw rows or pixels to probabilities or features."""

from __future__ import annotations

import copy
import io
import json
import logging
import warnings
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from neuralbayes.clusters.typicality import FAR, LOCAL, N_NEIGHBORS, Fold
from neuralbayes.data.normalize import whitened
from neuralbayes.data.sources import ArraySource
from neuralbayes.estimators.clusterer import Clusterer
from neuralbayes.estimators.information_clusterer import InformationClusterer
from neuralbayes.estimators.saving import DESCRIPTION, load
from neuralbayes.features.encoder import MAX_FEATURES, ImageEncoder, flat_state
from neuralbayes.system.files import atomic_write

MOST = 1 << 20  # maximum batch size of a program
COMPARED = 20  # samples for the comparison with the original
TOLERANCE, OF_FEATURES = 1e-5, 1e-4  # maximum error of a probability, and of a feature relative to the largest one or 1
# Differences of scores, and distances of rows in units of the shortest one that counts, that are due to rounding.
EQUAL, SAME = 1e-5, 0.05
RESIZING = "scaled by Pillow to cover (H, W) by the mean over areas (BOX), then cropped to the middle"


def export(
    model: Any, path: str | Path, *, to: Literal["onnx", "torch"] = "onnx", state: str = "relu4"
) -> dict[str, str]:
    """Export a clusterer or an encoder of images with all its preprocessing, for any number of samples.

    Parameters
    ----------
    model : InformationClusterer, ManifoldLabeler or ImageEncoder, or the folder of one
        Fitted.
    path : path
    to : {"onnx", "torch"}
        ONNX (needs the extra ``export``), or a program for `torch.export.load`. Neither is a pickle.
    state : str, default="relu4"
        Hidden state of an encoder to return, as in :meth:`neuralbayes.ImageEncoder.features`.

    Returns
    -------
    dict of str to str
        The metadata of the program, which an ONNX file contains: "model", "input", "output", the "columns" as JSON, the
        "resizing" of images, and the "difference", the largest from the original on random samples. If it is too
        large, nothing is written and a ValueError raised.

    Notes
    -----
    The program takes "images" (n, H, W, C) in uint8, or "rows" (n, n_features) in float32, or in float64 where float32
    would change the probabilities, because the origin is far from the rows. A clusterer returns "probabilities" in
    float32, "labels" and, for an :class:`neuralbayes.InformationClusterer`, "typicality" in float32. A clusterer of
    data frames expects the output of its `vectorizer_`. An encoder returns "features" in float32.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data.astype("float32")
    >>> nb.export(nb.InformationClusterer(3, random_state=0).fit(X), "iris.pt2", to="torch")["input"]
    'float32 rows (n, 4)'
    >>> torch.export.load("iris.pt2").module()(torch.from_numpy(X))[1].shape
    torch.Size([150])
    """
    if to not in ("onnx", "torch"):
        raise ValueError(f"`to` must be onnx or torch, got {to!r}")
    if isinstance(model, str | Path):
        model = load(model) if (Path(model) / DESCRIPTION).is_file() else ImageEncoder.load(model)
    program: nn.Module
    if isinstance(model, Clusterer):
        check_is_fitted(model)
        program, shape = ClusterProgram(model), model.image_shape_
        example, expected = _expected(model)
        outputs = ["probabilities", "labels", "typicality"][: len(expected)]
        tolerance = [TOLERANCE, 0.0]
        if isinstance(model, InformationClusterer):
            tolerance.append(2.5 / (1 + model.typicality_.n_calibration))  # nearly equal scores may swap
    elif isinstance(model, ImageEncoder):
        program, shape = FeatureProgram(model, state), list(model.shape)
        example = np.random.default_rng(0).integers(0, 256, (5, *model.shape), dtype=np.uint8)
        expected = [model.features(ArraySource(example, channels_first=False), state)]
        outputs, tolerance = ["features"], [OF_FEATURES]
    else:
        raise TypeError(f"`model` must be a clusterer, an ImageEncoder or a folder, got {type(model).__name__}")
    kind = "rows" if shape is None else "images"
    columns = getattr(model, "feature_names_in_", None)
    described = {
        "model": f"{type(model).__name__} of neuralbayes {version('neuralbayes')}",
        "input": f"{example.dtype} {kind} (n, {', '.join(map(str, example.shape[1:]))})",
        "output": state if outputs == ["features"] else ", ".join(outputs),
        "columns": json.dumps(None if columns is None else [str(name) for name in columns]),
        "resizing": RESIZING if kind == "images" else "none",
    }
    with atomic_write(path) as temporary:
        found = _written(program, example, temporary, to, kind, outputs, described)
        largest = 0.0
        for got, right, allowed in zip(found, expected, tolerance, strict=True):
            difference = float(np.abs(got.astype(np.float64) - right).max())
            if not difference <= allowed * max(1.0, float(np.abs(right).max())):  # `not`: NaN fails every comparison
                raise ValueError(f"the program differs from the model by {difference:g}; {path} is not written")
            largest = max(largest, difference)
    return described | {"difference": f"{largest:.1g}"}


class ClusterProgram(nn.Module):
    """Map raw samples to what a fitted clusterer says: probabilities, labels and, if it has one, typicality."""

    def __init__(self, clusterer: Clusterer) -> None:
        super().__init__()
        self.module = copy.deepcopy(clusterer.module_).eval()
        self.images = clusterer.image_shape_ is not None
        self.folds = nn.ModuleList()
        if isinstance(clusterer, InformationClusterer):
            self.folds.extend(FoldProgram(fold) for fold in clusterer.typicality_.folds)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        x = x.permute(0, 3, 1, 2).to(torch.float32) / 255.0 if self.images else x.double()
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


class FeatureProgram(nn.Module):
    """Map images to features, including the normalisation: uint8 (n, H, W, C) -> float32 (n, n_features)."""

    scale: Tensor
    offset: Tensor
    whitening: Tensor | None

    def __init__(self, encoder: ImageEncoder, state: str) -> None:
        super().__init__()
        std = encoder.normalization.std.astype(np.float64)
        self.register_buffer("scale", torch.from_numpy((1 / (255 * std)).astype(np.float32)))
        self.register_buffer("offset", torch.from_numpy((-encoder.normalization.mean / std).astype(np.float32)))
        kernel = encoder.normalization.whitening
        self.register_buffer("whitening", None if kernel is None else torch.from_numpy(kernel))
        self.layers = copy.deepcopy(encoder.layers(state)).cpu()
        self.eval()

    def forward(self, images: Tensor) -> Tensor:
        x = images.permute(0, 3, 1, 2).to(torch.float32) * self.scale + self.offset
        if self.whitening is not None:
            x = whitened(x, self.whitening)
        return flat_state(self.layers(x), MAX_FEATURES)


def _expected(clusterer: Any) -> tuple[NDArray[Any], list[NDArray[Any]]]:
    """Random samples in the input type of the program, and what the clusterer says of them."""
    rng = np.random.default_rng(0)
    plain = copy.copy(clusterer)  # expects the numbers, not the data frame
    for name in {"vectorizer_", "feature_names_in_"} & vars(plain).keys():
        delattr(plain, name)
    if clusterer.image_shape_ is not None:
        example = rng.integers(0, 256, (COMPARED, *clusterer.image_shape_), dtype=np.uint8)
        samples: Any = ArraySource(example, channels_first=False)
    else:
        module: Any = clusterer.module_
        center, basis = (buffer.double().numpy() for buffer in (module.center, module.basis))
        spread = np.diag(1.0 / np.where(basis == 0.0, 1.0, basis)) if basis.ndim == 1 else np.linalg.pinv(basis)
        rows = center + rng.normal(size=(COMPARED, len(spread))) @ spread  # around the centre of the fitted rows
        reduction = module.rows.reduction if isinstance(clusterer, InformationClusterer) else None
        rows = rows if reduction is None else rows @ reduction.numpy().T
        single = rows.astype(np.float32)
        off = np.abs(plain.predict_proba(single.astype(np.float64)) - plain.predict_proba(rows)).max()
        example, samples = (rows, rows) if off > TOLERANCE else (single, single.astype(np.float64))
    expected = [plain.predict_proba(samples), plain.predict(samples)]
    return example, expected + ([plain.typicality(samples)] if isinstance(plain, InformationClusterer) else [])


def _written(
    program: nn.Module, example: NDArray[Any], path: Path, to: str, kind: str, outputs: list[str], about: dict[str, str]
) -> list[NDArray[Any]]:
    """Write a program, and run it on the example."""
    missing = [name for name in ("onnx", "onnxscript", "onnxruntime") if to == "onnx" and find_spec(name) is None]
    if missing:
        raise ImportError(f"ONNX needs {', '.join(missing)}: pip install 'neuralbayes[export]'")
    first = (torch.from_numpy(example[:2]),)
    shapes = ({0: torch.export.Dim("n_samples", min=1, max=MOST)},)
    options: dict[str, Any] = {"input_names": [kind], "output_names": outputs, "dynamic_shapes": shapes}
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)  # the messages of torch's exporters
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if to == "torch":
                buffer = io.BytesIO()  # torch's file writer kills the process on a full disk
                torch.export.save(torch.export.export(program, first, dynamic_shapes=shapes), buffer)
                path.write_bytes(buffer.getbuffer())
                given = torch.export.load(path).module()(torch.from_numpy(example))
                return [one.detach().numpy() for one in (given if isinstance(given, tuple) else (given,))]
            torch.onnx.export(program, first, str(path), dynamo=True, external_data=False, verbose=False, **options)
    finally:
        logging.disable(disabled)
    onnx = import_module("onnx")
    made = onnx.load(str(path), load_external_data=False)
    onnx.helper.set_model_props(made, about)
    onnx.save(made, str(path))
    session = import_module("onnxruntime").InferenceSession(str(path), providers=["CPUExecutionProvider"])
    found: list[NDArray[Any]] = session.run(None, {kind: example})
    return found
