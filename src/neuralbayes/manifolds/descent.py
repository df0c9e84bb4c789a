"""Minimise DML + beta R_c from several starts together; held-out rows select the best start and its best step."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from torch import Tensor

from neuralbayes.bayes import posterior
from neuralbayes.manifolds.geometry import Geometry, Options
from neuralbayes.manifolds.graph import Array
from neuralbayes.manifolds.separation import is_certified, separation, separation_of_parts
from neuralbayes.networks.sines import SineNetwork
from neuralbayes.objectives import DML, Objective
from neuralbayes.objectives.base import interior_posterior


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
        return np.asarray(posterior(self.network(torch.from_numpy(rows))))


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
    for more in (4, 8):  # narrow gaps need more units than `n_hidden`
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
        with warnings.catch_warnings(action="ignore"):  # KMeans warns of fewer distinct points than states
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
    return np.asarray(coefficients / (1.0 + 0.01 * geometry.relative_roughness(n_states)))


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
    waited = n_iter = 0
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
    if not geometry.n_parts:
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
    return int(0.2 * n) if n >= 50 else 0


class StartsLoss:
    r"""The objective with the smoothness term, for each of several linear heads on the same functions.

    .. math:: J(p(z|x)) + \beta \sum_{m, k} c_m w_{km}^2, \qquad p(z|x) = \mathrm{softmax}(\textstyle\sum_m w_m v_m(x))

    Values are (n_rows, n_functions), `cost` is the R_c of each function, weights are (n_states, n_starts, n_functions).
    """

    def __init__(self, objective: Objective, beta: float, cost: Tensor) -> None:
        self.objective, self.beta, self.cost = objective, beta, cost
        # A subclass may have terms of its own.
        self._is_plain = type(objective) is DML and objective.weights == "equal" and objective.alpha == 0.0

    def __call__(self, values: Tensor, weights: Tensor) -> Tensor:
        """The loss of each start: (n_starts,)."""
        samples_first = _posterior(values, weights).movedim(2, 0)
        p_z = samples_first.mean(dim=0)
        value = self.objective.sample_term(samples_first, p_z).mean(dim=0) + self.objective.prior_term(p_z)
        return value + self.beta * (self.cost * weights.square()).sum(dim=(0, 2))

    def gradient(self, values: Tensor, weights: Tensor) -> Tensor:
        """The gradient of the sum over the starts with respect to the weights, of the same shape."""
        if self._is_plain:  # most of the time of autograd would go into its bookkeeping
            with torch.no_grad():
                of_logits = dml_gradient(_posterior(values, weights))
                gradient = (of_logits.flatten(0, 1) @ values).reshape(weights.shape)
                return gradient.addcmul_(self.cost, weights, value=2.0 * self.beta)
        leaf = weights.detach().requires_grad_()
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad(self(values, leaf).sum(), leaf)
        return gradient


def _posterior(values: Tensor, weights: Tensor) -> Tensor:
    """p(z|x) of each start: (n_states, n_starts, n_rows)."""
    logits = (weights.flatten(0, 1) @ values.T).reshape(1, *weights.shape[:2], len(values))
    return interior_posterior(logits)[0]


def dml_gradient(p_zx: Tensor) -> Tensor:
    r"""The gradient of :class:`neuralbayes.DML` with respect to the logits, from p(z|x) (n_states, ..., n_rows).

    With f = L/E, g = (1 - L)/(1 - E), a = log(1 + g/f) and b = log(1 + f/g), the objective is the mean of
    (f a + g b)/2. Its derivatives with respect to f and g are a/2 and b/2.
    """
    n = p_zx.shape[-1]
    p_z = p_zx.mean(dim=-1, keepdim=True)
    rest_z = others(p_z)
    f, g = p_zx / p_z, others(p_zx) / rest_z
    log_sum = (f + g).log()
    share = 0.5 / (len(p_zx) * n)
    by_p = (log_sum - f.log()).mul_(share / p_z)  # dJ/dL through f
    by_rest = (log_sum - g.log()).mul_(share / rest_z)  # dJ/d(1 - L) through g
    by_p_z = -f.mul_(by_p).sum(dim=-1, keepdim=True)  # dJ/dE = -sum dJ/df f/E
    by_rest_z = -g.mul_(by_rest).sum(dim=-1, keepdim=True)
    # 1 - L_k is the sum of the other L, so it moves with these.
    by_p += others(by_rest) + (by_p_z + others(by_rest_z)) / n
    by_p -= (p_zx * by_p).sum(dim=0)
    return by_p.mul_(p_zx)


def others(values: Tensor) -> Tensor:
    """For each state the sum over all others, which keeps its digits where one is nearly 1; states come first."""
    if len(values) == 2:
        return values.flip(0)
    before, after = torch.zeros_like(values), torch.zeros_like(values)
    torch.cumsum(values[:-1], 0, out=before[1:])
    torch.cumsum(values[1:].flip(0), 0, out=after[1:])
    return before + after.flip(0)


class Adam:
    """Adam (Kingma and Ba 2015) of one tensor, in place. The first use of ``torch.optim`` takes as long as a fit."""

    def __init__(self, weights: Tensor, lr: float) -> None:
        self.weights, self.lr, self.n_steps = weights, lr, 0
        self.mean, self.square = torch.zeros_like(weights), torch.zeros_like(weights)  # m and v

    def step(self, gradient: Tensor) -> None:
        """One step down a gradient, of the shape of the weights."""
        beta_1, beta_2, epsilon = 0.9, 0.999, 1e-8
        self.n_steps += 1
        self.mean.lerp_(gradient, 1.0 - beta_1)
        self.square.mul_(beta_2).addcmul_(gradient, gradient, value=1.0 - beta_2)
        size = self.lr / (1.0 - beta_1**self.n_steps)
        spread = (self.square.sqrt() / (1.0 - beta_2**self.n_steps) ** 0.5).add_(epsilon)
        self.weights.addcdiv_(self.mean, spread, value=-size)
