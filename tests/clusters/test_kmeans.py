"""k-means from Ward's clusters of cells, and Ward's criterion with sizes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from neuralbayes.clusters.merging import cut
from neuralbayes.clusters.votes import kmeans, ward


@pytest.fixture
def rng():
    return np.random.RandomState(0)


def test_cells_of_one_point_are_merged_as_scipy_merges_points(rng):
    x = rng.standard_normal((60, 4))
    tree, expected = ward(x, np.ones(60)), linkage(x, "ward")
    assert_allclose(tree, expected)
    for n_clusters in (1, 2, 7, 60):
        last = np.r_[0.0, expected[:, 2]][60 - n_clusters]  # of the mergings, by height
        labels = fcluster(expected, last, "distance")
        assert adjusted_rand_score(cut(tree, n_clusters), labels) == 1.0


def test_a_cell_counts_as_often_as_it_has_points(rng):
    x = rng.standard_normal((12, 2))
    sizes = rng.randint(1, 4, size=12)
    repeated = linkage(np.repeat(x, sizes, axis=0), "ward")
    assert_allclose(ward(x, sizes.astype(float))[:, 2], repeated[-11:, 2])


def inertia(x, labels):
    return sum(np.square(x[labels == k] - x[labels == k].mean(axis=0)).sum() for k in np.unique(labels))


def test_many_clusters_get_a_smaller_sum_of_squares_than_random_starts_give(rng):
    centers = 10 * rng.standard_normal((100, 3))
    x = np.repeat(centers, 20, axis=0) + rng.standard_normal((2000, 3))
    ours, theirs = kmeans(x, 100, rng), KMeans(100, n_init=3, random_state=0).fit(x)
    assert len(np.unique(ours)) == 100
    assert inertia(x, ours) < theirs.inertia_


def test_fewer_distinct_points_than_clusters(rng):
    labels = kmeans(np.repeat([[0.0], [1.0]], 5, axis=0), 2, rng)
    assert len(np.unique(labels)) == 2
    assert kmeans(np.zeros((6, 2)), 3, rng).shape == (6,)
