"""The consensus of several partitions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from neuralbayes.clusters.consensus import agree, co_association, votes


@pytest.fixture
def rng():
    return np.random.RandomState(0)


def test_votes_are_shares_whatever_the_clusters_are_called():
    reference = np.array([0, 0, 1, 1, 2])
    renamed = np.array([2, 2, 0, 0, 1])
    other = np.array([2, 0, 0, 0, 1])  # the second row changes its cluster
    assert_allclose(
        votes([reference, renamed, other], reference, 3),
        [[1, 0, 0], [2 / 3, 1 / 3, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]],
    )


def test_what_most_partitions_say_is_the_consensus(rng):
    truth = np.repeat([0, 1, 2], 40)
    partitions = []
    for seed in range(5):
        wrong = np.random.RandomState(seed).randint(3, size=120)
        mistaken = np.random.RandomState(seed + 10).uniform(size=120) < 0.15
        partitions.append(np.random.RandomState(seed).permutation(3)[np.where(mistaken, wrong, truth)])
    shares = agree(partitions, 3, rng)
    assert_allclose(shares.sum(axis=1), 1.0)
    apart = [adjusted_rand_score(truth, labels) for labels in partitions]
    assert adjusted_rand_score(truth, shares.argmax(axis=1)) > 0.95 > max(apart)


def test_the_coordinates_are_those_of_the_whole_co_association_matrix(rng):
    partitions = [rng.randint(4, size=50), rng.randint(3, size=50)]
    together = sum((labels[:, None] == labels).astype(float) for labels in partitions)
    scaled = together / np.sqrt(np.outer(together.sum(0), together.sum(0)))
    vectors = np.linalg.eigh(scaled)[1][:, -3:]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    found = co_association(partitions, 3)
    assert_allclose(found @ found.T, unit @ unit.T, atol=1e-8)  # for any signs


def test_a_cluster_that_no_partition_has_is_no_trouble(rng):
    assert_array_equal(agree([np.array([0, 0, 3, 3])] * 2, 4, rng).sum(axis=1), 1.0)
