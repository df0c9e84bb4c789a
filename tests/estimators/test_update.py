"""New samples for a fitted InformationClusterer."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import is_valid_linkage
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from torch import nn

import neuralbayes as nb
from neuralbayes.clusters.new_groups import find_new_groups, more_than_chance
from neuralbayes.clusters.reservoir import mixed_reservoir

QUICK = {"max_iter": 80, "n_hidden": 32, "random_state": 0}
CENTERS = np.array([[0, 0], [8, 0], [0, 8], [8, 8]])


def blobs(n, which=(0, 1, 2, 3), seed=0):
    return make_blobs(n, centers=CENTERS[list(which)], random_state=seed)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    X, _ = blobs(600, (0, 1, 2))
    nb.InformationClusterer(3, **QUICK).fit(X).save(folder / "model")
    return X, folder / "model"


@pytest.mark.parametrize("start", ["consensus", "states"])
def test_a_new_group_gets_a_new_label_and_old_ones_keep_theirs(start):
    X, _ = blobs(600, (0, 1, 2))
    settings = QUICK | ({"max_iter": 200} if start == "states" else {})
    clusterer = nb.InformationClusterer(3, start=start, **settings).fit(X)
    before, n_states = clusterer.labels_, clusterer.n_states_
    new, y = blobs(400, seed=1)
    old_labels = clusterer.predict(new)
    assert clusterer.update(new) is clusterer
    assert clusterer.n_clusters_ == 4
    assert clusterer.n_states_ == n_states + 1
    assert (clusterer.predict(X) == before).mean() > 0.99
    assert (clusterer.labels_[y == 3] == 3).mean() > 0.97
    assert (clusterer.labels_[y != 3] == old_labels[y != 3]).mean() > 0.97
    assert_array_equal(clusterer.labels_, clusterer.predict(new))
    assert_array_equal(clusterer.cut(4), clusterer.labels_)
    assert is_valid_linkage(clusterer.hierarchy_)
    assert len(clusterer.states_) == len(clusterer.labels_) == 400
    assert_allclose(clusterer.prior_.sum(), 1.0)
    assert_allclose(clusterer.prior_[3], 0.1, atol=0.04)  # 100 of 1,000
    assert clusterer.separation_.shape == (4,)
    assert clusterer.n_samples_seen_ == 1000 == len(clusterer.reservoir_)


def test_the_new_group_is_typical_afterwards(fitted):
    clusterer = nb.load(fitted[1])
    new, y = blobs(800, seed=1)
    assert (clusterer.typicality(new[y == 3]) < 0.05).all()
    clusterer.update(new)
    later, _ = blobs(2000, seed=2)
    assert abs((clusterer.typicality(later) <= 0.1).mean() - 0.1) < 0.05


def test_ordinary_samples_give_no_new_label(fitted):
    for seed in range(1, 6):
        clusterer = nb.load(fitted[1])
        clusterer.set_params(max_iter=8).update(blobs(300, (0, 1, 2), seed)[0])
        assert clusterer.n_clusters_ == 3


def test_a_shift_of_sizes_is_no_new_group(fitted):
    clusterer = nb.load(fitted[1])
    clusterer.set_params(max_iter=8).update(blobs(500, (1,), 1)[0])
    assert clusterer.n_clusters_ == 3
    assert clusterer.prior_.max() > 0.4


def test_an_updated_model_is_saved_loaded_and_updated_again(fitted, tmp_path):
    X, folder = fitted
    clusterer = nb.load(folder)
    new, _ = blobs(400, seed=1)
    clusterer.update(new).save(tmp_path / "model")
    again = nb.load(tmp_path / "model")
    assert_array_equal(again.predict_proba(X), clusterer.predict_proba(X))
    assert_array_equal(again.typicality(X), clusterer.typicality(X))
    assert again.n_clusters_ == 4
    before = again.predict(X)
    fifth = np.random.RandomState(0).normal((16, 0), 1, (80, 2))
    again.update(fifth)
    assert again.n_clusters_ == 5
    assert set(again.labels_) == {4}
    assert (again.predict(X) == before).mean() > 0.99


def test_the_same_update_gives_the_same_model(fitted):
    new, _ = blobs(100, seed=1)
    one, other = (nb.load(fitted[1]).update(new) for _ in range(2))
    assert_array_equal(one.predict_proba(new), other.predict_proba(new))


def test_one_sample_is_enough_and_max_clusters_is_a_limit(fitted):
    X, folder = fitted
    clusterer = nb.load(folder).set_params(max_iter=4, max_clusters=3)
    assert clusterer.update(X[:1]).labels_.shape == (1,)
    assert clusterer.update(blobs(400, seed=1)[0]).n_clusters_ == 3


def test_images_and_embeddings_are_updated(tmp_path):
    digits = nb.datasets.load("digits").train
    images, y = digits.images[:700], np.asarray(digits.labels[:700])
    clusterer = nb.InformationClusterer(9, max_iter=200, n_hidden=64, random_state=0).fit(images[y != 0])
    before = clusterer.labels_
    clusterer.update(images)
    assert (clusterer.predict(images[y != 0]) == before).mean() > 0.9
    assert clusterer.image_shape_ == [8, 8, 1]
    X, kind = make_blobs(600, n_features=10, centers=4, random_state=0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    embedded = nb.InformationClusterer(3, **QUICK).fit(X[kind != 3])
    assert embedded.typical_length_ > 0
    embedded.update(X)
    assert embedded.n_clusters_ == 4
    assert (embedded.typicality(X) <= 0.1).mean() < 0.2


def test_what_cannot_be_updated_is_refused():
    X, _ = blobs(60)
    with pytest.raises(NotFittedError):
        nb.InformationClusterer(4).update(X)
    own = nb.InformationClusterer(4, network=nn.Linear(2, 8), max_iter=4, random_state=0).fit(X)
    with pytest.raises(ValueError, match="needs `network='mlp'`"):
        own.update(X)
    clusterer = nb.InformationClusterer(4, **QUICK | {"max_iter": 4}).fit(X)
    with pytest.raises(ValueError, match="features"):
        clusterer.update(X[:, :1])


def test_a_single_cluster_may_get_a_second():
    X, _ = blobs(300, (0,))
    clusterer = nb.InformationClusterer(1, **QUICK).fit(X)
    new, y = blobs(200, (0, 3), 1)
    clusterer.update(new)
    assert clusterer.n_clusters_ == 2
    assert (clusterer.labels_ == y).mean() > 0.97


def test_more_rows_than_chance_would_make_atypical_are_noticed():
    ordinary = (np.arange(1000) + 0.5) / 1000
    assert not more_than_chance(ordinary, 500)
    assert more_than_chance(np.r_[ordinary, np.full(60, 0.002)], 500)
    assert not more_than_chance(np.full(5, 0.01), 500)  # too few for a cluster
    assert not more_than_chance(np.full(100, 0.2), 10)  # 10 calibration rows cannot detect 1 in 20
    # By chance, 1 in 10 rows may be beyond the farthest of 19 calibration rows; with 999 rows, this cannot happen.
    some = np.r_[ordinary[::5], np.full(15, 0.001)]
    assert not more_than_chance(some, 19)
    assert more_than_chance(some, 999)


def test_ordinary_rows_are_noticed_one_time_in_a_hundred():
    rng = np.random.RandomState(0)
    found = 0
    for _ in range(1000):
        calibration, new = rng.uniform(size=99), rng.uniform(size=400)
        p_values = (1 + (calibration[:, None] >= new).sum(axis=0)) / 100
        found += more_than_chance(p_values, 99)
    assert found <= 20


def test_several_new_groups_are_told_apart():
    rng = np.random.RandomState(0)
    old = rng.normal(size=(400, 3))
    new = np.concatenate(
        [rng.normal(size=(200, 3)), rng.normal((9, 0, 0), 1, (60, 3)), rng.normal((0, 9, 0), 1, (40, 3))]
    )
    p_values = np.r_[rng.uniform(size=200), np.full(100, 0.005)]
    zeros = np.zeros(400, np.int64)
    groups = find_new_groups(old, zeros, new, zeros[:300], p_values, 199, 10)
    assert (groups[:200] == -1).mean() > 0.95
    assert (groups[200:260] == 0).mean() > 0.95
    assert (groups[260:] == 1).mean() > 0.95
    assert (find_new_groups(old, zeros, new, zeros[:300], p_values, 199, 0) == -1).all()


def test_the_reservoir_is_a_fair_sample_of_all_rows():
    rng = np.random.RandomState(0)
    old, new = np.zeros((1000, 1)), np.ones((500, 1))
    mixed = mixed_reservoir(old, 4500, new, rng, at_most=1000)
    assert mixed.shape == (1000, 1)
    assert abs(mixed.mean() - 0.1) < 0.04
    assert mixed_reservoir(old[:300], 300, new, rng, at_most=1000).shape == (800, 1)
    assert mixed_reservoir(old[:300], 300, np.ones((5000, 1)), rng, at_most=1000).shape == (1000, 1)
