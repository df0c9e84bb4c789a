"""Clusters of images and rows that may touch."""

import warnings

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from torch import nn

import neuralbayes as nb
from neuralbayes.clusters.merging import MARGIN
from neuralbayes.data import toys
from neuralbayes.data.sources import ArraySource
from neuralbayes.networks.states import MergedStates

QUICK = {"max_iter": 20, "n_hidden": 32, "random_state": 0}


@pytest.fixture(scope="module")
def digits():
    return nb.datasets.load("digits").train


@pytest.fixture(scope="module")
def clusterer(digits):
    return nb.InformationClusterer(10, max_iter=400, n_hidden=256, random_state=0).fit(digits.images)


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
    assert (np.diff(clusterer.prior_) <= 0).all()  # the largest first
    assert clusterer.image_shape_ == [8, 8, 1]
    assert clusterer.n_features_in_ == 64
    assert clusterer.n_dimensions_ == 64
    assert clusterer.n_iter_ == 400
    assert clusterer.n_iter_start_ == 200
    states, clusters = clusterer.loss_curve_[:10], clusterer.loss_curve_[10:]
    assert states[-1] < max(states)
    assert clusters[-1] == clusterer.objective_ < clusters[0]
    assert ((clusterer.separation_ > 0) & (clusterer.separation_ < np.log(2))).all()
    images = torch.from_numpy(digits.images[:5]).reshape(5, 1, 8, 8) / 255
    assert_allclose(clusterer.module_(images).numpy(), clusterer.transform(digits.images[:5]), atol=1e-5)


def test_p_of_a_cluster_is_the_sum_over_its_states(digits, clusterer):
    module = clusterer.module_
    assert_array_equal(module.membership.sum(dim=1), torch.ones(clusterer.n_states_))
    x = torch.from_numpy(digits.images[:7]).reshape(7, 1, 8, 8) / 255
    states = module.network(module.normalize(x)).softmax(dim=1).numpy()
    slow = [
        [sum(p[s] for s in range(clusterer.n_states_) if module.membership[s, k]) for k in range(10)] for p in states
    ]
    assert_allclose(clusterer.predict_proba(digits.images[:7]), slow, atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "n_states", "n_iter_start"),
    [
        ({"n_clusters": 3}, 12, 10),
        ({"n_clusters": 3, "max_iter": 5}, 12, 3),
        ({"n_clusters": 3, "max_iter": 1}, 12, 1),
        ({"n_clusters": 3, "n_states": 3}, 3, 20),
        ({"n_clusters": 1}, 4, 20),
        ({"n_clusters": "auto"}, 40, 10),
    ],
)
def test_half_of_the_steps_train_the_states_if_there_is_something_to_merge(digits, settings, n_states, n_iter_start):
    clusterer = nb.InformationClusterer(**QUICK | settings).fit(digits.images[:100])
    assert clusterer.n_states_ == n_states
    assert clusterer.n_iter_start_ == n_iter_start
    assert clusterer.n_iter_ == settings.get("max_iter", 20)


def test_the_picture_of_the_loss_tells_the_start_from_the_clusters(clusterer):
    curves = nb.plot.CurvesDisplay.from_estimator(clusterer).curves
    assert {name: (places[0], places[-1]) for name, (places, _) in curves.items()} == {
        "start": (20, 200),
        "clusters": (220, 400),
    }
    assert curves["clusters"][1][-1] == clusterer.objective_


def test_merged_states_are_the_sum_over_members_and_have_its_gradient():
    torch.manual_seed(0)
    network = nn.Linear(4, 5).double()
    membership = torch.eye(2)[[0, 1, 1, 0, 1]].double()
    merged = MergedStates(network, membership)
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    p_zx = network(x).softmax(dim=1)
    slow = [[sum(p[s] for s in range(5) if membership[s, k]).log().item() for k in range(2)] for p in p_zx]
    assert_allclose(merged(x).detach(), slow, rtol=1e-12)
    assert torch.autograd.gradcheck(merged, (x,))
    far = MergedStates(nn.Identity(), torch.eye(2))(torch.tensor([[0.0, 500.0]]))  # exp(-500) is 0 in float32
    assert torch.isfinite(far).all()


def test_layers_that_are_frozen_stay_so(digits):
    network = convolution()
    network[0].requires_grad_(False)
    before = network[0].weight.clone()
    clusterer = nb.InformationClusterer(3, network=network, **QUICK).fit(digits.images[:100])
    assert_array_equal(clusterer.module_.network.body[0].weight, before)
    assert not any(parameter.requires_grad for parameter in clusterer.module_.parameters())


def test_images_of_all_kinds_are_the_same_images(digits, clusterer):
    expected = clusterer.predict_proba(digits.images[:20])
    for images in (
        digits.images[:20].reshape(20, 8, 8),
        digits.images[:20].reshape(20, 1, 8, 8),
        digits.images[:20] / np.float32(255),
        ArraySource(digits.images[:20]),
        nb.datasets.load("digits").train.images[:20],
    ):
        assert_allclose(clusterer.predict_proba(images), expected, atol=1e-12)


@pytest.mark.parametrize("own", [False, True])
def test_the_seed_alone_decides(digits, own):
    """The result does not depend on the state of torch's generator, which stays unchanged."""
    network = convolution() if own else "mlp"
    found = []
    for state, seed in ((1, 0), (2, 0), (1, 7)):
        torch.manual_seed(state)
        before = torch.get_rng_state()
        clusterer = nb.InformationClusterer(5, network=network, **QUICK | {"random_state": seed}).fit(
            digits.images[:100]
        )
        assert_array_equal(torch.get_rng_state(), before)
        found.append(clusterer.predict_proba(digits.images[:100]))
    assert_array_equal(found[0], found[1])
    assert np.abs(found[2] - found[0]).max() > 1e-3


