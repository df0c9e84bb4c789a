"""Clusters of features instead of the samples, from one network or several."""

import numpy as np
import pytest

import neuralbayes as nb

RNG = np.random.default_rng(0)
CLASSES = np.arange(120) % 3
F = RNG.normal(size=(120, 4)) * 0.3 + 5 * np.eye(4)[CLASSES]
G = 1000.0 * (RNG.normal(size=(120, 2)) * 0.3 + np.array([[0, 0], [0, 4], [4, 0]])[CLASSES])
SENTENCES = [f"sentence {i}" for i in range(120)]


def clusterer():
    return nb.InformationClusterer(3, max_iter=60, n_hidden=16, random_state=0)


def test_features_take_the_place_of_what_they_are_features_of():
    found = clusterer().fit(SENTENCES, features=F)
    np.testing.assert_array_equal(found.labels_, clusterer().fit(F).labels_)
    np.testing.assert_array_equal(found.predict(F), found.labels_)


def test_several_spaces_count_the_same(tmp_path):
    found = clusterer().fit(SENTENCES, features=[F, G])
    assert nb.clustering_accuracy(found.labels_, CLASSES) > 0.95
    totals = [
        float((space * scale).var(axis=0).sum()) for space, scale in zip([F, G], found.feature_scales_, strict=True)
    ]
    np.testing.assert_allclose(totals, 1.0)
    np.testing.assert_array_equal(found.predict([F, G]), found.labels_)
    found.save(tmp_path / "model")
    again = nb.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba([F[:5], G[:5]]), found.predict_proba([F[:5], G[:5]]))
    with pytest.raises(ValueError, match="X must have 2 feature spaces, as in fit, got 1"):
        found.predict([F])


@pytest.mark.parametrize(
    ("X", "features", "message"),
    [
        (SENTENCES[:7], F, "`features` must have a row for each of 7 samples, got 120 rows"),
        (SENTENCES, [F, G[:5]], r"`features\[1\]` must have shape \(120, n_features\)"),
        (SENTENCES, [F, 0 * G], r"`features\[1\]` must be finite and have rows that differ"),
    ],
)
def test_wrong_features_are_named(X, features, message):
    with pytest.raises(ValueError, match=message):
        clusterer().fit(X, features=features)
