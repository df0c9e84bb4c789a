"""MIMEncoder on images: a convolutional encoder with the same interface."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import neuralbayes as nb

X = np.random.default_rng(0).normal(size=(30, 2))


def images(n=12, shape=(24, 22, 3), seed=0):
    """Patches, each of one colour with some noise."""
    rng = np.random.default_rng(seed)
    patches = rng.integers(0, 255, (n, 2, 2, shape[2])).repeat(shape[0] // 2, 1).repeat(shape[1] // 2, 2)
    return np.clip(patches + rng.normal(0, 10, patches.shape), 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def of_images():
    return nb.MIMEncoder(encoder="tiny", max_epochs=1, random_state=0).fit(images())


def test_images_become_vectors(of_images):
    new = images(5, seed=1)
    features = of_images.transform(new)
    assert features.dtype == np.float32
    assert features.shape == (5, len(of_images.get_feature_names_out()))
    p_zx = of_images.predict_proba(new)
    assert p_zx.shape == (5, of_images.n_states_[-1])
    with torch.no_grad():
        state = of_images.module_(of_images.module_.prepare(new))
    assert_allclose(features, state.flatten(1), atol=1e-5)
    assert_allclose(p_zx, state.mean((2, 3)).softmax(1), rtol=1e-4)
    assert of_images.mutual_information_.shape == (4,)
    assert (of_images.mutual_information_ <= math.log(12)).all()
    assert of_images.image_shape_ == [24, 22, 3]
    assert of_images.n_features_in_ == 24 * 22 * 3
    assert of_images.n_iter_ == len(of_images.loss_curve_) == 1


def test_grey_images_and_a_layer_between():
    grey = images(6, (22, 22, 1))[..., 0]
    encoder = nb.MIMEncoder(encoder="tiny", layer=1, max_epochs=1, standardize=False, random_state=0).fit(grey)
    assert encoder.transform(grey).shape == (6, len(encoder.get_feature_names_out()))
    assert encoder.predict_proba(grey).shape == (6, encoder.n_states_[1])
    assert encoder.mean_.shape == (1, 1, 1)


def test_rows_and_images_are_not_confused(of_images):
    with pytest.raises(ValueError, match="X must be images, as in fit, got rows"):
        of_images.transform(X)
    with pytest.raises(ValueError, match="X must be rows, as in fit, got images"):
        nb.MIMEncoder((4,), max_epochs=1).fit(X).transform(images())
    with pytest.raises(ValueError, match=r"shape \(24, 22, 3\)"):
        of_images.transform(images(2, (22, 22, 3)))
    with pytest.raises(ValueError, match="at least 2 images"):
        nb.MIMEncoder().fit(images(1))


def test_a_loaded_model_is_the_saved_one(of_images, tmp_path):
    of_images.save(tmp_path / "model")
    loaded = nb.load(tmp_path / "model")
    assert_array_equal(loaded.transform(images(4, seed=1)), of_images.transform(images(4, seed=1)))
    assert list(loaded.get_feature_names_out()) == list(of_images.get_feature_names_out())
