"""Mixtures and their quadratic posteriors."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.special import softmax
from scipy.stats import multivariate_normal

from neuralbayes.clusters.posterior import Quadratic
from neuralbayes.clusters.votes import fit_mixture, maximize


@pytest.fixture
def rng():
    return np.random.RandomState(0)


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


def test_a_temperature_and_a_constant_do_what_they_say(rng):
    posterior = maximize(rng.standard_normal((30, 2)), rng.dirichlet(np.ones(2), size=30), np.zeros((2, 2)))
    x = rng.standard_normal((5, 2))
    assert_allclose(posterior.divided(4.0).logits(x), posterior.logits(x) / 4.0)
    assert_allclose(posterior.raised(np.array([1.0, -2.0])).logits(x), posterior.logits(x) + np.array([1.0, -2.0]))
    assert_allclose(posterior.module()(torch.from_numpy(x)).numpy(), posterior.logits(x))


def test_a_posterior_is_restored_from_its_arrays_and_refuses_others(rng):
    posterior = maximize(rng.standard_normal((30, 2)), rng.dirichlet(np.ones(2), size=30), np.zeros((2, 2)))
    again = Quadratic.from_arrays(posterior.arrays())
    assert_allclose(again.logits(np.ones((1, 2))), posterior.logits(np.ones((1, 2))))
    for name, value in (("offsets", np.zeros(3)), ("roots", np.full((2, 2, 2), np.nan))):
        with pytest.raises(ValueError, match=name):
            Quadratic.from_arrays({**posterior.arrays(), name: value})
