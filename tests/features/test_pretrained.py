"""Pretrained networks by name, and features that are computed only once."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from neuralbayes.data.resizing import NetworkResizing
from neuralbayes.data.sources import ArraySource
from neuralbayes.features.kept import BLOCK, file_digests, image_digests, kept_features, text_digests
from neuralbayes.features.pretrained import Preprocessing, PretrainedNetwork, pretrained_network


def small_network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())


def fake_timm(monkeypatch: pytest.MonkeyPatch) -> nn.Module:
    """A module with the interface of timm, without weights."""
    network = small_network()
    config = {
        "input_size": (3, 8, 12),
        "crop_pct": 0.8,
        "mean": (0.5, 0.4, 0.3),
        "std": (0.2, 0.25, 0.5),
        "interpolation": "bicubic",
        "crop_mode": "center",
    }
    timm = ModuleType("timm")
    timm.create_model = lambda name, pretrained, num_classes: network  # type: ignore[attr-defined]
    timm.data = SimpleNamespace(resolve_model_data_config=lambda network: config)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "timm", timm)
    return network


def test_preprocessing_normalises_colours() -> None:
    pictures = np.full((1, 2, 4, 3), 255, np.uint8)
    x = Preprocessing((2, 4), NetworkResizing((4, 6)), (0.5, 0.25, 0.0), (0.5, 0.75, 1.0))(pictures)
    assert x.shape == (1, 3, 2, 4)
    torch.testing.assert_close(x, torch.ones(1, 3, 2, 4))


def test_timm_gets_its_own_preprocessing(monkeypatch: pytest.MonkeyPatch) -> None:
    network = fake_timm(monkeypatch)
    found = pretrained_network("timm:any", "pictures")
    resizing = NetworkResizing((10, 15), "bicubic")
    assert found.preprocessing == Preprocessing((8, 12), resizing, (0.5, 0.4, 0.3), (0.2, 0.25, 0.5))
    pictures = np.random.default_rng(0).integers(0, 256, (70, 8, 12, 3), dtype=np.uint8)
    x = torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 255
    x = (x - torch.tensor([0.5, 0.4, 0.3]).view(1, 3, 1, 1)) / torch.tensor([0.2, 0.25, 0.5]).view(1, 3, 1, 1)
    np.testing.assert_allclose(found(pictures), network(x).detach(), atol=1e-6)  # more than one batch


def test_identity_changes_with_the_weights_and_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    network = fake_timm(monkeypatch)
    first = pretrained_network("timm:any", "pictures").identity
    assert pretrained_network("timm:any", "pictures").identity == first
    assert pretrained_network("timm:any", "pictures", size=(16, 16)).identity != first
    with torch.no_grad():
        next(network.parameters())[0, 0, 0, 0] += 1e-6
    assert pretrained_network("timm:any", "pictures").identity != first


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("resnet18", "pictures", "must be written as timm:NAME"),
        ("timm:", "pictures", "must be written as timm:NAME"),
        ("timm:resnet18", "texts", "timm:resnet18 .* pictures, .* texts"),
        ("missing.py:f", "texts", "must be in a file that exists"),
        ("math:pi", "texts", "must name a function, got 'math:pi', a float"),
    ],
)
def test_wrong_names_are_refused(name: str, kind: str, message: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        pretrained_network(name, kind)  # type: ignore[arg-type]


def test_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(ImportError, match=r"neuralbayes\[vision\]"):
        pretrained_network("timm:resnet18", "pictures")


@pytest.mark.parametrize("result", [np.ones(3), np.ones((2, 4)), np.full((3, 4), np.nan), np.ones((3, 0))])
def test_features_are_checked(result: np.ndarray) -> None:
    network = PretrainedNetwork("mine.py:f", "texts", "id", lambda texts: result)
    with pytest.raises(ValueError, match=r"mine\.py:f must give"):
        network(["a", "b", "c"])


class Counting:
    """Features of texts that remember their inputs."""

    def __init__(self, identity: str = "one") -> None:
        self.asked: list[str] = []
        self.network = PretrainedNetwork("mine.py:f", "texts", identity, self)

    def __call__(self, texts: list[str]) -> np.ndarray:
        self.asked += texts
        return np.array([[len(text), sum(map(ord, text))] for text in texts], np.float32)

    def features(self, texts: list[str], path: Path) -> np.ndarray:
        return kept_features(self.network, lambda rows: [texts[i] for i in rows], text_digests(texts), path)


def test_each_item_is_computed_once_wherever_it_stands(tmp_path: Path) -> None:
    counting, path = Counting(), tmp_path / "features.safetensors"
    first = counting.features(["a", "bb", "a", "ccc"], path)
    assert counting.asked == ["a", "bb", "ccc"]
    np.testing.assert_array_equal(first[0], first[2])
    again = counting.features(["ccc", "dd", "a"], path)
    assert counting.asked == ["a", "bb", "ccc", "dd"]
    np.testing.assert_array_equal(again[[0, 2]], first[[3, 0]])
    assert not list(tmp_path.glob("*.parts"))


def test_another_network_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "features.safetensors"
    Counting().features(["a", "b"], path)
    other = Counting("two")
    other.features(["a"], path)
    assert other.asked == ["a"]


def test_damaged_file_is_computed_again(tmp_path: Path) -> None:
    path = tmp_path / "features.safetensors"
    Counting().features(["a", "b"], path)
    path.write_bytes(path.read_bytes()[:-3])
    again = Counting()
    assert again.features(["b"], path).shape == (1, 2)
    assert again.asked == ["b"]


def test_interrupted_computation_goes_on(tmp_path: Path) -> None:
    texts, path = [*(f"text {i}" for i in range(BLOCK)), "e", "f"], tmp_path / "features.safetensors"
    broken = Counting()
    network = PretrainedNetwork("mine.py:f", "texts", "one", lambda batch: broken(batch) if "e" not in batch else 1 / 0)
    with pytest.raises(ZeroDivisionError):
        kept_features(network, lambda rows: [texts[i] for i in rows], text_digests(texts), path)
    whole = Counting()
    found = whole.features(texts, path)
    assert whole.asked == ["e", "f"]
    np.testing.assert_array_equal(found[:, 1], [sum(map(ord, text)) for text in texts])


def test_digests_are_of_contents(tmp_path: Path) -> None:
    for name, content in {"a.png": b"one", "b.png": b"two", "c.png": b"one"}.items():
        (tmp_path / name).write_bytes(content)
    digests = file_digests(sorted(tmp_path.iterdir()))
    assert (digests[0] == digests[2]).all()
    assert (digests[0] != digests[1]).any()
    images = np.random.default_rng(0).integers(0, 256, (300, 2, 2, 3), dtype=np.uint8)
    images[299] = images[0]
    found = image_digests(ArraySource(images))
    assert found.shape == (300, 16)
    assert (found[0] == found[299]).all()
