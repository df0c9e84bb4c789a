"""How many clusters rows have."""

import numpy as np
import pytest
import torch

from neuralbayes.clusters.number_of_clusters import choose_number
from neuralbayes.clusters.space import make_space


def number(X, max_clusters=20, seed=0):
    rng = np.random.RandomState(seed)
    space = make_space(lambda indices: torch.from_numpy(X[indices]), np.arange(len(X)), 64, 15, rng)
    return choose_number(space, max_clusters)


def blobs(n_clusters, n, d=2, apart=8.0, seed=0):
    rng = np.random.RandomState(seed)
    centers = apart * np.stack([np.cos(angles := 2 * np.pi * np.arange(n_clusters) / n_clusters), np.sin(angles)], 1)
    X = rng.standard_normal((n, d))
    X[:, :2] += centers[np.arange(n) % n_clusters]
    return X


@pytest.mark.parametrize(("n_clusters", "n", "d"), [(2, 200, 2), (3, 150, 5), (4, 400, 3), (3, 6000, 3)])
def test_blobs_are_counted(n_clusters, n, d):
    found, selection = number(blobs(n_clusters, n, d))
    assert found == n_clusters
    assert len(selection["rows"]) == len(selection["p_value"]) == n_clusters - 1
    assert max(selection["p_value"]) < 0.02


KINDS = {
    "gaussian": lambda rng: rng.standard_normal((400, 5)),
    "uniform": lambda rng: rng.uniform(size=(400, 2)),
    "exponential": lambda rng: rng.exponential(size=(400, 3)),
    "codes": lambda rng: rng.randint(3, size=(400, 4)).astype(float),  # gaps between codes are no valleys
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_a_valley_are_mostly_one_cluster(kind):
    """It is a choice, not a certificate: Ward's criterion has looked for the joins that are tested."""
    found = [number(KINDS[kind](np.random.RandomState(seed)))[0] for seed in range(8)]
    assert np.median(found) == 1
    assert sum(n > 1 for n in found) <= 2


def test_the_seed_does_not_matter_and_the_largest_number_is_kept():
    X = blobs(5, 500)
    assert {number(X, seed=seed)[0] for seed in range(4)} == {5}
    assert number(X, max_clusters=3)[0] == 3
