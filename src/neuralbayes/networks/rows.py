"""The first layer of models of rows: reduces sparse rows to a few columns, and optionally scales rows to unit
length."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class RowLayer(nn.Module):
    """Convert rows, dense or sparse, to the input of a network.

    Parameters
    ----------
    reduction : Tensor of shape (n_features, n_components), optional
        Matrix that multiplies the rows, such as the right singular vectors of sparse rows.
    unit : bool, default=False
        Divide each row by its length, so that distances depend only on angles. Rows of zeros stay zero.
    bounds : tuple of two Tensors of shape (n_features,), optional
        Range to which each column is clipped.

    Examples
    --------
    >>> RowLayer(unit=True)(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]], dtype=torch.float64)
    >>> RowLayer(torch.tensor([[1.0], [2.0]], dtype=torch.float64))(torch.eye(2).to_sparse())
    tensor([[1.],
            [2.]], dtype=torch.float64)
    """

    reduction: Tensor | None
    lower: Tensor | None
    upper: Tensor | None

    def __init__(
        self, reduction: Tensor | None = None, *, unit: bool = False, bounds: tuple[Tensor, Tensor] | None = None
    ) -> None:
        super().__init__()
        self.register_buffer("reduction", reduction)
        self.unit = unit
        self.register_buffer("lower", None if bounds is None else bounds[0])
        self.register_buffer("upper", None if bounds is None else bounds[1])

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
