"""Samples unlike the training samples, and other numbers of clusters without a new fit."""

import hashlib
import json

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from scipy.stats import betabinom
from torch import nn

import neuralbayes as nb
from neuralbayes import clusters
from neuralbayes.data import toys
from neuralbayes.system.files import read_tensors, write_tensors

QUICK = {"max_iter": 40, "n_hidden": 32, "random_state": 0}


@pytest.fixture(scope="module")
def digits():
    return nb.datasets.load("digits").train


def rows(n, seed, d=5):
    rng = np.random.RandomState(seed)
    return rng.normal(size=(n, d)) + 8.0 * np.eye(d)[rng.randint(3, size=n)]


@pytest.fixture(scope="module")
def clusterer():
    return nb.InformationClusterer(3, start="states", n_states=12, **QUICK).fit(rows(1200, 0))


def rejections(n, share, m):
    """Bound that holds in 9,998 of 10,000 fits: with m calibration rows, the number is beta-binomial for any data."""
    rank = np.floor(share * (m + 1))
    return betabinom(n, rank, m + 1 - rank).ppf([1e-4, 1 - 1e-4])


@pytest.mark.parametrize("max_samples", [60_000, 300])
@pytest.mark.parametrize("share", [0.01, 0.1])
def test_no_more_new_rows_than_promised_are_rejected(max_samples, share):
    X, new = rows(1200, 0), rows(4000, 1)
    labels = nb.InformationClusterer(3, max_samples=max_samples, **QUICK).fit(X).predict(new, reject=share)
    low, high = rejections(4000, share, m=300)
    assert low <= (labels == -1).sum() <= high


def test_a_far_row_is_rejected_and_the_others_keep_their_labels(clusterer):
    new = np.r_[rows(50, 1), [[100.0] * 5, [-1e6, 0, 0, 0, 0], [1e100] * 5]]
    plain, rejected = clusterer.predict(new), clusterer.predict(new, reject=0.01)
    assert rejected[-3:].tolist() == [-1, -1, -1]
    kept = clusterer.typicality(new) > 0.01
    assert_array_equal(rejected, np.where(kept, plain, -1))
    assert (plain >= 0).all()
    assert_array_equal(clusterer.predict(new, reject=0.0), plain)


def test_training_rows_are_as_typical_as_new_ones(clusterer):
    p_values = clusterer.typicality(rows(1200, 0))
    assert abs((p_values <= 0.1).mean() - 0.1) < 0.04
    assert p_values.shape == (1200,)
    assert p_values.min() >= 1 / 301


def test_rows_that_were_not_trained_on_calibrate(monkeypatch):
    noted = []
    inner = clusters.fit_typicality

    def watched(read, seen, *rest):
        noted.append(int(seen.sum()))
        return inner(read, seen, *rest)

    monkeypatch.setattr(clusters, "fit_typicality", watched)
    for max_samples in (300, 1200):
        nb.InformationClusterer(2, max_samples=max_samples, **QUICK | {"max_iter": 2}).fit(rows(1200, 0))
    assert noted == [300, 1200]


def test_rows_of_one_length_are_compared_by_angle_and_another_length_is_atypical(clusterer):
    X = rows(800, 0, d=20)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    embedded = nb.InformationClusterer(3, **QUICK).fit(7.0 * X.astype(np.float16))
    assert abs(embedded.typical_length_ - 7.0) < 0.01
    assert embedded.typical_reference_.shape == (600, 21)
    assert embedded.predict(np.stack([14.0 * X[0], -7.0 * X[0]]), reject=0.01).tolist() == [-1, -1]
    assert clusterer.typical_length_ == 0.0
    far_origin = nb.InformationClusterer(3, **QUICK).fit(rows(800, 0) + 1e6)  # lengths differ little, and so do rows
    assert far_origin.typical_length_ == 0.0


