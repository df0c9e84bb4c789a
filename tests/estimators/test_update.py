"""New samples for a fitted InformationClusterer."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import is_valid_linkage
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from torch import nn

import neuralbayes as nb

QUICK = "ignore::sklearn.exceptions.ConvergenceWarning"  # few steps leave clusters empty
CENTERS = np.array([[0, 0], [8, 0], [0, 8], [8, 8]])


def blobs(n, which=(0, 1, 2, 3), seed=0):
    return make_blobs(n, centers=CENTERS[list(which)], random_state=seed)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "model"
    X, _ = blobs(600, (0, 1, 2))
    nb.InformationClusterer(3, random_state=0).fit(X).save(folder)
    return X, folder


def test_a_new_group_gets_a_new_label_and_old_ones_keep_theirs(fitted):
    X, folder = fitted
    clusterer = nb.load(folder)
    before = clusterer.predict(X)
    new, y = blobs(400, seed=1)
    old_labels = clusterer.predict(new)
    assert (clusterer.typicality(new[y == 3]) < 0.05).all()
    assert clusterer.update(new) is clusterer
    assert clusterer.n_clusters_ == clusterer.n_states_ == 4
    assert (clusterer.predict(X) == before).mean() > 0.99
    assert (clusterer.labels_[y == 3] == 3).mean() > 0.97
    assert (clusterer.labels_[y != 3] == old_labels[y != 3]).mean() > 0.97
    assert_array_equal(clusterer.labels_, clusterer.predict(new))
    assert_array_equal(clusterer.cut(4), clusterer.labels_)
    assert is_valid_linkage(clusterer.hierarchy_)
    assert len(clusterer.states_) == len(clusterer.labels_) == 400
    assert_allclose(clusterer.prior_, [0.3, 0.3, 0.3, 0.1], atol=0.01)  # 100 of 1,000
    assert clusterer.separation_.shape == (4,)
    assert (clusterer.cluster_stability_ > 0.9).all()
    assert clusterer.n_samples_seen_ == 1000 == len(clusterer.reservoir_)
    later, _ = blobs(2000, seed=2)  # the new group is typical now
    assert abs((clusterer.typicality(later) <= 0.1).mean() - 0.1) < 0.05


def test_probabilities_are_as_calibrated_as_after_a_fit_of_all_rows():
    centers = [[0.0, 0.0], [3.0, 0.0]]  # they overlap, and 6.7 % of the rows lie on the wrong side
    X, _ = make_blobs(1200, centers=centers, random_state=0)
    clusterer = nb.InformationClusterer(2, random_state=0).fit(X[:600])
    sure = clusterer.predict_proba(X).max(axis=1).mean()
    clusterer.update(X[600:])
    assert abs(clusterer.predict_proba(X).max(axis=1).mean() - sure) < 0.02
    assert abs(sure - 0.933) < 0.03


def test_ordinary_samples_and_those_beyond_max_clusters_give_no_new_label(fitted):
    for seed in range(1, 6):
        assert nb.load(fitted[1]).update(blobs(300, (0, 1, 2), seed)[0]).n_clusters_ == 3
    limited = nb.load(fitted[1]).set_params(max_clusters=3)
    assert limited.update(blobs(400, seed=1)[0]).n_clusters_ == 3
    shifted = nb.load(fitted[1]).update(blobs(500, (1,), 1)[0])
    assert shifted.n_clusters_ == 3
    assert shifted.prior_.max() > 0.4


def test_an_updated_model_is_saved_loaded_and_updated_again(fitted, tmp_path):
    X, folder = fitted
    new, _ = blobs(400, seed=1)
    clusterer = nb.load(folder).update(new)
    assert_array_equal(nb.load(folder).update(new).predict_proba(new), clusterer.predict_proba(new))
    clusterer.save(tmp_path / "model")
    again = nb.load(tmp_path / "model")
    assert_array_equal(again.predict_proba(X), clusterer.predict_proba(X))
    assert_array_equal(again.typicality(X), clusterer.typicality(X))
    before = again.predict(X)
    again.update(np.random.RandomState(0).normal((16, 0), 1, (80, 2)))
    assert again.n_clusters_ == 5
    assert set(again.labels_) == {4}
    assert (again.predict(X) == before).mean() > 0.99


def test_a_single_cluster_may_get_a_second():
    clusterer = nb.InformationClusterer(1, random_state=0).fit(blobs(300, (0,))[0])
    assert clusterer.verdict_ == "none"
    new, y = blobs(200, (0, 3), 1)
    clusterer.update(new)
    assert clusterer.verdict_ == "segments"
    assert clusterer.n_clusters_ == 2
    assert (clusterer.labels_ == y).mean() > 0.97


@pytest.mark.filterwarnings(QUICK)
def test_networks_are_updated_too():
    digits = nb.datasets.load("digits").train
    images, y = digits.images[:400], np.asarray(digits.labels[:400])
    clusterer = nb.InformationClusterer(9, max_iter=120, n_hidden=64, random_state=0).fit(images[y != 0])
    before = clusterer.labels_
    clusterer.set_params(max_iter=40).update(images)
    assert (clusterer.predict(images[y != 0]) == before).mean() > 0.9
    X, y = make_blobs(500, n_features=40, centers=4, random_state=0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    embedded = nb.InformationClusterer(3, max_iter=80, n_hidden=32, random_state=0).fit(X[y != 3])
    assert embedded.kind_ == "embeddings"
    embedded.update(X)
    assert embedded.n_clusters_ == 4
    assert (embedded.typicality(X) <= 0.1).mean() < 0.2


@pytest.mark.filterwarnings(QUICK)
def test_what_cannot_be_updated_is_refused(fitted):
    X, folder = fitted
    with pytest.raises(NotFittedError):
        nb.InformationClusterer(4).update(X)
    own = nb.InformationClusterer(4, network=nn.Linear(2, 8), max_iter=4, random_state=0).fit(X[:60])
    with pytest.raises(ValueError, match="network"):
        own.update(X)
    with pytest.raises(ValueError, match="features"):
        nb.load(folder).update(X[:, :1])
