"""A network with small states that are merged into clusters: p(cluster|x) is the sum of p(z|x) over its states."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from neuralbayes.networks.rows import RowLayer


class StateNetwork(nn.Module):
    """From raw inputs to clusters: normalise, apply a network with small states, and merge the states.

    Parameters
    ----------
    center : Tensor of shape (n_features,)
    basis : Tensor of shape (n_features, n_dimensions) or (n_features,)
        Projection to the coordinates of the network, or one factor per feature, which keeps the shape of the input.
    network : nn.Module
        Maps the coordinates (n, n_dimensions), or the normalised input, to logits (n, n_states).
    membership : Tensor of shape (n_states, n_clusters)
        1 where a state belongs to a cluster, else 0.
    rows : RowLayer, optional
        First layer; `center` and `basis` apply to its output. By default the input is unchanged.
    """

    center: Tensor
    basis: Tensor
    membership: Tensor

    def __init__(
        self, center: Tensor, basis: Tensor, network: nn.Module, membership: Tensor, rows: RowLayer | None = None
    ) -> None:
        super().__init__()
        self.rows = rows or RowLayer()
        self.register_buffer("center", center)
        self.register_buffer("basis", basis)
        self.network = network
        self.register_buffer("membership", membership)

    def features(self, x: Tensor) -> Tensor:
        """Flat samples in float64, reduced and of unit length if so fitted, but not clipped: (n, ...) -> (n, d)."""
        return self.rows.features(x).flatten(1).double()

    def normalize(self, x: Tensor) -> Tensor:
        """The input of the network in float32: (n, n_dimensions), or the shape of `x`."""
        x = self.rows(x)
        # The origin may be far from the data: subtract in float64.
        centered = x.flatten(1).double() - self.center
        if self.basis.ndim == 2:
            projected = centered @ self.basis
            return projected if isinstance(self.network, QuadraticStates) else projected.float()
        return (centered * self.basis).float().reshape(x.shape)

    def forward(self, x: Tensor) -> Tensor:
        """Logarithms of p(cluster|x): (n, ...) -> (n, n_clusters)."""
        return _merged(self.network(self.normalize(x)).double(), self.membership.double())


class MergedStates(nn.Module):
    """Turn a network with small states into one with clusters.

    Parameters
    ----------
    network : nn.Module
        To logits (n, n_states).
    membership : Tensor of shape (n_states, n_clusters)
        1 where a state belongs to a cluster, else 0.
    """

    membership: Tensor

    def __init__(self, network: nn.Module, membership: Tensor) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("membership", membership)

    def forward(self, x: Tensor) -> Tensor:
        """Logarithms of p(cluster|x): (n, ...) -> (n, n_clusters)."""
        return _merged(self.network(x), self.membership)


class WithStates(nn.Module):
    """Any network followed by a linear layer to the logits of states.

    Parameters
    ----------
    body : nn.Module
        Returns (n, ...), which will be flattened.
    n_features : int
        Number of values that it returns per sample.
    n_states : int
    """

    def __init__(self, body: nn.Module, n_features: int, n_states: int) -> None:
        super().__init__()
        self.body = body
        self.head = nn.Linear(n_features, n_states)

    def forward(self, x: Tensor) -> Tensor:
        """Logits: (n, ...) -> (n, n_states)."""
        logits: Tensor = self.head(self.body(x).flatten(1))
        return logits


def _merged(logits: Tensor, membership: Tensor) -> Tensor:
    """Convert logits of states to log p(cluster|x), which is finite even if p underflows to 0."""
    if membership.shape[0] == membership.shape[1]:  # each state is a cluster
        return logits.log_softmax(dim=1).index_select(1, membership.argmax(dim=0))
    p_zx: Tensor = logits.softmax(dim=1) @ membership
    return p_zx.clamp_min(torch.finfo(p_zx.dtype).tiny).log()


class QuadraticStates(nn.Module):
    """:class:`neuralbayes.clusters.posterior.Quadratic` as a module: (n, n_dimensions) -> logits (n, n_states)."""

    offsets: Tensor
    centers: Tensor
    roots: Tensor

    def __init__(self, offsets: NDArray[Any], centers: NDArray[Any], roots: NDArray[Any]) -> None:
        super().__init__()
        for name, value in (("offsets", offsets), ("centers", centers), ("roots", roots)):
            self.register_buffer(name, torch.from_numpy(value).double())

    def forward(self, x: Tensor) -> Tensor:
        away = (x.double() - self.centers[:, None]) @ self.roots.mT  # (n_states, n, n_dimensions)
        logits: Tensor = self.offsets - 0.5 * away.square().sum(dim=2).T
        return logits
