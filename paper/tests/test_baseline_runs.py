"""Common behaviour of all baselines that train: the folder, continuing after a break, the seed, errors."""

import json
import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from image_cases import Break, bars
from paper import baselines
from paper.baselines import (
    HeadedEncoder,
    ImsatConfig,
    ImsatRowsConfig,
    InfoMaxConfig,
    RandomConfig,
    RotationConfig,
    SupervisedConfig,
)

from neuralbayes.data.sources import ArraySource
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.training import read_metrics

IMAGES, LABELS = bars()
COMMON = {"encoder": "tiny", "batch_size": 16, "epochs": 2, "augment": True, "schedule": "cosine", "seed": 3}
METHODS = {
    "rotation": (baselines.rotation, IMAGES, RotationConfig(**COMMON)),
    "infomax": (baselines.infomax, IMAGES, InfoMaxConfig(**COMMON, units=16, global_weight=0.5)),
    "imsat": (baselines.imsat, IMAGES, ImsatConfig(**COMMON, n_clusters=3)),
    "supervised": (baselines.supervised, (IMAGES, LABELS), SupervisedConfig(**COMMON)),
}
every_method = pytest.mark.parametrize("name", METHODS)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Folders by method, each with an uninterrupted run."""
    folders = {name: tmp_path_factory.mktemp(name) for name in METHODS}
    for name, (method, data, config) in METHODS.items():
        method(data, config, out=folders[name])
    return folders


def files(folder, *names):
    return [(folder / name).read_bytes() for name in names]


@every_method
def test_a_run_killed_several_times_ends_like_an_unbroken_one(name, runs, tmp_path):
    method, data, config = METHODS[name]
    for callback in (
        Break(1, KeyboardInterrupt()),
        Break(3, RuntimeError("power"), after=False),
        Break(5, KeyboardInterrupt()),
    ):
        with pytest.raises((KeyboardInterrupt, RuntimeError)):
            method(data, config, out=tmp_path, callbacks=[callback])
        assert not (tmp_path / "encoder.json").exists()
    np.random.seed(99)  # noqa: NPY002  another process starts from other random numbers
    torch.manual_seed(99)
    method(data, config, out=tmp_path)
    names = ["encoder.safetensors", "metrics.jsonl"]
    names += ["head.safetensors"] if (runs[name] / "head.safetensors").exists() else []
    assert files(tmp_path, *names) == files(runs[name], *names)


@every_method
def test_the_folder_holds_the_encoder_and_how_it_went(name, runs):
    method, data, config = METHODS[name]
    found = json.loads((runs[name] / "config.json").read_text())
    assert (found["method"], found["encoder"], found["seed"]) == (name, "tiny", 3)
    result = json.loads((runs[name] / "result.json").read_text())
    assert result["method"] == name
    assert result["steps"] == 8
    assert result["images"] == (58 if name == "supervised" else 64)
    assert result["seconds"] > 0
    assert read_metrics(runs[name] / "metrics.jsonl")[-1]["step"] == 8

    again = method(data, config, out=runs[name], callbacks=[Break(1, AssertionError("trained again"))])
    source = ArraySource(IMAGES)
    assert np.array_equal(again.features(source), ImageEncoder.load(runs[name]).features(source))
    if isinstance(again, HeadedEncoder):
        assert np.array_equal(again.predict_proba(source), HeadedEncoder.load(runs[name]).predict_proba(source))


@every_method
def test_a_folder_of_another_config_or_another_method_is_refused(name, runs):
    method, data, config = METHODS[name]
    with pytest.raises(ValueError, match=r"another config \(different: epochs, seed\)"):
        method(data, replace(config, epochs=9, seed=9), out=runs[name])
    other = next(folder for key, folder in runs.items() if key != name)
    with pytest.raises(ValueError, match=r"another config \(.*method"):
        method(data, config, out=other)


@every_method
def test_the_seed_decides_everything_and_the_callers_random_numbers_are_left_alone(name):
    method, data, config = METHODS[name]

    def draws():
        return random.random(), np.random.rand(), torch.rand(1).item()  # noqa: NPY002

    def seed():
        random.seed(7)
        np.random.seed(7)  # noqa: NPY002
        torch.manual_seed(7)

    seed()
    expected = draws()
    weights = []
    for s in (1, 1, 2):
        seed()
        weights.append(method(data, replace(config, epochs=1, seed=s)).network.state_dict()["conv4.weight"])
        assert draws() == expected
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


@every_method
def test_all_methods_start_from_the_weights_of_the_random_encoder(name):
    method, data, config = METHODS[name]
    start = baselines.random(IMAGES, RandomConfig(encoder="tiny", seed=3)).network.state_dict()
    barely = method(data, replace(config, epochs=1, learning_rate=1e-12)).network.state_dict()
    for layer in ("conv1.weight", "conv4.weight"):
        torch.testing.assert_close(barely[layer], start[layer])


@every_method
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"encoder": "huge"}, "`encoder` must be one of paper, small, tiny, got 'huge'"),
        ({"schedule": "step"}, "`schedule` must be one of constant, cosine, got 'step'"),
        ({"normalize": "image"}, "`normalize` must be one of"),
        ({"epochs": 0}, "`epochs` must be at least 1, got 0"),
        ({"batch_size": 0}, "`batch_size` must be at least 1"),
        ({"learning_rate": 0.0}, "`learning_rate` must be positive, got 0.0"),
    ],
)
def test_a_wrong_setting_is_named(name, change, message):
    with pytest.raises(ValueError, match=message):
        replace(METHODS[name][2], **change)


@every_method
def test_images_that_do_not_fit_are_refused_and_leave_no_run_behind(name, tmp_path):
    method, _, config = METHODS[name]
    small = np.zeros((8, 21, 21, 1), np.uint8)
    with pytest.raises(ValueError, match="at least 22x22 pixels"):
        method((small, np.arange(8) % 2) if name == "supervised" else small, config, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@every_method
def test_an_image_left_over_is_left_out(name, tmp_path):
    """With 33 images in batches of 16, the last batch would be a single image, without statistics or another image."""
    method, _, config = METHODS[name]
    x, y = bars(37 if name == "supervised" else 33, side=22)
    method((x, y) if name == "supervised" else x, replace(config, epochs=1), out=tmp_path)
    assert json.loads((tmp_path / "result.json").read_text())["steps"] == 2


def test_rows_go_on_after_a_break_too(tmp_path):
    rows = np.random.default_rng(0).normal(size=(40, 3))
    config = ImsatRowsConfig(n_clusters=2, hidden=(8,), batch_size=16, epochs=3)
    whole = baselines.imsat_rows(rows, config, out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        baselines.imsat_rows(rows, config, out=tmp_path / "broken", callbacks=[Break(4, KeyboardInterrupt())])
    again = baselines.imsat_rows(rows, config, out=tmp_path / "broken")
    assert np.array_equal(whole.predict_proba(rows), again.predict_proba(rows))
    assert files(tmp_path / "whole", "metrics.jsonl") == files(tmp_path / "broken", "metrics.jsonl")
    result = json.loads((tmp_path / "whole" / "result.json").read_text())
    assert (result["method"], result["rows"], result["steps"]) == ("imsat-rows", 40, 9)
