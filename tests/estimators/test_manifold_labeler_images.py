"""ManifoldLabeler on images, and on rows with a network."""

import itertools
import warnings

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from torch import nn

import neuralbayes as nb
from neuralbayes.clusters import clustering
from neuralbayes.data import toys
from neuralbayes.data.sources import ArraySource
from neuralbayes.networks.states import MergedStates

QUICK = {"max_iter": 40, "n_hidden": 32, "random_state": 0}


@pytest.fixture(scope="module")
def digits():
    return nb.datasets.load("digits").train


@pytest.fixture(scope="module")
def labeler(digits):
    return nb.ManifoldLabeler(10, max_iter=400, n_hidden=256, random_state=0).fit(digits.images)


def convolution():
    return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))


def test_digits_are_found(digits, labeler):
    test = nb.datasets.load("digits").test
    assert nb.baselines.clustering_accuracy(labeler.labels_, digits.labels) > 0.75
    assert nb.baselines.clustering_accuracy(labeler.predict(test.images), test.labels) > 0.7


def test_attributes_of_images_are_consistent(digits, labeler):
    p_zx = labeler.predict_proba(digits.images)
    assert_allclose(p_zx.sum(axis=1), 1.0)
    assert_allclose(labeler.prior_, p_zx.mean(axis=0))
    assert_array_equal(labeler.labels_, p_zx.argmax(axis=1))
    assert (np.diff(labeler.prior_) <= 0).all()  # the largest first
    assert labeler.image_shape_ == [8, 8, 1]
    assert labeler.n_features_in_ == 64
    assert labeler.n_dimensions_ == 64
    assert labeler.n_iter_ == 400
    assert labeler.n_iter_states_ == 200
    states, clusters = labeler.loss_curve_[:10], labeler.loss_curve_[10:]
    assert states[-1] < states[0]
    assert clusters[-1] == labeler.objective_ < clusters[0]
    assert ((labeler.separation_ > 0) & (labeler.separation_ < np.log(2))).all()
    assert not labeler.disjoint_.any()
    images = torch.from_numpy(digits.images[:5]).reshape(5, 1, 8, 8) / 255
    assert_allclose(labeler.module_(images).numpy(), labeler.transform(digits.images[:5]), atol=1e-5)


def test_p_of_a_cluster_is_the_sum_over_its_states(digits, labeler):
    module = labeler.module_
    assert_array_equal(module.membership.sum(dim=1), torch.ones(40))
    x = torch.from_numpy(digits.images[:7]).reshape(7, 1, 8, 8) / 255
    states = module.network(module.normalize(x)).softmax(dim=1).numpy()
    slow = [[sum(p[s] for s in range(40) if module.membership[s, k]) for k in range(10)] for p in states]
    assert_allclose(labeler.predict_proba(digits.images[:7]), slow, atol=1e-6)


def first_weights(network):
    return next(network.parameters()).detach().clone()


def watch_training(monkeypatch, *, before=lambda *_: None, after=lambda *_: None):
    """Look at each training of states or clusters, before it and at what it returned."""
    inner = clustering.train_states

    def watched(network, fetch, radius, options):
        before(network, fetch, radius, options)
        trained = inner(network, fetch, radius, options)
        after(network, trained)
        return trained

    monkeypatch.setattr(clustering, "train_states", watched)


def test_clusters_are_trained_on_after_states_were_merged(digits, monkeypatch):
    seen = []

    @torch.no_grad()
    def note(network, fetch, radius, options):
        seen.append((options.max_iter, network(fetch(torch.arange(5))).shape[1]))

    watch_training(monkeypatch, before=note)
    for settings, expected in (
        ({"n_clusters": 3}, [(20, 12), (20, 3)]),
        ({"n_clusters": 3, "max_iter": 5}, [(3, 12), (2, 3)]),
        ({"n_clusters": 3, "max_iter": 1}, [(1, 12)]),
        ({"n_clusters": 3, "n_states": 3}, [(40, 3)]),
        ({"n_clusters": 1}, [(40, 4)]),
        ({"n_clusters": 3, "n_init": 2}, [(20, 12), (20, 12), (20, 3), (20, 3)]),
    ):
        seen.clear()
        labeler = nb.ManifoldLabeler(**QUICK | settings).fit(digits.images[:100])
        assert seen == expected
        assert labeler.n_iter_ == settings.get("max_iter", 40)
        assert labeler.n_iter_states_ == expected[0][0]
    seen.clear()
    labeler = nb.ManifoldLabeler("auto", n_init=2, **QUICK).fit(digits.images[:100])
    assert seen == [(20, 40), (20, 40), (20, labeler.n_clusters_)]


