"""Expensive steps use a sample of many rows, or only neighbours."""

import numpy as np
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from neuralbayes.clusters import kmeans, mixture


def groups(n_groups, n_rows, seed=0):
    rng = np.random.RandomState(seed)
    labels = rng.randint(n_groups, size=n_rows)
    return (20.0 * rng.standard_normal((n_groups, 6))[labels] + rng.standard_normal((n_rows, 6))), labels


def test_cells_of_a_sample_cover_all_points(monkeypatch):
    monkeypatch.setattr(kmeans, "MANY_POINTS", 1000)
    points, labels = groups(10, 2000)
    cell, centers, sizes = kmeans.cells(points, 40, np.random.RandomState(0))
    assert sizes.sum() == 2000
    assert_allclose(centers[3], points[cell == 3].mean(axis=0))
    assert adjusted_rand_score(labels, kmeans.kmeans(points, 10, np.random.RandomState(0))) > 0.99


def test_full_covariances_of_near_clusters_are_those_of_all(monkeypatch):
    points, labels = groups(12, 1500)
    x, start, floor = torch.from_numpy(points).float(), torch.from_numpy(labels), 1e-3 * torch.eye(6)
    expected = mixture.fit_mixture(x, start, 12, "full", floor)
    monkeypatch.setattr(mixture, "MANY_ROWS", 1000)
    monkeypatch.setattr(mixture, "NEAREST", 4)
    found = mixture.fit_mixture(x, start, 12, "full", floor)
    assert_allclose(found, expected, atol=1e-4)
    assert_array_equal(found.argmax(dim=1), expected.argmax(dim=1))
