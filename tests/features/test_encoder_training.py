"""Common parts of all trainings of encoders: settings, results, augmentation, random numbers, normalisation."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import numpy as np
import pytest
import torch
from image_cases import bars
from torch import Tensor, nn

from neuralbayes.data.normalize import Normalization
from neuralbayes.data.sources import ArraySource
from neuralbayes.features import encoder_training
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.features.encoder_training import EncoderConfig, Learner, train_encoder
from neuralbayes.training import Callback
from neuralbayes.training import config as training_config

IMAGES, _ = bars(20)


class Config(EncoderConfig):
    method: ClassVar[str] = "test"


CONFIG = Config(batch_size=8, epochs=2, encoder="tiny", seed=4)


def half_seconds() -> mock.Mock:
    """A clock that moves by half a second at each call."""
    return mock.Mock(perf_counter=mock.Mock(side_effect=np.arange(0.0, 99.0, 0.5).tolist()))


def learner_of(config: EncoderConfig, **more: Any) -> Callable[..., Learner[ImageEncoder]]:
    def make(source: Any, normalization: Normalization) -> Learner[ImageEncoder]:
        encoder = ImageEncoder(config.encoder, source.shape, normalization)

        def step(network: nn.Module, batch: Any) -> dict[str, Tensor]:
            x = batch[0] if isinstance(batch, tuple) else batch
            loss = network(x).square().mean()
            torch.autograd.backward(loss)
            return {"loss": loss}

        return Learner(encoder, encoder.network, step, **more)

    return make


# Settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 0}, "`batch_size` must be at least 1, got 0"),
        ({"epochs": 0}, "`epochs` must be at least 1, got 0"),
        ({"patience": 0}, "`patience` must be"),
        ({"learning_rate": 0.0}, "`learning_rate` must be positive, got 0.0"),
        ({"learning_rate": float("nan")}, "`learning_rate` must be positive, got nan"),
        ({"schedule": "step"}, "`schedule` must be one of constant, cosine, got 'step'"),
        ({"encoder": "huge"}, "`encoder` must be one of .*, got 'huge'"),
        ({"normalize": "pixel"}, "`normalize` must be one of dimension, channel, whiten, got 'pixel'"),
    ],
)
def test_settings_that_cannot_be_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Config(**{"batch_size": 8} | settings)


def test_the_least_settings_are_good() -> None:
    config = Config(batch_size=1, epochs=1, patience=1)
    assert (config.learning_rate, config.schedule, config.normalize, config.augment) == (
        1e-3,
        "constant",
        "dimension",
        False,
    )


# The folder of a run


def test_result_json_tells_how_it_went(tmp_path: Path) -> None:
    finish = mock.Mock(return_value={"found": 3})
    encoder = train_encoder(IMAGES, CONFIG, learner_of(CONFIG, finish=finish), out=tmp_path)
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["method"] == "test"
    assert result["config"]["batch_size"] == 8
    assert (result["images"], result["processes"], result["steps"], result["found"]) == (20, 1, 6, 3)
    assert (result["ended"], result["stop_reason"]) == ("epochs", None)
    assert result["metrics"]["step"] == 6
    assert result["metrics"]["epoch"] == 2
    assert result["versions"]["torch"] == torch.__version__
    assert result["peak_memory_mb"] > 50
    assert result["seconds"] >= 0
    assert finish.call_args.args == (encoder, tmp_path)
    assert not encoder.training
    again = ImageEncoder.load(tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), encoder.parameters(), strict=True))


def test_images_per_second_count_what_was_seen(tmp_path: Path) -> None:
    """Count twenty images in each of two epochs of batches of eight, although the last batch is smaller."""
    with mock.patch.object(training_config, "time", half_seconds()):
        train_encoder(IMAGES, CONFIG, learner_of(CONFIG), out=tmp_path)
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["seconds"] == 3.0  # six steps of half a second
    assert result["images_per_second"] == round(40 / 3.0, 1)


class StopAfter(Callback):
    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, state: Any, metrics: Any) -> None:
        if state.step == self.step:
            state.stop("enough")


def test_a_run_that_ends_early_says_so(tmp_path: Path) -> None:
    with mock.patch.object(training_config, "time", half_seconds()):
        train_encoder(IMAGES, CONFIG, learner_of(CONFIG), out=tmp_path, callbacks=[StopAfter(4)])
    result = json.loads((tmp_path / "result.json").read_text())
    assert (result["steps"], result["ended"], result["stop_reason"]) == (4, "early stop", "enough")
    assert result["images_per_second"] == (20 + 8) / 2.0


# Augmentation


def test_an_image_is_mirrored_or_shifted_by_hand() -> None:
    """Width 8: shifts by -1, 0 or 1, edges repeated. The first image is shifted down and right, the second mirrored."""
    batch = np.arange(128, dtype=np.uint8).reshape(2, 8, 8, 1)
    draws = [np.array([0, 1]), np.array([[0, 0], [1, 1]])]
    with mock.patch.object(np.random, "randint", side_effect=draws) as randint:
        first, second = encoder_training._augmented(batch)[..., 0]
    assert [call.args for call in randint.call_args_list] == [(0, 2, (2,)), (0, 3, (2, 2))]
    assert first[0].tolist() == [0, 0, 1, 2, 3, 4, 5, 6]
    assert first[1].tolist() == [0, 0, 1, 2, 3, 4, 5, 6]
    assert first[2].tolist() == [8, 8, 9, 10, 11, 12, 13, 14]
    assert second.tolist() == batch[1, :, ::-1, 0].tolist()


def test_shifts_reach_an_eighth_of_the_width_to_all_sides_and_half_are_mirrored() -> None:
    picture = np.zeros((1, 16, 16, 3), np.uint8)
    picture[0, 8, 7] = 255  # a single point away from the middle
    np.random.seed(0)  # noqa: NPY002
    found = encoder_training._augmented(np.repeat(picture, 2000, axis=0))
    assert found.shape == (2000, 16, 16, 3)
    assert found.dtype == np.uint8
    rows, columns = zip(*(np.argwhere(image[..., 0] == 255)[0] for image in found), strict=True)
    assert set(rows) == {6, 7, 8, 9, 10}
    assert set(columns) == {5, 6, 7, 8, 9, 10}  # 7 by up to 2, or in the mirror 8 by up to 2
    for column in (5, 10):  # one of five shifts moves an image there, but never its mirror image
        assert np.mean(np.array(columns) == column) == pytest.approx(0.1, abs=0.03)


def test_images_are_augmented_only_where_asked() -> None:
    for augment, calls in ((False, 0), (True, 6)):
        config = replace(CONFIG, augment=augment)
        with mock.patch.object(encoder_training, "_augmented", side_effect=lambda batch: batch) as augmented:
            train_encoder(IMAGES, config, learner_of(config))
        assert augmented.call_count == calls


# Random numbers


def states() -> tuple[Any, ...]:
    name, keys, *rest = np.random.get_state()  # noqa: NPY002
    return torch.get_rng_state().tolist(), (name, list(keys), *rest), random.getstate()


def test_training_leaves_the_generators_of_the_caller_and_takes_nothing_from_them() -> None:
    weights = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        before = states()
        config = replace(CONFIG, augment=True)
        encoder = train_encoder(IMAGES, config, learner_of(config))
        assert states() == before
        weights.append(torch.cat([p.detach().flatten() for p in encoder.parameters()]))
    assert torch.equal(*weights)
    config = replace(CONFIG, seed=5)
    other = train_encoder(IMAGES, config, learner_of(config))
    assert not torch.equal(weights[0], torch.cat([p.detach().flatten() for p in other.parameters()]))


# Several processes


def test_the_normalisation_is_that_of_rank_zero() -> None:
    """Each process reads its share; all use the one that is broadcast, to the last bit."""
    theirs = Normalization("channel", np.full((1, 1, 1), 0.25), np.ones((1, 1, 1)))
    fabric = mock.Mock(global_rank=1, world_size=2, is_global_zero=False, device=torch.device("cpu"))
    fabric.broadcast = mock.Mock(return_value=theirs)
    source = ArraySource(IMAGES)
    with mock.patch.object(encoder_training, "sum_over_ranks", side_effect=lambda fabric, sums: sums) as summed:
        assert encoder_training._normalization(source, "channel", fabric, verbose=True) is theirs
    assert summed.call_count > 0
    (fitted,) = fabric.broadcast.call_args.args
    assert fitted.mean.item() == pytest.approx(IMAGES[10:].sum() / IMAGES.size / 255)  # the second half was read here


def test_labels_follow_their_images() -> None:
    """The step gets each image together with its value in `per_image`."""
    seen: list[tuple[float, int]] = []
    marks = torch.arange(20)
    images = np.zeros((20, 24, 24, 1), np.uint8)
    images[:, 0, 0, 0] = 10 * np.arange(20)

    def make(source: Any, normalization: Normalization) -> Learner[ImageEncoder]:
        encoder = ImageEncoder("tiny", source.shape, Normalization("channel", np.zeros((1, 1, 1)), np.ones((1, 1, 1))))

        def step(network: nn.Module, batch: tuple[Tensor, Tensor]) -> dict[str, float]:
            x, own = batch
            seen.extend(zip((x[:, 0, 0, 0] * 25.5).round().int().tolist(), own.tolist(), strict=True))
            torch.autograd.backward(network(x).sum())
            return {"loss": 0.0}

        return Learner(encoder, encoder.network, step, per_image=marks)

    train_encoder(images, replace(CONFIG, epochs=1), make)
    assert sorted(seen) == [(i, i) for i in range(20)]
