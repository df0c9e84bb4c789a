"""The random encoder as a baseline. The tests of probes check how it is made."""

import json

import pytest
import torch
from image_cases import bars
from paper.baselines import RandomConfig, random

from neuralbayes.features.encoder import ImageEncoder

IMAGES, _ = bars()


@pytest.mark.parametrize("batch_norm", [True, False])
def test_it_is_drawn_by_its_seed_with_and_without_batch_normalisation(tmp_path, batch_norm):
    config = RandomConfig(encoder="tiny", batch_norm=batch_norm, seed=4)
    encoder = random(IMAGES, config, out=tmp_path)
    again, other = random(IMAGES, config), random(IMAGES, RandomConfig("tiny", batch_norm, seed=5))
    assert torch.equal(encoder.network.conv1.weight, again.network.conv1.weight)
    assert not torch.equal(encoder.network.conv1.weight, other.network.conv1.weight)
    assert any(isinstance(m, torch.nn.BatchNorm2d) for m in encoder.modules()) is batch_norm

    loaded = ImageEncoder.load(tmp_path)
    x = encoder.prepare(IMAGES[:4])
    assert torch.equal(loaded(x), encoder(x))
    result = json.loads((tmp_path / "result.json").read_text())
    assert (result["method"], result["images"], result["config"]["batch_norm"]) == ("random", 64, batch_norm)


def test_the_statistics_are_those_of_the_images():
    encoder = random(IMAGES, RandomConfig(encoder="tiny"))
    with torch.no_grad():
        outputs = encoder.layers("relu1")[:-1](encoder.prepare(IMAGES))
    torch.testing.assert_close(outputs.mean(dim=(0, 2, 3)), torch.zeros(16), atol=1e-4, rtol=0)
    torch.testing.assert_close(outputs.std(dim=(0, 2, 3)), torch.ones(16), atol=1e-3, rtol=0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"encoder": "huge"}, "`encoder` must be one of"),
        ({"normalize": "image"}, "`normalize` must be one of"),
        ({"n_images": 0}, "`n_images` must be at least 1, got 0"),
    ],
)
def test_a_wrong_setting_is_named(settings, message):
    with pytest.raises(ValueError, match=message):
        RandomConfig(**settings)


def test_a_folder_of_another_encoder_is_refused(tmp_path):
    random(IMAGES, RandomConfig(encoder="tiny"), out=tmp_path)
    with pytest.raises(ValueError, match="different: batch_norm"):
        random(IMAGES, RandomConfig(encoder="tiny", batch_norm=False), out=tmp_path)
