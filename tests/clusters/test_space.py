"""Rows in units of their noise, and the rounding of columns."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from neuralbayes.clusters.mixture import fit_mixture
from neuralbayes.clusters.space import make_space, noise_metric, rounding_variance


@pytest.fixture
def rng():
    return np.random.RandomState(0)


def space_of(X, rng, **options):
    return make_space(lambda indices: torch.from_numpy(X[indices]), np.arange(len(X)), 64, 15, rng, **options)


def test_a_boolean_is_all_rounding_and_a_measurement_has_none(rng):
    X = np.column_stack([rng.randint(2, size=1000), rng.randint(5, size=1000), rng.standard_normal(1000)])
    assert_allclose(rounding_variance(X)[:2], 1 / 12)
    assert rounding_variance(X)[2] < 0.01
    assert_allclose(rounding_variance(np.array([[0.0], [1.0], [3.0]])), (1 + 1.5**2 + 4) / 36)


def test_a_direction_along_which_all_clusters_are_wide_is_made_narrow(rng):
    X = rng.standard_normal((600, 8)) * np.r_[10.0, np.ones(7)]
    X[300:, 1] += 8.0  # two clusters next to each other along a narrow direction
    space = space_of(X, rng)
    y = np.repeat([0, 1], 300)

    def spread(points):
        within = np.mean([points[y == k].var(axis=0).sum() for k in (0, 1)])
        return within / points.var(axis=0).sum()

    assert spread(space.denoised.numpy()) < 0.92 * spread(space.points.numpy())
    assert_allclose(space.points @ space.noise, space.denoised)
    assert_allclose((X - space.center.numpy()) @ space.basis.numpy(), space.points, atol=1e-5)


def test_the_metric_whitens_the_differences_of_neighbours(rng):
    x = torch.from_numpy(rng.standard_normal((400, 3)) * [5.0, 1.0, 0.2]).float()
    neighbors = torch.from_numpy(rng.randint(400, size=(400, 3)))
    metric = noise_metric(x, neighbors, torch.zeros(3, 3), shrinkage=0.0)
    difference = ((x[:, None] - x[neighbors]) @ metric).flatten(0, 1)
    covariance = difference.T @ difference / len(difference)
    assert_allclose(covariance / covariance.trace() * 3, torch.eye(3), atol=1e-4)


def test_standardised_categories_do_not_outweigh_numbers(rng):
    X = np.column_stack([100.0 * rng.standard_normal(1000), rng.uniform(size=1000) < 0.01])
    deviation = space_of(X, rng, standardize=True).points.std(dim=0)
    assert_allclose(deviation[0], 1.0, rtol=1e-2)
    assert deviation[1] < 0.2


@pytest.mark.parametrize("kind", ["tied", "diagonal", "full"])
def test_a_mixture_finds_gaussians_and_does_not_collapse_on_codes(rng, kind):
    y = np.repeat([0, 1], 300)
    X = rng.standard_normal((600, 2)) + 4.0 * y[:, None]
    X = np.column_stack([X, rng.uniform(size=600) < 0.02])  # a rare code, in which a cluster could have no extent
    space = space_of(X, rng)
    start = torch.from_numpy(np.where(rng.uniform(size=600) < 0.1, 1 - y, y))
    p = fit_mixture(space.points, start, 2, kind, space.floor)
    assert_allclose(p.sum(dim=1), 1.0, atol=1e-5)
    assert (p.argmax(dim=1).numpy() == y).mean() > 0.97
