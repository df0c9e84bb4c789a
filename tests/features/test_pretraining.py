"""nb.pretrain: it learns, it resumes bit for bit, and it refuses invalid input."""

import json
import random
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from image_cases import Break
from lightning_fabric import Fabric

from neuralbayes.features import pretraining
from neuralbayes.features.encoder import STATES, ImageEncoder
from neuralbayes.features.pretraining import PRESETS, PretrainConfig, pretrain
from neuralbayes.training import EarlyStopping, WarnOnCollapse, load_checkpoint, read_metrics

SIZES = {"encoder": "tiny", "batch_size": 16, "microbatch_size": 8, "epochs": 2}
CONFIG = PretrainConfig(**SIZES, smooth_fraction=0.5, schedule="cosine", augment=True, seed=3)
STEPS = 8  # 64 images, two epochs of four batches

HALF = Fabric(accelerator="cpu", devices=1, precision="bf16-mixed")


def images(n=64, shape=(22, 22, 1), seed=0):
    """Bars and blobs on noise, as something to learn."""
    rng = np.random.default_rng(seed)
    pictures = rng.integers(0, 60, (n, *shape))
    for picture in pictures:
        top, left = rng.integers(0, 14, 2)
        height, width = (8, 2) if rng.random() < 0.5 else (2, 8)
        picture[top : top + height, left : left + width] += 180
    return pictures.astype(np.uint8)


def weights(folder):
    return (folder / "encoder.safetensors").read_bytes()


def result(folder):
    return json.loads((folder / "result.json").read_text())


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken")
    pretrain(images(), CONFIG, out=folder)
    return folder


@pytest.mark.parametrize("marginal", ["minibatch", "running", "exact"])
def test_a_run_killed_several_times_ends_like_an_unbroken_one(tmp_path, marginal, unbroken):
    config = replace(CONFIG, marginal=marginal)
    whole = unbroken
    if marginal != "minibatch":
        whole = tmp_path / "whole"
        pretrain(images(), config, out=whole)
    broken = tmp_path / "broken"
    for callback in (
        Break(1, KeyboardInterrupt()),
        Break(3, RuntimeError("power"), after=False),
        Break(5, KeyboardInterrupt()),
        Break(STEPS, RuntimeError("power"), after=False),
    ):
        with pytest.raises((KeyboardInterrupt, RuntimeError)):
            pretrain(images(), config, out=broken, callbacks=[callback])
        assert not (broken / "encoder.json").exists()
    np.random.seed(99)  # noqa: NPY002  another process starts from other random numbers
    torch.manual_seed(99)
    pretrain(images(), config, out=broken)
    assert weights(broken) == weights(whole)
    assert (broken / "metrics.jsonl").read_text() == (whole / "metrics.jsonl").read_text()


def test_a_finished_run_is_not_trained_again(unbroken):
    before = weights(unbroken), result(unbroken)["seconds"]
    encoder = pretrain(images(), CONFIG, out=unbroken, callbacks=[Break(1, AssertionError("trained"))])
    assert (weights(unbroken), result(unbroken)["seconds"]) == before
    assert np.array_equal(encoder.features(images()), ImageEncoder.load(unbroken).features(images()))


