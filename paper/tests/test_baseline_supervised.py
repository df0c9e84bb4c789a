"""Training with labels: held-out images choose the epoch, and heads are saved with their encoder."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from image_cases import bars
from paper.baselines import HeadedEncoder, SupervisedConfig, supervised

from neuralbayes.data.dataset import Split
from neuralbayes.data.normalize import Normalization
from neuralbayes.data.sources import ArraySource, Images
from neuralbayes.training import Callback, read_metrics

IMAGES, LABELS = bars(96)
CONFIG = SupervisedConfig(encoder="tiny", batch_size=16, epochs=8, learning_rate=3e-3)


def test_it_tells_classes_apart_that_it_was_taught(tmp_path):
    encoder = supervised((IMAGES, LABELS), CONFIG, out=tmp_path)
    fresh, truth = bars(60, seed=1)
    assert (encoder.predict(fresh) == truth).mean() > 0.9
    lines = [line for line in read_metrics(tmp_path / "metrics.jsonl") if "validation_accuracy" in line]
    assert len(lines) == 8
    assert lines[-1]["loss"] < lines[0]["loss"]


def test_the_epoch_is_that_of_the_best_validation_accuracy(tmp_path):
    class Spoil(Callback):
        """Damage the weights after the second epoch."""

        def on_step_end(self, state, metrics):
            if state.epoch >= 2:
                with torch.no_grad():
                    for parameter in state.network.parameters():
                        parameter.mul_(0.5)

    encoder = supervised((IMAGES, LABELS), replace(CONFIG, epochs=4), out=tmp_path, callbacks=[Spoil()])
    result = json.loads((tmp_path / "result.json").read_text())
    lines = [line for line in read_metrics(tmp_path / "metrics.jsonl") if "validation_accuracy" in line]
    best = max(lines, key=lambda line: (line["validation_accuracy"], -line["validation_loss"]))
    assert result["best_epoch"] == best["epoch"] <= 2
    assert result["validation_accuracy"] == best["validation_accuracy"]
    two = supervised((IMAGES, LABELS), replace(CONFIG, epochs=best["epoch"]), callbacks=[Spoil()])
    assert np.array_equal(two.predict_proba(IMAGES), encoder.predict_proba(IMAGES))


def test_patience_is_with_the_validation_accuracy(tmp_path):
    supervised((IMAGES, LABELS), replace(CONFIG, epochs=30, patience=3), out=tmp_path)
    said = json.loads((tmp_path / "result.json").read_text())
    assert said["ended"] == "early stop"
    assert said["stop_reason"].startswith("validation_accuracy did not improve on 1.0")


def test_validation_images_are_not_trained_on():
    other = LABELS.copy()
    other[np.random.default_rng(CONFIG.seed).permutation(96)[:48]] ^= 1
    config = replace(CONFIG, validation=0.5, epochs=1)
    first, again = (supervised((IMAGES, labels), config).network.conv4.weight for labels in (LABELS, other))
    assert torch.equal(first, again)


def test_every_kind_of_labelled_images_gives_the_same():
    config = replace(CONFIG, epochs=1)
    expected = supervised((IMAGES, LABELS), config).predict_proba(IMAGES)
    for data in (Split(IMAGES, LABELS), Images("bars", "train", ArraySource(IMAGES), LABELS)):
        assert np.array_equal(supervised(data, config).predict_proba(IMAGES), expected)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (Split(IMAGES), "`images` must have labels"),
        ((IMAGES, LABELS[:5]), "labels of `images` must be 96 integers from 0"),
        ((np.zeros((4, 9)), np.arange(4)), "`images` must be images to train an encoder on, got features"),
        ((IMAGES[:1], LABELS[:1]), "`images` must be at least 2"),
    ],
)
def test_data_that_cannot_be_trained_on_are_refused(data, message):
    with pytest.raises(ValueError, match=message):
        supervised(data, CONFIG)


@pytest.mark.parametrize("validation", [0.0, 1.0, float("nan")])
def test_a_wrong_share_is_named(validation):
    with pytest.raises(ValueError, match=r"`validation` must be in \(0, 1\)"):
        replace(CONFIG, validation=validation)


@pytest.mark.parametrize("pooled", [False, True])
def test_an_encoder_comes_back_with_its_head(tmp_path, pooled):
    encoder = HeadedEncoder("tiny", (24, 24, 1), Normalization.fit(IMAGES), 5, pooled).eval()
    encoder.save(tmp_path)
    loaded = HeadedEncoder.load(tmp_path)
    expected = encoder.predict_proba(IMAGES)
    assert np.array_equal(loaded.predict_proba(IMAGES), expected)
    assert np.array_equal(loaded.predict(IMAGES), expected.argmax(1))
    np.testing.assert_allclose(encoder.predict_proba(IMAGES, batch_size=7), expected, atol=1e-6)
    with torch.no_grad():
        state = encoder(encoder.prepare(IMAGES))
        flat = state.mean(dim=(2, 3)) if pooled else state.flatten(1)
        by_hand = (flat @ encoder.head[2].weight.T + encoder.head[2].bias).softmax(1)
    np.testing.assert_allclose(expected, by_hand.numpy(), atol=1e-5)


def test_a_damaged_head_is_named(tmp_path):
    HeadedEncoder("tiny", (24, 24, 1), Normalization.fit(IMAGES), 5).save(tmp_path)
    other = tmp_path / "other"
    HeadedEncoder("tiny", (30, 30, 1), Normalization.fit(np.zeros((2, 30, 30, 1), np.uint8)), 5).save(other)
    (other / "head.safetensors").replace(tmp_path / "head.safetensors")
    with pytest.raises(ValueError, match=r"head\.safetensors does not hold the head of this encoder"):
        HeadedEncoder.load(tmp_path)
