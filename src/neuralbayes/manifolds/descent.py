"""Minimise DML + beta R_c from several starts together; held-out rows select the best start and its best step."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from neuralbayes.bayes import posterior
from neuralbayes.manifolds.geometry import Geometry, Options
from neuralbayes.manifolds.graph import Array
from neuralbayes.manifolds.loss import Adam, StartsLoss
from neuralbayes.manifolds.separation import is_certified, separation, separation_of_parts
from neuralbayes.networks.sines import SineNetwork

HELD_OUT = 0.2

MORE_HIDDEN = (4, 8)
"""Units of the hidden layer that separates proven parts, as a multiple of `n_hidden`: the second if the first fails."""


@dataclass
class Labeling:
    """A fitted network, the separation of its states, and how it was found."""

    network: SineNetwork
    separation: Array  # (n_states,) in nats
    objective: float  # DML + beta R_c on held-out rows
    loss_curve: list[float]
    n_iter: int
    null: float = 0.0  # separation of connected rows, in nats
    columns: tuple[int, ...] = ()  # columns that alone separate the states

    @property
    def disjoint(self) -> NDArray[np.bool_]:
        """Which states are certified: (n_states,)."""
        return is_certified(self.separation, self.null)

    @torch.no_grad()
    def posterior(self, rows: Array) -> Array:
        """p(z|x): (n, n_features) -> (n, n_states)."""
        p_zx: Array = posterior(self.network(torch.from_numpy(rows))).numpy()
        return p_zx


def fit_states(geometry: Geometry, n_states: int, options: Options, rng: np.random.RandomState) -> Labeling:
    """Fit from `n_init` starts and return the best; if it is not certified, also fit from as many new starts."""
    best = _descend(geometry, _starts(geometry, n_states, options, rng, linked=False), options)
    if not best.disjoint.all():
        again = _descend(geometry, _starts(geometry, n_states, options, rng, linked=True), options)
        # A cut through a thin manifold may have a lower objective than the gap beside it.
        best = min(best, again, key=lambda labeling: (not labeling.disjoint.all(), labeling.objective))
    return best


def fit_parts(geometry: Geometry, n_states: int, options: Options, rng: np.random.RandomState) -> Labeling:
    """Fit from the clearest division of the spanning tree, without edges between proven parts."""
    division = np.eye(n_states)[geometry.linkage.divide(n_states).part]
    for more in MORE_HIDDEN:
        finer = geometry.cut(more * options.n_hidden, rng)
        fitted = _descend(finer, _fit_heads(finer, division[:, :, None]), options)
        if fitted.disjoint.all():
            break
    return fitted


def single_state(geometry: Geometry) -> Labeling:
    """Put all rows into one state, whose separation is 0."""
    return Labeling(geometry.network(1), np.zeros(1), 0.0, [], 0)


def _starts(geometry: Geometry, n_states: int, options: Options, rng: np.random.RandomState, *, linked: bool) -> Array:
    """Coefficients of `n_init` output layers fitted to different divisions: (n_states, n_init, n_modes)."""
    divisions = [geometry.walk.territories(n_states, rng) for _ in range(options.n_init)]
    if options.n_init >= 4:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # KMeans warns if there are fewer distinct points than states
            labels = KMeans(n_states, n_init=1, random_state=rng).fit_predict(geometry.points)
        divisions[-1] = np.eye(n_states)[labels]
    if linked and n_states in geometry.linkage.ratio:
        divisions[0] = np.eye(n_states)[geometry.linkage.divide(n_states).part[: len(geometry.sample)]]
    return _fit_heads(geometry, np.stack(divisions, axis=2))


def _fit_heads(geometry: Geometry, target: Array) -> Array:
    """Coefficients of output layers whose posteriors are near the targets (n_rows, n_states, n_init)."""
    n_states = target.shape[1]
    target = 12.0 * (target - target.sum(axis=1, keepdims=True) / n_states)
    train = slice(n_held_out(len(target)), None)
    values = geometry.values[train]
    coefficients = np.tensordot(target[train], values, axes=(0, 0)) / len(values)
    fitted: Array = coefficients / (1.0 + 0.01 * geometry.relative_roughness(n_states))
    return fitted


def _descend(geometry: Geometry, start: Array, options: Options) -> Labeling:
    """Run Adam on DML + beta R_c from all starts together; held-out rows select the best start and its best step."""
    n_states, n_init, _ = start.shape
    rough = geometry.relative_roughness(n_states)
    scale = 1.0 / np.sqrt(1.0 + rough)  # in these units smooth functions move first
    held_out = n_held_out(len(geometry.rows))
    values = torch.from_numpy(geometry.values * scale).float()
    train, test = values[held_out:], values[: held_out or None]
    loss = StartsLoss(options.objective, options.beta, torch.from_numpy(rough * scale**2).float())
    weights = torch.from_numpy(start / scale).float()
    adam = Adam(weights, lr=0.1)
    best = torch.full((n_init,), torch.inf)
    best_weights = weights.clone()
    curve: list[float] = []
    waited = 0
    n_iter = 0
    while waited < 3:
        with torch.no_grad():
            value = loss(test, weights)
        better = value < best - options.tol  # False for NaN
        best = torch.where(better, value, best)
        best_weights = torch.where(better[:, None], weights, best_weights)
        curve.append(float(best.min()))
        waited = 0 if curve[-1] < min(curve[:-1], default=np.inf) else waited + 1
        for _ in range(min(5, options.max_iter - n_iter)):
            adam.step(loss.gradient(train, weights))
            n_iter += 1
        if n_iter >= options.max_iter:
            break
    winner = int(best.argmin())
    found = best_weights[:, winner].T
    network = geometry.network(n_states)
    with torch.no_grad():
        network.head.copy_(torch.from_numpy(geometry.modes @ (found.double().numpy() * scale[:, None])))
    labeling = Labeling(network, np.full(n_states, np.inf), float(best[winner]), curve, n_iter)
    if geometry.parts is None:
        p_zx = posterior(values @ found).double().numpy()
        labeling.separation = separation(geometry.settled, p_zx, np.arange(held_out or len(p_zx)))
    proven = geometry.linkage.proven
    if proven is not None and proven.n_parts >= n_states:  # no state may divide a part
        unseen = np.ones(len(proven.part), np.bool_)
        unseen[held_out : len(values)] = held_out == 0
        apart = separation_of_parts(proven.part[unseen], labeling.posterior(geometry.denser[unseen]))
        labeling.separation = np.minimum(labeling.separation, apart)
    return labeling


def n_held_out(n: int) -> int:
    """Number of held-out rows: a fifth of n, or 0 if n < 50. They are the first rows, because rows are shuffled."""
    return int(HELD_OUT * n) if n >= 50 else 0
