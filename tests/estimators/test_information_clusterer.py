"""Clusters of rows that may touch: tables, embeddings and pixels."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import neuralbayes as nb

Y = np.repeat([0, 1, 2], [150, 100, 50])
X = np.random.RandomState(0).standard_normal((300, 4)) * [6.0, 1.0, 1.0, 1.0]  # wide in every cluster
X[:, 1:3] += np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])[Y]
FEW_STEPS = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # they leave clusters empty


def fit(rows, n_clusters="auto", seed=0, **settings):
    return nb.InformationClusterer(n_clusters, random_state=seed, **settings).fit(rows)


@pytest.fixture(scope="module")
def clusterer():
    return fit(X, 3)


@pytest.fixture(scope="module")
def embedded():
    """Four directions in 40 columns, and the clusterer that counted them."""
    rows, y = make_blobs(400, n_features=40, centers=4, cluster_std=3.0, random_state=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return fit(rows, max_iter=60, n_hidden=32, max_clusters=8), rows, y


def test_clusters_of_unequal_size_are_found_across_a_wide_direction(clusterer):
    assert adjusted_rand_score(Y, clusterer.labels_) > 0.95
    assert_array_equal(np.bincount(clusterer.labels_) // 10 * 10, [150, 100, 50])  # the largest first
    assert_allclose(clusterer.prior_, [0.5, 1 / 3, 1 / 6], atol=0.03)
    assert ((clusterer.separation_ > 0.3) & (clusterer.separation_ < np.log(2))).all()


def test_valleys_make_clusters():
    fitted = fit(X)
    assert (fitted.n_clusters_, fitted.verdict_) == (3, "clusters")
    assert fitted.selection_.keys() == {"rows", "p_value"}
    assert fitted.selection_["rows"][0] == 300
    assert max(fitted.selection_["p_value"]) < 0.1
    assert fitted.stability_ > 0.9
    assert (fitted.cluster_stability_ > 0.9).all()
    assert fit(X, max_clusters=2).n_clusters_ == 2


def test_a_given_number_has_a_verdict():
    assert [fit(X, k).verdict_ for k in (1, 2, 3, 4)] == ["none", "clusters", "clusters", "segments"]
    assert fit(np.random.RandomState(0).normal(size=(300, 2)), 3).verdict_ == "segments"


@pytest.mark.parametrize("draw", ["normal", "uniform"])
def test_a_continuum_is_divided_into_segments_or_not_at_all(draw):
    rows = getattr(np.random.RandomState(0), draw)(size=(300, 2))
    fitted = fit(rows)
    assert fitted.verdict_ == "segments"
    assert fitted.n_clusters_ > 1
    assert fitted.selection_.keys() == {"n_clusters", "agreement", "silhouette"}
    assert 0.0 <= fitted.stability_ < fit(X).stability_ <= 1.0
    assert ((fitted.cluster_stability_ >= 0.0) & (fitted.cluster_stability_ <= 1.0)).all()


def test_noise_in_many_dimensions_is_one_cluster():
    rows = np.random.RandomState(0).normal(size=(300, 20))
    fitted = fit(rows)
    assert (fitted.n_clusters_, fitted.verdict_) == (1, "none")
    assert max(fitted.selection_["agreement"]) < 0.3
    assert_array_equal(fitted.predict_proba(rows), 1.0)


def test_auto_counts_embeddings(embedded):
    fitted, rows, y = embedded
    assert fitted.kind_ == "embeddings"
    assert fitted.kind_reason_ == "rows of one length"
    assert fitted.posterior_.kind == "network"
    assert (fitted.n_clusters_, fitted.verdict_) == (4, "clusters")
    assert fitted.selection_.keys() == {"n_clusters", "agreement"}
    assert adjusted_rand_score(y, fitted.labels_) > 0.95
    assert fitted.stability_ > 0.9
    assert fitted.n_iter_ == 60
    assert len(fitted.loss_curve_) == 20
    assert_array_equal(fitted.predict(rows), fitted.labels_)


def test_pixels_get_a_network_if_there_are_many_clusters():
    digits = nb.datasets.load("digits").train
    rows, y = digits.images[:500].reshape(500, -1).astype(float), digits.labels[:500]
    fitted = fit(rows, 10, max_iter=150, n_hidden=64)
    assert fitted.kind_ == "pixels"
    assert fitted.posterior_.kind == "network"
    assert nb.clustering_accuracy(fitted.labels_, y) > 0.7
    assert fit(rows, 3).posterior_.kind == "quadratic"


def test_cuts_are_nested_and_that_into_the_clusters_is_the_labels():
    fitted = fit(X, 8)
    assert fitted.hierarchy_.shape == (7, 4)
    assert_array_equal(fitted.cut(8), fitted.labels_)
    assert (fitted.cut(1) == 0).all()
    for k in range(2, 9):
        finer, coarser = fitted.cut(k), fitted.cut(k - 1)
        assert len({*zip(finer.tolist(), coarser.tolist(), strict=True)}) == len(np.unique(finer)) <= k
        if k != 8:  # labels_ are in the order of p(z)
            assert (np.diff(np.bincount(finer, minlength=k)) <= 0).all()
    for k in (0, 9, 2.5, True, "3"):
        with pytest.raises(ValueError, match="`k`"):
            fitted.cut(k)


def test_one_row_that_is_repeated_very_often_is_a_cluster_and_hides_no_other():
    rows = np.concatenate([X, np.repeat(X[:1], 150, axis=0)])
    for seed in range(2):
        assert adjusted_rand_score(np.append(Y, np.full(150, 3)), fit(rows, seed=seed).labels_) > 0.95


@pytest.mark.parametrize("n_clusters", [4, "auto"])
def test_a_number_that_stands_for_missing_ones_does_not_hide_the_clusters(n_clusters):
    rows, y = make_blobs(300, n_features=4, centers=4, random_state=1)
    missing = np.random.RandomState(0).uniform(size=300) < 0.1
    rows[:, 3] = np.where(missing, -999.0, np.random.RandomState(1).normal(size=300))
    fitted = fit(rows, n_clusters)
    assert fitted.n_clusters_ == 4
    assert adjusted_rand_score(y, fitted.labels_) > 0.9


def test_a_number_of_clusters_that_cannot_be_filled_is_said():
    rows, y = np.repeat([[0.0, 7.0], [1.0, 7.0], [5.0, 7.0]], 20, axis=0), np.repeat([0, 1, 2], 20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert adjusted_rand_score(y, fit(rows, 3).labels_) == 1.0
        assert fit(rows[:, :1], 2).n_clusters_ == 2
    with pytest.warns(ConvergenceWarning, match="`n_clusters` is 5, but the samples fill only 3"):
        fitted = fit(rows, 5)
    assert fitted.n_clusters_ == 5
    assert len(np.unique(fitted.labels_)) == 3


@pytest.mark.parametrize(
    ("settings", "rows", "words"),
    [
        ({"n_states": 8}, X, "`n_states`"),
        ({"network": "mlp"}, X, "'network'"),
        ({"n_clusters": 6}, X[:5], "n_samples=5 should be >= 6"),
        ({}, np.ones((9, 3)), "2 distinct samples"),
    ],
)
def test_bad_settings_and_rows_are_named(settings, rows, words):
    with pytest.raises(ValueError, match=words):
        nb.InformationClusterer(**settings).fit(rows)