def test_the_picture_of_the_loss_tells_states_from_clusters(labeler):
    curves = nb.plot.CurvesDisplay.from_estimator(labeler).curves
    assert {name: (places[0], places[-1]) for name, (places, _) in curves.items()} == {
        "states": (20, 200),
        "clusters": (220, 400),
    }
    assert curves["clusters"][1][-1] == labeler.objective_


def test_a_fit_of_disjoint_rows_forgets_the_steps_of_states():
    X, _ = toys.make_blobs(90, random_state=0)
    labeler = nb.ManifoldLabeler(3, network="mlp", **QUICK).fit(X)
    labeler.set_params(network=None).fit(X)
    assert list(nb.plot.CurvesDisplay.from_estimator(labeler).curves) == ["loss"]


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
    labeler = nb.ManifoldLabeler(3, network=network, **QUICK).fit(digits.images[:100])
    assert_array_equal(labeler.module_.network.body[0].weight, before)
    assert not any(parameter.requires_grad for parameter in labeler.module_.parameters())


def test_images_of_all_kinds_are_the_same_images(digits, labeler):
    expected = labeler.predict_proba(digits.images[:20])
    for images in (
        digits.images[:20].reshape(20, 8, 8),
        digits.images[:20].reshape(20, 1, 8, 8),
        digits.images[:20] / np.float32(255),
        ArraySource(digits.images[:20]),
        nb.datasets.load("digits").train.images[:20],
    ):
        assert_allclose(labeler.predict_proba(images), expected, atol=1e-12)


@pytest.mark.parametrize("own", [False, True])
def test_the_seed_alone_decides(digits, own):
    """Whatever the state of torch's generator, which is left as it was."""
    network = convolution() if own else None
    found = []
    for state, seed in ((1, 0), (2, 0), (1, 7)):
        torch.manual_seed(state)
        before = torch.get_rng_state()
        labeler = nb.ManifoldLabeler(5, network=network, **QUICK | {"random_state": seed}).fit(digits.images[:100])
        assert_array_equal(torch.get_rng_state(), before)
        found.append(labeler.predict_proba(digits.images[:100]))
    assert_array_equal(found[0], found[1])
    assert np.abs(found[2] - found[0]).max() > 1e-3


def test_every_start_is_another_one(digits, monkeypatch):
    starts = []
    watch_training(monkeypatch, before=lambda network, *_: starts.append(first_weights(network)))
    nb.ManifoldLabeler(3, n_init=3, **QUICK | {"max_iter": 2}).fit(digits.images[:100])
    assert [torch.equal(a, b) for a, b in itertools.combinations(starts[:3], 2)] == [False] * 3


def test_a_network_of_ones_own_is_copied_and_trained(digits):
    network = convolution()
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    labeler = nb.ManifoldLabeler(5, network=network, **QUICK).fit(digits.images[:300])
    for name, tensor in network.state_dict().items():
        assert_array_equal(tensor, before[name])
    trained = labeler.module_.network.body.state_dict()
    assert not torch.equal(trained["0.weight"], before["0.weight"])
    assert labeler.predict_proba(digits.images[:9]).shape == (9, 5)
    assert isinstance(clone(labeler).network, nn.Sequential)


@pytest.mark.parametrize("own", [False, True])
def test_a_labeler_of_images_comes_back_from_its_folder(digits, tmp_path, own):
    network = convolution() if own else None
    labeler = nb.ManifoldLabeler(4, network=network, **QUICK).fit(digits.images[:200])
    labeler.save(tmp_path / "model")
    again = nb.load(tmp_path / "model", network=convolution() if own else None)
    assert_array_equal(again.predict_proba(digits.images[:50]), labeler.predict_proba(digits.images[:50]))
    assert_array_equal(again.labels_, labeler.labels_)