@pytest.mark.parametrize("own", [False, True])
def test_images_have_typicalities_that_come_back_from_a_folder(digits, tmp_path, own):
    def network():
        return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2)) if own else "mlp"

    images = np.random.RandomState(0).permutation(digits.images)  # the digits are sorted by writer
    clusterer = nb.InformationClusterer(4, network=network(), **QUICK).fit(images[:800])
    noise = np.random.RandomState(0).randint(256, size=(9, 8, 8)).astype(np.uint8)
    assert (clusterer.predict(noise, reject=0.01) == -1).all()
    new = images[800:]
    assert (clusterer.predict(new, reject=0.01) == -1).sum() <= rejections(len(new), 0.01, m=200)[1]
    clusterer.save(tmp_path / "model")
    again = nb.load(tmp_path / "model", network=network() if own else None)
    assert_array_equal(again.typicality(new), clusterer.typicality(new))
    assert_array_equal(again.cut(7), clusterer.cut(7))
    assert_array_equal(again.hierarchy_, clusterer.hierarchy_)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("typical_scores_", lambda t: t.flip(0)),
        ("typical_spacing_", lambda t: t[:-1]),
        ("typical_reference_", lambda t: t[:, :-1]),
        ("typical_center_", lambda t: t[:-1]),
        ("typical_center_", lambda t: t.fill_(float("nan"))),
        ("hierarchy_", lambda t: t.flip(0)),
        ("hierarchy_", lambda t: t[:-1]),
        ("states_", lambda t: t + 12),
        ("states_", lambda t: t[:-1]),
        ("typical_components_", lambda t: torch.eye(5)),
    ],
)
def test_a_damaged_typicality_or_hierarchy_is_refused(clusterer, tmp_path, name, change):
    clusterer.save(tmp_path)
    description = json.loads((tmp_path / "model.json").read_text())
    path = tmp_path / description["weights"]
    tensors, _ = read_tensors(path)
    tensors[name] = change(tensors.get(name, torch.zeros(1))).contiguous()
    write_tensors(path, tensors, {})
    description["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (tmp_path / "model.json").write_text(json.dumps(description))
    with pytest.raises(ValueError, match="it may be damaged"):
        nb.load(tmp_path)


def test_cuts_are_nested_and_that_into_the_clusters_is_the_labels():
    X, _ = toys.make_blobs(600, random_state=0)
    clusterer = nb.InformationClusterer(3, start="states", n_states=12, **QUICK).fit(X)
    assert_array_equal(clusterer.cut(3), clusterer.labels_)
    assert clusterer.hierarchy_.shape == (11, 4)
    assert (clusterer.cut(1) == 0).all()
    for k in range(2, 13):
        finer, coarser = clusterer.cut(k), clusterer.cut(k - 1)
        assert len({*zip(finer.tolist(), coarser.tolist(), strict=True)}) == len(np.unique(finer)) <= k
        if k != 3:  # labels_ are in the order of p(z)
            assert (np.diff(np.bincount(finer, minlength=k)) <= 0).all()
    assert_array_equal(np.unique(clusterer.cut(12)), np.arange(len(np.unique(clusterer.states_))))


def test_states_are_the_most_probable_ones_of_their_cluster():
    X = rows(300, 0)
    clusterer = nb.InformationClusterer(3, start="states", **QUICK).fit(X)
    network = clusterer.module_
    logits = network.network(network.normalize(torch.from_numpy(X))).numpy()
    for x, label, state in zip(logits, clusterer.labels_, clusterer.states_, strict=True):
        own = np.flatnonzero(network.membership[:, label])
        assert state == own[x[own].argmax()]


@pytest.mark.parametrize("k", [0, 13, 2.5, True, "3"])
def test_a_bad_number_of_clusters_is_named(clusterer, k):
    with pytest.raises(ValueError, match=f"`k` must be a whole number from 1 to n_states_=12, got {k!r}"):
        clusterer.cut(k)


@pytest.mark.parametrize("reject", [-0.1, 1.0, float("nan"), True, "0.1"])
def test_a_bad_share_is_named(clusterer, reject):
    with pytest.raises(ValueError, match=f"`reject` must be at least 0 and below 1, got {reject!r}"):
        clusterer.predict(rows(3, 1), reject=reject)
