r"""Calibrate probabilities without labels, by one temperature that follows from how far clusters overlap.

A posterior that separates clusters is overconfident where they overlap. Dividing its logits by a temperature T
lowers its confidence and changes no label. The labels of neighbours cannot determine T: they come from the same
partition, so they are mixed only within a neighbourhood of the boundary, however far the clusters overlap. The shape of
the density can:

1. Take each pair of clusters that are the two most probable ones of some rows. Fit Fisher's direction to half of their
   members, and two Gaussians of equal variance along it by expectation maximisation, starting from the labels. The
   labels cut off the tails; the Gaussians restore them.
2. Project the other half of the rows on this direction. With weights :math:`\pi`, means :math:`\mu` and variance
   :math:`\sigma^2`, the posterior of the second cluster against the first is

   .. math:: q(x) = \mathrm{sigmoid}\left( \log\frac{\pi_2}{\pi_1}
             + \frac{\mu_2 - \mu_1}{\sigma^2} \left( s(x) - \frac{\mu_1 + \mu_2}{2} \right) \right).

   If the clusters are Gaussians of equal covariance, this is the Bayes posterior. Otherwise it still rests on a single
   dimension, so it does not become overconfident in high dimensions.
3. Choose the T that minimises the cross-entropy between q and the sigmoid of the difference of the two logits over T.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, logsumexp

Array = NDArray[np.float64]

HOTTEST = 100.0  # highest temperature of the search; the lowest is its inverse
LEAST_ROWS = 10  # minimum number of rows in each cluster of a pair, and between the two; other pairs are skipped
MOST_ROWS = 3000  # maximum number of rows per pair, drawn at random
MOST_PAIRS = 200  # maximum number of pairs; pairs with the most rows between them come first
N_STEPS = 200  # maximum number of steps of expectation maximisation


def calibrated_temperature(logits: Array, points: Array, floor: Array, votes: Array) -> float:
    """The temperature at which p(z|x) agrees with how far the clusters overlap; 1 for a single cluster.

    From logits (n_rows, n_clusters), rows (n_rows, n_dimensions), the covariance of their rounding, and votes (n_rows,
    n_clusters), the target of p(z|x) if no pair of clusters has enough rows between them.

    Examples
    --------
    The log-odds of two Gaussians that are 3 standard deviations apart are 3 x; these logits are ten times as large:

    >>> x = np.random.RandomState(0).normal(size=(4000, 1)) + np.tile([-1.5, 1.5], 2000)[:, None]
    >>> round(calibrated_temperature(15.0 * np.hstack([-x, x]), x, np.zeros((1, 1)), np.full((4000, 2), 0.5)))
    10
    """
    if logits.shape[1] == 1:
        return 1.0
    gap, posterior = overlaps(logits, points, floor)
    if not len(gap):
        return temperature(logits, votes)
    return temperature(np.stack([np.zeros_like(gap), gap], axis=1), np.stack([1.0 - posterior, posterior], axis=1))


def overlaps(logits: Array, points: Array, floor: Array) -> tuple[Array, Array]:
    """For held-out rows between two clusters, the difference of the two logits (m,) and the posterior (m,)."""
    rng = np.random.RandomState(0)
    order = np.argsort(-logits, axis=1, kind="stable")[:, :2]
    label = order[:, 0]
    pairs, pair, n_between = np.unique(np.sort(order, axis=1), axis=0, return_inverse=True, return_counts=True)
    pair = pair.reshape(-1)
    gaps, posteriors = [np.empty(0)], [np.empty(0)]
    for number in np.argsort(-n_between, kind="stable")[:MOST_PAIRS]:
        first, second = pairs[number]
        members = rng.permutation(np.flatnonzero((label == first) | (label == second)))[:MOST_ROWS]
        smaller = min((label[members] == first).sum(), (label[members] == second).sum())
        if min(n_between[number], smaller) < LEAST_ROWS:
            continue
        for fitted, held_out in ((members[::2], members[1::2]), (members[1::2], members[::2])):
            rows = held_out[pair[held_out] == number]
            is_second = label[fitted] == second
            if 1 < is_second.sum() < len(fitted) - 1:
                gaps.append(logits[rows, second] - logits[rows, first])
                posteriors.append(expit(_log_odds(points[fitted], is_second, floor, points[rows])))
    return np.concatenate(gaps), np.concatenate(posteriors)


def _log_odds(fitted: Array, is_second: NDArray[np.bool_], floor: Array, rows: Array) -> Array:
    """log p(second|x) - log p(first|x) of `rows` (m, d), from two Gaussians along Fisher's direction of `fitted`."""
    a, b = fitted[~is_second], fitted[is_second]
    residual = np.concatenate([a - a.mean(axis=0), b - b.mean(axis=0)])
    within = residual.T @ residual / len(fitted) + floor
    ridge = np.trace(within) / len(fitted) + 1e-9
    direction = np.linalg.solve(within + ridge * np.eye(len(within)), b.mean(axis=0) - a.mean(axis=0))
    center = fitted.mean(axis=0)
    along = (fitted - center) @ direction
    least = float(direction @ floor @ direction) + 1e-6 * float(along.var()) + 1e-300
    p = is_second.astype(np.float64)
    slope = intercept = 0.0
    for _ in range(N_STEPS):
        share = p.mean().clip(1e-6, 1.0 - 1e-6)
        means = (1.0 - p) @ along / (len(p) * (1.0 - share)), p @ along / (len(p) * share)
        variance = ((1.0 - p) @ np.square(along - means[0]) + p @ np.square(along - means[1])) / len(p) + least
        slope = (means[1] - means[0]) / variance
        intercept = np.log(share / (1.0 - share)) - slope * (means[0] + means[1]) / 2.0
        previous, p = p, expit(slope * along + intercept)
        if np.abs(p - previous).max() < 1e-4:
            break
    result: Array = slope * ((rows - center) @ direction) + intercept
    return result


def temperature(logits: Array, target: Array) -> float:
    """The temperature that minimises the cross-entropy between `target` and the softmax of the divided logits."""
    if target.shape[1] == 1:
        return 1.0

    def cross_entropy(log_temperature: float) -> float:
        divided = logits / np.exp(log_temperature)
        return float((logsumexp(divided, axis=1) - (target * divided).sum(axis=1)).mean())

    bounds = (-np.log(HOTTEST), np.log(HOTTEST))
    return float(np.exp(minimize_scalar(cross_entropy, bounds=bounds, method="bounded").x))
