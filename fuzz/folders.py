"""Small files that the library itself writes, as seeds for mutations: models, encoders, checkpoints, runs, records."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save

import neuralbayes as nb
from neuralbayes.data.normalize import Normalization
from neuralbayes.features.encoder import STATES, ImageEncoder
from neuralbayes.features.pretraining import PRESETS


def compact(*documents: Any) -> list[bytes]:
    """Each document as one line of JSON."""
    return [json.dumps(document).encode() for document in documents]


def _folder(save: Callable[[Path], Any]) -> dict[str, bytes]:
    """The files of a saved model, by name."""
    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder) / "saved")
        return {path.name: path.read_bytes() for path in (Path(folder) / "saved").iterdir()}


def header_of(file: bytes) -> bytes:
    """The JSON at the beginning of a safetensors file."""
    return file[8 : 8 + int.from_bytes(file[:8], "little")].strip()


def with_header(file: bytes, header: bytes) -> bytes:
    """A safetensors file with another header and the same numbers."""
    return len(header).to_bytes(8, "little") + header + file[8 + int.from_bytes(file[:8], "little") :]


def _model(estimator: Any) -> dict[str, bytes]:
    X = np.random.default_rng(0).normal(size=(40, 2)) + 5 * (np.arange(40) % 2)[:, None]
    return _folder(estimator.fit(X).save)


def _encoder() -> dict[str, bytes]:
    pixels = np.random.default_rng(0).integers(0, 256, (3, 22, 22, 1), dtype=np.uint8)
    return _folder(ImageEncoder("tiny", (22, 22, 1), Normalization.fit(pixels, progress=False)).save)


LABELER = _model(nb.ManifoldLabeler(2, n_hidden=8, random_state=0))
CLUSTERS = _model(nb.InformationClusterer(2, n_hidden=8, max_iter=5, random_state=0))
ROWS = _model(nb.MIMEncoder((4, 4), max_epochs=1, random_state=0))
ENCODER = _encoder()
TENSORS = save({"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([1, 2])}, {"format": "1"})
LABELER_WEIGHTS = next(content for name, content in LABELER.items() if name != "model.json")

LAYER = {"states": 16, "information": 1.5, "bound": 2.7, "dead": 0}
PROBED = {"head": "linear", "mean": 0.5, "std": 0.1, "accuracies": [0.4, 0.6], "n_features": 64, "n_test": 10}
RUN = {
    "config.json": {"method": "mim"} | asdict(PRESETS["laptop"]),
    "result.json": {
        "layers": dict.fromkeys(STATES, LAYER),
        "images": 100,
        "steps": 5,
        "seconds": 3.5,
        "ended": "early stop",
        "warnings": ["few images"],
        "images_per_second": 30.5,
        "peak_memory_mb": 400,
        "processes": 1,
        "versions": {"torch": "2.13.0"},
    },
    "data.json": {"data": "digits", "split": "train", "limit": None, "size": 32, "channels": None},
    "probe-linear-relu4.json": {"data": "digits", "results": [{"features": "encoder relu4", "validation": PROBED}]},
}
