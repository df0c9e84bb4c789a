"""Gaussian mixtures that do not collapse: covariances include the rounding of the columns, and small clusters borrow
from the pooled covariance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from neuralbayes.clusters.known import NO_HINTS, Hints
from neuralbayes.clusters.posterior import Quadratic

Array = NDArray[np.float64]

N_STEPS = 60
"""Maximum number of steps; the last ones change little."""

TOLERANCE = 1e-4
"""Increase of the mean log-likelihood per step below which the fit ends."""


def fit_mixture(
    x: Array, p_zx: Array, floor: Array, hints: Hints = NO_HINTS, *, n_steps: int = N_STEPS
) -> tuple[Quadratic, Array]:
    """Fit a mixture by expectation maximisation.

    A row of weight 2 counts as two. Rows with hints belong entirely to the most probable cluster that the hints allow.

    Parameters
    ----------
    x : ndarray of shape (n_rows, n_dimensions)
    p_zx : ndarray of shape (n_rows, n_clusters)
        Start: share of each row in each cluster.
    floor : ndarray of shape (n_dimensions, n_dimensions)
        Covariance of the rounding of the columns, which every covariance includes.
    hints : Hints
    n_steps : int
        Maximum number of steps. After one, the mixture has the means and covariances of the start.

    Returns
    -------
    Quadratic
        p(z|x) of the mixture.
    ndarray of shape (n_rows, n_clusters)
        p(z|x) of the rows.
    """
    previous = -np.inf
    for _ in range(n_steps):
        posterior = maximize(x, p_zx, floor, hints.weight)
        log_joint = posterior.logits(x)
        log_density = logsumexp(log_joint, axis=1)
        p_zx = np.exp(log_joint - log_density[:, None])
        if hints.constrain:
            p_zx[hints.rows] = np.eye(p_zx.shape[1])[hints.assign(-log_joint)[hints.rows]]
        value = float(np.average(log_density, weights=hints.weight))
        if value - previous < TOLERANCE:
            break
        previous = value
    return posterior, p_zx


def maximize(x: Array, p_zx: Array, floor: Array, weight: Array | None = None) -> Quadratic:
    """The posterior of a mixture with the weights, means and covariances of the shares `p_zx`; see `fit_mixture`."""
    n_rows, d = x.shape
    p = p_zx if weight is None else weight[:, None] * p_zx
    counts = p.sum(axis=0) + 1e-6
    centers = (p.T @ x) / counts[:, None]
    second = x.T @ (x if weight is None else weight[:, None] * x)
    pooled = (second - (centers.T * counts) @ centers) / (n_rows if weight is None else weight.sum()) + floor
    pooled = 0.95 * pooled + 0.05 * np.diag(np.diag(pooled))
    pooled += (1e-5 * np.trace(pooled) / d + 1e-12) * np.eye(d)
    own = counts / (counts + d)  # weight of a cluster's own covariance
    offsets, roots = np.log((counts + 1.0) / (counts + 1.0).sum()), np.empty((len(counts), d, d))
    for k, center in enumerate(centers):
        members = np.flatnonzero(p[:, k] > 1e-9)  # the others would only cost time
        difference = x[members] - center
        covariance = (difference.T * p[members, k]) @ difference / counts[k] + floor
        factor = np.linalg.cholesky(own[k] * covariance + (1.0 - own[k]) * pooled)
        roots[k] = np.linalg.inv(factor)
        offsets[k] -= np.log(np.diag(factor)).sum()
    return Quadratic(offsets, centers, roots)
