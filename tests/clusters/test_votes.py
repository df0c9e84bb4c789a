"""Votes of simple methods, k-means, mixtures with their quadratic posteriors, and the consensus."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.special import softmax
from scipy.stats import multivariate_normal
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from neuralbayes.clusters.known import NO_HINTS
from neuralbayes.clusters.merging import cut
from neuralbayes.clusters.posterior import Quadratic
from neuralbayes.clusters.space import make_space, scalings
from neuralbayes.clusters.votes import (
    agree,
    co_association,
    embedding_votes,
    fit_mixture,
    kmeans,
    matched_shares,
    maximize,
    table_votes,
    ward,
)


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


def test_microclusters_of_one_point_are_merged_as_scipy_merges_points(rng):
    x = rng.standard_normal((60, 4))
    tree, expected = ward(x, np.ones(60)), linkage(x, "ward")
    assert_allclose(tree, expected)
    for n_clusters in (1, 2, 7, 60):
        last = np.r_[0.0, expected[:, 2]][60 - n_clusters]  # of the mergings, by height
        labels = fcluster(expected, last, "distance")
        assert adjusted_rand_score(cut(tree, n_clusters), labels) == 1.0


def test_a_microcluster_counts_as_often_as_it_has_points(rng):
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


def test_a_mixture_finds_gaussians_and_does_not_collapse_on_codes(rng):
    y = np.repeat([0, 1], 300)
    X = rng.standard_normal((600, 2)) + 4.0 * y[:, None]
    X = np.column_stack([X, rng.uniform(size=600) < 0.02])  # a rare code, in which a cluster could have no extent
    start = np.eye(2)[np.where(rng.uniform(size=600) < 0.1, 1 - y, y)]
    _, p = fit_mixture(X, start, np.diag([0.0, 0.0, 1 / 12]))
    assert_allclose(p.sum(axis=1), 1.0)
    assert (p.argmax(axis=1) == y).mean() > 0.97


def test_the_posterior_is_that_of_gaussians_with_the_means_and_covariances_of_the_shares(rng):
    x, p = rng.standard_normal((40, 2)), rng.dirichlet(np.ones(3), size=40)
    floor = np.diag([0.1, 0.2])
    counts = p.sum(axis=0)
    within = sum(
        sum(p[i, k] * np.outer(x[i] - c, x[i] - c) for i in range(40))
        for k, c in enumerate((p.T @ x) / counts[:, None])
    )
    pooled = within / 40 + floor
    pooled = 0.95 * pooled + 0.05 * np.diag(np.diag(pooled))
    pooled += 1e-5 * np.trace(pooled) / 2 * np.eye(2)
    expected = np.empty((40, 3))
    for k in range(3):
        center = p[:, k] @ x / counts[k]
        own = sum(p[i, k] * np.outer(x[i] - center, x[i] - center) for i in range(40)) / counts[k] + floor
        share = counts[k] / (counts[k] + 2)
        covariance = share * own + (1 - share) * pooled
        weight = (counts[k] + 1) / (counts + 1).sum()
        expected[:, k] = weight * multivariate_normal(center, covariance).pdf(x)
    found = softmax(maximize(x, p, floor).logits(x), axis=1)
    assert_allclose(found, expected / expected.sum(axis=1, keepdims=True), atol=1e-6)


def test_a_posterior_is_changed_restored_and_refuses_other_arrays(rng):
    posterior = maximize(rng.standard_normal((30, 2)), rng.dirichlet(np.ones(2), size=30), np.zeros((2, 2)))
    x, by = rng.standard_normal((5, 2)), np.array([1.0, -2.0])
    logits = posterior.logits(x)
    assert_allclose(posterior.divided(4.0).logits(x), logits / 4.0)
    assert_allclose(posterior.raised(by).logits(x), logits + by)
    assert_allclose(posterior.module()(torch.from_numpy(x)).numpy(), logits)
    assert_allclose(Quadratic.from_arrays(posterior.arrays()).logits(x), logits)
    for name, value in (("offsets", np.zeros(3)), ("roots", np.full((2, 2, 2), np.nan))):
        with pytest.raises(ValueError, match=name):
            Quadratic.from_arrays({**posterior.arrays(), name: value})
