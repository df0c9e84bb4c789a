"""Adam for one tensor.

The first use of an optimiser of ``torch.optim`` imports the compiler of torch, which takes as long as a whole fit of
some hundred rows. These are its steps, bit for bit, without it.
"""

from __future__ import annotations

import torch
from torch import Tensor

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """Adam (Kingma and Ba 2015, algorithm 1) of one tensor, which it changes in place.

    Parameters
    ----------
    weights : Tensor
        Any shape.
    lr : float

    Examples
    --------
    >>> x = torch.tensor([1.0])
    >>> adam = Adam(x, lr=0.1)
    >>> adam.step(2.0 * x)
    >>> x
    tensor([0.9000])
    """

    def __init__(self, weights: Tensor, lr: float) -> None:
        self.weights = weights
        self.lr = lr
        self.n_steps = 0
        self.mean = torch.zeros_like(weights)  # m, of the gradient
        self.square = torch.zeros_like(weights)  # v, of its square

    def step(self, gradient: Tensor) -> None:
        """One step down a gradient, of the shape of the weights."""
        self.n_steps += 1
        self.mean.lerp_(gradient, 1.0 - BETA_1)
        self.square.mul_(BETA_2).addcmul_(gradient, gradient, value=1.0 - BETA_2)
        size = self.lr / (1.0 - BETA_1**self.n_steps)
        spread = (self.square.sqrt() / (1.0 - BETA_2**self.n_steps) ** 0.5).add_(EPSILON)
        self.weights.addcdiv_(self.mean, spread, value=-size)
