"""Weights, known classes and links of InformationClusterer."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine, make_blobs
from sklearn.metrics import adjusted_rand_score

import neuralbayes as nb

NAMES = np.array(["ant", "bee", "cat", "dog"])


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(240, centers=[[0, 0], [6, 0], [0, 6], [6, 6]], random_state=0)


def few_of_each(y, n, classes=None):
    known = np.full(len(y), -1)
    for c in np.unique(y) if classes is None else classes:
        known[np.flatnonzero(y == c)[:n]] = c
    return known


def fit(X, n_clusters=4, **hints):
    return nb.InformationClusterer(n_clusters, random_state=0).fit(X, **hints)


def test_known_classes_keep_their_numbers(blobs):
    X, y = blobs
    known = few_of_each(y, 2)
    clusterer = fit(X, known=known)
    assert (clusterer.labels_ == y).mean() > 0.97
    assert_array_equal(clusterer.labels_, clusterer.predict(X))
    assert_allclose(clusterer.prior_, clusterer.predict_proba(X).mean(axis=0))
    assert_array_equal(clusterer.cut(4), clusterer.labels_)
    assert not hasattr(clusterer, "class_names_")
    assert_array_equal(nb.InformationClusterer(4, random_state=0).fit_predict(X, known=known), clusterer.labels_)


@pytest.mark.parametrize("missing", [None, np.nan, ""])
def test_known_classes_may_be_names(blobs, tmp_path, missing):
    X, y = blobs
    known = few_of_each(y, 2, classes=[1, 3])
    names = np.where(known < 0, missing, NAMES[known].astype(object))
    clusterer = fit(X, known=names)
    assert clusterer.class_names_ == ["bee", "dog"]  # which are the clusters 0 and 1
    assert (clusterer.labels_[y == 1] == 0).mean() > 0.97
    assert (clusterer.labels_[y == 3] == 1).mean() > 0.97
    clusterer.save(tmp_path / "model")
    assert nb.load(tmp_path / "model").class_names_ == ["bee", "dog"]
    assert not hasattr(clusterer.fit(X), "class_names_")


def test_clusters_that_are_no_known_class_are_found(blobs):
    X, y = blobs
    labels = fit(X, known=few_of_each(y, 3, classes=[1, 3])).labels_
    assert adjusted_rand_score(y, labels) > 0.95
    for c in (1, 3):
        assert (labels[y == c] == c).mean() > 0.95
    for c in (0, 2):
        assert np.isin(labels[y == c], (0, 2)).mean() > 0.95


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # classes between 0 and 5 have no rows
def test_auto_has_room_for_all_known_classes(blobs):
    X, y = blobs
    known = np.full(len(y), -1)
    known[[0, 1]] = 0, 5
    assert fit(X, "auto", known=known).n_clusters_ >= 6
    known[2] = 44
    with pytest.raises(ValueError, match="known"):
        fit(X, known=known)


def test_links_are_kept_as_a_rule():
    X, y = load_wine(return_X_y=True)
    rng = np.random.RandomState(0)
    pairs = rng.randint(len(y), size=(200, 2))
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    clusterer = fit(X, 3, must_link=pairs[same], cannot_link=pairs[~same])
    a, b = clusterer.labels_[pairs.T]
    assert ((a == b) == same).mean() > 0.9
    assert adjusted_rand_score(y, clusterer.labels_) > 0.8


def test_hints_that_say_nothing_change_nothing(blobs):
    X, _ = blobs
    plain = fit(X)
    for hints in ({"sample_weight": np.full(len(X), 3.0)}, {"known": np.full(len(X), -1), "must_link": []}):
        assert_array_equal(plain.predict_proba(X), fit(X, **hints).predict_proba(X))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_a_sample_of_weight_zero_is_as_good_as_absent(blobs, make):
    X, _ = blobs
    if make is sp.csr_array:  # of more columns than are kept
        X = np.hstack([X, np.random.RandomState(0).poisson(0.05, (len(X), 120))])
    weight = np.ones(len(X))
    weight[::5] = 0.0
    far = np.where(weight[:, None] > 0, X, X + 100.0)
    clusterer = fit(make(far), sample_weight=weight)
    absent = fit(make(X[weight > 0]), sample_weight=np.ones(int(weight.sum())))
    assert_allclose(clusterer.predict_proba(make(X)), absent.predict_proba(make(X)), atol=1e-9)
    assert_allclose(clusterer.typicality(make(X)), absent.typicality(make(X)))
    assert_allclose(clusterer.prior_, absent.prior_)
    assert clusterer.labels_.shape == (len(X),)
    assert clusterer.n_samples_seen_ == len(X) - 48


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_a_sample_of_weight_five_counts_as_five(blobs, make):
    X, y = make(blobs[0]), blobs[1]
    weight = np.where(y == 2, 5.0, 1.0)
    clusterer = fit(X, sample_weight=weight)
    repeated = fit(make(np.repeat(blobs[0], weight.astype(int), axis=0)))
    assert adjusted_rand_score(clusterer.labels_, repeated.predict(X)) > 0.97
    assert_allclose(clusterer.prior_, repeated.prior_, atol=0.02)
    assert clusterer.labels_[y == 2][0] == 0  # now the largest
    assert_allclose(clusterer.prior_, np.average(clusterer.predict_proba(X), axis=0, weights=weight), atol=1e-6)


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ([1.0, 2.0], "sample_weight"),
        (np.full(240, -1.0), "[Nn]egative"),
        (np.full(240, np.nan), "NaN"),
        (np.zeros(240), "zero|positive"),
        (np.r_[np.ones(3), np.zeros(237)], "n_samples=3 should be >= 4"),
    ],
)
def test_bad_weights_are_refused(blobs, weight, words):
    with pytest.raises(ValueError, match=words):
        fit(blobs[0], sample_weight=weight)
