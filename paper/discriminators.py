"""Networks that score pairs of feature vectors and codes, for Deep InfoMax."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Projection(nn.Module):
    """One hidden layer with a linear shortcut, followed by layer normalisation, on the last dimension of the input.

    On the positions of a feature map, this is a network of 1x1 convolutions.

    Parameters
    ----------
    n_inputs, units : int
    """

    def __init__(self, n_inputs: int, units: int) -> None:
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(n_inputs, units), nn.ReLU(), nn.Linear(units, units))
        self.shortcut = nn.Linear(n_inputs, units, bias=False)
        self.norm = nn.LayerNorm(units)

    def forward(self, x: Tensor) -> Tensor:
        """(..., n_inputs) -> (..., units)."""
        y: Tensor = self.norm(self.hidden(x) + self.shortcut(x))
        return y


class DotDiscriminator(nn.Module):
    """Encode and dot product: embed vectors and codes in one space and score pairs by their dot product.

    The score is divided by the square root of `units`, so that unrelated pairs have scores of order 1.

    Parameters
    ----------
    n_features, n_code : int
        Sizes of a vector and of a code.
    units : int
        Dimension of the common space.
    """

    def __init__(self, n_features: int, n_code: int, units: int) -> None:
        super().__init__()
        self.of_features = Projection(n_features, units)
        self.of_code = Projection(n_code, units)

    def forward(self, features: Tensor, codes: Tensor) -> Tensor:
        """Scores of all pairs: (n, n_positions, n_features), (n, n_code) -> (n codes, n images, n_positions)."""
        a, b = self.of_code(codes), self.of_features(features)
        return torch.einsum("iu,jpu->ijp", a / a.shape[1] ** 0.5, b)


class ConcatDiscriminator(nn.Module):
    """Concatenate and score: a network with two hidden layers on the concatenation of a vector and a code.

    All pairs pass through the second layer, so time and memory grow with the square of the batch size. Use it with one
    vector per image, or with small batches.

    Parameters
    ----------
    n_features, n_code : int
        Sizes of a vector and of a code.
    units : int
        Size of each hidden layer.
    """

    def __init__(self, n_features: int, n_code: int, units: int) -> None:
        super().__init__()
        # A linear map of a concatenation is a sum of two: compute each once per vector, not once per pair.
        self.of_features = nn.Linear(n_features, units)
        self.of_code = nn.Linear(n_code, units, bias=False)
        self.score = nn.Sequential(nn.ReLU(), nn.Linear(units, units), nn.ReLU(), nn.Linear(units, 1))

    def forward(self, features: Tensor, codes: Tensor) -> Tensor:
        """Scores of all pairs: (n, n_positions, n_features), (n, n_code) -> (n codes, n images, n_positions)."""
        pairs = self.of_code(codes)[:, None, None] + self.of_features(features)[None]
        scores: Tensor = self.score(pairs)
        return scores.squeeze(-1)
