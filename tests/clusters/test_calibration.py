"""One temperature, from the overlap of the clusters."""

import numpy as np
import pytest

import neuralbayes as nb
from neuralbayes.clusters.calibration import calibrated_temperature, overlaps, temperature


def gaussians(n, d, apart, share=0.5, seed=0):
    """Rows of two Gaussians, the Gaussian of each row, and the log-odds of the second one."""
    rng = np.random.RandomState(seed)
    z = rng.uniform(size=n) < share
    X = rng.standard_normal((n, d))
    X[:, 0] += apart * z
    return X, z, apart * X[:, 0] - apart**2 / 2 + np.log(share / (1 - share))


def found(X, log_odds, times):
    logits = times * np.stack([np.zeros_like(log_odds), log_odds], axis=1)
    d = X.shape[1]
    return calibrated_temperature(logits, X, np.zeros((d, d)), np.full((len(X), 2), 0.5))


@pytest.mark.parametrize("apart", [2.0, 3.0])
@pytest.mark.parametrize(("d", "share"), [(2, 0.5), (10, 0.5), (5, 0.3)])
@pytest.mark.parametrize("times", [0.5, 8.0])
def test_logits_of_gaussians_are_divided_by_what_they_were_multiplied_by(apart, d, share, times):
    X, _, log_odds = gaussians(4000, d, apart, share)
    assert found(X, log_odds, times) == pytest.approx(times, rel=0.3)


def test_three_clusters_are_looked_at_in_pairs():
    rng = np.random.RandomState(0)
    centers = 2.5 * np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.9]])
    X = rng.standard_normal((3000, 2)) + centers[np.arange(3000) % 3]
    logits = 6.0 * (X @ centers.T - np.square(centers).sum(axis=1) / 2)
    t = calibrated_temperature(logits, X, np.zeros((2, 2)), np.full((3000, 3), 1 / 3))
    assert t == pytest.approx(6.0, rel=0.35)


def test_the_rounding_of_rows_makes_it_less_sure():
    X, _, log_odds = gaussians(1000, 2, 3.0)
    logits = np.stack([np.zeros_like(log_odds), log_odds], axis=1)
    sharp, blurred = (overlaps(logits, X, floor * np.eye(2)) for floor in (0.0, 0.5))
    np.testing.assert_array_equal(sharp[0], blurred[0])
    assert np.abs(blurred[1] - 0.5).mean() < np.abs(sharp[1] - 0.5).mean()


def test_without_rows_enough_between_clusters_the_votes_decide():
    target, x = np.random.RandomState(0).dirichlet(np.ones(3), size=9), np.random.RandomState(0).normal(size=(9, 2))
    assert temperature(7.0 * np.log(target), target) == pytest.approx(7.0, rel=1e-3)
    assert calibrated_temperature(7.0 * np.log(target), x, np.zeros((2, 2)), target) == pytest.approx(7.0, rel=1e-3)
    one = np.ones((9, 1))
    assert calibrated_temperature(one, x, np.zeros((2, 2)), one) == temperature(one, one) == 1.0


def test_a_clusterer_of_overlapping_gaussians_is_within_a_hundredth_of_the_bayes_rule():
    excess = []
    for seed in range(4):
        X, z, log_odds = gaussians(1000, 2, 2.0, seed=seed)
        fitted = nb.InformationClusterer(2, random_state=0).fit(X)
        p = fitted.predict_proba(X)
        bayes = np.square(1 / (1 + np.exp(-log_odds)) - z).mean()
        excess.append(min(np.square(column - z).mean() for column in p.T) - bayes)
        np.testing.assert_array_equal(fitted.labels_, p.argmax(axis=1))
    assert np.mean(excess) < 0.01