def test_another_config_or_other_images_in_the_same_folder_are_refused_and_named(unbroken):
    before = (unbroken / "config.json").read_bytes()
    with pytest.raises(ValueError, match=r"another config \(different: alpha, scales\)"):
        pretrain(images(), replace(CONFIG, alpha=9.0, scales=(1,)), out=unbroken)
    with pytest.raises(ValueError, match="another run needs another"):
        pretrain(images(60), CONFIG, out=unbroken)
    assert (unbroken / "config.json").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"encoder": "huge"}, "`encoder`"),
        ({"schedule": "step"}, "`schedule`"),
        ({"marginal": "none"}, "`marginal`"),
        ({"version": 3}, "`version`"),
        ({"normalize": "image"}, "`normalize`"),
        ({"epochs": 0}, "`epochs`"),
        ({"batch_size": 0}, "`batch_size`"),
        ({"learning_rate": 0.0}, "`learning_rate`"),
        ({"alpha": float("nan")}, "alpha"),
        ({"beta": -1.0}, "beta"),
        ({"smooth_fraction": 2.0}, "fraction"),
        ({"scales": (0,)}, "scales"),
    ],
)
def test_a_wrong_setting_is_named_and_leaves_no_run_behind(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        pretrain(images(), replace(CONFIG, **change), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros((8, 21, 22, 1), np.uint8), "at least 22x22 pixels"),
        (np.zeros((8, 400), np.uint8), "must have shape"),
        (np.zeros((0, 22, 22, 1), np.uint8), "must have shape"),
    ],
)
def test_images_that_do_not_fit_are_refused_and_leave_no_run_behind(tmp_path, data, message):
    with pytest.raises(ValueError, match=message):
        pretrain(data, CONFIG, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_paper_preset_is_the_papers():
    paper = PRESETS["paper"]
    assert (paper.alpha, paper.beta, paper.batch_size, paper.microbatch_size, paper.epochs) == (2, 4, 4000, 500, 100)
    assert (paper.learning_rate, paper.weight_decay, paper.augment, paper.scales) == (1e-3, 0, False, (1, 2))


@pytest.mark.parametrize(("version", "marginal"), [(1, "exact"), (2, "minibatch"), (2, "running"), (2, "exact")])
def test_the_objective_falls_and_information_rises(tmp_path, version, marginal):
    config = replace(
        CONFIG, version=version, marginal=marginal, batch_size=32, microbatch_size=16, epochs=5, augment=False
    )
    pretrain(images(128, seed=1), config, out=tmp_path)
    lines = read_metrics(tmp_path / "metrics.jsonl")
    layers = json.loads((tmp_path / "result.json").read_text())["layers"]
    assert lines[-1]["loss"] < lines[0]["loss"]
    assert layers["relu4"]["information"] > 2 * lines[0]["mi/relu4"]


def test_the_folder_says_what_each_layer_tells_and_how_it_went(unbroken):
    line = read_metrics(unbroken / "metrics.jsonl")[-1]
    result = json.loads((unbroken / "result.json").read_text())
    assert line["step"] == result["steps"] == STEPS
    assert result["images"] == 64
    assert result["seconds"] > 0
    assert result["images_per_second"] > 0
    for name in STATES:
        layer = result["layers"][name]
        assert 0 < line[f"mi/{name}"] <= layer["bound"]
        assert 0 <= line[f"dead/{name}"] <= 1
        assert 0 <= layer["information"] <= layer["bound"] == pytest.approx(np.log(layer["states"]), abs=1e-4)
        assert 0 <= layer["dead"] <= layer["states"]


def test_the_callers_random_numbers_are_left_alone(unbroken):
    def draws():
        return random.random(), np.random.rand(), torch.rand(1).item()  # noqa: NPY002

    def seed():
        random.seed(7)
        np.random.seed(7)  # noqa: NPY002
        torch.manual_seed(7)

    seed()
    expected = draws()
    for out in (None, unbroken):  # new, and resumed from a checkpoint, which sets all generators
        seed()
        pretrain(images(), replace(CONFIG, epochs=1) if out is None else CONFIG, out=out)
        assert draws() == expected


def test_the_seed_decides_everything():
    config = replace(CONFIG, epochs=1)
    first, again, other = (
        pretrain(images(32), replace(config, seed=seed)).network.state_dict()["conv4.weight"] for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_early_stopping_ends_a_run_that_gets_no_better_also_an_interrupted_one(tmp_path):
    config = replace(CONFIG, batch_size=32, epochs=40, learning_rate=1e-9, schedule="constant")
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    pretrain(images(32), config, out=whole, callbacks=[EarlyStopping(patience=2)])
    said = result(whole)
    assert said["ended"] == "early stop"
    assert "loss did not improve on" in said["stop_reason"]
    assert said["steps"] < 40
    fail = Break(said["steps"], RuntimeError(), after=False)
    with pytest.raises(RuntimeError):  # within the epochs that count
        pretrain(images(32), config, out=broken, callbacks=[EarlyStopping(patience=2), fail])
    pretrain(images(32), config, out=broken, callbacks=[EarlyStopping(patience=2)])
    assert weights(broken) == weights(whole)
    assert result(broken)["stop_reason"] == said["stop_reason"]


def test_images_that_do_not_differ_are_a_collapse_that_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(pretraining, "WarnOnCollapse", partial(WarnOnCollapse, steps=3))
    blank = np.zeros((16, 22, 22, 1), np.uint8)
    with pytest.warns(UserWarning, match=r"relu\d has carried less than 0.01 nats .* Try a larger alpha"):
        pretrain(blank, replace(CONFIG, augment=False, epochs=5), out=tmp_path)
    said = result(tmp_path)["warnings"]
    assert [message.split()[0] for message in said] == list(STATES)
    pretrain(blank, replace(CONFIG, augment=False, epochs=5), out=tmp_path)  # the run has ended, so it warns no more
    assert result(tmp_path)["warnings"] == said


def test_a_run_that_diverges_leaves_a_checkpoint_of_finite_weights(tmp_path):
    with pytest.raises((FloatingPointError, ValueError), match="learning rate"):
        pretrain(images(), replace(CONFIG, learning_rate=1e15, schedule="constant"), out=tmp_path)
    saved = load_checkpoint(tmp_path)
    assert all(tensor.isfinite().all() for tensor in saved["network"].values())
    assert not (tmp_path / "encoder.json").exists()


def test_half_precision_is_refused_where_it_would_round_r_c_away(tmp_path):
    with pytest.raises(ValueError, match="`fabric`"):
        pretrain(images(16), CONFIG, out=tmp_path / "run", fabric=HALF)
    assert not (tmp_path / "run").exists()


def test_a_run_goes_on_in_the_precision_that_it_began_with(tmp_path):
    config = replace(CONFIG, beta=0.0, epochs=1)
    with pytest.raises(KeyboardInterrupt):
        pretrain(images(32), config, out=tmp_path, callbacks=[Break(1, KeyboardInterrupt())])
    with pytest.raises(ValueError, match="different: precision"):
        pretrain(images(32), config, out=tmp_path, fabric=HALF)


# Results and augmentation


def test_shifts_reach_an_eighth_of_the_width_to_all_sides_and_half_are_mirrored():
    picture = np.zeros((1, 16, 16, 3), np.uint8)
    picture[0, 8, 7] = 255  # a single point away from the middle
    np.random.seed(0)  # noqa: NPY002
    found = pretraining.augmented(np.repeat(picture, 2000, axis=0))
    rows, columns = zip(*(np.argwhere(image[..., 0] == 255)[0] for image in found), strict=True)
    assert set(rows) == {6, 7, 8, 9, 10}
    assert set(columns) == {5, 6, 7, 8, 9, 10}  # 7 by up to 2, or in the mirror 8 by up to 2
    for column in (5, 10):  # one of five shifts moves an image there, but never its mirror image
        assert np.mean(np.array(columns) == column) == pytest.approx(0.1, abs=0.03)
