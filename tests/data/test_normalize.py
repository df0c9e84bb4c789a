"""Normalisation compared with numpy in float64, and saved and loaded."""

import json

import numpy as np
import pytest
import torch

from neuralbayes.data.normalize import Normalization
from neuralbayes.data.sources import ArraySource

IMAGES = np.random.default_rng(0).integers(0, 256, (53, 6, 5, 3)).astype(np.uint8)


@pytest.mark.parametrize(("per", "axes"), [("channel", (0, 1, 2)), ("dimension", (0,))])
def test_mean_and_deviation_are_those_of_numpy_in_float64(per, axes):
    normalization, values = Normalization.fit(IMAGES, per), IMAGES / 255.0
    mean, std = values.mean(axes, keepdims=True), values.std(axes, keepdims=True)
    np.testing.assert_allclose(normalization.mean, mean[0].transpose(2, 0, 1), rtol=1e-6)
    np.testing.assert_allclose(normalization.std, std[0].transpose(2, 0, 1), rtol=1e-6)
    batch = normalization(IMAGES[:7])
    assert (batch.dtype, batch.shape, batch.is_contiguous()) == (torch.float32, (7, 3, 6, 5), True)
    np.testing.assert_allclose(batch, ((values - mean) / std)[:7].transpose(0, 3, 1, 2), atol=2e-6)


def test_sums_are_exact_in_any_order():
    images = np.full((70_000, 1, 1, 1), 255, np.uint8)
    images[0] = 254  # is not constant
    whole, turned = Normalization.fit(images), Normalization.fit(ArraySource(images[::-1]))
    np.testing.assert_allclose(whole.std.item() * 255, np.std([1] * 69_999 + [0]), rtol=1e-6)
    assert (whole.mean, whole.std) == (turned.mean, turned.std)


def test_constant_dimensions_get_deviation_1_and_become_0():
    images = IMAGES.copy()
    images[:, 2, 3, 1] = 77
    normalization = Normalization.fit(images, "dimension")
    assert normalization.std[1, 2, 3] == 1
    assert normalization(images)[:, 1, 2, 3].abs().max() < 1e-7
    assert Normalization.fit(np.full((5, 4, 4), 200, np.uint8), "channel").std.item() == 1


def test_arrays_tensors_and_read_only_memory_give_the_same():
    normalization, frozen = Normalization.fit(IMAGES), IMAGES.copy()
    frozen.flags.writeable = False
    for batch in (torch.from_numpy(IMAGES), frozen, np.flip(np.flip(IMAGES, 1), 1)):  # the last has negative strides
        assert torch.equal(normalization(batch), normalization(IMAGES))


@pytest.mark.parametrize("per", ["channel", "dimension", "whiten"])
def test_it_comes_back_from_json_and_arrays(per):
    normalization = Normalization.fit(IMAGES, per)
    settings = json.loads(json.dumps(normalization.to_dict()))
    arrays = {name: torch.from_numpy(array) for name, array in normalization.to_arrays().items()}
    again = Normalization.from_dict(settings, arrays)
    assert again.per == per
    assert torch.equal(again(IMAGES), normalization(IMAGES))


def test_what_was_damaged_on_the_way_is_refused():
    normalization = Normalization.fit(IMAGES, "dimension")
    settings, arrays = normalization.to_dict(), normalization.to_arrays()
    for changed, values, message in (
        (settings, {"mean": arrays["mean"]}, "must have per, shape, mean and std"),
        (settings, {name: array[:1] for name, array in arrays.items()}, "shape"),
        (settings, arrays | {"std": 0 * arrays["std"]}, "positive"),
        (settings | {"per": "pixel"}, arrays, "`per` must be"),
    ):
        with pytest.raises(ValueError, match=message):
            Normalization.from_dict(changed, values)


@pytest.mark.parametrize(
    "batch", [IMAGES.astype(np.float32), IMAGES[0], IMAGES[..., :1], IMAGES[:, :3], IMAGES.transpose(0, 3, 1, 2)]
)
def test_batches_that_do_not_fit_are_refused(batch):
    with pytest.raises(ValueError, match=r"`batch` must be uint8 of shape \(m, 6, 5, 3\)"):
        Normalization.fit(IMAGES, "dimension")(batch)


def correlated(n: int = 60, side: int = 24) -> np.ndarray:
    """Smooth coloured noise, in which neighbouring pixels and channels are similar."""
    rng = np.random.default_rng(1)
    spectrum = np.fft.fft2(rng.normal(size=(n, side, side, 3)), axes=(1, 2))
    frequency = np.hypot(*np.meshgrid(np.fft.fftfreq(side), np.fft.fftfreq(side)))
    noise = np.fft.ifft2(spectrum / (0.05 + frequency)[None, :, :, None], axes=(1, 2)).real
    mixed = noise @ np.array([[1.0, 0.8, 0.6], [0.0, 0.5, 0.3], [0.0, 0.0, 0.4]])
    return np.clip(128 + 40 * mixed / mixed.std(), 0, 255).astype(np.uint8)


def test_the_kernel_is_the_middle_of_the_inverse_root_of_the_patches_covariance():
    images = correlated()
    normalization = Normalization.fit(images, "whiten")
    x = Normalization.fit(images, "channel")(images).double().numpy()
    windows = np.lib.stride_tricks.sliding_window_view(x, (9, 9), axis=(2, 3))[:, :, ::3, ::3]
    patches = windows.transpose(0, 2, 3, 1, 4, 5).reshape(-1, 3 * 81)
    variance, directions = np.linalg.eigh(np.cov(patches.T, bias=True))
    root = (directions / np.sqrt(variance + 0.1)) @ directions.T
    middle = root[[c * 81 + 40 for c in range(3)]]
    middle /= np.sqrt(np.mean([np.var(patches @ row) for row in middle]))
    np.testing.assert_allclose(normalization.whitening, middle.reshape(3, 3, 9, 9), atol=1e-4)
    expected = np.einsum("cdij,dij->c", middle.reshape(3, 3, 9, 9), x[5, :, 4:13, 7:16])
    np.testing.assert_allclose(normalization(images)[5, :, 8, 11], expected, atol=1e-4)


@pytest.mark.parametrize("shape", [(5, 24, 24, 1), (1, 24, 24, 3), (3, 8, 6, 1), (2, 1, 1, 1)])
def test_constant_or_few_or_small_images_are_whitened_without_an_infinity(shape):
    for images in (np.full(shape, 9, np.uint8), np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)):
        assert torch.isfinite(Normalization.fit(images, "whiten")(images)).all()


@pytest.mark.parametrize(("per", "kernel"), [("whiten", None), ("channel", (1, 1, 3, 3)), ("whiten", (1, 1, 2, 2))])
def test_whitening_and_its_kernel_go_together(per, kernel):
    mean, std = np.zeros((1, 1, 1), np.float32), np.ones((1, 1, 1), np.float32)
    with pytest.raises(ValueError, match="`whitening`"):
        Normalization(per, mean, std, None if kernel is None else np.ones(kernel, np.float32))
