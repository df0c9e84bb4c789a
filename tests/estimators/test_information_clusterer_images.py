"""Clusters of images."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from torch import nn

import neuralbayes as nb

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # few steps, empty clusters


def quick(n_clusters, **settings):
    return nb.InformationClusterer(n_clusters, **{"max_iter": 20, "n_hidden": 32, "random_state": 0} | settings)


@pytest.fixture(scope="module")
def digits():
    return nb.datasets.load("digits").train


@pytest.fixture(scope="module")
def clusterer(digits):
    return quick(10, max_iter=400, n_hidden=256).fit(digits.images)


def convolution():
    return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))


def test_digits_are_found(digits, clusterer):
    test = nb.datasets.load("digits").test
    assert nb.clustering_accuracy(clusterer.labels_, digits.labels) > 0.75
    assert nb.clustering_accuracy(clusterer.predict(test.images), test.labels) > 0.7


def test_attributes_of_images_are_consistent(digits, clusterer):
    p_zx = clusterer.predict_proba(digits.images)
    assert_allclose(p_zx.sum(axis=1), 1.0)
    assert_allclose(clusterer.prior_, p_zx.mean(axis=0))
    assert_array_equal(clusterer.labels_, p_zx.argmax(axis=1))
    assert (clusterer.kind_, clusterer.posterior_.kind) == ("images", "network")
    assert clusterer.image_shape_ == [8, 8, 1]
    assert clusterer.n_features_in_ == clusterer.n_dimensions_ == 64
    assert clusterer.n_iter_ == 2 * clusterer.n_iter_start_ == 400
    assert clusterer.describe()["size"].sum() == len(digits.images)
    states, clusters = clusterer.loss_curve_[:10], clusterer.loss_curve_[10:]
    assert states[-1] < max(states)
    assert clusters[-1] < clusters[0]
    assert ((clusterer.separation_ > 0) & (clusterer.separation_ < np.log(2))).all()
    images = torch.from_numpy(digits.images[:5]).reshape(5, 1, 8, 8) / 255
    assert_allclose(clusterer.module_(images).numpy(), clusterer.transform(digits.images[:5]), atol=1e-5)


def test_p_of_a_cluster_is_the_sum_over_its_states(digits, clusterer):
    assert_array_equal(clusterer.membership_.sum(axis=1), 1.0)
    rows = digits.images[:7].reshape(7, -1) / 255
    logits = clusterer.posterior_.logits(clusterer.frame_(rows))
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    slow = [
        [sum(q[s] for s in range(clusterer.n_states_) if clusterer.membership_[s, k]) for k in range(10)] for q in p
    ]
    assert_allclose(clusterer.predict_proba(digits.images[:7]), slow, atol=1e-6)
    for x, label, state in zip(logits, clusterer.labels_[:7], clusterer.states_[:7], strict=True):
        own = np.flatnonzero(clusterer.membership_[:, label])
        assert state == own[x[own].argmax()]
    for k in (9, 11):
        assert len(np.unique(clusterer.cut(k))) <= k < clusterer.n_states_


@pytest.mark.parametrize("own", [False, True])
def test_the_seed_alone_decides(digits, own):
    """The result does not depend on the state of torch's generator, which stays unchanged."""
    network, found = convolution() if own else None, []
    for state, seed in ((1, 0), (2, 0), (1, 7)):
        torch.manual_seed(state)
        before = torch.get_rng_state()
        clusterer = quick(5, network=network, random_state=seed).fit(digits.images[:100])
        assert_array_equal(torch.get_rng_state(), before)
        found.append(clusterer.predict_proba(digits.images[:100]))
    assert_array_equal(found[0], found[1])
    assert np.abs(found[2] - found[0]).max() > 1e-3


def test_a_network_of_ones_own_is_copied_trained_saved_and_loaded(digits, tmp_path):
    network = convolution()
    network[0].bias.requires_grad_(False)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    clusterer = quick(5, network=network).fit(digits.images[:300])
    for name, tensor in network.state_dict().items():
        assert_array_equal(tensor, before[name])
    trained = clusterer.posterior_.network.body.state_dict()
    assert not torch.equal(trained["0.weight"], before["0.weight"])
    assert torch.equal(trained["0.bias"], before["0.bias"])
    assert isinstance(clone(clusterer).network, nn.Sequential)
    clusterer.save(tmp_path / "own")
    again = nb.load(tmp_path / "own", network=convolution())
    assert_array_equal(again.predict_proba(digits.images[:50]), clusterer.predict_proba(digits.images[:50]))
    for wrong in (None, nn.Conv2d(1, 3, 3)):
        with pytest.raises(ValueError, match=r"`network`|does not fit its weights"):
            nb.load(tmp_path / "own", network=wrong)


def test_bad_images_and_settings_are_named(digits, clusterer):
    images = digits.images[:50]
    for settings, data, message in (
        ({"metric": "cosine"}, images, "`metric`"),
        ({"n_clusters": 6, "n_states": 5}, images, "`n_states`"),
        ({"n_clusters": 60}, images, "n_samples=50 should be >= 60"),
        ({"n_clusters": 1}, images[:1], "n_samples=1 should be >= 2"),
        ({}, np.full((5, 8, 8), 7, np.uint8), "X must .* 2 distinct samples, got 1"),
        ({"network": "cnn"}, images, "network"),
    ):
        with pytest.raises(ValueError, match=message):
            nb.InformationClusterer(**settings).fit(data)
    with pytest.raises(ValueError, match="`X` must be None"):
        clusterer.describe(images)
    with pytest.raises(ValueError, match="X must be images, as in fit, got rows"):
        clusterer.predict(np.zeros((3, 64)))
    with pytest.raises(ValueError, match=r"X must be images of shape \(8, 8, 1\), as in fit, got \(9, 9, 1\)"):
        clusterer.predict(np.zeros((3, 9, 9), np.uint8))
