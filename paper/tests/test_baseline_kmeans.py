"""k-means on pixels and features, and the evaluation of clusters."""

from itertools import permutations

import numpy as np
import pytest
from image_cases import bars
from paper.baselines import RandomConfig, clustering_accuracy, kmeans, random

from neuralbayes.data.sources import ArraySource, Images


def halves(n=60, seed=0):
    """Make pictures that are bright above or below."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 2)
    images = rng.integers(0, 60, (n, 24, 24, 1))
    images[y == 0, :12] += 150
    images[y == 1, 12:] += 150
    return images.astype(np.uint8), y


@pytest.mark.parametrize("batch_size", [None, 20])
def test_pixels_features_and_given_features_are_clustered(batch_size):
    images, y = halves()
    encoder = random(images, RandomConfig(encoder="tiny"))
    fresh, truth = halves(20, seed=1)
    for data, new, settings in (
        (images, fresh, {}),
        (images, fresh, {"encoder": encoder, "state": "relu2"}),
        (Images("halves", "train", ArraySource(images)), ArraySource(fresh), {}),
        (images.reshape(60, -1) / 255.0, fresh.reshape(20, -1) / 255.0, {}),
    ):
        clusters = kmeans(data, 2, batch_size=batch_size, n_init=3, **settings)
        assert clustering_accuracy(clusters.labels, y) == 1.0
        assert clustering_accuracy(clusters.predict(new), truth) == 1.0
        assert len(clusters.centers) == 2


def test_the_seed_decides_and_labels_are_those_of_the_nearest_centers():
    images, _ = bars(40)
    first, again = (kmeans(images, 4, n_init=1, seed=3) for _ in range(2))
    assert np.array_equal(first.labels, again.labels)
    x = images.reshape(40, -1) / 255.0
    squares = ((x[:, None] - first.centers) ** 2).sum(-1)
    assert np.array_equal(first.labels, squares.argmin(1))
    assert first.inertia == pytest.approx(squares.min(1).sum(), rel=1e-4)


def test_accuracy_is_that_of_the_best_matching():
    rng = np.random.default_rng(0)
    for n_labels, n_classes in ((4, 4), (3, 4), (4, 3)):
        labels, truth = rng.integers(0, n_labels, 50), rng.integers(0, n_classes, 50)
        names = range(max(n_labels, n_classes))
        best = max(float((np.array(order)[labels] == truth).mean()) for order in permutations(names))
        assert clustering_accuracy(labels, truth) == pytest.approx(best)


@pytest.mark.parametrize(
    ("labels", "truth", "message"),
    [
        (np.zeros(3, int), np.zeros(4, int), "must be of one length"),
        (np.zeros(0, int), np.zeros(0, int), "must be of one length of at least 1"),
        (np.array([-1, 0]), np.array([0, 1]), "`labels` must be integers from 0"),
        (np.array([0, 1]), np.array([0.0, 1.0]), "`truth` must be integers from 0, got float64"),
    ],
)
def test_labels_that_cannot_be_compared_are_refused(labels, truth, message):
    with pytest.raises(ValueError, match=message):
        clustering_accuracy(labels, truth)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_clusters": 0}, "`n_clusters` must be at least 1, got 0"),
        ({"n_clusters": 41}, "`n_clusters` must be at most the number of points, 40, got 41"),
        ({"n_clusters": 2, "n_init": 0}, "`n_init` must be at least 1"),
        ({"n_clusters": 2, "batch_size": 0}, "`batch_size` must be at least 1"),
    ],
)
def test_a_wrong_setting_is_named(settings, message):
    with pytest.raises(ValueError, match=message):
        kmeans(bars(40)[0], **settings)


def test_features_and_an_encoder_contradict_each_other():
    encoder = random(bars(8)[0], RandomConfig(encoder="tiny"))
    with pytest.raises(ValueError, match="`data` must be images if an encoder is given"):
        kmeans(np.zeros((8, 3)), 2, encoder=encoder)
