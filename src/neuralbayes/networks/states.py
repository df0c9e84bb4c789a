"""Networks of the clusterer: a layer for rows, states, and their merging: p(cluster|x) is the sum of p(z|x)."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn


class RowLayer(nn.Module):
    """From rows, dense or sparse, to the input of a network.

    Rows are multiplied by `reduction` (n_features, n_components), such as the right singular vectors of sparse rows;
    `unit` divides each by its length, where zeros stay zeros; `bounds`, two of (n_features,), clip each column.
    """

    reduction: Tensor | None
    lower: Tensor | None
    upper: Tensor | None

    def __init__(
        self, reduction: Tensor | None = None, *, unit: bool = False, bounds: tuple[Tensor, Tensor] | None = None
    ) -> None:
        super().__init__()
        lower, upper = (None, None) if bounds is None else bounds
        self.unit = unit
        for name, value in (("reduction", reduction), ("lower", lower), ("upper", upper)):
            self.register_buffer(name, value)

    def forward(self, x: Tensor) -> Tensor:
        """(n, ...) -> (n, n_components) with a reduction, (n, n_features) of unit length or clipped, or `x` itself."""
        x = self.features(x)
        if self.lower is not None and self.upper is not None:
            x = torch.minimum(torch.maximum(x.double(), self.lower), self.upper)
        return x

    def features(self, x: Tensor) -> Tensor:
        """The same without clipping."""
        if self.reduction is not None:
            x = x.flatten(1) if not x.is_sparse else x
            x = x.to(self.reduction.dtype) @ self.reduction
        elif x.is_sparse:
            x = x.to_dense()
        if self.unit:
            x = x.flatten(1).double()
            x = x / x.square().sum(dim=1, keepdim=True).sqrt().clamp_min(torch.finfo(x.dtype).tiny)
        return x


class StateNetwork(nn.Module):
    """From raw inputs to clusters: normalise, apply a network with small states, and merge the states.

    `center` (n_features,) and `basis` apply to the output of `rows`. A basis (n_features, n_dimensions) projects to the
    coordinates of `network`, and one of (n_features,) keeps the shape of the input. `network` gives logits (n,
    n_states), and `membership` (n_states, n_clusters) is 1 where a state belongs to a cluster, else 0.
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
    """A network to logits of states (n, n_states), merged into clusters by a membership (n_states, n_clusters)."""

    membership: Tensor

    def __init__(self, network: nn.Module, membership: Tensor) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("membership", membership)

    def forward(self, x: Tensor) -> Tensor:
        """Logarithms of p(cluster|x): (n, ...) -> (n, n_clusters)."""
        return _merged(self.network(x), self.membership)


class WithStates(nn.Module):
    """A network of `n_features` values per sample, of any shape, and a linear layer to the logits of states."""

    def __init__(self, body: nn.Module, n_features: int, n_states: int) -> None:
        super().__init__()
        self.body = body
        self.head = nn.Linear(n_features, n_states)

    def forward(self, x: Tensor) -> Tensor:
        """Logits: (n, ...) -> (n, n_states)."""
        logits: Tensor = self.head(self.body(x).flatten(1))
        return logits


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


def _merged(logits: Tensor, membership: Tensor) -> Tensor:
    """Convert logits of states to log p(cluster|x), which is finite even if p underflows to 0."""
    if membership.shape[0] == membership.shape[1]:  # each state is a cluster
        return logits.log_softmax(dim=1).index_select(1, membership.argmax(dim=0))
    p_zx: Tensor = logits.softmax(dim=1) @ membership
    return p_zx.clamp_min(torch.finfo(p_zx.dtype).tiny).log()
