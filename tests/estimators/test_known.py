"""Weights, known classes and links of InformationClusterer."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine, make_blobs
from sklearn.metrics import adjusted_rand_score

import neuralbayes as nb

QUICK = {"max_iter": 60, "n_hidden": 32, "random_state": 0}


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(240, centers=[[0, 0], [6, 0], [0, 6], [6, 6]], random_state=0)


def few_of_each(y, n, classes=None):
    known = np.full(len(y), -1)
    for c in np.unique(y) if classes is None else classes:
        known[np.flatnonzero(y == c)[:n]] = c
    return known


@pytest.mark.parametrize("start", ["consensus", "states"])
def test_known_classes_keep_their_numbers(blobs, start):
    X, y = blobs
    settings = QUICK | ({"max_iter": 400} if start == "states" else {})
    clusterer = nb.InformationClusterer(4, start=start, **settings).fit(X, known=few_of_each(y, 2))
    assert (clusterer.labels_ == y).mean() > 0.97
    assert_array_equal(clusterer.labels_, clusterer.predict(X))
    assert_allclose(clusterer.prior_, clusterer.predict_proba(X).mean(axis=0), atol=1e-6)
    assert_array_equal(clusterer.cut(4), clusterer.labels_)


def test_images_take_known_classes_too():
    digits = nb.datasets.load("digits").train
    images, y = digits.images[:400], np.asarray(digits.labels[:400])
    known = few_of_each(y, 5)
    settings = {"max_iter": 160, "n_hidden": 64, "random_state": 0}
    free = nb.InformationClusterer(10, **settings).fit(images)
    clusterer = nb.InformationClusterer(10, **settings).fit(images, known=known)
    rest = known < 0
    assert (clusterer.labels_[~rest] == known[~rest]).mean() > 0.9
    assert (clusterer.labels_[rest] == y[rest]).mean() > nb.clustering_accuracy(free.labels_[rest], y[rest])


def test_clusters_that_are_no_known_class_are_found(blobs):
    X, y = blobs
    known = few_of_each(y, 3, classes=[1, 3])
    clusterer = nb.InformationClusterer(4, **QUICK).fit(X, known=known)
    assert adjusted_rand_score(y, clusterer.labels_) > 0.95
    for c in (1, 3):
        assert (clusterer.labels_[y == c] == c).mean() > 0.95
    for c in (0, 2):
        assert np.isin(clusterer.labels_[y == c], (0, 2)).mean() > 0.95


def test_auto_has_room_for_all_known_classes(blobs):
    X, y = blobs
    known = np.full(len(y), -1)
    known[[0, 1]] = 0, 5
    assert nb.InformationClusterer("auto", **QUICK).fit(X, known=known).n_clusters_ >= 6
    known[2] = 44  # more than the 40 states that "auto" would use
    many = nb.InformationClusterer("auto", start="states", **QUICK).fit(X, known=known)
    assert many.n_clusters_ >= 45
    with pytest.raises(ValueError, match="`n_states` must be at least 45"):
        nb.InformationClusterer("auto", start="states", n_states=40, **QUICK).fit(X, known=known)
    with pytest.raises(ValueError, match="from 0 to n_clusters - 1 = 3, got 44"):
        nb.InformationClusterer(4, **QUICK).fit(X, known=known)


def test_a_few_labels_of_overlapping_classes_help():
    rng = np.random.RandomState(0)
    # The visible clusters are halves along the second column; the classes are halves along the first.
    X = rng.normal(size=(400, 2)) * [1.0, 0.5] + rng.choice([-2.0, 2.0], size=(400, 1)) * [0.0, 1.0]
    y = (X[:, 0] > 0).astype(int)
    known = few_of_each(y, 20)
    rest = known < 0
    free = nb.InformationClusterer(2, **QUICK).fit(X)
    clusterer = nb.InformationClusterer(2, **QUICK).fit(X, known=known)
    assert adjusted_rand_score(y[rest], free.labels_[rest]) < 0.1
    assert adjusted_rand_score(y[rest], clusterer.labels_[rest]) > 0.5


@pytest.mark.parametrize("start", ["consensus", "states"])
def test_links_are_kept_as_a_rule(start):
    X, y = load_wine(return_X_y=True)
    rng = np.random.RandomState(0)
    pairs = rng.randint(len(y), size=(200, 2))
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    links = {"must_link": pairs[same], "cannot_link": pairs[~same]}
    settings = {"standardize": True, "n_hidden": 32, "random_state": 0, "start": start}
    settings["max_iter"] = 300 if start == "states" else 150
    clusterer = nb.InformationClusterer(3, **settings).fit(X, **links)
    a, b = clusterer.labels_[pairs.T]
    assert ((a == b) == same).mean() > 0.9
    assert adjusted_rand_score(y, clusterer.labels_) > 0.8


def test_hints_that_say_nothing_change_nothing(blobs):
    X, _ = blobs
    plain = nb.InformationClusterer(4, **QUICK).fit(X)
    for settings in ({"sample_weight": np.full(len(X), 3.0)}, {"known": np.full(len(X), -1), "must_link": []}):
        other = nb.InformationClusterer(4, **QUICK).fit(X, **settings)
        assert_array_equal(plain.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize("start", ["consensus", "states"])
def test_a_sample_of_weight_zero_is_as_good_as_absent(blobs, start):
    X, _ = blobs
    weight = np.ones(len(X))
    weight[::5] = 0.0
    far = np.where(weight[:, None] > 0, X, X + 100.0)
    settings = QUICK | {"start": start}
    clusterer = nb.InformationClusterer(4, **settings).fit(far, sample_weight=weight)
    absent = nb.InformationClusterer(4, **settings).fit(X[weight > 0], sample_weight=np.ones(int(weight.sum())))
    assert_allclose(clusterer.predict_proba(X), absent.predict_proba(X), atol=1e-12)
    assert_array_equal(clusterer.typicality(X), absent.typicality(X))
    assert_allclose(clusterer.prior_, absent.prior_)
    assert clusterer.labels_.shape == (len(X),)
    assert clusterer.n_samples_seen_ == len(X) - 48


def test_a_sample_of_weight_five_counts_as_five(blobs):
    X, y = blobs
    weight = np.where(y == 2, 5.0, 1.0)
    clusterer = nb.InformationClusterer(4, **QUICK).fit(X, sample_weight=weight)
    repeated = nb.InformationClusterer(4, **QUICK).fit(np.repeat(X, weight.astype(int), axis=0))
    assert adjusted_rand_score(clusterer.labels_, repeated.predict(X)) > 0.97
    assert_allclose(clusterer.prior_, repeated.prior_, atol=0.02)
    assert clusterer.labels_[y == 2][0] == 0  # now the largest
    assert_allclose(clusterer.prior_, np.average(clusterer.predict_proba(X), axis=0, weights=weight), atol=1e-6)
    assert 0.05 < nb.InformationClusterer(4, **QUICK).fit(X).prior_[0] < 0.3


def test_auto_goes_by_the_weights(blobs):
    X, y = blobs
    weight = np.where(y < 2, 1.0, 1e-3)  # two blobs are almost absent
    assert nb.InformationClusterer("auto", **QUICK).fit(X).n_clusters_ == 4
    assert nb.InformationClusterer("auto", **QUICK).fit(X, sample_weight=weight).n_clusters_ == 2


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
        nb.InformationClusterer(4, **QUICK).fit(blobs[0], sample_weight=weight)


def test_fit_predict_takes_hints(blobs):
    X, y = blobs
    labels = nb.InformationClusterer(4, **QUICK).fit_predict(X, known=few_of_each(y, 2))
    assert (labels == y).mean() > 0.95
