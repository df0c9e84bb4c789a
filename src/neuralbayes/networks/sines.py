"""A network with one fixed hidden layer of sines and a trained output layer."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class SineNetwork(nn.Module):
    r"""Logits that are linear in sines of the input with many wavelengths.

    .. math:: F(x) = W \begin{pmatrix} \sin(\Omega B (x - c) + \phi) \\ 1 \end{pmatrix}

    The wavelengths range from the distance between neighbours to the extent of the data, so the network can represent
    boundaries at any scale and interpolates smoothly between the points. It is linear in `W`, so it trains in a few
    dozen steps, and any number of heads can share one hidden layer.

    Its center is (n_features,), the basis of the span of the data (n_features, n_dimensions), the frequency
    (n_dimensions, n_hidden), and the phase (n_hidden,).
    """

    center: Tensor
    basis: Tensor
    frequency: Tensor
    phase: Tensor

    def __init__(self, center: Tensor, basis: Tensor, frequency: Tensor, phase: Tensor, n_states: int) -> None:
        super().__init__()
        for name, value in (("center", center), ("basis", basis), ("frequency", frequency), ("phase", phase)):
            self.register_buffer(name, value)
        self.head = nn.Parameter(torch.zeros(len(phase) + 1, n_states))

    def normalize(self, x: Tensor) -> Tensor:
        """Coordinates in the dtype of `x`: (n, n_features) -> (n, n_dimensions)."""
        # The origin may be far from the data: subtract in float64.
        return ((x.double() - self.center) @ self.basis).to(x.dtype)

    def hidden(self, x: Tensor) -> Tensor:
        """The hidden layer in the dtype of `x`: (n, n_features) -> (n, n_hidden)."""
        return torch.addmm(self.phase.to(x.dtype), self.normalize(x), self.frequency.to(x.dtype)).sin_()

    def forward(self, x: Tensor) -> Tensor:
        """Logits: (n, n_features) -> (n, n_states)."""
        head = self.head.to(x.dtype)
        return torch.addmm(head[-1], self.hidden(x), head[:-1])