def test_load_says_when_a_network_is_missing_or_too_many(digits, tmp_path):
    nb.ManifoldLabeler(4, network=convolution(), **QUICK).fit(digits.images[:200]).save(tmp_path / "own")
    with pytest.raises(ValueError, match="`network` must be the architecture that it was fitted with, got None"):
        nb.load(tmp_path / "own")
    with pytest.raises(ValueError, match="does not fit its weights"):
        nb.load(tmp_path / "own", network=nn.Conv2d(1, 3, 3))
    nb.ManifoldLabeler(4, **QUICK).fit(digits.images[:200]).save(tmp_path / "mlp")
    with pytest.raises(ValueError, match=r"`network` must be None.*got Sequential"):
        nb.load(tmp_path / "mlp", network=convolution())


def test_auto_takes_the_number_that_stands_out(digits):
    labeler = nb.ManifoldLabeler("auto", max_clusters=12, max_iter=60, n_hidden=32, random_state=0).fit(digits.images)
    jumps = labeler.selection_["jump"]
    assert labeler.selection_["n_clusters"] == list(range(2, 13))
    assert labeler.n_clusters_ == labeler.selection_["n_clusters"][int(np.argmax(jumps))]
    ratios = labeler.selection_["ratio"]
    assert_allclose(jumps[:-1], np.array(ratios[1:]) / ratios[:-1])


def test_rows_that_touch_get_clusters():
    X, y = toys.make_blobs(600, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labeler = nb.ManifoldLabeler(3, network="mlp", max_iter=200, n_hidden=64, random_state=0).fit(X)
    assert nb.baselines.clustering_accuracy(labeler.labels_, y) == 1.0
    assert labeler.image_shape_ is None
    assert labeler.transform(X.astype(np.float32)).dtype == np.float32


def test_several_starts_are_judged_by_the_objective(digits, monkeypatch):
    """By that of their clusters; the best is neither the first nor the last."""
    ends = []
    watch_training(monkeypatch, after=lambda network, trained: ends.append((trained.objective, first_weights(network))))
    for seed in range(30):
        ends.clear()
        labeler = nb.ManifoldLabeler(3, n_init=3, **QUICK | {"max_iter": 10, "random_state": seed})
        labeler.fit(digits.images[:100])
        objectives = [objective for objective, _ in ends[3:]]
        if np.argmin(objectives) == 1:
            break
    assert labeler.objective_ == objectives[1]
    assert_array_equal(first_weights(labeler.module_.network), ends[4][1])


def test_fewer_samples_are_trained_on_and_all_are_labelled(digits, monkeypatch):
    seen = []
    watch_training(monkeypatch, before=lambda network, fetch, radius, options: seen.append(len(radius)))
    labeler = nb.ManifoldLabeler(3, max_samples=60, **QUICK).fit(digits.images[:200])
    assert seen == [60, 60]
    assert labeler.labels_.shape == (200,)


@pytest.mark.parametrize("n_clusters", [1, 2, 4])
def test_a_handful_of_images(digits, n_clusters):
    labeler = nb.ManifoldLabeler(n_clusters, **QUICK).fit(digits.images[:4])
    assert labeler.predict_proba(digits.images[:4]).shape == (4, n_clusters)
    assert np.isfinite(labeler.separation_).all()


def test_bad_images_and_settings_are_named(digits, labeler):
    images = digits.images[:50]
    for settings, data, message in (
        ({"beta": 1.0}, images, "`beta` is for rows without a `network`, and must be 0.0003 here, got 1.0"),
        ({"tol": 0.1}, images, "`tol` is for rows without a `network`"),
        ({"standardize": True}, images, "`standardize` is for rows, and must be False here, got True"),
        ({"n_states": 8}, np.eye(3), "`n_states` is for images, and for rows with a `network`"),
        ({"n_clusters": 6, "n_states": 5}, images, "`n_states` must be at least n_clusters=6, got 5"),
        ({"n_clusters": 60}, images, "n_samples=50 should be >= n_clusters=60"),
        ({"n_clusters": 1}, images[:1], "X must hold at least 2 images, got 1"),
        ({}, np.full((5, 8, 8), 7, np.uint8), "X has a single distinct sample"),
        ({"network": "cnn"}, images, "network"),
    ):
        with pytest.raises(ValueError, match=message):
            nb.ManifoldLabeler(**settings).fit(data)
    with pytest.raises(ValueError, match="X must be images, as in fit, got rows"):
        labeler.predict(np.zeros((3, 64)))
    with pytest.raises(ValueError, match=r"X must be images of shape \(8, 8, 1\), as in fit, got \(9, 9, 1\)"):
        labeler.predict(np.zeros((3, 9, 9), np.uint8))
