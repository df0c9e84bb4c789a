"""Networks that score pairs of feature vectors and codes, as Deep InfoMax needs them."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Projection(nn.Module):
    """One hidden layer beside a linear shortcut, then layer normalisation; on the last dimension of its input.

    On vectors at the positions of a feature map it is a network of 1x1 convolutions.

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
    """Encode and dot product: vectors and codes are taken into one space, where their scalar product is the score.

    It is divided by the square root of `units`, so that scores of vectors that have nothing in common are of order 1.

    Parameters
    ----------
    n_features, n_code : int
        Sizes of a vector and of a code.
    units : int
        Dimensions of the common space.
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
    """Concatenate and score: a network with two hidden layers on a vector with a code beside it.

    All pairs pass through the second layer, so that time and memory grow with the square of the batch: it is for
    one vector an image, or for small batches.

    Parameters
    ----------
    n_features, n_code : int
        Sizes of a vector and of a code.
    units : int
        Of each hidden layer.
    """

    def __init__(self, n_features: int, n_code: int, units: int) -> None:
        super().__init__()
        # A linear map of a concatenation is the sum of two: each is computed once a vector, not once a pair.
        self.of_features = nn.Linear(n_features, units)
        self.of_code = nn.Linear(n_code, units, bias=False)
        self.score = nn.Sequential(nn.ReLU(), nn.Linear(units, units), nn.ReLU(), nn.Linear(units, 1))

    def forward(self, features: Tensor, codes: Tensor) -> Tensor:
        """Scores of all pairs: (n, n_positions, n_features), (n, n_code) -> (n codes, n images, n_positions)."""
        pairs = self.of_code(codes)[:, None, None] + self.of_features(features)[None]
        scores: Tensor = self.score(pairs)
        return scores.squeeze(-1)
