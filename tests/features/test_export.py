"""Export of encoders for other programs."""

import numpy as np
import pytest
import torch

from neuralbayes.data.normalize import Normalization
from neuralbayes.data.sources import ArraySource
from neuralbayes.features import programs
from neuralbayes.features.encoder import STATES, ImageEncoder
from neuralbayes.features.export import FeatureNetwork, export_encoder

SHAPE = (22, 26, 3)


def images(n):
    return np.random.default_rng(n).integers(0, 256, (n, *SHAPE), dtype=np.uint8)


@pytest.fixture(params=["channel", "dimension", "whiten"])
def encoder(request):
    encoder = ImageEncoder("tiny", SHAPE, Normalization.fit(images(30), per=request.param)).eval()
    for module in encoder.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2.0)
    return encoder


@pytest.mark.parametrize("state", STATES)
def test_the_network_that_takes_bytes_gives_the_features(encoder, state):
    found = FeatureNetwork(encoder, state)(torch.from_numpy(images(4))).detach().numpy()
    np.testing.assert_allclose(found, encoder.features(ArraySource(images(4)), state), atol=1e-5)


@pytest.mark.parametrize(
    ("to", "encoder", "state"),
    [
        ("onnx", "channel", "relu1"),
        ("onnx", "dimension", "relu4"),
        ("torch", "channel", "relu4"),
        ("torch", "whiten", "relu4"),
    ],
    indirect=["encoder"],
)
def test_an_exported_network_gives_the_features_of_any_number_of_images(encoder, tmp_path, to, state):
    if to == "onnx":
        onnxruntime = pytest.importorskip("onnxruntime")
        pytest.importorskip("onnxscript")
    path = tmp_path / "encoder.bin"
    assert export_encoder(encoder, path, to, state=state) < 1e-4
    for n in (1, 2, 9):
        if to == "onnx":
            found = onnxruntime.InferenceSession(str(path)).run(None, {"images": images(n)})[0]
        else:
            found = torch.export.load(path).module()(torch.from_numpy(images(n))).detach().numpy()
        np.testing.assert_allclose(found, encoder.features(ArraySource(images(n)), state), atol=1e-4)
    assert [p.name for p in tmp_path.iterdir()] == ["encoder.bin"]  # no other file next to it


def test_a_network_that_differs_is_not_written(encoder, tmp_path, monkeypatch):
    right = FeatureNetwork.forward
    monkeypatch.setattr(FeatureNetwork, "forward", lambda self, x: right(self, x) + 0.01)
    with pytest.raises(ValueError, match=r"differs from the model by 0\.01"):
        export_encoder(encoder, tmp_path / "encoder.pt2", "torch")
    assert list(tmp_path.iterdir()) == []


def test_what_onnx_needs_is_named(encoder, tmp_path, monkeypatch):
    monkeypatch.setattr(programs, "find_spec", lambda name: None if name == "onnxscript" else object())
    with pytest.raises(ImportError, match=r"ONNX needs onnxscript: pip install 'neuralbayes\[export\]'"):
        export_encoder(encoder, tmp_path / "encoder.onnx", "onnx")


def test_an_unknown_format_is_refused(encoder, tmp_path):
    with pytest.raises(ValueError, match="`to` must be onnx or torch, got 'tflite'"):
        export_encoder(encoder, tmp_path / "x", "tflite")
