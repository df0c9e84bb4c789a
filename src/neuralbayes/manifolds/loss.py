"""DML + beta R_c of several starts together, its gradient, and steps down."""

from __future__ import annotations

import torch
from torch import Tensor

from neuralbayes.objectives import DML, Objective
from neuralbayes.objectives.base import interior_posterior

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


class StartsLoss:
    r"""The objective with the smoothness term, for each of several linear heads on the same functions.

    .. math:: J(p(z|x)) + \beta \sum_{m, k} c_m w_{km}^2, \qquad p(z|x) = \mathrm{softmax}(\textstyle\sum_m w_m v_m(x))

    Values of the functions are (n_rows, n_functions), their R_c is `cost` (n_functions,), and weights are
    (n_states, n_starts, n_functions). Rows come last in p(z|x), where sums over states and over rows are fast.
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
    """Adam (Kingma and Ba 2015, algorithm 1) of one tensor, which it changes in place, bit for bit as torch does.

    The first use of an optimiser of ``torch.optim`` imports the compiler of torch, which takes as long as a whole fit
    of some hundred rows.
    """

    def __init__(self, weights: Tensor, lr: float) -> None:
        self.weights, self.lr, self.n_steps = weights, lr, 0
        self.mean, self.square = torch.zeros_like(weights), torch.zeros_like(weights)  # m and v

    def step(self, gradient: Tensor) -> None:
        """One step down a gradient, of the shape of the weights."""
        self.n_steps += 1
        self.mean.lerp_(gradient, 1.0 - BETA_1)
        self.square.mul_(BETA_2).addcmul_(gradient, gradient, value=1.0 - BETA_2)
        size = self.lr / (1.0 - BETA_1**self.n_steps)
        spread = (self.square.sqrt() / (1.0 - BETA_2**self.n_steps) ** 0.5).add_(EPSILON)
        self.weights.addcdiv_(self.mean, spread, value=-size)
