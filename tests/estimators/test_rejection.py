"""Samples unlike the training samples: typicality and rejection."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import betabinom
from torch import nn

import neuralbayes as nb


def rows(n, seed, d=5):
    rng = np.random.RandomState(seed)
    return rng.normal(size=(n, d)) + 8.0 * np.eye(d)[rng.randint(3, size=n)]


@pytest.fixture(scope="module")
def clusterer():
    return nb.InformationClusterer(3, random_state=0).fit(rows(1200, 0))


def rejections(n, share, m):
    """Bounds that hold in 9,998 of 10,000 fits: with m calibration rows, the number is beta-binomial for any data."""
    rank = np.floor(share * (m + 1))
    return betabinom(n, rank, m + 1 - rank).ppf([1e-4, 1 - 1e-4])


@pytest.mark.parametrize("share", [0.01, 0.1])
def test_no_more_new_rows_than_promised_are_rejected(clusterer, share):
    labels = clusterer.predict(rows(4000, 1), reject=share)
    low, high = rejections(4000, share, m=clusterer.typicality_.n_calibration)
    assert low <= (labels == -1).sum() <= high


def test_a_far_row_is_rejected_and_the_others_keep_their_labels(clusterer):
    new = np.r_[rows(50, 1), [[100.0] * 5, [-1e6, 0, 0, 0, 0], [1e100] * 5]]
    plain, rejected = clusterer.predict(new), clusterer.predict(new, reject=0.01)
    assert rejected[-3:].tolist() == [-1, -1, -1]
    assert (plain >= 0).all()
    assert_array_equal(rejected, np.where(clusterer.typicality(new) > 0.01, plain, -1))
    with pytest.raises(ValueError, match="`reject`"):
        clusterer.predict(new, reject=1e-4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # few steps leave clusters empty
@pytest.mark.parametrize("own", [False, True])
def test_images_have_typicalities_that_come_back_from_a_folder(tmp_path, own):
    def network():
        return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2)) if own else None

    images = np.random.RandomState(0).permutation(nb.datasets.load("digits").train.images)  # sorted by writer
    clusterer = nb.InformationClusterer(4, network=network(), max_iter=20, n_hidden=32, random_state=0)
    clusterer.fit(images[:800])
    noise = np.random.RandomState(0).randint(256, size=(9, 8, 8)).astype(np.uint8)
    assert (clusterer.predict(noise, reject=0.01) == -1).all()
    new = images[800:]
    assert (clusterer.predict(new, reject=0.01) == -1).sum() <= rejections(len(new), 0.01, m=800)[1]
    clusterer.save(tmp_path / "model")
    assert_array_equal(nb.load(tmp_path / "model", network=network()).typicality(new), clusterer.typicality(new))
