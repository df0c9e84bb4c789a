r"""Probabilities that are right as often as they say, without labels: one temperature, from how far clusters overlap.

A network that is trained to tell clusters apart is too sure where they overlap. Dividing its logits by a temperature T
changes no label, and makes it less sure. The labels of neighbours cannot tell T: they come from the same partition, and
are mixed within a neighbourhood's reach of the boundary only, however far clusters reach into each other. The shape of
the density can:

1. For each pair of clusters that some rows have for their first two choices, half of the members of both give Fisher's
   direction, and two Gaussians along it, of one variance, by expectation maximisation from the labels. The labels cut
   the tails off; the Gaussians put them back.
2. The other half of the rows are projected on it. With weights :math:`\pi`, means :math:`\mu` and the variance
   :math:`\sigma^2`, the posterior of the second cluster against the first is

   .. math:: q(x) = \mathrm{sigmoid}\left( \log\frac{\pi_2}{\pi_1}
             + \frac{\mu_2 - \mu_1}{\sigma^2} \left( s(x) - \frac{\mu_1 + \mu_2}{2} \right) \right).

   It is that of the Bayes rule where the clusters are Gaussians of one covariance, and rests on one dimension
   elsewhere, so it is not overconfident because there are many.
3. T has the least cross-entropy between q and the network's sigmoid of the difference of the two logits over T.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit
from torch import Tensor, nn

Array = NDArray[np.float64]

HOTTEST = 100.0
"""Temperatures are looked for from the inverse of this to this."""

LEAST_ROWS = 10
"""Of each cluster of a pair, and of rows between the two, in order to be looked at."""

MOST_ROWS = 3000
"""Of a pair, drawn at random."""

MOST_PAIRS = 200
"""Pairs that are looked at: those with the most rows between them."""

N_STEPS = 200
"""Of expectation maximisation, at most."""


def calibrated_temperature(logits: Tensor, points: Tensor, floor: Tensor, votes: Tensor) -> float:
    """What to divide logits by so that p(z|x) agrees with how far the clusters overlap.

    Parameters
    ----------
    logits : Tensor of shape (n_rows, n_clusters)
    points : Tensor of shape (n_rows, n_dimensions)
        The rows where they are compared.
    floor : Tensor of shape (n_dimensions, n_dimensions)
        Covariance of the rounding of the rows, which is added to the variance of the clusters.
    votes : Tensor of shape (n_rows, n_clusters)
        What p(z|x) is to agree with where no two clusters have rows enough between them.

    Returns
    -------
    float
        1 for a single cluster.

    Examples
    --------
    The log-odds of two Gaussians that are 3 standard deviations apart are 3 x; these logits are ten times as large:

    >>> x = torch.randn(4000, 1, generator=torch.manual_seed(0)) + torch.tensor([-1.5, 1.5]).repeat(2000)[:, None]
    >>> round(calibrated_temperature(15.0 * torch.cat([-x, x], 1), x, torch.zeros(1, 1), torch.ones(4000, 2) / 2))
    10
    """
    if logits.shape[1] == 1:
        return 1.0
    gap, posterior = overlaps(logits.double().numpy(), points.double().numpy(), floor.double().numpy())
    if not len(gap):
        return temperature(logits, votes)
    two, target = np.stack([np.zeros_like(gap), gap], axis=1), np.stack([1.0 - posterior, posterior], axis=1)
    return temperature(torch.from_numpy(two), torch.from_numpy(target))


def overlaps(logits: Array, points: Array, floor: Array) -> tuple[Array, Array]:
    """Of held-out rows between two clusters: the difference of the two logits (m,), and the posterior there (m,)."""
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
    """log p(second|x) - log p(first|x) of `rows` (m, d): two Gaussians along Fisher's direction of the fitted ones."""
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


@torch.no_grad()
def temperature(logits: Tensor, target: Tensor) -> float:
    """What to divide logits by so that their softmax agrees with `target`: that of the least cross-entropy.

    Examples
    --------
    >>> target = torch.tensor([[0.75, 0.25]])
    >>> round(temperature(10.0 * target.log(), target), 3)
    10.0
    """
    if target.shape[1] == 1:
        return 1.0
    logits, target = logits.double(), target.double()

    def cross_entropy(log_temperature: float) -> float:
        return float(nn.functional.cross_entropy(logits / np.exp(log_temperature), target))

    bounds = (-np.log(HOTTEST), np.log(HOTTEST))
    return float(np.exp(minimize_scalar(cross_entropy, bounds=bounds, method="bounded").x))
