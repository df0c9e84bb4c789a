"""Encoders and features as files for other programs."""

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest
import torch

from neuralbayes.data.normalize import Normalization
from neuralbayes.data.sources import ArraySource
from neuralbayes.features import export, programs
from neuralbayes.features.encoder import STATES, ImageEncoder
from neuralbayes.features.export import FeatureNetwork, export_encoder, write_features

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
    assert [p.name for p in tmp_path.iterdir()] == ["encoder.bin"]  # nothing beside it


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


@pytest.mark.parametrize("block", [4, 1000])
def test_features_are_written_in_the_order_of_the_images(encoder, tmp_path, monkeypatch, block):
    monkeypatch.setattr(export, "BLOCK", block)
    source = ArraySource(images(11))
    expected = encoder.features(source, "relu2")
    labels, names = np.arange(11) % 3, [f"picture {i}.png" for i in range(11)]
    for suffix in ("npy", "parquet"):
        shape = write_features(encoder, source, tmp_path / f"f.{suffix}", state="relu2", labels=labels, names=names)
        assert shape == expected.shape
    np.testing.assert_allclose(np.load(tmp_path / "f.npy"), expected, atol=1e-5)
    frame = pd.read_parquet(tmp_path / "f.parquet")
    assert frame.columns[:4].tolist() == ["index", "path", "label", "f_0"]
    assert frame["index"].tolist() == list(range(11))
    assert frame["path"].tolist() == names
    assert frame["label"].tolist() == labels.tolist()
    np.testing.assert_array_equal(frame.filter(like="f_").to_numpy(), np.load(tmp_path / "f.npy"))


@pytest.mark.parametrize(("group_bytes", "groups"), [(1, [4, 4, 3]), (2**26, [11])])
def test_row_groups_are_large_where_there_is_enough_to_write(tmp_path, monkeypatch, group_bytes, groups):
    monkeypatch.setattr(export, "BLOCK", 4)
    monkeypatch.setattr(export, "GROUP_BYTES", group_bytes)
    encoder = ImageEncoder("tiny", SHAPE, Normalization.fit(images(30)))
    write_features(encoder, ArraySource(images(11)), tmp_path / "f.parquet")
    file = pyarrow.parquet.ParquetFile(tmp_path / "f.parquet")
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == groups
    assert file.read(columns=["index"])["index"].to_pylist() == list(range(11))


def test_a_parquet_file_without_names_and_labels_has_no_such_columns(encoder, tmp_path):
    write_features(encoder, ArraySource(images(3)), tmp_path / "f.parquet")
    assert pd.read_parquet(tmp_path / "f.parquet").columns[:2].tolist() == ["index", "f_0"]


@pytest.mark.parametrize("suffix", ["npy", "parquet"])
def test_what_fails_half_way_leaves_the_old_file(encoder, tmp_path, monkeypatch, suffix):
    class Breaking(ArraySource):
        def read(self, indices):
            if 6 in indices:
                raise OSError("gone")
            return super().read(indices)

    monkeypatch.setattr(export, "BLOCK", 4)
    path = tmp_path / f"f.{suffix}"
    path.write_bytes(b"old")
    with pytest.raises(OSError, match="gone"):
        write_features(encoder, Breaking(images(8)), path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_features_go_to_parquet_or_npy_only(encoder, tmp_path):
    with pytest.raises(ValueError, match=r"\.parquet or \.npy, got"):
        write_features(encoder, ArraySource(images(3)), tmp_path / "f.csv")
