"""Clustering of rows, which starts from a consensus of simple methods."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score
from torch import nn

import neuralbayes as nb

RNG = np.random.RandomState(0)
Y = np.repeat([0, 1, 2], [150, 100, 50])
X = RNG.standard_normal((300, 4)) @ np.diag([6.0, 1.0, 1.0, 1.0])  # wide along the first column in every cluster
X[:, 1:3] += np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])[Y]


@pytest.fixture(scope="module")
def clusterer():
    return nb.InformationClusterer(3, random_state=0).fit(X)


def test_clusters_of_unequal_size_are_found_across_a_wide_direction(clusterer):
    assert adjusted_rand_score(Y, clusterer.labels_) > 0.95
    assert_array_equal(np.bincount(clusterer.labels_) // 10 * 10, [150, 100, 50])
    assert clusterer.n_states_ == clusterer.n_clusters_ == 3
    assert_allclose(clusterer.prior_, [0.5, 1 / 3, 1 / 6], atol=0.03)
    assert clusterer.n_iter_ == 360
    assert clusterer.n_iter_start_ == 90
    assert ((clusterer.separation_ > 0.3) & (clusterer.separation_ < np.log(2))).all()


def test_the_module_gives_what_the_clusterer_gives(clusterer):
    p_zx = clusterer.predict_proba(X)
    assert_allclose(clusterer.module_(torch.from_numpy(X)).softmax(dim=1), p_zx, atol=1e-6)
    assert_array_equal(clusterer.predict(X), clusterer.labels_)
    assert_array_equal(p_zx.argmax(axis=1), clusterer.labels_)


def test_probabilities_are_no_surer_than_the_votes():
    """Two overlapping Gaussians: the simple methods disagree about rows between them."""
    rows = np.random.RandomState(1).standard_normal((600, 2)) + np.repeat([[0.0, 0.0], [2.5, 0.0]], 300, axis=0)
    fitted = nb.InformationClusterer(2, max_iter=80, n_hidden=32, random_state=0).fit(rows)
    between = np.abs(rows[:, 0] - 1.25) < 0.2
    sure = fitted.predict_proba(rows).max(axis=1)
    assert sure[between].mean() < 0.9 < sure[~between].mean()


def test_auto_counts_and_says_which_valleys():
    fitted = nb.InformationClusterer(random_state=0).fit(X[:, 1:])
    assert fitted.n_clusters_ == 3
    assert fitted.selection_.keys() == {"rows", "p_value"}
    one = nb.InformationClusterer(random_state=0).fit(RNG.standard_normal((200, 3)))
    assert one.n_clusters_ == 1
    assert_array_equal(one.predict_proba(X[:, :3]), 1.0)
    assert one.n_iter_ == 0


def test_a_network_of_ones_own_and_save(tmp_path):
    network = nn.Sequential(nn.Linear(4, 32), nn.BatchNorm1d(32), nn.ReLU())
    fitted = nb.InformationClusterer(3, network=network, random_state=0).fit(X)
    assert adjusted_rand_score(Y, fitted.labels_) > 0.9
    fitted.save(tmp_path / "model")
    again = nb.load(tmp_path / "model", network=nn.Sequential(nn.Linear(4, 32), nn.BatchNorm1d(32), nn.ReLU()))
    assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


def test_several_networks_are_judged_by_the_objective():
    one = nb.InformationClusterer(3, max_iter=16, random_state=0).fit(X)
    best = nb.InformationClusterer(3, n_init=3, max_iter=16, random_state=0).fit(X)
    assert best.objective_ <= one.objective_


@pytest.mark.parametrize("n_clusters", [1, 2, 5])
def test_a_handful_of_rows(n_clusters):
    fitted = nb.InformationClusterer(n_clusters, random_state=0, max_iter=8).fit(X[:5])
    assert fitted.predict_proba(X[:5]).shape == (5, n_clusters)
    assert np.isfinite(fitted.separation_).all()


def test_duplicates_constants_and_one_column():
    rows = np.repeat([[0.0, 7.0], [1.0, 7.0], [5.0, 7.0]], 20, axis=0)
    three = nb.InformationClusterer(3, max_iter=80, n_hidden=32, random_state=0).fit(rows)
    assert adjusted_rand_score(np.repeat([0, 1, 2], 20), three.labels_) == 1
    assert nb.InformationClusterer(2, random_state=0, max_iter=8).fit(rows[:, :1]).n_clusters_ == 2


def test_more_columns_than_rows_and_than_components():
    wide = np.random.RandomState(0).standard_normal((90, 300))
    wide[30:60, :20] += 3.0
    wide[60:, 20:40] += 3.0
    found = nb.InformationClusterer(3, max_iter=80, n_hidden=64, random_state=0).fit(wide)
    assert adjusted_rand_score(np.repeat([0, 1, 2], 30), found.labels_) > 0.9
    assert found.n_dimensions_ == 64


def test_states_are_refused_where_they_do_nothing():
    with pytest.raises(ValueError, match="`n_states` is for start='states', and must be None here, got 8"):
        nb.InformationClusterer(3, n_states=8).fit(X)
    assert nb.InformationClusterer(3, start="states", n_states=8, max_iter=8, random_state=0).fit(X).n_states_ == 8
