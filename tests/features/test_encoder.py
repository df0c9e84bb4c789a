"""ImageEncoder: shapes, features of every state, files."""

import math

import numpy as np
import pytest
import torch

from neuralbayes.bayes import mutual_information, posterior, prior
from neuralbayes.data.images import Images
from neuralbayes.data.normalize import Normalization
from neuralbayes.data.sources import ArraySource
from neuralbayes.estimators import load
from neuralbayes.features.encoder import STATES, ImageEncoder, flat_state, random_encoder, state_use
from neuralbayes.features.pretraining import PretrainConfig, pretrain
from neuralbayes.system.files import read_tensors, write_tensors

SHAPE = (22, 26, 3)


def images(n=6, shape=SHAPE, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, *shape), dtype=np.uint8)


@pytest.fixture
def encoder():
    return ImageEncoder("tiny", SHAPE, Normalization.fit(images(), per="dimension")).eval()


def test_the_papers_encoder_has_its_channels_and_starts_orthogonal():
    """C200-P-C500-C700-P-C1000 of 3x3 with batch normalisation, orthogonal weights and zero biases (section 5.1)."""
    encoder = ImageEncoder("paper", (32, 32, 3), Normalization.fit(images(shape=(32, 32, 3))))
    convolutions = [module for module in encoder.modules() if isinstance(module, torch.nn.Conv2d)]
    assert [(c.in_channels, c.out_channels) for c in convolutions] == [(3, 200), (200, 500), (500, 700), (700, 1000)]
    assert [tuple(encoder.layers(state)(torch.zeros(1, 3, 32, 32)).shape[1:]) for state in STATES] == [
        (200, 30, 30),
        (500, 13, 13),
        (700, 11, 11),
        (1000, 3, 3),
    ]
    for convolution in convolutions:
        assert convolution.kernel_size == (3, 3)
        matrix = convolution.weight.detach().flatten(1)
        matrix = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
        torch.testing.assert_close(matrix @ matrix.T, torch.eye(len(matrix)), atol=1e-4, rtol=0)
    norms = [module for module in encoder.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    assert [norm.num_features for norm in norms] == [200, 500, 700, 1000]
    bare = ImageEncoder("tiny", SHAPE, encoder.normalization, batch_norm=False)
    assert all(not c.bias.any() for c in bare.modules() if isinstance(c, torch.nn.Conv2d))


@pytest.mark.parametrize("state", STATES)
def test_features_are_the_hidden_state_of_each_image_in_order(encoder, state):
    source = ArraySource(images())
    features = encoder.features(source, state, max_size=10**6, batch_size=4)
    with torch.no_grad():
        expected = encoder.layers(state)(encoder.prepare(source.read(np.arange(6)))).flatten(1)
    assert features.dtype == np.float32
    np.testing.assert_allclose(features, expected.numpy(), atol=1e-6)


@pytest.mark.parametrize("state", STATES)
def test_features_of_an_image_do_not_depend_on_how_many_are_read_with_it(encoder, state):
    together = encoder.features(ArraySource(images(7)), state)
    for batch_size in (1, 2, 3):  # the last batch is a single image
        alone = encoder.features(ArraySource(images(7)), state, batch_size=batch_size)
        np.testing.assert_array_equal(alone, together)


def test_features_are_taken_of_whatever_pretrain_takes(encoder):
    array = images()
    expected = encoder.features(ArraySource(array))
    for given in (array, array.transpose(0, 3, 1, 2), Images("six", "train", ArraySource(array))):
        np.testing.assert_array_equal(encoder.features(given), expected)
    np.testing.assert_array_equal(encoder.features(list(array)), expected)
    with pytest.raises(TypeError, match="`images`"):
        encoder.features({"images": array})


@pytest.mark.parametrize("max_size", [1, 5, 7, 40, 1000])
def test_a_state_that_is_too_long_is_averaged_over_windows_that_cover_all_of_it(max_size):
    state = torch.rand(2, 5, 3, 7)
    flat = flat_state(state, max_size)
    assert flat.shape[1] <= max(max_size, 5)
    state[:, :, -1, -1] += 100.0  # the last row and column count, too
    assert (flat_state(state, max_size) - flat).abs().sum() > 1.0
    assert torch.equal(flat_state(state, 105), state.flatten(1))


def test_features_leave_the_mode_and_the_statistics_alone(encoder):
    encoder.train()
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    encoder.features(ArraySource(images()))
    assert encoder.training
    assert all(torch.equal(value, before[name]) for name, value in encoder.state_dict().items())


def test_images_smaller_than_22_pixels_are_refused():
    with pytest.raises(ValueError, match=r"at least 22x22 pixels.*got 21x40"):
        ImageEncoder("tiny", (21, 40, 1), Normalization.fit(images(shape=(21, 40, 1))))
    smallest = ImageEncoder("tiny", (22, 22, 1), Normalization.fit(images(shape=(22, 22, 1))))
    assert smallest.eval()(smallest.prepare(images(shape=(22, 22, 1)))).shape[2:] == (1, 1)


def test_wrong_arguments_are_named(encoder):
    with pytest.raises(ValueError, match="`encoder`"):
        ImageEncoder("huge", SHAPE, encoder.normalization)
    with pytest.raises(ValueError, match="`state`"):
        encoder.features(ArraySource(images()), "relu9")
    with pytest.raises(ValueError, match=r"shape \(22, 26, 3\).*got \(26, 22, 3\)"):
        encoder.features(ArraySource(images(shape=(26, 22, 3))))


def test_a_saved_encoder_comes_back_bit_for_bit(encoder, tmp_path):
    for module in encoder.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_()
    encoder.save(tmp_path)
    loaded = ImageEncoder.load(tmp_path)
    source = ArraySource(images())
    assert not loaded.training
    assert np.array_equal(loaded.features(source), encoder.features(source))
    assert (loaded.size, loaded.shape, loaded.batch_norm) == (encoder.size, encoder.shape, encoder.batch_norm)


def test_a_folder_without_an_encoder_is_told_apart_from_a_damaged_one(encoder, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"encoder\.json"):
        ImageEncoder.load(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(FileNotFoundError, match=r"the run in .* has not finished"):
        ImageEncoder.load(tmp_path)
    encoder.save(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"a run, whose encoder ImageEncoder\.load reads"):
        load(tmp_path)
    weights = tmp_path / "encoder.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"encoder\.safetensors.*damaged or cut short"):
        ImageEncoder.load(tmp_path)
    weights.write_bytes(whole)
    description = tmp_path / "encoder.json"
    text = description.read_text()
    for wrong, message in (
        (text[:-20], "not a valid JSON file"),
        ("[]", "does not describe an encoder"),
        (text.replace('"format": 1', '"format": 99'), "does not describe an encoder of format 1"),
        (text.replace('"tiny"', '"small"'), "does not hold a whole encoder"),
        (text.replace('"shape"', '"form"', 1), "does not hold a whole encoder"),
    ):
        description.write_text(wrong)
        with pytest.raises(ValueError, match=message):
            ImageEncoder.load(tmp_path)


def test_state_use_in_pieces_is_that_of_all_images_at_once(encoder):
    source = ArraySource(images(300))
    found = state_use(encoder, source)
    with torch.no_grad():
        for name in STATES:
            p_zx = posterior(encoder.layers(name)(encoder.prepare(source.read(np.arange(300)))))
            torch.testing.assert_close(found[name].p_z, prior(p_zx).mean(dim=(1, 2)))
            assert found[name].information == pytest.approx(float(mutual_information(p_zx)), abs=1e-5)
            assert found[name].to_dict()["bound"] == pytest.approx(math.log(p_zx.shape[1]), abs=1e-4)


@pytest.mark.parametrize("name", ["network.conv1.weight", "normalization.mean", "normalization.std"])
def test_weights_that_are_not_finite_are_refused_by_name(encoder, tmp_path, name):
    encoder.save(tmp_path)
    tensors, _ = read_tensors(tmp_path / "encoder.safetensors")
    tensors[name].view(-1)[:1] = float("nan")
    write_tensors(tmp_path / "encoder.safetensors", tensors, {})
    with pytest.raises(ValueError, match=f"'{name}' must be finite, got 1 "):
        ImageEncoder.load(tmp_path)


def test_a_random_encoder_has_the_shape_of_another_and_statistics_of_the_images(encoder):
    random = random_encoder(encoder, images(200), seed=4)
    assert (random.size, random.shape, random.training) == (encoder.size, encoder.shape, False)
    with torch.no_grad():
        outputs = random.network.norm1(random.network.conv1(random.prepare(images(200))))
    torch.testing.assert_close(outputs.mean(dim=(0, 2, 3)), torch.zeros(16), atol=0.02, rtol=0)
    torch.testing.assert_close(outputs.std(dim=(0, 2, 3)), torch.ones(16), atol=0.05, rtol=0)
    assert all(norm.momentum == 0.1 for norm in random.modules() if isinstance(norm, torch.nn.BatchNorm2d))
    with pytest.raises(ValueError, match="`images`"):
        random_encoder(encoder, np.zeros((4, 30, 30, 1), np.uint8))
    other = random_encoder(encoder, images(32), seed=5).network
    assert not torch.equal(other.conv1.weight, random.network.conv1.weight)
    barely = PretrainConfig(encoder="tiny", epochs=1, batch_size=32, microbatch_size=32, learning_rate=1e-12, seed=4)
    torch.testing.assert_close(pretrain(images(32), barely).network.conv4.weight, random.network.conv4.weight)
