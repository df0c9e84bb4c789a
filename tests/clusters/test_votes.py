"""Votes of simple methods, and their consensus."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from neuralbayes.clusters.known import NO_HINTS
from neuralbayes.clusters.space import make_space, scalings
from neuralbayes.clusters.votes import agree, co_association, embedding_votes, matched_shares, table_votes


@pytest.fixture
def rng():
    return np.random.RandomState(0)


def test_votes_are_shares_whatever_the_clusters_are_called():
    reference = np.array([0, 0, 1, 1, 2])
    renamed = np.array([2, 2, 0, 0, 1])
    other = np.array([2, 0, 0, 0, 1])  # the second row changes its cluster
    assert_allclose(
        matched_shares([reference, renamed, other], reference, 3),
        [[1, 0, 0], [2 / 3, 1 / 3, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]],
    )


def test_what_most_partitions_say_is_the_consensus(rng):
    truth = np.repeat([0, 1, 2], 40)
    partitions = []
    for seed in range(5):
        wrong = np.random.RandomState(seed).randint(3, size=120)
        mistaken = np.random.RandomState(seed + 10).uniform(size=120) < 0.15
        partitions.append(np.random.RandomState(seed).permutation(3)[np.where(mistaken, wrong, truth)])
    consensus, shares = agree(partitions, 3, rng)
    assert_allclose(shares.sum(axis=1), 1.0)
    apart = [adjusted_rand_score(truth, labels) for labels in partitions]
    assert_array_equal(consensus, shares.argmax(axis=1))
    assert adjusted_rand_score(truth, consensus) > 0.95 > max(apart)


def test_the_coordinates_are_those_of_the_whole_co_association_matrix(rng):
    partitions = [rng.randint(4, size=50), rng.randint(3, size=50)]
    together = sum((labels[:, None] == labels).astype(float) for labels in partitions)
    scaled = together / np.sqrt(np.outer(together.sum(0), together.sum(0)))
    vectors = np.linalg.eigh(scaled)[1][:, -3:]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    found = co_association(partitions, 3)
    assert_allclose(found @ found.T, unit @ unit.T, atol=1e-8)  # for any signs


def test_a_consensus_has_all_its_clusters(rng):
    """A small cluster that half of the partitions see does not vanish."""
    partitions = [np.repeat([0, 1, 2], [40, 40, 6]), np.repeat([0, 1, 1], [40, 40, 6])]
    assert set(agree(partitions, 3, rng)[0]) == {0, 1, 2}


def test_mixtures_vote_for_long_clusters_in_every_scaling(rng):
    y = np.repeat([0, 1], 200)
    X = rng.standard_normal((400, 3)) * [8.0, 1.0, 1.0] + 5.0 * y[:, None] * [0.0, 1.0, 0.0]
    spaces = [make_space(scaled, rng)[0] for scaled in scalings(X)[0].values()]
    votes = table_votes(spaces, 2, rng, NO_HINTS)
    assert len(votes) == 8
    assert np.mean([adjusted_rand_score(y, vote) > 0.9 for vote in votes]) >= 0.75


def test_embeddings_are_divided_by_direction(rng):
    y = np.repeat(np.arange(6), 50)
    rows = 4.0 * np.eye(6, 40)[y] + rng.standard_normal((300, 40))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    votes = embedding_votes(rows.astype(np.float32), 6, rng, NO_HINTS)
    assert len(votes) == 3
    assert min(adjusted_rand_score(y, vote) for vote in votes) > 0.8
