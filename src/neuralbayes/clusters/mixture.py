"""Gaussian mixtures that do not collapse: covariances include the rounding of the columns, and small clusters borrow
from the pooled covariance."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from neuralbayes.clusters.hints import NO_HINTS, Hints

Kind = Literal["tied", "diagonal", "full"]

MANY_ROWS = 25_000
"""Number of rows above which fewer steps are made, and full covariances consider only clusters near a row."""

N_STEPS, FEW_STEPS = 60, 20
"""Maximum number of steps for few and for many rows; the last steps change little, and the result is only one vote."""

NEAREST = 20
"""Number of clusters near a row, by the pooled covariance; the others have probability 0."""


def fit_mixture(
    x: Tensor,
    labels: Tensor,
    n_clusters: int,
    kind: Kind,
    floor: Tensor,
    tolerance: float = 1e-4,
    hints: Hints = NO_HINTS,
) -> Tensor:
    """Fit a mixture by expectation maximisation from `labels` (n,); returns p(cluster|x) of shape (n, n_clusters).

    A row of weight 2 counts as two. Rows with hints belong entirely to the most probable cluster that the hints allow.
    """
    weight = None if hints.weight is None else torch.from_numpy(hints.weight).float()[:, None]
    p = torch.nn.functional.one_hot(labels, n_clusters).float()
    previous = -torch.inf
    for _ in range(N_STEPS if len(x) < MANY_ROWS else FEW_STEPS):
        log_joint = _log_joint(x, p, kind, floor, weight)
        log_density = log_joint.logsumexp(1)
        p = (log_joint - log_density[:, None]).exp()
        if hints.constrain:
            allowed = torch.from_numpy(hints.assign(-log_joint.double().numpy())[hints.rows])
            p[hints.rows] = torch.nn.functional.one_hot(allowed, n_clusters).float()
        value = float(hints.mean(log_density))
        if value - previous < tolerance:
            break
        previous = value
    return p


def _log_joint(x: Tensor, p: Tensor, kind: Kind, floor: Tensor, weight: Tensor | None) -> Tensor:
    """log p(x, cluster) of each row (n, n_clusters) after one maximisation step from `p`; weights are (n, 1)."""
    d = x.shape[1]
    squares, n = x.T @ x, float(len(x))
    if weight is not None:
        p = weight * p
        squares, n = x.T @ (weight * x), float(weight.sum())
    counts = p.sum(0) + 1e-6
    centers = (p.T @ x) / counts[:, None]
    log_weight = ((counts + 1) / (counts + 1).sum()).log()
    pooled = (squares - (centers.T * counts) @ centers) / n + floor
    pooled = 0.95 * pooled + 0.05 * pooled.diagonal().diag()
    pooled = pooled + 1e-5 * pooled.trace() / d * torch.eye(d)
    own = counts / (counts + d)  # weight of a cluster's own covariance
    if kind == "diagonal":
        second = (p.T @ x.square()) / counts[:, None] - centers.square() + floor.diagonal()
        variance = own[:, None] * second.clamp_min(0) + (1 - own[:, None]) * pooled.diagonal()
        inverse = 1 / variance
        squared = x.square() @ inverse.T - 2 * x @ (centers * inverse).T + (centers.square() * inverse).sum(1)
        diagonal: Tensor = log_weight - 0.5 * (squared + variance.log().sum(1))
        return diagonal
    if kind == "tied":
        joint: Tensor = log_weight - 0.5 * _squared(x, centers, pooled)  # the shared determinant cancels in p
        return joint
    near = None
    if len(x) >= MANY_ROWS and len(counts) > NEAREST:
        nearest = _squared(x, centers, pooled).topk(NEAREST, dim=1, largest=False, sorted=False).indices
        near = torch.zeros(len(x), len(counts), dtype=torch.bool).scatter_(1, nearest, True)
    result = torch.full((len(x), len(counts)), -torch.inf)
    for k, center in enumerate(centers):
        members = slice(None) if near is None else p[:, k].nonzero().squeeze(1)
        difference = x[members] - center
        covariance = (difference * p[members, k : k + 1]).T @ difference / counts[k] + floor
        factor = torch.linalg.cholesky(own[k] * covariance + (1 - own[k]) * pooled)
        inverse = torch.linalg.solve_triangular(factor, torch.eye(d), upper=False)
        if near is not None:
            members = near[:, k].nonzero().squeeze(1)
            difference = x[members] - center
        squared = (difference @ inverse.T).square().sum(1)
        result[members, k] = log_weight[k] - 0.5 * squared - factor.diagonal().log().sum()
    return result


def _squared(x: Tensor, centers: Tensor, covariance: Tensor) -> Tensor:
    """Squared distances from rows to centres in units of a covariance: (n, n_clusters)."""
    factor = torch.linalg.cholesky(covariance)
    z, c = (torch.linalg.solve_triangular(factor, v.T, upper=False).T for v in (x, centers))
    squared: Tensor = z.square().sum(1)[:, None] - 2 * z @ c.T + c.square().sum(1)
    return squared