def test_a_network_of_ones_own_is_copied_and_trained(digits):
    network = convolution()
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    clusterer = nb.InformationClusterer(5, network=network, **QUICK).fit(digits.images[:300])
    for name, tensor in network.state_dict().items():
        assert_array_equal(tensor, before[name])
    trained = clusterer.module_.network.body.state_dict()
    assert not torch.equal(trained["0.weight"], before["0.weight"])
    assert clusterer.predict_proba(digits.images[:9]).shape == (9, 5)
    assert isinstance(clone(clusterer).network, nn.Sequential)


@pytest.mark.parametrize("own", [False, True])
def test_a_clusterer_of_images_comes_back_from_its_folder(digits, tmp_path, own):
    network = convolution() if own else "mlp"
    clusterer = nb.InformationClusterer(4, network=network, **QUICK).fit(digits.images[:200])
    clusterer.save(tmp_path / "model")
    again = nb.load(tmp_path / "model", network=convolution() if own else None)
    assert_array_equal(again.predict_proba(digits.images[:50]), clusterer.predict_proba(digits.images[:50]))
    assert_array_equal(again.labels_, clusterer.labels_)


def test_load_says_when_a_network_is_missing_or_too_many(digits, tmp_path):
    nb.InformationClusterer(4, network=convolution(), **QUICK).fit(digits.images[:200]).save(tmp_path / "own")
    with pytest.raises(ValueError, match="`network` must be the architecture that it was fitted with, got None"):
        nb.load(tmp_path / "own")
    with pytest.raises(ValueError, match="does not fit its weights"):
        nb.load(tmp_path / "own", network=nn.Conv2d(1, 3, 3))
    nb.InformationClusterer(4, **QUICK).fit(digits.images[:200]).save(tmp_path / "mlp")
    with pytest.raises(ValueError, match=r"`network` must be None.*got Sequential"):
        nb.load(tmp_path / "mlp", network=convolution())


def test_auto_takes_the_smallest_number_that_is_nearly_the_best_for_images(digits):
    clusterer = nb.InformationClusterer("auto", max_clusters=12, max_iter=60, n_hidden=32, random_state=0).fit(
        digits.images
    )
    information = np.array(clusterer.selection_["information"])
    assert clusterer.selection_["n_clusters"] == list(range(2, 13))
    nearly = information >= information.max() - MARGIN * abs(information.max())
    assert clusterer.n_clusters_ == np.flatnonzero(nearly)[0] + 2


def test_auto_takes_the_number_at_the_largest_drop_for_states_of_rows(digits):
    clusterer = nb.InformationClusterer(
        "auto", start="states", max_clusters=12, max_iter=60, n_hidden=32, random_state=0
    ).fit(digits.images.reshape(len(digits.images), -1))
    jumps = clusterer.selection_["jump"]
    assert clusterer.selection_["n_clusters"] == list(range(2, 13))
    assert clusterer.n_clusters_ == clusterer.selection_["n_clusters"][int(np.argmax(jumps))]
    ratios = clusterer.selection_["ratio"]
    assert_allclose(jumps[:-1], np.array(ratios[1:]) / ratios[:-1])


def test_rows_that_touch_get_clusters():
    X, y = toys.make_blobs(600, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clusterer = nb.InformationClusterer(3, max_iter=60, n_hidden=64, random_state=0).fit(X)
    assert nb.clustering_accuracy(clusterer.labels_, y) == 1.0
    assert clusterer.image_shape_ is None
    assert clusterer.transform(X.astype(np.float32)).dtype == np.float32


def test_fewer_samples_are_trained_on_and_all_are_labelled(digits):
    clusterer = nb.InformationClusterer(3, max_samples=60, **QUICK).fit(digits.images[:200])
    assert clusterer.labels_.shape == (200,)


@pytest.mark.parametrize("n_clusters", [1, 2, 4])
def test_a_handful_of_images(digits, n_clusters):
    clusterer = nb.InformationClusterer(n_clusters, **QUICK).fit(digits.images[:4])
    assert clusterer.predict_proba(digits.images[:4]).shape == (4, n_clusters)
    assert np.isfinite(clusterer.separation_).all()


def test_bad_images_and_settings_are_named(digits, clusterer):
    images = digits.images[:50]
    for settings, data, message in (
        ({"standardize": True}, images, "`standardize` is for rows, and must be False here, got True"),
        ({"n_clusters": 6, "n_states": 5}, images, "`n_states` must be at least 6, the number of clusters, got 5"),
        ({"n_clusters": 60}, images, "n_samples=50 should be >= 60"),
        ({"n_clusters": 1}, images[:1], "n_samples=1 should be >= 2"),
        ({}, np.full((5, 8, 8), 7, np.uint8), "X must .* 2 distinct samples, got 1"),
        ({"network": "cnn"}, images, "network"),
    ):
        with pytest.raises(ValueError, match=message):
            nb.InformationClusterer(**settings).fit(data)
    with pytest.raises(ValueError, match="X must be images, as in fit, got rows"):
        clusterer.predict(np.zeros((3, 64)))
    with pytest.raises(ValueError, match=r"X must be images of shape \(8, 8, 1\), as in fit, got \(9, 9, 1\)"):
        clusterer.predict(np.zeros((3, 9, 9), np.uint8))
