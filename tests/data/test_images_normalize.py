"""Normalisation against numpy in float64, and its way to the disk and back."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from neuralbayes.data.normalize import Normalization
from neuralbayes.data.sources import ArraySource

IMAGES = np.random.default_rng(0).integers(0, 256, (53, 6, 5, 3)).astype(np.uint8)


@pytest.mark.parametrize(("per", "axes"), [("channel", (0, 1, 2)), ("dimension", (0,))])
def test_mean_and_deviation_are_those_of_numpy_in_float64(per: str, axes: tuple[int, ...]) -> None:
    normalization = Normalization.fit(IMAGES, per)
    values = IMAGES / 255.0
    mean = values.mean(axes, keepdims=True)
    std = values.std(axes, keepdims=True)
    np.testing.assert_allclose(normalization.mean, mean[0].transpose(2, 0, 1), rtol=1e-6)
    np.testing.assert_allclose(normalization.std, std[0].transpose(2, 0, 1), rtol=1e-6)

    batch = normalization(IMAGES[:7])
    assert batch.dtype == torch.float32
    assert batch.shape == (7, 3, 6, 5)
    assert batch.is_contiguous()
    np.testing.assert_allclose(batch, ((values - mean) / std)[:7].transpose(0, 3, 1, 2), atol=2e-6)


@pytest.mark.parametrize("per", ["channel", "dimension"])
def test_a_stream_gives_bit_for_bit_what_the_whole_gives_in_any_order(per: str) -> None:
    whole = Normalization.fit(IMAGES, per, batch_size=1_000)
    for images in (IMAGES, IMAGES[::-1], IMAGES.transpose(0, 3, 1, 2)):
        pieces = Normalization.fit(ArraySource(images), per, batch_size=7)
        np.testing.assert_array_equal(pieces.mean, whole.mean)
        np.testing.assert_array_equal(pieces.std, whole.std)


def test_all_training_images_get_mean_0_and_variance_1_in_every_dimension() -> None:
    batch = Normalization.fit(IMAGES, "dimension")(IMAGES).double()
    assert batch.mean(0).abs().max() < 1e-6
    assert (batch.var(0, correction=0) - 1).abs().max() < 1e-5


def test_constant_dimensions_get_deviation_1_and_become_0() -> None:
    images = IMAGES.copy()
    images[:, 2, 3, 1] = 77
    normalization = Normalization.fit(images, "dimension")
    assert normalization.std[1, 2, 3] == 1
    assert normalization(images)[:, 1, 2, 3].abs().max() < 1e-7
    assert Normalization.fit(np.full((5, 4, 4), 200, np.uint8), "channel").std.item() == 1


def test_a_difference_of_one_level_in_one_image_is_not_constant() -> None:
    images = np.full((1_000, 1, 1, 1), 255, np.uint8)
    images[0] = 254
    np.testing.assert_allclose(Normalization.fit(images).std.item() * 255, np.std([1] * 999 + [0]), rtol=1e-6)


def test_sums_do_not_overflow() -> None:
    images = np.full((70_000, 1, 1), 255, np.uint8)
    images[::2] = 254
    normalization = Normalization.fit(images, batch_size=65_536)
    np.testing.assert_allclose(normalization.mean.item() * 255, 254.5, rtol=1e-6)
    np.testing.assert_allclose(normalization.std.item() * 255, 0.5, rtol=1e-6)


def test_arrays_tensors_and_read_only_memory_give_the_same() -> None:
    normalization = Normalization.fit(IMAGES)
    frozen = IMAGES.copy()
    frozen.flags.writeable = False
    expected = normalization(IMAGES)
    assert torch.equal(normalization(torch.from_numpy(IMAGES)), expected)
    assert torch.equal(normalization(frozen), expected)
    assert torch.equal(normalization(np.flip(np.flip(IMAGES, 1), 1)), expected)  # negative strides


def test_the_batch_is_not_changed() -> None:
    batch = torch.from_numpy(IMAGES.copy())
    Normalization.fit(IMAGES)(batch)
    np.testing.assert_array_equal(batch, IMAGES)


@pytest.mark.parametrize("per", ["channel", "dimension"])
def test_it_comes_back_from_json_and_arrays(per: str) -> None:
    normalization = Normalization.fit(IMAGES, per)
    settings = json.loads(json.dumps(normalization.to_dict()))
    arrays = {name: torch.from_numpy(array) for name, array in normalization.to_arrays().items()}
    again = Normalization.from_dict(settings, arrays)
    assert again.per == per
    assert torch.equal(again(IMAGES), normalization(IMAGES))


def test_what_was_damaged_on_the_way_is_refused() -> None:
    normalization = Normalization.fit(IMAGES, "dimension")
    settings, arrays = normalization.to_dict(), normalization.to_arrays()
    with pytest.raises(ValueError, match="must have per, shape, mean and std"):
        Normalization.from_dict(settings, {"mean": arrays["mean"]})
    with pytest.raises(ValueError, match="shape"):
        Normalization.from_dict(settings, {"mean": arrays["mean"][:1], "std": arrays["std"][:1]})
    with pytest.raises(ValueError, match="positive"):
        Normalization.from_dict(settings, {**arrays, "std": np.zeros_like(arrays["std"])})
    with pytest.raises(ValueError, match="`per` must be"):
        Normalization.from_dict({**settings, "per": "pixel"}, arrays)


@pytest.mark.parametrize(
    "batch", [IMAGES.astype(np.float32), IMAGES[0], IMAGES[..., :1], IMAGES[:, :3], IMAGES.transpose(0, 3, 1, 2)]
)
def test_batches_that_do_not_fit_are_refused(batch: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"`batch` must be uint8 of shape \(m, 6, 5, 3\)"):
        Normalization.fit(IMAGES, "dimension")(batch)


def test_per_channel_takes_images_of_any_size() -> None:
    assert Normalization.fit(IMAGES)(np.zeros((2, 40, 30, 3), np.uint8)).shape == (2, 3, 40, 30)
