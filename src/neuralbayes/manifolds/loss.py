"""DML + beta R_c of several starts together, and its gradient."""

from __future__ import annotations

import torch
from torch import Tensor

from neuralbayes.objectives import DML, Objective
from neuralbayes.objectives.base import interior_posterior


class StartsLoss:
    r"""The objective with the smoothness term, for each of several linear heads on the same functions.

    .. math:: J(p(z|x)) + \beta \sum_{m, k} c_m w_{km}^2, \qquad p(z|x) = \mathrm{softmax}(\textstyle\sum_m w_m v_m(x))

    Parameters
    ----------
    objective : Objective
    beta : float
    cost : Tensor of shape (n_functions,)
        c, the R_c of each function.

    Notes
    -----
    Rows come last, where sums over states and over rows are fast. The gradient of the paper's objective is written out:
    with some thousand numbers, most of the time of autograd goes into its bookkeeping. Any other objective is left to
    autograd.
    """

    def __init__(self, objective: Objective, beta: float, cost: Tensor) -> None:
        self.objective = objective
        self.beta = beta
        self.cost = cost
        # A subclass may have terms of its own.
        self._is_plain = type(objective) is DML and objective.weights == "equal" and objective.alpha == 0.0

    def __call__(self, values: Tensor, weights: Tensor) -> Tensor:
        """The loss of each start.

        Parameters
        ----------
        values : Tensor of shape (n_rows, n_functions)
        weights : Tensor of shape (n_states, n_starts, n_functions)

        Returns
        -------
        Tensor of shape (n_starts,)
        """
        p_zx = _posterior(values, weights)
        if self._is_plain:
            f, g, a, b, _, _ = _parts(p_zx)
            value = (f * a + g * b).mean(dim=(0, 2)) / 2.0
        else:
            samples_first = p_zx.movedim(2, 0)
            p_z = samples_first.mean(dim=0)
            value = self.objective.sample_term(samples_first, p_z).mean(dim=0) + self.objective.prior_term(p_z)
        return value + self.beta * (self.cost * weights.square()).sum(dim=(0, 2))

    def gradient(self, values: Tensor, weights: Tensor) -> Tensor:
        """The gradient of the sum over the starts with respect to the weights, of the same shape."""
        if self._is_plain:
            with torch.no_grad():
                of_logits = dml_gradient(_posterior(values, weights))
                gradient = (of_logits.flatten(0, 1) @ values).reshape(weights.shape)
                return gradient.addcmul_(self.cost, weights, value=2.0 * self.beta)
        leaf = weights.detach().requires_grad_()
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad(self(values, leaf).sum(), leaf)
        return gradient


def _posterior(values: Tensor, weights: Tensor) -> Tensor:
    """(n_rows, n_functions), (n_states, n_starts, n_functions) -> (n_states, n_starts, n_rows)."""
    logits = (weights.flatten(0, 1) @ values.T).reshape(1, *weights.shape[:2], len(values))
    return interior_posterior(logits)[0]


def _parts(p_zx: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """f = L/E, g = (1 - L)/(1 - E), log(1 + g/f), log(1 + f/g), E, 1 - E; rows come last."""
    p_z = p_zx.mean(dim=-1, keepdim=True)
    rest_z = others(p_z)
    f, g = p_zx / p_z, others(p_zx) / rest_z
    log_sum = (f + g).log()
    return f, g, log_sum - f.log(), log_sum - g.log(), p_z, rest_z


def dml_gradient(p_zx: Tensor) -> Tensor:
    r"""The gradient of :class:`neuralbayes.DML` with respect to the logits, from p(z|x).

    With f = L/E, g = (1 - L)/(1 - E), a = log(1 + g/f) and b = log(1 + f/g), the objective is the mean of
    (f a + g b)/2. Its derivatives with respect to f and g are a/2 and b/2.

    Parameters
    ----------
    p_zx : Tensor of shape (n_states, ..., n_rows)
        Strictly inside (0, 1).

    Returns
    -------
    Tensor of the same shape
    """
    n = p_zx.shape[-1]
    f, g, a, b, p_z, rest_z = _parts(p_zx)
    share = 0.5 / (len(p_zx) * n)
    by_p = a.mul_(share / p_z)  # dJ/dL through f
    by_rest = b.mul_(share / rest_z)  # dJ/d(1 - L) through g
    by_p_z = -f.mul_(by_p).sum(dim=-1, keepdim=True)  # dJ/dE = -sum dJ/df f/E
    by_rest_z = -g.mul_(by_rest).sum(dim=-1, keepdim=True)
    # 1 - L_k is the sum of the other L, so it moves with these.
    by_p += others(by_rest)
    by_p += (by_p_z + others(by_rest_z)) / n
    by_p -= (p_zx * by_p).sum(dim=0)
    return by_p.mul_(p_zx)


def others(values: Tensor) -> Tensor:
    """For each state the sum over all others, which keeps its digits where one is nearly 1: same shape, states first.

    Examples
    --------
    >>> others(torch.tensor([1.0, 2.0, 4.0]))
    tensor([6., 5., 3.])
    """
    if len(values) == 2:
        return values.flip(0)
    before, after = torch.zeros_like(values), torch.zeros_like(values)
    torch.cumsum(values[:-1], 0, out=before[1:])
    torch.cumsum(values[1:].flip(0), 0, out=after[1:])
    return before + after.flip(0)
