"""Pictures are preprocessed exactly as timm would do it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from neuralbayes.data.images import load_images
from neuralbayes.features.networks import FeatureNetwork, load_network

SIZES = ((640, 427), (427, 640), (300, 300), (501, 167), (97, 61), (224, 224), (256, 256), (50, 133))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Pictures of many sizes, larger and smaller than the input of the network."""
    rng = np.random.default_rng(0)
    (tmp_path / "pictures").mkdir()
    for i, (width, height) in enumerate(SIZES):
        pixels = rng.integers(0, 256, (height, width, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / "pictures" / f"{i}.png")
    return tmp_path / "pictures"


def reached(network: FeatureNetwork, folder: Path) -> torch.Tensor:
    steps = network.preprocessing
    assert steps is not None
    images = load_images(folder, size=steps.size, channels=3, interpolation=steps.resizing, progress=False)
    return steps(images.read(np.arange(len(SIZES))))


def wanted(transform: Any, folder: Path) -> torch.Tensor:
    return torch.stack([transform(Image.open(path)) for path in sorted(folder.iterdir())])


@pytest.mark.parametrize("changes", [{}, {"crop_mode": "squash"}, {"crop_pct": 0.9, "interpolation": "bilinear"}])
def test_timm(folder: Path, tmp_path: Path, changes: dict[str, Any]) -> None:
    timm = pytest.importorskip("timm")
    torch.manual_seed(0)
    network = timm.create_model("resnet10t", pretrained=False)
    network.pretrained_cfg |= changes
    timm.models.save_for_hf(network, tmp_path / "model", model_config={"num_classes": network.num_classes})
    found = load_network(f"timm:local-dir:{tmp_path / 'model'}", "pictures", device="cpu")
    same = timm.create_model(f"local-dir:{tmp_path / 'model'}", pretrained=True, num_classes=0).eval()
    config = timm.data.resolve_model_data_config(same)
    assert changes.items() <= config.items()
    expected = wanted(timm.data.create_transform(**config), folder)
    torch.testing.assert_close(reached(found, folder), expected, atol=1e-5, rtol=0)
    steps = found.preprocessing
    assert steps is not None
    images = load_images(folder, size=steps.size, channels=3, interpolation=steps.resizing, progress=False)
    with torch.no_grad():
        features = same(expected).numpy()
    np.testing.assert_allclose(found(images.read(np.arange(len(SIZES)))), features, atol=1e-5, rtol=1e-5)
